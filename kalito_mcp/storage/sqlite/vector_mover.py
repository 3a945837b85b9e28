"""Moves vectors to where they are kept outside the database, and removes there what is gone here.

A new vector is first in the database, with its record's debt paid. It is put there, and then its row here keeps only
the point's id. Killed in between, it is put there again, under the same id. A row that goes leaves its point's id among
the leftovers, in the same transaction; the point is removed there, then the id here. What neither reaches, as when a
process was killed while another one erased, shows in a count that differs: then all ids are compared.

Nobody who writes waits for the place: nothing is asked there inside a transaction.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Final, Protocol

import aiosqlite
import anyio

from kalito_mcp.crash_points import crash_point
from kalito_mcp.domain.records import RecordType
from kalito_mcp.errors import VectorsUnreachable
from kalito_mcp.ports.vector_points import VectorPoint, VectorPoints, VectorTenant
from kalito_mcp.storage.sqlite.moved_vectors import PointHashes
from kalito_mcp.storage.sqlite.tombstones import SELECT_IDENTITY
from kalito_mcp.storage.sqlite.vector_moves import (
    SELECT_LEFTOVER_COUNTS,
    SELECT_LEFTOVERS,
    SELECT_MOVED,
    SELECT_MOVED_COUNT,
    SELECT_MOVES,
    SELECT_NOT_MOVED,
    SELECT_TO_MOVE,
    VectorMoveStatements,
)
from kalito_mcp.text.plurals import plural

_MOVED_AT_ONCE: Final = 256
_REMOVED_AT_ONCE: Final = 1_000
_OWED_AT_ONCE: Final = 1_000


class _Transaction(Protocol):
    @property
    def vector_moves(self) -> VectorMoveStatements: ...


class VectorMover:
    """Keeps `points` in step with the database at `path`. Without points it moves nothing."""

    def __init__(
        self,
        path: Path,
        points: VectorPoints | None,
        *,
        reading: Callable[[], AbstractAsyncContextManager[aiosqlite.Connection]],
        write: Callable[[], AbstractAsyncContextManager[_Transaction]],
    ) -> None:
        self._path = path
        self._points = points
        self._reading = reading
        self._write = write
        self._lock = anyio.Lock()
        self._is_begun = False
        self._checked_arrival = 0

    async def run(self, *, is_whole: bool = False) -> bool:
        """As `ports.store.Store.move_vectors`."""
        async with self._lock:
            if self._points is None:
                return is_whole and await self._take_back()
            is_missing = await self._begin(self._points)
            await self._remove(self._points)
            for index_key in [row[0] for row in await self._rows(SELECT_MOVES)]:
                while await self._move(self._points, index_key):
                    pass
            is_new = self._checked_arrival != self._points.arrivals
            return ((is_whole or is_new) and await self._check(self._points)) or is_missing

    async def sweep(self) -> dict[str, str]:
        """Remove what is gone here. The places that may still have some of it, each with the reason."""
        remaining: dict[str, str] = {}
        points = self._points
        own = None if points is None else points.name
        async with self._lock:
            try:
                if points is not None:
                    await self._remove(points)
                    if await self._has_moves():
                        await self._check(points)
            except VectorsUnreachable as error:
                remaining[own or ""] = f"{error}; until it answers, it may still have vectors of what was erased"
        for place, count in await self._rows(SELECT_LEFTOVER_COUNTS, place=own):
            remaining[place] = (
                f"has {plural(count, 'vector')} of what was erased or changed, but models.qdrant names another place "
                "now; set it to this one and purge again. If nothing is there any more, an empty Qdrant there will do"
            )
        return remaining

    async def _begin(self, points: VectorPoints) -> bool:
        """Note which indexes are kept there and, the first time, find out whether it is the place of before. Whether
        vectors are missing, because it is another."""
        is_missing = False
        moves = await self._rows(SELECT_MOVES)
        if any(place is None for _, _, _, place in moves):
            async with self._write() as transaction:
                for index_key, _, _, place in moves:
                    if place is None:
                        await transaction.vector_moves.note_moved(index_key, points.name, ())
        if not self._is_begun and any(place not in (None, points.name) for _, _, _, place in moves):
            has_some = await self._moved_count() > 0
            is_missing = await self._check(points)
            async with self._write() as transaction:
                await transaction.vector_moves.rename_place(points.name, has_all=has_some and not is_missing)
        self._is_begun = True
        return is_missing

    async def _move(self, points: VectorPoints, index_key: int) -> bool:
        """Move the next vectors of an index; whether there were any."""
        hashes = await self._hashes()
        async with self._reading() as connection:
            batch: list[VectorPoint] = []
            for key, dimension, moved_key, _ in await _fetched(connection, SELECT_MOVES):
                if key == index_key:
                    asked = {"index_key": index_key, "moved_key": moved_key, "limit": _MOVED_AT_ONCE}
                    rows = await _fetched(connection, SELECT_TO_MOVE, **asked)
                    batch = _points_of(hashes, index_key, dimension, rows)
        if not batch:
            return False
        await points.put(batch)
        crash_point("vectors.put")
        async with self._write() as transaction:
            await transaction.vector_moves.note_moved(index_key, points.name, batch)
        return True

    async def _remove(self, points: VectorPoints) -> None:
        """Remove the leftovers."""
        asked = {"place": points.name, "limit": _REMOVED_AT_ONCE}
        while ids := [bytes(row[0]) for row in await self._rows(SELECT_LEFTOVERS, **asked)]:
            await points.remove((await self._hashes()).database, ids)
            crash_point("vectors.removed")
            async with self._write() as transaction:
                await transaction.vector_moves.note_removed(points.name, ids)

    async def _check(self, points: VectorPoints) -> bool:
        """Compare what is there with what should be, if the counts differ: remove what has no row, and owe again what
        is missing. Whether anything was."""
        hashes = await self._hashes()
        arrivals, is_missing = points.arrivals, False
        expected = await self._moved_count()
        if await points.count(hashes.database) != expected:
            before = {bytes(point): key for key, point in await self._rows(SELECT_MOVED)}
            there = await points.ids(hashes.database)
            # Rows that were moved, or are on the way, since the first look have their points.
            known = {bytes(point) for _, point in await self._rows(SELECT_MOVED)}
            known |= {hashes.point(key, bytes(vector)) for key, vector in await self._rows(SELECT_NOT_MOVED)}
            orphans = sorted(there - known)
            for start in range(0, len(orphans), _REMOVED_AT_ONCE):
                await points.remove(hashes.database, orphans[start : start + _REMOVED_AT_ONCE])
            missing = sorted(key for point, key in before.items() if point not in there)
            for start in range(0, len(missing), _OWED_AT_ONCE):
                async with self._write() as transaction:
                    await transaction.vector_moves.owe_again(missing[start : start + _OWED_AT_ONCE])
            is_missing = bool(missing)
        self._checked_arrival = max(arrivals, 1)
        return is_missing

    async def _take_back(self) -> bool:
        """Owe again all vectors that were moved, so that they are kept in the database. Whether there were any."""
        if not await self._has_moves():
            return False
        count = 0
        while True:
            async with self._write() as transaction:
                taken = await transaction.vector_moves.owe_last_moved(limit=_OWED_AT_ONCE)
            if not taken:
                return count > 0
            count += taken

    async def _has_moves(self) -> bool:
        return any(place is not None for _, _, _, place in await self._rows(SELECT_MOVES))

    async def _moved_count(self) -> int:
        [[count]] = await self._rows(SELECT_MOVED_COUNT)
        return int(count)

    async def _hashes(self) -> PointHashes:
        [[secret]] = await self._rows(SELECT_IDENTITY)
        return PointHashes(bytes(secret))

    async def _rows(self, statement: str, **parameters: Any) -> list[Any]:
        async with self._reading() as connection:
            return await _fetched(connection, statement, **parameters)


async def _fetched(connection: aiosqlite.Connection, statement: str, **parameters: Any) -> list[Any]:
    return list(await connection.execute_fetchall(statement, parameters))


def _points_of(
    hashes: PointHashes, index_key: int, dimension: int, rows: Sequence[tuple[int, bytes, int | None, str, str, str]]
) -> list[VectorPoint]:
    from kalito_mcp.storage.sqlite.vector_rows import unpacked  # noqa: PLC0415 - numpy loads when needed

    vectors = unpacked([row[1] for row in rows], dimension)
    return [
        VectorPoint(
            id=hashes.point(row_key, packed),
            row_key=row_key,
            type=RecordType(kind),
            tenant=VectorTenant(
                database=hashes.database,
                index_key=index_key,
                dimension=dimension,
                owner=hashes.name("owner", owner),
                agent=hashes.name("agent", agent),
                session_key=session_key,
            ),
            vector=vector,
        )
        for (row_key, packed, session_key, kind, owner, agent), vector in zip(rows, vectors, strict=True)
    ]
