"""Whether what a search found is an answer, or noise. Pure.

The subject of a query decides: its words but for the names of those who speak, which find all that they ever said, and
but for the words that only say how to answer (`list in order what I mentioned`). Where nothing that was found holds a
word of the subject, or is an instance of its kind, it is noise. A text that holds every word of it is an answer,
however long it is. Between the two it depends on the best score: without what is only the manner of saying, and as if
the words had not been asked that only say how to answer.

Measured by `bench.abstention`; what it gains is in ARCHITECTURE.md. The list of words is English and made by hand; of
other languages, every word counts.
"""

from collections.abc import Sequence
from typing import Final

from kalito_mcp.domain.analysis import stem, words
from kalito_mcp.retrieval.ranking import Scored

_HOW_TO_ANSWER: Final = frozenset(
    map(
        stem,
        """across answer aspect bring chat complete comprehensive conversation describe detail different discuss
        discussion example explain give item kind list many mention number order question remind summarize summary
        talk thing throughout topic type various""".split(),
    )
)
_NOT_ABOUT: Final = ("first_person", "statement", "time", "number", "question", "assistant")
"""Parts of a score that say how a thing is said, or that it has a number: so does much that is about something else."""

_LEFT_BY_A_CORRECTION: Final = 0.8
"""Of the strength, for each word that was taken for another: it counts less, and where one is mistyped, so are others
that nothing can be taken for."""


def strength(found: Sequence[Scored]) -> float:
    """How surely these hits of a search, best first, are an answer, in [0, 1]: 0 where none is about the subject, 1
    where one has all of it."""
    if not found:
        return 0.0
    subject = _subject(found)
    if not any(_is_about(hit, subject) for hit in found):
        return 0.0
    if any(subject <= hit.reading.counts.keys() for hit in found):
        return 1.0
    best = found[0]
    asked = best.question.terms
    counted = [term for term in asked if term in best.reading.counts or not _is_aside(term, best)]
    manner = sum(best.parts.get(name, 0.0) for name in _NOT_ABOUT)
    share = len(asked) / (len(counted) or len(asked))
    corrections = len(best.question.corrected_terms)
    return min(1.0, max(0.0, best.score - manner) * share / _LEFT_BY_A_CORRECTION**corrections)


def missing(found: Sequence[Scored]) -> tuple[str, ...]:
    """The words of the subject, as they are written in the query, that no hit has, nor what is said around one; none
    where nothing was found."""
    if not found:
        return ()
    asked, subject = found[0].question, _subject(found)
    had = {term for hit in found for term in (*hit.reading.counts, *hit.near, *hit.reading.kinds)}
    return tuple(asked.written[term] for term in asked.terms if term in subject and term not in had)


def _subject(found: Sequence[Scored]) -> frozenset[str]:
    """The terms that say what is asked about; all of them, where nothing else is left."""
    speakers = {place.name for place in found[0].surroundings.places if place.name}
    names = {stem(word) for name in speakers for word in words(name)}
    terms = found[0].question.terms
    return frozenset(term for term in terms if term not in names and not _is_aside(term, found[0])) or frozenset(terms)


def _is_aside(term: str, best: Scored) -> bool:
    """Whether a term is no word for the subject: it says how to answer, or its number was found in the date."""
    return term in _HOW_TO_ANSWER or (term[0].isdigit() and "date" in best.parts)


def _is_about(hit: Scored, subject: frozenset[str]) -> bool:
    """Whether it, or what is said around it, has a word of the subject; or it was said when the query says."""
    return (
        not subject.isdisjoint(hit.reading.counts)
        or hit.is_of_the_time
        or not subject.isdisjoint(hit.near)
        or bool(hit.reading.kinds)
    )
