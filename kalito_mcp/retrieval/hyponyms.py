"""Hyponyms: the words for instances of a kind that a query names, such as puppy for pet. Reads one file, once.

A question says "pets" and the answer says "my new puppy": they share no word. `hyponyms.txt` is an English list made by
hand. It never claims that two words mean the same, only that one is weak evidence for the other.
Source: on dialogue, synonyms in general gain nothing; hyponyms gain 5 points of recall where the answer is spread over
several turns (`python -m bench.recall --ablate`).
"""

from functools import cache
from pathlib import Path
from typing import Final

from kalito_mcp.text.analysis import stem

# importlib.resources alone takes as long to import as the rest of this package.
_LIST: Final = Path(__file__).with_name("hyponyms.txt")
_NONE: Final[frozenset[str]] = frozenset()


def hyponyms(term: str) -> frozenset[str]:
    """The stemmed hyponyms of a kind, and its other names; never the term itself.

    The term is stemmed, as a query's terms are. A kind with several lines has the words of all. No kind: empty.
    """
    lines = _lines_of_kinds().get(term)
    if lines is None:
        return _NONE
    # Stem only the lines that are asked for: stemming all of them would take longer than a search.
    return frozenset(stem(word) for line in lines for word in line.split() if word != ":") - {term}


def is_listed(word: str) -> bool:
    """Whether the list contains the word or its singular: then it is a word, and not a mistyped one."""
    return word in _words() or word.removesuffix("s") in _words()


@cache
def _words() -> frozenset[str]:
    return frozenset(_LIST.read_text(encoding="ascii").split())


@cache
def _lines_of_kinds() -> dict[str, list[str]]:
    """The lines of the list, by the stem of each of their kinds."""
    lines: dict[str, list[str]] = {}
    for line in _LIST.read_text(encoding="ascii").splitlines():
        kinds, colon, _ = line.partition(" : ")
        if not colon or line.startswith("#"):
            continue
        for kind in kinds.split():
            lines.setdefault(stem(kind), []).append(line)
    return lines
