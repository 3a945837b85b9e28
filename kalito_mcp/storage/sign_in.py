"""How people let programs in: clients, requests, consents, codes, passphrases and attempts."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from kalito_mcp.domain.sign_in import Attempts, Client, Code, Grant, Passphrase, SignInRequest
from kalito_mcp.domain.zone import DAY_MS
from kalito_mcp.storage.queries import Queries
from kalito_mcp.storage.sign_in_rows import (
    client_of,
    code_of,
    columns_of_client,
    columns_of_code,
    columns_of_grant,
    columns_of_request,
    grant_of,
    request_of,
)

MOST_ATTEMPTS: Final = 20_000
"""The most subjects that are kept; the oldest are forgotten first."""

SELECT_CLIENT: Final = """
SELECT id, name, redirect_uris, created_at, checked_at, is_document FROM oauth_clients WHERE id = :id
"""
UPSERT_CLIENT: Final = """
INSERT INTO oauth_clients (id, name, redirect_uris, is_document, created_at, checked_at)
VALUES (:id, :name, :redirect_uris, :is_document, :created_at, :checked_at)
ON CONFLICT (id) DO UPDATE
SET name = excluded.name, redirect_uris = excluded.redirect_uris, checked_at = excluded.checked_at
"""
SELECT_REQUEST: Final = """
SELECT client, client_name, redirect_uri, is_redirect_explicit, challenge, permission, resource, state, expires_at,
    browser_hash
FROM oauth_requests WHERE handle_hash = :handle_hash
"""
COUNT_REQUESTS: Final = "SELECT count(*) FROM oauth_requests"
INSERT_REQUEST: Final = """
INSERT INTO oauth_requests (
    handle_hash, client, client_name, redirect_uri, is_redirect_explicit, challenge, permission, resource, state,
    expires_at
) VALUES (
    :handle_hash, :client, :client_name, :redirect_uri, :is_redirect_explicit, :challenge, :permission, :resource,
    :state, :expires_at
)
"""
UPDATE_BROWSER: Final = """
UPDATE oauth_requests SET browser_hash = :browser_hash WHERE handle_hash = :handle_hash AND browser_hash IS NULL
"""
DELETE_REQUEST: Final = "DELETE FROM oauth_requests WHERE handle_hash = :handle_hash"
_GRANT: Final = (
    "g.id, g.owner, g.client, g.client_name, g.permission, g.resource, g.created_at, g.revoked_at, g.last_used_at"
)
_GRANTS: Final = f"""
SELECT {_GRANT},
    EXISTS (SELECT 1 FROM access_tokens WHERE grant_id = g.id AND revoked_at IS NULL AND expires_at > :now_ms)
        OR EXISTS (SELECT 1 FROM oauth_codes WHERE grant_id = g.id AND used_at IS NULL AND expires_at > :now_ms)
FROM oauth_grants AS g
"""
SELECT_CODE: Final = f"""
SELECT {_GRANT}, c.redirect_uri, c.is_redirect_explicit, c.challenge, c.expires_at, c.used_at
FROM oauth_codes AS c JOIN oauth_grants AS g ON g.id = c.grant_id WHERE c.code_hash = :code_hash
"""
SELECT_GRANT: Final = f"SELECT {_GRANT} FROM oauth_grants AS g WHERE g.id = :id"
SELECT_GRANTS: Final = f"""
{_GRANTS} WHERE CAST(:whose AS text) IS NULL OR g.owner = :whose ORDER BY g.key DESC LIMIT :limit
"""
SELECT_OWNER_OF_GRANT: Final = "SELECT owner FROM oauth_grants WHERE id = :id"
SELECT_OWNER_OF_CODE: Final = """
SELECT g.owner FROM oauth_codes AS c JOIN oauth_grants AS g ON g.id = c.grant_id WHERE c.code_hash = :code_hash
"""
INSERT_GRANT: Final = """
INSERT INTO oauth_grants (id, owner, client, client_name, permission, resource, created_at)
VALUES (:id, :whose, :client, :client_name, :permission, :resource, :created_at)
"""
INSERT_CODE: Final = """
INSERT INTO oauth_codes (code_hash, grant_id, redirect_uri, is_redirect_explicit, challenge, expires_at)
VALUES (:code_hash, :grant, :redirect_uri, :is_redirect_explicit, :challenge, :expires_at)
"""
UPDATE_CODE_USED: Final = """
UPDATE oauth_codes SET used_at = :now_ms WHERE code_hash = :code_hash AND used_at IS NULL RETURNING grant_id
"""
SELECT_GRANTS_OF_OWNER: Final = f"{_GRANTS} WHERE g.owner = :whose"
UPDATE_GRANTS_REVOKED: Final = """
UPDATE oauth_grants SET revoked_at = :now_ms WHERE owner = :whose AND revoked_at IS NULL RETURNING id
"""
UPDATE_TOKENS_REVOKED: Final = """
UPDATE access_tokens SET revoked_at = :now_ms
WHERE owner = :whose AND kind <> 'static' AND revoked_at IS NULL
"""
SELECT_PASSPHRASES: Final = "SELECT salt, hash, n, r, p FROM passphrases WHERE owner = :whose"
SELECT_HAS_PASSPHRASES: Final = "SELECT EXISTS (SELECT 1 FROM passphrases)"
UPSERT_PASSPHRASES: Final = """
INSERT INTO passphrases (owner, salt, hash, n, r, p, changed_at) VALUES (:whose, :salt, :hash, :n, :r, :p, :now_ms)
ON CONFLICT (owner) DO UPDATE
SET salt = excluded.salt, hash = excluded.hash, n = excluded.n, r = excluded.r, p = excluded.p,
    changed_at = excluded.changed_at
