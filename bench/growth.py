"""Does a growing memory still find what it found? The same questions, asked among more and more other messages.

The questions and their evidence are those of one data set (see `bench.recall`), all of its conversations in one agent's
memory. The messages around them are the turns of the other data set, then made ones: words drawn as often as the other
set uses them. Half of them are older than the evidence, half newer. `R@10` is the share of a question's evidence among
ten hits, a page as an assistant gets it; `cpu_ms` is the median processor time of a search. `fts5` is a table of the
same texts asked for any word except function words, best by bm25(). `by_age` is R@10 of the evidence in each quarter of
its conversation, oldest first.
"""

import json
import random
import re
import sqlite3
import statistics
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

import anyio

from bench.conversation import as_message
from bench.plot import Panel, plot
from bench.recall import DATA_SETS, BenchData, bench_data_options, find_bench_data, pairs
from bench.report import emit, progress
from kalito_mcp.config.settings import Settings, checked
from kalito_mcp.domain.records import RecordType, Role
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import SearchRequest
from kalito_mcp.domain.time import from_iso
from kalito_mcp.domain.validation import message_number
from kalito_mcp.memory import Memory
from kalito_mcp.ports.conversations import MessageDraft
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.retrieval.policy import SearchPolicy
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.summaries.window import SummaryWindowPolicy
from kalito_mcp.text.analysis import STOP_WORDS, index_text
from kalito_mcp.upkeep.answer_log import UsagePolicy
from kalito_mcp.wiring import open_memory

_SIZES: Final = (0, 10_000, 100_000)
_QUICK_SIZES: Final = (0, 10_000)
_FULL_SIZE: Final = 1_000_000
_QUESTIONS: Final = 200
_SESSION: Final = 50
_QUARTERS: Final = 4
_PAGE: Final = 10
_NEVER: Final = 10**9
_STEP_MS: Final = 60_000
_WORD: Final = re.compile(r"\w+")
_LINES: Final = {"kalito": "R@10", "FTS5": "fts5"}

Turn = Mapping[str, Any]


class Around:
    """The messages around the evidence: real turns of another data set first, then made ones, in sessions."""

    def __init__(self, conversations: Sequence[Mapping[str, Any]]) -> None:
        self._random = random.Random(3)
        texts = [turn["text"] for one in conversations for turn in one["turns"] if turn["text"]]
        self._real = iter(texts)
        self._lengths = [len(text.split()) for text in texts]
        counts = Counter(word for text in texts for word in text.split())
        self._words = sorted(counts)
        self._weights = list(accumulate(counts[word] for word in self._words))

    def texts(self, count: int) -> Iterator[str]:
        """The next texts."""
        for _ in range(count):
            yield next(self._real, None) or self._made()

    def _made(self) -> str:
        length = self._random.choice(self._lengths)
        return " ".join(self._random.choices(self._words, cum_weights=self._weights, k=length))


