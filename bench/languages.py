"""What is found in each language: 25 questions to 40 messages, asked in other word forms than those that were said.

The sets are in `tests/languages/sets`, one file a language, and invented for this. `R@5` is how many of the answers are
among the first five hits, `first` how many are the first, `silent` how many questions find nothing, and `unanswered`
how many find nothing in a memory without the messages that answer, where nothing should be found. `trigrams` is
R@5 of a table of FTS5 with the tokenizer of that name, asked for any run of three characters of the question. In
scripts without spaces `trigrams` uses runs of two, by hand, because most words have two characters.
"""

import json
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import anyio

from bench.recall import pairs
from bench.report import ROOT, emit, options, progress
from kalito_mcp.config.settings import Settings, checked
from kalito_mcp.domain.records import NewMessage, Role
from kalito_mcp.domain.search import SearchRequest
from kalito_mcp.retrieval.policy import SearchPolicy
from kalito_mcp.text.analysis import is_spelled_with_spaces
from kalito_mcp.upkeep.answer_log import UsagePolicy
from kalito_mcp.wiring import open_memory

SETS: Final = ROOT / "tests" / "languages" / "sets"
_PAGE: Final = 5


@dataclass(frozen=True, slots=True)
class LanguageSet:
    """Messages, and questions with the place of the message that answers each."""

    language: str
    messages: Sequence[tuple[Role, str]]
    questions: Sequence[tuple[str, int]]

    @classmethod
    def load(cls, path: Path) -> "LanguageSet":
        """Read a file of `SETS`."""
        data = json.loads(path.read_text(encoding="utf-8"))
        messages = [(Role(role), text) for role, text in data["messages"]]
        return cls(data["language"], messages, [(text, place) for text, place in data["questions"]])


async def ask(asked: LanguageSet, settings: Settings) -> dict[str, int]:
    """How many of the questions find their message."""
    figures: Counter[str] = Counter()
    answers = {place for _, place in asked.questions}
    rest = [message for place, message in enumerate(asked.messages) if place not in answers]
    with tempfile.TemporaryDirectory() as folder:
        async with open_memory(Path(folder) / "rest.db", settings) as memory:
            await memory.record_messages("talk", [NewMessage(role, text) for role, text in rest])
            await memory.settled()
            for text, _ in asked.questions:
                figures["unanswered"] += not (await memory.search_memory(SearchRequest(text, k=_PAGE))).hits
        async with open_memory(Path(folder) / "memory.db", settings) as memory:
            recorded = await memory.record_messages("talk", [NewMessage(role, text) for role, text in asked.messages])
            await memory.settled()
            for text, place in asked.questions:
                page = await memory.search_memory(SearchRequest(text, k=_PAGE))
                found = [hit.record_id for hit in page.hits]
                answer = recorded.message_ids[place]
                figures["R@5"] += answer in found
                figures["first"] += found[:1] == [answer]
                figures["silent"] += not found
    return {name: figures[name] for name in ("R@5", "first", "silent", "unanswered")}


def trigrams(asked: LanguageSet) -> int:
    """R@5 of FTS5's trigrams, or of pairs of characters in scripts without spaces."""
    size = 3 if all(is_spelled_with_spaces(text) for _, text in asked.messages) else 2
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE VIRTUAL TABLE texts USING fts5 (text, tokenize = 'unicode61')")
        connection.executemany(
            "INSERT INTO texts (rowid, text) VALUES (?, ?)",
            [(place, " ".join(_runs(text, size))) for place, (_, text) in enumerate(asked.messages)],
        )
        found = 0
        for text, place in asked.questions:
            wanted = " OR ".join(f'"{run}"' for run in dict.fromkeys(_runs(text, size)))
            rows = connection.execute(
                "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY bm25(texts) LIMIT ?", (wanted, _PAGE)
            )
            found += place in [row[0] for row in rows]
    return found


def _runs(text: str, size: int) -> list[str]:
    """Runs of characters as words of FTS5: their code points, joined."""
    folded = text.casefold()
    return ["x".join(f"{ord(one):x}" for one in folded[at : at + size]) for at in range(len(folded) - size + 1)]


async def measure(settings: Settings) -> dict[str, Any]:
    """The figures of every language."""
    figures: dict[str, Any] = {}
    for path in sorted(SETS.glob("*.json")):
        asked = LanguageSet.load(path)
        figures[path.stem] = await ask(asked, settings) | {"trigrams": trigrams(asked), "n": len(asked.questions)}
        progress(f"languages: {asked.language:12} {figures[path.stem]}")
    return figures


def main() -> None:
    """Run the benchmark."""
    parser = options(__doc__)
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="settings of the section `search`")
    given = parser.parse_args()
    search = checked(SearchPolicy, pairs(given.set, parser), "search.{}".format)
    emit("languages", anyio.run(measure, replace(Settings(), search=search, usage=UsagePolicy(enabled=False))))


if __name__ == "__main__":
    main()
