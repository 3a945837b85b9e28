"""Keyed hashes of forgotten and erased values, so that they are not stored again automatically.

The keys come from `text.repetition`. A value belongs to an agent, and may belong to a project. A project's value is
recognised in the project and in personal records; a personal one everywhere.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

from kalito_mcp.domain.archive import hashed_text
from kalito_mcp.domain.scope import DEFAULT_AGENT, PERSONAL, Scope
from kalito_mcp.ports.records import ForgottenValue
from kalito_mcp.runtime.long_texts import read_aside
from kalito_mcp.storage.postgres.queries import Queries, within
from kalito_mcp.storage.postgres.tombstones import SELECT_IDENTITY
from kalito_mcp.storage.queries import limits_of

# The order makes PostgreSQL look into the index, where an owner without any is found at once.
SELECT_ANY_FORGOTTEN: Final = "SELECT key FROM forgotten_values WHERE owner_key = :owner ORDER BY key LIMIT 1"
SELECT_IDENTITY_IF_FORGOTTEN: Final = f"SELECT secret FROM identity WHERE ({SELECT_ANY_FORGOTTEN}) IS NOT NULL"
_AGENT: Final = "(SELECT key FROM agents WHERE owner_key = :owner AND id = :agent)"
_PROJECT: Final = "(SELECT key FROM projects WHERE owner_key = :owner AND id = :project)"
_OF_SCOPE: Final = f"""
    owner_key = :owner AND value_hash = ANY(:hashes) AND agent_key = {_AGENT}
    AND (:project IS NULL OR project_key IS NULL OR project_key = {_PROJECT}) AND {within("forgotten_values")}
"""
SELECT_FORGOTTEN: Final = f"""
SELECT value_hash, max(forgotten_at), max(is_erased) FROM forgotten_values WHERE {_OF_SCOPE} GROUP BY value_hash
"""
UPSERT_FORGOTTEN: Final = f"""
INSERT INTO forgotten_values (owner_key, value_hash, agent_key, project_key, forgotten_at, is_erased)
SELECT :owner, value_hash, {_AGENT}, {_PROJECT}, :now_ms, :is_erased::smallint
FROM unnest(:hashes::text[]) AS value_hash
ON CONFLICT (owner_key, value_hash, agent_key, (coalesce(project_key, 0))) DO UPDATE SET
    forgotten_at = excluded.forgotten_at, is_erased = greatest(forgotten_values.is_erased, excluded.is_erased)
"""
DELETE_FORGOTTEN: Final = f"DELETE FROM forgotten_values WHERE {_OF_SCOPE}"


class ForgottenValues(Queries):
    """The forgotten values of an owner. The scopes name the agent (else it is the default one) and the project."""

    async def is_empty(self, owner: str) -> bool:
        """Whether the owner forgot nothing yet."""
        return not await self._all(SELECT_ANY_FORGOTTEN, owner=owner)

    async def of(self, scope: Scope, keys: Collection[str]) -> Mapping[str, ForgottenValue]:
        """Which of the keys are forgotten in the scope."""
        identity = await self._all(SELECT_IDENTITY_IF_FORGOTTEN, owner=scope.owner) if keys else ()
        if not identity:
            return {}
        by_hash = await _hashed(identity[0][0], keys)
        found = await self._all(SELECT_FORGOTTEN, **_parameters(scope, by_hash))
        return {by_hash[row[0]]: ForgottenValue(row[1], bool(row[2])) for row in found}

    async def add(self, scope: Scope, keys: Collection[str], *, now_ms: int, is_erased: bool) -> None:
        """Remember that the keys are forgotten in the scope."""
        if keys:
            [[secret]] = await self._all(SELECT_IDENTITY)
            parameters = _parameters(scope, await _hashed(secret, keys))
            await self._all(UPSERT_FORGOTTEN, **parameters, now_ms=now_ms, is_erased=int(is_erased))

    async def remove(self, scope: Scope, keys: Collection[str]) -> None:
        """Stop treating these keys as forgotten in the scope."""
        identity = await self._all(SELECT_IDENTITY_IF_FORGOTTEN, owner=scope.owner) if keys else ()
        if identity:
            await self._all(DELETE_FORGOTTEN, **_parameters(scope, await _hashed(identity[0][0], keys)))


async def _hashed(secret: bytes, keys: Collection[str]) -> dict[str, str]:
    return await read_aside(sum(map(len, keys)), lambda: {hashed_text(secret, key): key for key in keys})


def _parameters(scope: Scope, hashes: Collection[str]) -> dict[str, Any]:
    return {
        "hashes": list(hashes),
        "owner": scope.owner,
        "agent": scope.agent or DEFAULT_AGENT,
        "project": None if scope.project == PERSONAL else scope.project,
        **limits_of(scope),
    }
