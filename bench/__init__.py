"""Benchmarks, run by hand. They print ratios of medians of interleaved runs, never a verdict."""
