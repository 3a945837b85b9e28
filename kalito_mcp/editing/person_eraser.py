"""Erases a person, or a space: everything of theirs in the database, and the files that this machine keeps of them.

It goes in slices, each a transaction that also notes that the files must be swept. The keys go first, so that nobody
writes meanwhile, and what calls in flight have still written goes at the end. An interrupted call is finished by the
next one; a sweep that was cut short also by the background.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

import anyio.to_thread

from kalito_mcp.domain.access import HOST
from kalito_mcp.domain.audit import Change, NewEntry, action_name
from kalito_mcp.domain.people import ErasedPerson
from kalito_mcp.domain.spaces import checked_user, space_owner
from kalito_mcp.editing.eraser import Eraser
from kalito_mcp.errors import NotFound
from kalito_mcp.graph.files import remove_files
from kalito_mcp.graph.snapshot_folder import SnapshotFolder
from kalito_mcp.ports.clock import Clock
from kalito_mcp.ports.store import Store
from kalito_mcp.runtime.acting import acting
from kalito_mcp.runtime.crash_points import crash_point

_ROWS: Final = 500
"""Of a slice. Others write between two slices."""

_ACTION: Final = "erase_person"


class PersonEraser:
    """The only way to erase a person or a space. `erase_events` deletes what hooks reported for an owner and no server
    has taken; how many reports that were."""

    def __init__(
        self,
        store: Store,
        eraser: Eraser,
        snapshots: SnapshotFolder,
        clock: Clock,
        *,
        erase_events: Callable[[str], int],
    ) -> None:
        self._store = store
        self._eraser = eraser
        self._snapshots = snapshots
        self._clock = clock
        self._erase_events = erase_events

    async def erase(self, name: str) -> ErasedPerson:
        """Erase a person; see `People.erase`."""
        checked_user(name, "name")
        is_known = await self._was_erased(name)
        rows = Counter(await self._erase_slice(name, 0))
        spaces = await self._leave_spaces(name)
        await self._erase_rows(name, rows)
        crash_point("person.rows")
        files = await anyio.to_thread.run_sync(self._remove_files, name)
        if rows or spaces or files:
            await self._log(name, rows)
        elif not is_known:
            raise NotFound(f"nobody is called {name!r}; `kalito-mcp user list` shows the names")
        crash_point("person.files")
        swept = await self._eraser.sweep()
        if await self._erase_rows(name, rows):
            swept = await self._eraser.sweep()
        kept = (
            f"the audit log keeps its entries about {name}: names, ids and numbers, and no words",
            "what they wrote into copies that others shared stays there, with their name",
            "running servers may have some of it in memory until they are restarted",
            *self._eraser.elsewhere,
            "exports and other copies that somebody made are theirs to delete",
        )
        return ErasedPerson(name, dict(rows), spaces, files, kept, swept.remaining, is_owed=swept.is_owed)

    async def erase_space(self, name: str) -> int:
        """Erase what is in a space, and the space; how many records went. Nobody is a member of it any more."""
        rows = Counter[str]()
        await self._erase_rows(space_owner(name), rows)
        await self._store.write(lambda transaction: transaction.spaces.remove_space(name))
        await self._eraser.sweep()
        return rows["records"]

    async def _erase_slice(self, name: str, most: int) -> Mapping[str, int]:
        return await self._store.write(lambda transaction: transaction.people.erase(name, most=most))

    async def _erase_rows(self, name: str, rows: Counter[str]) -> bool:
        """Erase slices until nothing is left, and count them; whether there was any."""
        is_any = False
        while erased := await self._erase_slice(name, _ROWS):
            rows.update(erased)
            is_any = True
            crash_point("person.slice")
        return is_any

    async def _leave_spaces(self, name: str) -> Mapping[str, int]:
        """Take them out of all spaces, and erase the copies of their records there; the number of copies by space."""
        memberships = await self._store.read(lambda view: view.spaces.memberships(name))
        left = {one.space.name: 0 for one in memberships}
        for space in left:
            await self._leave(space, name)
        erased = Counter(copy.space for copy in await self._eraser.purge_copies(name))
        for space in erased:
            await self._drop_empty_projects(space_owner(space))
        return {**left, **erased}

    async def _leave(self, space: str, name: str) -> None:
        await self._store.write(lambda transaction: transaction.spaces.remove_member(space, name))

    async def _drop_empty_projects(self, owner: str) -> None:
        await self._store.write(lambda transaction: transaction.people.drop_empty_projects(owner))

    def _remove_files(self, name: str) -> tuple[str, ...]:
        """Remove the snapshots of a person, and what waits of their hooks; what it was, in words."""
        folder = self._snapshots.of(name)
        snapshots = folder.all()
        remove_files([*(one.path for one in snapshots), *folder.unfinished()])
        reports = self._erase_events(name)
        return (*(f"snapshot {one.name}" for one in snapshots), *([f"reports of hooks: {reports}"] if reports else []))

    async def _was_erased(self, name: str) -> bool:
        """Whether an earlier call erased something of theirs, or was interrupted before it could tell."""
        if (await self._store.maintenance.owed_erasures()).is_owed:
            return True
        logged = await self._store.read(lambda view: view.audit.entries(name, limit=1))
        return bool(logged) and logged[0].said.action == _ACTION

    async def _log(self, name: str, rows: Counter[str]) -> None:
        called = acting()
        who, action = (HOST, _ACTION) if called is None else (called.principal, action_name(called.action))
        erased = (Change("erased", rows.total()),) if rows else ()
        entry = NewEntry(self._clock.now_ms(), who.id, name, action, who.client, changes=erased)
        await self._store.write(lambda transaction: transaction.audit.add(entry))
