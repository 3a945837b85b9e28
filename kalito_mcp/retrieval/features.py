"""How much speaks for a record whose text has been read: features in [0, 1]. Pure.

The evidence of a term is tf / (tf + 0.3 + 0.04 * length), times its weight, over the weights of all terms: absolute,
not relative to a mean length, because lengths in a memory differ by kind of conversation: +15 to +18 R@10 on BEAM
against BM25's, -0.3 on LoCoMo (own measurements).
"""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

from kalito_mcp.domain.analysis import indexed_words
from kalito_mcp.domain.records import Role
from kalito_mcp.domain.search import Candidate, Posting
from kalito_mcp.domain.time_words import date_match, tells_time
from kalito_mcp.retrieval.question import Asked, Question, asked_words

_SATURATION: Final = 0.3
_LENGTH_WEIGHT: Final = 0.04
_QUESTION_MARKS: Final = ("?", "？", "؟")
_READ_CHARS: Final = 8_000
"""Of a longer text, the beginning is looked at for what only orders the hits."""

_FIRST_PERSON: Final = frozenset("i i'm i've i'd i'll my me myself we we're our".split())
_STATEMENT: Final = frozenset("always never prefer please favorite favourite decided".split())
_STATEMENTS: Final = {
    "i": (" i like ", " i love ", " i hate ", " i want ", " i need ", " i enjoy ", " i don't like "),
    "i'd": (" i'd like ", " i'd rather "),
    "make": (" make sure ",),
    "plan": (" plan to ",),
    "planning": (" planning to ",),
    "going": (" going to ",),
}
_MANNERS: Final = _FIRST_PERSON.union(_STATEMENT, _STATEMENTS)
_NUMBER: Final = frozenset(
    "one two three four five six seven eight nine ten twice once couple dozen few hundred thousand".split()
)
_DIGIT: Final = re.compile(r"\d")


class Reading(NamedTuple):
    """A candidate, read: the words of its text, those with its speaker's name before them, and the latter as one string
    between spaces; how often it has each of the asked terms, and instances of each of their kinds. A tuple, for dozens
    are made for a search."""

    candidate: Candidate
    text: Sequence[str]
    words: Sequence[str]
    spoken: str
    counts: Mapping[str, float]
    kinds: Mapping[str, int]
    asked: Mapping[str, Asked]

    @property
    def said(self) -> dict[str, str]:
        """The word that each asked term was said by; none where it is only the speaker's name."""
        found = [self.asked[word] for word in self.text if word in self.asked]
        first = {one.term: one.word for one in reversed(found) if one.term is not None}
        return dict(reversed(first.items()))

    @property
    def instances(self) -> dict[str, list[str]]:
        """The words that tell of an instance of each kind, in order."""
        found: dict[str, list[str]] = {}
        for word in self.words:
            for kind in self.asked[word].kinds if word in self.asked else ():
                found.setdefault(kind, []).append(word)
        return found


def inverse_document_frequencies(postings: Sequence[Posting], record_count: int, newest_key: int) -> dict[str, float]:
    """ln(1 + n / df) of each term. Where a posting was cut, df is estimated from how densely its part lies."""
    weights: dict[str, float] = {}
    for posting in postings:
        frequency = len(posting.keys)
        if not posting.is_complete:
            span = newest_key - posting.keys[-1] + 1
            frequency = max(frequency, round(frequency * newest_key / span))
        weights[posting.term] = math.log1p(record_count / max(1, min(frequency, record_count)))
    return weights


def readings(question: Question, candidates: Sequence[Candidate]) -> list[Reading]:
    """Read the candidates as the question wants it."""
    texts = [indexed_words(one.text) for one in candidates]
    names = [indexed_words(one.name) if one.name else [] for one in candidates]
    # Texts share their words: what each is to the question is found out once.
    asked = asked_words(question, set().union(*texts, *names))
    wanted = frozenset(asked)
    return [_reading(*one, asked, wanted) for one in zip(candidates, names, texts, strict=True)]


def _reading(
    candidate: Candidate, name: list[str], text: list[str], asked: Mapping[str, Asked], wanted: frozenset[str]
) -> Reading:
    words = name + text
    counts: dict[str, float] = {}
    kinds: dict[str, int] = {}
    # Sorted: a sum's last bit depends on the order.
    for word in sorted(wanted.intersection(words)):
        one, often = asked[word], words.count(word)
        if one.term is not None:
            counts[one.term] = counts.get(one.term, 0.0) + one.credit * often
        for kind in one.kinds:
            kinds[kind] = kinds.get(kind, 0) + often
    return Reading(candidate, text, words, f" {' '.join(words)} ", counts, kinds, asked)


def damping(length: float) -> float:
    """How many times a text of so many words must hold a term for half of its weight."""
    return _SATURATION + _LENGTH_WEIGHT * length


def own(read: Reading, weights: Mapping[str, float], mass: float) -> float:
    """The share of the weights of the asked terms that the text holds."""
    damped = damping(len(read.words))
    return sum([weights[term] * count / (count + damped) for term, count in read.counts.items()]) / mass


def kind(read: Reading, weights: Mapping[str, float], mass: float) -> float:
    """The same of the kinds that it has instances of."""
    damped = damping(len(read.words))
    return sum([weights[named] * often / (often + damped) for named, often in read.kinds.items()]) / mass


def spelling(question: Question, readings: Sequence[Reading]) -> list[float]:
    """For each text, how much it has of the runs of letters of the query, the rarer among these texts the more.

    Runs of four are worth as much as those of three, four and five together, and cost a third (own measurements).
    """
    runs = question.runs
    texts = [read.spoken[:_READ_CHARS] for read in readings]
    held = [[run for run in runs if run in text] for text in texts]
    frequency = Counter(chain.from_iterable(held))
    squares = {run: math.log1p(len(texts) / max(1, frequency[run])) ** 2 for run in runs}
    length = math.sqrt(sum(squares.values())) or 1.0
    mean = sum(map(math.sqrt, squares.values())) / len(squares) if squares else 1.0
    return [
        min(1.0, sum([squares[run] for run in found]) / length / mean / math.sqrt(len(text)))
        for found, text in zip(held, texts, strict=True)
    ]


def setting(question: Question, read: Reading) -> dict[str, float]:
    """When it was said, and whether it tells a time or a number, where the question asks for one."""
    found: dict[str, float] = {}
    if question.dates:
        found["date"] = date_match(question.dates, read.candidate.created_at)
    if question.asks_when and tells_time(read.candidate.text[:_READ_CHARS]):
        found["time"] = 1.0
    if question.asks_number and (not _NUMBER.isdisjoint(read.words) or _DIGIT.search(read.spoken)):
        found["number"] = 1.0
    return found


def manner(question: Question, read: Reading) -> dict[str, float]:
    """How it is said, and by whom: 1 for each feature that it has."""
    candidate = read.candidate
    found: dict[str, float] = {}
    marks = _MANNERS.intersection(read.words)
    if not marks.isdisjoint(_FIRST_PERSON):
        found["first_person"] = 1.0
    if not marks.isdisjoint(_STATEMENT) or any(
        phrase in read.spoken for word in marks for phrase in _STATEMENTS.get(word, ())
    ):
        found["statement"] = 1.0
    if candidate.text.rstrip().endswith(_QUESTION_MARKS):
        found["question"] = 1.0
    if candidate.role is Role.ASSISTANT and not candidate.name and not question.asks_assistant:
        found["assistant"] = 1.0
    return found
