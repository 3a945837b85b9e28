"""Answers, not noise: does a search recognise the questions that have no answer in the memory?

Each question of the data sets (see `bench.recall`) is asked in the memory of its own conversation, which has an answer.
It is also asked without one:

- `foreign`: in the memory of the next conversation. Nobody spoke of the subject there.
- `renamed`: like `foreign`, but with the names of that conversation's speakers, if the speakers have names.
- `unanswered`: questions in their own memory whose authors say that they have no answer. The memory contains their
  words, so these are hard. No score that only looks at words can recognise them all.

A memory answers if its confidence in a hit (`retrieval.answerability`) reaches the threshold.

- `precision`: the share of its answers that were given to questions with an answer. It depends on the mix of
  questions. `always` is the precision of answering whenever a hit is about the subject.
- `recall`: the share of questions with an answer that got one.
- `silent`: the share of questions without an answer that got none.
- `roc_area`: the chance that a question with an answer has more confidence than one without.

`shipped` is the threshold of the settings, `best` the one with the highest F1 here.
"""

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from anyio.from_thread import start_blocking_portal

from bench.recall import Memories, bench_data_options, conversation_limit, find_bench_data, pairs
from bench.report import emit, progress
from kalito_mcp.retrieval import search as search_module
from kalito_mcp.retrieval.answerability import confidence
from kalito_mcp.retrieval.policy import SearchPolicy
from kalito_mcp.retrieval.ranking import ScoredCandidate
from kalito_mcp.settings import checked_section

_SETS: Final = ("foreign", "renamed", "unanswered")
_UNANSWERED: Final = frozenset({"abstention", "adversarial"})
_THRESHOLD: Final = "min_score"
_K: Final = 10


@dataclass(slots=True)
class Scores:
    """The confidence in the hits of each question. 0 if there are no hits, or none about the subject."""

    answered: list[float] = field(default_factory=list)
    without: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in _SETS})

    def __add__(self, other: "Scores") -> "Scores":
        return Scores(
            self.answered + other.answered, {name: self.without[name] + other.without[name] for name in _SETS}
        )


def decided(threshold: float, answered: Sequence[float], without: Sequence[float]) -> dict[str, float]:
    """The figures of answering every question that has at least this score.

    A score of 0 is never answered. The precision of no answers is 1. The shares of no questions are 0.
    """
    right = sum(score > 0 and score >= threshold for score in answered)
    wrong = sum(score > 0 and score >= threshold for score in without)
    precision = right / (right + wrong) if right + wrong else 1.0
    recall = right / len(answered) if answered else 0.0
    both = precision + recall
    return {
        "threshold": threshold,
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / both if both else 0.0,
        "silent": 1 - wrong / len(without) if without else 0.0,
    }


def best(answered: Sequence[float], without: Sequence[float]) -> dict[str, float]:
    """The decision with the highest F1 among all thresholds. Of equal ones, the one with the lowest threshold."""
    thresholds = sorted({*answered, *without, 0.0})
    return max((decided(one, answered, without) for one in thresholds), key=lambda made: made["f1"])


def roc_area(answered: Sequence[float], without: Sequence[float]) -> float:
    """The chance that one of `answered` is above one of `without`. Ties count half. 0.5 if either is empty."""
    if not answered or not without:
        return 0.5
    marked = sorted([(score, True) for score in answered] + [(score, False) for score in without])
    above, below = 0.0, 0
    for _, equal in groupby(marked, key=lambda one: one[0]):
        signs = [is_answered for _, is_answered in equal]
        with_answer = sum(signs)
        above += with_answer * (below + (len(signs) - with_answer) / 2)
        below += len(signs) - with_answer
    return above / (len(answered) * len(without))


def renamed(text: str, names: Mapping[str, str]) -> str:
    """The text with its names replaced."""
    if not names:
        return text
    either = re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b")
    return either.sub(lambda name: names[name[0]], text)


def speakers(conversation: Mapping[str, Any]) -> list[str]:
    """The speakers in the order of their first turn. Empty if they have no names of their own."""
    found = dict.fromkeys(str(turn["speaker"]) for turn in conversation["turns"])
    return [name for name in found if name not in ("user", "assistant")]


