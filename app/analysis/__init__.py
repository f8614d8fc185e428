"""Pure functions from a trace to tensors. Each module opens with its algorithm."""
