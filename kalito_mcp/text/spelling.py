"""Finds the index terms that a mistyped word may stand for. Pure.

A term is a word without its ending (`analysis.stem`), and the mistake may be in the ending. So a word is also compared
with the inflected forms of a term: "paintnig" means `paint`. Words of four or more letters may have one mistake, words
of eight or more two (six without the ending). A word of three letters may only have two neighbours swapped. Words with
digits are never corrected.

This module also says where to look. If the mistake comes after the first letters of a word, its `head`, the term has
the same head. If it is in the head, the term begins like one of some two hundred `spellings`. Two mistakes are only
found after the head.

Source: Damerau, CACM 7 (3), 1964: four of five mistakes are one letter lost, added or replaced, or two neighbours
swapped. Candidates are ranked by mistake and frequency, after the noisy channel of Kernighan, Church and Gale, COLING
1990, with three weights instead of their tables.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from kalito_mcp.text.analysis import stem

_SHORTEST: Final = 3
_ONE_MISTAKE: Final = 4
_TWO_MISTAKES: Final = 8
_TWO_MISTAKES_IN_A_STEM: Final = 6
_MOST: Final = 2
_LONGEST: Final = 40
_HEAD: Final = 4
_ENDINGS: Final = ("", "e", "s", "es", "ed", "ing", "ings", "ly", "ely")
_DOUBLING: Final = ("ed", "ing")
_LONGEST_ENDING: Final = 4
_ALPHABETS: Final = (
    "abcdefghijklmnopqrstuvwxyz",
    "абвгдежзийклмнопрстуфхцчшщъыьэюяєіґђјљњћџў",
    "αβγδεζηθικλμνξοπρστυφχψω",
)
_ROWS: Final = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
# Costs as a share of one mistake. Common typing mistakes cost less, one in the first letter costs more.
_COMMON_MISTAKE: Final = 0.7
_ADJACENT_KEY: Final = 0.8
_FIRST_LETTER: Final = 0.2
# A term may have one mistake more if it is e ** 5 = 150 times as frequent.
_FREQUENCY: Final = 0.2
_COMPARED: Final = 300


def _neighbours() -> frozenset[str]:
    """The pairs of letters whose keys are next to each other."""
    places = {letter: (x + y / 2, y) for y, row in enumerate(_ROWS) for x, letter in enumerate(row)}
    return frozenset(
        one + other
        for one, (x, y) in places.items()
        for other, (other_x, other_y) in places.items()
        if one != other and abs(x - other_x) <= 1 and abs(y - other_y) <= 1
    )


_NEIGHBOURS: Final = _neighbours()


def is_spellable(word: str) -> bool:
    """Whether a folded word can be corrected: it has three to forty letters, and nothing else."""
    return _SHORTEST <= len(word) <= _LONGEST and word.isalpha()


def distance(one: str, other: str, most: int) -> int:
    """How many letters must be added, removed, replaced or swapped with the next to turn one word into the other.

    No letter is changed twice (the restricted distance). If it exceeds `most`, which is 0 to 2: `most` + 1.
    """
    start, end_one, end_other = _apart(one, other)
    one, other = one[start:end_one], other[start:end_other]
    if abs(len(one) - len(other)) > most:
        return most + 1
    if not one or not other:
        return len(one) + len(other)
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        row = [i]
        for j, its in enumerate(other, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (letter != its))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == its:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
        before, last = last, row
    return min(last[-1], most + 1)


def similarity(word: str, term: str) -> float:
    """How well a mistyped word, folded and with its ending, fits a term: 1 for the term itself, 0 for no fit."""
    stemmed = stem(word)
    if stemmed == term:
        return 1.0
    if not is_spellable(word):
        return 0.0
    cost = min(_cost(stemmed, term), *(_cost(word, form) for form in _forms(term, len(word))), _two(stemmed, term))
    return max(0.0, 1 - cost / (len(word) + 1))


def similarity_as_written(word: str, other: str) -> float:
    """How well a mistyped word fits another word in just that form: 1 for the same word, 0 for no fit."""
    return 1.0 if word == other else max(0.0, 1 - _cost(word, other) / (len(word) + 1))


def near(
    word: str, candidates: Iterable[tuple[str, int]], *, limit: int, counted: Callable[[str], int] | None = None
) -> list[tuple[str, int]]:
    """The candidates that the word may stand for, likeliest first. Each is a term and its number of records.

    The mistake and the term's frequency make it likely; ties are in alphabetical order. The word's own term is left
    out. Two mistakes are only tried if no term fits with one, and only among the commonest terms.

    With `counted`, the number of records is what that says of a term, and the candidates' own does not count. It is
    asked only of terms that fit. One that has 0 is left out.
    """
    own = stem(word)
    others = [(term, count) for term, count in candidates if count > 0 and term != own]
    close = [(term, count) for term, count in others if _may_fit(word, term)]
    found = _ranked(word, close, counted)
    if not found:
        letters = set(own)
        # One mistake removes at most one letter and adds at most one.
        possible = [(-count, term) for term, count in others if len(letters ^ set(term)) <= 2 * _MOST]
        commonest = sorted(possible)[: _COMPARED if counted is None else None]
        found = _ranked(word, [(term, -count) for count, term in commonest if _two(own, term) < math.inf], counted)
    return found[:limit]


def head(word: str) -> str:
    """The first letters of a word, shared by every term it fits if the mistake comes later. Enough letters that few
    terms share them, and so few that `spellings` stays short."""
    return word[:_HEAD]


def term_lengths(word: str) -> tuple[int, int]:
    """The shortest and the longest length of a term that the word may fit."""
    most = _MOST if len(word) >= _TWO_MISTAKES else 1
    return max(_SHORTEST, len(word) - most - _LONGEST_ENDING), len(word) + most


def spellings(word: str) -> Iterator[str]:
    """The word with one mistake undone that begins in its `head`, and possible terms shorter than its head; with
    repeats.

    Letters are only inserted in a Latin, Greek or Cyrillic word, from its own alphabet. In a word of three letters,
    neighbours are swapped and nothing else.
    """
    is_short = len(word) < _ONE_MISTAKE
    if not is_short:
        yield word[:_SHORTEST]
        yield word[:_SHORTEST] + "y"
        yield word[:_SHORTEST] + "e"
    letters = "" if is_short else next((alphabet for alphabet in _ALPHABETS if word[:1] in alphabet), "")
    for place, letter in enumerate(head(word)):
        before, after = word[:place], word[place + 1 :]
        if after:
            yield before + after[0] + letter + after[1:]
        if not is_short:
            yield before + after
        for other in letters:
            yield before + other + after
            yield before + other + letter + after


def _ranked(
    word: str, candidates: Iterable[tuple[str, int]], counted: Callable[[str], int] | None
) -> list[tuple[str, int]]:
    scored: list[tuple[float, str, int]] = []
    for term, known in candidates:
        alike = similarity(word, term)
        count = known if counted is None or alike <= 0 else counted(term)
        if alike > 0 and count:
            scored.append(((1 - alike) * (len(word) + 1) - _FREQUENCY * math.log(count), term, count))
    return [(term, count) for _, term, count in sorted(scored)]


def _apart(one: str, other: str) -> tuple[int, int, int]:
    """The place where two words begin to differ, and the place in each where they stop."""
    start, shorter = 0, min(len(one), len(other))
    while start < shorter and one[start] == other[start]:
        start += 1
    end_one, end_other = len(one), len(other)
    while end_one > start and end_other > start and one[end_one - 1] == other[end_other - 1]:
        end_one, end_other = end_one - 1, end_other - 1
    return start, end_one, end_other


def _may_fit(word: str, term: str) -> bool:
    """Whether the word may have the term's letters with one mistake, whatever follows. Rarely wrong, and five times as
    fast as `similarity`."""
    term = term.removesuffix("e")  # an ending may replace it
    place, shorter = 0, min(len(word), len(term))
    while place < shorter and word[place] == term[place]:
        place += 1
    if place == len(term) or term[-1] == "y":
        # The mistake may be in the ending, and a final y is no mistake: the plural replaces it.
        return True
    rest, after = term[place + 1 :], place + 1
    return (
        word.startswith(rest, after)
        or word.startswith(rest, place)
        or word.startswith(term[place:], after)
        or (word[place : place + 2] == term[place : place + 2][::-1] and word.startswith(rest[1:], after + 1))
    )


def _cost(typed: str, meant: str) -> float:
    """What the one mistake costs; infinite for more mistakes, or if the word is too short for it."""
    if abs(len(typed) - len(meant)) > 1 or len(typed) < _SHORTEST or len(meant) < _SHORTEST:
        return math.inf
    start, end_typed, end_meant = _apart(typed, meant)
    was, should = typed[start:end_typed], meant[start:end_meant]
    extra = _FIRST_LETTER if start == 0 else 0.0
    if len(was) == len(should) == 2 and was == should[::-1]:  # noqa: PLR2004 - two neighbours
        return _COMMON_MISTAKE + extra
    if len(was) > 1 or len(should) > 1 or len(typed) < _ONE_MISTAKE:
        return math.inf
    return _one_mistake(typed, start, was, should) + extra


def _two(stemmed: str, term: str) -> float:
    """What two mistakes cost; infinite for more or fewer mistakes, or if the word is too short for them."""
    is_long = len(stemmed) >= _TWO_MISTAKES_IN_A_STEM
    return float(_MOST) if is_long and distance(stemmed, term, _MOST) == _MOST else math.inf


def _one_mistake(typed: str, start: int, was: str, should: str) -> float:
    """What one letter costs: `was` instead of `should`, either of which may be empty."""
    around = typed[max(0, start - 1) : start] + typed[start + len(was) : start + len(was) + 1]
    if was and should:
        return _ADJACENT_KEY if was + should in _NEIGHBOURS else 1.0
    if (was or should) in around:
        return _COMMON_MISTAKE
    return _ADJACENT_KEY if was and any(was + letter in _NEIGHBOURS for letter in around) else 1.0


def _forms(term: str, length: int) -> Iterator[str]:
    """The inflected forms of the term whose length differs from `length` by at most one letter."""
    least, most = length - 1, length + 1
    for ending in _ENDINGS:
        if least <= len(term) + len(ending) <= most:
            yield term + ending
    for ending in _DOUBLING:
        if least <= len(term) + 1 + len(ending) <= most:
            yield term + term[-1] + ending
    if term.endswith("e"):
        for ending in _DOUBLING:
            if least <= len(term) - 1 + len(ending) <= most:
                yield term[:-1] + ending
    if term.endswith("y") and least <= len(term) + 2 <= most:
        yield term[:-1] + "ies"
