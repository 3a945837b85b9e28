"""What a search costs, by the size of the memory: five-word queries beside plain FTS5 ranking the same texts.

`fts5` is a table of the texts asked for any of the words, best 10 by its own bm25(), in the same process and in
turn with ours. `mixed` queries have a rare word, two middling and two common ones; `common` have five words that
one record of twenty holds; `function` have nothing but words like "the". `narrowed` searches one session, one agent
or one time in memories of many; `hits_per_query` says whether it found the ten that there are. One record of
sixteen is a summary. The databases are filled through the storage layer; each measurement runs in a fresh process,
so that its memory is its own.
"""

import multiprocessing
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import anyio

from bench.corpus import START_MS, Corpus
from bench.report import emit, latency, options, peak_rss_mb, progress
from kalito_mcp.domain.analysis import index_terms, query_terms
from kalito_mcp.domain.records import Role, SummaryMethod
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import SearchFilters
from kalito_mcp.engine.auto_pins import AutoPinPolicy
from kalito_mcp.engine.budget import ContextPolicy
from kalito_mcp.engine.threshold import SummaryWindowPolicy
from kalito_mcp.memory import Memory
from kalito_mcp.ports.records import MessageDraft, SummaryDraft
from kalito_mcp.retrieval.search import SearchRequest
from kalito_mcp.settings import Settings
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.wiring import open_memory

TARGET_P50_MS: Final = 10.0
_NEVER: Final = 10**9
# Nothing is owed: a fresh process would begin to summarise the whole memory while it is measured.
_QUIET: Final = replace(
    Settings(),
    context=ContextPolicy(summaries=_NEVER),
    window=SummaryWindowPolicy(threshold=_NEVER, dense_threshold=_NEVER),
    pins=AutoPinPolicy(enabled=False),
)
_WINDOWS, _WINDOW, _SUMMARY_TEXTS = 32, 15, 5
RECORDS_OF_SESSION: Final = _WINDOWS * (_WINDOW + 1)
_SESSIONS_AT_ONCE: Final = 40
_STEP_MS: Final = 60_000
_K: Final = 10
_FTS5_LIMIT_S: Final = 20.0
_KINDS: Final = {
    "mixed": ("rare", "middling", "middling", "common", "common"),
    "common": ("common",) * 5,
    "function": (),
}
_FUNCTION_QUERY: Final = "what is it that you do"
_SELECT_PLAIN: Final = "SELECT rowid, text FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT ?"


