"""What is shown of a long text: the part with the most of what is asked, and its sentences one by one. Pure."""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from kalito_mcp.text.analysis import indexed_words, plainly_spelled, stem, terms

_ELLIPSIS: Final = "…"
# Scripts without spaces and addresses are compared in overlapping slices: every term is whole in one of them.
_SLICE: Final = 96
_STEP: Final = 48
_RUN: Final = re.compile(r"\S+")
_FEW: Final = 16
"""With more than one place for this many characters, every run of characters is looked at."""
_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]+")
# Not after a number or an abbreviation: "11. bis 13. Juni", "Dr. Mowat".
_BORDER: Final = re.compile(r"(?:[!?…]|(?<!\d)(?<!\b\w)(?<!\b[A-Z]\w)\.)[\"'”’»)\]]?\s|[。！？]|\n")

_LEAST_SENTENCE: Final = 40
"""Characters. A shorter sentence stays with the one before it: "No, Bergen" corrects that."""
_MOST_SENTENCE: Final = 320

_LEAST_BEGINNING: Final = 4
"""A word counts as having a term if it begins with this many letters of it."""

_ASKS: Final = re.compile("[?？؟]")
_DIGIT: Final = re.compile(r"\d")
_LONG: Final = 80
"""Characters. A longer sentence counts as one of this length."""


class _Match(NamedTuple):
    """A stretch of a text that contains query terms."""

    start: int
    end: int
    terms: frozenset[str]


def excerpt(text: str, asked: Collection[str], at_most: int) -> str:
    """Return the part of the text with the most query terms, on one line, in at most `at_most` characters (>= 100).

    It begins with a sentence if possible, and an ellipsis marks each cut. Ties: the first part. No terms: the
    beginning of the text.
    """
    return _condensed(text, asked, at_most).replace("\n", " ")


class Sentences:
    """A text in its sentences, on one line. Some of them may be shown, with an ellipsis for what is left out."""

    def __init__(self, text: str, asked: Collection[str], at_most: int) -> None:
        """Of a text of more than `at_most` characters, its excerpt. `asked` are the query's terms."""
        whole = _condensed(text, asked, at_most)
        self.texts: Final = [whole[start:end].replace("\n", " ") for start, end in _sentence_spans(whole)]
        self.places: Final = range(len(self.texts))
        self._beginnings = [term[: max(_LEAST_BEGINNING, len(term) - 1)] for term in asked]
        self._is_whole = len(text) <= at_most

    def worth(self, place: int, *, is_assistant: bool) -> float:
        """How probably a sentence matters to a reader, between 0 and 1: two thirds are whether it tells something, and
        the rest is the share of the asked terms that it has, as beginnings of words, roughly."""
        text = self.texts[place]
        said = plainly_spelled(text)
        share = sum(one in said for one in self._beginnings) / (len(self._beginnings) or 1)
        return (2 * _tells(text, is_assistant=is_assistant) + share) / 3

    def beginning(self, at_most: int) -> list[int]:
        """The places of the first sentences that have at most this many characters together. The first is always among
        them."""
        ends = accumulate(map(len, self.texts))
        return [place for place, end in enumerate(ends) if end <= at_most or not place]

    def is_whole(self, places: Collection[int]) -> bool:
        """Whether these are all of the text."""
        return self._is_whole and len(places) == len(self.texts)

    def shown(self, places: Collection[int]) -> str:
        """The text of these sentences."""
        found = ""
        after = 0
        for place in sorted(places):
            text = self.texts[place]
            if place > after:
                found = f"{found.rstrip()} {_ELLIPSIS} " if found else _ELLIPSIS
                text = text.removeprefix(_ELLIPSIS)
            found += text
            after = place + 1
        return found if after == len(self.texts) else found.rstrip(f" {_ELLIPSIS}") + _ELLIPSIS


def _tells(text: str, *, is_assistant: bool) -> float:
    """How probably somebody would keep a sentence, by who said it and how it looks: a logistic function, fitted to the
    1,206 sentences of `bench/sets/kinds/sentences.jsonl`. For the 300 of three other people, the area under the curve
    is .85, with .90 for `kinds.head`, which needs a vector of every sentence."""
    logit = -0.8 + 2.8 * min(len(text), _LONG) / _LONG
    logit += -2.0 * is_assistant - 2.7 * (_ASKS.search(text) is not None) + 1.4 * (_DIGIT.search(text) is not None)
    return 1 / (1 + math.exp(-logit))


