"""`ports.search.SearchIndex`: the columns and postings of an agent, similar terms, and the texts of candidates."""

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final

import anyio.from_thread
import numpy as np
from numpy.typing import NDArray

from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import Candidate
from kalito_mcp.storage import conversation_rows as rows
from kalito_mcp.storage.numbered import message_key
from kalito_mcp.storage.postgres.column_rows import AgentOfScope
from kalito_mcp.storage.postgres.posting_arrays import counts, postings
from kalito_mcp.storage.postgres.queries import within
from kalito_mcp.storage.postgres.record_columns import AgentColumns
from kalito_mcp.storage.postgres.seen_records import CHECKED_COLUMNS, SeenRecords
from kalito_mcp.storage.postgres.text_index import COUNT_MARKS, SELECT_PAGES
from kalito_mcp.storage.postgres.transactions import Transaction
from kalito_mcp.storage.queries import limits_of
from kalito_mcp.storage.record_columns import ColumnsState, places_of
from kalito_mcp.text.similar_terms import MOST_ENDING_LETTERS, meant_terms, most_frequent

# One row: the terms of each record in a line of its own, between spaces, and the keys of the records.
SELECT_FRESH: Final = """
SELECT NULL AS term, NULL AS first, string_agg(' ' || terms || ' ', E'\n' ORDER BY record_key),
    string_agg(int8send(record_key), '' ORDER BY record_key)
FROM fresh_terms WHERE owner_key = :owner AND agent_key = :agent_key
"""
SELECT_POSTINGS: Final = f"{SELECT_PAGES} UNION ALL {SELECT_FRESH}"
# The page in which a term with the head may begin, and those that begin with one; without those that have only older or
# newer keys of the term before.
SELECT_TERMS_OF_HEADS: Final = """
SELECT p.terms FROM unnest(:heads::text[]) AS asked (head) CROSS JOIN LATERAL (
    (
        SELECT terms FROM term_pages
        WHERE owner_key = :owner AND agent_key = :agent_key AND term < asked.head
        ORDER BY term DESC, first DESC LIMIT 1
    ) UNION ALL (
        SELECT terms FROM term_pages
        WHERE owner_key = :owner AND agent_key = :agent_key AND term >= asked.head
            AND term < (asked.head || chr(1114111)) AND (first = 0 OR strpos(terms, ' ') > 0)
        LIMIT :cap::bigint
    )
) p
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
SELECT_NOTES: Final = """
SELECT r.key FROM records r
WHERE r.owner_key = :owner AND r.agent_key = :agent_key AND r.type = 'document' AND r.id IS NOT NULL
    AND r.deleted_at IS NULL AND starts_with(r.source, 'note:') AND (r.reach IS NOT NULL OR NOT :are_lasting::boolean)
ORDER BY r.key
"""
_COMPARED_TERMS: Final = 4_000
_COMPARED_PAGES: Final = 500
"""Of one head. A page has some fifty rare terms."""

_LAST_CHARACTER: Final = chr(0x10FFFF)
_EVERY_KEY: Final = 2**63 - 1
_READ_AHEAD: Final = 20
"""Of how many records the turns beside are read with them. Of 40 searches for ten hits, 39 needed no other then, and a
search read 39 records instead of 35."""


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

    def places_of_notes(self, *, are_lasting: bool) -> NDArray[np.int64]:
        """The places of the notes, or of the lasting ones; see the port."""
        return self.places_of_keys([key for [key] in self._all(SELECT_NOTES, are_lasting=are_lasting)])

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
        known = counts(frozenset(terms), self._postings(terms, [0] * len(terms)))
        if self._within is not None:
            # How often others say a word would decide which one is meant, and so be found out.
            known = {term: len(places) for term, places in self.places(known).items() if len(places)}
        return most_frequent(meant, known, limit=limit)

    def terms_with_prefixes(self, prefixes: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """For each prefix, the agent's terms that begin with it; see the port."""
        if not prefixes:
            return {}
        heads = list(dict.fromkeys(prefixes))
        pages = self._all(SELECT_TERMS_OF_HEADS, heads=heads, cap=_COMPARED_PAGES)
        [[_, _, fresh, _]] = self._all(SELECT_FRESH)
        terms = sorted(set(" ".join([*(of_page for [of_page] in pages), fresh or ""]).split()))
        found = {
            head: [
                term
                for term in terms[bisect_left(terms, head) : bisect_left(terms, f"{head}{_LAST_CHARACTER}")]
                if len(term) <= len(head) + MOST_ENDING_LETTERS and ":" not in term
            ][:_COMPARED_TERMS]
            for head in heads
        }
        if self._within is not None:
            places = self.places(frozenset().union(*found.values()))
            found = {head: [term for term in terms if len(places[term])] for head, terms in found.items()}
        return {head: terms for head, terms in found.items() if terms}

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
        """Read the pages of terms, without most of the keys that are kept."""
        marked = {term: [f"{mark}{term}" for mark in COUNT_MARKS.values()] for term in terms}
        kept = {term: self._columns.kept(of_term, self._state) for term, of_term in marked.items()}
        after = [min(one.last_key for one in of_term) for of_term in kept.values()]
        found = postings(terms, self._postings(terms, after))
        for term, of_term in marked.items():
            keys, times = found[term]
            for number, (one, before) in enumerate(zip(of_term, kept[term], strict=True), 1):
                if before.last_key > self._state.last_key:  # a newer view kept it
                    places = before.places[: np.searchsorted(before.places, self.records.count)]
                else:
                    new = keys[(times >= number) & (keys > before.last_key)]
                    places = np.concatenate([before.places, self._places_of(new)]) if len(new) else before.places
                    self._columns.keep(one, before, places, self._state)
                self._places[one] = places if self._within is None else places[self._within[places]]

    def _postings(self, terms: Sequence[str], after_keys: Sequence[int]) -> list[Any]:
        newest = [_EVERY_KEY] * len(terms)
        return self._all(SELECT_POSTINGS, terms=list(terms), oldest_keys=list(after_keys), newest_keys=newest)

    def _places_of(self, keys: NDArray[np.int64]) -> NDArray[np.int32]:
        return places_of(keys, self._state, self._table)

    def _all(self, statement: str, **parameters: Any) -> list[Any]:
        """All rows of a statement, which the event loop asks for."""
        return anyio.from_thread.run(partial(self._transaction.all, statement, **self._parameters, **parameters))
