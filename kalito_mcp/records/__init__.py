"""Typed records: what may be kept of them, how they change, how they are forgotten."""
