"""What imports work with: documents with dates of their own, and how far a file was read."""

from collections.abc import Mapping, Sequence
from typing import Any

from kalito_mcp.domain.arguments import checks_arguments
from kalito_mcp.domain.imports import FileRead, SourceRead
from kalito_mcp.domain.memory_records import PROGRAM, MemoryRecord
from kalito_mcp.domain.records import Origin, RecordType, Role
from kalito_mcp.domain.scope import PERSONAL
from kalito_mcp.errors import AlreadyTakenIn
from kalito_mcp.memory.part import Part
from kalito_mcp.ports.store import ReadView
from kalito_mcp.upkeep.store_layers import CALLS, scope_of_keys


@checks_arguments
class Imports(Part):
    """Stores what was written elsewhere."""

    async def import_document(
        self, fields: Mapping[str, Any], *, origin: Origin, created_at: int
    ) -> Sequence[MemoryRecord]:
        """Store a document that was written elsewhere at `created_at`, in milliseconds since 1970.

        It replaces an earlier document of this `source`, as `remember` does; parts that are known keep their dates.

        Raises:
            InvalidInput: a field is unknown, missing or wrong, or the date is; nothing was written.
            Conflict: the document is forgotten, the same text was erased for good, or nothing is remembered in this
                project; nothing was written.
        """
        self.place.check_remembered()
        kept = await self._services.editor.remember(
            self.place.scope(), RecordType.DOCUMENT, fields, editor=PROGRAM, origin=origin, created_at=created_at
        )
        return await self.place.reached(kept)

    async def project_of_document(self, source: str) -> str | None:
        """The project of the document with this source, or `PERSONAL`; None if there is no such document."""

        async def read(view: ReadView) -> Sequence[MemoryRecord]:
            return await view.records.of_source(self.place.scope().anywhere(), source)

        parts = await self.place.store.read(read)
        return (parts[0].project or PERSONAL) if parts else None

    async def sources(self) -> Sequence[SourceRead]:
        """The programs whose files were imported, the latest first."""
        self.place.limits.check_none("which files were imported")
        found = await self.place.store.read(lambda view: view.imports.sources(self.place.scope()))
        return [one for one in found if one.source != CALLS]

    async def files_read(self, source: str) -> Mapping[str, FileRead]:
        """The files of a source that were imported, by place."""
        self.place.limits.check_none("which files were imported")

        async def read(view: ReadView) -> Sequence[FileRead]:
            return await view.imports.files(self.place.scope(), source)

        return {file.place: file for file in await self.place.store.read(read)}

    async def keep_file_read(self, file: FileRead) -> None:
        """Store how far a file was read. The next import goes on from there."""
        self.place.limits.check_none("which files were imported")
        scope, now_ms = self.place.scope(), self.place.clock.now_ms()
        await self.place.store.write(lambda transaction: transaction.imports.keep(scope, file, now_ms=now_ms))

    async def sessions_holding(self, client_key: str) -> Sequence[str]:
        """The sessions that have a message with this client key, forgotten or not."""
        self.place.limits.check_none("which messages were imported")
        return await self.place.store.read(lambda view: view.imports.holding(self.place.scope(), client_key))

    async def sessions_at(self, role: Role, moment_ms: int, within_ms: int) -> Sequence[str]:
        """The sessions in which this side said something at about this moment, in milliseconds since 1970."""
        self.place.limits.check_none("when something was said")
        since, until = moment_ms - within_ms, moment_ms + within_ms
        return await self.place.store.read(
            lambda view: view.imports.at_moment(self.place.scope(), role, since=since, until=until)
        )

    async def check_not_taken_in(self, key: str) -> None:
        """Raise AlreadyTakenIn if a call with this key has written (see `call_keys.once`)."""
        scope = scope_of_keys()  # before the trip: its thread does not know who calls

        async def read(view: ReadView) -> bool:
            return await view.imports.is_kept(scope, CALLS, scope.limits.own_session(key))

        if await self.place.store.read(read):
            raise AlreadyTakenIn
