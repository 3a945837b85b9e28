"""Corrects mistyped terms of a question: into function words, speakers' names, or other terms. Pure.

Only terms that no record contains are looked at. `python -m bench.recall --typos 0.5` measures it.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from kalito_mcp.ports.search import SearchIndex
from kalito_mcp.retrieval.question import Question
from kalito_mcp.text.analysis import STOP_WORDS, stem, words
from kalito_mcp.text.languages import ENGLISH
from kalito_mcp.text.spelling import spellings

_MIN_LETTERS: Final = 5
"""A shorter word is one mistake away from too many others, except names and function words: pets from gets."""

_MOST_NAMES: Final = 1_000
_CREDIT: Final = 0.9
"""The weight of a corrected word, relative to the same word typed correctly."""


def corrected(question: Question, missing: Sequence[str], index: SearchIndex) -> Question:
    """The question with corrections as other forms of its query's mistyped terms. `missing` are the terms that
    no record contains. A mistyped function word ("waht") is left out, unless nothing else is asked.

    Other wordings are a model's, which does not mistype; but it says many words that no record has."""
    typed = frozenset(question.wordings[0])
    mistyped = {question.surface[term]: term for term in missing if term in typed}
    if not mistyped:
        return question
    if question.language == ENGLISH:
        function_words = {word for word in mistyped if _is_function_word(word)}
        question = question.without({mistyped[word] for word in function_words})
        mistyped = {word: term for word, term in mistyped.items() if word not in function_words}
    meant = _names(mistyped, index.records.name_list)
    longer = [word for word in mistyped if word not in meant and len(word) >= _MIN_LETTERS]
    similar = index.similar_terms(longer, limit=1) if longer else {}
    meant |= {word: found[0][0] for word, found in similar.items()}
    return question.with_corrections({mistyped[word]: (term, _CREDIT) for word, term in meant.items()})


def _is_function_word(word: str) -> bool:
    return not STOP_WORDS.isdisjoint(spellings(word))


def _names(mistyped: Iterable[str], names: Sequence[str | None]) -> dict[str, str]:
    """The stem of a speaker's name, for each word that may be a mistyped part of it."""
    known = {word for name in names[:_MOST_NAMES] if name is not None for word in words(name)}
    found = {word: next((one for one in spellings(word) if one in known), None) for word in mistyped}
    return {word: stem(name) for word, name in found.items() if name is not None}
