"""The campaign of spaces: fifty people share, change and erase in ten spaces, come, go and get other roles, at random.

Processes that each have the memory open do what people ask, several calls at a time. In the first part, calls that run
at the same time touch different things, so a model (`bench.space_model`) knows the answer of each: what is found, to
the last record and word, what is refused, and with which error. In the second part a few people at a time do as they
like in a few spaces, also at the same moment. At its end everybody erases all that they had, and no space has a copy
left.
"""

import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final

import anyio

from bench.ledger import Violations
from bench.report import emit, options, progress
from bench.space_calls import NOTHING, Plan, Touched
from bench.space_model import SpaceModel
from bench.space_workers import Answer, Call, Workers
from kalito_mcp.config.settings import Settings
from kalito_mcp.ports.embedder import VectorPolicy
from kalito_mcp.runtime.database_address import address_of
from tests.postgres import OWNER, lay_template, new_database, new_server

_CALLS_AT_ONCE: Final = 2
"""Of each process."""
_REPORTED: Final = 1_000
_BURST: Final = 60
_PEOPLE: Final = 7
_PLACES: Final = 2
"""How many overlapping calls are of the same people and spaces, and how many those are."""
_OVERLAPPING: Final = 0.2
"""The share of the second part."""
_RACES: Final = 0.2
"""How many draws of the second part are three calls about one record."""
_REFUSALS: Final = frozenset(
    ("RecordNotFound", "RecordErased", "AccessDenied", "Conflict", "RevisionConflict", "InvalidInput", "NotFound")
)
"""The errors that a call that overlaps may be refused with."""
SETTINGS: Final = Settings(vectors=VectorPolicy(embedder="none"))


@dataclass(frozen=True, slots=True)
class Size:
    """How large a campaign is. A fifth of the operations overlap."""

    operations: int
    processes: int
    users: int = 50
    spaces: int = 10
    seed: int = 1


class Running:
    """The calls that run, and what each touches."""

    def __init__(self) -> None:
        self._calls: dict[int, tuple[Call, Touched]] = {}
        self._read: Counter[str] = Counter()
        self._changed: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._calls)

    def admits(self, touched: Touched) -> bool:
        """Whether a call that touches this would meet none of them."""
        read, changed = touched
        return not any(self._changed[one] for one in read | changed) and not any(self._read[one] for one in changed)

    def begin(self, call: Call, touched: Touched) -> None:
        """Note a call that begins."""
        self._calls[call.number] = call, touched
        self._read.update(touched[0])
        self._changed.update(touched[1])

    def end(self, number: int) -> Call:
        """Note that a call ended; the call."""
        call, (read, changed) = self._calls.pop(number)
        self._read.subtract(read)
        self._changed.subtract(changed)
        return call


class Part(ABC):
    """Sends calls, and has each answer judged."""

    name: ClassVar[str]

    def __init__(self, workers: Workers, size: Size, violations: Violations) -> None:
        self._workers = workers
        self._at_once = _CALLS_AT_ONCE * size.processes
        self._violations = violations
        self._model = SpaceModel()
        self._plan = Plan(self._model, self.name, size.seed, users=size.users, spaces=size.spaces)
        self._running = Running()
        self.counts: Counter[str] = Counter()

    @abstractmethod
    def run(self, operations: int) -> None:
        """Do this many calls."""

    @abstractmethod
    def _judged(self, call: Call, answer: Answer) -> Iterable[str]: ...

    def _send(self, call: Call, touched: Touched = NOTHING) -> None:
        self._running.begin(call, touched)
        self._workers.send(call)

    def _follow(self, most: int = 0) -> None:
        """Judge answers until at most this many calls run."""
        while len(self._running) > most:
            for answer in self._workers.wait():
                call = self._running.end(answer.number)
                self.counts[call.verb if answer.error is None else f"{call.verb} refused"] += 1
                for fault in self._judged(call, answer):
                    self._violations.add(f"{call.verb} {fault.partition(':')[0]}", f"{call}: {fault}")
                    progress(f"spaces: {call}: {fault}")


