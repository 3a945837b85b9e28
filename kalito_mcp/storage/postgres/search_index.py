"""`ports.search.SearchIndex`: the columns and postings of an agent, similar terms, and the texts of candidates."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, Final

import anyio.from_thread
import numpy as np
from numpy.typing import NDArray

from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import Candidate
from kalito_mcp.storage import conversation_rows as rows
from kalito_mcp.storage.kept_postings import Kept
from kalito_mcp.storage.numbered import message_key
from kalito_mcp.storage.postgres.column_rows import AgentOfScope
from kalito_mcp.storage.postgres.queries import within
from kalito_mcp.storage.postgres.record_columns import AgentColumns
from kalito_mcp.storage.postgres.seen_records import CHECKED_COLUMNS, SeenRecords
from kalito_mcp.storage.postgres.text_index import COUNT_MARKS
from kalito_mcp.storage.postgres.transactions import Transaction
from kalito_mcp.storage.queries import limits_of
from kalito_mcp.storage.record_columns import ColumnsState, places_of
from kalito_mcp.text.similar_terms import MOST_ENDING_LETTERS, meant_terms, most_frequent

# For each term, the lists that may have keys after one. A list comes as it is sent: numpy reads it in no time.
SELECT_LISTS: Final = """
SELECT asked.term, l.first, array_send(l.offsets)
FROM unnest(:terms, :after_keys::bigint[]) AS asked (term, after_key) CROSS JOIN LATERAL (
    SELECT first, offsets FROM term_lists
    WHERE owner_key = :owner AND agent_key = :agent_key AND term = asked.term AND last > asked.after_key
    OFFSET 0
) l
UNION ALL
SELECT asked.term, f.record_key, NULL
FROM fresh_terms f CROSS JOIN LATERAL unnest(f.terms) AS said (term) JOIN unnest(:terms) AS asked (term) USING (term)
WHERE f.owner_key = :owner AND f.agent_key = :agent_key
"""
SELECT_COUNTS: Final = """
SELECT term, sum(records)::bigint FROM (
    SELECT term, cardinality(offsets) AS records FROM term_lists
    WHERE owner_key = :owner AND agent_key = :agent_key AND term = ANY(:terms)
    UNION ALL
    SELECT asked.term, 1
    FROM fresh_terms f CROSS JOIN LATERAL unnest(f.terms) AS said (term)
        JOIN unnest(:terms) AS asked (term) USING (term)
    WHERE f.owner_key = :owner AND f.agent_key = :agent_key
) counted GROUP BY term
"""
# A term with a colon has a mark.
SELECT_TERMS_OF_HEADS: Final = """
WITH asked AS (
    SELECT head, head || chr(1114111) AS last, most
    FROM unnest(:heads::text[], :lengths::integer[]) AS listed (head, most)
)
SELECT asked.head, l.term FROM asked CROSS JOIN LATERAL (
    SELECT DISTINCT term FROM term_lists
    WHERE owner_key = :owner AND agent_key = :agent_key AND term >= asked.head COLLATE "C"
        AND term < asked.last COLLATE "C" AND length(term) <= asked.most AND strpos(term, ':') = 0
    LIMIT :cap::bigint
) l
UNION
SELECT asked.head, said.term
FROM fresh_terms f CROSS JOIN LATERAL unnest(f.terms) AS said (term)
    JOIN asked ON starts_with(said.term, asked.head) AND length(said.term) <= asked.most AND strpos(said.term, ':') = 0
WHERE f.owner_key = :owner AND f.agent_key = :agent_key
LIMIT :cap
"""
# Each record is looked up by its key (LIMIT): no plan may read all records of an agent, or all sessions of an owner.
SELECT_CANDIDATES: Final = f"""
SELECT r.key, r.type, r.id, s.id AS session, r.role, r.name, r.text, r.created_at, r.seq, r.client_key, r.origin,
    r.importance, r.is_critical, u.usage_count, u.last_used, r.revision,
    CASE WHEN r.type = 'task' THEN r.attributes END AS task, p.id AS project, {CHECKED_COLUMNS}
