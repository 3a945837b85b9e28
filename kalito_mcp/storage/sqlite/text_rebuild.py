"""Rebuilds the text index in pieces, so that a killed process loses at most one piece.

The new index grows in tables of its own. Searches use the one before until the last piece, which puts the new tables
in its place: no view ever has half an index. Each piece is a transaction that also stores how far it came, so the next
process goes on there, and processes that open the database at once take turns.

New records have the greatest keys, and a later piece finds them. If a record that is already in the new tables changes,
a trigger notes it, and the rebuild begins again: FTS5 could only remove the entry by the words that are gone. After
many such changes it is finished in one transaction, so that it terminates.
"""

import logging
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final, NamedTuple, Protocol

import aiosqlite
import anyio

from kalito_mcp.errors import StorageBusy
from kalito_mcp.storage.sqlite.index_version import is_index_current
from kalito_mcp.storage.sqlite.queries import Transaction
from kalito_mcp.storage.sqlite.text_index import (
    FORGET_CHANGES,
    FORGET_REBUILD,
    SELECT_FOR_INDEX,
    UPDATE_ANALYSIS,
    TextIndexStatements,
    entry_of_row,
)
from kalito_mcp.text.analysis_version import ANALYSIS_VERSION
from kalito_mcp.text.plurals import plural

# As records_text and record_shapes are in the migrations.
CREATE_NEW_TERMS: Final = """
CREATE VIRTUAL TABLE new_records_text USING fts5 (
    terms, content = '', detail = none, columnsize = 0, tokenize = "ascii tokenchars ':'"
)
"""
CREATE_NEW_SHAPES: Final = """
CREATE TABLE new_record_shapes (
    record_key INTEGER PRIMARY KEY,
    word_count INTEGER NOT NULL,
    is_first_person INTEGER NOT NULL CHECK (is_first_person IN (0, 1))
) STRICT
"""
INSERT_NEW_TERMS: Final = "INSERT INTO new_records_text (rowid, terms) VALUES (:key, :terms)"
INSERT_NEW_SHAPE: Final = """
INSERT INTO new_record_shapes (record_key, word_count, is_first_person) VALUES (:key, :word_count, :is_first_person)
"""
INSERT_REBUILD: Final = "INSERT INTO text_rebuild (analysis, done_key, done, total) VALUES (:analysis, 0, 0, :total)"
SELECT_REBUILD: Final = "SELECT analysis, done_key, done, total FROM text_rebuild"
UPDATE_REBUILD: Final = "UPDATE text_rebuild SET done_key = :done_key, done = :done, total = max(total, :done)"
SELECT_SHOWN_COUNT: Final = "SELECT count(*) FROM records WHERE deleted_at IS NULL"
SELECT_INDEXED_COUNT: Final = "SELECT count(*) FROM record_shapes"
DROP_NEW: Final = (
    "DROP TABLE IF EXISTS new_records_text",
    "DROP TABLE IF EXISTS new_record_shapes",
    "UPDATE text_rebuild SET done_key = -1",
)
"""The rebuild, if there is one, begins again. A sweep needs that: the tables may have words of erased
records."""

PUT_IN_PLACE: Final = (
    "DROP TABLE records_text",
    "DROP TABLE record_shapes",
    "ALTER TABLE new_records_text RENAME TO records_text",
    "ALTER TABLE new_record_shapes RENAME TO record_shapes",
    "DELETE FROM text_rebuild",
    FORGET_CHANGES,
)
_PIECE_S: Final = 0.1
"""A piece ends with the first batch of SELECT_FOR_INDEX after this many seconds."""

_AT_ONCE: Final = 1_000
"""Records indexed in one transaction, in a fifth of a second."""

_PAUSE_S: Final = 0.005
"""Between two pieces. A process that waits for the mutex asks for it every 2 milliseconds."""

_MOST_RESTARTS: Final = 8
"""After this many restarts, the rest is done at once."""

_TELL_EVERY_S: Final = 2.0
_log: Final = logging.getLogger("kalito.storage")


class Progress(NamedTuple):
    """How many records a rebuild has indexed, of how many."""

    done: int
    total: int


