"""The tokens with which programs connect.

Whoever changes an owner's tokens, or reads in a write what the write depends on, goes on as that owner first: from then
on nobody else changes them.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from kalito_mcp.domain.access import Permission, Token, TokenKind
from kalito_mcp.domain.scope import Limits
from kalito_mcp.storage.intact_rows import intact_rows
from kalito_mcp.storage.queries import Queries

_COLUMNS: Final = """
    id, prefix, name, owner, permission, agent, project, created_at, kind, expires_at, last_used_at, revoked_at, client,
    grant_id, resource
"""
SELECT_STATE_KEY: Final = "SELECT secret FROM state_secret"
SELECT_TOKEN: Final = f"SELECT {_COLUMNS} FROM access_tokens WHERE text_hash = :text_hash"
SELECT_TOKENS: Final = f"""
SELECT {_COLUMNS} FROM access_tokens WHERE CAST(:whose AS text) IS NULL OR owner = :whose
ORDER BY kind = 'static' DESC, key DESC LIMIT :limit
"""
SELECT_OWNER_BY_TEXT: Final = "SELECT owner FROM access_tokens WHERE text_hash = :text_hash"
SELECT_OWNER_BY_ID: Final = "SELECT owner FROM access_tokens WHERE id = :id"
UPDATE_RETIRED: Final = """
UPDATE access_tokens SET revoked_at = :now_ms WHERE id = :id AND revoked_at IS NULL RETURNING id
"""
SELECT_NAMED: Final = """
SELECT coalesce(grant_id, id), owner FROM access_tokens WHERE id = :named OR grant_id = :named
UNION SELECT id, owner FROM oauth_grants WHERE id = :named
LIMIT 1
"""
UPDATE_GRANT_REVOKED: Final = """
UPDATE oauth_grants SET revoked_at = :now_ms WHERE revoked_at IS NULL AND id = :consent AND owner = :whose RETURNING id
"""
UPDATE_REVOKED: Final = """
UPDATE access_tokens SET revoked_at = :now_ms
WHERE revoked_at IS NULL AND (id = :consent OR grant_id = :consent) AND owner = :whose
RETURNING id, expires_at
"""


class AccessQueries(Queries):
    """`ports.access.AccessReader`."""

    async def token(self, text_hash: bytes) -> Token | None:
        return await self._first(_token_of, SELECT_TOKEN, text_hash=text_hash)

    async def tokens(self, owner: str | None, *, limit: int) -> Sequence[Token]:
        return [_token_of(row) for row in await self._all(SELECT_TOKENS, whose=owner, limit=limit)]

    async def ends(self, principals: Collection[str]) -> Mapping[str, int]:
        return {row[0]: row[1] for row in await self._all(self._sql.access.SELECT_ENDS, principals=list(principals))}

    async def state_secret(self) -> bytes:
        [[secret]] = await self._all(SELECT_STATE_KEY)
        return bytes(secret)


class AccessStatements(AccessQueries):
    """`ports.access.AccessWriter`."""

    async def token(self, text_hash: bytes) -> Token | None:
        for (owner,) in await self._all(SELECT_OWNER_BY_TEXT, text_hash=text_hash):
            await self._transaction.of(owner)
            return await super().token(text_hash)
        return None

    async def add_token(self, token: Token, text_hash: bytes) -> None:
        await self._transaction.of(token.owner)
        await self._all(
            self._sql.access.INSERT_ACCESS, **_columns_of_token(token), whose=token.owner, text_hash=text_hash
        )

    async def used_token(self, token_id: str, *, now_ms: int) -> None:
        for statement in self._sql.access.UPDATES_OF_USE:
            await self._all(statement, id=token_id, now_ms=now_ms)

    async def retire_token(self, token_id: str, *, now_ms: int) -> bool:
        for (owner,) in await self._all(SELECT_OWNER_BY_ID, id=token_id):
            await self._transaction.of(owner)
            return bool(await self._all(UPDATE_RETIRED, id=token_id, now_ms=now_ms))
        return False

    async def revoke_tokens(self, named: str, *, owner: str | None, now_ms: int) -> Sequence[str]:
        for consent, whose in await self._all(SELECT_NAMED, named=named):
            if owner not in (None, whose):
                continue
            await self._transaction.of(whose)
            meant = {"consent": consent, "whose": whose, "now_ms": now_ms}
            grants = await self._all(UPDATE_GRANT_REVOKED, **meant)
            tokens = await self._all(UPDATE_REVOKED, **meant)
            valid = [token_id for token_id, expires_at in tokens if expires_at is None or now_ms < expires_at]
            return [grant for (grant,) in grants] + valid
        return []


def _token_of(row: Any) -> Token:
    """The token of a row with its columns from `id` to `resource`."""
    token_id, prefix, name, owner, permission, agent, project, created_at, kind, *rest = row
    with intact_rows():
        return Token(
            token_id,
            prefix,
            name,
            owner,
            Permission(permission),
            Limits(agent, project),
            created_at,
            TokenKind(kind),
            *rest,
        )


def _columns_of_token(token: Token) -> dict[str, Any]:
    """A new token as it is stored, without its owner and the hash of its text."""
    return {
        "id": token.id,
        "prefix": token.prefix,
        "name": token.name,
        "kind": str(token.kind),
        "permission": str(token.permission),
        "agent": token.limits.agent,
        "project": token.limits.project,
        "client": token.client,
        "grant": token.grant,
        "resource": token.resource,
        "created_at": token.created_at,
        "expires_at": token.expires_at,
    }
