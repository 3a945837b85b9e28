"""How much speaks for a record whose text has been read: features in [0, 1]. Pure.

The evidence of a term is tf / (tf + 0.3 + 0.04 * length), times its weight, over the weights of all terms: absolute,
not relative to a mean length, because lengths in a memory differ by kind of conversation: +15 to +18 R@10 on BEAM
against BM25's, -0.3 on LoCoMo (own measurements).
"""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kalito_mcp.domain.analysis import indexed_words
from kalito_mcp.domain.records import Role
from kalito_mcp.domain.search import Candidate, Posting
from kalito_mcp.domain.time_words import date_match, tells_time
from kalito_mcp.retrieval.question import Question

_SATURATION: Final = 0.3
_LENGTH_WEIGHT: Final = 0.04
_RUNS_PER_CHARACTER: Final = 3
_QUESTION_MARKS: Final = ("?", "？", "؟")
_READ_CHARS: Final = 8_000
"""Of a longer text, the beginning is looked at for what only orders the hits."""


def _words(listed: str, separator: str = " ") -> tuple[str, ...]:
    """Each between spaces, as in a reading."""
    return tuple(f" {one} " for one in listed.split(separator))


_FIRST_PERSON: Final = _words("i i'm i've i'd i'll my me myself we we're our")
_STATEMENT: Final = _words(
    "always, never, prefer, please, make sure, favorite, favourite, decided, plan to, planning to, going to, i'd like, "
    "i'd rather, i like, i love, i hate, i want, i need, i enjoy, i don't like",
    ", ",
)
_NUMBER: Final = _words(
    "one two three four five six seven eight nine ten twice once couple dozen few several many hundred thousand"
)
_DIGIT: Final = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class Reading:
    """A candidate, read: its words as one string between spaces, how many terms it has, how often the asked ones are
    among them, the word that each was said by (none where it is only the speaker's name), and which instances of kinds
    are."""

    candidate: Candidate
    spoken: str
    length: int
    counts: Mapping[str, float]
    said: Mapping[str, str]
    instances: Mapping[str, Sequence[str]]


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


def reading(question: Question, candidate: Candidate) -> Reading:
    """Read a candidate as the question wants it."""
    named = indexed_words(candidate.name) if candidate.name else []
    spoken = named + indexed_words(candidate.text)
    asked_by, credit = question.asked_by, question.credit
    counts: dict[str, float] = {}
    said: dict[str, str] = {}
    instances: dict[str, list[str]] = {}
    for place, word in enumerate(spoken):
        asked = asked_by[word]
        if asked is None:
            continue
        if asked.term is not None:
            if place >= len(named):
                said.setdefault(asked.term, word)
            counts[asked.term] = counts.get(asked.term, 0.0) + credit.get(asked.stem, 1.0)
        for kind in asked.kinds:
            instances.setdefault(kind, []).append(word)
    return Reading(candidate, f" {' '.join(spoken)} ", len(spoken), counts, said, instances)


def own(read: Reading, weights: Mapping[str, float], mass: float) -> float:
    """The share of the weights of the asked terms that the text holds."""
    damping = _SATURATION + _LENGTH_WEIGHT * read.length
    return sum(weights[term] * count / (count + damping) for term, count in read.counts.items()) / mass


def kind(read: Reading, weights: Mapping[str, float], mass: float) -> float:
    """The same of the kinds that it has instances of."""
    damping = _SATURATION + _LENGTH_WEIGHT * read.length
    return sum(weights[named] / (1 + damping / len(found)) for named, found in read.instances.items()) / mass


def spelling(question: Question, readings: Sequence[Reading]) -> list[float]:
    """For each text, how much it has of the runs of letters of the query, the rarer among these texts the more."""
    grams = question.grams
    texts = [read.spoken[:_READ_CHARS] for read in readings]
    held = [[gram for gram in grams if gram in text] for text in texts]
    frequency = Counter(gram for found in held for gram in found)
    weights = {gram: math.log1p(len(texts) / max(1, frequency[gram])) for gram in grams}
    length = math.sqrt(sum(weight**2 for weight in weights.values())) or 1.0
    mean = sum(weights.values()) / len(weights) if weights else 1.0
    return [
        min(1.0, sum(weights[gram] ** 2 for gram in found) / length / mean / math.sqrt(_RUNS_PER_CHARACTER * len(text)))
        for found, text in zip(held, texts, strict=True)
    ]


def manner(question: Question, read: Reading) -> dict[str, float]:
    """What the text is like, as far as it matters to the question: 1 for each feature that it has."""
    candidate, spoken = read.candidate, read.spoken
    found: dict[str, float] = {}
    if question.dates:
        found["date"] = date_match(question.dates, candidate.created_at)
    if question.asks_when and tells_time(candidate.text[:_READ_CHARS]):
        found["time"] = 1.0
    if question.asks_number and (_has_any(spoken, _NUMBER) or _DIGIT.search(spoken)):
        found["number"] = 1.0
    if _has_any(spoken, _FIRST_PERSON):
        found["first_person"] = 1.0
    if _has_any(spoken, _STATEMENT):
        found["statement"] = 1.0
    if candidate.text.rstrip().endswith(_QUESTION_MARKS):
        found["question"] = 1.0
    if candidate.role is Role.ASSISTANT and not candidate.name and not question.asks_assistant:
        found["assistant"] = 1.0
    return found


def _has_any(spoken: str, listed: tuple[str, ...]) -> bool:
    return any(one in spoken for one in listed)