class Growing:
    """One database, and the same texts in a table of FTS5."""

    def __init__(self, folder: Path, around: Around) -> None:
        self.database = folder / "memory.db"
        self._plain = sqlite3.connect(folder / "plain.db")
        self._plain.execute("CREATE VIRTUAL TABLE texts USING fts5 (text, tokenize = 'porter unicode61')")
        self._around = around
        self._turn_of: dict[int, str] = {}
        self._sessions = 0
        self.count = 0

    async def add_around(self, count: int, *, started_at: int) -> None:
        """Add so many messages around the evidence, the first of them said at this time."""
        store = await SqliteStore.open(self.database)
        try:
            for first in range(0, count, _SESSION):
                texts = list(self._around.texts(min(_SESSION, count - first)))
                drafts = [
                    _draft({"role": ("user", "assistant")[place % 2], "text": text}, started_at + place * _STEP_MS)
                    for place, text in enumerate(texts, first)
                ]
                await self._append(store, f"around-{self._sessions}", drafts, [""] * len(texts))
        finally:
            await store.close()

    async def add_turns(self, conversations: Sequence[Mapping[str, Any]]) -> None:
        """Add the turns that the questions ask for."""
        store = await SqliteStore.open(self.database)
        try:
            for one in conversations:
                sessions: defaultdict[str, list[Turn]] = defaultdict(list)
                for turn in one["turns"]:
                    sessions[f"{one['id']}/{turn['session']}"].append(turn)
                speakers: dict[str, str] = {}
                for session, turns in sessions.items():
                    messages = [as_message(turn, place, speakers) for place, turn in enumerate(turns)]
                    drafts = [_draft(message, 0) for message in messages]
                    await self._append(store, session, drafts, [f"{one['id']}/{turn['id']}" for turn in turns])
        finally:
            await store.close()

    async def _append(
        self, store: SqliteStore, session_id: str, drafts: Sequence[MessageDraft], turns: Sequence[str]
    ) -> None:
        async with store.transaction() as transaction:
            session = await ensure_session(transaction.sessions, Scope(session=session_id), now_ms=drafts[0].created_at)
            added = await transaction.conversations.append_messages(session, drafts, now_ms=drafts[0].created_at)
            await transaction.sessions.set_pinned_seq(session, _NEVER)
            await transaction.sessions.set_observed_seq(session, _NEVER)
        self._turn_of |= {message.id: turn for message, turn in zip(added, turns, strict=True)}
        with self._plain:
            self._plain.executemany(
                "INSERT INTO texts (rowid, text) VALUES (?, ?)",
                [(message.id, draft.text) for message, draft in zip(added, drafts, strict=True)],
            )
        self._sessions += 1
        self.count += len(drafts)

    async def ask(self, questions: Sequence[Mapping[str, Any]], settings: Settings) -> dict[str, Any]:
        """What a page of ten finds, what it costs, and what FTS5 finds."""
        found: list[set[str]] = []
        times: list[float] = []
        async with open_memory(self.database, settings) as memory:
            await memory.settled()
            await memory.search_memory(SearchRequest("warm"))
            for question in questions:
                started = time.process_time()
                ids = await self._page(memory, question["text"])
                times.append(time.process_time() - started)
                found.append(ids)
        return {
            "messages": self.count,
            "R@10": _recall(questions, found),
            "cpu_ms": 1000 * statistics.median(times),
            "fts5": _recall(questions, [self._plain_page(question["text"]) for question in questions]),
            "by_age": _by_age(questions, found),
            "silent": sum(not ids for ids in found) / len(found),
        }

    async def _page(self, memory: Memory, text: str) -> set[str]:
        page = await memory.search_memory(SearchRequest(text, k=_PAGE))
        found = (message_number(hit.record_id) for hit in page.hits if hit.type is RecordType.MESSAGE)
        return {self._turn_of[number] for number in found if number in self._turn_of}

    def _plain_page(self, text: str) -> set[str]:
        words = list(dict.fromkeys(_WORD.findall(text.lower())))
        asked = " OR ".join(f'"{word}"' for word in [one for one in words if one not in STOP_WORDS] or words)
        rows = self._plain.execute(
            "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY bm25(texts) LIMIT ?", (asked, _PAGE)
        )
        return {self._turn_of.get(row[0], "") for row in rows} - {""}


def _draft(message: Mapping[str, Any], created_at: int) -> MessageDraft:
    text, name = message["text"], message.get("name")
    moment = message.get("created_at")
    return MessageDraft(
        role=Role(message["role"]),
        text=text,
        name=name,
        created_at=created_at if moment is None else from_iso(moment),
        importance=0.5,
        tokens=len(text) // 4,
        model_id=None,
        token_usage=None,
        client_key=None,
        indexed=index_text(text, name),
    )


