"""Finds records by their client_key: those of a session, or of an agent without one."""

from collections.abc import Collection
from typing import Any, Final

from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import DEFAULT_AGENT, Scope
from kalito_mcp.storage.postgres.queries import Queries

_OF_SESSION: Final = """
    owner_key = :owner AND session_key = (SELECT key FROM sessions WHERE owner_key = :owner AND id = :session)
    AND type = :type
"""
_OF_AGENT: Final = """
    owner_key = :owner AND agent_key = (SELECT key FROM agents WHERE owner_key = :owner AND id = :agent)
    AND session_key IS NULL AND type = :type
"""
SELECT_KEYS_OF_SESSION: Final = f"SELECT key FROM records WHERE {_OF_SESSION} AND client_key = ANY(:client_keys)"
SELECT_KEYS_OF_AGENT: Final = f"SELECT key FROM records WHERE {_OF_AGENT} AND client_key = ANY(:client_keys)"
# ";" follows ":".
SELECT_CLIENT_KEYS_OF_SESSION: Final = f"""
SELECT client_key FROM records WHERE {_OF_SESSION} AND client_key >= :first AND client_key < :after
"""
SELECT_CLIENT_KEYS_OF_AGENT: Final = f"""
SELECT client_key FROM records WHERE {_OF_AGENT} AND client_key >= :first AND client_key < :after
"""


class ClientKeys(Queries):
    """The client keys of a scope's session, or of its agent."""

    async def records(self, scope: Scope, record_type: RecordType, client_keys: Collection[str]) -> list[int]:
        """The keys of the records with these client keys."""
        statement = SELECT_KEYS_OF_AGENT if scope.session is None else SELECT_KEYS_OF_SESSION
        place = _place(scope, record_type)
        return [row[0] for row in await self._all(statement, client_keys=list(client_keys), **place)]

    async def beginning_with(self, scope: Scope, record_type: RecordType, prefix: str) -> list[str]:
        """The client keys that begin with a prefix, which ends with a colon."""
        statement = SELECT_CLIENT_KEYS_OF_AGENT if scope.session is None else SELECT_CLIENT_KEYS_OF_SESSION
        found = await self._all(statement, first=prefix, after=f"{prefix[:-1]};", **_place(scope, record_type))
        return [row[0] for row in found]


def _place(scope: Scope, record_type: RecordType) -> dict[str, Any]:
    agent = scope.agent or DEFAULT_AGENT
    return {"owner": scope.owner, "agent": agent, "session": scope.session, "type": str(record_type)}
