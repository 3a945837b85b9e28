"""Does the search find as much in conversations that nobody had in mind when its weights were chosen?

Three public sets, each in a checkout of its own repository, which the command line names. None is part of this project.

- `--memsim`, github.com/nuster1128/MemSim (MemDaily, Chinese): some messages of a day, and a question about them.
- `--madial`, github.com/hejunqing/MADial-Bench (English and Chinese): what a child has lived through, and a talk in
  which some of it should come to mind. The query is all that the child has said so far; nothing asks for a memory.
- `--goodai`, github.com/GoodAI/goodai-ltm-benchmark: scripted tests, all of one benchmark in one memory. A question's
  evidence are the statements of its own test.

Each conversation is the memory of an agent of its own, all in one database. `fts5` is a table of the same texts
(stemmed words, or trigrams for Chinese), asked for any word of the question except function words, best by bm25().
`silent` is the share of the questions without a hit; all of them have an answer.
"""

import json
import re
import sqlite3
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple
from unittest.mock import patch

import anyio

from bench.recall import pairs, weights_with
from bench.report import emit, options, progress
from kalito_mcp import wiring
from kalito_mcp.config.settings import Settings, checked
from kalito_mcp.domain.records import NewMessage, Role
from kalito_mcp.domain.search import SearchRequest
from kalito_mcp.domain.time import from_iso
from kalito_mcp.memory import Memory
from kalito_mcp.retrieval import ranking
from kalito_mcp.retrieval.policy import SearchPolicy
from kalito_mcp.text.analysis import STOP_WORDS
from kalito_mcp.upkeep.answer_log import UsagePolicy

_PAGE: Final = 10
_BATCH: Final = 200
_QUICK: Final = 40
_MADIAL_TODAY: Final = "2024-06-16T12:00:00Z"
_MEMSIM: Final = "data_generation/final_dataset/messages_and_QAs/*.json"
_MEMSIM_TIME: Final = re.compile(r"(\d+)年(\d+)月(\d+)日\D*(\d+):(\d+)")
_LINE: Final = re.compile(r'^<(\w+)>:\s*"?(.*?)"?\s*$', re.DOTALL)
_WORD: Final = re.compile(r"\w+")
_HAN: Final = re.compile(r"[一-鿿]")