def questions_of(bench_data: BenchData, conversations: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The questions with evidence that count in the headline, and the age of each piece of evidence (0 to 1)."""
    found = []
    for one in conversations:
        age = {turn["id"]: place / len(one["turns"]) for place, turn in enumerate(one["turns"])}
        for question in one["questions"]:
            if question["evidence"] and question["category"] not in bench_data.scorer.NOT_HEADLINE:
                evidence = {f"{one['id']}/{turn}": age[turn] for turn in question["evidence"]}
                found.append({"text": question["text"], "evidence": evidence})
    return found


def _recall(questions: Sequence[Mapping[str, Any]], found: Sequence[set[str]]) -> float:
    """In percent."""
    shares = (
        len(ids & one["evidence"].keys()) / len(one["evidence"]) for one, ids in zip(questions, found, strict=True)
    )
    return 100 * statistics.fmean(shares)


def _by_age(questions: Sequence[Mapping[str, Any]], found: Sequence[set[str]]) -> list[float]:
    """The share of the evidence of each quarter that was found, in percent."""
    quarters: defaultdict[int, list[bool]] = defaultdict(list)
    for one, ids in zip(questions, found, strict=True):
        for turn, age in one["evidence"].items():
            quarters[int(age * _QUARTERS)].append(turn in ids)
    return [100 * statistics.fmean(quarters[quarter] or [False]) for quarter in range(_QUARTERS)]


async def grow(
    bench_data: BenchData, name: str, sizes: Sequence[int], most: int, settings: Settings
) -> list[dict[str, Any]]:
    """The figures of one data set at each size."""
    sets = {one: bench_data.load(one, None)["conversations"] for one in bench_data.names(())}
    questions = questions_of(bench_data, sets[name])
    asked = random.Random(5).sample(questions, min(most, len(questions)))
    others = [one for other in sets if other != name for one in sets[other]]
    moments = [from_iso(turn["ts"]) for one in sets[name] for turn in one["turns"] if turn.get("ts")]
    figures = []
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            growing = Growing(Path(folder), Around(others))
            extra = max(0, size - sum(len(one["turns"]) for one in sets[name]))
            # The turns bring their own times. What is around them is an hour a session older or newer.
            await growing.add_around(extra // 2, started_at=min(moments) - extra * _STEP_MS)
            await growing.add_turns(sets[name])
            await growing.add_around(extra - extra // 2, started_at=max(moments) + _STEP_MS)
            figures.append(await growing.ask(asked, settings))
        progress(f"growth: {name} {json.dumps(figures[-1])}")
    return figures


def main() -> None:
    """Run the benchmark."""
    parser = bench_data_options(__doc__)
    parser.add_argument("--full", action="store_true", help="also a million messages")
    parser.add_argument("--sizes", type=int, nargs="+", help=f"messages (default {_SIZES}, quick {_QUICK_SIZES})")
    parser.add_argument("--questions", type=int, default=_QUESTIONS, help=f"at most (default {_QUESTIONS})")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write recall and cost against the size as an SVG")
    given = parser.parse_args()
    bench_data = find_bench_data(parser, given.bench_data)
    if bench_data is None:
        return
    sizes = given.sizes or (_QUICK_SIZES if given.quick else (*_SIZES, *([_FULL_SIZE] if given.full else [])))
    search = checked(SearchPolicy, pairs(given.set, parser), "search.{}".format)
    # Without summaries: making them in the background would count as the time of the searches.
    window = SummaryWindowPolicy(threshold=_NEVER, dense_threshold=_NEVER)
    settings = replace(Settings(), search=search, usage=UsagePolicy(enabled=False), window=window)
    figures = {
        name: anyio.run(grow, bench_data, name, sizes, given.questions, settings)
        for name in given.data or bench_data.names(DATA_SETS)
    }
    if given.plot:
        lines = {
            name: {label: [(one["messages"], one[figure]) for one in rows] for label, figure in _LINES.items()}
            for name, rows in figures.items()
        }
        panels = [Panel(f"{name}: R@10, %", lines[name]) for name in lines]
        cost = {name: [(one["messages"], one["cpu_ms"]) for one in rows] for name, rows in figures.items()}
        given.plot.write_text(plot([*panels, Panel("processor time, ms", cost)], across="messages"), encoding="utf-8")
    emit("growth", figures)


if __name__ == "__main__":
    main()
