"""Other forms of a query's words in languages for which the index has no stemmer. Pure.

English terms are stems. A word of another language is indexed as it is, so it is asked for by its beginning: `lernt`
also as the terms that begin with `lern`. The beginning of four or five letters does about as well as a stemmer in
languages that inflect at the end. A long word is also asked for as the first part of longer ones. Arabic also inflects
at the start: there the article and the particles are cut off the query's word, and put before its beginning in all
combinations.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest
from typing import Final

_ARABIC: Final = re.compile("[\u0621-\u064a]")
_ARABIC_ARTICLE: Final = re.compile("[وف]?(?:[بك]?ال|لل)")
_ARABIC_START: Final = re.compile("^(?:[وف]?(?:[بك]?ال|لل)|[وفبلكسي])(?=.{3})")
_ARABIC_STARTS: Final = ("", "ال", "و", "ي", "ت", "ب", "ل", "وال", "بال", "لل", "ف", "أ", "ن")
"""The commonest first."""
_SHORT_LETTERS: Final = re.compile("[\u0590-\u08ff\u0900-\u0dff]")
"""Scripts in which a few letters are a word: they write few vowels, or as signs of the letters before."""

_SHORTEST: Final = 3
_BEGINNING: Final = 4
_LONG: Final = 7
"""Letters of a word from which its prefix has one letter more."""

_MOST_FORMS: Final = 24
_MOST_PREFIXES: Final = 64
"""Of a query. The index goes through the terms of each."""


def prefixes(term: str, *, is_known: bool = True) -> tuple[str, ...]:
    """The beginnings that other forms of the word may have; empty for a word that is too short.

    If the language is not known, they are a letter shorter: that finds two or three more of ten answers in Greek and
    Finnish. In a known language it would end more of the silence than it finds.
    """
    if _ARABIC.match(term):
        # A particle of one letter may be the first letter of the word.
        words = {term if _ARABIC_ARTICLE.match(term) is None else "", _ARABIC_START.sub("", term)}
        roots = sorted(_short_beginning(word) for word in words if len(word) >= _SHORTEST)
        return tuple(dict.fromkeys(start + root for start in _ARABIC_STARTS for root in roots))
    if _SHORT_LETTERS.match(term):
        return (_short_beginning(term),) if len(term) >= _SHORTEST else ()
    if len(term) <= _SHORTEST or not term.isalpha():
        return ()
    beginning = term[: _BEGINNING + (len(term) >= _LONG) - (not is_known)]
    return (beginning, term) if len(term) >= _LONG else (beginning,)


def _short_beginning(word: str) -> str:
    """Three or four letters of a script in which these are a word."""
    return word[: max(_SHORTEST, min(_BEGINNING, len(word) - 1))]


def prefixes_of(terms: Sequence[str], *, is_known: bool = True) -> list[str]:
    """The prefixes of the terms, the first ones of each term first, as many as a search may look up."""
    found = zip_longest(*(prefixes(term, is_known=is_known) for term in terms), fillvalue="")
    return list(dict.fromkeys(filter(None, chain.from_iterable(found))))[:_MOST_PREFIXES]


def word_forms(
    terms: Sequence[str], found: Mapping[str, Sequence[str]], *, is_known: bool = True
) -> dict[str, list[str]]:
    """For each term, the found terms that are most like it in length; `found` is by prefix."""
    forms: dict[str, list[str]] = {}
    for term in terms:
        others = {one for prefix in prefixes(term, is_known=is_known) for one in found.get(prefix, ())} - {term}
        if others:
            forms[term] = sorted(others, key=lambda one: (abs(len(one) - len(term)), one))[:_MOST_FORMS]
    return forms
