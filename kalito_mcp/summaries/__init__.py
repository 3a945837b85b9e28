"""Summaries of a session: when they are due, how they are written, and how they stay true after edits."""
