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
_KINDS: Final = Path(__file__).with_name("hyponyms.txt")
_EVERYDAY: Final = Path(__file__).with_name("everyday.txt")
_NONE: Final[frozenset[str]] = frozenset()


def hyponyms(term: str) -> frozenset[str]:
    """The stemmed hyponyms of a kind, and its other names; never the term itself.

    The term is stemmed, as a query's terms are. A kind with several lines has the words of all. No kind: empty.
    """
    return _words_for(term, _KINDS)


def said_for(term: str) -> frozenset[str]:
    """The stems of what people say who tell of what is asked for by this term, hyponyms or not; never the term itself.

    Evidence weaker than hyponyms. None known: empty.
    """
    return _words_for(term, _EVERYDAY)


def told_for(term: str) -> frozenset[str]:
    """Those of `said_for` that tell what is asked for; not the other words with which one asks."""
    return _words_for(term, _EVERYDAY, of=" : ")


def is_listed(word: str) -> bool:
    """Whether a list contains the word or its singular: then it is a word, and not a mistyped one."""
    return any(one in words for one in (word, word.removesuffix("s")) for words in (_words(_KINDS), _words(_EVERYDAY)))


def _words_for(term: str, path: Path, *, of: str = "") -> frozenset[str]:
    """The stems of the lines of a term; with `of`, of what follows it in a line."""
    lines = _lines_by_term(path).get(term)
    if lines is None:
        return _NONE
    if of:
        lines = [line.partition(of)[2] for line in lines]
    # Stem only the lines that are asked for: stemming all of them would take longer than a search.
    return frozenset(stem(word) for line in lines for word in line.split() if word != ":") - {term}


@cache
def _words(path: Path) -> frozenset[str]:
    return frozenset(path.read_text(encoding="ascii").split())


@cache
def _lines_by_term(path: Path) -> dict[str, list[str]]:
    """The lines of a list, by the stem of each of the words before their colons."""
    lines: dict[str, list[str]] = {}
    for line in path.read_text(encoding="ascii").splitlines():
        asked, colon, _ = line.partition(" : ")
        if not colon or line.startswith("#"):
            continue
        for word in asked.split():
            lines.setdefault(stem(word), []).append(line)
    return lines
