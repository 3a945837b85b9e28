"""Tokens: made, checked, listed and revoked. Anyone who has the text of one may call on its owner's behalf."""

import secrets
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from kalito_mcp.access.users import check_user
from kalito_mcp.domain.access import Permission, Token, TokenKind
from kalito_mcp.domain.scope import NO_LIMITS, Limits
from kalito_mcp.domain.time import to_iso
from kalito_mcp.domain.validation import checked_name
from kalito_mcp.errors import InvalidInput, NotFound, StorageError
from kalito_mcp.ports.clock import Clock
from kalito_mcp.ports.store import Store
from kalito_mcp.runtime.acting import acting_as_host

PREFIX: Final = "kal_"
"""The prefix of every token's text, so that secret scanners recognise it."""
_SHOWN_CHARS: Final = 10
_ID_BYTES: Final = 6
NOTED_EVERY_MS: Final = 60_000
"""The last use is written at most this often."""
_MOST_LISTED: Final = 1_000


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token that was just made. Its text is shown once, here: only a hash of it is stored."""

    text: str
    token: Token


def hash_of(text: str) -> bytes:
    """The hash that is stored of a token's text. The text has 256 random bits, so a fast hash is enough."""
    return sha256(text.encode("utf-8", "surrogatepass")).digest()


def new_token(
    owner: str,
    permission: Permission,
    *,
    now_ms: int,
    name: str = "",
    limits: Limits = NO_LIMITS,
    lifetime_ms: int | None = None,
    kind: TokenKind = TokenKind.STATIC,
    client: str | None = None,
    grant: str | None = None,
    resource: str | None = None,
    text: str | None = None,
) -> NewToken:
    """A token, not stored yet: random, without `text`."""
    text = text or PREFIX + secrets.token_urlsafe(32)
    token = Token(
        id=f"tok_{secrets.token_hex(_ID_BYTES)}",
        prefix=text[:_SHOWN_CHARS],
        name=name,
        owner=owner,
        permission=permission,
        limits=limits,
        created_at=now_ms,
        kind=kind,
        expires_at=None if lifetime_ms is None else now_ms + lifetime_ms,
        client=client,
        grant=grant,
        resource=resource,
    )
    return NewToken(text, token)


class Tokens:
    """The tokens of all owners of a database."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def create(
        self,
        owner: str,
        permission: Permission,
        *,
        name: str = "",
        limits: Limits = NO_LIMITS,
        lifetime_ms: int | None = None,
    ) -> NewToken:
        """Make and store a token for a program.

        Raises:
            InvalidInput: the owner, a limit or the name is not acceptable, the owner looks like another one, or it
                would never be valid.
        """
        await check_user(self._store, owner)
        for field, value in (("agent", limits.agent), ("project", limits.project), ("name", name or None)):
            if value is not None:
                checked_name(value, field)
        if lifetime_ms is not None and lifetime_ms <= 0:
            raise InvalidInput("the token would expire at once; give it a longer life")
        made = new_token(
            owner, permission, now_ms=self._clock.now_ms(), name=name, limits=limits, lifetime_ms=lifetime_ms
        )
        with acting_as_host("create_token", owner):
            await self._store.write(lambda transaction: transaction.access.add_token(made.token, hash_of(made.text)))
        return made

    async def use(self, text: str, resources: Collection[str] | None = None) -> Token | None:
        """The token with this text, noting its use; None if it is unknown, expired, revoked, or only for renewing.

        `resources` are the URLs of the server that was called: an OAuth token for another server is refused.
        """
        text_hash = hash_of(text)
        found = await self._store.read(lambda view: view.access.token(text_hash), is_short=True)
        now_ms = self._clock.now_ms()
        if found is None or fault(found, resources, now_ms) is not None:
            return None
        if found.last_used_at is None or now_ms - found.last_used_at >= NOTED_EVERY_MS:
            with suppress(StorageError):  # what cannot be written now can still be read
                await self._store.write(lambda transaction: transaction.access.used_token(found.id, now_ms=now_ms))
        return found

    async def why_refused(self, text: str, resources: Collection[str] | None = None) -> str | None:
        """Why `use` refuses a token that was made here, for who has it; None if it was not, or is valid."""
        text_hash = hash_of(text)
        found = await self._store.read(lambda view: view.access.token(text_hash), is_short=True)
        return None if found is None else fault(found, resources, self._clock.now_ms())

    async def all(self, owner: str | None = None) -> Sequence[Token]:
        """A thousand tokens of an owner, or of all owners: static ones first, because hosts renew theirs each hour, and
        the newest first."""
        return await self._store.read(lambda view: view.access.tokens(owner, limit=_MOST_LISTED))

    async def revoke(self, named: str, owner: str | None = None) -> Sequence[str]:
        """Revoke a token by its id, or all tokens of a consent. The ids of those that were valid until now.

        Raises:
            NotFound: the owner has no such token that is still valid.
        """
        with acting_as_host("revoke_token"):
            now_ms = self._clock.now_ms()
            revoked = await self._store.write(
                lambda transaction: transaction.access.revoke_tokens(named, owner=owner, now_ms=now_ms)
            )
        if not revoked:
            raise NotFound(f"no valid token or consent {named!r}; send its id, which `kalito-mcp token list` shows")
        return revoked


def fault(token: Token, resources: Collection[str] | None, now_ms: int) -> str | None:
    """Why a token may not be used with a server of these URLs, or with any; None if it may."""
    if token.revoked_at is not None:
        return f"this token was revoked on {to_iso(token.revoked_at)}"
    if token.expires_at is not None and token.is_expired(now_ms):
        return f"this token expired on {to_iso(token.expires_at)}"
    if token.kind is TokenKind.REFRESH:
        return "this token only renews others"
    if token.is_for_page:
        return "this token is for the web page alone"
    if resources is not None and token.resource is not None and token.resource not in resources:
        return "this token is for another server"
    return None
