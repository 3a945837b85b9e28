"""Notes what the memory gave back: how often each record was used, and what each answer was made of. Writes in the
background, never during a read.

Notes are collected in memory and written together some seconds after the first, those of an owner in one transaction,
because each write empties what contexts keep in memory. A crash may lose a few notes; it never loses a record.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import anyio

from kalito_mcp.domain.given import KEPT_DAYS, MOST_KEPT, OF_HOOKS, GivenEntry
from kalito_mcp.domain.scope import DEFAULT_AGENT, Scope
from kalito_mcp.domain.time import DAY_MS
from kalito_mcp.domain.validation import Policy
from kalito_mcp.errors import StorageError
from kalito_mcp.ports.clock import Clock
from kalito_mcp.ports.store import Store, WriteTransaction
from kalito_mcp.safety.redaction import redact


@dataclass(frozen=True, slots=True)
class UsagePolicy(Policy):
    """Which records were used and given is noted if `enabled`, and written `write_after_s` seconds after the first."""

    enabled: bool = True
    write_after_s: float = 10.0


class AnswerLog:
    """Collects notes and writes them in one task."""

    def __init__(self, store: Store, clock: Clock, policy: UsagePolicy) -> None:
        self._store = store
        self._clock = clock
        self._policy = policy
        self._uses: Counter[tuple[str, str]] = Counter()
        self._given: list[tuple[Scope, GivenEntry]] = []
        self._waiting = anyio.Event()
        self.noted = 0
        """How often answers were noted, or such notes were taken back, since the memory was opened."""

    def used(self, owner: str, record_ids: Iterable[str]) -> None:
        """Count one use of each of the owner's records. Returns at once."""
        if not self._policy.enabled:
            return
        self._uses.update((owner, record_id) for record_id in record_ids)
        if self._uses:
            self._waiting.set()

    def gave(self, scope: Scope, entry: GivenEntry) -> None:
        """Note what was given to a caller with the owner, the agent, if one was named, and the limits of the scope.
        Returns at once."""
        if self._policy.enabled:
            self.noted += 1
            self._keep([(scope, entry)])
            self._waiting.set()

    def take_back(self, owner: str, sessions: Collection[str], record_ids: Set[str]) -> None:
        """Forget what hooks were given of these records in one of these sessions, and the use of it, unless that is
        written already: nobody waited for it. Returns at once."""
        kept: list[tuple[Scope, GivenEntry]] = []
        for scope, entry in self._given:
            is_in = scope.owner == owner and entry.kind in OF_HOOKS and entry.session_id in sessions
            if is_in and not record_ids.isdisjoint(entry.record_ids):
                self._uses -= Counter((owner, record_id) for record_id in set(entry.record_ids))
                self.noted += 1
            else:
                kept.append((scope, entry))
        self._given = kept

    async def run(self) -> None:
        """Write notes until cancelled. Call `flush` afterwards to write the rest."""
        while True:
            await self._waiting.wait()
            await anyio.sleep(self._policy.write_after_s)
            await self.flush()

    async def flush(self) -> None:
        """Write the notes now, those of each owner by themselves. What cannot be written is kept for the next flush."""
        if self._waiting.is_set():  # otherwise `run` may be waiting on this event for the next note
            self._waiting = anyio.Event()
        uses, self._uses = self._uses, Counter()
        given, self._given = self._given, []
        left: set[str] = set()
        # Cancelled halfway, the notes would be neither kept nor written.
        with anyio.CancelScope(shield=True):
            for owner in dict.fromkeys([*(owner for owner, _ in uses), *(scope.owner for scope, _ in given)]):
                theirs = {record_id: count for (whose, record_id), count in uses.items() if whose == owner}
                try:
                    await self._write(owner, theirs, [one for one in given if one[0].owner == owner])
                except StorageError:
                    left.add(owner)
        self._uses.update({of: count for of, count in uses.items() if of[0] in left})
        given, self._given = self._given, [one for one in given if one[0].owner in left]
        self._keep(given)

    async def _write(self, owner: str, uses: Mapping[str, int], given: Sequence[tuple[Scope, GivenEntry]]) -> None:
        """Write an owner's notes in a transaction. Of somebody who has nothing and is in no space, such as after being
        erased, none."""
        now_ms = self._clock.now_ms()

        async def note(transaction: WriteTransaction) -> None:
            if not await transaction.people.has(owner):
                return
            await transaction.records.count_uses(owner, uses, used_at=now_ms)
            if given:
                placed = await _placed(transaction, given)
                await transaction.given.add(owner, placed, since_ms=now_ms - KEPT_DAYS * DAY_MS, most=MOST_KEPT)

        await self._store.note(note)

    def _keep(self, given: list[tuple[Scope, GivenEntry]]) -> None:
        """Keep what is to be written: no more than the store would."""
        self._given += given
        del self._given[:-MOST_KEPT]


async def _placed(transaction: WriteTransaction, given: Sequence[tuple[Scope, GivenEntry]]) -> Sequence[GivenEntry]:
    """The entries with their agents, and with the sessions that the callers meant, if there are such within the limits.
    Hooks add to the first prompt of a session before it is recorded. Names that only the caller knows are stored
    without secrets."""
    asked: dict[Scope, dict[str, None]] = {}
    for scope, entry in given:
        if entry.session_id is not None:
            asked.setdefault(scope, {}).update(dict.fromkeys(_names(scope, entry.session_id)))
    known = {scope: await transaction.sessions.named(scope, list(names)) for scope, names in asked.items()}
    placed: list[GivenEntry] = []
    for scope, entry in given:
        agent = redact(scope.agent or scope.limits.agent or DEFAULT_AGENT).text
        session_id = None
        if entry.session_id is not None:
            names = _names(scope, entry.session_id)
            session = next((known[scope][one] for one in names if one in known[scope]), None)
            if session is not None:
                session_id, agent = session.id, session.agent
            elif (
                entry.kind in OF_HOOKS and await transaction.sessions.get(Scope(scope.owner, session=names[-1])) is None
            ):
                session_id = redact(names[-1]).text
        client = entry.client and redact(entry.client).text
        placed.append(replace(entry, session_id=session_id, agent=agent, client=client))
    return placed


def _names(scope: Scope, session_id: str) -> tuple[str, str]:
    """The ids that a session may have that a caller names so."""
    return session_id, scope.limits.own_session(session_id)
