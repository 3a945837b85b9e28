"""Whether the hits of a search answer the query or are noise. Pure.

The query's subject are its terms without the names of speakers, which match everything they ever said.
- No hit contains a term of the subject, or a hyponym: noise.
- A hit contains the whole subject: an answer, however long the text.
- The query asks for a figure, and no good hit has one next to its words: noise.
- Otherwise the best score decides, without the parts for the manner of speaking. How high it must be depends on the
  query: see `_bar`.

`python -m bench.abstention` measures it.
"""

import math
import re
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final

from kalito_mcp.domain.records import RecordType
from kalito_mcp.retrieval.asked_attribute import asked_attribute
from kalito_mcp.retrieval.asked_figure import asked_figure
from kalito_mcp.retrieval.hyponyms import hyponyms, said_for, told_for
from kalito_mcp.retrieval.question import Question
from kalito_mcp.retrieval.scored_candidate import ScoredCandidate
from kalito_mcp.text.analysis import stem, words
from kalito_mcp.text.languages import ENGLISH
from kalito_mcp.text.sentences import split_sentences

_FULL_BAR_TERMS: Final = 8
"""Terms of a query up to which the bar has its full height. Of more, an answer contains a smaller share."""

_FULL_BAR_WORDS: Final = 60
_LEAST_FOR_LONG: Final = 0.45
"""Words of a text up to which the bar has its full height, and the least height for a longer one. A long text gets less
for each word of the query (`features.damping`), even if it answers it."""

_IF_MISTYPED: Final = 0.8
"""Factor of the bar for each corrected word: it counts less, and others may be mistyped that no correction was found
for."""

_IF_NAMES_ARE_UNKNOWN: Final = 2.0
_IF_A_NAME_IS_KNOWN: Final = 0.7
"""Factors of the bar if the query has names: no hit contains one of them, so what it asks about was never met; or one
does."""

_IF_NOT_ENGLISH: Final = 0.5
"""Factor of the bar for a query in another language: its words are in more forms, and pairs of characters match by
chance. Of 25 questions a language at most two are lost by it (`python -m bench.languages`)."""

_GOOD_HITS: Final = 3
"""Hits, best first, of which one has the noun that is asked for, if there is an answer."""

_FEW_TERMS: Final = 6
_IF_SHORT: Final = 0.8
"""Factor of the bar for a query of few terms, unless no good hit has the noun that it asks for: people ask in other
words than they told it in."""

_NAME: Final = re.compile(r"(?<=[\w,;:)] )[A-Z](?![A-Z])[\w'’-]{2,}")
"""A word with a capital letter that does not begin a sentence, and is not in capitals."""


def confidence(found: Sequence[ScoredCandidate]) -> float:
    """How surely these hits answer the query, in [0, 1], to compare with `SearchPolicy.min_score`. 0: none is about the
    subject; 1: one contains all of it. No hits: 0."""
    if not found:
        return 0.0
    subject = _subject(found)
    if not any(_is_about(hit, subject) for hit in found):
        return 0.0
    if any(subject <= hit.terms for hit in found):
        return 1.0
    if _lacks_figure(found):
        return 0.0
    best = max(found, key=lambda hit: hit.topic_score)
    return min(1.0, max(0.0, best.topic_score) / _bar(found, best))


def _lacks_figure(found: Sequence[ScoredCandidate]) -> bool:
    """Whether the query asks for a figure, and no good hit has one of its kind next to a word of the query."""
    question = found[0].question
    if question.language != ENGLISH or question.asks_assistant or found[0].speakers:
        return False
    has_figure = asked_figure(question.query.words)
    return has_figure is not None and not any(map(has_figure, chain(*map(_matching_sentences, found[:_GOOD_HITS]))))


def _matching_sentences(hit: ScoredCandidate) -> list[str]:
    """The sentences that have a word of the query, or one that is evidence for it. The whole text, if only a neighbour
    has one."""
    matched = set(hit.analyzed.matched_words.values()).union(*hit.analyzed.hyponym_words.values())
    text = hit.candidate.text
    matching = [one for one in split_sentences(text) if not matched.isdisjoint(words(one))]
    return matching or [text] * bool(hit.neighbour_terms)


def _lacks_attribute(found: Sequence[ScoredCandidate]) -> bool:
    """Whether no good hit has the noun that is asked for."""
    attribute, subject = _asked_attribute(found), _subject(found)
    return attribute is not None and not any(
        _has_attribute(hit, attribute, subject, found) for hit in found[:_GOOD_HITS]
    )


def _asked_attribute(found: Sequence[ScoredCandidate]) -> str | None:
    """The term for the noun that the query asks for; None if it asks otherwise.

    Who asks about a named speaker was not there, and asks in more general words.
    """
    question = found[0].question
    if question.language != ENGLISH or found[0].speakers:
        return None
    noun = asked_attribute(question.query.words)
    term = None if noun is None else stem(noun)
    return term if term in question.terms else None


