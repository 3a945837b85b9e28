"""How far files were imported, in memory. Implements `ports.imports`."""

from collections.abc import Sequence

from kalito_mcp.domain.imports import FileRead, SourceRead, StoredTurn
from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import Session
from kalito_mcp.storage.memory.state import Tables, made_of


class Imports(Tables):
    """`ports.imports.ImportWriter`."""

    async def files(self, scope: Scope, source: str) -> Sequence[FileRead]:
        found = {place: file for place, (file, _) in self._state.imports.items() if place[:2] == (scope.owner, source)}
        return [found[place] for place in sorted(found)]

    async def sources(self, scope: Scope) -> Sequence[SourceRead]:
        read: dict[str, list[tuple[FileRead, int]]] = {}
        for (owner, source, _), kept in self._state.imports.items():
            if owner == scope.owner:
                read.setdefault(source, []).append(kept)
        found = [
            SourceRead(source, len(kept), sum(file.read_to for file, _ in kept), max(at for _, at in kept))
            for source, kept in read.items()
        ]
        return sorted(found, key=lambda one: (-one.read_at, one.source))

    async def is_kept(self, scope: Scope, source: str, place: str) -> bool:
        return (scope.owner, source, place) in self._state.imports

    async def turns(self, session: Session, *, after_seq: int, limit: int) -> Sequence[StoredTurn]:
        messages = self._state.of_session(session, RecordType.MESSAGE)[after_seq:]
        return [made_of(StoredTurn, one, number=one.key) for one in messages[:limit]]

    async def keep(self, scope: Scope, file: FileRead, *, now_ms: int) -> None:
        self._state.imports[scope.owner, file.source, file.place] = (file, now_ms)
