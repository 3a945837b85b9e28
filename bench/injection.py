"""Does a hook put what a prompt needs into it, and nothing into a prompt that needs nothing?

The conversations are those of `bench.recall`. Each is a memory of all of its sessions but the last. `evidence` is the
share of the questions with an evidence turn in those sessions of which all, or 300 characters in whole sentences, is
put into a prompt with the question. Then the last session is played: `silence` is the share of its turns, without the
assistant's, that get nothing. It counts each of them as one that needs nothing, though some go on with what was said
before. `tokens` are those of what is put in, on average over all questions, and `evidence_per_1000_tokens` the
questions whose evidence a thousand of them bring.

With `--madial` (see `bench.elsewhere`) nobody asks: a child tells, and at one turn something of the child's past should
come to mind. `evidence` is then the share of the talks in which one of the memories meant was put in by that turn, and
`silence` that of the turns before it that got nothing.
"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal

from bench.elsewhere import Conversation, madial, record
from bench.recall import Memories, bench_data_options, conversation_limit, find_bench_data
from bench.report import emit, percentile, progress
from kalito_mcp import wiring
from kalito_mcp.config.settings import Settings
from kalito_mcp.contexts.excerpts import Sentences
from kalito_mcp.contexts.injector import Injection
from kalito_mcp.domain.search import SearchRequest
from kalito_mcp.inference.tokens import token_counter
from kalito_mcp.memory import Memory
from kalito_mcp.retrieval.policy import SearchPolicy
from kalito_mcp.safety.escaping import as_data
from kalito_mcp.upkeep.answer_log import UsagePolicy

_LIVE = "the live session"
_ENOUGH_CHARS: Final = 300


def _flat(text: str) -> str:
    return " ".join(as_data(text).split())


def _is_shown(evidence: str, text: str) -> bool:
    """Whether at least 300 characters of its sentences are in the text, or all of a shorter one."""
    sentences = [one.strip() for one in Sentences(evidence, (), len(evidence) + 1).texts]
    shown = sum(len(one) for one in sentences if one in text)
    return shown >= min(_ENOUGH_CHARS, sum(map(len, sentences)))


async def _injected(memory: Memory, prompt: str) -> Injection:
    return await memory.hooks.inject(_LIVE, prompt)


def split(turns: Sequence[Mapping[str, Any]]) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """The turns of all sessions but the last, and those of the last."""
    last = turns[-1]["session"]
    return [one for one in turns if one["session"] != last], [one for one in turns if one["session"] == last]


def measure(
    portal: BlockingPortal,
    memory: Memory,
    turns: Sequence[Mapping[str, Any]],
    live: Sequence[Mapping[str, Any]],
    questions: Sequence[Mapping[str, Any]],
) -> dict[str, list[float]]:
    """Of each question whether its evidence is put in and how many tokens are; of each live turn whether nothing is."""
    counter = token_counter("calibrated")
    portal.call(memory.search_memory, SearchRequest("hello"))  # loads the model: a prompt does not wait for that
    known = {one["id"]: _flat(one["text"]) for one in turns}
    found: dict[str, list[float]] = {"evidence": [], "tokens": [], "silence": []}
    for question in questions:
        evidence = [known[one] for one in question["evidence"] if one in known]
        if evidence:
            text = portal.call(_injected, memory, question["text"]).text
            found["evidence"].append(any(_is_shown(one, _flat(text)) for one in evidence))
            found["tokens"].append(counter.count(text) if text else 0)
    for turn in live:
        if str(turn["speaker"]).lower() != "assistant":
            found["silence"].append(not portal.call(_injected, memory, turn["text"]).text)
    return found


async def measure_talks(child: Conversation, database: Path) -> dict[str, list[float]]:
    """The same for the talks of one child."""
    found: dict[str, list[float]] = {"evidence": [], "tokens": [], "silence": []}
    counter = token_counter("calibrated")
    settings = replace(Settings(), usage=UsagePolicy(enabled=False))
    async with wiring.open_memory(database, settings) as memory:
        await record(memory, child)
        await memory.settled()
        for talk in child.questions:
            due = [_flat(child.texts[place][0]) for place in talk.evidence]
            shown: frozenset[str] = frozenset()
            texts: list[str] = []
            for prompt in talk.prompts:
                injected = await memory.hooks.inject(_LIVE, prompt, shown=shown)
                shown |= set(injected.record_ids)
                texts.append(_flat(injected.text))
            found["evidence"].append(any(one in text for one in due for text in texts))
            found["tokens"].append(counter.count(texts[-1]))
            found["silence"] += [not text for text in texts[:-1]]
    return found


def _figures(found: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    tokens = sum(found["tokens"])
    return {
        "questions": len(found["evidence"]),
        "evidence": 100 * sum(found["evidence"]) / len(found["evidence"]),
        "turns": len(found["silence"]),
        "silence": 100 * sum(found["silence"]) / len(found["silence"]),
        "tokens": tokens / len(found["tokens"]),
        "tokens_p95": percentile(found["tokens"], 0.95),
        "evidence_per_1000_tokens": 1000 * sum(found["evidence"]) / max(1, tokens),
    }


def main() -> None:
    """Run the benchmark."""
    parser = bench_data_options(__doc__)
    parser.add_argument("--madial", type=Path, metavar="FOLDER", help="a checkout of MADial-Bench's repository")
    given = parser.parse_args()
    figures: dict[str, Any] = {}
    if given.madial:
        with tempfile.TemporaryDirectory() as folder:
            for language, code in (("en", "en"), ("ch", "zh")):
                talks: dict[str, list[float]] = {}
                for number, child in enumerate(madial(given.madial, language, code)):
                    of_child = anyio.run(measure_talks, child, Path(folder) / f"{code}{number}.db")
                    for key, values in of_child.items():
                        talks.setdefault(key, []).extend(values)
                figures[f"madial-{code}"] = _figures(talks)
                progress(f"injection: madial-{code} {figures[f'madial-{code}']}")
    bench_data = find_bench_data(parser, given.bench_data)
    if bench_data is None:
        return
    with tempfile.TemporaryDirectory() as folder, start_blocking_portal() as portal:
        memories = Memories(Path(folder), portal)
        for name in bench_data.names(given.data):
            found: dict[str, list[float]] = {}
            for conversation in bench_data.load(name, conversation_limit(given))["conversations"]:
                turns, live = split(conversation["turns"])
                with memories.opened(turns, SearchPolicy()) as memory:
                    of_one = measure(portal, memory, turns, live, conversation["questions"])
                for key, values in of_one.items():
                    found.setdefault(key, []).extend(values)
            figures[name] = _figures(found)
            progress(f"injection: {name} {figures[name]}")
    emit("injection", figures)


if __name__ == "__main__":
    main()
