"""Searches of a store in memory: the columns of an agent's records, and which contain a term. Implements
`ports.search`."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from kalito_mcp.domain.records import Origin, RecordType, Role
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import Candidate
from kalito_mcp.ports.search import RecordColumns, SearchIndex
from kalito_mcp.storage.memory.state import State, StoredRecord, Tables, is_within, made_of
from kalito_mcp.text.analysis import MANY, SEVERAL
from kalito_mcp.text.similar_terms import MOST_ENDING_LETTERS, meant_terms, most_frequent

T = TypeVar("T")
_NONE: Final = -1
_NOWHERE: Final = np.empty(0, np.int32)
_TYPES, _ROLES, _ORIGINS = tuple(RecordType), tuple(Role), tuple(Origin)


class Search(Tables):
    """`ports.search.SearchReader`. A search runs at once, on the thread of the caller."""

    async def in_index(self, scope: Scope, work: Callable[[SearchIndex], T]) -> T | None:
        if scope not in self._state.searched:
            agent = self._state.agent(scope, is_of_session=True)
            index = None if agent is None else SearchIndexOfScope(self._state, scope, agent)
            # An agent of which nothing is within the limits does not exist there.
            if index is None or not index.reaches_any:
                return None
            self._state.searched[scope] = index
        return work(self._state.searched[scope])


class SearchIndexOfScope:
    """`ports.search.SearchIndex`. Where the scope has a limit to a project, nothing of another one is in it."""

    def __init__(self, state: State, scope: Scope, agent: str) -> None:
        self._state, self._scope = state, scope
        self._stored = state.of_agent(scope.owner, agent)
        self._places = _places(self._stored)
        columns, limit = _columns(state, self._stored), scope.limits.project
        self._within = None if limit is None else columns.of_projects(self._keys_of(limit))
        projects = None if scope.project is None else self._keys_of(scope.project)
        self.records = columns.narrowed(scope.session, projects, self._within)

    @property
    def reaches_any(self) -> bool:
        """Whether any of the agent's records is within the limits. Without a limit to a project, it may be without
        records."""
        return self._within is None or bool(self._within.any())

    def places(self, terms: Collection[str], *, times: int = 1) -> Mapping[str, NDArray[np.int32]]:
        found = {term: self._places.get((term, times), _NOWHERE) for term in terms}
        is_within = self._within
        return found if is_within is None else {term: places[is_within[places]] for term, places in found.items()}

    def places_of_messages(self, message_ids: Sequence[str]) -> NDArray[np.int64]:
        places = {one.id: at for at, one in enumerate(self._stored) if one.type is RecordType.MESSAGE}
        return _array((places[one] for one in message_ids if one in places), np.int64)

    def keys(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        return _array((self._stored[place].key for place in places.tolist()), np.int64)

    def places_of_keys(self, keys: Sequence[int]) -> NDArray[np.int64]:
        places = {one.key: at for at, one in enumerate(self._stored)}
        return _array((places[key] for key in keys if key in places), np.int64)

    def similar_terms(self, words: Sequence[str], *, limit: int) -> Mapping[str, Sequence[tuple[str, int]]]:
        meant = meant_terms(words)
        places = self.places(set[str]().union(*meant.values()))
        return most_frequent(meant, {term: len(found) for term, found in places.items() if len(found)}, limit=limit)

    def terms_with_prefixes(self, prefixes: Sequence[str]) -> Mapping[str, Sequence[str]]:
        places = self.places([term for term, times in self._places if times == 1])
        terms = sorted(term for term, found in places.items() if len(found))
        most = {prefix: len(prefix) + MOST_ENDING_LETTERS for prefix in prefixes}
        longer = {one: [term for term in terms if term.startswith(one) and len(term) <= most[one]] for one in prefixes}
        return {prefix: found for prefix, found in longer.items() if found}

    def candidates(self, places: NDArray[np.int64]) -> Mapping[int, Candidate]:
        stored = {place: self._stored[place] for place in places.tolist()}
        reached = {place: one for place, one in stored.items() if is_within(self._scope, one) and not one.is_deleted}
        return {place: self._candidate(one) for place, one in reached.items()}

    def _candidate(self, stored: StoredRecord) -> Candidate:
        content, is_task = stored.content, stored.type is RecordType.TASK
        session = self._state.session(Scope(stored.owner, session=stored.session_id, limits=self._scope.limits))
        return made_of(
            Candidate,
            stored,
            record_id=stored.id,
            session_id=None if session is None else session.id,
            seq=content.get("start_seq", content.get("chunk_index", stored.seq)),
            is_critical=bool(content.get("critical")),
            status=content.get("status") if is_task else None,
            due_date=content.get("due_date") if is_task else None,
        )

    def _keys_of(self, project: str) -> list[int]:
        key = self._state.projects.get((self._scope.owner, project))
        return [] if key is None else [key]


def _places(stored: Sequence[StoredRecord]) -> dict[tuple[str, int], NDArray[np.int32]]:
    """The places of each term by how often they contain it at least."""
    found: dict[tuple[str, int], list[int]] = {}
    for place, one in enumerate(stored):
        if one.indexed is not None:
            for times, terms in ((1, one.indexed.terms), (SEVERAL, one.indexed.several), (MANY, one.indexed.many)):
                for term in terms:
                    found.setdefault((term, times), []).append(place)
    return {term: _array(places, np.int32) for term, places in found.items()}


def _columns(state: State, stored: Sequence[StoredRecord]) -> RecordColumns:
    sessions = dict.fromkeys(one.session_id for one in stored if one.session_id is not None)
    numbers = {session_id: number for number, session_id in enumerate(sessions)}
    names: dict[str | None, int] = {None: 0}
    said_by = [names.setdefault(one.name, len(names)) for one in stored]
    previous, following = [_NONE] * len(stored), [_NONE] * len(stored)
    last: dict[str | None, int] = {}
    for place, one in enumerate(stored):
        if one.type is RecordType.MESSAGE:
            if one.session_id in last:
                previous[place] = last[one.session_id]
                following[previous[place]] = place
            last[one.session_id] = place
    projects = [_NONE if one.project is None else state.projects[one.owner, one.project] for one in stored]
    return RecordColumns(
        sessions=_array((numbers.get(one.session_id or "", _NONE) for one in stored), np.int32),
        projects=_array(projects, np.int32),
        created_at=_array((one.created_at for one in stored), np.int64),
        importance=_array((one.importance for one in stored), np.float64),
        names=_array(said_by, np.int32),
        word_counts=_array((one.indexed.word_count if one.indexed else 0 for one in stored), np.int32),
        next_turns=_array(following, np.int32),
        previous_turns=_array(previous, np.int32),
        types=_array((_TYPES.index(one.type) for one in stored), np.uint8),
        roles=_array((len(_ROLES) if one.role is None else _ROLES.index(one.role) for one in stored), np.uint8),
        origins=_array((_ORIGINS.index(one.origin) for one in stored), np.uint8),
        is_internal=_array((one.is_internal for one in stored), np.bool_),
        is_shown=_array((not one.is_deleted for one in stored), np.bool_),
        session_numbers=numbers,
        name_list=list(names),
        tags={place: frozenset(one.content["tags"]) for place, one in enumerate(stored) if "tags" in one.content},
    )


def _array(values: Iterable[Any], dtype: Any) -> NDArray[Any]:
    return np.array(list(values), dtype)
