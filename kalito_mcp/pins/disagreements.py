"""Which of two statements about the same seem to disagree: they differ in one number or name, or one denies the other.
Pure.

Precision comes before recall, because a person is asked about each. Who differs in two values mostly speaks of two
events. Words are compared, so that what is said in other words or in another language is not noticed; and a person may
well speak two languages or have two daughters.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from kalito_mcp.domain.memory_records import MemoryRecord
from kalito_mcp.domain.statements import HOLDS_WITH, Disagreement, Standing, Statement
from kalito_mcp.text.analysis import STOP_WORDS, is_spelled_with_spaces, plainly_spelled, stem

_TOKEN: Final = re.compile(r"[^\W_]+(?:[-.,:/@'’_+#][^\W_]+)*[%+#]*")
_IN_UNSPACED: Final = re.compile(r"[\d.:%]+|[^\d.:%]+")
_ENDS: Final = frozenset(".!?:")
_NEGATIONS: Final = frozenset(
    "not no never without cannot nicht kein keine keinen keinem keiner nie niemals pas jamais nunca jamas non nao niet "
    "geen nooit inte aldrig nigdy не нет никогда degil नहीं لا ليس".split()
)
_NEGATIONS_WITHIN: Final = ("不", "没", "ない", "ません", "않", "안 ")
"""In scripts without spaces."""

_DETERMINERS: Final = frozenset(
    "the a an der die das den dem des ein eine einen einem einer eines unser unsere unseren unserem mein meine meinen "
    "meinem ihr ihre ihren ihrem sein seine seinen seinem jeder jede jedes".split()
)
"""A word after one of these is no name, though German writes it with a capital."""

_AUXILIARIES: Final = frozenset("do does did doesn't don't didn't isn't aren't is are am was be any".split())
_MOST_CHARS: Final = 300
_LEAST_SHARED: Final = 2
_LEAST_AROUND: Final = 2
_MOST_ALIKE: Final = 5
"""What is said of more numbers or names than this is a list."""

_DENIED: Final = 3
"""Words behind a negation that it is taken to deny."""

_VALUE: Final = "\0"


@dataclass(frozen=True, slots=True)
class _Read:
    """A statement by its words: `shape` is their stems with a mark for each value, `frame` are those that carry
    meaning. A value is a number or a name, or several in a row: the words as they are written, by their folded form."""

    shape: tuple[str, ...]
    frame: frozenset[str]
    values: tuple[Mapping[str, str], ...]
    is_denied: bool


def disagreements(statements: Sequence[Statement]) -> Iterator[Disagreement]:
    """The pairs of current statements of one place that seem to disagree, the newest first. Left out are pairs of which
    a person said that both hold. `statements` are newest first."""
    standing = [one.record for one in statements if one.standing is Standing.CURRENT]
    by_frame: dict[tuple[str | None, frozenset[str]], list[int]] = {}
    for at, record in enumerate(standing):
        by_frame.setdefault((record.project, _read(record.text).frame), []).append(at)
    by_frame = {frame: alike for frame, alike in by_frame.items() if len(alike) <= _MOST_ALIKE}
    pairs = {
        (min(first, second), max(first, second))
        for (project, frame), alike in by_frame.items()
        for of in (frame, *(frame - {word} for word in frame))
        for first in by_frame.get((project, of), ())
        for second in alike
        if first != second
    }
    for first, second in sorted(pairs):
        newer, older = standing[first], standing[second]
        if (values := differing(newer.text, older.text)) is not None and not _both_hold(newer, older):
            yield Disagreement(newer, older, *values)


def differing(one: str, other: str) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The numbers or names in which two texts that seem to disagree differ; empty if one denies the other. None if they
    do not seem to disagree."""
    if max(len(one), len(other)) > _MOST_CHARS:
        return None
    ones, others = _read(one), _read(other)
    extra, shared = ones.frame ^ others.frame, ones.frame & others.frame
    if len(extra) > 1:
        return None
    values = [one for one in ones.values if one.keys() not in [other.keys() for other in others.values]]
    other_values = [other for other in others.values if other.keys() not in [one.keys() for one in ones.values]]
    if ones.is_denied != others.is_denied:
        is_same = not (extra or values or other_values)
        return ((), ()) if is_same and (shared or ones.values) else None
    is_same_shape = ones.shape == others.shape and sum(word != _VALUE for word in ones.shape) >= _LEAST_AROUND
    if len(values) != 1 or len(other_values) != 1 or not (is_same_shape or len(shared) >= _LEAST_SHARED):
        return None
    return _apart(values[0], other_values[0])


