"""A client's request, the person's consent and the tokens from it, and how these are renewed and revoked.

A code and a refresh token count once. A second use means that somebody else has it too, so all tokens of the same
consent are revoked. Source: RFC 9700 (OAuth security), 4.14; OAuth 2.1, 4.1.3 and 4.3.1.

Within a minute, the second use of a refresh token may be the same program's: its answer was lost, or two processes of a
host renewed at once. It gets the same next refresh token as the first use, so there is never more than one that counts.

A button that is clicked twice sends its form twice, and the browser shows the second answer alone. So while the code is
not used, allowing a request again gives the same code.
"""

import secrets
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from hmac import compare_digest, digest
from typing import Final

from kalito_mcp.access.attempts import Allowance, AttemptLimiter
from kalito_mcp.access.tokens import PREFIX, NewToken, hash_of, new_token
from kalito_mcp.domain.access import Permission, Principal, Token, TokenKind
from kalito_mcp.domain.sign_in import Client, Code, Grant, SignInRequest
from kalito_mcp.domain.zone import DAY_MS
from kalito_mcp.errors import NotFound
from kalito_mcp.ports.clock import Clock
from kalito_mcp.ports.store import ReadView, Store, WriteTransaction
from kalito_mcp.runtime.acting import acting_as

REQUEST_S: Final = 600
ACCESS_S: Final = 3_600
_REQUEST_MS: Final = REQUEST_S * 1_000
_CODE_MS: Final = 60_000
_ACCESS_MS: Final = ACCESS_S * 1_000
_IDLE_MS: Final = 30 * DAY_MS
"""How long an unused consent lasts."""
_AGAIN_MS: Final = 60_000
"""How long a second use of a refresh token gets the same answer."""
_MOST_REQUESTS: Final = 1_000
_MOST_LISTED: Final = 1_000
_ASKING: Final = Allowance("authorize", per_caller=200, in_all=5_000, window_ms=_REQUEST_MS)
_RENEWALS: Final = Allowance("renew", per_caller=300, in_all=20_000, window_ms=_ACCESS_MS)
"""Per consent, not per address: each one leaves two tokens for a while, and a line in the audit log for good."""
_GONE: Final = "this sign-in is over or belongs to another browser; start again in the program that you came from"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to the client: a code for a consent, or None if the person refused."""

    request: SignInRequest
    code: str | None = None
    grant: Grant | None = None


@dataclass(frozen=True, slots=True)
class Issued:
    """A new pair of tokens. Their texts are only here."""

    access: NewToken
    refresh: NewToken


class Consents:
    """The requests, consents, codes and OAuth tokens of a database."""

    def __init__(self, store: Store, clock: Clock, limiter: AttemptLimiter) -> None:
        self._store = store
        self._clock = clock
        self._limiter = limiter

    async def begin(
        self,
        client: Client,
        *,
        redirect_uri: str,
        is_redirect_explicit: bool,
        challenge: str,
        permission: Permission,
        resource: str,
        state: str | None,
        address: str,
    ) -> str:
        """Store what a client asks for, for ten minutes. The handle by which the person sees it.

        If a thousand are stored, the oldest goes: of those that no browser has shown, or else of all.

        Raises:
            TooManyAttempts: this address, or all of them, asked too often.
        """
        await self._limiter.count(_ASKING, address)
        handle, now_ms = secrets.token_urlsafe(32), self._clock.now_ms()
        request = SignInRequest(
            client.id,
            client.name,
            redirect_uri,
            is_redirect_explicit,
            challenge,
            permission,
            resource,
            state,
            expires_at=now_ms + _REQUEST_MS,
        )

        async def add(transaction: WriteTransaction) -> None:
            await transaction.sign_in.drop_expired(now_ms)
            if await transaction.sign_in.count_requests() >= _MOST_REQUESTS:
                # Never refused: who fills the place, with requests that are shown or not, would stop all sign-ins.
                await transaction.sign_in.drop_oldest_request()
            await transaction.sign_in.add_request(hash_of(handle), request)

        await self._store.write(add)
        return handle

    async def bind(self, handle: str, cookie: str | None) -> tuple[SignInRequest, str]:
        """Bind a request to the first browser that shows it. Returns the client's request, and the cookie that binds
        it.

        Raises:
            NotFound: it is unknown, answered or expired, or another browser has shown it.
        """
        handle_hash = hash_of(handle)
        found = await self._store.read(lambda view: view.sign_in.request(handle_hash))
        if found is not None and found.browser_hash is None and found.expires_at > self._clock.now_ms():
            cookie = secrets.token_urlsafe(32)
            cookie_hash = hash_of(cookie)
            await self._store.write(lambda transaction: transaction.sign_in.bind_request(handle_hash, cookie_hash))
        return await self._store.read(lambda view: self._unanswered(view, handle, cookie)), cookie or ""

    async def read_request(self, handle: str, cookie: str | None) -> SignInRequest:
        """The client's request, for the browser that has shown it. Raises NotFound as `bind`."""
        handle_hash = hash_of(handle)
        return self._checked(await self._store.read(lambda view: view.sign_in.request(handle_hash)), cookie)

    async def allow(self, handle: str, cookie: str | None, *, owner: str, permission: Permission) -> Answer:
        """Note the owner's consent, to no more than the client asked for, and make its code. The second time, if the
        code is not used yet, it returns the same code and no consent: nothing new is noted.

        Raises:
            NotFound: as `bind`, or the code was used or is expired.
        """

        async def add(transaction: WriteTransaction) -> Answer:
            request, code, before = await self._found(transaction, handle, cookie)
            now_ms = self._clock.now_ms()
            if before is not None and before.grant.owner == owner and _is_usable(before, now_ms):
                return Answer(request, code)
            if before is not None:
                raise NotFound(_GONE)
            grant = Grant(
                f"grant_{secrets.token_hex(6)}",
                owner,
                request.client_id,
                request.client_name,
                permission if request.permission.includes(permission) else request.permission,
                request.resource,
                now_ms,
            )
            issued = Code(
                grant, request.redirect_uri, request.is_redirect_explicit, request.challenge, now_ms + _CODE_MS
            )
            await transaction.sign_in.add_grant(grant, issued, hash_of(code))
            return Answer(request, code, grant)

        with acting_as(Principal("sign_in", owner), "allow_client"):
            return await self._store.write(add)

    async def deny(self, handle: str, cookie: str | None) -> Answer:
        """Note that the person refused. Raises NotFound as `bind`, or if it was allowed before."""

        async def drop(transaction: WriteTransaction) -> Answer:
            request = await self._unanswered(transaction, handle, cookie)
            await transaction.sign_in.drop_request(hash_of(handle))
            return Answer(request)

        return await self._store.write(drop)

    async def verify_code(self, client_id: str, text: str) -> Code | None:
        """The code of a client that is not used yet. A used one revokes all that came of it."""
        code_hash = hash_of(text)
        found = await self._store.read(lambda view: view.sign_in.code(code_hash))
        if found is None or found.grant.client_id != client_id:
            return None
        if found.used_at is not None:
            await self._revoke(_client_of(found.grant))
            return None
        return found if _is_usable(found, self._clock.now_ms()) else None

    async def redeem(self, client_id: str, text: str) -> Issued | None:
        """The tokens for a code, once; None as `verify_code`."""
        found = await self.verify_code(client_id, text)
        if found is None:
            return None

        async def take(transaction: WriteTransaction) -> Issued | None:
            now_ms = self._clock.now_ms()
            grant = await transaction.sign_in.grant(found.grant.id)
            is_first = await transaction.sign_in.take_code(hash_of(text), now_ms=now_ms)
            if is_first and grant is not None and grant.revoked_at is None:
                return await _issue(transaction, grant, grant.permission, now_ms)
            return None

        with acting_as(_client_of(found.grant), "redeem_code"):
            issued = await self._store.write(take)
        if issued is None:
            await self._revoke(_client_of(found.grant))
        return issued

    async def verify_refresh_token(self, client_id: str, text: str) -> Token | None:
        """The refresh token of a client that is not used yet, or was first used less than a minute ago. One that was
        used before then revokes all that came of the same consent."""
        text_hash = hash_of(text)
        found = await self._store.read(lambda view: view.access.token(text_hash))
        if found is None or found.kind is not TokenKind.REFRESH or found.client != client_id or found.grant is None:
            return None
        if _is_reuse(found, self._clock.now_ms()):
            await self._revoke(_holder_of(found))
            return None
        return None if found.is_expired(self._clock.now_ms()) else found

    async def renew(self, client_id: str, text: str, permission: Permission) -> Issued | None:
        """New tokens for a refresh token; None as `verify_refresh_token`. The access token has the permission given, if
        the consent includes it. The next refresh token is the same, even if it is asked for again.

        Raises:
            TooManyAttempts: this consent was renewed too often; the token was not used up.
        """
        found = await self.verify_refresh_token(client_id, text)
        if found is None or found.grant is None:
            return None
        await self._limiter.count(_RENEWALS, found.grant)

        async def retire(transaction: WriteTransaction, grant_id: str = found.grant) -> Issued | None:
            now_ms = self._clock.now_ms()
            grant = await transaction.sign_in.grant(grant_id)
            now = await transaction.access.token(hash_of(text)) or found
            if grant is None or grant.revoked_at is not None or _is_reuse(now, now_ms):
                return None
            await transaction.access.retire_token(now.id, now_ms=now_ms)
            await transaction.sign_in.drop_expired(now_ms)
            following = _next_of(text, await transaction.access.state_secret())
            return await _issue(transaction, grant, permission, now_ms, refresh=following)

        with acting_as(_holder_of(found), "renew_token"):
            issued = await self._store.write(retire)
        if issued is None:
            await self._revoke(_holder_of(found))
        return issued

    async def access_token(self, text: str) -> Token | None:
        """The access token with this text, of any client, even if it is expired."""
        text_hash = hash_of(text)
        found = await self._store.read(lambda view: view.access.token(text_hash))
        return found if found is not None and found.kind is TokenKind.ACCESS else None

    async def revoke_text(self, client_id: str, text: str) -> None:
        """Revoke all tokens of the same consent as this token of the client. An unknown token is ignored."""
        text_hash = hash_of(text)
        found = await self._store.read(lambda view: view.access.token(text_hash))
        if found is not None and found.client == client_id and found.grant is not None:
            await self._revoke(_holder_of(found))

    async def all(self, owner: str | None = None) -> Sequence[Grant]:
        """The newest thousand consents of an owner, or of all owners."""
        return await self._store.read(
            lambda view: view.sign_in.grants(owner, now_ms=self._clock.now_ms(), limit=_MOST_LISTED)
        )

    async def _unanswered(self, view: ReadView | WriteTransaction, handle: str, cookie: str | None) -> SignInRequest:
        request, _, code = await self._found(view, handle, cookie)
        if code is not None:
            raise NotFound(_GONE)
        return request

    async def _found(
        self, view: ReadView | WriteTransaction, handle: str, cookie: str | None
    ) -> tuple[SignInRequest, str, Code | None]:
        """The request, the text of its code, and the code if the request was allowed."""
        request = self._checked(await view.sign_in.request(hash_of(handle)), cookie)
        text = _code_of(handle, cookie, await view.access.state_secret())
        return request, text, await view.sign_in.code(hash_of(text))

    def _checked(self, found: SignInRequest | None, cookie: str | None) -> SignInRequest:
        if found is None or found.expires_at <= self._clock.now_ms() or found.browser_hash is None or not cookie:
            raise NotFound(_GONE)
        if not compare_digest(hash_of(cookie), found.browser_hash):
            raise NotFound(_GONE)
        return found

    async def _revoke(self, client: Principal) -> None:
        """Revoke all that came of the consent that is the principal's id."""
        with acting_as(client, "revoke_consent"):
            now_ms = self._clock.now_ms()
            await self._store.write(
                lambda transaction: transaction.access.revoke_tokens(client.id, owner=None, now_ms=now_ms)
            )


