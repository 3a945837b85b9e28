"""How people let programs in, in memory. Implements `ports.sign_in`."""

from collections.abc import Sequence
from dataclasses import replace

from kalito_mcp.domain.access import Token, TokenKind
from kalito_mcp.domain.sign_in import Attempts, Client, Code, Grant, Passphrase, SignInRequest
from kalito_mcp.domain.zone import DAY_MS
from kalito_mcp.storage.memory.state import Tables, drop, picked, update


class SignIn(Tables):
    """`ports.sign_in.SignInWriter`."""

    async def client(self, client_id: str) -> Client | None:
        return self._state.clients.get(client_id)

    async def request(self, handle_hash: bytes) -> SignInRequest | None:
        return self._state.requests.get(handle_hash)

    async def code(self, code_hash: bytes) -> Code | None:
        found = self._state.codes.get(code_hash)
        return None if found is None else replace(found, grant=_seen(self._state.grants[found.grant.id]))

    async def grants(self, owner: str | None, *, now_ms: int, limit: int) -> Sequence[Grant]:
        tokens = [one for one in self._state.tokens.values() if one.revoked_at is None]
        codes = [one for one in self._state.codes.values() if one.used_at is None]
        usable = {one.grant for one in tokens if (one.expires_at or 0) > now_ms}
        usable |= {one.grant.id for one in codes if one.expires_at > now_ms}
        newest = [one for one in reversed(self._state.grants.values()) if owner in (None, one.owner)]
        return [_seen(one, is_usable=one.id in usable) for one in newest][:limit]

    async def grant(self, grant_id: str) -> Grant | None:
        found = self._state.grants.get(grant_id)
        return None if found is None else _seen(found)

    async def passphrase(self, owner: str) -> Passphrase | None:
        return self._state.passphrases.get(owner)

    async def has_passphrases(self) -> bool:
        return bool(self._state.passphrases)

    async def attempts(self, subject: str) -> Attempts | None:
        return self._state.attempts.get(subject)

    async def put_client(self, client: Client) -> None:
        first = self._state.clients.get(client.id, client)
        self._state.clients[client.id] = replace(client, **picked(first, "created_at", "is_document"))

    async def drop_clients(self, *, unused_since: int, most_unused: int) -> None:
        used = {one.client_id for one in self._state.grants.values()}
        used |= {one.client_id for one in self._state.requests.values()}
        unused = [one for one in self._state.clients.values() if one.id not in used]
        newest = sorted(unused, key=lambda one: -one.created_at)[:most_unused]
        kept = {one.id for one in newest if one.created_at >= unused_since}
        drop(self._state.clients, lambda one: one.id not in used | kept)

    async def add_request(self, handle_hash: bytes, request: SignInRequest) -> None:
        self._state.requests[handle_hash] = replace(request, browser_hash=None)

    async def drop_oldest_request(self) -> None:
        requests = self._state.requests.values()
        oldest = min(requests, key=lambda one: (one.browser_hash is not None, one.expires_at), default=None)
        drop(self._state.requests, lambda one: one is oldest)

    async def count_requests(self) -> int:
        return len(self._state.requests)

    async def bind_request(self, handle_hash: bytes, browser_hash: bytes) -> None:
        request = self._state.requests.get(handle_hash)
        update(self._state.requests, lambda one: one is request and not one.browser_hash, browser_hash=browser_hash)

    async def drop_request(self, handle_hash: bytes) -> None:
        self._state.requests.pop(handle_hash, None)

    async def drop_expired(self, now_ms: int) -> None:
        state, day_ago = self._state, now_ms - DAY_MS
        drop(state.requests, lambda one: one.expires_at <= now_ms)
        drop(state.tokens, lambda one: one.kind is not TokenKind.STATIC and (one.expires_at or day_ago) < day_ago)
        of_tokens = {one.grant for one in state.tokens.values()}
        drop(state.grants, lambda one: one.created_at < day_ago and one.id not in of_tokens)
        drop(state.codes, lambda one: one.expires_at < day_ago or one.grant.id not in state.grants)
        drop(state.attempts, lambda one: one.last_at < day_ago)

    async def add_grant(self, grant: Grant, code: Code, code_hash: bytes) -> None:
        self._state.grants[grant.id] = grant
        self._state.codes[code_hash] = code

    async def take_code(self, code_hash: bytes, *, now_ms: int) -> bool:
        code = self._state.codes.get(code_hash)
        return bool(update(self._state.codes, lambda one: one is code and one.used_at is None, used_at=now_ms))

    async def revoke_grants(self, owner: str, *, now_ms: int) -> Sequence[str]:
        every = len(self._state.grants)
        usable = {one.id for one in await self.grants(owner, now_ms=now_ms, limit=every) if one.is_usable}
        revoked = update(
            self._state.grants, lambda one: (one.owner, one.revoked_at) == (owner, None), revoked_at=now_ms
        )

        def is_signed_in(one: Token) -> bool:
            return one.owner == owner and one.kind is not TokenKind.STATIC and one.revoked_at is None

        update(self._state.tokens, is_signed_in, revoked_at=now_ms)
        return [one.id for one in revoked if one.id in usable]

    async def put_passphrase(self, owner: str, passphrase: Passphrase, *, now_ms: int) -> None:
        del now_ms
        self._state.passphrases[owner] = passphrase

    async def put_attempts(self, subject: str, attempts: Attempts) -> None:
        self._state.attempts[subject] = attempts

    async def drop_attempts(self, subject: str) -> None:
        self._state.attempts.pop(subject, None)


def _seen(grant: Grant, *, is_usable: bool = True) -> Grant:
    """The consent as it is shown."""
    return replace(grant, is_usable=is_usable and grant.revoked_at is None)
