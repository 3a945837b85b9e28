"""The chores of a database file: merging its text index, sweeping it, and moving its vectors."""

import math
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiosqlite
import anyio

from kalito_mcp.ports.maintenance import OwedErasures
from kalito_mcp.ports.vector_points import VectorPoints
from kalito_mcp.storage.sqlite.queries import Transaction
from kalito_mcp.storage.sqlite.segments import merge_segments
from kalito_mcp.storage.sqlite.sweeping import Sweep
from kalito_mcp.storage.sqlite.text_rebuild import rebuild
from kalito_mcp.storage.sqlite.tombstones import SELECT_ANY_LEFTOVER
from kalito_mcp.storage.sqlite.vector_caches import VectorCaches
from kalito_mcp.storage.sqlite.vector_mover import VectorMover
from kalito_mcp.storage.sqlite.views import WriteTransactionOfSqlite
from kalito_mcp.storage.tombstones import Tombstones

Reading = Callable[[], AbstractAsyncContextManager[aiosqlite.Connection]]


class MaintenanceOfSqlite:
    """`ports.maintenance.Maintenance`.

    `reading` opens a view, `write` a transaction. `locked` holds the locks of one, for files that become shorter. Owed
    work is left to the process that has the file open.
    """

    lease_s = math.inf

    def __init__(
        self,
        path: Path,
        vectors: VectorCaches,
        points: VectorPoints | None,
        *,
        is_read_only: Callable[[], bool],
        reading: Reading,
        write: Callable[[], AbstractAsyncContextManager[WriteTransactionOfSqlite]],
        locked: Callable[[], AbstractAsyncContextManager[object]],
    ) -> None:
        self._vectors = vectors
        self._is_read_only = is_read_only
        self._reading = reading
        self._write = write
        self._mover = VectorMover(path, points, reading=reading, write=write)
        self._sweep = Sweep(path, write=write, locked=locked)
        self.sweeping = anyio.Lock()
        """Held by a sweep, which must end before the store is closed."""

    async def tidy(self) -> None:
        """Merge what writes have split the text index into, if that is much."""
        if not self._is_read_only():
            await merge_segments(self._reading, self._write)

    async def rebuild_derived(self) -> None:
        """Rebuild the text index if it is marked for it, as when a database of an older release is opened."""
        await rebuild(self._write)

    async def owed_erasures(self) -> OwedErasures:
        async with self._reading() as connection:
            transaction = Transaction(connection)
            [[is_left]] = await transaction.all(SELECT_ANY_LEFTOVER)
            return replace(await Tombstones(transaction).unswept(), is_left_elsewhere=bool(is_left))

    async def finish_erasures(self, owed: OwedErasures | None = None) -> Mapping[str, str]:
        """Sweep. Once begun on the files, it is not cancelled."""
        async with self.sweeping:
            elsewhere = await self._mover.sweep()
            async with self._reading() as connection:
                drop: Any = connection._execute  # the driver's own way to run a function on its thread
                await drop(lambda: self._vectors.drop_removed(connection._conn))
            return {**await self._sweep.run(0 if owed is None else owed.last), **elsewhere}

    async def move_vectors(self, *, is_whole: bool = False) -> bool:
        return not self._is_read_only() and await self._mover.run(is_whole=is_whole)

    def held(self, owners: Collection[str]) -> Collection[str]:
        """All of them."""
        return owners

    async def claim_owed(self) -> Mapping[str, int]:
        """Nobody: the first look finds what every owner owes, and a nudge what comes later."""
        return {}

    async def settle_owed(self, looked_at: Mapping[str, int]) -> None:
        """Nothing is kept of it."""

    async def claim_vectors(self, fingerprint: str, *, limit: int) -> None:
        """All vectors are claimed."""