class Filler:
    """Fills a memory and a plain FTS5 table with the same texts, further and further."""

    def __init__(self, database: Path, plain: Path | None) -> None:
        self._database = database
        self._plain = plain
        self._corpus = Corpus()
        self.sessions = 0
        self.text_bytes = 0

    @property
    def records(self) -> int:
        """How many there are."""
        return self.sessions * RECORDS_OF_SESSION

    async def fill(self, count: int, agents: int = 1) -> float:
        """Go on to `count` records, or the few more that whole sessions make; the sessions take turns among the
        agents. Gives records a second."""
        started, before = time.perf_counter(), self.records
        store = await SqliteStore.open(self._database)
        try:
            while self.records < count:
                missing = -(-(count - self.records) // RECORDS_OF_SESSION)
                texts = [
                    text for _ in range(min(_SESSIONS_AT_ONCE, missing)) for text in await self._session(store, agents)
                ]
                self._fill_plain(texts)
        finally:
            await store.close()
        return (self.records - before) / (time.perf_counter() - started)

    async def _session(self, store: SqliteStore, agents: int) -> list[str]:
        """Write one session: windows of 15 messages, and their summaries after them."""
        first = self.sessions * RECORDS_OF_SESSION
        messages = list(self._corpus.texts(_WINDOWS * _WINDOW))
        summaries = [" ".join(messages[start : start + _SUMMARY_TEXTS]) for start in range(0, len(messages), _WINDOW)]
        async with store.write() as transaction:
            scope = Scope(agent=agent_of(self.sessions, agents), session=f"session-{self.sessions}")
            session = await transaction.sessions.ensure(scope, now_ms=START_MS)
            drafts = [_message(text, first + i) for i, text in enumerate(messages)]
            await transaction.records.append_messages(session, drafts, now_ms=START_MS)
            for window, text in enumerate(summaries):
                await transaction.records.add_summary(session, _summary(text, session.id, window, first))
            await transaction.sessions.set_pinned_seq(session, _NEVER)
        self.sessions += 1
        return messages + summaries

    def _fill_plain(self, texts: Sequence[str]) -> None:
        self.text_bytes += sum(map(len, texts))
        if self._plain is not None:
            with closing(sqlite3.connect(self._plain)) as connection, connection:
                connection.execute("CREATE VIRTUAL TABLE IF NOT EXISTS texts USING fts5 (text)")
                connection.executemany("INSERT INTO texts (text) VALUES (?)", ((text,) for text in texts))


def _message(text: str, place: int) -> MessageDraft:
    return MessageDraft(
        role=(Role.USER, Role.ASSISTANT)[place % 2],
        text=text,
        name=None,
        created_at=START_MS + place * _STEP_MS,
        importance=0.5,
        tokens=len(text) // 4,
        model_id=None,
        token_usage=None,
        client_key=None,
        terms=index_terms(text),
    )


def _summary(text: str, session: str, window: int, first: int) -> SummaryDraft:
    moment = START_MS + (first + (window + 1) * _WINDOW) * _STEP_MS
    return SummaryDraft(
        id=f"summary_{session}_{window}",
        text=text,
        level=0,
        start_seq=window * _WINDOW + 1,
        end_seq=(window + 1) * _WINDOW,
        start_message_id="msg_1",
        end_message_id="msg_1",
        started_at=moment,
        ended_at=moment,
        importance=0.7,
        tokens=len(text) // 4,
        method=SummaryMethod.EXTRACTIVE,
        model_id=None,
        created_at=moment,
        terms=index_terms(text),
    )


def agent_of(place: int, agents: int) -> str:
    """Whose the session at this place is; a single agent is the default one."""
    return "default" if agents == 1 else f"agent-{place % agents}"


def queries(kind: str, count: int) -> Iterator[str]:
    """So many queries of a kind, the same in every run."""
    corpus = Corpus(seed=2)
    return (corpus.query(_KINDS[kind]) or _FUNCTION_QUERY for _ in range(count))


def ranked(database: Path, plain: Path, count: int) -> dict[str, Any]:
    """Each kind of query, asked in turn of the memory and of FTS5; with this process's memory at its peak."""
    return anyio.run(_ranked, database, plain, count)


async def _ranked(database: Path, plain: Path, count: int) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    async with open_memory(database, _QUIET) as memory:
        await memory.search_memory(SearchRequest("warm up", k=_K))
        opened_mb = peak_rss_mb()
        with closing(sqlite3.connect(plain)) as connection:
            for kind in _KINDS:
                ours: list[float] = []
                theirs: list[float] = []
                hits = 0
                for query in queries(kind, count):
                    started = time.perf_counter()
                    page = await memory.search_memory(SearchRequest(query, k=_K))
                    ours.append(time.perf_counter() - started)
                    hits += len(page.hits)
                    if sum(theirs) < _FTS5_LIMIT_S:
                        started = time.perf_counter()
                        connection.execute(_SELECT_PLAIN, (_plain_query(query), _K)).fetchall()
                        theirs.append(time.perf_counter() - started)
                figures[kind] = _compared(ours, theirs) | {"hits_per_query": hits / count}
    return figures | {"rss_mb": {"opened": opened_mb, "peak": peak_rss_mb()}}


def narrowed(database: Path, sessions: int, agents: int, count: int) -> dict[str, Any]:
    """Queries in parts of a memory: one session, one agent, or a time."""
    return anyio.run(_narrowed, database, sessions, agents, count)


async def _narrowed(database: Path, sessions: int, agents: int, count: int) -> dict[str, Any]:
    records = sessions * RECORDS_OF_SESSION
    early = SearchFilters(until=START_MS + records * _STEP_MS // 10)
    late = SearchFilters(since=START_MS + records * _STEP_MS * 9 // 10)
    oldest, newest = agent_of(0, agents), agent_of(sessions - 1, agents)
    cases: dict[str, Callable[[int], dict[str, Any]]] = {
        "an_agent": lambda i: {"agent_id": agent_of(i, agents)},
        "the_oldest_session": lambda _: {"agent_id": oldest, "session_id": "session-0"},
        "the_newest_session": lambda _: {"agent_id": newest, "session_id": f"session-{sessions - 1}"},
        "the_first_tenth_of_time": lambda _: {"agent_id": oldest, "filters": early},
        "the_last_tenth_of_time": lambda _: {"agent_id": newest, "filters": late},
    }
    figures: dict[str, Any] = {"records": records, "agents": agents, "sessions": sessions}
    async with open_memory(database, _QUIET) as memory:
        for kind in ("mixed", "common"):
            asked = list(queries(kind, count))
            figures[kind] = {name: await _asked(memory, asked, case) for name, case in cases.items()}
    return figures


async def _asked(memory: Memory, asked: Sequence[str], case: Callable[[int], dict[str, Any]]) -> dict[str, Any]:
    times, hits = [], 0
    for place, query in enumerate(asked):
        scope = case(place)
        request = SearchRequest(query, k=_K, filters=scope.pop("filters", SearchFilters()))
        started = time.perf_counter()
        page = await memory.search_memory(request, **scope)
        times.append(time.perf_counter() - started)
        hits += len(page.hits)
    return latency(times) | {"hits_per_query": hits / len(asked)}


def _plain_query(query: str) -> str:
    return " OR ".join(f'"{word}"' for word in query_terms(query))


def _compared(ours: Sequence[float], theirs: Sequence[float]) -> dict[str, Any]:
    figures = {"kalito": latency(ours), "fts5": latency(theirs)}
    return {**figures, "p50_ratio": figures["kalito"]["p50_ms"] / figures["fts5"]["p50_ms"]}


def measure(folder: Path, *, sizes: Sequence[int], many: int, agents: int, count: int) -> dict[str, Any]:
    """The figures at each size, and in a memory of `many` records of several agents."""
    database, plain = folder / "memory.db", folder / "plain.db"
    filler = Filler(database, plain)
    figures: dict[str, Any] = {"target_p50_ms": TARGET_P50_MS}
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as fresh:
        for size in sizes:
            rate = anyio.run(filler.fill, size)
            progress(f"search: {size} records, written at {rate:.0f} a second")
            of_size = fresh.submit(ranked, database, plain, count).result()
            figures[str(size)] = of_size | {
                "records": filler.records,
                "fill_per_s": rate,
                "bytes_per_text_byte": {
                    "kalito": database.stat().st_size / filler.text_bytes,
                    "fts5": plain.stat().st_size / filler.text_bytes,
                },
            }
        progress("search: one agent's sessions and times")
        figures["narrowed"] = [fresh.submit(narrowed, database, filler.sessions, 1, count).result()]
        filler = Filler(folder / "many.db", None)
        anyio.run(filler.fill, many, agents)
        progress("search: several agents")
        figures["narrowed"].append(fresh.submit(narrowed, folder / "many.db", filler.sessions, agents, count).result())
    return figures


def main() -> None:
    """Run it."""
    parser = options(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", help="records (default 1000 100000 1000000; quick to 100000)")
    parser.add_argument("--queries", type=int, help="queries of each kind (default 200, quick 50)")
    given = parser.parse_args()
    sizes = sorted(given.sizes or ([1_000, 100_000] if given.quick else [1_000, 100_000, 1_000_000]))
    many, agents = (20_000, 10) if given.quick else (100_000, 50)
    count = given.queries or (50 if given.quick else 200)
    with tempfile.TemporaryDirectory() as folder:
        emit("search", measure(Path(folder), sizes=sizes, many=many, agents=agents, count=count))


if __name__ == "__main__":
    main()
