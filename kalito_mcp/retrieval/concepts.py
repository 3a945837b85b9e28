"""Concepts: what everyday words are called in ten languages. Reads one small file, once, when it is first needed.

`concepts.txt` is made by hand: a line is a concept, its cells are the words for it in each of `LANGUAGES`. The words of
a text are inflected, so they are compared by their beginnings. Like hyponyms, a translation is only weak evidence.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Final, NamedTuple

from kalito_mcp.text.analysis import is_spelled_with_spaces, stem, words
from kalito_mcp.text.languages import ENGLISH

LANGUAGES: Final = ("en", "de", "fr", "es", "pt", "it", "nl", "ru", "zh", "ja")

COMMONEST: Final[Mapping[str, tuple[str, ...]]] = {
    "de": ("ich", "und", "nicht", "der", "das", "ist", "ein", "mein", "zu", "wir", "hat", "den", "mit"),
    "fr": ("je", "une", "dans", "est", "le", "les", "un", "pour", "mon", "ma", "et", "il", "on", "du", "pas", "que"),
    "es": ("estoy", "muy", "pero", "que", "el", "los", "una", "mi", "en", "por", "con", "del", "es", "se"),
    "pt": ("nao", "uma", "estou", "que", "um", "os", "meu", "minha", "em", "com", "para", "ao", "do", "da"),
    "it": ("che", "sono", "della", "il", "un", "una", "mio", "mia", "di", "non", "per", "con", "ho", "si"),
    "nl": ("het", "niet", "een", "ik", "mijn", "de", "en", "van", "dat", "op", "is", "hij", "ze", "we"),
    "ru": ("я", "и", "не", "в", "на", "мы", "у", "с", "что", "он", "она", "мне", "это", "за", "мой"),
    "zh": ("我", "的", "了", "是", "在", "他", "她", "们", "有", "不", "一"),
    "ja": ("です", "ます", "した", "まし", "って", "ない", "から", "ている", "いる", "の", "は", "が"),
}
"""Words that most texts of a language have. The first three are in few texts of another one: `est` is an English time
zone."""

_TABLE: Final = Path(__file__).with_name("concepts.txt")
_CELLS: Final = " | "
_HEAD: Final = 3
"""Letters that all forms of a word have in common. A shorter word has no other forms."""

_LEAST_ALIKE: Final = 4
_MOST_ENDING: Final = 3
_SHORT: Final = 4
"""Letters of a word that gets longer by one letter at most: Arzt, Arzts."""


class Word(NamedTuple):
    """A word of a language, stemmed, and the English stems of its concept."""

    form: str
    english: frozenset[str]


def in_english(term: str, language: str) -> frozenset[str]:
    """The English stems of the concepts that a term of a question in this language is a word for; none: empty."""
    found = (word.english for word in _by_head(language).get(_head(term), ()) if is_form_of(term, word.form))
    return frozenset().union(*found)


def in_language(english: Iterable[str], language: str) -> list[str]:
    """The words of a language for these English stems, in the order of the stems, without repeats."""
    rows = _by_english()
    place = LANGUAGES.index(language)
    return list(dict.fromkeys(word for one in english for cells in rows.get(one, ()) for word in cells[place]))


def is_form_of(term: str, word: str) -> bool:
    """Whether two terms of a language may be forms of the same word, as far as their beginnings tell."""
    if term == word:
        return True
    if not is_spelled_with_spaces(word) or min(len(term), len(word)) < _SHORT:
        return False
    if len(word) == _SHORT:
        return term.startswith(word) and len(term) <= _SHORT + 1
    alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(term, word, strict=False)))
    return alike >= max(_LEAST_ALIKE, max(len(term), len(word)) - _MOST_ENDING)


def beginning_of(word: str) -> str:
    """The letters with which all forms of a word begin."""
    return word if len(word) <= _SHORT else word[: max(_LEAST_ALIKE, len(word) - _MOST_ENDING)]


def _head(word: str) -> str:
    return word[:_HEAD] if is_spelled_with_spaces(word) else word


@cache
def _table() -> list[tuple[tuple[str, ...], ...]]:
    """For each concept, its terms in each of `LANGUAGES`."""
    lines = _TABLE.read_text(encoding="utf-8").splitlines()
    return [
        tuple(tuple(map(stem, words(cell))) for cell in line.split(_CELLS))
        for line in lines
        if line and not line.startswith("#")
    ]


@cache
def _by_head(language: str) -> dict[str, list[Word]]:
    if language == ENGLISH or language not in LANGUAGES:
        return {}
    place, found = LANGUAGES.index(language), dict[str, list[Word]]()
    for cells in _table():
        for form in cells[place]:
            found.setdefault(_head(form), []).append(Word(form, frozenset(cells[0])))
    return found


@cache
def _by_english() -> dict[str, list[tuple[tuple[str, ...], ...]]]:
    found: dict[str, list[tuple[tuple[str, ...], ...]]] = {}
    for cells in _table():
        for one in cells[0]:
            found.setdefault(one, []).append(cells)
    return found
