"""Who is signed in on the web page: a link lets a browser in once, and a cookie keeps it signed in.

Both are tokens of the database, made for the page alone: `tokens.fault` refuses them over MCP and REST, and a token of
a program is no cookie. A cookie that was made from a program's token, or from one of a consent, is revoked with it.
"""

from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from typing import Final

from kalito_mcp.access.tokens import NOTED_EVERY_MS, NewToken, fault, hash_of, new_token
from kalito_mcp.domain.access import PAGE_COOKIE, PAGE_LINK, Permission, Principal, Token, TokenKind
from kalito_mcp.domain.scope import LOCAL_OWNER
from kalito_mcp.domain.zone import DAY_MS
from kalito_mcp.errors import StorageError
from kalito_mcp.ports.clock import Clock
from kalito_mcp.ports.store import Store, WriteTransaction
from kalito_mcp.runtime.acting import acting_as, acting_as_host

LINK_S: Final = 60
COOKIE_S: Final = 30 * DAY_MS // 1_000
"""The longest that a browser stays signed in."""


class PageSessions:
    """The links and cookies of a database. Links are made for one owner; the other methods are for all owners."""

    def __init__(self, store: Store, clock: Clock, owner: str = LOCAL_OWNER) -> None:
        self._store = store
        self._clock = clock
        self._owner = owner

    def of_owner(self, owner: str) -> "PageSessions":
        """The same, with links for this owner."""
        return PageSessions(self._store, self._clock, owner)

    async def link(self, permission: Permission = Permission.ADMIN) -> str:
        """Make a link's code, which lets one browser in within a minute."""
        now_ms = self._clock.now_ms()
        made = new_token(
            self._owner,
            permission,
            now_ms=now_ms,
            name="link to the page",
            lifetime_ms=LINK_S * 1_000,
            kind=TokenKind.ACCESS,
            resource=PAGE_LINK,
        )

        async def add(transaction: WriteTransaction) -> None:
            await transaction.sign_in.drop_expired(now_ms)
            await transaction.access.add_token(made.token, hash_of(made.text))

        with acting_as_host("make_link"):
            await self._store.write(add)
        return made.text

    async def enter(self, link: str) -> NewToken | None:
        """The cookie for a link's code. None if the code is unknown, expired, revoked or used: of two browsers that
        send it at once, one gets in."""
        link_hash = hash_of(link)
        found = await self._store.read(lambda view: view.access.token(link_hash), is_short=True)
        if found is None or not _is_usable(found, PAGE_LINK, self._clock.now_ms()):
            return None
        made = self._cookie(found.principal)

        async def take(transaction: WriteTransaction) -> NewToken | None:
            if not await transaction.access.retire_token(found.id, now_ms=made.token.created_at):
                return None
            await transaction.access.add_token(made.token, hash_of(made.text))
            return made

        with acting_as(made.token.principal, "sign_in"):
            return await self._store.write(take)

    async def enter_with(self, token: str, resources: Collection[str]) -> NewToken | None:
        """The cookie for somebody who has the text of a token; it ends with the token, and is revoked with it. None if
        a server of these URLs would refuse the token."""
        token_hash = hash_of(token)
        found = await self._store.read(lambda view: view.access.token(token_hash), is_short=True)
        if found is None or fault(found, resources, self._clock.now_ms()) is not None:
            return None
        made = self._cookie(found.principal, expires_at=found.expires_at, grant=found.principal.id)

        async def add(transaction: WriteTransaction) -> NewToken | None:
            now = await transaction.access.token(token_hash)
            if now is None or now.revoked_at is not None:
                return None
            await transaction.access.add_token(made.token, hash_of(made.text))
            return made

        with acting_as(made.token.principal, "sign_in"):
            return await self._store.write(add)

    async def enter_as(self, principal: Principal, *, expires_at: int | None = None) -> NewToken:
        """The cookie for a principal who was recognised in another way, such as by a passphrase: until `expires_at`,
        in milliseconds since 1970, and at most for thirty days."""
        made = self._cookie(principal, expires_at=expires_at)
        with acting_as(made.token.principal, "sign_in"):
            await self._store.write(lambda transaction: transaction.access.add_token(made.token, hash_of(made.text)))
        return made

    async def principal_of(self, cookie: str) -> Principal | None:
        """On whose behalf a browser with this cookie works, noting its use; None if the cookie is unknown, expired or
        revoked."""
        cookie_hash = hash_of(cookie)
        found = await self._store.read(lambda view: view.access.token(cookie_hash), is_short=True)
        now_ms = self._clock.now_ms()
        if found is None or not _is_usable(found, PAGE_COOKIE, now_ms):
            return None
        if found.last_used_at is None or now_ms - found.last_used_at >= NOTED_EVERY_MS:
            with suppress(StorageError):  # what cannot be written now can still be read
                await self._store.write(lambda transaction: transaction.access.used_token(found.id, now_ms=now_ms))
        return found.principal

    async def leave(self, cookie: str) -> None:
        """Sign the browser out. An unknown cookie is ignored."""
        cookie_hash = hash_of(cookie)
        found = await self._store.read(lambda view: view.access.token(cookie_hash), is_short=True)
        if found is not None and found.resource == PAGE_COOKIE:
            with acting_as(found.principal, "sign_out"):
                now_ms = self._clock.now_ms()
                await self._store.write(lambda transaction: transaction.access.retire_token(found.id, now_ms=now_ms))

    def _cookie(self, principal: Principal, *, expires_at: int | None = None, grant: str | None = None) -> NewToken:
        now_ms = self._clock.now_ms()
        longest = now_ms + COOKIE_S * 1_000
        made = new_token(
            principal.owner,
            principal.permission,
            now_ms=now_ms,
            name="page",
            limits=principal.limits,
            kind=TokenKind.ACCESS,
            grant=grant,
            resource=PAGE_COOKIE,
        )
        ends = longest if expires_at is None else min(expires_at, longest)
        return NewToken(made.text, replace(made.token, expires_at=ends))


def _is_usable(token: Token, resource: str, now_ms: int) -> bool:
    return token.resource == resource and token.revoked_at is None and not token.is_expired(now_ms)
