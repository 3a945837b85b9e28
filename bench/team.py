"""What the memory of a team costs on PostgreSQL, next to the same memory in a SQLite file. Without vectors.

Both are filled through the storage layer with the same records of many owners, whose numbers follow Zipf's law: the
biggest has 12 %. An owner's sessions have 45 messages and 3 summaries; the sessions of all owners are mixed. Then both
answer the same calls, in blocks that take turns. All figures are milliseconds of processor time a call: `worker` is
this process, `server` PostgreSQL with all of its processes. A block includes what its calls leave to the background.

- `search` has five words that were said; `context` is of any of the owner's sessions, uncached; `context_with_query`
  also searches.
- `message` is one of messages in a row with everything that they owe: pins, summaries, and the terms of the index;
  `message_alone` is one that comes when that of the one before is done.
- `first` calls are the first of each owner, for which the process reads what it keeps for later ones. Then `busiest`
  calls are of the biggest owner, and those of `any` of each as often as it has records.
- `filled` is a record of the first filling; `imported` are messages that come in batches of 1,000, with all they owe.

`round_trips` are those of a call of the biggest owner, the median of eleven. PostgreSQL runs with `fsync`, autovacuum
and 256 MB of shared buffers. The filling takes minutes, and months in life, in which autovacuum would come: so a VACUUM
runs ten times in between, and counts as a cost.
"""

import random
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch
from urllib.parse import urlsplit

import anyio
import anyio.lowlevel
import asyncpg

from bench.corpus import START_MS, Corpus
from bench.filler import NEVER, SUMMARY_TEXTS, WINDOW, message_draft, summary_draft
from bench.process_tree import cpu_s
from bench.report import emit, options, progress
from bench.stores import new_address, server
from kalito_mcp.config.settings import Settings
from kalito_mcp.contexts.cache import CachePolicy
from kalito_mcp.domain.records import NewMessage, Role
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import SearchRequest
from kalito_mcp.memory import Memory
from kalito_mcp.ports.embedder import VectorPolicy
from kalito_mcp.ports.store import OpenedStore
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.postgres.database import PostgresStore
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.upkeep.answer_log import UsagePolicy
from kalito_mcp.wiring import memory_over
from tests.postgres import SUPERUSER, Server, connected

TARGETS: Final = {
    "search_ratio": 1.6,
    "context_ratio": 1.6,
    "message_ms": 4.0,
    "round_trips": {"search": 6, "message": 8},
    "imported_per_s": 5_000,
    "bytes_per_text_byte": 8.0,
}
SERVER_SETTINGS: Final = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "autovacuum": "on",
    "shared_buffers": "256MB",
}
"""Of the PostgreSQL that is measured: as in earnest, where those of the tests are as for tests."""
SELECT_BIGGEST: Final = """
SELECT relname::text, pg_table_size(relid), pg_indexes_size(relid), n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables
ORDER BY pg_total_relation_size(relid) DESC LIMIT 7
"""
_EXPONENT: Final = 0.79
"""With 100 owners, the biggest has 12 % then."""
_WINDOWS: Final = 3
"""Of a session. With four summaries it would owe one of them, and PostgreSQL would make all of these meanwhile."""

_SESSION: Final = _WINDOWS * (WINDOW + 1)
_WORDS: Final = 5
_BLOCK: Final = 50
_IMPORTED: Final = 1_000
_SETTINGS: Final = replace(
    Settings(),
    vectors=VectorPolicy(embedder="none"),
    cache=CachePolicy(ttl_s=0),
    usage=UsagePolicy(write_after_s=NEVER),
)

Call = Callable[["Side", str, int], Awaitable[object]]
TEXTS: Final = list(Corpus(seed=2).texts(2_000))


@dataclass(slots=True)
class Cost:
    """Seconds of processor time of calls."""

    calls: int = 0
    worker_s: float = 0.0
    server_s: float = 0.0

    def figures(self) -> dict[str, float]:
        """Milliseconds a call."""
        worker, of_server = (1000 * one / max(1, self.calls) for one in (self.worker_s, self.server_s))
        return {"worker": worker, "server": of_server, "both": worker + of_server}


