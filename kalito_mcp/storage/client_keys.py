"""Finds records by their client_key: those of a session, or of an agent without one."""

from collections.abc import Collection
from typing import Any

from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import DEFAULT_AGENT, Scope
from kalito_mcp.storage.queries import Queries, places_of


class ClientKeys(Queries):
    """The client keys of a scope's session, or of its agent."""

    async def records(self, scope: Scope, record_type: RecordType, client_keys: Collection[str]) -> list[int]:
        """The keys of the records with these client keys."""
        sql = self._sql.client_keys
        statement = sql.SELECT_KEYS_OF_AGENT if scope.session is None else sql.SELECT_KEYS_OF_SESSION
        return await self._found(statement, scope, record_type, client_keys=list(client_keys))

    async def beginning_with(self, scope: Scope, record_type: RecordType, prefix: str) -> list[str]:
        """The client keys that begin with a prefix, which ends with a colon."""
        sql = self._sql.client_keys
        statement = sql.SELECT_CLIENT_KEYS_OF_AGENT if scope.session is None else sql.SELECT_CLIENT_KEYS_OF_SESSION
        return await self._found(statement, scope, record_type, first=prefix, after=f"{prefix[:-1]};")

    async def _found(self, statement: str, scope: Scope, record_type: RecordType, **parameters: Any) -> list[Any]:
        place = {**places_of(scope), "agent": scope.agent or DEFAULT_AGENT, "type": str(record_type)}
        return [row[0] for row in await self._all(statement, **place, **parameters)]
