"""Limits on attempts to sign in, register and ask. Counted in the database, for all its processes.

Guessing a passphrase gets slower each time: 1 s after the third wrong one, then 2, 4, 8 s, up to a minute for an owner
and a quarter of an hour for an address. An attempt is counted before it is checked, so parallel attempts gain nothing.
An owner waits a minute at most, because anybody can make an owner wait.
"""

from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from kalito_mcp.domain.sign_in import Attempts
from kalito_mcp.domain.zone import DAY_MS
from kalito_mcp.errors import TooManyAttempts
from kalito_mcp.ports.clock import Clock
from kalito_mcp.ports.sign_in import SignInReader, SignInWriter
from kalito_mcp.ports.store import Store, WriteTransaction
from kalito_mcp.safety.addresses import own_network

_FREE: Final = 3
_LONGEST_OF_OWNER_MS: Final = 60_000
_LONGEST_OF_ADDRESS_MS: Final = 900_000
_FORGOTTEN_MS: Final = DAY_MS


@dataclass(frozen=True, slots=True)
class Allowance:
    """`per_caller` attempts of one caller, such as an address, and `in_all` of everybody, in `window_ms`."""

    name: str
    per_caller: int
    in_all: int
    window_ms: int


class AttemptLimiter:
    """Counts attempts by a keyed hash of who makes them: the database has no addresses."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def count_login(self, owner: str, address: str) -> Attempts:
        """Count an attempt to sign in. Returns what was counted of the address before.

        Raises:
            TooManyAttempts: the owner or the address has to wait; nothing was counted.
        """
        subjects = [
            (await self._subject("owner", owner), _LONGEST_OF_OWNER_MS),
            (await self._subject("login", own_network(address) or address), _LONGEST_OF_ADDRESS_MS),
        ]

        async def count(transaction: WriteTransaction) -> Attempts:
            now_ms = self._clock.now_ms()
            known = [await _recent(transaction.sign_in, subject, now_ms) for subject, _ in subjects]
            waits = [
                one.last_at + _pause_ms(one.count, longest) - now_ms
                for one, (_, longest) in zip(known, subjects, strict=True)
            ]
            if max(waits) > 0:
                raise TooManyAttempts(-(-max(waits) // 1_000))
            for one, (subject, _) in zip(known, subjects, strict=True):
                await transaction.sign_in.put_attempts(subject, Attempts(one.count + 1, one.since, now_ms))
            return known[1]

        return await self._store.write(count)

    async def forgive_login(self, owner: str, address: str, before: Attempts) -> None:
        """Forget the owner's wrong attempts, and the address's for this owner. The address's attempts for other owners
        stay, and so does the time from which it waits. `before` is what `count_login` returned."""
        of_owner = await self._subject("owner", owner)
        of_address = await self._subject("login", own_network(address) or address)

        async def forgive(transaction: WriteTransaction) -> None:
            mistyped = await transaction.sign_in.attempts(of_owner)
            await transaction.sign_in.drop_attempts(of_owner)
            found = await transaction.sign_in.attempts(of_address)
            if found is None:
                return
            is_last = found.count == before.count + 1  # nothing else was tried in between
            left = found.count if mistyped is None else found.count - mistyped.count
            if left > 0:
                last_at = before.last_at if is_last else found.last_at
                await transaction.sign_in.put_attempts(of_address, Attempts(left, found.since, last_at))
            else:
                await transaction.sign_in.drop_attempts(of_address)

        await self._store.write(forgive)

    async def count(self, allowance: Allowance, caller: str) -> None:
        """Count an attempt of another kind. `caller` is an address, or the id of a consent.

        Raises:
            TooManyAttempts: there were too many in the window; nothing was counted.
        """
        subjects = [
            (await self._subject(allowance.name, own_network(caller) or caller), allowance.per_caller),
            (await self._subject(allowance.name, "*"), allowance.in_all),
        ]

        async def count(transaction: WriteTransaction) -> None:
            now_ms = self._clock.now_ms()
            for subject, most in subjects:
                one = await _recent(transaction.sign_in, subject, now_ms)
                if now_ms - one.since >= allowance.window_ms:
                    one = Attempts(0, now_ms, now_ms)
                if one.count >= most:
                    raise TooManyAttempts(-(-(one.since + allowance.window_ms - now_ms) // 1_000))
                await transaction.sign_in.put_attempts(subject, Attempts(one.count + 1, one.since, now_ms))

        await self._store.write(count)

    async def _subject(self, kind: str, name: str) -> str:
        key = await self._store.secret()
        return blake2b(f"{kind}\n{name}".encode("utf-8", "surrogatepass"), digest_size=16, key=key).hexdigest()


async def _recent(reader: SignInReader | SignInWriter, subject: str, now_ms: int) -> Attempts:
    """The counts, without old ones. A clock that was set back makes nobody wait for long."""
    found = await reader.attempts(subject)
    if found is None or not 0 <= now_ms - found.last_at < _FORGOTTEN_MS:
        return Attempts(0, now_ms, now_ms)
    return found


def _pause_ms(count: int, longest_ms: int) -> int:
    """How long to wait after this many wrong attempts."""
    return 0 if count < _FREE else int(min(1_000 * 2.0 ** min(count - _FREE, 60), longest_ms))