@dataclass(slots=True)
class Side:
    """One of the two memories."""

    store: OpenedStore
    memory: Memory
    process_id: int | None
    """Of the server."""
    said: Mapping[str, list[str]]
    """Of each owner, a text of each session."""
    costs: dict[str, Cost] = field(default_factory=dict)

    def of(self, owner: str) -> Memory:
        """The memory of an owner."""
        return self.memory.of_owner(owner)

    def session(self, owner: str, number: int) -> str:
        """One of the owner's sessions."""
        return f"{owner}-{number % len(self.said[owner])}"

    def query(self, owner: str, number: int) -> str:
        """The longest words of something that was said in one of the owner's sessions."""
        words = set(self.said[owner][number % len(self.said[owner])].lower().replace(".", "").split())
        return " ".join(sorted(words, key=lambda word: (-len(word), word))[:_WORDS])

    async def idle(self) -> None:
        """Do everything that calls have left to the background."""
        await self.memory.settled()
        await self.store.maintenance.tidy()

    @asynccontextmanager
    async def counted(self, name: str, calls: int) -> AsyncIterator[None]:
        """Add the cost of a block, and of what it leaves to the background, to this name."""
        cost = self.costs.setdefault(name, Cost())
        of_server, worker = self._server_s(), time.process_time()
        yield
        await self.idle()
        cost.worker_s += time.process_time() - worker
        cost.server_s += self._server_s() - of_server
        cost.calls += calls

    def _server_s(self) -> float:
        return 0.0 if self.process_id is None else cpu_s(self.process_id) or 0.0


def sizes(records: int, owners: int) -> dict[str, int]:
    """The number of sessions of each owner, the biggest first."""
    weights = [(rank + 1) ** -_EXPONENT for rank in range(owners)]
    return {
        f"owner-{rank}": max(1, round(records * weight / sum(weights) / _SESSION))
        for rank, weight in enumerate(weights)
    }


async def fill(
    store: OpenedStore, sessions: Mapping[str, int], vacuum: Callable[[], Awaitable[None]]
) -> tuple[int, dict[str, list[str]]]:
    """Write the sessions of all owners, mixed, and vacuum ten times. The bytes of their texts, and of each owner a text
    of each session."""
    corpus, text_bytes = Corpus(), 0
    said: dict[str, list[str]] = {owner: [""] * count for owner, count in sessions.items()}
    order = [(owner, number) for owner, count in sessions.items() for number in range(count)]
    random.Random(1).shuffle(order)
    for place, (owner, number) in enumerate(order):
        texts = list(corpus.texts(_WINDOWS * WINDOW))
        summaries = [" ".join(texts[at : at + SUMMARY_TEXTS]) for at in range(0, len(texts), WINDOW)]
        text_bytes += sum(map(len, texts)) + sum(map(len, summaries))
        said[owner][number] = summaries[0]
        first = place * _SESSION
        drafts = [message_draft(text, first + at) for at, text in enumerate(texts)]
        async with store.transaction() as transaction:
            scope = Scope(owner=owner, session=f"{owner}-{number}")
            session = await ensure_session(transaction.sessions, scope, now_ms=START_MS)
            await transaction.conversations.append_messages(session, drafts, now_ms=START_MS)
            await transaction.sessions.set_pinned_seq(session, NEVER)
            await transaction.sessions.set_observed_seq(session, NEVER)
            made = [summary_draft(text, session.id, window, first) for window, text in enumerate(summaries)]
            await transaction.conversations.add_summaries(session, made)
        if place % 100 == 0:
            await store.maintenance.tidy()
        if place * 10 // len(order) != (place + 1) * 10 // len(order):
            await vacuum()
            progress(f"team: {place + 1} of {len(order)} sessions")
    await store.maintenance.tidy()
    return text_bytes, said


