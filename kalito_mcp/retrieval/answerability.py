"""Whether the hits of a search answer the query or are noise. Pure.

What decides is the query's subject: its terms minus the names of speakers, which match everything they ever said, and
minus the words about the form of the answer ("list in order what I mentioned").
- No hit contains a term of the subject, or a hyponym: noise.
- A hit contains the whole subject: an answer, however long the text.
- Otherwise the best score decides, without the style features and as if the words about the form were not asked. In
  other languages than English a lower score is enough.

`python -m bench.abstention` measures it. The list of words is English and made by hand; in other languages every word
counts.
"""

from collections.abc import Sequence
from typing import Final

from kalito_mcp.retrieval.scored_candidate import ScoredCandidate
from kalito_mcp.text.analysis import stem, words
from kalito_mcp.text.languages import ENGLISH

_ANSWER_FORM: Final = frozenset(
    map(
        stem,
        """across answer aspect bring chat complete comprehensive conversation describe detail different discuss
        discussion example explain give item kind list many mention number order question remind summarize summary
        talk thing throughout topic type various""".split(),
    )
)
_NOT_ABOUT_SUBJECT: Final = ("first_person", "assistant")
"""Features that texts about any other subject have too."""

_FACTOR_PER_CORRECTION: Final = 0.8
"""The confidence is divided by it for each corrected word: a corrected word counts less, and where one word is mistyped
others may be that no correction was found for."""


_FACTOR_ELSEWHERE: Final = 0.3
"""The same for a question that is not in English: its words are in more forms, and pairs of characters match by chance.
Of 25 questions a language at most one is lost by it (`python -m bench.languages`); with 0.55, up to eleven.
"""


def confidence(found: Sequence[ScoredCandidate]) -> float:
    """How surely these hits, best first, answer the query, in [0, 1]. 0: none is about the subject; 1: one contains
    all of it. No hits: 0."""
    if not found:
        return 0.0
    subject = _subject(found)
    if not any(_is_about(hit, subject) for hit in found):
        return 0.0
    best = found[0]
    if any(subject <= hit.analyzed.counts.keys() for hit in found):
        return 1.0
    asked = best.question.terms
    counted = [term for term in asked if term in best.analyzed.counts or not _is_aside(term, best)]
    style = sum(best.parts.get(name, 0.0) for name in _NOT_ABOUT_SUBJECT)
    share = len(asked) / (len(counted) or len(asked))
    factor = _FACTOR_PER_CORRECTION ** len(best.question.corrected_terms)
    if best.question.language != ENGLISH:
        factor *= _FACTOR_ELSEWHERE
    return min(1.0, max(0.0, best.score - style) * share / factor)


def unmatched_words(found: Sequence[ScoredCandidate]) -> tuple[str, ...]:
    """The words of the subject, as the query spells them, that neither a hit nor a neighbour of one contains. No hits:
    empty."""
    if not found:
        return ()
    question, subject = found[0].question, _subject(found)
    matched = {term for hit in found for term in (*hit.analyzed.counts, *hit.neighbour_terms, *hit.analyzed.hyponyms)}
    return tuple(question.surface[term] for term in question.terms if term in subject and term not in matched)


def _subject(found: Sequence[ScoredCandidate]) -> frozenset[str]:
    """The terms that say what is asked about; all terms, if nothing else is left."""
    speakers = {stub.name for stub in found[0].neighbourhood.stubs if stub.name}
    names = {stem(word) for name in speakers for word in words(name)}
    terms = found[0].question.terms
    return frozenset(term for term in terms if term not in names and not _is_aside(term, found[0])) or frozenset(terms)


def _is_aside(term: str, best: ScoredCandidate) -> bool:
    """Whether a term is not part of the subject: it is about the form, or it is a number that the date matched."""
    return term in _ANSWER_FORM or (term[0].isdigit() and "date" in best.parts)


def _is_about(hit: ScoredCandidate, subject: frozenset[str]) -> bool:
    """Whether it or a neighbour contains a word of the subject, or it was said at the time that the query names."""
    return (
        not subject.isdisjoint(hit.analyzed.counts)
        or hit.is_of_named_time
        or not subject.isdisjoint(hit.neighbour_terms)
        or bool(hit.analyzed.hyponyms)
    )
