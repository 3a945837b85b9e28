"""`ports.search.SearchIndex`: the columns and postings of an agent, similar terms, and the texts of candidates."""

import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import Candidate
from kalito_mcp.storage import conversation_rows as rows
from kalito_mcp.storage.numbered import message_key
from kalito_mcp.storage.queries import limits_of
from kalito_mcp.storage.sqlite.queries import within
from kalito_mcp.storage.sqlite.record_columns import AgentColumns
from kalito_mcp.storage.sqlite.text_index import COUNT_MARKS
from kalito_mcp.text.similar_terms import MOST_ENDING_LETTERS, meant_terms, most_frequent

SELECT_TERMS_OF_HEADS: Final = """
WITH asked (head, first, last, least, most) AS MATERIALIZED (
    SELECT json_extract(value, '$[0]'), :prefix || json_extract(value, '$[0]'),
        :prefix || json_extract(value, '$[0]') || char(1114111),
        length(:prefix) + json_extract(value, '$[1]'), length(:prefix) + json_extract(value, '$[2]')
    FROM json_each(:heads)
)
SELECT asked.head, v.term, v.doc FROM asked CROSS JOIN temp.terms AS v
WHERE v.term >= asked.first AND v.term < asked.last AND length(v.term) BETWEEN asked.least AND asked.most
LIMIT :cap
"""
SELECT_INDEXED_TERMS: Final = """
SELECT term, records FROM (
    SELECT asked.value AS term, (
        SELECT count(*) FROM (
            SELECT rowid FROM records_text WHERE records_text MATCH '"' || :prefix || asked.value || '"' LIMIT :cap
        )
    ) AS records
    FROM json_each(:terms) AS asked
) WHERE records > 0
"""
SELECT_LIMIT_PROJECT: Final = "SELECT key FROM projects WHERE owner = :owner AND id = :limit_project"
SELECT_CANDIDATES: Final = f"""
SELECT r.key, r.type, r.id, s.id, r.role, r.name, r.text, r.created_at, r.seq, r.client_key, r.origin, r.importance,
    r.is_critical, u.usage_count, u.last_used, r.revision, CASE WHEN r.type = 'task' THEN r.attributes END,
    p.id
FROM records r LEFT JOIN projects p ON p.key = r.project_key
    LEFT JOIN sessions s ON s.key = r.session_key AND {within("s")} LEFT JOIN record_usage u ON u.record_key = r.key
WHERE r.key IN (SELECT value FROM json_each(:keys)) AND r.agent_key = :agent_key AND r.deleted_at IS NULL
    AND {within("r")}
"""
SELECT_NOTES: Final = """
SELECT r.key FROM records r INDEXED BY records_of_types
WHERE r.agent_key = :agent_key AND r.type = 'document' AND r.id IS NOT NULL AND r.deleted_at IS NULL
    AND r.source LIKE 'note:%' AND (r.reach IS NOT NULL OR NOT :are_lasting)
ORDER BY r.key
"""
_COMPARED_TERMS: Final = 4_000
_COUNTED_RECORDS: Final = 1_000


