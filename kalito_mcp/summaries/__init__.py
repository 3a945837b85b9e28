"""Decides when a session needs a summary, writes it, and keeps it true after edits."""
