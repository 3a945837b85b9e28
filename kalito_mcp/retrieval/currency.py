"""Puts what is true now before what was true once, among the hits of a search. Pure.

A hit is outdated if what the query asks of it has been superseded. It comes after the record that superseded it, which
is brought in if it is no hit. A question about the past (before, used to, in May) gets the older first.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kalito_mcp.domain.facts import ANY, Outdated, StatedFact
from kalito_mcp.domain.records import RecordType, Role
from kalito_mcp.domain.search import Candidate, Hit
from kalito_mcp.facts.attributes import asking_words
from kalito_mcp.retrieval.question import Question
from kalito_mcp.text.analysis import stem, terms, words
from kalito_mcp.text.languages import ENGLISH

_PAST: Final = re.compile(
    r"\b(?:before|used to|previous(?:ly)?|former(?:ly)?|earlier|in the past|originally|initially|at first|back then|"
    r"once|old|until|prior|last (?:job|boss|address|employer|home|version|plan|car)|ex|history|historical|"
    r"was my|were my|"
    r"früher|vorher|zuvor|damals|ehemalig\w*|bisher|alte[rns]?|avant|auparavant|ancien(?:ne)?|précédent\w*|autrefois|"
    r"antes|anterior(?:mente)?|previo|solía|antigu[oa])\b|以前|之前|曾经|过去|原来",
    re.IGNORECASE,
)
_STILL: Final = re.compile(r"\b(?:now|current(?:ly)?|still|today|at the moment|these days)\b", re.IGNORECASE)
_PRESENT: Final = re.compile(
    r"\b(?:am|are|can|do|does|has|have|is|should|will|(?:how|what|when|where|who)'s)\b", re.IGNORECASE
)
_TOLD: Final = re.compile(r"\b(?:did|had|was|were|(?:how|what|when|where|who)'d|first)\b", re.IGNORECASE)
"""Words of questions about what is so, and about what happened. English."""

_ALIKE: Final = 0.8
"""Share of the best score from which on a newer hit answers a question about what is so. 60 and 70 % put more wrong
hits first (`bench.personal`, `bench.changes`)."""

_SAYING: Final = frozenset({None, Role.USER})
_LEFT_OVER: Final = 3
"""Words of a text, besides the outdated ones, that state nothing of their own: and, so, by the way."""
_LOOKED_AT: Final = 1_000
"""Characters that nearly always show that a long text says more."""


@dataclass(frozen=True, slots=True)
class Currency:
    """What became of the statements of the hits: facts by the key of the record."""

    facts: Mapping[int, Sequence[StatedFact]]
    question: Question

    @property
    def asks_past(self) -> bool:
        """Whether the question is about what was true before."""
        query = self.question.query.words
        return (_PAST.search(query) is not None and _STILL.search(query) is None) or bool(self.question.spans)

    @property
    def asks_present(self) -> bool:
        """Whether the question is about what is so now: where do I live? English only."""
        query = self.question.query.words
        if self.question.spans or self.question.language != ENGLISH:
            return False
        return _STILL.search(query) is not None or (
            _PRESENT.search(query) is not None and not (_TOLD.search(query) or _PAST.search(query))
        )

    def superseding(self, hit: Hit) -> list[int]:
        """The keys of the records with what stands now instead of what the query asks of the hit."""
        found = (one for one in self.facts.get(hit.key, ()) if self._is_asked(hit, one))
        keys = dict.fromkeys(one.current_key for one in found)
        return [key for key in keys if key is not None and key != hit.key]

    def _is_asked(self, hit: Hit, fact: StatedFact) -> bool:
        """Whether the query asks for this statement, not for something else that the record says."""
        if fact.attribute == ANY or _is_nothing_left(hit.text, [(fact.start, fact.end)]):
            return True
        asked = set(self.question.terms)
        said = set(terms(hit.text[fact.start : fact.end])) | {stem(word) for word in asking_words(fact.attribute)}
        return not asked.isdisjoint(said - set(terms(fact.subject)))


def labelled(hit: Hit, facts: Sequence[StatedFact]) -> Hit:
    """The hit with what is outdated of it, by the facts of its record."""
    ended = _ended(facts)
    conflict = next((one.conflicts_with for one in facts if one.conflicts_with), None)
    if not ended:
        return replace(hit, conflicts_with=conflict) if conflict else hit
    parts: dict[tuple[int, int], Outdated] = {}
    for one in ended:
        if not _stands_otherwise(one, facts) and one.valid_until is not None:
            text = hit.text[one.start : one.end]
            parts[one.start, one.end] = Outdated(text, one.valid_until, one.superseded_by or "")
    if not parts:
        return hit
    outdated = tuple(parts[place] for place in sorted(parts))
    last = max(ended, key=lambda one: one.valid_until or 0)
    is_whole = last.superseded_by != hit.record_id and _is_nothing_left(hit.text, list(parts))
    return replace(
        hit,
        outdated=outdated,
        valid_until=last.valid_until if is_whole else None,
        superseded_by=last.superseded_by if is_whole else None,
        conflicts_with=conflict,
    )


def ordered(hits: Sequence[Hit], current: Mapping[int, Hit], currency: Currency) -> list[Hit]:
    """The hits with each outdated one after what superseded it, or before it if the question asks for the past.

    `current` are the records that superseded hits, by key; those that are no hits are put in. A hit takes the score of
    the one after it if that is higher.
    """
    placed: list[Hit] = []
    taken: set[int] = set()
    by_key = {**current, **{hit.key: hit for hit in hits}}
    newer_of = {
        hit.key: [by_key[key] for key in currency.superseding(hit) if key in by_key]
        for hit in by_key.values()
        if hit.key in currency.facts
    }
    older_of: dict[int, list[Hit]] = {}
    for hit in hits:
        for newer in newer_of.get(hit.key, ()):
            older_of.setdefault(newer.key, []).append(hit)
    asks_past = currency.asks_past

    def put(hit: Hit, seen: frozenset[int]) -> None:
        if hit.key in taken or hit.key in seen:
            return
        newer = newer_of.get(hit.key, ())
        for one in older_of.get(hit.key, ()) if asks_past else newer:
            put(one, seen | {hit.key})
        if hit.key not in taken:
            taken.add(hit.key)
            placed.append(hit)
        if asks_past:
            for one in newer:
                put(one, seen | {hit.key})

    for hit in hits:
        put(hit, frozenset())
    for place in range(len(placed) - 1, 0, -1):
        if placed[place - 1].score < placed[place].score:
            placed[place - 1] = replace(placed[place - 1], score=placed[place].score)
    return placed


def newest_alike(hits: Sequence[Hit]) -> list[Hit]:
    """The hits with the newest one first of those that a person said, or that are no messages, and that match about as
    well as the first. For questions about what is so: people change their minds, and say it in other words."""
    alike = [one for one in hits if one.role in _SAYING and one.score >= _ALIKE * hits[0].score]
    newest = max((one for one in alike if one.superseded_by is None), key=lambda one: one.created_at, default=None)
    if newest is None or newest is hits[0]:
        return list(hits)
    return [replace(newest, score=hits[0].score), *(one for one in hits if one is not newest)]


def hit_of(candidate: Candidate, score: float, project: str | None) -> Hit:
    """The hit of a record, with this score. `project` is that of the search."""
    # The key of a pin may be an internal one.
    is_message = candidate.type is RecordType.MESSAGE
    return Hit(
        record_id=candidate.record_id,
        type=candidate.type,
        session_id=candidate.session_id,
        role=candidate.role,
        name=candidate.name,
        text=candidate.text,
        created_at=candidate.created_at,
        score=score,
        client_key=candidate.client_key if is_message else None,
        key=candidate.key,
        seq=candidate.seq if is_message else None,
        origin=candidate.origin,
        revision=candidate.revision,
        status=candidate.status,
        due_date=candidate.due_date,
        project=None if candidate.project == project else candidate.project,
    )


def _ended(facts: Sequence[StatedFact]) -> list[StatedFact]:
    """What is no longer true. A record that names another as superseded, and states a part of it otherwise, ends that
    part only, if the other states something else that stands."""
    ended = [one for one in facts if _has_ended(one)]
    if all(_has_ended(one) or _stands_with(one, ended) for one in facts):
        return ended
    by_part = {one.superseded_by_key for one in ended if one.attribute != ANY}
    return [one for one in ended if one.attribute != ANY or one.superseded_by_key not in by_part]


def _stands_with(fact: StatedFact, ended: Sequence[StatedFact]) -> bool:
    """Whether the statement is in a clause of which another statement has ended."""
    return any((one.start, one.end) == (fact.start, fact.end) for one in ended)


def _has_ended(fact: StatedFact) -> bool:
    return fact.superseded_by_key is not None


def _stands_otherwise(fact: StatedFact, facts: Sequence[StatedFact]) -> bool:
    """Whether the same clause states something that stands: `Ann and Ben work with me`, when only Ben left."""
    return any(
        (one.start, one.end) == (fact.start, fact.end) and not _has_ended(one) and one.attribute == fact.attribute
        for one in facts
    )


def _is_nothing_left(text: str, places: Sequence[tuple[int, int]]) -> bool:
    """Whether the text says nothing besides these places."""
    rest, at = [], 0
    for start, end in sorted(places):
        rest.append(text[at:start])
        at = max(at, end)
    left = " ".join([*rest, text[at:]])
    # A word that is cut at the end may be counted too much.
    if len(left) > _LOOKED_AT and len(words(left[:_LOOKED_AT])) > _LEFT_OVER + 1:
        return False
    return len(words(left)) <= _LEFT_OVER
