"""How people let programs in: clients, requests, consents, codes, passphrases and attempts.

Many processes write here at once, so what a write reads before it changes it is locked by the reading: a request by its
row, attempts by their subject, a consent by its owner. The order of locks is: requests and attempts, the owner, the
head of the audit log. Chores skip what somebody has locked.
"""

from typing import Final

from kalito_mcp.domain.sign_in import Attempts, SignInRequest
from kalito_mcp.domain.zone import DAY_MS
from kalito_mcp.storage import sign_in
from kalito_mcp.storage.sign_in import MOST_ATTEMPTS, SELECT_REQUEST
from kalito_mcp.storage.sign_in_rows import request_of

_CHORE: Final = 0x6B61_6C69_6F6C_6400  # "kaliold"
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
SELECT_REQUEST_LOCKED: Final = f"{SELECT_REQUEST} FOR UPDATE"
DELETE_OLDEST_REQUEST: Final = """
DELETE FROM oauth_requests WHERE handle_hash = (
    SELECT handle_hash FROM oauth_requests ORDER BY browser_hash IS NOT NULL, expires_at LIMIT 1 FOR UPDATE SKIP LOCKED
)
"""
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
# There may be no row to lock yet. The lock is a statement of its own, so that the next one reads what others wrote.
LOCK_ATTEMPTS: Final = "SELECT pg_advisory_xact_lock(hashtextextended(:subject, 0))"


class SignInStatements(sign_in.SignInStatements):
    """`ports.sign_in.SignInWriter`."""

    async def request(self, handle_hash: bytes) -> SignInRequest | None:
        return await self._first(request_of, SELECT_REQUEST_LOCKED, handle_hash=handle_hash)

    async def attempts(self, subject: str) -> Attempts | None:
        await self._all(LOCK_ATTEMPTS, subject=subject)
        return await super().attempts(subject)

    async def drop_expired(self, now_ms: int) -> None:
        day_ago = now_ms - DAY_MS
        if not (await self._all(SELECT_MAY_FORGET, chore=_CHORE))[0][0]:
            return
        await self._all(DELETE_EXPIRED, now_ms=now_ms, day_ago=day_ago, most=MOST_ATTEMPTS)
        if names := [name for (name,) in await self._all(UPDATE_OWNERS_OF_EXPIRED, day_ago=day_ago)]:
            await self._all(DELETE_EXPIRED_ACCESS, day_ago=day_ago, names=names)
            await self._all(DELETE_EMPTY_GRANTS, day_ago=day_ago, names=names)