"""
SELECT_ATTEMPTS: Final = "SELECT count, since, last_at FROM access_attempts WHERE subject = :subject"
UPSERT_ATTEMPTS: Final = """
INSERT INTO access_attempts (subject, count, since, last_at) VALUES (:subject, :count, :since, :last_at)
ON CONFLICT (subject) DO UPDATE SET count = excluded.count, since = excluded.since, last_at = excluded.last_at
"""
DELETE_ATTEMPTS: Final = "DELETE FROM access_attempts WHERE subject = :subject"


class SignInQueries(Queries):
    """`ports.sign_in.SignInReader`."""

    async def client(self, client_id: str) -> Client | None:
        return await self._first(client_of, SELECT_CLIENT, id=client_id)

    async def request(self, handle_hash: bytes) -> SignInRequest | None:
        return await self._first(request_of, SELECT_REQUEST, handle_hash=handle_hash)

    async def code(self, code_hash: bytes) -> Code | None:
        return await self._first(code_of, SELECT_CODE, code_hash=code_hash)

    async def grant(self, grant_id: str) -> Grant | None:
        return await self._first(grant_of, SELECT_GRANT, id=grant_id)

    async def grants(self, owner: str | None, *, now_ms: int, limit: int) -> Sequence[Grant]:
        return [grant_of(row) for row in await self._all(SELECT_GRANTS, whose=owner, now_ms=now_ms, limit=limit)]

    async def passphrase(self, owner: str) -> Passphrase | None:
        return await self._first(lambda row: Passphrase(*row), SELECT_PASSPHRASES, whose=owner)

    async def has_passphrases(self) -> bool:
        return bool((await self._all(SELECT_HAS_PASSPHRASES))[0][0])

    async def attempts(self, subject: str) -> Attempts | None:
        return await self._first(lambda row: Attempts(*row), SELECT_ATTEMPTS, subject=subject)


class SignInStatements(SignInQueries):
    """`ports.sign_in.SignInWriter`."""

    async def grant(self, grant_id: str) -> Grant | None:
        for (owner,) in await self._all(SELECT_OWNER_OF_GRANT, id=grant_id):
            await self._transaction.of(owner)
            return await super().grant(grant_id)
        return None

    async def put_client(self, client: Client) -> None:
        await self._all(UPSERT_CLIENT, **columns_of_client(client))

    async def drop_clients(self, *, unused_since: int, most_unused: int) -> None:
        await self._all(self._sql.sign_in.DELETE_UNUSED_CLIENTS, unused_since=unused_since, most=most_unused)

    async def add_request(self, handle_hash: bytes, request: SignInRequest) -> None:
        await self._all(INSERT_REQUEST, **columns_of_request(request), handle_hash=handle_hash)

    async def count_requests(self) -> int:
        return int((await self._all(COUNT_REQUESTS))[0][0])

    async def drop_oldest_request(self) -> None:
        await self._all(self._sql.sign_in.DELETE_OLDEST_REQUEST)

    async def bind_request(self, handle_hash: bytes, browser_hash: bytes) -> None:
        await self._all(UPDATE_BROWSER, handle_hash=handle_hash, browser_hash=browser_hash)

    async def drop_request(self, handle_hash: bytes) -> None:
        await self._all(DELETE_REQUEST, handle_hash=handle_hash)

    async def drop_expired(self, now_ms: int) -> None:
        for statement in self._sql.sign_in.DELETE_EXPIRED:
            await self._all(statement, now_ms=now_ms, day_ago=now_ms - DAY_MS, most=MOST_ATTEMPTS)

    async def add_grant(self, grant: Grant, code: Code, code_hash: bytes) -> None:
        await self._transaction.of(grant.owner)
        await self._all(INSERT_GRANT, **columns_of_grant(grant), whose=grant.owner)
        await self._all(INSERT_CODE, **columns_of_code(code), grant=grant.id, code_hash=code_hash)

    async def take_code(self, code_hash: bytes, *, now_ms: int) -> bool:
        for (owner,) in await self._all(SELECT_OWNER_OF_CODE, code_hash=code_hash):
            await self._transaction.of(owner)
            return bool(await self._all(UPDATE_CODE_USED, code_hash=code_hash, now_ms=now_ms))
        return False

    async def revoke_grants(self, owner: str, *, now_ms: int) -> Sequence[str]:
        await self._transaction.of(owner)
        before = map(grant_of, await self._all(SELECT_GRANTS_OF_OWNER, whose=owner, now_ms=now_ms))
        usable = {grant.id for grant in before if grant.is_usable}
        revoked = await self._all(UPDATE_GRANTS_REVOKED, whose=owner, now_ms=now_ms)
        await self._all(UPDATE_TOKENS_REVOKED, whose=owner, now_ms=now_ms)
        return [grant_id for (grant_id,) in revoked if grant_id in usable]

    async def put_passphrase(self, owner: str, passphrase: Passphrase, *, now_ms: int) -> None:
        await self._transaction.of(owner)
        await self._all(UPSERT_PASSPHRASES, whose=owner, now_ms=now_ms, **asdict(passphrase))

    async def put_attempts(self, subject: str, attempts: Attempts) -> None:
        await self._all(UPSERT_ATTEMPTS, subject=subject, **asdict(attempts))

    async def drop_attempts(self, subject: str) -> None:
        await self._all(DELETE_ATTEMPTS, subject=subject)
