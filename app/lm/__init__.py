"""Models: where they come from, what they are made of, and one recorded forward pass."""
