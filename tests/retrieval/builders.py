"""Builders for the tests of retrieval: questions, candidates, and what a search weighs of them. Pure.

A record's place is its position among the candidates that are given.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from kalito_mcp.domain.records import Origin, RecordType, Role
from kalito_mcp.domain.search import Candidate, SearchFilters
from kalito_mcp.ports.search import RecordColumns
from kalito_mcp.retrieval.features import AnalyzedText, analyze
from kalito_mcp.retrieval.filtering import in_scope, is_admitted
from kalito_mcp.retrieval.matches import Matches
from kalito_mcp.retrieval.neighbourhood import Neighbourhood
from kalito_mcp.retrieval.question import Question, parse_question
from kalito_mcp.retrieval.ranking import Ranker
from kalito_mcp.retrieval.scored_candidate import ScoredCandidate
from kalito_mcp.retrieval.weights import WEIGHTS, FeatureWeights
from kalito_mcp.text.analysis import MANY, SEVERAL, index_text
from tests.scripted import START_MS

NO_FILTERS = SearchFilters()
_NONE = -1
_NO_ROLE = 255


def question(text: str, *, max_terms: int = 32, now_ms: int | None = START_MS) -> Question:
    return parse_question(text, max_terms=max_terms, now_ms=now_ms)


def candidate(
    text: str,
    key: int = 1,
    *,
    role: Role | None = Role.USER,
    name: str | None = None,
    created_at: int = START_MS,
    session: str | None = "trip",
    kind: RecordType = RecordType.MESSAGE,
) -> Candidate:
    return Candidate(
        key=key,
        record_id=f"msg_{key}",
        type=kind,
        session_id=session,
        role=role,
        name=name,
        text=text,
        created_at=created_at,
        seq=key,
        client_key=None,
    )


def analyzed_text(query: str, text: str, *, role: Role | None = Role.USER, name: str | None = None) -> AnalyzedText:
    return analyze(question(query), candidate(text, role=role, name=name))


def columns(*said: Candidate) -> RecordColumns:
    """The columns of these records. None is forgotten or internal."""
    indexed = [index_text(one.text, one.name) for one in said]
    names = list(dict.fromkeys([None, *(one.name for one in said)]))
    next_turns, previous_turns = _links(said)
    return RecordColumns(
        projects=np.full(len(said), -1, np.int32),
        keys=np.array([one.key for one in said], np.int64),
        sessions=np.array(_sessions(said), np.int32),
        created_at=np.array([one.created_at for one in said], np.int64),
        importance=np.array([one.importance for one in said], np.float64),
        names=np.array([names.index(one.name) for one in said], np.int32),
        word_counts=np.array([one.word_count for one in indexed], np.int32),
        next_turns=np.array(next_turns, np.int32),
        previous_turns=np.array(previous_turns, np.int32),
        types=np.array([list(RecordType).index(one.type) for one in said], np.uint8),
        roles=np.array([_NO_ROLE if one.role is None else list(Role).index(one.role) for one in said], np.uint8),
        origins=np.array([list(Origin).index(one.origin) for one in said], np.uint8),
        is_internal=np.zeros(len(said), np.bool_),
        is_shown=np.ones(len(said), np.bool_),
        is_first_person=np.array([one.is_first_person for one in indexed], np.bool_),
        session_numbers={number: number for number in range(len(said))},
        name_list=names,
        tags={},
    )


def _sessions(said: Sequence[Candidate]) -> list[int]:
    ids = list(dict.fromkeys(one.session_id for one in said if one.session_id is not None))
    return [_NONE if one.session_id is None else ids.index(one.session_id) for one in said]


def _links(said: Sequence[Candidate]) -> tuple[list[int], list[int]]:
    """For each record, the places of the next and the previous message of its session."""
    following, preceding = [_NONE] * len(said), [_NONE] * len(said)
    last: dict[str | None, int] = {}
    for place, one in enumerate(said):
        if one.type is RecordType.MESSAGE and one.session_id is not None:
            before = last.get(one.session_id, _NONE)
            last[one.session_id] = place
            if before != _NONE:
                following[before], preceding[place] = place, before
    return following, preceding


class IndexOf:
    """The part of a search index that pure code reads, of these records."""

    session_key: int | None = None
    project_keys: Sequence[int] | None = None

    def __init__(self, *said: Candidate) -> None:
        self.records = columns(*said)
        self._indexed = [index_text(one.text, one.name) for one in said]

    def places(self, term: str, *, times: int = 1) -> NDArray[np.int32]:
        of_times = {1: "terms", SEVERAL: "several", MANY: "many"}[times]
        return np.flatnonzero([term in getattr(one, of_times) for one in self._indexed]).astype(np.int32)


def matches(asked: Question, *said: Candidate, hidden: frozenset[int] = frozenset()) -> Matches:
    """What these records contain of a question. Those with the `hidden` keys are out of scope."""
    index = IndexOf(*said)
    return Matches(index, ~np.isin(index.records.keys, list(hidden)), asked)


def neighbourhood(asked: Question, *said: Candidate, hidden: frozenset[int] = frozenset()) -> Neighbourhood:
    """The surroundings of all these records."""
    return Neighbourhood(columns(*said), matches(asked, *said, hidden=hidden), np.arange(len(said)))


def ranker(
    asked: Question,
    *said: Candidate,
    weights: FeatureWeights = WEIGHTS,
    similarities: Mapping[int, float] | None = None,
    places: Sequence[int] | None = None,
) -> Ranker:
    """A ranker of all these records, or of those at some places. The similarities are by key."""
    records = columns(*said)
    by_place = {int(np.searchsorted(records.keys, key)): value for key, value in (similarities or {}).items()}
    chosen = np.arange(len(said)) if places is None else np.array(places, np.int64)
    return Ranker(records, asked, matches(asked, *said), chosen, weights, by_place)


def scored(
    asked: Question,
    *said: Candidate,
    weights: FeatureWeights = WEIGHTS,
    similarities: Mapping[int, float] | None = None,
) -> list[ScoredCandidate]:
    """All these records with their scores, in their order."""
    return ranker(asked, *said, weights=weights, similarities=similarities).rank(np.arange(len(said)), said)


def scored_by_hand(
    asked: Question, said: Candidate, parts: Mapping[str, float], *, score: float = 0.5, near: Sequence[str] = ()
) -> ScoredCandidate:
    """A record whose score has these parts. The turn after it contains the words of `near`."""
    found = scored(asked, said, candidate(" ".join(near), said.key + 1))[0]
    found.parts, found.score = parts, score
    beside = ("first_person", "assistant", "semantic", "neighbour_semantic")
    found.topic_score = sum(part for name, part in parts.items() if name not in beside)
    return found


def hits_of(asked: Question, *said: Candidate, filters: SearchFilters = NO_FILTERS) -> list[int]:
    """The keys of those records that match by their own words and that the filters admit."""
    index = IndexOf(*said)
    records = index.records
    found = Matches(index, in_scope(index, filters), asked).places
    admitted: NDArray[np.int64] = records.keys[found[is_admitted(records, found, filters)]]
    return admitted.tolist()
