"""What summaries without a model keep: named facts by their length, and the answers to questions.

The conversations are those of the data sets (see `bench.recall`). Each is one session of a memory of its own.

`facts kept` is the share of a range's named facts that stand in its summary, and `length` is the summary's share of the
range's characters, both over all summaries of a level: 0 is the lowest, 1 the first fold. A named fact is, once in a
range:

- a name: a capitalised word within a sentence, except the speakers' own names, `I` and the calendar's words;
- a number: a word with a digit;
- a date: a month, a weekday, a day beside today, or last, this or next with a unit or a season.

Fenced code has no named facts. `answers` is the share of the answers of at most five words that stand word for word in
the conversation and also in the summaries: of level 0, of level 1, and `shown`, those in a context of 3,000 tokens
without a query. Every figure is given for all conversations, and for the first, third, ... (`odd`) and the others
(`even`), so that rules can be chosen by one half and checked by the other.
"""

import re
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from anyio.from_thread import start_blocking_portal

from bench.recall import Memories, bench_data_options, conversation_limit, find_bench_data
from bench.report import emit, progress
from kalito_mcp.memory import Memory
from kalito_mcp.retrieval.policy import SearchPolicy

_SESSION: Final = "all"
_BUDGET: Final = 3_000
_LEVELS: Final = 3
_LONGEST_ANSWER: Final = 5
_SELECT_SUMMARIES: Final = "SELECT level, seq, end_seq, text FROM records WHERE type = 'summary' ORDER BY level, seq"

_WORD: Final = re.compile(r"[^\W_]+(?:['’.,:/-][^\W_]+)*")
_SENTENCE: Final = re.compile(r"(?<=[.!?…])[\"'”’)]*\s+|\n+|[-–—:;(\"“]\s*(?=[A-Z])")
_CODE: Final = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_CALENDAR: Final = frozenset(
    "january february march april june july august september october november december jan feb mar apr jun jul aug sep "
    "sept oct nov dec monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thur thurs fri sat "
    "sun today yesterday tomorrow tonight weekend".split()
)
_PAIR: Final = re.compile(
    r"\b(?:last|this|next|past) (?:night|week|month|year|weekend|spring|summer|fall|autumn|winter)\b", re.IGNORECASE
)
_NO_NAMES: Final = frozenset("i i'm i've i'd i'll ok okay".split())


def _folded(word: str) -> str:
    return word.casefold().replace("’", "'").removesuffix("'s")


def flat(text: str) -> str:
    """The folded words between single spaces, and one at each end."""
    return f" {' '.join(map(_folded, _WORD.findall(text)))} "


def named_facts(text: str, speakers: frozenset[str]) -> dict[str, str]:
    """The kind of each named fact in the text: `name`, `number` or `date`. `speakers` are folded words."""
    found: dict[str, str] = {}
    for sentence in _SENTENCE.split(_CODE.sub(" ", text)):
        for pair in _PAIR.findall(sentence):
            found[flat(pair).strip()] = "date"
        for place, word in enumerate(_WORD.findall(sentence)):
            folded = _folded(word)
            if folded in _CALENDAR or (place and word == "May"):
                found[folded] = "date"
            elif any(map(str.isdigit, word)):
                found[folded] = "number"
            elif place and word[0].isupper() and len(folded) > 1 and folded not in speakers | _NO_NAMES:
                found[folded] = "name"
    return found


