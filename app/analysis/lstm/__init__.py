"""An LSTM's run taken apart exactly: what a cell still holds of every source, and what of it reaches a prediction."""
