"""The verbs of `Memory` that take all of something: of a conversation, of some types, or the whole memory as rows."""

from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from kalito_mcp.crash_points import crash_point
from kalito_mcp.domain.archive import ArchiveRow, Selection
from kalito_mcp.domain.memory_records import MemoryRecord
from kalito_mcp.domain.records import MessageWithImportance, RecordType
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import Session
from kalito_mcp.errors import Conflict, InvalidInput
from kalito_mcp.ports.archive import ArchiveReader
from kalito_mcp.ports.store import ReadView, WriteTransaction
from kalito_mcp.project_verbs import ProjectVerbs
from kalito_mcp.records.reached import reached
from kalito_mcp.retrieval.known_names import find_session

_AT_ONCE: Final = 500
_PAGE: Final = 200
_MOST_AGENTS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Transcript:
    """A conversation: what was said, oldest first, and its other records, newest first. Forgotten, erased and internal
    ones are left out."""

    session: Session
    messages: Sequence[MessageWithImportance]
    records: Sequence[MemoryRecord]


@dataclass(frozen=True, slots=True)
class ArchiveView:
    """One consistent view of what a selection has. `schema` is the number of the database's schema."""

    schema: int
    selection: Selection
    _reader: ArchiveReader
    _owner: str

    def rows(self) -> AsyncGenerator[Sequence[ArchiveRow]]:
        """Its rows, some hundred at a time: see `ports.archive.ArchiveReader.rows`."""
        return self._reader.rows(self._owner, self.selection)


class ArchiveVerbs(ProjectVerbs):
    """The part of `Memory` that works on all of it."""

    async def transcript(self, session_id: str) -> Transcript:
        """A whole conversation. Raises SessionNotFound."""
        scope = await self._of_session(session_id)

        async def look(view: ReadView) -> tuple[Session, Sequence[MessageWithImportance]]:
            session = await find_session(view, scope)
            return session, await view.conversations.messages(session, first_seq=1, last_seq=session.message_count)

        session, said = await self._store.read(look)
        records = await self.list_records(frozenset(), agent_id=session.agent, session_id=session.id)
        return Transcript(session, [one for one in said if not one.is_hidden], records)

    async def list_records(
        self, types: frozenset[RecordType], *, agent_id: str | None = None, session_id: str | None = None
    ) -> Sequence[MemoryRecord]:
        """All thoughts, documents, tasks, pins and summaries of an agent, or of a session, that are not forgotten,
        newest first; only those of the `types`, if any are given."""
        found: list[MemoryRecord] = []
        scope = await self._of_session(session_id, agent_id)
        while True:
            page = await self._page(scope, types, found[-1].id if found else None)
            if not page:
                return await reached(self._store, scope, found)
            found += page

    async def _page(self, scope: Scope, types: frozenset[RecordType], after: str | None) -> Sequence[MemoryRecord]:
        return await self._store.read(lambda view: view.records.list_records(scope, types, after=after, limit=_PAGE))

    async def page_of_records(
        self,
        types: frozenset[RecordType],
        *,
        agent_id: str | None = None,
        session_id: str | None = None,
        after: str | None = None,
        limit: int = _PAGE,
    ) -> Sequence[MemoryRecord]:
        """As `list_records`: those that follow the record `after`, at most `limit`. Raises RecordNotFound if `after` is
        gone."""
        scope = await self._of_session(session_id, agent_id)
        found = await self._store.read(lambda view: view.records.list_records(scope, types, after=after, limit=limit))
        return await reached(self._store, scope, found)

    async def messages(
        self, session_id: str, *, first_seq: int = 1, last_seq: int
    ) -> tuple[Session, Sequence[MessageWithImportance]]:
        """A session, and its messages from `first_seq` to `last_seq`, both included, by their places in it. Forgotten,
        erased and internal ones have no text. Raises SessionNotFound."""
        scope = await self._of_session(session_id)

        async def look(view: ReadView) -> tuple[Session, Sequence[MessageWithImportance]]:
            session = await find_session(view, scope)
            return session, await view.conversations.messages(session, first_seq=first_seq, last_seq=last_seq)

        return await self._store.read(look)

    async def totals(self) -> Mapping[str, int]:
        """How many sessions, messages, pins, summaries, notes, tasks and documents there are, of all projects."""
        return await self._store.read(lambda view: view.sessions.totals(self._scope(None)))

    async def project_named(self, project: str) -> str:
        """The id of the project that is meant. Raises InvalidInput: see `in_project`."""
        return await self._named(project)

    async def agents(self) -> Sequence[str]:
        """The ids of the newest ten thousand agents, newest first; within a limit to a project by name."""
        return await self._store.read(lambda view: view.sessions.agents(self._scope(None), limit=_MOST_AGENTS))

    @asynccontextmanager
    async def reading_archive(self, selection: Selection) -> AsyncIterator[ArchiveView]:
        """A view of what the selection has, for the block. Others write meanwhile; the view does not change.

        Raises:
            SessionNotFound: no such session.
            InvalidInput: the project's name is not acceptable, mistyped, or that of several projects.
        """
        self._limits.check_none("an archive")
        if selection.project is not None:
            selection = replace(selection, project=await self._named(selection.project))
        async with self._store.view() as view:
            if selection.session is not None:
                found = await find_session(view, self._scope(selection.session))
                selection = replace(selection, session=found.id)
            yield ArchiveView(await view.archive.schema(), selection, view.archive, self._owner)

    async def restore_rows(self, schema: int, rows: Iterable[ArchiveRow]) -> Mapping[str, int]:
        """Store the rows of an archive, all of them or none, in a database in which nobody has anything. How many there
        were of each table. They become this owner's. The text index is rebuilt before this returns; vectors follow
        in the background.

        What iterating over `rows` raises is raised, and nothing was written.

        Raises:
            Conflict: the database is not empty.
            InvalidInput: the schema is newer than this one's, or a row cannot be stored; says which line.
        """
        self._limits.check_none("an archive")

        async def add(transaction: WriteTransaction) -> Mapping[str, int]:
            counts, remaining = Counter[str](), iter(rows)
            if not await transaction.archive.is_empty():
                raise Conflict(
                    "this database is not empty, and an archive is only restored into an empty one; nothing was "
                    "restored. Name a new file with --database"
                )
            ours = await transaction.archive.schema()
            if schema > ours:
                raise InvalidInput(
                    f"the archive was written by a newer kalito (schema {schema}; this one knows {ours}); nothing was "
                    "restored. Upgrade kalito-mcp"
                )
            while page := list(islice(remaining, _AT_ONCE)):
                await transaction.archive.add_rows(self._owner, page)
                counts.update(row.table for row in page)
                crash_point("restore.rows")
            await transaction.archive.finish()
            return counts

        counts = await self._store.write(add)
        crash_point("restore.stored")
        await self._store.rebuild_derived()
        return counts
