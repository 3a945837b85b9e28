"""How people let programs in: clients, requests, consents, codes, passphrases and attempts.

Many processes write here at once, so what a write reads before it changes it is locked by the reading: a request by its
row, attempts by their subject, a consent by its owner. The order of locks is: requests and attempts, the owner, the
head of the audit log. Chores skip what somebody has locked.
"""

from collections.abc import Sequence
from typing import Final

from kalito_mcp.domain.sign_in import Attempts, Client, Code, Grant, Passphrase, SignInRequest
from kalito_mcp.domain.zone import DAY_MS
from kalito_mcp.storage.postgres.queries import Queries
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

_MOST_ATTEMPTS: Final = 20_000
"""The most subjects that are kept; the oldest are forgotten first."""

_CHORE: Final = 0x6B61_6C69_6F6C_6400  # "kaliold"

SELECT_CLIENT: Final = """
SELECT id, name, redirect_uris, created_at, checked_at, is_document FROM oauth_clients WHERE id = :id
"""
UPSERT_CLIENT: Final = """
INSERT INTO oauth_clients (id, name, redirect_uris, is_document, created_at, checked_at)
VALUES (:id, :name, :redirect_uris, :is_document, :created_at, :checked_at)
ON CONFLICT (id) DO UPDATE
SET name = excluded.name, redirect_uris = excluded.redirect_uris, checked_at = excluded.checked_at
"""
DELETE_UNUSED_CLIENTS: Final = """
WITH unused AS (
    SELECT c.id, c.created_at, row_number() OVER (ORDER BY c.created_at DESC) AS place FROM oauth_clients AS c
    WHERE NOT EXISTS (SELECT 1 FROM oauth_grants AS g WHERE g.client = c.id)
        AND NOT EXISTS (SELECT 1 FROM oauth_requests AS r WHERE r.client = c.id)
)
DELETE FROM oauth_clients WHERE id IN (
    SELECT c.id FROM oauth_clients AS c JOIN unused AS u ON u.id = c.id
    WHERE u.created_at < :unused_since OR u.place > :most FOR UPDATE OF c SKIP LOCKED
)
"""
SELECT_REQUEST: Final = """
SELECT client, client_name, redirect_uri, is_redirect_explicit, challenge, permission, resource, state, expires_at,
    browser_hash
FROM oauth_requests WHERE handle_hash = :handle_hash
"""
SELECT_REQUEST_LOCKED: Final = f"{SELECT_REQUEST} FOR UPDATE"
COUNT_REQUESTS: Final = "SELECT count(*) FROM oauth_requests"
DELETE_OLDEST_REQUEST: Final = """
DELETE FROM oauth_requests WHERE handle_hash = (
    SELECT handle_hash FROM oauth_requests ORDER BY browser_hash IS NOT NULL, expires_at LIMIT 1 FOR UPDATE SKIP LOCKED
)
"""
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
# Two of them would have locks of owners that the other one goes on as, so only one forgets at a time.
SELECT_MAY_FORGET: Final = "SELECT pg_try_advisory_xact_lock(:chore)"
DELETE_EXPIRED: Final = """
WITH requests AS (
    DELETE FROM oauth_requests WHERE handle_hash IN (
        SELECT handle_hash FROM oauth_requests WHERE expires_at <= :now_ms FOR UPDATE SKIP LOCKED
    )
)
DELETE FROM access_attempts WHERE subject IN (
    SELECT a.subject FROM access_attempts AS a
    WHERE a.last_at < greatest(
        :day_ago, (SELECT last_at FROM access_attempts ORDER BY last_at DESC LIMIT 1 OFFSET :most - 1)
    ) FOR UPDATE OF a SKIP LOCKED
)
"""
UPDATE_OWNERS_OF_EXPIRED: Final = """
UPDATE owners SET revision = revision + 1 WHERE key IN (
    SELECT key FROM owners WHERE name IN (
        SELECT owner FROM access_tokens WHERE kind <> 'static' AND expires_at < :day_ago
        UNION ALL
        SELECT g.owner FROM oauth_codes AS c JOIN oauth_grants AS g ON g.id = c.grant_id WHERE c.expires_at < :day_ago
        UNION ALL
        SELECT owner FROM oauth_grants WHERE ends_at < :day_ago AND created_at < :day_ago
    ) FOR UPDATE SKIP LOCKED
) RETURNING name
"""
DELETE_EXPIRED_ACCESS: Final = """
WITH codes AS (
    DELETE FROM oauth_codes AS c USING oauth_grants AS g
    WHERE c.expires_at < :day_ago AND g.id = c.grant_id AND g.owner = ANY(:names::text[])
)
DELETE FROM access_tokens WHERE kind <> 'static' AND expires_at < :day_ago AND owner = ANY(:names::text[])
"""
DELETE_EMPTY_GRANTS: Final = """
DELETE FROM oauth_grants AS g
WHERE g.ends_at < :day_ago AND g.created_at < :day_ago AND g.owner = ANY(:names::text[])
    AND NOT EXISTS (SELECT 1 FROM access_tokens AS t WHERE t.grant_id = g.id)
"""
_GRANT: Final = (
    "g.id, g.owner, g.client, g.client_name, g.permission, g.resource, g.created_at, g.revoked_at, g.last_used_at"
)
_IS_USABLE: Final = """
    EXISTS (
        SELECT 1 FROM access_tokens AS t WHERE t.grant_id = g.id AND t.revoked_at IS NULL AND t.expires_at > :now_ms
    ) OR EXISTS (
        SELECT 1 FROM oauth_codes AS c WHERE c.grant_id = g.id AND c.used_at IS NULL AND c.expires_at > :now_ms
    )
"""
SELECT_CODE: Final = f"""
SELECT {_GRANT}, c.redirect_uri, c.is_redirect_explicit, c.challenge, c.expires_at, c.used_at
FROM oauth_codes AS c JOIN oauth_grants AS g ON g.id = c.grant_id WHERE c.code_hash = :code_hash
"""
SELECT_GRANT: Final = f"SELECT {_GRANT} FROM oauth_grants AS g WHERE g.id = :id"
SELECT_GRANTS: Final = f"""
SELECT {_GRANT}, {_IS_USABLE}
FROM oauth_grants AS g WHERE :whose::text IS NULL OR g.owner = :whose ORDER BY g.key DESC LIMIT :limit
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
# All parts of a statement read what was before it: the tokens still say which consents could be used.
UPDATE_GRANTS_REVOKED: Final = f"""
WITH tokens AS (
    UPDATE access_tokens SET revoked_at = :now_ms WHERE owner = :whose AND kind <> 'static' AND revoked_at IS NULL
)
UPDATE oauth_grants AS g SET revoked_at = :now_ms WHERE g.owner = :whose AND g.revoked_at IS NULL
RETURNING g.id, {_IS_USABLE}
"""
SELECT_PASSPHRASES: Final = "SELECT salt, hash, n, r, p FROM passphrases WHERE owner = :whose"
SELECT_HAS_PASSPHRASES: Final = "SELECT EXISTS (SELECT 1 FROM passphrases)"
UPSERT_PASSPHRASES: Final = """
INSERT INTO passphrases (owner, salt, hash, n, r, p, changed_at) VALUES (:whose, :salt, :hash, :n, :r, :p, :now_ms)
ON CONFLICT (owner) DO UPDATE
SET salt = excluded.salt, hash = excluded.hash, n = excluded.n, r = excluded.r, p = excluded.p,
    changed_at = excluded.changed_at
