"""All of a memory, as entries of an archive."""

from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from kalito_mcp.domain.archive import ArchiveEntry, Selection, completed
from kalito_mcp.domain.arguments import checks_arguments
from kalito_mcp.errors import Conflict
from kalito_mcp.memory.part import Part
from kalito_mcp.ports.archive import ArchiveReader
from kalito_mcp.ports.store import WriteTransaction
from kalito_mcp.retrieval.known_names import find_session
from kalito_mcp.runtime.crash_points import crash_point

_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True)
class ArchiveView:
    """One consistent view of what a selection has."""

    selection: Selection
    _reader: ArchiveReader
    _owner: str

    def entries(self) -> AsyncGenerator[Sequence[ArchiveEntry]]:
        """Its entries, some hundred at a time: see `ports.archive.ArchiveReader.entries`."""
        return self._reader.entries(self._owner, self.selection)


@checks_arguments
class Archive(Part):
    """Reads a whole memory, and restores one."""

    @asynccontextmanager
    async def reading(self, selection: Selection) -> AsyncIterator[ArchiveView]:
        """A view of what the selection has, for the block. Others write meanwhile; the view does not change.

        Raises:
            SessionNotFound: no such session.
            InvalidInput: the project's name is not acceptable, mistyped, or shared by several projects.
        """
        self.place.limits.check_none("an archive")
        if selection.project is not None:
            selection = replace(selection, project=await self.place.named(selection.project))
        async with self.place.store.view() as view:
            if selection.session is not None:
                found = await find_session(view, self.place.scope(selection.session))
                selection = replace(selection, session=found.id)
            yield ArchiveView(selection, view.archive, self.place.owner)

    async def restore(self, entries: Iterable[ArchiveEntry]) -> Mapping[str, int]:
        """Store the entries of an archive, all of them or none, in an empty database. Returns how many there were of
        each kind. They become this owner's. The text index is rebuilt before this returns; vectors follow in the
        background.

        What iterating over `entries` raises is raised, and nothing was written.

        Raises:
            Conflict: the database is not empty.
            InvalidInput: an entry cannot be stored; says which line.
        """
        self.place.limits.check_none("an archive")

        async def add(transaction: WriteTransaction) -> Mapping[str, int]:
            counts, remaining = Counter[str](), iter(entries)
            if not await transaction.archive.is_empty():
                raise Conflict(
                    "this database is not empty, and an archive is only restored into an empty one; nothing was "
                    "restored. Name a new file with --database"
                )
            while page := list(map(completed, islice(remaining, _AT_ONCE))):
                await transaction.archive.add(self.place.owner, page)
                counts.update(entry.kind for entry in page)
                crash_point("restore.entries")
            await transaction.archive.finish([self.place.owner])
            return counts

        counts = await self.place.store.write(add)
        crash_point("restore.stored")
        await self.place.store.maintenance.rebuild_derived()
        return counts
