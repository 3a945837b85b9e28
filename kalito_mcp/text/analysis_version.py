"""The version of `analysis`, for code that needs nothing else of it."""

from typing import Final

ANALYSIS_VERSION: Final = 5
"""Stored with an index. Opening a database with an older version rebuilds its index."""