class Question(NamedTuple):
    """A question, the places of its evidence among the texts, and when it is asked (ISO 8601; None: today)."""

    text: str
    evidence: frozenset[int]
    asked_at: str | None = None
    prompts: tuple[str, ...] = ()
    """What was said one after the other, where `text` is all of it."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """Texts with the times at which they were said (ISO 8601, or None), and the questions about them."""

    texts: Sequence[tuple[str, str | None]]
    questions: Sequence[Question]


def memsim(folder: Path) -> Iterator[Conversation]:
    """The days of MemDaily."""
    for file in sorted(folder.glob(_MEMSIM)):
        for day in json.loads(file.read_text(encoding="utf-8")):
            said = [(one["message"], _memsim_time(one["time"])) for one in day["message_list"]]
            places = {one["mid"]: place for place, one in enumerate(day["message_list"])}
            for one in day["question_list"][:1]:
                evidence = frozenset(places[mid] for mid in one["target_step_id"] if mid in places)
                if evidence:
                    yield Conversation(said, [Question(one["question"], evidence, _memsim_time(one["time"]))])


def _memsim_time(text: str) -> str | None:
    found = _MEMSIM_TIME.search(text)
    return datetime(*map(int, found.groups())).isoformat() + "Z" if found else None  # type: ignore[arg-type]


def madial(folder: Path, language: str, code: str) -> Iterator[Conversation]:
    """What each child has lived through, with the talks of that child."""
    data = folder / "data" / language
    memories: dict[int, dict[str, Any]] = {}
    for line in (data / f"MADial-Bench-{code}-memory.json").read_text(encoding="utf-8").splitlines():
        memories |= {int(key): memory for key, memory in json.loads(line).items()} if line.strip() else {}
    talks: defaultdict[str, list[Question]] = defaultdict(list)
    places: defaultdict[str, dict[int, int]] = defaultdict(dict)
    children = ("Bart", "Lisa")
    for key, memory in memories.items():
        for child in children:
            if child in memory["event"] or not any(one in memory["event"] for one in children):
                places[child][key] = len(places[child])
    for line in (data / f"MADial-Bench-{code}-dialogue.json").read_text(encoding="utf-8").splitlines():
        talk = json.loads(line)
        said = [found.groups() for one in talk["dialogue"] if (found := _LINE.match(one.strip()))]
        child = next(name for name, _ in said if name != "Assistant")
        before = said[: min(talk["test-turn"]) - 1]
        prompts = tuple(text for name, text in before if name == child)
        evidence = frozenset(places[child][key] for key in talk["relevant-id"] if key in places[child])
        if prompts and evidence:
            talks[child].append(Question(" ".join(prompts), evidence, _MADIAL_TODAY, prompts))
    for child in children:
        texts = [_lived_through(memories[key]) for key in places[child]]
        yield Conversation(texts, talks[child])


def _lived_through(memory: Mapping[str, Any]) -> tuple[str, str]:
    return f"{memory['event']} ({memory['scene']}, {memory['emotion']})", f"{memory['time']}T12:00:00Z"


def goodai(folder: Path) -> Iterator[Conversation]:
    """All tests of one benchmark as one conversation."""
    benchmarks: defaultdict[str, list[Path]] = defaultdict(list)
    for file in sorted(folder.glob("data/tests/*/definitions/*/*.def.json")):
        benchmarks[file.parts[-4]].append(file)
    for files in benchmarks.values():
        texts: list[tuple[str, None]] = []
        questions: list[Question] = []
        for file in files:
            test = json.loads(file.read_text(encoding="utf-8"))
            evidence: set[int] = set()
            for text, is_question in zip(test["script"], test["is_question"], strict=False):
                if not is_question:
                    evidence.add(len(texts))
                    texts.append((text, None))
                elif evidence:
                    questions.append(Question(text, frozenset(evidence)))
        yield Conversation(texts, questions)


async def fill(database: Path, conversations: Sequence[Conversation]) -> None:
    """One agent a conversation."""
    async with wiring.open_memory(database, Settings()) as memory:
        for number, one in enumerate(conversations):
            await record(memory, one, f"{number}")
        await memory.settled()


async def record(memory: Memory, one: Conversation, agent_id: str | None = None) -> None:
    """Record the texts of a conversation, in one session."""
    messages = [
        NewMessage(
            role=Role.USER,
            text=text,
            client_key=str(place),
            created_at=None if moment is None else from_iso(moment),
        )
        for place, (text, moment) in enumerate(one.texts)
    ]
    for start in range(0, len(messages), _BATCH):
        await memory.record_messages(agent_id or "0", messages[start : start + _BATCH], agent_id=agent_id)


async def ask(database: Path, conversations: Sequence[Conversation], search: SearchPolicy) -> dict[str, Any]:
    """The figures of a set."""
    shares: list[float] = []
    firsts: list[bool] = []
    times: list[float] = []
    silent = 0
    settings = replace(Settings(), search=search, usage=UsagePolicy(enabled=False))
    async with wiring.open_memory(database, settings) as memory:
        # Kept databases have no vectors yet if they were filled without the extra.
        await memory.settled()
        for number, one in enumerate(conversations):
            for question in one.questions:
                started = time.process_time()
                places = await _page(memory, question, f"{number}")
                times.append(time.process_time() - started)
                shares.append(len(question.evidence & set(places)) / len(question.evidence))
                firsts.append(bool(places) and places[0] in question.evidence)
                silent += not places
    return {
        "questions": len(shares),
        "R@10": 100 * statistics.fmean(shares),
        "hit@1": 100 * statistics.fmean(firsts),
        "silent": 100 * silent / len(shares),
        "cpu_ms": 1000 * statistics.median(times),
        "fts5": 100 * statistics.fmean(share for one in conversations for share in _plain(one)),
    }


async def _page(memory: Memory, question: Question, agent_id: str) -> list[int]:
    now_ms = None if question.asked_at is None else from_iso(question.asked_at)
    page = await memory.search_memory(SearchRequest(question.text, k=_PAGE, now_ms=now_ms), agent_id=agent_id)
    return [int(hit.client_key) for hit in page.hits if hit.client_key]


def _plain(one: Conversation) -> Iterator[float]:
    """What FTS5 finds of each question's evidence."""
    is_han = any(_HAN.search(text) for text, _ in one.texts)
    tokenizer = "trigram" if is_han else "porter unicode61"
    with closing(sqlite3.connect(":memory:")) as plain:
        plain.execute(f"CREATE VIRTUAL TABLE texts USING fts5 (text, tokenize = '{tokenizer}')")
        plain.executemany(
            "INSERT INTO texts (rowid, text) VALUES (?, ?)",
            [(place, text) for place, (text, _) in enumerate(one.texts, 1)],
        )
        for text, evidence, *_ in one.questions:
            words = list(dict.fromkeys(_WORD.findall(text.lower())))
            asked = [word for word in words if word not in STOP_WORDS] or words
            if is_han:
                asked = list(dict.fromkeys(word[at : at + 3] for word in words for at in range(len(word) - 2)))
            rows = plain.execute(
                "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY bm25(texts) LIMIT ?",
                (" OR ".join(f'"{word}"' for word in asked) or '""', _PAGE),
            )
            yield len(evidence & {rowid - 1 for [rowid] in rows}) / len(evidence)


def main() -> None:
    """Run the benchmark."""
    parser = options(__doc__)
    for name in ("memsim", "madial", "goodai"):
        parser.add_argument(f"--{name}", type=Path, metavar="FOLDER", help=f"a checkout of {name}'s repository")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the databases there, and reuse them")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="settings of the section `search`")
    parser.add_argument("--weight", nargs="+", default=[], metavar="NAME=VALUE", help="weights of the formula")
    given = parser.parse_args()
    search = checked(SearchPolicy, pairs(given.set, parser), "search.{}".format)
    changed = {name: float(value) for name, value in pairs(given.weight, parser).items()}
    sets: dict[str, list[Conversation]] = {}
    if given.memsim:
        sets["memdaily"] = list(memsim(given.memsim))
    if given.madial:
        sets["madial-en"] = list(madial(given.madial, "en", "en"))
        sets["madial-zh"] = list(madial(given.madial, "ch", "zh"))
    if given.goodai:
        sets["goodai"] = list(goodai(given.goodai))
    if not sets:
        progress("no sets to search: name their folders with --memsim, --madial and --goodai")
        return
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name, conversations in sets.items():
            asked = conversations[:: max(1, len(conversations) // _QUICK)] if given.quick else conversations
            database = (given.keep or Path(scratch)) / f"{name}{len(asked)}.db"
            if not database.exists():
                anyio.run(fill, database, asked)
            with patch.object(ranking, "WITH_VECTORS", weights_with(changed, parser)):
                figures[name] = anyio.run(ask, database, asked, search)
            progress(f"elsewhere: {name} {json.dumps(figures[name])}")
    emit("elsewhere", figures)


if __name__ == "__main__":
    main()
