"""The part of `inspection` about vectors: who made them, where they are kept, what is missing and what is left over."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from kalito_mcp.ports.embedder import Embedder
from kalito_mcp.storage.intact_rows import UnreadableRow
from kalito_mcp.storage.sqlite.moved_vectors import PointHashes
from kalito_mcp.storage.sqlite.vector_indexes import SELECT_INDEXES, SELECT_VECTOR_COUNT
from kalito_mcp.storage.sqlite.vector_moves import SELECT_LEFTOVER_COUNTS, SELECT_MOVED_COUNT
from kalito_mcp.storage.sqlite.vectors import SELECT_OWED_COUNT
from kalito_mcp.storage.tombstones import SELECT_IDENTITY
from kalito_mcp.text.plurals import plural

VECTORS_SINCE: Final = 4
MOVED_SINCE: Final = 17

SELECT_MOVE: Final = """
SELECT m.place, (SELECT count(*) FROM record_vectors v WHERE v.index_key = m.index_key AND v.key > m.moved_key)
FROM vector_moves m WHERE m.index_key = :index_key
"""
# Vectors that should not exist, and records that would never get one.
SELECT_WRONG_VECTORS: Final = """
SELECT v.record_key FROM record_vectors v
LEFT JOIN records r ON r.key = v.record_key LEFT JOIN vector_indexes i ON i.key = v.index_key
LEFT JOIN vector_moves m ON m.index_key = v.index_key
WHERE r.deleted_at IS NOT NULL OR coalesce(r.text, '') = '' OR i.key IS NULL
    OR length(v.vector) <> CASE WHEN v.key <= m.moved_key THEN 16 ELSE i.dimension END
    OR v.agent_key <> r.agent_key OR v.session_key IS NOT r.session_key
UNION
SELECT r.key FROM vector_indexes i JOIN records r ON r.key BETWEEN i.first_key AND i.done_key
WHERE i.state <> 'dropped' AND r.deleted_at IS NULL AND r.text <> ''
    AND NOT EXISTS (SELECT 1 FROM record_vectors v WHERE v.index_key = i.key AND v.record_key = r.key)
    AND NOT EXISTS (SELECT 1 FROM vector_debts d WHERE d.index_key = i.key AND d.record_key = r.key)
"""
# With this view the same statement inspects the database of an older release.
VIEW_WITHOUT_MOVES: Final = "CREATE TEMP VIEW vector_moves AS SELECT NULL AS index_key, NULL AS moved_key WHERE 0"
_SELECT_VERSION: Final = "PRAGMA user_version"

_OK: Final = "ok"
_WARNING: Final = "warning"
_FAILED: Final = "FAILED"


def vector_findings(
    connection: sqlite3.Connection, embedder: Embedder | None, place: str | None
) -> Iterator[tuple[str, str]]:
    """Verdicts with their texts. None without an embedder and vectors."""
    [version] = connection.execute(_SELECT_VERSION).fetchone()
    indexes = connection.execute(SELECT_INDEXES).fetchall() if version >= VECTORS_SINCE else []
    made_by, count, owed, move = None, 0, 0, None
    for key, whose, _, is_active, first_key, done_key in indexes:
        if is_active:
            made_by = whose
            parameters = {"index_key": key, "first_key": first_key, "done_key": done_key}
            [count] = connection.execute(SELECT_VECTOR_COUNT, parameters).fetchone()
            [owed] = connection.execute(SELECT_OWED_COUNT, parameters).fetchone()
            if version >= MOVED_SINCE:
                move = connection.execute(SELECT_MOVE, {"index_key": key}).fetchone()
    finding = _of_embedder(embedder, made_by, count, owed, "the database" if move is None else move[0])
    if finding is not None:
        yield finding
    if move is not None:
        yield from _of_place(place, *move)
    for left_in, left in connection.execute(SELECT_LEFTOVER_COUNTS, {"place": None}) if version >= MOVED_SINCE else ():
        remedy = "`serve` removes them in the background, `kalito-mcp purge` without an ID does it now"
        if left_in != place:
            remedy = "set models.qdrant to it, and run `kalito-mcp purge` without an ID"
        yield _WARNING, f"{plural(left, 'vector')} of what was erased or changed left in {left_in}: {remedy}"


def wrong_vectors(connection: sqlite3.Connection) -> Iterator[int]:
    """The records whose vectors should not exist, or are missing and not owed."""
    [version] = connection.execute(_SELECT_VERSION).fetchone()
    if version < MOVED_SINCE:
        connection.execute(VIEW_WITHOUT_MOVES)
    return (row[0] for row in connection.execute(SELECT_WRONG_VECTORS))


def moved_points(path: Path) -> tuple[str, int] | None:
    """The database's name elsewhere, and how many of its points should be there. None if it has never moved any, or
    cannot be read."""
    try:
        with closing(sqlite3.connect(path.absolute().as_uri() + "?mode=ro", uri=True)) as connection:
            [secret] = connection.execute(SELECT_IDENTITY).fetchone()
            [count] = connection.execute(SELECT_MOVED_COUNT).fetchone()
            return PointHashes(bytes(secret)).database, int(count)
    except (sqlite3.Error, UnreadableRow):
        return None


def _of_embedder(
    embedder: Embedder | None, made_by: str | None, count: int, owed: int, kept_in: str
) -> tuple[str, str] | None:
    if made_by is None:
        return None if embedder is None else (_OK, f"none yet; `serve` makes them with {embedder.fingerprint}")
    if embedder is None:
        return (
            _WARNING,
            f"{count} made by {made_by} and kept in {kept_in}, but no embedder is configured: search uses words only",
        )
    if made_by != embedder.fingerprint and made_by.partition(":")[0] in embedder.replaces:
        return (
            _WARNING,
            f"made by {made_by}: `serve` replaces them by vectors of {embedder.fingerprint} in the background",
        )
    if made_by != embedder.fingerprint:
        remedy = "search uses words only until you run `kalito-mcp reindex`"
        return _FAILED, f"made by {made_by}, but {embedder.fingerprint} is configured: {remedy}"
    if owed:
        remedy = "`serve` makes them in the background, `kalito-mcp reindex --vectors` makes them now"
        return _WARNING, f"{count} made by {made_by} and kept in {kept_in}, {owed} missing: {remedy}"
    return _OK, f"every record has one, made by {made_by} and kept in {kept_in}"


def _of_place(place: str | None, moved_to: str, waiting: int) -> Iterator[tuple[str, str]]:
    if place is None:
        remedy = "set it, or run `kalito-mcp reindex --vectors` to keep them in the database again"
        yield (
            _WARNING,
            f"kept in {moved_to}, but models.qdrant is not set: search uses words only. To change that, {remedy}",
        )
    elif moved_to != place:
        yield _WARNING, f"kept in {moved_to}, but {place} is configured: `serve` makes again what is missing there"
    elif waiting:
        yield _OK, f"{plural(waiting, 'vector')} still in the database: `serve` moves them in the background"
