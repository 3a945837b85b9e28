"""What a question asks for, in the other languages of a memory. Pure, on one index.

A French question finds an English turn, and an English question a French one, by the words of `concepts`. A language is
looked up only if the memory has one of its commonest words, so that a memory in one language costs next to nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain, islice
from typing import Final

from kalito_mcp.ports.search import SearchIndex
from kalito_mcp.retrieval.concepts import COMMONEST, beginning_of, in_language, is_form_of
from kalito_mcp.retrieval.hyponyms import hyponyms, said_for
from kalito_mcp.retrieval.question import Question
from kalito_mcp.text.analysis import is_spelled_with_spaces

_TELLING: Final = 3
"""How many of the commonest words tell that a memory has texts in a language."""

_MOST_PREFIXES: Final = 64
"""Looking one up takes FTS5 about 0.1 ms."""


def translated(question: Question, index: SearchIndex) -> Question:
    """The question with words of the memory's other languages among the hyponyms of its terms."""
    if not question.concepts:
        return question
    spoken = [code for code in COMMONEST if any(len(index.places(word)) for word in COMMONEST[code][:_TELLING])]
    if not spoken:
        return question
    wanted = {
        term: {code: _words(english, code, is_asked=code == question.language) for code in spoken}
        for term, english in question.concepts.items()
    }
    found = index.terms_with_prefixes(_prefixes(wanted))
    members, foreign = dict(question.hyponyms), dict[str, str]()
    asked = {*question.terms, *chain.from_iterable(question.forms.values())}
    for term, by_language in wanted.items():
        known = members.get(term, frozenset())
        for code, translations in by_language.items():
            forms = {form for word in translations for form in _forms(word, found)} - asked - known
            foreign |= dict.fromkeys(forms, code)
            members[term] = members.get(term, frozenset()) | forms
    kept = {term: forms for term, forms in members.items() if forms}
    return replace(question, hyponyms=kept, foreign=foreign)


def _words(english: Iterable[str], language: str, *, is_asked: bool) -> list[str]:
    """The words of a language for these concepts and for instances of them. In the language of the question, only
    those for instances."""
    stems = sorted(english)
    instances = sorted(frozenset().union(*map(hyponyms, stems), *map(said_for, stems)).difference(stems))
    return in_language(instances if is_asked else [*stems, *instances], language)


def _prefixes(wanted: Mapping[str, Mapping[str, list[str]]]) -> list[str]:
    """The beginnings to look up, those of the first words first."""
    asked = [
        [beginning_of(word) for word in found if is_spelled_with_spaces(word)]
        for by_language in wanted.values()
        for found in by_language.values()
    ]
    longest = max(map(len, asked), default=0)
    in_turn = chain.from_iterable([one[place] for one in asked if place < len(one)] for place in range(longest))
    return list(islice(dict.fromkeys(in_turn), _MOST_PREFIXES))


def _forms(word: str, found: Mapping[str, Iterable[str]]) -> set[str]:
    """The word and the terms of the memory that may be forms of it."""
    if not is_spelled_with_spaces(word):
        return {word}
    return {word}.union(one for one in found.get(beginning_of(word), ()) if is_form_of(one, word))