def names_in(text: str) -> frozenset[str]:
    """The names in a text, folded, without "I" and its like. A German noun looks like one."""
    values = _read(text).values if len(text) <= _MOST_CHARS else ()
    words = (word for value in values for word in value if not _is_number(word))
    return frozenset(word for word in words if word.split("'")[0] not in STOP_WORDS)


def denied_words(text: str) -> frozenset[str]:
    """The few words behind each negation of a text, folded: "Redis" in "we don't need Redis". Not in scripts without
    spaces."""
    words = [plainly_spelled(word).replace("’", "'") for word, _ in _tokens(text[:_MOST_CHARS])]
    behind = (words[at + 1 : at + 1 + _DENIED] for at, word in enumerate(words) if _denies(word))
    return frozenset().union(*behind)


def _apart(one: Mapping[str, str], other: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The words that only one of two values has; None if one of them has none, or only one of them is a number."""
    ones, others = [word for word in one if word not in other], [word for word in other if word not in one]
    if not (ones and others) or any(map(_is_number, ones)) != any(map(_is_number, others)):
        return None
    return tuple(one[word] for word in ones), tuple(other[word] for word in others)


def _both_hold(one: MemoryRecord, other: MemoryRecord) -> bool:
    return other.id in one.content.get(HOLDS_WITH, ()) or one.id in other.content.get(HOLDS_WITH, ())


@lru_cache(maxsize=1_024)
def _read(text: str) -> _Read:
    shape: list[str] = []
    frame: set[str] = set()
    values: list[dict[str, str]] = []
    is_denied = any(mark in text for mark in _NEGATIONS_WITHIN)
    before, end = ".", 0
    for said, start in _tokens(text):
        folded = plainly_spelled(said).replace("’", "'")
        begins = end == 0 or not _ENDS.isdisjoint(text[end:start])
        if _denies(folded):
            is_denied = True
        elif _is_number(folded) or (_is_name(said, begins=begins) and before not in _DETERMINERS):
            if shape[-1:] != [_VALUE]:
                shape.append(_VALUE)
                values.append({})
            values[-1][folded] = said
        else:
            stems = [stem(folded)] if is_spelled_with_spaces(folded) else _pairs(folded)
            shape += stems
            if folded not in STOP_WORDS and folded not in _AUXILIARIES and folded not in _DETERMINERS:
                frame.update(stems)
        before, end = folded, start + len(said)
    return _Read(tuple(shape), frozenset(frame), tuple(values), is_denied)


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    """The words of a text, and where they begin. In scripts without spaces numbers stand apart."""
    for found in _TOKEN.finditer(text):
        if is_spelled_with_spaces(found.group()):
            yield found.group(), found.start()
        else:
            yield from ((one.group(), found.start() + one.start()) for one in _IN_UNSPACED.finditer(found.group()))


def _denies(folded: str) -> bool:
    return folded in _NEGATIONS or folded.endswith("n't")


def _is_number(word: str) -> bool:
    return any(letter.isdigit() for letter in word)


def _is_name(word: str, *, begins: bool) -> bool:
    """Whether it has a capital letter that is not due to the beginning of a sentence."""
    return any(letter.isupper() for letter in word[begins:])


def _pairs(word: str) -> list[str]:
    for mark in _NEGATIONS_WITHIN:
        word = word.replace(mark, "")
    return [word[at : at + 2] for at in range(max(1, len(word) - 1))]
