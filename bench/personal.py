"""What a person finds again in a memory of their life: questions in their own words, months later.

`--memory` names files with a conversation of some dozens of turns and the questions of somebody who does not know the
rules of the search: {"turns": [{"session", "at", "role", "text"}], "questions": [{"question", "at", "kind",
"evidence": [places of turns]}], "unknowable": [question]}. Keep them apart from the work on the rules.

`hit@1` and `hit@5` are the shares of the questions with an evidence turn among the first hits: the message, a pin that
repeats it, or the answer that a hit brings along. `context` is the share with one in the context of a new conversation
(3,000 tokens). `silent` is the share of the unknowable questions that find nothing, `wrongly` that of the others.
"""

import json
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import anyio

from bench.report import emit, options, progress
from kalito_mcp.config.settings import Settings
from kalito_mcp.domain.records import NewMessage, Role
from kalito_mcp.domain.search import Hit, SearchRequest
from kalito_mcp.domain.time import from_iso
from kalito_mcp.memory import Memory
from kalito_mcp.upkeep.answer_log import UsagePolicy
from kalito_mcp.wiring import open_memory

_PAGE: Final = 5
_BUDGET: Final = 3_000


@dataclass(slots=True)
class Shares:
    """What became of each question, by the name of the figure."""

    outcomes: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))

    def add(self, name: str, *, is_so: bool) -> None:
        """Count one question."""
        self.outcomes[name].append(is_so)

    def percent(self) -> dict[str, float]:
        """The share of each figure."""
        return {name: round(100 * fmean(values), 1) for name, values in self.outcomes.items()}


async def record(memory: Memory, turns: Sequence[Mapping[str, Any]]) -> list[str]:
    """Record the turns, each at its moment. Returns their ids."""
    ids: list[str] = []
    for session, said in groupby(turns, key=lambda turn: turn["session"]):
        messages = [
            NewMessage(Role(turn["role"]), turn["text"], created_at=from_iso(turn["at"], "at")) for turn in said
        ]
        ids += (await memory.record_messages(session, messages)).message_ids
    await memory.settled()
    return ids


def tells(hit: Hit, ids: set[str], texts: Sequence[str]) -> bool:
    """Whether a hit has one of these messages, or its words."""
    known = {hit.record_id, *hit.same}
    return bool(known & ids) or (hit.type == "pin" and any(hit.text in text for text in texts))


async def ask(data: Mapping[str, Any], settings: Settings) -> Shares:
    """Ask all questions of a file."""
    shares, turns = Shares(), data["turns"]
    with tempfile.TemporaryDirectory() as folder:
        async with open_memory(Path(folder) / "memory.db", settings) as memory:
            ids = await record(memory, turns)
            for one in data["questions"]:
                evidence = {ids[place] for place in one["evidence"]}
                texts = [turns[place]["text"] for place in one["evidence"]]
                now_ms = from_iso(one["at"], "at")
                page = await memory.search_memory(SearchRequest(one["question"], k=_PAGE, now_ms=now_ms))
                for k in (1, _PAGE):
                    is_found = any(tells(hit, evidence, texts) for hit in page.hits[:k])
                    shares.add(f"hit@{k}", is_so=is_found)
                    shares.add(f"{one['kind']} hit@{k}", is_so=is_found)
                shares.add("wrongly", is_so=not page.hits)
                context = await memory.build_context("a new conversation", _BUDGET, query=one["question"])
                shares.add(
                    "context", is_so=any(" ".join(text.split()) in " ".join(context.text.split()) for text in texts)
                )
            for question in data["unknowable"]:
                page = await memory.search_memory(SearchRequest(question, k=_PAGE, now_ms=now_ms))
                shares.add("silent", is_so=not page.hits)
    return shares


def main() -> None:
    """Run the benchmark."""
    parser = options(__doc__)
    parser.add_argument(
        "--memory", nargs="*", default=[], type=Path, metavar="FILE", help="conversations and questions"
    )
    given = parser.parse_args()
    if not given.memory:
        progress("personal: no --memory FILE, so nothing to measure")
        return
    settings = replace(Settings(), usage=UsagePolicy(enabled=False))
    figures = {}
    for path in given.memory:
        figures[path.stem] = anyio.run(ask, json.loads(path.read_text(encoding="utf-8")), settings).percent()
        progress(f"personal: {path.stem} {figures[path.stem]}")
    emit("personal", figures)


if __name__ == "__main__":
    main()
