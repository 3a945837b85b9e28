"""How far files were imported, in memory. Implements `ports.imports`."""

from collections.abc import Sequence

from kalito_mcp.domain.imports import FileRead, StoredTurn
from kalito_mcp.domain.records import RecordType, Role
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import Session
from kalito_mcp.storage.memory.state import Tables


class ImportsRead(Tables):
    """`ports.imports.ImportReader`."""

    async def files(self, scope: Scope, source: str) -> Sequence[FileRead]:
        found = {place: file for place, file in self._state.imports.items() if place[:2] == (scope.owner, source)}
        return [found[place] for place in sorted(found)]

    async def is_kept(self, scope: Scope, source: str, place: str) -> bool:
        return (scope.owner, source, place) in self._state.imports

    async def turns(self, session: Session, *, after_seq: int, limit: int) -> Sequence[StoredTurn]:
        messages = self._state.of_session(session, RecordType.MESSAGE)[after_seq:]
        left = [stored for stored in messages if stored.purged_at is None]
        return [
            StoredTurn(
                seq=one.seq or 0,
                client_key=one.client_key,
                role=one.role or Role.USER,
                text=one.text,
                number=one.key,
                created_at=one.created_at,
                recorded_at=one.recorded_at,
                client=one.client,
            )
            for one in left[:limit]
        ]


class ImportsWritten(ImportsRead):
    """`ports.imports.ImportWriter`."""

    async def keep(self, scope: Scope, file: FileRead, *, now_ms: int) -> None:
        del now_ms
        self._state.imports[scope.owner, file.source, file.place] = file