async def search(side: Side, owner: str, number: int) -> None:
    """Search with five words."""
    await side.of(owner).search_memory(SearchRequest(side.query(owner, number), k=10))


async def context(side: Side, owner: str, number: int) -> None:
    """Build a context of a session."""
    await side.of(owner).build_context(side.session(owner, number))


async def context_with_query(side: Side, owner: str, number: int) -> None:
    """Build one for a query."""
    await side.of(owner).build_context(side.session(owner, number), query=side.query(owner, number + 1))


async def message(side: Side, owner: str, number: int) -> None:
    """Record a message. What it owes is done in the background."""
    role = (Role.USER, Role.ASSISTANT)[number % 2]
    await side.of(owner).record_messages(f"{owner}-live", [NewMessage(role, TEXTS[number % len(TEXTS)])])


async def message_alone(side: Side, owner: str, number: int) -> None:
    """Record a message, and wait until everything is done that it owes."""
    await message(side, owner, number)
    await side.memory.settled()


async def imported(side: Side, owner: str, number: int) -> None:
    """Record a batch."""
    texts = TEXTS[:_IMPORTED] if number % 2 else TEXTS[_IMPORTED:]
    messages = [NewMessage((Role.USER, Role.ASSISTANT)[at % 2], text) for at, text in enumerate(texts)]
    await side.of(owner).record_messages(f"{owner}-imported-{number}", messages)


KINDS: Final[Mapping[str, Call]] = {
    "search": search,
    "context": context,
    "context_with_query": context_with_query,
    "message": message,
    "message_alone": message_alone,
}


async def compare(sides: Sequence[Side], name: str, call: Call, owners: Sequence[str], first: int) -> None:
    """Let both make a call for each of these owners, block by block."""
    for start in range(0, len(owners), _BLOCK):
        block = owners[start : start + _BLOCK]
        for side in sides:
            async with side.counted(name, len(block)):
                for number, owner in enumerate(block, first + start):
                    await call(side, owner, number)


async def round_trips(side: Side, owner: str) -> dict[str, int]:
    """The median of the round trips of eleven calls of each kind: a chore in the background may add to some."""
    sent: list[str] = []
    of_class = asyncpg.Connection
    figures: dict[str, int] = {}

    def noting(name: str) -> Any:
        method = getattr(of_class, name)

        async def noted(self: asyncpg.Connection, query: Any, *arguments: Any, **options: Any) -> Any:
            if name != "execute" or not arguments:  # with arguments, `execute` calls `_execute`
                sent.append(str(query))
            return await method(self, query, *arguments, **options)

        return patch.object(of_class, name, noted)

    calls = {name: KINDS[name] for name in KINDS if name != "message_alone"}
    with noting("execute"), noting("_execute"), noting("_executemany"):
        for name, call in calls.items():
            counts = []
            for number in range(11):
                await side.idle()
                sent.clear()
                await call(side, owner, 700_000 + number)
                counts.append(len(sent))
            figures[name] = int(statistics.median(counts))
            progress("\n".join([f"team: {name} {counts}", *(" ".join(one.split())[:150] for one in sent)]))
    return figures


