"""Keyed hashes of forgotten and erased values, so that they are not stored again automatically.

The keys come from `text.repetition`. A value belongs to an agent, and may belong to a project. A project's value is
recognised in the project and in personal records; a personal one everywhere.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any, Final

import aiosqlite

from kalito_mcp.domain.archive import hashed_text
from kalito_mcp.domain.scope import DEFAULT_AGENT, PERSONAL, Scope
from kalito_mcp.ports.records import ForgottenValue
from kalito_mcp.runtime.long_texts import read_aside
from kalito_mcp.storage.queries import limits_of
from kalito_mcp.storage.sqlite.queries import within
from kalito_mcp.storage.sqlite.tombstones import SELECT_IDENTITY

SELECT_ANY_FORGOTTEN: Final = "SELECT 1 FROM forgotten_values LIMIT 1"
_AGENT: Final = "(SELECT key FROM agents WHERE owner = :owner AND id = :agent)"
_PROJECT: Final = "(SELECT key FROM projects WHERE owner = :owner AND id = :project)"
_OF_SCOPE: Final = f"""
    value_hash IN (SELECT value FROM json_each(:hashes)) AND agent_key = {_AGENT}
    AND (:project IS NULL OR project_key IS NULL OR project_key = {_PROJECT}) AND {within("forgotten_values")}
"""
SELECT_FORGOTTEN: Final = f"""
SELECT value_hash, max(forgotten_at), max(is_erased) FROM forgotten_values WHERE {_OF_SCOPE} GROUP BY value_hash
"""
UPSERT_FORGOTTEN: Final = f"""
INSERT INTO forgotten_values (value_hash, agent_key, project_key, forgotten_at, is_erased)
SELECT value, {_AGENT}, {_PROJECT}, :now_ms, :is_erased FROM json_each(:hashes) WHERE true
ON CONFLICT (value_hash, agent_key, coalesce(project_key, 0))
DO UPDATE SET forgotten_at = excluded.forgotten_at, is_erased = max(is_erased, excluded.is_erased)
"""
DELETE_FORGOTTEN: Final = f"DELETE FROM forgotten_values WHERE {_OF_SCOPE}"


class ForgottenValues:
    """The forgotten values of every agent. The scopes name the agent (else it is the default one) and the project."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection

    async def is_empty(self) -> bool:
        """Whether nothing was ever forgotten."""
        return not await self._connection.execute_fetchall(SELECT_ANY_FORGOTTEN)

    async def of(self, scope: Scope, keys: Collection[str]) -> Mapping[str, ForgottenValue]:
        """Which of the keys are forgotten in the scope."""
        if not keys or await self.is_empty():
            return {}
        by_hash = await self._hashed(keys)
        rows = await self._connection.execute_fetchall(SELECT_FORGOTTEN, _parameters(scope, by_hash))
        return {by_hash[row[0]]: ForgottenValue(row[1], bool(row[2])) for row in rows}

    async def add(self, scope: Scope, keys: Collection[str], *, now_ms: int, is_erased: bool) -> None:
        """Remember that the keys are forgotten in the scope."""
        if keys:
            parameters = _parameters(scope, await self._hashed(keys))
            await self._connection.execute_fetchall(
                UPSERT_FORGOTTEN, {**parameters, "now_ms": now_ms, "is_erased": is_erased}
            )

    async def remove(self, scope: Scope, keys: Collection[str]) -> None:
        """Stop treating these keys as forgotten in the scope."""
        if keys and not await self.is_empty():
            await self._connection.execute_fetchall(DELETE_FORGOTTEN, _parameters(scope, await self._hashed(keys)))

    async def _hashed(self, keys: Collection[str]) -> dict[str, str]:
        [[secret]] = await self._connection.execute_fetchall(SELECT_IDENTITY)
        return await read_aside(sum(map(len, keys)), lambda: {hashed_text(bytes(secret), key): key for key in keys})


def _parameters(scope: Scope, hashes: Collection[str]) -> dict[str, Any]:
    return {
        "hashes": json.dumps(list(hashes)),
        "owner": scope.owner,
        "agent": scope.agent or DEFAULT_AGENT,
        "project": None if scope.project == PERSONAL else scope.project,
        **limits_of(scope),
    }
