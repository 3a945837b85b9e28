"""Keyed hashes of forgotten and erased values, so that they are not stored again automatically.

The keys come from `text.repetition`. A value belongs to an agent, and may belong to a project. A project's value is
recognised in the project and in personal records; a personal one everywhere.
"""

from collections.abc import Collection, Mapping
from typing import Any

from kalito_mcp.domain.archive import hashed_text
from kalito_mcp.domain.scope import DEFAULT_AGENT, PERSONAL, Scope
from kalito_mcp.ports.records import ForgottenValue
from kalito_mcp.runtime.long_texts import read_aside
from kalito_mcp.storage.queries import Queries, places_of
from kalito_mcp.storage.tombstones import SELECT_IDENTITY


class ForgottenValues(Queries):
    """The forgotten values of an owner. The scopes name the agent (else it is the default one) and the project."""

    async def of(self, scope: Scope, keys: Collection[str]) -> Mapping[str, ForgottenValue]:
        """Which of the keys are forgotten in the scope."""
        identity = (
            await self._all(self._sql.forgotten_values.SELECT_IDENTITY_IF_FORGOTTEN, owner=scope.owner) if keys else ()
        )
        if not identity:
            return {}
        by_hash = await _hashed(identity[0][0], keys)
        found = await self._all(self._sql.forgotten_values.SELECT_FORGOTTEN, **_parameters(scope, by_hash))
        return {by_hash[row[0]]: ForgottenValue(row[1], bool(row[2])) for row in found}

    async def add(self, scope: Scope, keys: Collection[str], *, now_ms: int, is_erased: bool) -> None:
        """Remember that the keys are forgotten in the scope."""
        if keys:
            [[secret]] = await self._all(SELECT_IDENTITY)
            parameters = _parameters(scope, await _hashed(secret, keys))
            await self._all(
                self._sql.forgotten_values.UPSERT_FORGOTTEN, **parameters, now_ms=now_ms, is_erased=int(is_erased)
            )

    async def remove(self, scope: Scope, keys: Collection[str]) -> None:
        """Stop treating these keys as forgotten in the scope."""
        identity = (
            await self._all(self._sql.forgotten_values.SELECT_IDENTITY_IF_FORGOTTEN, owner=scope.owner) if keys else ()
        )
        if identity:
            await self._all(
                self._sql.forgotten_values.DELETE_FORGOTTEN, **_parameters(scope, await _hashed(identity[0][0], keys))
            )


async def _hashed(secret: bytes, keys: Collection[str]) -> dict[str, str]:
    return await read_aside(sum(map(len, keys)), lambda: {hashed_text(bytes(secret), key): key for key in keys})


def _parameters(scope: Scope, hashes: Collection[str]) -> dict[str, Any]:
    project = None if scope.project == PERSONAL else scope.project
    return {**places_of(scope), "hashes": list(hashes), "agent": scope.agent or DEFAULT_AGENT, "project": project}
