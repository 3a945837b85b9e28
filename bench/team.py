"""What the memory of a team costs on PostgreSQL, next to the same memory in a SQLite file. Without vectors.

Both are filled through the storage layer with the same records of many owners, whose numbers follow Zipf's law: the
biggest has 12 %. An owner's sessions have 60 messages and 4 summaries; the sessions of all owners are mixed. Then both
answer the same calls, in blocks that take turns. All figures are milliseconds of processor time a call: `worker` is
this process, `server` PostgreSQL with all of its processes. A block includes what its calls leave to the background.

- `search` has five words; `context` is of any of the owner's sessions, uncached, `context_with_query` also searches.
- `message` is one message with everything that it owes: pins, summaries, and the terms of the index.
- `busiest` calls are of the biggest owner; the others of any, as often as it has records.
- `imported` are messages that come in batches of 1,000, until all that they owe to the index is done.

`round_trips` are those of a call of the biggest owner, the most of ten. PostgreSQL runs with `fsync`, autovacuum and
256 MB of shared buffers; it was vacuumed after it was filled.
"""

import random
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch
from urllib.parse import urlsplit

import anyio
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
_SERVER: Final = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "autovacuum": "on",
    "shared_buffers": "256MB",
}
_EXPONENT: Final = 0.79
"""With 100 owners, the biggest has 12 % then."""
_WINDOWS: Final = 4
_SESSION: Final = _WINDOWS * (WINDOW + 1)
_QUERY: Final = ("rare", "middling", "middling", "common", "common")
_BLOCK: Final = 50
_FLUSHED_S: Final = 0.1
_IMPORTED: Final = 1_000
_SETTINGS: Final = replace(
    Settings(),
    vectors=VectorPolicy(embedder="none"),
    cache=CachePolicy(ttl_s=0),
    usage=UsagePolicy(write_after_s=_FLUSHED_S),
)

Call = Callable[["Side", str, int], Awaitable[object]]
_CORPUS: Final = Corpus(seed=2)
QUERIES: Final = [_CORPUS.query(_QUERY) for _ in range(1_000)]
TEXTS: Final = list(_CORPUS.texts(2_000))


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
    sessions: Mapping[str, int]
    costs: dict[str, Cost] = field(default_factory=dict)

    def of(self, owner: str) -> Memory:
        """The memory of an owner."""
        return self.memory.of_owner(owner)

    async def idle(self) -> None:
        """Do everything that calls have left to the background."""
        await self.memory.settled()
        await anyio.sleep(2 * _FLUSHED_S)
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


async def fill(store: OpenedStore, sessions: Mapping[str, int]) -> tuple[int, int]:
    """Write the sessions of all owners, mixed. The records, and the bytes of their texts."""
    corpus, text_bytes = Corpus(), 0
    order = [(owner, number) for owner, count in sessions.items() for number in range(count)]
    random.Random(1).shuffle(order)
    for place, (owner, number) in enumerate(order):
        texts = list(corpus.texts(_WINDOWS * WINDOW))
        summaries = [" ".join(texts[at : at + SUMMARY_TEXTS]) for at in range(0, len(texts), WINDOW)]
        text_bytes += sum(map(len, texts)) + sum(map(len, summaries))
        first = place * _SESSION
        drafts = [message_draft(text, first + at) for at, text in enumerate(texts)]
        async with store.transaction() as transaction:
            scope = Scope(owner=owner, session=f"{owner}-{number}")
            session = await ensure_session(transaction.sessions, scope, now_ms=START_MS)
            await transaction.conversations.append_messages(session, drafts, now_ms=START_MS)
            await transaction.sessions.set_pinned_seq(session, NEVER)
            await transaction.sessions.set_observed_seq(session, NEVER)
            for window, text in enumerate(summaries):
                await transaction.conversations.add_summary(session, summary_draft(text, session.id, window, first))
        if place % 500 == 0:
            progress(f"team: {place} of {len(order)} sessions")
            await store.maintenance.tidy()
    await store.maintenance.tidy()
    return len(order) * _SESSION, text_bytes


async def search(side: Side, owner: str, number: int) -> None:
    """Search with five words."""
    await side.of(owner).search_memory(SearchRequest(QUERIES[number % len(QUERIES)], k=10))


async def context(side: Side, owner: str, number: int) -> None:
    """Build a context of a session."""
    await side.of(owner).build_context(f"{owner}-{number % side.sessions[owner]}")


async def context_with_query(side: Side, owner: str, number: int) -> None:
    """Build one for a query."""
    session = f"{owner}-{number % side.sessions[owner]}"
    await side.of(owner).build_context(session, query=QUERIES[number % len(QUERIES)])


