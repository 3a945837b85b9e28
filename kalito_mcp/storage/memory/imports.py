"""How far files were imported, in memory. Implements `ports.imports`."""

from collections.abc import Sequence

from kalito_mcp.domain.imports import FileRead, StoredTurn
from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import Session
from kalito_mcp.storage.memory.state import Tables, made_of


class Imports(Tables):
    """`ports.imports.ImportWriter`."""

    async def files(self, scope: Scope, source: str) -> Sequence[FileRead]:
        found = {place: file for place, file in self._state.imports.items() if place[:2] == (scope.owner, source)}
        return [found[place] for place in sorted(found)]

    async def is_kept(self, scope: Scope, source: str, place: str) -> bool:
        return (scope.owner, source, place) in self._state.imports

    async def turns(self, session: Session, *, after_seq: int, limit: int) -> Sequence[StoredTurn]:
        messages = self._state.of_session(session, RecordType.MESSAGE)[after_seq:]
        left = [one for one in messages if one.purged_at is None]
        return [made_of(StoredTurn, one, number=one.key) for one in left[:limit]]

    async def keep(self, scope: Scope, file: FileRead, *, now_ms: int) -> None:
        del now_ms
        self._state.imports[scope.owner, file.source, file.place] = file
