"""What a query asks for, before anything is looked up. Pure.

A query's term is found by itself and, where nothing holds it, by what a mistyped word may have meant. Terms may name
kinds (pets), whose instances (puppy) are weak evidence.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Final, NamedTuple

from kalito_mcp.domain.analysis import STOP_WORDS, heads_of, query_terms, stem, words
from kalito_mcp.domain.time_words import Dates, Span, asks_when, named_dates, named_spans
from kalito_mcp.retrieval.hyponyms import instances
from kalito_mcp.retrieval.query_syntax import Query, parsed

_RUN: Final = 4
_READ_CHARS: Final = 400
"""Characters of a query whose runs are looked for."""

_MOST_INSTANCES: Final = 60
_CALENDAR: Final = frozenset(
    map(
        stem,
        """january february march april may june july august september october november december monday tuesday
        wednesday thursday friday saturday sunday""".split(),
    )
)
_TIME_TERMS: Final = _CALENDAR.union(
    map(
        stem,
        """last next past recent week weekend month year day yesterday today tonight ago morning evening early late
        beginning end since until before during between""".split(),
    )
)
"""The others name another day to whoever reads them later."""

_DATE_NUMBER: Final = re.compile(r"(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?|(?:19|20)\d\d")
_ASKS_NUMBER: Final = re.compile(
    r"\bhow (?:many|much|often|old|far|long|tall|big)\b|\bwhat (?:number|percentage|score)\b"
)
_KIND_OF: Final = re.compile(r"\b(?:kind|sort|type)s? of\b", re.IGNORECASE)
_ASKED_NOUN: Final = 5
"""Words after `what` or `which` among which its noun is, and what comes behind that: what two big old ferries are."""

_BEHIND_NOUN: Final = frozenset(
    "are can could did do does had has have is may might must of shall should was were will would".split()
)
_ASKS_ASSISTANT: Final = re.compile(
    r"\b(?:did|have|had|were) you\b|\byou (?:recommend|suggest|said|told|mention|propos|advis|gave|explain|show|list)"
)


@dataclass(frozen=True)
class Question:
    """A query, read.

    `terms` are distinct and in order; `written` is a word of each, and `alternatives` are what it is looked up as,
    itself first; `credit` is how much a corrected one counts, 1 unless said. `kinds` are the instances of the
    terms that name a kind. `spans` are the stretches of time that it names: the words for them are no terms.
    """

    query: Query
    terms: tuple[str, ...]
    written: Mapping[str, str]
    alternatives: Mapping[str, tuple[str, ...]]
    credit: Mapping[str, float]
    kinds: Mapping[str, frozenset[str]]
    dates: Dates
    spans: tuple[Span, ...]

    @cached_property
    def spoken(self) -> frozenset[str]:
        """The query's words, folded, without `'s`: names are compared with them."""
        return frozenset(word.partition("'")[0] for word in words(self.query.words))

    @cached_property
    def asks_time_alone(self) -> bool:
        """Whether it names a time and asks for nothing else: whatever was said then, or tells of it, is an answer."""
        return bool(self.spans) and all(map(_is_of_calendar, self.terms))

    @cached_property
    def asks_when(self) -> bool:
        """Whether the answer is a time."""
        return asks_when(self.query.words)

    @cached_property
    def asks_number(self) -> bool:
        """Whether the answer is a number."""
        return _ASKS_NUMBER.search(self.query.words.lower()) is not None

    @cached_property
    def asks_several(self) -> bool:
        """Whether the answer is a list or a count: which ferries, how many ferries. English only."""
        asked = words(self.query.words)
        return any(
            (word in ("what", "which") and _is_of_several(asked[place + 1 : place + 1 + _ASKED_NOUN]))
            or (word == "how" and asked[place + 1 : place + 2] == ["many"])
            for place, word in enumerate(asked)
        )

    @cached_property
    def asks_assistant(self) -> bool:
        """Whether it is about what the assistant said."""
        return _ASKS_ASSISTANT.search(self.query.words.lower()) is not None

    @cached_property
    def runs(self) -> tuple[str, ...]:
        """The distinct runs of four characters of its words, the spaces between them included."""
        text = f" {' '.join(words(self.query.words))} "[:_READ_CHARS]
        return tuple(dict.fromkeys(text[at : at + _RUN] for at in range(len(text) - _RUN + 1)))

    @cached_property
    def corrected_terms(self) -> frozenset[str]:
        """The terms that were taken for another."""
        return frozenset(term for term, found in self.alternatives.items() if len(found) > 1)

    def corrected(self, meant: Mapping[str, tuple[str, float]]) -> "Question":
        """The question with one more alternative for each term that is mistyped: what is meant, and how alike it is."""
        alternatives = {
            term: (*found, meant[term][0]) if term in meant else found for term, found in self.alternatives.items()
        }
        return replace(self, alternatives=alternatives, credit=dict(meant.values()))


class Asked(NamedTuple):
    """What a word is to a question: a form of one of its terms, counting as much as `credit`, and an instance of some
    of its kinds."""

    word: str
    term: str | None
    credit: float
    kinds: tuple[str, ...]


def asked_words(question: Question, vocabulary: Iterable[str]) -> dict[str, Asked]:
    """Those of the words that the question asks for: forms of its terms, and instances of their kinds."""
    terms = {form: term for term in reversed(question.terms) for form in question.alternatives[term]}
    kinds: dict[str, tuple[str, ...]] = {}
    for kind, members in question.kinds.items():
        for member in members:
            kinds[member] = (*kinds.get(member, ()), kind)
    forms = terms | kinds
    # Most words are told apart by how they begin, ten times faster than by their stems.
    heads = heads_of(forms)
    return {
        word: Asked(word, terms.get(form), question.credit.get(form, 1.0), kinds.get(form, ()))
        for word in vocabulary
        if word[:2] in heads and (form := stem(word)) in forms
    }


def read(text: str, *, most_terms: int, now_ms: int | None = None) -> Question:
    """The query as a question. Without `now_ms` it names no date that depends on now."""
    query = parsed(text)
    spans = named_spans(query.words, now_ms)
    asks = _without_frame(query.words)
    asked = query_terms(asks)
    terms = tuple(_without_times(asked) if spans else asked)[:most_terms]
    written = {stem(word): word.partition("'")[0] for word in words(asks)}
    kinds = {term: instances(term) - set(terms) for term in terms if term not in STOP_WORDS}
    return Question(
        query=query,
        terms=terms,
        written=written,
        alternatives={term: (term,) for term in terms},
        credit={},
        kinds={term: frozenset(sorted(members)[:_MOST_INSTANCES]) for term, members in kinds.items() if members},
        dates=named_dates(query.words, now_ms),
        spans=spans,
    )


def _without_frame(text: str) -> str:
    """`what kind of moss` asks for moss, not for kinds; `what kind of` asks for nothing else."""
    kept = _KIND_OF.sub(" ", text)
    return text if STOP_WORDS.issuperset(words(kept)) else kept


def _is_of_several(following: Sequence[str]) -> bool:
    """Whether the noun that comes first is in the plural. A verb ends in -s too: which ferry leaves at seven?"""
    for word, behind in pairwise(following):
        if word in _BEHIND_NOUN:
            return False
        if behind in _BEHIND_NOUN:
            return word.endswith("s") and not word.endswith(("ss", "us", "is", "'s"))
    return False


def _without_times(asked: list[str]) -> list[str]:
    """The terms that are no words for a time. Where nothing else is asked for, the names of days and months and the
    numbers: what is told of a day is seldom said on it."""
    kept = [term for term in asked if term not in _TIME_TERMS]
    return [term for term in asked if _is_of_calendar(term)] if all(map(_is_of_calendar, kept)) else kept


def _is_of_calendar(term: str) -> bool:
    return term in _CALENDAR or _DATE_NUMBER.fullmatch(term) is not None