"""
# There may be no row to lock yet. The lock is a statement of its own, so that the next one reads what others wrote.
LOCK_ATTEMPTS: Final = "SELECT pg_advisory_xact_lock(hashtextextended(:subject, 0))"
SELECT_ATTEMPTS: Final = "SELECT count, since, last_at FROM access_attempts WHERE subject = :subject"
UPSERT_ATTEMPTS: Final = """
INSERT INTO access_attempts (subject, count, since, last_at) VALUES (:subject, :count, :since, :last_at)
ON CONFLICT (subject) DO UPDATE SET count = excluded.count, since = excluded.since, last_at = excluded.last_at
"""
DELETE_ATTEMPTS: Final = "DELETE FROM access_attempts WHERE subject = :subject"


class SignInQueries(Queries):
    """`ports.sign_in.SignInReader`."""

    async def client(self, client_id: str) -> Client | None:
        for row in await self._all(SELECT_CLIENT, id=client_id):
            return client_of(row)
        return None

    async def request(self, handle_hash: bytes) -> SignInRequest | None:
        for row in await self._all(SELECT_REQUEST, handle_hash=handle_hash):
            return request_of(row)
        return None

    async def code(self, code_hash: bytes) -> Code | None:
        for row in await self._all(SELECT_CODE, code_hash=code_hash):
            return code_of(row)
        return None

    async def grant(self, grant_id: str) -> Grant | None:
        for row in await self._all(SELECT_GRANT, id=grant_id):
            return grant_of(row)
        return None

    async def grants(self, owner: str | None, *, now_ms: int, limit: int) -> Sequence[Grant]:
        return [grant_of(row) for row in await self._all(SELECT_GRANTS, whose=owner, now_ms=now_ms, limit=limit)]

    async def passphrase(self, owner: str) -> Passphrase | None:
        for row in await self._all(SELECT_PASSPHRASES, whose=owner):
            return Passphrase(*row)
        return None

    async def has_passphrases(self) -> bool:
        return bool((await self._all(SELECT_HAS_PASSPHRASES))[0][0])

    async def attempts(self, subject: str) -> Attempts | None:
        for row in await self._all(SELECT_ATTEMPTS, subject=subject):
            return Attempts(*row)
        return None


class SignInStatements(SignInQueries):
    """`ports.sign_in.SignInWriter`."""

    async def request(self, handle_hash: bytes) -> SignInRequest | None:
        for row in await self._all(SELECT_REQUEST_LOCKED, handle_hash=handle_hash):
            return request_of(row)
        return None

    async def grant(self, grant_id: str) -> Grant | None:
        for (owner,) in await self._all(SELECT_OWNER_OF_GRANT, id=grant_id):
            await self._transaction.of(owner)
            return await super().grant(grant_id)
        return None

    async def attempts(self, subject: str) -> Attempts | None:
        await self._all(LOCK_ATTEMPTS, subject=subject)
        return await super().attempts(subject)

    async def put_client(self, client: Client) -> None:
        await self._all(UPSERT_CLIENT, **columns_of_client(client))

    async def drop_clients(self, *, unused_since: int, most_unused: int) -> None:
        await self._all(DELETE_UNUSED_CLIENTS, unused_since=unused_since, most=most_unused)

    async def add_request(self, handle_hash: bytes, request: SignInRequest) -> None:
        await self._all(INSERT_REQUEST, **columns_of_request(request), handle_hash=handle_hash)

    async def count_requests(self) -> int:
        return int((await self._all(COUNT_REQUESTS))[0][0])

    async def drop_oldest_request(self) -> None:
        await self._all(DELETE_OLDEST_REQUEST)

    async def bind_request(self, handle_hash: bytes, browser_hash: bytes) -> None:
        await self._all(UPDATE_BROWSER, handle_hash=handle_hash, browser_hash=browser_hash)

    async def drop_request(self, handle_hash: bytes) -> None:
        await self._all(DELETE_REQUEST, handle_hash=handle_hash)

    async def drop_expired(self, now_ms: int) -> None:
        day_ago = now_ms - DAY_MS
        if not (await self._all(SELECT_MAY_FORGET, chore=_CHORE))[0][0]:
            return
        await self._all(DELETE_EXPIRED, now_ms=now_ms, day_ago=day_ago, most=_MOST_ATTEMPTS)
        if names := [name for (name,) in await self._all(UPDATE_OWNERS_OF_EXPIRED, day_ago=day_ago)]:
            await self._all(DELETE_EXPIRED_ACCESS, day_ago=day_ago, names=names)
            await self._all(DELETE_EMPTY_GRANTS, day_ago=day_ago, names=names)

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
        revoked = await self._all(UPDATE_GRANTS_REVOKED, whose=owner, now_ms=now_ms)
        return [grant_id for grant_id, is_usable in revoked if is_usable]

    async def put_passphrase(self, owner: str, passphrase: Passphrase, *, now_ms: int) -> None:
        await self._transaction.of(owner)
        await self._all(
            UPSERT_PASSPHRASES,
            whose=owner,
            salt=passphrase.salt,
            hash=passphrase.hash,
            n=passphrase.n,
            r=passphrase.r,
            p=passphrase.p,
            now_ms=now_ms,
        )

    async def put_attempts(self, subject: str, attempts: Attempts) -> None:
        await self._all(
            UPSERT_ATTEMPTS, subject=subject, count=attempts.count, since=attempts.since, last_at=attempts.last_at
        )

    async def drop_attempts(self, subject: str) -> None:
        await self._all(DELETE_ATTEMPTS, subject=subject)
