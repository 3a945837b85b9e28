"""Undoes the one mistake in a mistyped word, and says how far apart two words are. Pure.

A word may stand for every word that differs from it by one mistake: two neighbours swapped, a letter missing, another
or one too many. In a word of four letters, one too many is a letter typed twice, and none is another: too many words
differ by that. The first letter is never wrong. Words with digits are never corrected.

Source: Damerau, CACM 7 (3), 1964: four of five mistakes are one letter lost, added or replaced, or two neighbours
swapped.
"""

from collections.abc import Iterator
from typing import Final

_SHORTEST: Final = 4
_LONGEST: Final = 40
_LONG: Final = 5
_ALPHABETS: Final = (
    "abcdefghijklmnopqrstuvwxyz",
    "абвгдежзийклмнопрстуфхцчшщъыьэюяєіґђјљњћџў",
    "αβγδεζηθικλμνξοπρστυφχψω",
    "אבגדהוזחטיכלמנסעפצקרשתךםןףץ",
    "ابتثجحخدذرزسشصضطظعغفقكلمنهويةى",
)


def is_spellable(word: str) -> bool:
    """Whether a folded word can be corrected: it has four to forty letters, and nothing else."""
    return _SHORTEST <= len(word) <= _LONGEST and word.isalpha()


def spellings(word: str) -> Iterator[str]:
    """The words that may have been meant by a folded one, with repeats; none if it cannot be corrected.

    Letters are only added in the alphabets of the list.
    """
    if not is_spellable(word):
        return
    letters = next((alphabet for alphabet in _ALPHABETS if word[0] in alphabet), "")
    for place in range(1, len(word) + 1):
        before, letter, after = word[:place], word[place : place + 1], word[place + 1 :]
        if after:
            yield before + after[0] + letter + after[1:]
        if letter and (letter == before[-1] or len(word) >= _LONG):
            yield before + after
        for other in letters:
            yield before + other + letter + after
            if letter and len(word) >= _LONG:
                yield before + other + after


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


def _apart(one: str, other: str) -> tuple[int, int, int]:
    """The place where two words begin to differ, and the place in each where they stop."""
    start, shorter = 0, min(len(one), len(other))
    while start < shorter and one[start] == other[start]:
        start += 1
    end_one, end_other = len(one), len(other)
    while end_one > start and end_other > start and one[end_one - 1] == other[end_other - 1]:
        end_one, end_other = end_one - 1, end_other - 1
    return start, end_one, end_other
