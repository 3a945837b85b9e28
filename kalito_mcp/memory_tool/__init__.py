"""Anthropic's memory tool: `/memories` as a view of records."""