FROM unnest(:keys) AS asked (key) CROSS JOIN LATERAL (
        SELECT * FROM records r WHERE r.owner_key = :owner AND r.key = asked.key LIMIT 1
    ) r
    LEFT JOIN LATERAL (
        SELECT s.id FROM sessions s WHERE s.owner_key = :owner AND s.key = r.session_key AND {within("s")} LIMIT 1
    ) s ON true
    LEFT JOIN LATERAL (
        SELECT * FROM record_usage u WHERE u.owner_key = :owner AND u.record_key = r.key LIMIT 1
    ) u ON true
    LEFT JOIN projects p ON p.owner_key = :owner AND p.key = r.project_key
WHERE r.agent_key = :agent_key AND r.deleted_at IS NULL AND {within("r")}
"""
_COMPARED_TERMS: Final = 4_000
_READ_AHEAD: Final = 20
"""Of how many records the turns beside are read with them. Of 40 searches for ten hits, 39 needed no other then, and a
search read 39 records instead of 35."""

_LIST_HEADER: Final = 20
"""Bytes before the first element of a list that is sent. An element is its length and itself, 4 bytes each."""


class PostgresSearchIndex:
    """The index of one agent in one transaction. Its methods ask the database from a thread.

    Where the scope has a limit to a project, no record, term or name of another project is in it, nor is any counted.
    """

    def __init__(
        self,
        transaction: Transaction,
        columns: AgentColumns,
        state: ColumnsState,
        scope: Scope,
        agent: AgentOfScope,
        seen: SeenRecords,
    ) -> None:
        self._transaction = transaction
        self._seen = seen
        self._columns = columns
        self._state = state
        self._table = columns.place_table(state)
        self._owner = scope.owner
        self._parameters = {"owner": scope.owner, "agent_key": agent.key}
        self._limits = limits_of(scope)
        self._places: dict[str, NDArray[np.int32]] = {}
        """Of the terms that were asked for, by marked term."""
        self._candidates: dict[int, Candidate | None] = {}
        """The records that were read, by place; None if one is not there."""
        project, limit = ([] if key is None else [key] for key in (agent.project_key, agent.limit_project_key))
        self._within = None if scope.limits.project is None else state.columns.of_projects(limit)
        self.records = state.columns.narrowed(scope.session, None if scope.project is None else project, self._within)

    @property
    def reaches_any(self) -> bool:
        """Whether any of the agent's records is within the limits. Without a limit to a project, it may be without
        records."""
        return self._within is None or bool(self._within.any())

    def places(self, terms: Collection[str], *, times: int = 1) -> Mapping[str, NDArray[np.int32]]:
        """For each term, the places of the agent's records that contain it this often; see the port. One trip for all
        terms that were not asked for before, with each of their marks, unless nothing new can have them."""
        new = [term for term in terms if term not in self._places and not self._is_kept(term)]
        if new:
            self._read(new)
        mark = COUNT_MARKS[times]
        return {term: self._places[f"{mark}{term}"] for term in terms}

    def places_of_messages(self, message_ids: Sequence[str]) -> NDArray[np.int64]:
        """The places of the messages with these ids; see the port."""
        return self.places_of_keys([key for one in message_ids if (key := message_key(one)) is not None])

    def keys(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The keys of the records at these places."""
        return self._state.keys[places]

    def places_of_keys(self, keys: Sequence[int]) -> NDArray[np.int64]:
        """The places of the records with these keys; see the port."""
        return self._places_of(np.array(keys, np.int64)).astype(np.int64)

    def similar_terms(self, words: Sequence[str], *, limit: int) -> Mapping[str, Sequence[tuple[str, int]]]:
        """For each word, the agent's terms that it may be a mistyped form of; see the port."""
        meant = meant_terms(words)
        if not meant:
            return {}
        terms = sorted(set().union(*meant.values()))
        known = dict(self._all(SELECT_COUNTS, terms=terms))
        if self._within is not None:
            # How often others say a word would decide which one is meant, and so be found out.
            known = {term: len(places) for term, places in self.places(known).items() if len(places)}
        return most_frequent(meant, known, limit=limit)

    def terms_with_prefixes(self, prefixes: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """For each prefix, the agent's terms that begin with it; see the port."""
        if not prefixes:
            return {}
        heads = list(dict.fromkeys(prefixes))
        lengths = [len(head) + MOST_ENDING_LETTERS for head in heads]
        found: dict[str, list[str]] = {}
        for head, term in sorted(self._all(SELECT_TERMS_OF_HEADS, heads=heads, lengths=lengths, cap=_COMPARED_TERMS)):
            found.setdefault(head, []).append(term)
        if self._within is None:
            return found
        places = self.places(frozenset().union(*found.values()))
        reached = {head: [term for term in terms if len(places[term])] for head, terms in found.items()}
        return {head: terms for head, terms in reached.items() if terms}

    def candidates(self, places: NDArray[np.int64]) -> Mapping[int, Candidate]:
        """The records at these places, with their texts, by place. What has to be read for that is read together with
        the turns next to the first of them, which are what a search asks for next."""
        asked = places.tolist()
        if any(at not in self._candidates for at in asked):
            first = places[:_READ_AHEAD]
            beside = np.concatenate([self.records.previous_turns[first], self.records.next_turns[first]])
            ahead = beside[(beside >= 0) & (beside < self.records.count)].tolist()
            new = [at for at in dict.fromkeys([*asked, *ahead]) if at not in self._candidates]
            place_of = dict(zip(self._state.keys[new].tolist(), new, strict=True))
            found = self._all(SELECT_CANDIDATES, keys=list(place_of), **self._limits)
            self._seen.add(self._owner, found)
            read = rows.candidates(found)
            self._candidates.update((at, read.get(key)) for key, at in place_of.items())
        return {at: one for at in asked if (one := self._candidates[at]) is not None}

    def _is_kept(self, term: str) -> bool:
        """Take the places of a term that are kept for these columns. Whether all are."""
        marked = [f"{mark}{term}" for mark in COUNT_MARKS.values()]
        kept = self._columns.kept(marked, self._state)
        if any(one.last_key != self._state.last_key for one in kept):
            return False
        for name, one in zip(marked, kept, strict=True):
            self._places[name] = one.places if self._within is None else one.places[self._within[one.places]]
        return True

    def _read(self, terms: Sequence[str]) -> None:
        """Read the lists of terms with each of their marks, without the keys that are kept."""
        marked = [f"{mark}{term}" for mark in COUNT_MARKS.values() for term in terms]
        kept = self._columns.kept(marked, self._state)
        lists: dict[str, list[tuple[int, NDArray[np.int64]]]] = {}
        fresh: dict[str, list[int]] = {}
        for term, first, sent in self._all(SELECT_LISTS, terms=marked, after_keys=[one.last_key for one in kept]):
            if sent is None:
                fresh.setdefault(term, []).append(first)
            else:
                offsets = np.frombuffer(sent, ">i4", offset=_LIST_HEADER)[1::2]
                lists.setdefault(term, []).append((first, offsets + np.int64(first)))
        for term, keys in fresh.items():
            keys.sort()
            lists.setdefault(term, []).append((keys[0], np.array(keys, np.int64)))
        for term, before in zip(marked, kept, strict=True):
            if before.last_key > self._state.last_key:  # a newer view kept it
                places = before.places[: np.searchsorted(before.places, self.records.count)]
            else:
                places = self._merged(before, lists.get(term, []))
                self._columns.keep(term, before, places, self._state)
            self._places[term] = places if self._within is None else places[self._within[places]]

    def _merged(self, before: Kept, lists: list[tuple[int, NDArray[np.int64]]]) -> NDArray[np.int32]:
        """The places that were kept, and those of later records in the lists, each with its first key; ascending."""
        if not lists:
            return before.places
        lists.sort(key=itemgetter(0))
        keys = lists[0][1] if len(lists) == 1 else np.concatenate([keys for _, keys in lists])
        if before.last_key:
            keys = keys[keys > before.last_key]
        if not (keys[1:] > keys[:-1]).all():  # an old record was indexed again
            keys = np.unique(keys)
        places = self._places_of(keys)
        return np.concatenate([before.places, places]) if len(before.places) else places

    def _places_of(self, keys: NDArray[np.int64]) -> NDArray[np.int32]:
        return places_of(keys, self._state, self._table)

    def _all(self, statement: str, **parameters: Any) -> list[Any]:
        """All rows of a statement, which the event loop asks for."""
        return anyio.from_thread.run(partial(self._transaction.all, statement, **self._parameters, **parameters))
