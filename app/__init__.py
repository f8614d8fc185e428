"""Headwater: each attention head's pattern and message, and the residual stream they write to."""

__version__ = "0.1.0"
