"""The index of one agent's records in memory: their columns, and which contain a term. Implements
`ports.search.SearchIndex`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kalito_mcp.domain.records import Origin, RecordType, Role
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import Candidate
from kalito_mcp.domain.sessions import Session
from kalito_mcp.ports.search import RecordColumns
from kalito_mcp.storage.memory.state import IndexedAgent, State, StoredRecord, is_within
from kalito_mcp.text.analysis import MANY, SEVERAL
from kalito_mcp.text.similar_terms import MOST_ENDING_LETTERS, meant_terms, most_frequent

_NONE: Final = -1
_NOWHERE: Final = np.empty(0, np.int32)
_TYPES, _ROLES, _ORIGINS = tuple(RecordType), tuple(Role), tuple(Origin)


class SearchIndexOfScope:
    """`ports.search.SearchIndex`. Where the scope has a limit to a project, nothing of another one is in it."""

    def __init__(self, state: State, scope: Scope, agent: str, session: Session | None) -> None:
        self._state, self._scope, self._agent = state, scope, agent
        self._index = state.search_indexes.get((scope.owner, agent)) or _indexed(state, scope.owner, agent)
        state.search_indexes[scope.owner, agent] = self._index
        self.session_key = None if session is None else session.key
        self.project_keys: Sequence[int] | None = None if scope.project is None else self._keys_of(scope.project)
        self.records = self._index.columns
        self._within: NDArray[np.bool_] | None = None
        if scope.limits.project is not None:
            projects = self.records.projects
            self._within = np.isin(projects, [_NONE, *self._keys_of(scope.limits.project)])
            self.records = self.records.narrowed(self._within)

    @property
    def reaches_any(self) -> bool:
        """Whether any of the agent's records is within the limits. Without a limit to a project, it may be without
        records."""
        return self._within is None or bool(self._within.any())

    def places(self, term: str, *, times: int = 1) -> NDArray[np.int32]:
        found = self._index.places.get((term, times), _NOWHERE)
        return found if self._within is None else found[self._within[found]]

    def similar_terms(self, words: Sequence[str], *, limit: int) -> Mapping[str, Sequence[tuple[str, int]]]:
        meant = meant_terms(words)
        counts = {term: len(self.places(term)) for term in set[str]().union(*meant.values())}
        return most_frequent(meant, {term: count for term, count in counts.items() if count}, limit=limit)

    def terms_with_prefixes(self, prefixes: Sequence[str]) -> Mapping[str, Sequence[str]]:
        terms = sorted(term for term, times in self._index.places if times == 1 and len(self.places(term)))
        found = {prefix: [term for term in terms if _is_longer(term, prefix)] for prefix in prefixes}
        return {prefix: with_prefix for prefix, with_prefix in found.items() if with_prefix}

    def candidates(self, keys: Sequence[int]) -> Sequence[Candidate]:
        stored = (self._state.records.get(key) for key in dict.fromkeys(keys))
        return [
            self._candidate(one)
            for one in stored
            if one is not None
            and one.record.agent_id == self._agent
            and is_within(self._scope, one)
            and not one.record.is_deleted
        ]

    def _candidate(self, stored: StoredRecord) -> Candidate:
        record, content = stored.record, stored.content
        task = content if record.type is RecordType.TASK else {}
        in_limits = Scope(stored.owner, session=record.session_id, limits=self._scope.limits)
        return Candidate(
            key=record.key,
            record_id=record.id,
            type=record.type,
            session_id=None if self._state.session(in_limits) is None else record.session_id,
            role=record.role,
            name=stored.name,
            text=record.text,
            created_at=record.created_at,
            seq=record.seq
            if record.type is RecordType.MESSAGE
            else content.get("start_seq", content.get("chunk_index")),
            client_key=record.client_key,
            origin=record.origin,
            importance=content["importance_score"],
            is_critical=bool(content.get("critical")),
            usage_count=record.usage_count,
            last_used=record.last_used,
            revision=record.revision,
            status=task.get("status"),
            due_date=task.get("due_date"),
            project=record.project,
        )

    def _keys_of(self, project: str) -> list[int]:
        key = self._state.projects.get((self._scope.owner, project))
        return [] if key is None else [key]


def _indexed(state: State, owner: str, agent: str) -> IndexedAgent:
    stored = list(state.of_agent(owner, agent))
    places: dict[tuple[str, int], list[int]] = {}
    for place, one in enumerate(stored):
        if one.indexed is not None:
            for times, terms in ((1, one.indexed.terms), (SEVERAL, one.indexed.several), (MANY, one.indexed.many)):
                for term in terms:
                    places.setdefault((term, times), []).append(place)
    return IndexedAgent(_columns(state, stored), {term: _array(found, np.int32) for term, found in places.items()})


def _columns(state: State, stored: Sequence[StoredRecord]) -> RecordColumns:
    records = [one.record for one in stored]
    sessions = [
        _NONE if one.record.session_id is None else state.sessions[one.owner, one.record.session_id].key
        for one in stored
    ]
    numbers = {key: number for number, key in enumerate(dict.fromkeys(key for key in sessions if key != _NONE))}
    names: dict[str | None, int] = {None: 0}
    said_by = [names.setdefault(one.name, len(names)) for one in stored]
    previous, following = _turns(stored)
    return RecordColumns(
        keys=_array((one.key for one in records), np.int64),
        sessions=_array((numbers.get(key, _NONE) for key in sessions), np.int32),
        projects=_array((_project_key(state, one) for one in stored), np.int32),
        created_at=_array((one.created_at for one in records), np.int64),
        importance=_array((one.content["importance_score"] for one in stored), np.float64),
        names=_array(said_by, np.int32),
        word_counts=_array((one.indexed.word_count if one.indexed else 0 for one in stored), np.int32),
        next_turns=_array(following, np.int32),
        previous_turns=_array(previous, np.int32),
        types=_array((_TYPES.index(one.type) for one in records), np.uint8),
        roles=_array((len(_ROLES) if one.role is None else _ROLES.index(one.role) for one in records), np.uint8),
        origins=_array((_ORIGINS.index(one.origin) for one in records), np.uint8),
        is_internal=_array((one.is_internal for one in stored), np.bool_),
        is_shown=_array((not one.is_deleted for one in records), np.bool_),
        is_first_person=_array((bool(one.indexed and one.indexed.is_first_person) for one in stored), np.bool_),
        session_numbers=numbers,
        name_list=list(names),
        tags={place: frozenset(one.content["tags"]) for place, one in enumerate(stored) if "tags" in one.content},
    )


def _turns(stored: Sequence[StoredRecord]) -> tuple[list[int], list[int]]:
    """The places of the messages before and after each message of a session."""
    previous, following = [_NONE] * len(stored), [_NONE] * len(stored)
    last: dict[str | None, int] = {}
    for place, one in enumerate(stored):
        if one.record.type is RecordType.MESSAGE:
            before = last.get(one.record.session_id)
            if before is not None:
                previous[place], following[before] = before, place
            last[one.record.session_id] = place
    return previous, following


def _project_key(state: State, stored: StoredRecord) -> int:
    project = stored.record.project
    return _NONE if project is None else state.projects[stored.owner, project]


def _array(values: Iterable[Any], dtype: Any) -> NDArray[Any]:
    return np.array(list(values), dtype)


def _is_longer(term: str, prefix: str) -> bool:
    return term.startswith(prefix) and len(term) <= len(prefix) + MOST_ENDING_LETTERS
