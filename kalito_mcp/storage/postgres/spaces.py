"""Statements on spaces. Their tables have no policy: they are read to know whose memories somebody may read."""

from typing import Final

from kalito_mcp.storage.spaces import COPY, SELECT_SPACE

SELECT_SPACE_LOCKED: Final = f"{SELECT_SPACE} FOR UPDATE"
SELECT_COPIES: Final = f"""
SELECT {COPY} FROM shared_copies WHERE member = :member AND source_id = ANY(:ids)
ORDER BY space, record_id
"""
SELECT_SHARED: Final = f"SELECT {COPY} FROM shared_copies WHERE space = :space AND record_id = ANY(:ids)"
DELETE_COPIES: Final = "DELETE FROM shared_copies WHERE space = :space AND record_id = ANY(:ids)"
