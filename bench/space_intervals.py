"""What people may see and do in spaces while calls overlap: when each thing may have held at the earliest and at the
latest. Pure.

Moments are counted by the coordinator: one for each call sent and one for each answer. Something may hold
from the moment at which a call that brings it about is sent. It does not hold after the answer to a call that ends it,
unless a call that brings it about again ran at the same time. Whatever an answer shows, and whatever is done, must have
been allowed at one moment between the two.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from bench.space_workers import CANARY, Answer, Call
from kalito_mcp.domain.spaces import Role, space_of

EXPECTED: Final = frozenset(
    ("RecordNotFound", "RecordErased", "AccessDenied", "Conflict", "RevisionConflict", "InvalidInput", "NotFound")
)
"""The errors that a call may be refused with."""

Span = tuple[int, float]
_NEVER: Final = float("inf")


@dataclass(slots=True)
class May:
    """When something may have held: periods of moments, both ends inclusive."""

    _spans: list[Span] = field(default_factory=list[Span])
    _open: int = 0
    """The number of calls that may bring it about now."""
    _is_certain: bool = False
    """Whether one of them did, in the last of the periods."""
    _brought_at: int = -1
    """When the last of them was answered."""
    _is_over: bool = False

    def open(self, now: int) -> None:
        """A call that may bring it about is sent."""
        self._open += 1
        if not self._spans or self._spans[-1][1] < _NEVER:
            self._spans.append((now, _NEVER))
            self._is_certain = False

    def opened(self, now: int, *, is_done: bool) -> None:
        """That call was answered, or refused."""
        self._open -= 1
        self._brought_at = now
        self._is_certain |= is_done
        if not self._open and (self._is_over or not self._is_certain):
            self._close(now)

    def end(self, now: int, since: int) -> None:
        """A call that ends it, sent at `since`, was answered."""
        if not self._open and self._brought_at < since:
            self._close(now)

    def end_for_good(self, now: int) -> None:
        """The same for one that nothing brings back, not even what runs now."""
        self._is_over = True
        if not self._open:
            self._close(now)

    def within(self, since: int, until: float) -> Iterator[Span]:
        """The parts of a period in which it may have held."""
        for first, last in self._spans:
            if first <= until and since <= last:
                yield max(first, since), min(last, until)

    def _close(self, now: int) -> None:
        if self._spans and self._spans[-1][1] == _NEVER:
            self._spans[-1] = self._spans[-1][0], now


@dataclass(slots=True, eq=False)
class Source:
    """A record of a person: whether it may be there, and in which spaces a copy of it may be."""

    owner: str
    kept: May = field(default_factory=May)
    shared: defaultdict[str, May] = field(default_factory=lambda: defaultdict(May))
    is_erased: bool = False


class Intervals:
    """Follows the calls as they are sent and answered. `judge` says what was not allowed at any moment of the call."""

    def __init__(self) -> None:
        self._now = 0
        self._sent: dict[int, tuple[int, list[May]]] = {}
        """When each call was sent, and what it may bring about."""
        self._new: dict[int, Source] = {}
        self._by_word: defaultdict[str, set[Source]] = defaultdict(set)
        self._own: dict[str, Source] = {}
        self._copies: dict[str, tuple[str, Source]] = {}
        self._roles: defaultdict[tuple[str, str, Role], May] = defaultdict(May)

    def send(self, call: Call) -> None:
        """Note a call that is sent now."""
        self._now += 1
        brings = self._brings(call)
        self._sent[call.number] = self._now, brings
        for one in brings:
            one.open(self._now)
        if call.verb in ("pin", "say"):
            self._by_word[_word(_text_of(call))].add(self._new[call.number])
        elif call.verb == "update" and (source := self._source(call.arguments[0])) is not None:
            self._by_word[_word(call.arguments[1])].add(source)

    def judge(self, call: Call, answer: Answer) -> list[str]:
        """What is wrong with an answer that came now."""
        self._now += 1
        since, brings = self._sent.pop(call.number)
        faults: list[str] = []
        if answer.error is None:
            faults = list(self._not_allowed(call, answer.found, since))
        elif answer.error not in EXPECTED:
            faults = [f"error: {answer.error}: {answer.words}"]
        for one in brings:
            one.opened(self._now, is_done=answer.error is None)
        if answer.error is None:
            self._follow(call, answer.found, since)
        return faults

    def erased_words(self) -> list[str]:
        """The canaries of records that were all erased."""
        return [word for word, sources in self._by_word.items() if all(one.is_erased for one in sources)]

    def _source(self, record_id: str) -> Source | None:
        if record_id in self._copies:
            return self._copies[record_id][1]
        return self._own.get(record_id)

    def _brings(self, call: Call) -> list[May]:
        """What a call may bring about."""
        if call.verb in ("pin", "say"):
            source = self._new[call.number] = Source(call.owner)
            return [source.kept]
        if call.verb == "join":
            name, user, role = call.arguments
            return [self._roles[name, user, one] for one in Role if role.includes(one)]
        if call.verb == "share":
            record_id, name = call.arguments
            shared = self._own.get(record_id)
            if shared is not None and shared.owner == call.owner and not shared.is_erased:
                spaces = {one for one, user, _ in self._roles if user == call.owner} if name is None else {name}
                return [shared.shared[one] for one in sorted(spaces)]
        return []

    def _follow(self, call: Call, found: Any, since: int) -> None:
        match call.verb:
            case "pin" | "say":
                self._own[found] = self._new.pop(call.number)
            case "share":
                copy_id, _, _, source_id, name = found
                self._copies.setdefault(copy_id, (name, self._own[source_id]))
            case "purge":
                for one in call.arguments[0]:
                    self._erased(one, since)
            case "join" | "leave" | "remove":
                for may in self._ended(call):
                    may.end(self._now, since)

    def _ended(self, call: Call) -> Iterator[May]:
        """What is over when somebody gets another role or leaves, or a space is removed."""
        name, *rest = call.arguments
        if call.verb == "join":
            user, kept = rest
            yield from (self._roles[name, user, one] for one in Role if not kept.includes(one))
        elif call.verb == "leave":
            yield from (self._roles[name, rest[0], one] for one in Role)
        else:
            yield from (may for (space, _, _), may in self._roles.items() if space == name)
            yield from (one.shared[name] for one in {*self._own.values()} if name in one.shared)

    def _erased(self, record_id: str, since: int) -> None:
        if record_id in self._copies:
            name, source = self._copies[record_id]
            source.shared[name].end(self._now, since)
        elif (erased := self._own.get(record_id)) is not None:
            erased.is_erased = True
            for may in (erased.kept, *erased.shared.values()):
                may.end_for_good(self._now)

    def _not_allowed(self, call: Call, found: Any, since: int) -> Iterable[str]:
        match call.verb:
            case "search" | "context":
                for word, space in found:
                    if not self._may_see(call, word, space, since):
                        yield f"leak: {word} in {space}"
            case "mine":
                for name, role in found:
                    if not self._has_role(call, name, role, since):
                        yield f"leak: {name} as {role}"
            case "share":
                source = self._own.get(call.arguments[0])
                if source is None or source.owner != call.owner:
                    yield "forbidden: it is not theirs"
                elif not self._has_role(call, found[-1], Role.WRITER, since):
                    yield "forbidden: no writer"
            case "get" | "update" | "forget" | "restore" | "revert":
                yield from self._not_reached(call, call.arguments[0], since)
            case "purge":
                for one in call.arguments[0]:
                    yield from self._not_reached(call, one, since)

    def _may_see(self, call: Call, word: str, space: str | None, since: int) -> bool:
        name = space or space_of(call.owner)
        if name is None:
            mine = [one for one in self._by_word.get(word, ()) if one.owner == call.owner]
            return any(any(one.kept.within(since, self._now)) for one in mine)
        held = (
            [(since, self._now)]
            if space is None
            else self._roles[name, call.owner, Role.READER].within(since, self._now)
        )
        sources = [one.shared[name] for one in self._by_word.get(word, ()) if name in one.shared]
        is_limited = call.limits.agent is not None
        return not is_limited and any(any(one.within(*span)) for span in held for one in sources)

    def _has_role(self, call: Call, name: str, role: Role, since: int) -> bool:
        return call.limits.agent is None and any(self._roles[name, call.owner, role].within(since, self._now))

    def _not_reached(self, call: Call, record_id: str, since: int) -> Iterator[str]:
        """What a call on a record must have been allowed to."""
        if record_id in self._copies:
            name, source = self._copies[record_id]
            needed = Role.READER
            if call.verb != "get":
                needed = Role.WRITER if source.owner == call.owner else Role.CURATOR
            if not self._has_role(call, name, needed, since):
                yield f"forbidden: no {needed} of {name}"
        elif (source_of := self._own.get(record_id)) is None or source_of.owner != call.owner:
            yield "forbidden: it is not theirs"
        elif call.verb != "purge" and not any(source_of.kept.within(since, self._now)):
            yield "forbidden: it is erased"


def _text_of(call: Call) -> str:
    return str(call.arguments[0] if call.verb == "pin" else call.arguments[1])


def _word(text: str) -> str:
    return str(CANARY.findall(text)[0])