async def measure(folder: Path, *, records: int, owners: int, calls: int, kinds: Sequence[str]) -> dict[str, Any]:
    """The figures of both."""
    sessions = sizes(records, owners)
    on = server(**SERVER_SETTINGS)
    address = await new_address(on, folder / "server")
    assert address.server is not None
    process_id = None if on.process is None else on.process.pid
    figures: dict[str, Any] = {
        name: _SESSION * of(sessions.values()) for name, of in (("records", sum), ("biggest", max))
    }
    async with AsyncExitStack() as stack:
        sides: dict[str, Side] = {}
        for name in ("sqlite", "postgres"):
            store: OpenedStore
            if name == "sqlite":
                store = await SqliteStore.open(folder / "memory.db")
            else:
                store = await PostgresStore.open(address.server.url, direct_url=address.server.direct_url)
            stack.push_async_callback(store.close)
            memory = await stack.enter_async_context(
                memory_over(store, replace(_SETTINGS, database=replace(address, prefix=folder / name)))
            )
            sides[name] = side = Side(store, memory, process_id if name == "postgres" else None, {})
            async with side.counted("filled", figures["records"]):
                vacuum = partial(_vacuum, on, address.server.url) if name == "postgres" else anyio.lowlevel.checkpoint
                text_bytes, side.said = await fill(store, sessions, vacuum)
        await _vacuum(on, address.server.url, "ANALYZE")
        figures["bytes_per_text_byte"] = {
            "sqlite": (folder / "memory.db").stat().st_size / text_bytes,
            "postgres": await _database_bytes(on, address.server.url, text_bytes) / text_bytes,
        }
        both = list(sides.values())
        drawn = random.Random(3).choices(list(sessions), list(sessions.values()), k=calls)
        for name in kinds:
            call = KINDS[name]
            await compare(both, f"{name}, first", call, [*sessions], 0)
            for of, asked in (("busiest", ["owner-0"] * calls), ("any", drawn)):
                await compare(both, f"{name}, {of}", call, asked, 1_000 if of == "any" else 500_000)
                progress(f"team: {name}, {of}: {_beside(sides, f'{name}, {of}')}")
        if "message" in kinds:
            await compare(both, "imported", imported, ["owner-1"] * max(1, calls // 50), 0)
            for side in both:
                side.costs["imported"].calls *= _IMPORTED
        figures["round_trips"] = await round_trips(sides["postgres"], "owner-0")
    return {**figures, **{name: _beside(sides, name) for name in both[0].costs}, "targets": TARGETS}


def _beside(sides: Mapping[str, Side], name: str) -> dict[str, Any]:
    """The costs of both, and the second by the first."""
    figures: dict[str, Any] = {of: side.costs[name].figures() for of, side in sides.items()}
    if name in ("filled", "imported"):
        figures["per_s"] = {of: 1000 / figures[of]["both"] for of in sides}
    return {**figures, "ratio": figures["postgres"]["both"] / figures["sqlite"]["both"]}


async def _vacuum(on: Server, url: str, also: str = "") -> None:
    async with connected(database_name(url), SUPERUSER, on) as connection:
        await connection.execute(f"VACUUM {also}")
        await connection.execute("CHECKPOINT")


async def _database_bytes(on: Server, url: str, text_bytes: int) -> int:
    async with connected(database_name(url), SUPERUSER, on) as connection:
        for name, table, indexes, updated, hot in await connection.fetch(SELECT_BIGGEST):
            progress(
                f"team: {name}: {table / text_bytes:.2f} and indexes {indexes / text_bytes:.2f} times the text, "
                f"{updated} rows updated, {hot} in their block"
            )
        return int(await connection.fetchval("SELECT pg_database_size(current_database())"))


def database_name(url: str) -> str:
    """The name of the database that a URL names."""
    return urlsplit(url).path.lstrip("/")


def main() -> None:
    """Run the benchmark."""
    parser = options(__doc__)
    parser.add_argument("--records", type=int, help="records (default 100,000; quick 10,000)")
    parser.add_argument("--owners", type=int, default=100, help="owners (default 100)")
    parser.add_argument("--calls", type=int, help="calls of each kind (default 500; quick 100)")
    parser.add_argument("--kinds", nargs="+", choices=[*KINDS], default=[*KINDS], help="kinds of calls (default all)")
    given = parser.parse_args()
    records = given.records or (10_000 if given.quick else 100_000)
    calls = given.calls or (100 if given.quick else 500)
    with tempfile.TemporaryDirectory() as folder:
        emit(
            "team",
            anyio.run(
                lambda: measure(Path(folder), records=records, owners=given.owners, calls=calls, kinds=given.kinds)
            ),
        )


if __name__ == "__main__":
    main()