@contextmanager
def confidences() -> Iterator[list[float]]:
    """The confidences of the searches in the block, in order. A search for a time only has no confidence."""
    seen: list[float] = []

    def seen_confidence(found: Sequence[ScoredCandidate]) -> float:
        seen.append(confidence(found))
        return seen[-1]

    with patch.object(search_module, "confidence", seen_confidence):
        yield seen


def scores(memories: Memories, conversations: Sequence[Mapping[str, Any]], search: SearchPolicy) -> Scores:
    """Ask every question with and without an answer."""
    asked = Scores()
    for place, here in enumerate(conversations):
        before = conversations[place - 1]
        with memories.opened(here["turns"], search) as memory:

            def top(text: str, memory: Any = memory) -> float:
                with confidences() as seen:
                    page, _ = memories.search(memory, text, _K)
                return seen[0] if seen else float(bool(page.hits))

            for question in here["questions"]:
                if question["category"] in _UNANSWERED:
                    asked.without["unanswered"].append(top(question["text"]))
                elif question["evidence"]:
                    asked.answered.append(top(question["text"]))
            if before is here:
                continue
            names = dict(zip(speakers(before), speakers(here), strict=False))
            for question in before["questions"]:
                if question["evidence"] and question["category"] not in _UNANSWERED:
                    asked.without["foreign"].append(top(question["text"]))
                    if (text := renamed(question["text"], names)) != question["text"]:
                        asked.without["renamed"].append(top(text))
    return asked


def figures(asked: Scores, shipped: float) -> dict[str, Any]:
    """The figures of a data set, by the set of questions without an answer."""
    return {
        "answered": len(asked.answered),
        **{
            name: {
                "n": len(without),
                "roc_area": roc_area(asked.answered, without),
                "shipped": decided(shipped, asked.answered, without),
                "best": best(asked.answered, without),
                "always": decided(0.0, asked.answered, without),
            }
            for name, without in asked.without.items()
            if without
        },
    }


def lines(name: str, found: Mapping[str, Any]) -> list[str]:
    """The figures as lines of text."""
    shown = [f"abstention: {name}, {found['answered']} questions with an answer"]
    shown.append(f"{'':24}{'threshold':>10}{'precision':>10}{'recall':>8}{'F1':>8}{'silent':>8}")
    for kind in _SETS:
        if kind in found:
            shown.append(f"{kind}: {found[kind]['n']} without, ROC area {found[kind]['roc_area']:.3f}")
            for which in ("shipped", "best", "always"):
                made = found[kind][which]
                shares = "".join(f"{made[share]:>8.3f}" for share in ("recall", "f1", "silent"))
                shown.append(f"  {which:22}{made['threshold']:>10.4f}{made['precision']:>10.3f}{shares}")
    return shown


def main() -> None:
    """Run the benchmark."""
    parser = bench_data_options(__doc__)
    given = parser.parse_args()
    policy: SearchPolicy = checked_section(SearchPolicy, pairs(given.set, parser), "search")
    shipped = float(getattr(policy, _THRESHOLD, 0.0))
    # See every hit here. What the threshold would hide is counted afterwards.
    everything: dict[str, Any] = {_THRESHOLD: 0.0} if hasattr(policy, _THRESHOLD) else {}
    open_policy = replace(policy, **everything)
    bench_data = find_bench_data(parser, given.bench_data)
    if bench_data is None:
        return
    found: dict[str, Any] = {}
    together = Scores()
    with tempfile.TemporaryDirectory() as folder, start_blocking_portal() as portal:
        memories = Memories(Path(folder), portal)
        names = bench_data.names(given.data)
        for name in names:
            asked = scores(memories, bench_data.load(name, conversation_limit(given))["conversations"], open_policy)
            found[name] = figures(asked, shipped)
            progress("\n".join(lines(name, found[name])))
            together += asked
    if len(names) > 1:
        # The same threshold is shipped for every kind of conversation.
        found["together"] = figures(together, shipped)
        progress("\n".join(lines("together", found["together"])))
    emit("abstention", {"data": found})


if __name__ == "__main__":
    main()
