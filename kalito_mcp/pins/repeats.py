"""Which lasting pins say the same as another. Pure."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final, TypeVar

from kalito_mcp.domain.known import KnownRecord, OfferedPin
from kalito_mcp.text.analysis import indexed_words, query_terms, stem

_FUNCTION_WORDS: Final = frozenset(
    "a an the and also is are am was be been being has have had i i'm i've me my user user's of that this to so very "
    "really now please remember note".split()
)
"""Two texts that differ in these alone say the same: "The user is allergic to nuts", and "I'm allergic to nuts"."""

_LEAST_SHARED: Final = 2
_SHARED: Final = 0.4
_MOSTLY_NAMED: Final = 0.75
_LEAST_REPEATED: Final = 4
MOSTLY_SHARED: Final = 0.6

Stated = TypeVar("Stated", KnownRecord, OfferedPin)


def without_repeats(records: Iterable[Stated], shown: Iterable[str], *, most: int) -> list[Stated]:
    """The first records, at most this many, that repeat neither each other nor what is shown elsewhere."""
    known = {words_said(text) for text in shown}
    kept: list[Stated] = []
    for record in records:
        if len(kept) >= most:
            break
        words = words_said(record.text)
        if words not in known:
            known.add(words)
            kept.append(record)
    return kept


def says_more(one: KnownRecord, other: KnownRecord) -> bool:
    """Whether a fact has all words of another one, which is no newer, and further words."""
    words = words_said(other.text)
    return len(words) >= _LEAST_REPEATED and other.created_at <= one.created_at and words < words_said(one.text)


def are_alike(one: str, other: str) -> bool:
    """Whether two texts seem to be about the same: two terms of the one with fewer, and two in five of them."""
    ones, others = terms_of(one), terms_of(other)
    return len(ones & others) >= max(_LEAST_SHARED, _SHARED * min(len(ones), len(others)))


def are_close(one: str, other: str) -> bool:
    """Whether two texts say much the same: two terms, and three in five of the one with more."""
    ones, others = terms_of(one), terms_of(other)
    return len(ones & others) >= max(_LEAST_SHARED, MOSTLY_SHARED * max(len(ones), len(others)))


def name_the_same(task: str, point: str) -> bool:
    """Whether a task and an open point seem to name the same work: two terms, three in four of the one with fewer, and
    two in five of the point's."""
    ones, others = terms_of(task), terms_of(point)
    least = max(_LEAST_SHARED, _MOSTLY_NAMED * min(len(ones), len(others)), _SHARED * len(others))
    return len(ones & others) >= least


@lru_cache(maxsize=1_024)
def terms_of(text: str) -> frozenset[str]:
    """The terms by which `are_alike` compares."""
    return frozenset(query_terms(text))


@lru_cache(maxsize=1_024)
def words_said(text: str) -> frozenset[str]:
    """The stems of a text's words. Texts with the same ones say the same."""
    words = indexed_words(text)
    return frozenset(stem(word) for word in words if word not in _FUNCTION_WORDS) or frozenset(words or [text])
