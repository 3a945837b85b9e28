"""Judges sentences: their kind, whether they are worth keeping, and whether they are about the person."""