class SqliteSearchIndex:
    """The index of one agent in one read transaction. Use it on the thread of its connection.

    Where the scope has a limit to a project, no record, term or name of another project is in it, nor is any counted.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        columns: AgentColumns,
        scope: Scope,
        *,
        agent_key: int,
        project_keys: Sequence[int] | None = None,
    ) -> None:
        self._connection = connection
        self._columns = columns
        self._parameters = {"owner": scope.owner, "agent_key": agent_key, **limits_of(scope)}
        self._prefix = f"{agent_key}:"
        self._state = columns.current(connection)
        self._within = self._reached() if scope.limits.project is not None else None
        self.records = self._state.columns.narrowed(scope.session, project_keys, self._within)

    @property
    def reaches_any(self) -> bool:
        """Whether any of the agent's records is within the limits. Without a limit to a project, it may be without
        records."""
        return self._within is None or bool(self._within.any())

    def places(self, terms: Collection[str], *, times: int = 1) -> Mapping[str, NDArray[np.int32]]:
        """For each term, the places of the agent's records that contain it this often; see the port."""
        return {term: self._places(f"{COUNT_MARKS[times]}{self._prefix}{term}") for term in terms}

    def places_of_messages(self, message_ids: Sequence[str]) -> NDArray[np.int64]:
        """The places of the messages with these ids; see the port."""
        return self.places_of_keys([key for one in message_ids if (key := message_key(one)) is not None])

    def places_of_notes(self, *, are_lasting: bool) -> NDArray[np.int64]:
        """The places of the notes, or of the lasting ones; see the port."""
        found = self._connection.execute(SELECT_NOTES, {**self._parameters, "are_lasting": are_lasting})
        return self.places_of_keys([key for [key] in found])

    def keys(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The keys of the records at these places."""
        return self._state.keys[places]

    def places_of_keys(self, keys: Sequence[int]) -> NDArray[np.int64]:
        """The places of the records with these keys; see the port."""
        return self._columns.places_of(np.array(keys, np.int64), self._state).astype(np.int64)

    def similar_terms(self, words: Sequence[str], *, limit: int) -> Mapping[str, Sequence[tuple[str, int]]]:
        """For each word, the agent's terms that it may be a mistyped form of; see the port."""
        meant = meant_terms(words)
        if not meant:
            return {}
        known = self._indexed_terms(set().union(*meant.values()))
        if self._within is not None:
            # How often others say a word would decide which one is meant, and so be found out.
            known = {term: len(places) for term, places in self.places(known).items() if len(places)}
        return most_frequent(meant, known, limit=limit)

    def terms_with_prefixes(self, prefixes: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """For each prefix, the agent's terms that begin with it; see the port."""
        if not prefixes:
            return {}
        lengths = {prefix: (len(prefix), len(prefix) + MOST_ENDING_LETTERS) for prefix in prefixes}
        found = {prefix: sorted(terms) for prefix, terms in self._terms_between(lengths).items()}
        if self._within is None:
            return found
        places = self.places(frozenset().union(*found.values()))
        reached = {prefix: [term for term in terms if len(places[term])] for prefix, terms in found.items()}
        return {prefix: terms for prefix, terms in reached.items() if terms}

    def candidates(self, places: NDArray[np.int64]) -> Mapping[int, Candidate]:
        """The records at these places, with their texts, by place."""
        place_of = dict(zip(self._state.keys[places].tolist(), places.tolist(), strict=True))
        parameters = {"keys": json.dumps(list(place_of)), **self._parameters}
        found = self._connection.execute(SELECT_CANDIDATES, parameters).fetchall()
        return {place_of[key]: one for key, one in rows.candidates(found).items()}

    def _places(self, marked: str) -> NDArray[np.int32]:
        found = self._columns.places(self._connection, marked, self._state)
        return found if self._within is None else found[self._within[found]]

    def _reached(self) -> NDArray[np.bool_]:
        """Which records are of the project of the limits, or personal."""
        keys = self._connection.execute(SELECT_LIMIT_PROJECT, self._parameters)
        return self._state.columns.of_projects(key for [key] in keys)

    def _terms_between(self, lengths: Mapping[str, tuple[int, int]]) -> dict[str, dict[str, int]]:
        """For each prefix, its terms of this many letters, and how many records contain each."""
        heads = json.dumps([(name, *between) for name, between in lengths.items()])
        found: dict[str, dict[str, int]] = {}
        for beginning, term, records in self._connection.execute(
            SELECT_TERMS_OF_HEADS, {"prefix": self._prefix, "heads": heads, "cap": _COMPARED_TERMS}
        ):
            found.setdefault(beginning, {})[term[len(self._prefix) :]] = records
        return found

    def _indexed_terms(self, terms: set[str]) -> dict[str, int]:
        """Which of the terms are indexed, and how many records contain each, counted up to a cap."""
        # Sorted like the index itself: that saves a quarter of the time.
        parameters = {"prefix": self._prefix, "terms": json.dumps(sorted(terms)), "cap": _COUNTED_RECORDS}
        return dict(self._connection.execute(SELECT_INDEXED_TERMS, parameters))