class Counts:
    """Facts and characters of the summaries of one level, and the answers."""

    def __init__(self) -> None:
        self._of: Counter[str] = Counter()

    def add_summary(self, level: int, said: str, summary: str, speakers: frozenset[str]) -> None:
        """Count the facts of what was said, and those of them that the summary has."""
        words = flat(summary)
        for fact, kind in named_facts(said, speakers).items():
            for name in (f"{level} facts", f"{level} {kind}s"):
                self._of[name] += 1
                self._of[f"{name} kept"] += f" {fact} " in words
        self._of[f"{level} said"] += len(said)
        self._of[f"{level} length"] += len(summary)
        self._of[f"{level} summaries"] += 1

    def add_answer(self, answer: str, texts: Mapping[str, str]) -> None:
        """Count an answer, and the texts that have it."""
        self._of["answers"] += 1
        for name, text in texts.items():
            self._of[f"answers {name}"] += answer in text

    def __iadd__(self, other: "Counts") -> "Counts":
        self._of += other._of
        return self

    def figures(self) -> dict[str, Any]:
        """Shares in percent."""
        of = self._of
        figures: dict[str, Any] = {}
        for level in range(_LEVELS):
            if of[f"{level} summaries"]:
                figures[f"level {level}"] = {
                    "facts kept": 100 * of[f"{level} facts kept"] / max(1, of[f"{level} facts"]),
                    "length": 100 * of[f"{level} length"] / of[f"{level} said"],
                    "kept by kind": {
                        kind: 100 * of[f"{level} {kind} kept"] / max(1, of[f"{level} {kind}"])
                        for kind in ("names", "numbers", "dates")
                    },
                    "n": of[f"{level} summaries"],
                }
        if of["answers"]:
            shares = {name: 100 * of[f"answers {name}"] / of["answers"] for name in ("level 0", "level 1", "shown")}
            figures["answers"] = shares | {"n": of["answers"]}
        return figures


def _short_answers(conversation: Mapping[str, Any], said: str) -> Iterator[str]:
    for question in conversation["questions"]:
        answer = flat(str(question.get("answer") or ""))
        if 0 < len(answer.split()) <= _LONGEST_ANSWER and answer in said:
            yield answer


async def _shown(memory: Memory) -> str:
    context = await memory.build_context(_SESSION, _BUDGET)
    return "\n".join(summary.summary for summary in context.summaries)


def measure(conversation: Mapping[str, Any], stored: Sequence[tuple[int, int, int, str]], shown: str) -> Counts:
    """The counts of one conversation. `stored` are its summaries: level, first and last turn from 1, and text."""
    turns = [turn["text"] for turn in conversation["turns"]]
    speakers = frozenset(
        word
        for name in {str(turn["speaker"]) for turn in conversation["turns"]}
        for word in flat(name).split()
        # Short forms: Mel for Melanie.
        for word in (word, *(word[:length] for length in range(3, len(word))))
    )
    counts = Counts()
    for level, first, last, text in stored:
        counts.add_summary(level, "\n".join(turns[first - 1 : last]), text, speakers)
    texts = {
        f"level {level}": " ".join(flat(text) for of_level, _, _, text in stored if of_level == level)
        for level in range(_LEVELS)
    }
    for answer in _short_answers(conversation, " ".join(map(flat, turns))):
        counts.add_answer(answer, texts | {"shown": flat(shown)})
    return counts


def main() -> None:
    """Run the benchmark."""
    parser = bench_data_options(__doc__)
    given = parser.parse_args()
    bench_data = find_bench_data(parser, given.bench_data)
    if bench_data is None:
        return
    figures: dict[str, Any] = {}
    with start_blocking_portal() as portal:
        for name in bench_data.names(given.data):
            counts = {half: Counts() for half in ("all", "odd", "even")}
            for place, one in enumerate(bench_data.load(name, conversation_limit(given))["conversations"]):
                with tempfile.TemporaryDirectory() as folder:
                    turns = [{**turn, "session": _SESSION} for turn in one["turns"]]
                    with Memories(Path(folder), portal).opened(turns, SearchPolicy()) as memory:
                        shown = portal.call(_shown, memory)
                    [database] = Path(folder).glob("*.db")
                    with closing(sqlite3.connect(database)) as connection:
                        stored = connection.execute(_SELECT_SUMMARIES).fetchall()
                measured = measure(one, stored, shown)
                for half in ("all", "even" if place % 2 else "odd"):
                    counts[half] += measured
            figures[name] = {half: of.figures() for half, of in counts.items()}
            progress(f"summaries: {name} {figures[name]['all']}")
    emit("summaries", figures)


if __name__ == "__main__":
    main()
