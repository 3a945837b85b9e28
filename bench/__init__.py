"""Benchmarks: `python -m bench.<name>`, one JSON line each, every figure beside a baseline of the same run."""