def _condensed(text: str, asked: Collection[str], at_most: int) -> str:
    """The excerpt with its line ends."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    whole = "\n".join(line for line in lines if line)
    if len(whole) <= at_most:
        return whole
    start, end = _densest(list(_matches(whole, asked)), at_most - 2 * len(_ELLIPSIS))
    return _cut_out(whole, start, end, at_most)


def _sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each sentence, with the white space after it; together they are the text. Those of fewer than
    40 characters are with the one before, and those of more than 320 are cut at a space. An empty text has one empty
    span."""
    start = end = 0
    for border in [*(found.end() for found in _BORDER.finditer(text)), len(text)]:
        are_long = min(border - end, end - start) >= _LEAST_SENTENCE
        if end > start and (are_long or border - start > _MOST_SENTENCE):
            yield from _cut(text, start, end)
            start = end
        end = border
    if end > start or not text:
        yield from _cut(text, start, end)


def _cut(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while end - start > _MOST_SENTENCE:
        space = text.rfind(" ", start + _MOST_SENTENCE // 2, start + _MOST_SENTENCE)
        stop = space + 1 if space >= 0 else start + _MOST_SENTENCE
        yield start, stop
        start = stop
    yield start, end


def _matches(text: str, asked: Collection[str]) -> Iterator[_Match]:
    """Yield the words, or slices of long ones, that contain any of the terms, in order."""
    # One pass over the whole text finds the few words to look for; most texts have none.
    written = [word for word in frozenset(indexed_words(text)) if stem(word) in asked]
    if not written:
        return
    known: dict[str, frozenset[str]] = {}
    for start, end in _runs(text, written):
        for at in range(start, max(end - _STEP, start + 1), _STEP):
            part = text[at : min(at + _SLICE, end)]
            if part not in known:
                known[part] = frozenset(terms(part)).intersection(asked)
            if known[part]:
                yield _Match(at, at + len(part), known[part])


def _runs(text: str, written: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield start and end of each run without white space that may contain one of the words, in order: those with its
    letters, and those that are not ASCII, whose words are folded."""
    lowered = text.lower()
    places = [found.start() for found in _NOT_ASCII.finditer(text)]
    places += [place for word in written for place in _places_of(word, lowered)]
    # If lowering changed the length, the places do not fit; with very many, looking at all runs is cheaper.
    if len(lowered) != len(text) or len(places) > len(text) // _FEW:
        yield from (run.span() for run in _RUN.finditer(text))
        return
    end = 0
    for place in sorted(places):
        if place >= end and (run := _RUN.match(text, _beginning_of_run(text, end, place))) is not None:
            start, end = run.span()
            yield start, end


def _places_of(word: str, text: str) -> Iterator[int]:
    place = text.find(word)
    while place >= 0:
        yield place
        place = text.find(word, place + len(word))


def _beginning_of_run(text: str, earliest: int, place: int) -> int:
    return max(text.rfind(" ", earliest, place), text.rfind("\n", earliest, place), earliest - 1) + 1


def _densest(matches: Sequence[_Match], room: int) -> tuple[int, int]:
    """Return start and end of the matches with the most distinct terms within `room` characters. Ties: the first.
    No matches: (0, 0)."""
    best, most = (0, 0), 0
    first = count = 0
    held: Counter[str] = Counter()
    for match in matches:
        for term in match.terms:
            count += not held[term]
            held[term] += 1
        while match.end - matches[first].start > room:
            for term in matches[first].terms:
                held[term] -= 1
                count -= not held[term]
            first += 1
        if count > most:
            best, most = (matches[first].start, match.end), count
    return best


def _cut_out(text: str, start: int, end: int, at_most: int) -> str:
    """Cut out the stretch from `start` to `end`, with as much text around it as there is room for."""
    room = at_most - 2 * len(_ELLIPSIS)
    begin = _beginning(text, start, max(0, end - room), room)
    lead = _ELLIPSIS if begin else ""
    if len(text) - begin <= at_most - len(lead):
        return lead + text[begin:]
    stop = begin + at_most - len(lead) - len(_ELLIPSIS)
    space = max(text.rfind(mark, max(end, begin + room // 2), stop + 1) for mark in " \n")
    return lead + text[begin : space if space >= 0 else stop].rstrip(" \n,;:-–—(") + _ELLIPSIS


def _beginning(text: str, start: int, earliest: int, room: int) -> int:
    """Return where an excerpt that must show `start` begins: at its sentence, or at an earlier one if all that
    follows fits; else at a word, a third of the room earlier."""
    borders = [border.end() for border in _BORDER.finditer(text, earliest, start)]
    if earliest == 0:
        borders.insert(0, 0)
    if borders:
        return next((border for border in borders if border >= len(text) - room), borders[-1])
    begin = max(earliest, start - room // 3)
    space = text.find(" ", begin, start)
    return space + 1 if space >= 0 else start