class Ordered(Part):
    """The part in which the model knows every answer."""

    name = "ordered"

    def run(self, operations: int) -> None:
        for call in self._plan.begin():
            self._send(call)
            self._follow()
        for done in range(operations):
            call = self._plan.next()
            while not self._running.admits(touched := self._plan.touched(call)):
                self._follow(len(self._running) - 1)
            self._send(call, touched)
            self._follow(self._at_once - 1)
            if done % _REPORTED == 0:
                progress(f"spaces: {done} calls, {dict(self._violations.counts)}")
        self._follow()

    def _judged(self, call: Call, answer: Answer) -> Iterable[str]:
        return self._model.judge(call, answer)


class Free(Part):
    """The part in which calls overlap."""

    name = "overlapping"

    def __init__(self, workers: Workers, size: Size, violations: Violations) -> None:
        super().__init__(workers, size, violations)
        self._own: defaultdict[str, list[str]] = defaultdict(list)
        """The ids of the records of each person."""
        self._is_over = False

    def run(self, operations: int) -> None:
        users, spaces = self._plan.users, self._plan.spaces
        for call in self._plan.begin():
            self._send(call)
            self._follow()
        for done in range(operations):
            if done % _BURST == 0:
                drawn = self._plan.chance.sample
                self._plan.focus(drawn(users, min(_PEOPLE, len(users))), drawn(spaces, min(_PLACES, len(spaces))))
                progress(f"spaces, overlapping: {done} calls, {dict(self._violations.counts)}")
            is_race = self._plan.chance.random() < _RACES
            for call in self._plan.race() if is_race else [self._plan.next()]:
                self._send(call)
            self._follow(self._at_once - 1)
        self._follow()
        self._plan.focus(users, spaces)
        for end in (self._plan.purges(self._own), self._plan.removals()):
            for call in end:
                self._send(call)
                self._follow(self._at_once - 1)
            self._follow()
            self._is_over = True

    def _judged(self, call: Call, answer: Answer) -> Iterable[str]:
        if answer.error is not None:
            return [] if answer.error in _REFUSALS else [f"error: {answer.error}: {answer.words}"]
        self._model.judge(call, answer)  # it is only a guess here, by which calls are drawn
        if call.verb in ("pin", "say"):
            self._own[call.owner].append(answer.found)
        return [f"left: {answer.found} copies of what was erased"] if self._is_over and answer.found else []


@contextmanager
def on_file() -> Iterator[Settings]:
    """Settings of a memory in a file."""
    with tempfile.TemporaryDirectory() as folder:
        yield replace(SETTINGS, database=address_of(Path(folder) / "memory.db"))


@contextmanager
def on_server() -> Iterator[Settings]:
    """Settings of a memory on a PostgreSQL of its own."""
    server = new_server()
    lay_template(server)
    name = anyio.run(new_database, server)
    with tempfile.TemporaryDirectory() as folder:
        address = address_of(server.url(name), server.url(name, OWNER))
        yield replace(SETTINGS, database=replace(address, prefix=Path(folder) / "memory"))


STORES: Final[dict[str, Callable[[], AbstractContextManager[Settings]]]] = {"postgres": on_server, "sqlite": on_file}


def campaign(store: str, size: Size) -> dict[str, Any]:
    """Run the campaign. Returns the figures."""
    violations = Violations()
    overlapping = int(_OVERLAPPING * size.operations)
    with STORES[store]() as settings, Workers(settings, size.processes) as workers:
        started = time.perf_counter()
        ordered, free = (kind(workers, size, violations) for kind in (Ordered, Free))
        ordered.run(size.operations - overlapping)
        free.run(overlapping)
        took_s = time.perf_counter() - started
    return {
        "store": store,
        **asdict(size),
        "operations_per_s": size.operations / took_s,
        "calls": dict(sorted(ordered.counts.items())),
        "overlapping_calls": dict(sorted(free.counts.items())),
        **violations.figures(),
        "took_s": took_s,
    }


def main() -> int:
    """Run the campaign. The exit code is 1 if it found a violation."""
    parser = options(__doc__)
    parser.add_argument("--store", choices=STORES, action="append", help="default both")
    parser.add_argument("--operations", type=int, help="default 100,000 on PostgreSQL, a tenth on SQLite; quick 1000")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    failed = 0
    for store in given.store or STORES:
        is_file = store == "sqlite"
        usual = 1_000 if given.quick else 10_000 if is_file else 100_000
        size = Size(given.operations or usual, processes=2 if is_file else 4, seed=given.seed)
        figures = campaign(store, size)
        emit("spaces", figures)
        failed |= bool(figures["violations"])
    return failed


if __name__ == "__main__":
    sys.exit(main())
