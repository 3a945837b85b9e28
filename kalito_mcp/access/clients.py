"""The programs that ask for access: those that register themselves, and those whose id is the URL of their description.

Anybody may register, so a registration gives nothing: its name is only a claim. Clients without a consent are forgotten
in the end, the oldest first.
"""

import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final

from kalito_mcp.access.attempts import Allowance, AttemptLimiter
from kalito_mcp.access.redirects import checked_redirect
from kalito_mcp.domain.sign_in import Client
from kalito_mcp.errors import InvalidInput
from kalito_mcp.ports.clock import Clock
from kalito_mcp.ports.store import Store, WriteTransaction
from kalito_mcp.safety.escaping import visible

_HOUR_MS: Final = 3_600_000
_REGISTRATIONS: Final = Allowance("register", per_caller=30, in_all=200, window_ms=_HOUR_MS)
_READINGS: Final = Allowance("document", per_caller=30, in_all=100, window_ms=_HOUR_MS // 12)
_MOST_UNUSED: Final = 2_000
_MOST_REDIRECTS: Final = 20
_LONGEST_NAME: Final = 80
_UNUSED_MS: Final = 90 * 24 * _HOUR_MS
"""How long a client without a consent is kept. Programs keep their id, and do not register again on their own if the
page does not know it."""
_FRESH_MS: Final = _HOUR_MS
"""How long a client's description is cached."""

ReadDescription = Callable[[str], Awaitable[tuple[str | None, Sequence[str]]]]


class Clients:
    """The OAuth clients of a database."""

    def __init__(self, store: Store, clock: Clock, limiter: AttemptLimiter) -> None:
        self._store = store
        self._clock = clock
        self._limiter = limiter

    async def register(self, name: str | None, redirect_uris: Sequence[str], *, address: str) -> Client:
        """Store a client that registers itself, under a new id.

        Raises:
            InvalidInput: a redirect URI is not acceptable, or there are too many.
            TooManyAttempts: there are too many registrations.
        """
        checked = _checked_redirects(redirect_uris)
        await self._limiter.count(_REGISTRATIONS, address)
        now_ms = self._clock.now_ms()
        client = Client(f"cli_{secrets.token_hex(16)}", _shown(name), checked, now_ms, now_ms)

        async def put(transaction: WriteTransaction) -> None:
            await transaction.sign_in.drop_expired(now_ms)
            await _put(transaction, client, now_ms)

        await self._store.write(put)
        return client

    async def find(self, client_id: str) -> Client | None:
        """The client with this id, as it was last seen."""
        return await self._store.read(lambda view: view.sign_in.client(client_id))

    async def find_by_document(self, client_id: str, read: ReadDescription, *, address: str) -> Client:
        """The client whose id is the URL of its description. `read` reads it, if that was not done lately, and
        what it says is stored.

        Raises:
            InvalidInput: it cannot be read, or does not describe a client.
            TooManyAttempts: too many descriptions would have been read.
        """
        found = await self.find(client_id)
        now_ms = self._clock.now_ms()
        if found is not None and 0 <= now_ms - found.checked_at < _FRESH_MS:
            return found
        await self._limiter.count(_READINGS, address)
        name, redirect_uris = await read(client_id)
        client = Client(client_id, _shown(name), _checked_redirects(redirect_uris), now_ms, now_ms, is_document=True)
        if found is not None:
            client = replace(client, created_at=found.created_at)
        await self._store.write(lambda transaction: _put(transaction, client, now_ms))
        return client


async def _put(transaction: WriteTransaction, client: Client, now_ms: int) -> None:
    """Store a client, and make room for it."""
    await transaction.sign_in.drop_clients(unused_since=now_ms - _UNUSED_MS, most_unused=_MOST_UNUSED - 1)
    await transaction.sign_in.put_client(client)


def _checked_redirects(redirect_uris: Sequence[str]) -> tuple[str, ...]:
    if not 0 < len(redirect_uris) <= _MOST_REDIRECTS:
        raise InvalidInput(f"redirect_uris must be 1 to {_MOST_REDIRECTS} URLs; send them")
    return tuple(checked_redirect(uri) for uri in redirect_uris)


def _shown(name: str | None) -> str:
    """The name that a client gives itself, in one line that shows all it has."""
    one_line = " ".join(visible(name or "").split())
    return one_line[:_LONGEST_NAME] or "A program without a name"