class TextRebuildStatements:
    """The steps of a rebuild. Each is called in a write transaction of its own."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection
        self._index = TextIndexStatements(Transaction(connection))

    async def begin(self, *, is_forced: bool) -> Progress | None:
        """Begin a rebuild, or go on with one that another process began. None: there is nothing left to do.

        An index that this release's analysis made is rebuilt only if it is forced. Few records are indexed at once.
        """
        for analysis, done_key, done, total in await self._connection.execute_fetchall(SELECT_REBUILD):
            if done_key < 0:
                continue
            if analysis == ANALYSIS_VERSION:
                return Progress(done, total)
            await self._run(DROP_NEW)
        if not is_forced and await is_index_current(self._connection):
            return None
        [[total]] = await self._connection.execute_fetchall(SELECT_SHOWN_COUNT)
        if total <= _AT_ONCE:
            await self._index.rebuild()
            return None
        return await self._start(total)

    async def go_on(self, *, may_start_over: bool = True) -> Progress | None:
        """Index the next piece. None: the index is complete, by this call or by another process.

        If a record was changed that is in the new tables, the rebuild starts over, and nothing is done yet; or all is
        done at once.

        Raises:
            StorageBusy: another release has rebuilt it, or has begun to.
        """
        found = list(await self._connection.execute_fetchall(SELECT_REBUILD))
        if not found and await is_index_current(self._connection):
            return None
        if not found or found[0][0] != ANALYSIS_VERSION:
            raise StorageBusy("another release of kalito rebuilds the text index; end one of them, and try again")
        [(_, done_key, done, total)] = found
        if done_key < 0 and may_start_over:
            [[total]] = await self._connection.execute_fetchall(SELECT_SHOWN_COUNT)
            return await self._start(total)
        if done_key < 0:
            _log.warning("records were changed while the text index was rebuilt: rebuilding it in one go")
            await self._index.rebuild()
            return None
        ends_at = time.monotonic() + _PIECE_S
        while True:
            rows = list(await self._connection.execute_fetchall(SELECT_FOR_INDEX, {"after_key": done_key}))
            if not rows:
                await self._run(PUT_IN_PLACE)
                await self._connection.execute_fetchall(UPDATE_ANALYSIS, {"version": ANALYSIS_VERSION})
                return None
            parameters = [entry_of_row(row)._asdict() for row in rows]
            await self._connection.executemany(INSERT_NEW_TERMS, parameters)
            await self._connection.executemany(INSERT_NEW_SHAPE, parameters)
            done_key, done = rows[-1][0], done + len(rows)
            if time.monotonic() >= ends_at:
                break
        await self._connection.execute_fetchall(UPDATE_REBUILD, {"done_key": done_key, "done": done})
        return Progress(done, max(total, done))

    async def _start(self, total: int) -> Progress:
        await self._run((*FORGET_REBUILD, CREATE_NEW_TERMS, CREATE_NEW_SHAPES))
        await self._connection.execute_fetchall(INSERT_REBUILD, {"analysis": ANALYSIS_VERSION, "total": total})
        return Progress(0, total)

    async def indexed_count(self) -> int:
        """How many records the index has."""
        [[count]] = await self._connection.execute_fetchall(SELECT_INDEXED_COUNT)
        return int(count)

    async def _run(self, statements: tuple[str, ...]) -> None:
        for statement in statements:
            await self._connection.execute_fetchall(statement)


class _Writing(Protocol):
    @property
    def text_rebuild(self) -> TextRebuildStatements: ...


async def rebuild(write: Callable[[], AbstractAsyncContextManager[_Writing]], *, is_forced: bool = False) -> None:
    """Rebuild the index if an older release made it, or if it is forced; tell how far it is. Returns when the index is
    complete.

    Raises:
        StorageBusy: another process held the lock too long, or has another release and rebuilds the index itself.
    """
    async with write() as transaction:
        progress = await transaction.text_rebuild.begin(is_forced=is_forced)
    if progress is None:
        return
    started_at, first, restarts = time.monotonic(), progress, 0
    told_at = began_at = started_at
    _log.warning(
        "rebuilding the text index: %s%s. It may be interrupted; the next start goes on",
        plural(first.total, "record"),
        f", {first.done:,} of them done already" if first.done else "",
    )
    while progress is not None:
        now = time.monotonic()
        if now >= told_at + _TELL_EVERY_S:
            told_at = now
            left_s = (now - began_at) / max(1, progress.done - first.done) * (progress.total - progress.done)
            _log.warning(
                "rebuilding the text index: %s of %s records, about %d s left",
                f"{progress.done:,}",
                f"{progress.total:,}",
                round(left_s),
            )
        async with write() as transaction:
            progress = await transaction.text_rebuild.go_on(may_start_over=restarts < _MOST_RESTARTS)
        if progress is not None and not progress.done:
            _log.warning("records were changed while the text index was rebuilt: beginning again")
            first, began_at, restarts = progress, time.monotonic(), restarts + 1
        await anyio.sleep(_PAUSE_S)
    _log.warning("the text index is rebuilt, after %.1f s", time.monotonic() - started_at)
