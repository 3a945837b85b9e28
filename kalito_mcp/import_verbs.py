"""The verbs of `Memory` for imports: what is stored of a session, documents with dates of their own, and how far a file
was read."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

from kalito_mcp.domain.imports import FileRead, StoredTurn
from kalito_mcp.domain.memory_records import PROGRAM, MemoryRecord
from kalito_mcp.domain.records import Origin, RecordType
from kalito_mcp.domain.scope import PERSONAL
from kalito_mcp.domain.sessions import Session
from kalito_mcp.errors import AlreadyTakenIn
from kalito_mcp.ports.store import ReadView
from kalito_mcp.record_verbs import RecordVerbs
from kalito_mcp.upkeep.store_layers import CALLS, scope_of_keys

_TURNS_AT_ONCE: Final = 1_000


class ImportVerbs(RecordVerbs):
    """The part of `Memory` that imports work with."""

    async def session(self, session_id: str) -> Session | None:
        """The session of this id, of any agent and project; None if there is none."""
        scope = await self._of_session(session_id)

        async def read(view: ReadView) -> Session | None:
            return await view.sessions.get(scope)

        return await self._store.read(read)

    async def stored_turns(self, session: Session) -> AsyncIterator[Sequence[StoredTurn]]:
        """The messages of a session, forgotten ones with their text, in order and up to 1,000 at once."""
        after_seq = 0

        async def read(view: ReadView) -> Sequence[StoredTurn]:
            return await view.imports.turns(session, after_seq=after_seq, limit=_TURNS_AT_ONCE)

        while turns := await self._store.read(read):
            yield turns
            after_seq = turns[-1].seq

    async def import_document(
        self, fields: Mapping[str, Any], *, origin: Origin, created_at: int
    ) -> Sequence[MemoryRecord]:
        """Store a document that was written elsewhere at `created_at`, in milliseconds since 1970.

        One with a known `source` replaces the former, as in `remember`; its parts keep their dates.

        Raises:
            InvalidInput: a field is unknown, missing or wrong, or the date is; nothing was written.
            Conflict: the document is forgotten, the same text was erased for good, or nothing is remembered in this
                project; nothing was written.
        """
        self.check_remembered()
        kept = await self._editor.remember(
            self._scope(None), RecordType.DOCUMENT, fields, editor=PROGRAM, origin=origin, created_at=created_at
        )
        return await self._seen(kept)

    async def project_of_document(self, source: str) -> str | None:
        """The project of the document with this source, or `PERSONAL`; None if there is no such document."""

        async def read(view: ReadView) -> Sequence[MemoryRecord]:
            return await view.records.of_source(self._scope(None).anywhere(), source)

        parts = await self._store.read(read)
        return (parts[0].project or PERSONAL) if parts else None

    async def check_not_taken_in(self, key: str) -> None:
        """Raise AlreadyTakenIn if a call with this key has written (see `call_keys.once`)."""
        scope = scope_of_keys()  # before the trip: its thread does not know who calls

        async def read(view: ReadView) -> bool:
            return await view.imports.is_kept(scope, CALLS, scope.limits.own_session(key))

        if await self._store.read(read):
            raise AlreadyTakenIn

    async def files_read(self, source: str) -> Mapping[str, FileRead]:
        """The files of a source that were imported, by place."""
        self._limits.check_none("which files were imported")

        async def read(view: ReadView) -> Sequence[FileRead]:
            return await view.imports.files(self._scope(None), source)

        return {file.place: file for file in await self._store.read(read)}

    async def keep_file_read(self, file: FileRead) -> None:
        """Store how far a file was read. The next import goes on from there."""
        self._limits.check_none("which files were imported")
        scope, now_ms = self._scope(None), self.clock.now_ms()
        await self._store.write(lambda transaction: transaction.imports.keep(scope, file, now_ms=now_ms))
