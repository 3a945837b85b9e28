"""Statements on spaces."""

from typing import Final

from kalito_mcp.storage.spaces import COPY, SELECT_SPACE

SELECT_SPACE_LOCKED: Final = SELECT_SPACE
"""Whoever writes has the lock of the file."""
SELECT_COPIES: Final = f"""
SELECT {COPY} FROM shared_copies WHERE member = :member AND source_id IN (SELECT value FROM json_each(:ids))
ORDER BY space, record_id
"""
SELECT_SHARED: Final = (
    f"SELECT {COPY} FROM shared_copies WHERE space = :space AND record_id IN (SELECT value FROM json_each(:ids))"
)
DELETE_COPIES: Final = (
    "DELETE FROM shared_copies WHERE space = :space AND record_id IN (SELECT value FROM json_each(:ids))"
)
