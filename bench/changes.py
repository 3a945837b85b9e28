"""Changed facts in ordinary speech: is what is true now told first, and what was true when that is asked for?

`--cases FILE` names cases by somebody who does not know the rules: {"cases": [{"turns": [{"at", "role", "text"}],
"current": {"question", "turn"}, "older": {"question", "turn"} or null, "kind"}], "traps": [{"turns": [...]}]}. Each
case is a memory of its own. Keep the file apart from the work on the rules.

`current_first` is the share of questions about now whose first hit is the turn with the newer value, `older_first` that
of questions about before whose first hit is the turn with the older one, `marked` the share of older turns that are
found labelled as outdated, in whole or in part. `false` counts the traps, in which nothing changed, of which a turn is
labelled as outdated.
"""

import json
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import anyio

from bench.personal import Shares, record
from bench.report import emit, options, progress
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import Hit, SearchRequest
from kalito_mcp.domain.validation import message_number
from kalito_mcp.memory import Memory
from kalito_mcp.settings import Settings
from kalito_mcp.upkeep.usage_counter import UsagePolicy
from kalito_mcp.wiring import open_memory

_PAGE: Final = 5


def _is_turn(hit: Hit, record_id: str) -> bool:
    return record_id in (hit.record_id, *hit.same)


async def _hits(memory: Memory, question: str) -> list[Hit]:
    return list((await memory.search_memory(SearchRequest(question, k=_PAGE))).hits)


async def change(memory: Memory, case: Mapping[str, Any], shares: Shares) -> None:
    """Ask for what is true now, and for what was."""
    ids = await record(memory, [{"session": "s", **turn} for turn in case["turns"]])
    current, older = case["current"], case["older"]
    found = await _hits(memory, current["question"])
    is_first = bool(found) and _is_turn(found[0], ids[current["turn"]])
    shares.add("current_first", is_so=is_first)
    shares.add(f"{case['kind']} current_first", is_so=is_first)
    if older is None:
        return
    shares.add(
        "marked",
        is_so=any(_is_turn(hit, ids[older["turn"]]) and bool(hit.superseded_by or hit.outdated) for hit in found),
    )
    before = await _hits(memory, older["question"])
    shares.add("older_first", is_so=bool(before) and _is_turn(before[0], ids[older["turn"]]))


async def trap(memory: Memory, case: Mapping[str, Any]) -> bool:
    """Whether a turn is labelled as outdated, although nothing changed."""
    ids = await record(memory, [{"session": "s", **turn} for turn in case["turns"]])
    async with memory._store.read() as view:
        stated = await view.facts.of_records(Scope(), [message_number(record_id) for record_id in ids])
    return any(one.superseded_by for facts in stated.values() for one in facts)


async def measure(data: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of a file."""
    shares, wrong = Shares(), 0
    settings = replace(Settings(), usage=UsagePolicy(enabled=False))
    with tempfile.TemporaryDirectory() as folder:
        for place, case in enumerate(data["cases"]):
            async with open_memory(Path(folder) / f"{place}.db", settings) as memory:
                await change(memory, case, shares)
        for place, case in enumerate(data["traps"]):
            async with open_memory(Path(folder) / f"trap {place}.db", settings) as memory:
                wrong += await trap(memory, case)
    return {**shares.percent(), "cases": len(data["cases"]), "false": wrong, "traps": len(data["traps"])}


def main() -> None:
    """Run the benchmark."""
    parser = options(__doc__)
    parser.add_argument("--cases", type=Path, metavar="FILE", help="cases of changed facts")
    given = parser.parse_args()
    if given.cases is None:
        progress("changes: no --cases FILE, so nothing to measure")
        return
    figures = anyio.run(measure, json.loads(given.cases.read_text(encoding="utf-8")))
    progress(f"changes: {figures}")
    emit("changes", figures)


if __name__ == "__main__":
    main()
