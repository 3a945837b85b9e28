"""Moves vectors to a place outside the database, and removes there what is gone here.

A new vector is first in the database, with its record's debt paid. It is put there, and then its row here keeps only
the point's id. Killed in between, it is put there again, under the same id. A row that goes leaves its point's id among
the leftovers, in the same transaction; the point is removed there, then the id here. Points that both miss, as when a
process was killed while another one erased, show as a difference of the counts: then all ids are compared.

Writers never wait for the place: no transaction sends requests to it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import aiosqlite
import anyio

from kalito_mcp.domain.records import RecordType
from kalito_mcp.errors import VectorsUnreachable
from kalito_mcp.ports.vector_points import VectorPoint, VectorPoints
from kalito_mcp.runtime.crash_points import crash_point
from kalito_mcp.storage.sqlite.moved_vectors import PointHashes
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
from kalito_mcp.storage.tombstones import SELECT_IDENTITY
from kalito_mcp.text.plurals import plural

_MOVED_AT_ONCE: Final = 256
_AT_ONCE: Final = 1_000
T = TypeVar("T")


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
        """As `ports.maintenance.Maintenance.move_vectors`."""
        async with self._lock:
            if self._points is None:
                return is_whole and await self._take_back()
            is_missing = await self._begin(self._points)
            await self._remove(self._points)
            for index_key, *_ in await self._rows(SELECT_MOVES):
                while await self._move(self._points, index_key):
                    pass
            is_new = self._checked_arrival != self._points.arrivals
            return ((is_whole or is_new) and await self._check(self._points)) or is_missing

    async def sweep(self) -> dict[str, str]:
        """Remove what is gone here. Returns the places that may still have some of it, each with the reason."""
        remaining: dict[str, str] = {}
        own = None if self._points is None else self._points.name
        async with self._lock:
            try:
                if self._points is not None:
                    await self._remove(self._points)
                    if any(place is not None for _, _, _, place in await self._rows(SELECT_MOVES)):
                        await self._check(self._points)
            except VectorsUnreachable as error:
                remaining[own or ""] = f"{error}; until it answers, it may still have vectors of what was erased"
        for place, count in await self._rows(SELECT_LEFTOVER_COUNTS, place=own):
            remaining[place] = (
                f"has {plural(count, 'vector')} of what was erased or changed, but models.qdrant names another place "
                "now; set it to this one and purge again. If nothing is there any more, an empty Qdrant there will do"
            )
        return remaining

    async def _begin(self, points: VectorPoints) -> bool:
        """Note which indexes are kept there and, the first time, find out whether it is the earlier place. Whether
        vectors are missing, because it is another."""
        is_missing = False
        moves = await self._rows(SELECT_MOVES)
        if new := [index_key for index_key, _, _, place in moves if place is None]:
            async with self._write() as transaction:
                await transaction.vector_moves.note_place(new, points.name)
        if not self._is_begun and any(place not in (None, points.name) for _, _, _, place in moves):
            [[count]] = await self._rows(SELECT_MOVED_COUNT)
            is_missing = await self._check(points)
            async with self._write() as transaction:
                await transaction.vector_moves.rename_place(points.name, has_all=count > 0 and not is_missing)
        self._is_begun = True
        return is_missing

    async def _move(self, points: VectorPoints, index_key: int) -> bool:
        """Move the next vectors of an index; whether there were any."""
        rows: list[Any] = []
        async with self._reading() as connection:  # one view of both
            for key, dimension, moved_key, _ in await _fetched(connection, SELECT_MOVES):
                if key == index_key:
                    parameters = {"index_key": key, "moved_key": moved_key, "limit": _MOVED_AT_ONCE}
                    rows = await _fetched(connection, SELECT_TO_MOVE, **parameters)
                    length = dimension
        if not rows:
            return False
        batch = _points_of(await self._hashes(), index_key, length, rows)
        await points.put(batch)
        crash_point("vectors.put")
        async with self._write() as transaction:
            await transaction.vector_moves.note_moved(index_key, points.name, batch)
        return True

    async def _remove(self, points: VectorPoints) -> None:
        """Remove the leftovers."""
        parameters = {"place": points.name, "limit": _AT_ONCE}
        while ids := [bytes(row[0]) for row in await self._rows(SELECT_LEFTOVERS, **parameters)]:
            await points.remove((await self._hashes()).database, ids)
            crash_point("vectors.removed")
            async with self._write() as transaction:
                await transaction.vector_moves.note_removed(points.name, ids)

    async def _check(self, points: VectorPoints) -> bool:
        """If the counts differ, compare all points with the rows: remove points without a row, and owe missing ones
        again. Returns whether anything differed."""
        hashes, arrivals = await self._hashes(), points.arrivals
        missing: list[int] = []
        [[expected]] = await self._rows(SELECT_MOVED_COUNT)
        if await points.count(hashes.database) != expected:
            before = {bytes(point): key for key, point in await self._rows(SELECT_MOVED)}
            there = await points.ids(hashes.database)
            # Rows that were moved, or are on the way, since the first look have their points.
            known = {bytes(point) for _, point in await self._rows(SELECT_MOVED)}
            known |= {hashes.point(key, bytes(vector)) for key, vector in await self._rows(SELECT_NOT_MOVED)}
            for orphans in _batches(sorted(there - known)):
                await points.remove(hashes.database, orphans)
            missing = sorted(key for point, key in before.items() if point not in there)
            await self._owe_again(missing)
        self._checked_arrival = max(arrivals, 1)
        return bool(missing)

    async def _take_back(self) -> bool:
        """Owe again all vectors that were moved, the last first, so that they are kept in the database. Whether there
        were any."""
        moved = sorted((key for key, _ in await self._rows(SELECT_MOVED)), reverse=True)
        await self._owe_again(moved)
        async with self._write() as transaction:
            await transaction.vector_moves.forget_places()
        return bool(moved)

    async def _owe_again(self, row_keys: Sequence[int]) -> None:
        for batch in _batches(row_keys):
            async with self._write() as transaction:
                await transaction.vector_moves.owe_again(batch)

    async def _hashes(self) -> PointHashes:
        [[secret]] = await self._rows(SELECT_IDENTITY)
        return PointHashes(bytes(secret))

    async def _rows(self, statement: str, **parameters: Any) -> list[Any]:
        async with self._reading() as connection:
            return await _fetched(connection, statement, **parameters)


async def _fetched(connection: aiosqlite.Connection, statement: str, **parameters: Any) -> list[Any]:
    return list(await connection.execute_fetchall(statement, parameters))


def _batches(all_of_them: Sequence[T]) -> Iterator[Sequence[T]]:
    return (all_of_them[start : start + _AT_ONCE] for start in range(0, len(all_of_them), _AT_ONCE))


def _points_of(hashes: PointHashes, index_key: int, dimension: int, rows: Sequence[Any]) -> list[VectorPoint]:
    """`rows` come from SELECT_TO_MOVE."""
    from kalito_mcp.storage.vector_rows import unpacked  # noqa: PLC0415 - numpy loads when needed

    vectors = unpacked([row[1] for row in rows], dimension)
    return [
        VectorPoint(
            hashes.point(row_key, packed),
            row_key,
            RecordType(kind),
            hashes.tenant(index_key, dimension, owner, agent, session_key),
            vector,
        )
        for (row_key, packed, session_key, kind, owner, agent), vector in zip(rows, vectors, strict=True)
    ]
