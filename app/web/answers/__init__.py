"""Answers of the lenses as plain data. torch is imported inside functions, which run in the models' threads."""