def _client_of(grant: Grant) -> Principal:
    """The principal that the audit log names for a client's actions under a consent."""
    return Principal(grant.id, grant.owner, client=grant.client_id)


def _holder_of(token: Token) -> Principal:
    """The same for a token that came of a consent."""
    return Principal(token.grant or token.id, token.owner, client=token.client)


def _is_usable(code: Code, now_ms: int) -> bool:
    is_over = code.used_at is not None or code.grant.revoked_at is not None
    return not is_over and now_ms < code.expires_at


def _code_of(handle: str, cookie: str | None, key: bytes) -> str:
    """The code for a request that this browser allows. Nobody can tell it without the key, and it is not stored."""
    return _derived(f"code\n{handle}\n{cookie}", key)


def _is_reuse(token: Token, now_ms: int) -> bool:
    """Whether this reuse of a refresh token is too late to be a client's retry."""
    return token.revoked_at is not None and now_ms - token.revoked_at >= _AGAIN_MS


def _next_of(text: str, key: bytes) -> str:
    """The refresh token that follows on this one. Nobody can tell it without the key, and it is not stored."""
    return PREFIX + _derived(f"refresh\n{text}", key)


def _derived(text: str, key: bytes) -> str:
    made = digest(key, text.encode("utf-8", "surrogatepass"), "sha256")
    return urlsafe_b64encode(made).decode("ascii").rstrip("=")


async def _issue(
    transaction: WriteTransaction, grant: Grant, permission: Permission, now_ms: int, *, refresh: str | None = None
) -> Issued:
    """New tokens for a consent. `refresh` is the text of the refresh token, which may be stored already."""

    def made(kind: TokenKind, allowed: Permission, lifetime_ms: int, text: str | None = None) -> NewToken:
        return new_token(
            grant.owner,
            allowed,
            now_ms=now_ms,
            name=grant.client_name,
            lifetime_ms=lifetime_ms,
            kind=kind,
            client=grant.client_id,
            grant=grant.id,
            resource=grant.resource,
            text=text,
        )

    narrowed = permission if grant.permission.includes(permission) else grant.permission
    access = made(TokenKind.ACCESS, narrowed, _ACCESS_MS)
    renewing = made(TokenKind.REFRESH, grant.permission, _IDLE_MS, refresh)
    for one in (access, renewing):
        if await transaction.access.token(hash_of(one.text)) is None:
            await transaction.access.add_token(one.token, hash_of(one.text))
    return Issued(access, renewing)