async def message(side: Side, owner: str, number: int) -> None:
    """Record a message, and do what it owes."""
    role = (Role.USER, Role.ASSISTANT)[number % 2]
    await side.of(owner).record_messages(f"{owner}-live", [NewMessage(role, TEXTS[number % len(TEXTS)])])
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
    """The most round trips of ten calls of each kind, without those of the background."""
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

    calls = {name: call for name, call in KINDS.items() if name != "message"} | {"message": record_alone}
    with noting("execute"), noting("_execute"), noting("_executemany"):
        for name, call in calls.items():
            counts = []
            for number in range(10):
                await side.idle()
                sent.clear()
                await call(side, owner, 700_000 + number)
                counts.append(len(sent))
            figures[name] = max(counts)
            progress("\n".join([f"team: {name} {counts}", *(" ".join(one.split())[:150] for one in sent)]))
    return figures


async def record_alone(side: Side, owner: str, number: int) -> None:
    """Record a message, and leave what it owes to the background."""
    await side.of(owner).record_messages(f"{owner}-live", [NewMessage(Role.USER, TEXTS[number % len(TEXTS)])])


async def measure(folder: Path, *, records: int, owners: int, calls: int) -> dict[str, Any]:
    """The figures of both."""
    sessions = sizes(records, owners)
    on = server(**_SERVER)
    address = await new_address(on, folder / "server")
    assert address.server is not None
    process_id = None if on.process is None else on.process.pid
    figures: dict[str, Any] = {"owners": owners, "biggest": max(sessions.values()) * _SESSION}
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
            sides[name] = side = Side(store, memory, process_id if name == "postgres" else None, sessions)
            async with side.counted("filled", records):
                figures["records"], text_bytes = await fill(store, sessions)
        await _vacuum(on, address.server.url)
        figures["bytes_per_text_byte"] = {
            "sqlite": (folder / "memory.db").stat().st_size / text_bytes,
            "postgres": await _database_bytes(on, address.server.url) / text_bytes,
        }
        both = list(sides.values())
        drawn = random.Random(3).choices(list(sessions), list(sessions.values()), k=calls)
        for name, call in KINDS.items():
            await compare(both, f"warm {name}", call, [*sessions][:20], 0)
            for of, asked in (("busiest", ["owner-0"] * calls), ("any", drawn)):
                await compare(both, f"{name}, {of}", call, asked, 1_000 if of == "any" else 500_000)
                progress(f"team: {name}, {of}: {_beside(sides, f'{name}, {of}')}")
        await compare(both, "imported", imported, ["owner-1"] * max(1, calls // 50), 0)
        figures["round_trips"] = await round_trips(sides["postgres"], "owner-0")
    for side in both:
        side.costs["imported"].calls *= _IMPORTED
    named = [name for name in both[0].costs if not name.startswith("warm")]
    figures |= {name: _beside(sides, name) for name in named}
    figures["imported_per_s"] = {name: 1000 / side.costs["imported"].figures()["both"] for name, side in sides.items()}
    return {**figures, "targets": TARGETS}


def _beside(sides: Mapping[str, Side], name: str) -> dict[str, Any]:
    """The costs of both, and the second by the first."""
    figures: dict[str, Any] = {of: side.costs[name].figures() for of, side in sides.items()}
    return {**figures, "ratio": figures["postgres"]["both"] / figures["sqlite"]["both"]}


async def _vacuum(on: Server, url: str) -> None:
    async with connected(_name(url), SUPERUSER, on) as connection:
        await connection.execute("VACUUM ANALYZE")
        await connection.execute("CHECKPOINT")


async def _database_bytes(on: Server, url: str) -> int:
    async with connected(_name(url), SUPERUSER, on) as connection:
        return int(await connection.fetchval("SELECT pg_database_size(current_database())"))


def _name(url: str) -> str:
    return urlsplit(url).path.lstrip("/")


def main() -> None:
    """Run the benchmark."""
    parser = options(__doc__)
    parser.add_argument("--records", type=int, help="records (default 100,000; quick 10,000)")
    parser.add_argument("--owners", type=int, default=100, help="owners (default 100)")
    parser.add_argument("--calls", type=int, help="calls of each kind (default 500; quick 100)")
    given = parser.parse_args()
    records = given.records or (10_000 if given.quick else 100_000)
    calls = given.calls or (100 if given.quick else 500)
    with tempfile.TemporaryDirectory() as folder:
        emit(
            "team",
            anyio.run(lambda: measure(Path(folder), records=records, owners=given.owners, calls=calls)),
        )


if __name__ == "__main__":
    main()
