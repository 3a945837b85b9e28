"""Is what a question needs in the context that `build_context` returns for it?

The questions and their evidence are those of the data sets (see `bench.recall`). Each conversation is one memory.
`long` asks in the session that has all of its turns, `fresh` in a new one. `any` is the share of the questions with an
evidence turn whole in the text of the context, `all` with every one of them; by budget in tokens. `sentences` is the
share of the sentences of a question's evidence that are there, by their length.

`foreign` asks the questions of the next conversation: nothing that is remembered matters. `shown` is the share of these
contexts with anything found.
"""

import statistics
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from anyio.from_thread import BlockingPortal, start_blocking_portal

from bench.recall import Memories, bench_data_options, conversation_limit, find_bench_data
from bench.report import emit, progress
from kalito_mcp.contexts.excerpts import Sentences
from kalito_mcp.memory import Memory
from kalito_mcp.retrieval.policy import SearchPolicy
from kalito_mcp.safety.escaping import as_data

_BUDGETS: Final = (600, 1_500, 3_000)
_LONG: Final = "all"
_FRESH: Final = "a new session"


def _in_one_session(turns: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{**turn, "session": _LONG} for turn in turns]


def _flat(text: str) -> str:
    return " ".join(as_data(text).split())


def _sentences(text: str) -> list[str]:
    return [_flat(one) for one in Sentences(text, (), len(text) + 1).texts]


async def _context(memory: Memory, session: str, query: str, budget: int) -> tuple[str, int]:
    """The text of a context, and how many records were found."""
    found = await memory.build_context(session, budget, query=query)
    return _flat(found.text), len(found.relevant_messages)


def measure(
    portal: BlockingPortal, memory: Memory, one: Mapping[str, Any], questions: Sequence[Mapping[str, Any]]
) -> dict[str, list[float]]:
    """Whether the evidence of each question is in its context, by kind of session and budget."""
    turns = {turn["id"]: _flat(turn["text"]) for turn in one["turns"]}
    sentences = {turn["id"]: _sentences(turn["text"]) for turn in one["turns"]}
    found: dict[str, list[float]] = {}
    for session, name in ((_LONG, "long"), (_FRESH, "fresh")):
        for budget in _BUDGETS:
            for question in questions:
                text, _ = portal.call(_context, memory, session, question["text"], budget)
                is_in = [turns[turn] in text for turn in question["evidence"] if turns.get(turn)]
                if is_in:
                    found.setdefault(f"{name} {budget} any", []).append(any(is_in))
                    found.setdefault(f"{name} {budget} all", []).append(all(is_in))
                    wanted = [said for turn in question["evidence"] for said in sentences.get(turn, ())]
                    shown = sum(len(said) for said in wanted if said in text)
                    found.setdefault(f"{name} {budget} sentences", []).append(shown / sum(map(len, wanted)))
    return found


def foreign(portal: BlockingPortal, memory: Memory, questions: Sequence[Mapping[str, Any]]) -> list[bool]:
    """Whether anything was found for questions that nothing here answers."""
    return [portal.call(_context, memory, _FRESH, question["text"], _BUDGETS[-1])[1] > 0 for question in questions]


def main() -> None:
    """Run the benchmark."""
    parser = bench_data_options(__doc__)
    given = parser.parse_args()
    bench_data = find_bench_data(parser, given.bench_data)
    if bench_data is None:
        return
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, start_blocking_portal() as portal:
        memories = Memories(Path(folder), portal)
        for name in bench_data.names(given.data):
            conversations = bench_data.load(name, conversation_limit(given))["conversations"]
            asked = [
                [
                    one
                    for one in conversation["questions"]
                    if one["evidence"] and one["category"] not in bench_data.scorer.NOT_HEADLINE
                ]
                for conversation in conversations
            ]
            found: dict[str, list[float]] = {}
            for place, conversation in enumerate(conversations):
                with memories.opened(_in_one_session(conversation["turns"]), SearchPolicy()) as memory:
                    for key, values in measure(portal, memory, conversation, asked[place]).items():
                        found.setdefault(key, []).extend(values)
                    others = asked[(place + 1) % len(asked)]
                    found.setdefault("foreign shown", []).extend(foreign(portal, memory, others))
            figures[name] = {key: 100 * statistics.fmean(values) for key, values in found.items()}
            progress(f"evidence: {name} " + ", ".join(f"{key} {value:.1f}" for key, value in figures[name].items()))
    emit("evidence", figures)


if __name__ == "__main__":
    main()
