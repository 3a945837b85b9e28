"""How far files were imported, and the stored messages that an import compares."""

from collections.abc import Sequence
from typing import Final

from kalito_mcp.domain.imports import FileRead, SourceRead, StoredTurn
from kalito_mcp.domain.records import Role
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import Session
from kalito_mcp.storage.intact_rows import intact_rows
from kalito_mcp.storage.numbered import key_of
from kalito_mcp.storage.sqlite.queries import Queries

SELECT_IMPORTS: Final = """
SELECT source, place, size, modified_ns, read_to, fingerprint FROM imports
WHERE owner = :owner AND source = :source ORDER BY place
"""
SELECT_IMPORT_SOURCES: Final = """
SELECT source, count(*), sum(read_to), max(imported_at) FROM imports WHERE owner = :owner
GROUP BY source ORDER BY max(imported_at) DESC, source
"""
SELECT_IMPORT: Final = """
SELECT 1 FROM imports WHERE owner = :owner AND source = :source AND place = :place
"""
UPSERT_IMPORT: Final = """
INSERT INTO imports (owner, source, place, size, modified_ns, read_to, fingerprint, imported_at)
VALUES (:owner, :source, :place, :size, :modified_ns, :read_to, :fingerprint, :now_ms)
ON CONFLICT (owner, source, place) DO UPDATE SET size = excluded.size, modified_ns = excluded.modified_ns,
    read_to = excluded.read_to, fingerprint = excluded.fingerprint, imported_at = excluded.imported_at
"""
SELECT_STORED_TURNS: Final = """
SELECT seq, client_key, role, text, key, created_at, coalesce(recorded_at, created_at), client FROM records
WHERE session_key = :session_key AND type = 'message' AND seq > :after_seq ORDER BY seq LIMIT :limit
"""


class ImportQueries(Queries):
    """`ports.imports.ImportReader`."""

    async def files(self, scope: Scope, source: str) -> Sequence[FileRead]:
        return [FileRead(*row) for row in await self._all(SELECT_IMPORTS, owner=scope.owner, source=source)]

    async def sources(self, scope: Scope) -> Sequence[SourceRead]:
        return [SourceRead(*row) for row in await self._all(SELECT_IMPORT_SOURCES, owner=scope.owner)]

    async def is_kept(self, scope: Scope, source: str, place: str) -> bool:
        return bool(await self._all(SELECT_IMPORT, owner=scope.owner, source=source, place=place))

    async def turns(self, session: Session, *, after_seq: int, limit: int) -> Sequence[StoredTurn]:
        parameters = {"session_key": key_of(session), "after_seq": after_seq, "limit": limit}
        found = await self._all(SELECT_STORED_TURNS, **parameters)
        with intact_rows():
            return [StoredTurn(seq, client_key, Role(role), *others) for seq, client_key, role, *others in found]


class ImportStatements(ImportQueries):
    """`ports.imports.ImportWriter`."""

    async def keep(self, scope: Scope, file: FileRead, *, now_ms: int) -> None:
        await self._all(
            UPSERT_IMPORT,
            owner=scope.owner,
            source=file.source,
            place=file.place,
            size=file.size,
            modified_ns=file.modified_ns,
            read_to=file.read_to,
            fingerprint=file.fingerprint,
            now_ms=now_ms,
        )