def _has_attribute(
    hit: ScoredCandidate, attribute: str, subject: frozenset[str], found: Sequence[ScoredCandidate]
) -> bool:
    """Whether the hit or a neighbour has the noun that is asked for, next to something else of the subject; or the hit
    has a word that tells it, and something else of the subject by another word. If no hit has anything else of the
    subject, the first is enough."""
    others = (subject - {attribute}).intersection(*[frozenset().union(*(one.terms for one in found))])
    literal = hit.terms.union(hit.neighbour_terms)
    by_kind = hit.analyzed.hyponym_words if hit.has_hyponym else {}
    if attribute in literal:
        return not others or len(subject & literal.union(by_kind)) > 1
    telling = _telling(attribute, by_kind.get(attribute, ()))
    if not telling:
        return False
    if not others or not subject.isdisjoint(hit.terms):
        return True
    return any(not telling.issuperset(said) for kind, said in by_kind.items() if kind != attribute)


def _telling(attribute: str, said: Iterable[str]) -> frozenset[str]:
    """Those of the words said that tell what is asked for, rather than ask for it in another way."""
    asking = said_for(attribute) - told_for(attribute) - hyponyms(attribute)
    return frozenset(word for word in said if stem(word) not in asking)


def _bar(found: Sequence[ScoredCandidate], best: ScoredCandidate) -> float:
    """How high the best score must be, as a factor of `SearchPolicy.min_score`.

    Several sentences are about several things, so an answer contains a smaller share of them. A summary has words of
    many messages, so it gets nothing for its length.
    """
    question = found[0].question
    sentences = max(1, len(split_sentences(question.query.words)))
    factor = min(1.0, math.sqrt(_FULL_BAR_TERMS / max(1, len(question.terms)))) / sentences
    if best.candidate.type is not RecordType.SUMMARY:
        factor *= min(1.0, max(_LEAST_FOR_LONG, _FULL_BAR_WORDS / max(1, len(best.text))))
    factor *= _IF_MISTYPED ** len(question.corrected_terms)
    if question.language != ENGLISH:
        return factor * _IF_NOT_ENGLISH
    if len(question.terms) <= _FEW_TERMS and not found[0].speakers and not _lacks_attribute(found):
        factor *= _IF_SHORT
    names = _names(question).intersection(question.terms)
    if not names:
        return factor
    return factor * (_IF_NAMES_ARE_UNKNOWN if names == _unmatched(found, names) else _IF_A_NAME_IS_KNOWN)


def _names(question: Question) -> set[str]:
    """The terms of the query that are names, as far as capital letters tell."""
    return {stem(word.partition("'")[0]) for name in _NAME.findall(question.query.words) for word in words(name)}


def unmatched_words(found: Sequence[ScoredCandidate]) -> tuple[str, ...]:
    """The words of the subject, as the query spells them, that neither a hit nor a neighbour of one contains. No hits:
    empty."""
    if not found:
        return ()
    question = found[0].question
    unmatched = _unmatched(found, _subject(found))
    return tuple(question.surface[term] for term in question.terms if term in unmatched)


def _unmatched(found: Sequence[ScoredCandidate], terms: Iterable[str]) -> set[str]:
    """Those of the terms that neither a hit nor a neighbour of one contains."""
    missing = set(terms).difference(*(hit.terms for hit in found), *(hit.neighbour_terms for hit in found))
    if missing.isdisjoint(found[0].question.hyponyms):
        return missing
    return missing.difference(*(_kinds_of_instances(hit) for hit in found if hit.has_hyponym))


def _subject(found: Sequence[ScoredCandidate]) -> frozenset[str]:
    """The terms that say what is asked about; all terms, if nothing else is left."""
    names = {stem(word) for name in found[0].speakers for word in words(name)}
    terms = found[0].question.terms
    is_dated = "date" in found[0].parts
    # A number that the date matched is in no text.
    return frozenset(term for term in terms if term not in names and not (is_dated and term[0].isdigit())) or frozenset(
        terms
    )


def _is_about(hit: ScoredCandidate, subject: frozenset[str]) -> bool:
    """Whether it or a neighbour contains a word of the subject, or it was said at the time that the query names."""
    return (
        not subject.isdisjoint(hit.terms)
        or hit.is_of_named_time
        or not subject.isdisjoint(hit.neighbour_terms)
        or _has_instance(hit)
    )


def _has_instance(hit: ScoredCandidate) -> bool:
    """Whether it contains a hyponym. What is only said of a thing tells nothing of a named speaker's."""
    return hit.has_hyponym and (not hit.speakers or bool(_kinds_of_instances(hit)))


def _kinds_of_instances(hit: ScoredCandidate) -> set[str]:
    """The kinds of which it contains a hyponym, not only what is said of them."""
    loose = hit.question.loose
    found = hit.analyzed.hyponym_words.items()
    return {kind for kind, said in found if any(stem(word) not in loose.get(kind, ()) for word in said)}
