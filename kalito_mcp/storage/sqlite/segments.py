"""Merges the segments of the text index, of which each write makes a new one. FTS5 asks each of them for each term, and
a mistyped word is looked for in some hundred spellings.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol

import aiosqlite
import anyio

from kalito_mcp.storage.sqlite.text_index import TextIndexStatements

SELECT_SEGMENT_COUNT: Final = "SELECT count(DISTINCT segid) FROM records_text_idx"

FEW_SEGMENTS: Final = 4
_PAUSE_S: Final = 0.01
"""Between two slices. A process that waits for the mutex asks for it every 2 milliseconds."""


class _Transaction(Protocol):
    @property
    def text(self) -> TextIndexStatements: ...


async def merge_segments(
    reading: Callable[[], AbstractAsyncContextManager[aiosqlite.Connection]],
    write: Callable[[], AbstractAsyncContextManager[_Transaction]],
) -> None:
    """Merge until few are left, or none are about equally large. Others write between the slices."""
    while await _has_many(reading):
        async with write() as transaction:
            if not await transaction.text.merge_alike():
                return
        await anyio.sleep(_PAUSE_S)


async def _has_many(reading: Callable[[], AbstractAsyncContextManager[aiosqlite.Connection]]) -> bool:
    async with reading() as connection:
        [[count]] = await connection.execute_fetchall(SELECT_SEGMENT_COUNT)
    return bool(count > FEW_SEGMENTS)
