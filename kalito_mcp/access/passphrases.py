"""The passphrase with which an owner signs in. Only what scrypt makes of it is stored.

Source of the parameters: OWASP, Password Storage Cheat Sheet (32 MiB, p = 3).
"""

import secrets
from collections.abc import Sequence
from dataclasses import replace
from hashlib import scrypt
from hmac import compare_digest
from typing import Final
from unicodedata import normalize

import anyio
import anyio.to_thread

from kalito_mcp.access.attempts import AttemptLimiter
from kalito_mcp.access.users import check_user
from kalito_mcp.domain.sign_in import Passphrase
from kalito_mcp.errors import InvalidInput
from kalito_mcp.ports.clock import Clock
from kalito_mcp.ports.store import Store, WriteTransaction
from kalito_mcp.runtime.acting import acting_as_host

LEAST_CHARS: Final = 12
MOST_BYTES: Final = 1_024
COST: Final = 1 << 15
"""Of scrypt, with blocks of 8 and three rounds."""
_SALT_BYTES: Final = 16
_HASH_BYTES: Final = 32
_MOST_MEMORY: Final = 1 << 28
_AT_ONCE: Final = 2
"""How many are computed at once: each takes 32 MiB and a fifth of a second."""


class Passphrases:
    """The passphrases of all owners of a database."""

    def __init__(self, store: Store, clock: Clock, limiter: AttemptLimiter) -> None:
        self._store = store
        self._clock = clock
        self._limiter = limiter
        self._at_once: anyio.CapacityLimiter | None = None

    async def set(self, owner: str, passphrase: str, *, sign_out: bool = False) -> Sequence[str]:
        """Store an owner's passphrase instead of the one before, and with `sign_out` revoke all that signed in before.

        The ids of the consents that were revoked.

        Raises:
            InvalidInput: the passphrase is too short or too long, or the owner is not acceptable.
        """
        await check_user(self._store, owner)
        if len(_plain(passphrase)) < LEAST_CHARS:
            raise InvalidInput(
                f"the passphrase is too short; use at least {LEAST_CHARS} characters, such as five words"
            )
        if len(_plain(passphrase).encode("utf-8", "surrogatepass")) > MOST_BYTES:
            raise InvalidInput(f"the passphrase is too long; use at most {MOST_BYTES:,} bytes")
        made = _new()
        kept = replace(made, hash=await self._hash(passphrase, made))

        async def put(transaction: WriteTransaction) -> Sequence[str]:
            now_ms = self._clock.now_ms()
            await transaction.sign_in.put_passphrase(owner, kept, now_ms=now_ms)
            return await transaction.sign_in.revoke_grants(owner, now_ms=now_ms) if sign_out else ()

        with acting_as_host("set_passphrase", owner):
            return await self._store.write(put)

    async def has_any(self) -> bool:
        """Whether any owner can sign in."""
        return await self._store.read(lambda view: view.sign_in.has_passphrases())

    async def check(self, owner: str, passphrase: str, *, address: str) -> bool:
        """Count an attempt, then say whether this is the owner's passphrase. Takes as long for an owner without a
        passphrase.

        If it is, what the owner mistyped before is forgotten.

        Raises:
            TooManyAttempts: the owner or the address has to wait; the passphrase was not looked at.
        """
        before = await self._limiter.count_login(owner, address)
        stored = await self._store.read(lambda view: view.sign_in.passphrase(owner))
        # Cut to bound the work. Its length is not checked: a passphrase that nobody can have chosen takes as long.
        given = await self._hash(passphrase[:MOST_BYTES], stored or _new())
        if stored is None or not compare_digest(given, stored.hash):
            return False
        await self._limiter.forgive_login(owner, address, before)
        return True

    async def _hash(self, passphrase: str, how: Passphrase) -> bytes:
        if self._at_once is None:
            self._at_once = anyio.CapacityLimiter(_AT_ONCE)

        def compute() -> bytes:
            return scrypt(
                _plain(passphrase).encode("utf-8", "surrogatepass"),
                salt=how.salt,
                n=how.n,
                r=how.r,
                p=how.p,
                maxmem=_MOST_MEMORY,
                dklen=_HASH_BYTES,
            )

        return await anyio.to_thread.run_sync(compute, limiter=self._at_once)


def _new() -> Passphrase:
    return Passphrase(secrets.token_bytes(_SALT_BYTES), b"", n=COST, r=8, p=3)


def _plain(passphrase: str) -> str:
    """The same text from every keyboard: an accent may be typed as one character or as two."""
    return normalize("NFC", passphrase)
