"""The tokens with which programs connect."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from kalito_mcp.domain.access import Token
from kalito_mcp.storage.access_rows import columns_of_token, token_of
from kalito_mcp.storage.sqlite.queries import Queries

_COLUMNS: Final = """
    id, prefix, name, owner, permission, agent, project, created_at, kind, expires_at, last_used_at, revoked_at, client,
    grant_id, resource
"""
SELECT_STATE_KEY: Final = "SELECT secret FROM state_secret"
SELECT_TOKEN: Final = f"SELECT {_COLUMNS} FROM access_tokens WHERE text_hash = :text_hash"
SELECT_TOKENS: Final = f"""
SELECT {_COLUMNS} FROM access_tokens WHERE :owner IS NULL OR owner = :owner
ORDER BY kind = 'static' DESC, key DESC LIMIT :limit
"""
# A token of a consent counts for the consent: its principal is known by that.
SELECT_ENDS: Final = """
SELECT principal, max(ends) FROM (
    SELECT id AS principal, CASE WHEN revoked_at IS NULL THEN expires_at ELSE 0 END AS ends FROM access_tokens
    WHERE grant_id IS NULL AND id IN (SELECT value FROM json_each(:principals))
    UNION ALL
    SELECT grant_id, CASE WHEN revoked_at IS NULL THEN expires_at ELSE 0 END FROM access_tokens
    WHERE grant_id IN (SELECT value FROM json_each(:principals))
) GROUP BY principal HAVING count(ends) = count(*)
"""
INSERT_ACCESS: Final = """
INSERT INTO access_tokens (
    id, text_hash, prefix, name, kind, owner, permission, agent, project, client, grant_id, resource, created_at,
    expires_at
) VALUES (
    :id, :text_hash, :prefix, :name, :kind, :owner, :permission, :agent, :project, :client, :grant, :resource,
    :created_at, :expires_at
)
"""
UPDATE_USED: Final = "UPDATE access_tokens SET last_used_at = :now_ms WHERE id = :id RETURNING grant_id"
UPDATE_GRANT_USED: Final = "UPDATE oauth_grants SET last_used_at = :now_ms WHERE id = :id"
SELECT_GRANT_OF: Final = "SELECT grant_id FROM access_tokens WHERE id = :named AND grant_id IS NOT NULL"
UPDATE_REVOKED: Final = """
UPDATE access_tokens SET revoked_at = :now_ms
WHERE revoked_at IS NULL AND (id = :named OR grant_id = :named) AND (:owner IS NULL OR owner = :owner)
RETURNING id, expires_at
"""
UPDATE_RETIRED: Final = """
UPDATE access_tokens SET revoked_at = :now_ms WHERE id = :id AND revoked_at IS NULL RETURNING id
"""
UPDATE_GRANT_REVOKED: Final = """
UPDATE oauth_grants SET revoked_at = :now_ms
WHERE revoked_at IS NULL AND id = :named AND (:owner IS NULL OR owner = :owner) RETURNING id
"""


class AccessQueries(Queries):
    """`ports.access.AccessReader`."""

    async def token(self, text_hash: bytes) -> Token | None:
        found = await self._all(SELECT_TOKEN, text_hash=text_hash)
        return token_of(found[0]) if found else None

    async def tokens(self, owner: str | None, *, limit: int) -> Sequence[Token]:
        return [token_of(row) for row in await self._all(SELECT_TOKENS, owner=owner, limit=limit)]

    async def ends(self, principals: Collection[str]) -> Mapping[str, int]:
        return dict(await self._all(SELECT_ENDS, principals=json.dumps(list(principals))))

    async def state_secret(self) -> bytes:
        [[secret]] = await self._all(SELECT_STATE_KEY)
        return bytes(secret)


class AccessStatements(AccessQueries):
    """`ports.access.AccessWriter`."""

    async def add_token(self, token: Token, text_hash: bytes) -> None:
        await self._all(INSERT_ACCESS, **columns_of_token(token), owner=token.owner, text_hash=text_hash)

    async def used_token(self, token_id: str, *, now_ms: int) -> None:
        for (grant,) in await self._all(UPDATE_USED, id=token_id, now_ms=now_ms):
            if grant is not None:
                await self._all(UPDATE_GRANT_USED, id=grant, now_ms=now_ms)

    async def retire_token(self, token_id: str, *, now_ms: int) -> bool:
        return bool(await self._all(UPDATE_RETIRED, id=token_id, now_ms=now_ms))

    async def revoke_tokens(self, named: str, *, owner: str | None, now_ms: int) -> Sequence[str]:
        for (grant,) in await self._all(SELECT_GRANT_OF, named=named):
            named = grant
        grants = await self._all(UPDATE_GRANT_REVOKED, named=named, owner=owner, now_ms=now_ms)
        tokens = await self._all(UPDATE_REVOKED, named=named, owner=owner, now_ms=now_ms)
        valid = [token_id for token_id, expires_at in tokens if expires_at is None or now_ms < expires_at]
        return [grant for (grant,) in grants] + valid
