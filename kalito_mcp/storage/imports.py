"""How far files were imported, and the stored messages that an import compares."""

from collections.abc import Sequence

from kalito_mcp.domain.imports import FileRead, SourceRead, StoredTurn
from kalito_mcp.domain.records import Role
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import Session
from kalito_mcp.storage.intact_rows import intact_rows
from kalito_mcp.storage.numbered import key_of
from kalito_mcp.storage.queries import Queries


class ImportQueries(Queries):
    """`ports.imports.ImportReader`."""

    async def files(self, scope: Scope, source: str) -> Sequence[FileRead]:
        return [
            FileRead(*row)
            for row in await self._all(self._sql.imports.SELECT_IMPORTS, owner=scope.owner, source=source)
        ]

    async def sources(self, scope: Scope) -> Sequence[SourceRead]:
        return [SourceRead(*row) for row in await self._all(self._sql.imports.SELECT_IMPORT_SOURCES, owner=scope.owner)]

    async def is_kept(self, scope: Scope, source: str, place: str) -> bool:
        return bool(await self._all(self._sql.imports.SELECT_IMPORT, owner=scope.owner, source=source, place=place))

    async def turns(self, session: Session, *, after_seq: int, limit: int) -> Sequence[StoredTurn]:
        parameters = {"owner": session.owner, "session_key": key_of(session), "after_seq": after_seq, "limit": limit}
        found = await self._all(self._sql.imports.SELECT_STORED_TURNS, **parameters)
        with intact_rows():
            return [StoredTurn(seq, client_key, Role(role), *others) for seq, client_key, role, *others in found]

    async def holding(self, scope: Scope, client_key: str) -> Sequence[str]:
        found = await self._all(self._sql.imports.SELECT_HOLDING, owner=scope.owner, client_key=client_key)
        return [row[0] for row in found]

    async def at_moment(self, scope: Scope, role: Role, *, since: int, until: int) -> Sequence[str]:
        parameters = {"owner": scope.owner, "role": role.value, "since": since, "until": until}
        return [row[0] for row in await self._all(self._sql.imports.SELECT_AT_MOMENT, **parameters)]


class ImportStatements(ImportQueries):
    """`ports.imports.ImportWriter`."""

    async def keep(self, scope: Scope, file: FileRead, *, now_ms: int) -> None:
        await self._all(
            self._sql.imports.UPSERT_IMPORT,
            owner=scope.owner,
            source=file.source,
            place=file.place,
            size=file.size,
            modified_ns=file.modified_ns,
            read_to=file.read_to,
            fingerprint=file.fingerprint,
            now_ms=now_ms,
        )
