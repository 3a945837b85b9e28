"""Automatic pins: facts, preferences, decisions, dates and code, found in messages by fixed rules."""
