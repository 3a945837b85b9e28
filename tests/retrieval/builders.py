"""Builders for the tests of retrieval: questions, candidates, and what a search weighs of them. Pure.

A record's place is its position among the candidates that are given.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from kalito_mcp.domain.records import Origin, RecordType, Role
from kalito_mcp.domain.search import Candidate, SearchFilters
from kalito_mcp.domain.validation import message_number
from kalito_mcp.ports.embedder import Unrelated
from kalito_mcp.ports.search import RecordColumns, SearchIndex
from kalito_mcp.retrieval.bm25f import Bm25F
from kalito_mcp.retrieval.filtering import in_scope, is_admitted
from kalito_mcp.retrieval.question import Question, parse_question
from kalito_mcp.retrieval.ranking import Scores, Similarities
from kalito_mcp.text.analysis import MANY, SEVERAL, index_text
from tests.scripted import START_MS

NO_FILTERS = SearchFilters()
_NONE = -1
_NO_ROLE = 255


def question(text: str, *also: str, max_terms: int = 32, now_ms: int | None = START_MS) -> Question:
    return parse_question(text, max_terms=max_terms, now_ms=now_ms, also=also)


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


def columns(*said: Candidate) -> RecordColumns:
    """The columns of these records. None is forgotten or internal."""
    indexed = [index_text(one.text, one.name) for one in said]
    names = list(dict.fromkeys([None, *(one.name for one in said)]))
    next_turns, previous_turns = _links(said)
    return RecordColumns(
        projects=np.full(len(said), -1, np.int32),
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
        session_numbers={str(number): number for number in range(len(said))},
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

    def __init__(self, *said: Candidate) -> None:
        self.records = columns(*said)
        self._indexed = [index_text(one.text, one.name) for one in said]

    def places(self, terms: Collection[str], *, times: int = 1) -> dict[str, NDArray[np.int32]]:
        of_times = {1: "terms", SEVERAL: "several", MANY: "many"}[times]
        has = {term: [term in getattr(one, of_times) for one in self._indexed] for term in terms}
        return {term: np.flatnonzero(each).astype(np.int32) for term, each in has.items()}


def bm25f(
    asked: Question, *said: Candidate, weights: Sequence[float] | None = None, hidden: frozenset[int] = frozenset()
) -> Bm25F:
    """How these records match the words of a question. Those with the `hidden` keys are out of scope."""
    index = IndexOf(*said)
    each = [1 / len(asked.wordings)] * len(asked.wordings)
    is_shown = np.array([message_number(one.record_id) not in hidden for one in said], np.bool_)
    return Bm25F(index, is_shown, asked, weights or each)


def shares(
    asked: Question, *said: Candidate, weights: Sequence[float] | None = None, hidden: frozenset[int] = frozenset()
) -> list[float]:
    """The share of the words of the question that each of these records has."""
    found: list[float] = bm25f(asked, *said, weights=weights, hidden=hidden).shares(np.arange(len(said))).tolist()
    return found


def scores(asked: Question, *said: Candidate, cosines: Mapping[int, float] | None = None) -> Scores:
    """The scores of these records. The cosines are by key; those of unrelated texts are 0, give or take 0.1."""
    similarities = None
    if cosines is not None:
        places = {message_number(one.record_id): place for place, one in enumerate(said)}
        known = np.array([places[key] for key in cosines], np.int64)
        similarities = Similarities(known, np.array(list(cosines.values()), np.float32), Unrelated(0.0, 0.1))
    return Scores(columns(*said), asked, bm25f(asked, *said), np.arange(len(said)), similarities)


def ranked(asked: Question, *said: Candidate, cosines: Mapping[int, float] | None = None) -> list[int]:
    """The keys of these records, best first."""
    return [message_number(said[at].record_id) for at in scores(asked, *said, cosines=cosines).order()]


def hits_of(asked: Question, *said: Candidate, filters: SearchFilters = NO_FILTERS) -> list[int]:
    """The keys of those records that match by their own words and that the filters admit."""
    index = IndexOf(*said)
    found = Bm25F(index, in_scope(cast("SearchIndex", index), filters), asked, [1.0]).places
    return [message_number(said[at].record_id) for at in found[is_admitted(cast("SearchIndex", index), found, filters)]]
