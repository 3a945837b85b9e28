"""Benchmarks: `python -m bench.<name>` prints one JSON line. Every figure has a baseline from the same run."""
