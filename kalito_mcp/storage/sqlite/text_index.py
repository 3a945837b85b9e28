"""The text index on FTS5, used for what it is best at: which records hold a term.

Scoring is not FTS5's: its bm25() visits every record of every term, and a common word among 10^6 records is a scan.
Here each term yields at most `cap` records, newest first, in one statement, whatever the word.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import aiosqlite

from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import DEFAULT_AGENT, Scope
from kalito_mcp.domain.search import Posting
from kalito_mcp.text.analysis import ANALYSIS_VERSION, index_terms, stem
from kalito_mcp.text.spelling import head, is_spellable, near, spellings, term_lengths

INSERT_TERMS: Final = "INSERT INTO records_text (rowid, terms) VALUES (?, ?)"
SELECT_AGENT: Final = "SELECT key, record_count FROM agents WHERE owner = :owner AND id = :agent"
SELECT_SESSION_AGENT: Final = """
SELECT a.key, a.record_count, s.key, s.message_count + s.pin_count + s.summary_count
FROM sessions s JOIN agents a ON a.key = s.agent_key
WHERE s.owner = :owner AND s.id = :session AND (:agent IS NULL OR a.id = :agent)
"""
SELECT_POSTINGS: Final = """
SELECT (
    SELECT json_group_array(key) FROM (
        SELECT rowid AS key FROM records_text
        WHERE records_text MATCH asked.value AND rowid <= :up_to ORDER BY rowid DESC LIMIT :cap
    )
) FROM json_each(:asked) AS asked
"""
CREATE_VOCABULARY: Final = "CREATE VIRTUAL TABLE temp.terms USING fts5vocab('main', 'records_text', 'row')"
"""What a reader needs before `similar_terms`. It holds nothing: it is another view of the text index."""
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
SELECT_HELD_TERMS: Final = """
SELECT term, records FROM (
    SELECT asked.value AS term, (
        SELECT count(*) FROM (
            SELECT rowid FROM records_text WHERE records_text MATCH '"' || :prefix || asked.value || '"' LIMIT :cap
        )
    ) AS records
    FROM json_each(:terms) AS asked
) WHERE records > 0
"""
DELETE_TERMS: Final = "INSERT INTO records_text (records_text, rowid, terms) VALUES ('delete', ?, ?)"
SELECT_FOR_INDEX: Final = """
SELECT r.key, r.agent_key, r.session_key, r.type, r.text, r.name
FROM records r WHERE r.key > :after_key AND r.deleted_at IS NULL ORDER BY r.key LIMIT 1000
"""
SELECT_ANALYSIS: Final = "SELECT analysis FROM identity"
UPDATE_ANALYSIS: Final = "UPDATE identity SET analysis = :version"
DELETE_ALL_TERMS: Final = "INSERT INTO records_text (records_text) VALUES ('delete-all')"
# FTS5 walks both lists of an AND: 13 microseconds a step measured. Where most records pass anyway, it is cheaper
# to take more of them and let `candidates` filter.
_WIDE_SHARE: Final = 0.2
# 5 ms for one word measured among 10^6 records of 270,000 terms, and 35 to 60 for eight that begin like the commonest.
_MISTYPED_WORDS: Final = 8
_COMPARED_TERMS: Final = 4_000
_COUNTED_RECORDS: Final = 1_000
_ANY_KEY: Final = 2**63 - 1


def index_entry(agent_key: int, session_key: int | None, record_type: RecordType, terms: Sequence[str]) -> str:
    """What is indexed for one record: its terms under its agent, its session where it has one, and its type."""
    agent = f"{agent_key}:"
    scoped = f" {agent}".join(terms)
    session = "" if session_key is None else f"s:{session_key} "
    return f"{session}{agent}t:{record_type} {agent if scoped else ''}{scoped}"


class TextIndexQueries:
    """`ports.text_index.TextIndexReader`."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection
        self._scopes: dict[Scope, Sequence[Any]] = {}

    async def postings(
        self,
        scope: Scope,
        asked: Sequence[Sequence[str]],
        *,
        types: frozenset[RecordType],
        cap: int,
        up_to: int | None = None,
    ) -> Sequence[Posting]:
        last = _ANY_KEY if up_to is None else up_to
        in_session = ""
        is_wide = False
        if scope.session is None:
            agents = await self._agent(scope)
            if not agents:
                return []
            [(agent_key, _)] = agents
        else:
            sessions = await self._session(scope)
            if not sessions:
                return []
            [(agent_key, records, session_key, session_records)] = sessions
            in_session = f' AND "s:{session_key}"'
            is_wide = session_records >= _WIDE_SHARE * records
        of_types = ""
        if types and RecordType.MESSAGE not in types:
            # The others are few beside messages: their lists are short.
            wanted = " OR ".join(f'"{agent_key}:t:{kind}"' for kind in sorted(types))
            of_types = f" AND ({wanted})"
        if not is_wide:
            return await self._postings(agent_key, asked, in_session + of_types, cap, last)
        found = list(await self._postings(agent_key, asked, of_types, cap, last))
        # What the cap left of a common term may be newer records of other sessions, and of this one nothing.
        cut = [place for place, posting in enumerate(found) if not posting.is_complete]
        within = await self._postings(agent_key, [asked[place] for place in cut], in_session + of_types, cap, last)
        for place, posting in zip(cut, within, strict=True):
            found[place] = posting
        return found

    async def record_count(self, scope: Scope) -> int:
        rows = await self._agent(scope) if scope.session is None else await self._session(scope)
        return sum(row[1] for row in rows)

    async def similar_terms(
        self, scope: Scope, words: Sequence[str], *, limit: int
    ) -> Mapping[str, Sequence[tuple[str, int]]]:
        agents = await self._agent(scope) if scope.session is None else await self._session(scope)
        asked = [word for word in dict.fromkeys(words) if is_spellable(word)][:_MISTYPED_WORDS]
        if not agents or not asked:
            return {}
        prefix = f"{agents[0][0]}:"
        by_head = await self._terms_of_heads(prefix, asked)
        # The mistake may be in the head: then all that may have been meant is asked for by name.
        spelled = {word: {term for term in map(stem, spellings(word)) if is_spellable(term)} for word in asked}
        held = await self._held_terms(prefix, set().union(*spelled.values()))
        found = {
            word: near(
                word,
                (by_head.get(head(word), {}) | {term: held[term] for term in spelled[word] & held.keys()}).items(),
                limit=limit,
            )
            for word in asked
        }
        return {word: terms for word, terms in found.items() if terms}

    async def _terms_of_heads(self, prefix: str, words: Sequence[str]) -> dict[str, dict[str, int]]:
        """The terms that begin as the words do, with how many records hold each."""
        lengths: dict[str, tuple[int, int]] = {}
        for word in words:
            least, most = term_lengths(word)
            before = lengths.get(head(word), (least, most))
            lengths[head(word)] = (min(least, before[0]), max(most, before[1]))
        found: dict[str, dict[str, int]] = {}
        for beginning, term, records in await self._connection.execute_fetchall(
            SELECT_TERMS_OF_HEADS,
            {
                "prefix": prefix,
                "heads": json.dumps([(name, *between) for name, between in lengths.items()]),
                "cap": _COMPARED_TERMS,
            },
        ):
            found.setdefault(beginning, {})[term[len(prefix) :]] = records
        return found

    async def _held_terms(self, prefix: str, terms: set[str]) -> dict[str, int]:
        """Those of the terms that a record holds, with how many do, counted to the cap."""
        # In the index's own order, which takes three quarters of the time.
        found = await self._connection.execute_fetchall(
            SELECT_HELD_TERMS, {"prefix": prefix, "terms": json.dumps(sorted(terms)), "cap": _COUNTED_RECORDS}
        )
        return {row[0]: row[1] for row in found}

    async def _postings(
        self, agent_key: int, asked: Sequence[Sequence[str]], narrowing: str, cap: int, last: int
    ) -> Sequence[Posting]:
        if not asked:
            return []
        expressions = [
            "(" + " OR ".join(f'"{agent_key}:{term}"' for term in alternatives) + ")" + narrowing
            for alternatives in asked
        ]
        found = await self._connection.execute_fetchall(
            SELECT_POSTINGS, {"asked": json.dumps(expressions), "cap": cap + 1, "up_to": last}
        )
        return [
            Posting(term=alternatives[0], keys=tuple(keys[:cap]), is_complete=len(keys) <= cap)
            for alternatives, keys in zip(asked, (json.loads(row[0]) for row in found), strict=True)
        ]

    async def _session(self, scope: Scope) -> Sequence[tuple[int, int, int, int]]:
        """The keys and the record counts of the session's agent and of the session; empty where there is none."""
        return await self._of(
            scope, SELECT_SESSION_AGENT, {"owner": scope.owner, "agent": scope.agent, "session": scope.session}
        )

    async def _agent(self, scope: Scope) -> Sequence[tuple[int, int]]:
        """The key and the record count of the agent; empty where there is none."""
        return await self._of(scope, SELECT_AGENT, {"owner": scope.owner, "agent": scope.agent or DEFAULT_AGENT})

    async def _of(self, scope: Scope, statement: str, asked: Mapping[str, Any]) -> Sequence[Any]:
        """Read once in a view: a search asks three times, and each time costs a turn of two threads."""
        if scope not in self._scopes:
            self._scopes[scope] = list(await self._connection.execute_fetchall(statement, asked))
        return self._scopes[scope]


class TextIndexStatements(TextIndexQueries):
    """The index inside a write transaction."""

    async def _of(self, scope: Scope, statement: str, asked: Mapping[str, Any]) -> Sequence[Any]:
        """Read each time: what it answers changes within the transaction."""
        return list(await self._connection.execute_fetchall(statement, asked))

    async def is_current(self) -> bool:
        """Whether the index is of this release's analysis."""
        [[version]] = await self._connection.execute_fetchall(SELECT_ANALYSIS)
        return bool(version == ANALYSIS_VERSION)

    async def rebuild(self) -> int:
        """Empty the index and fill it from the records that are not forgotten; how many those are."""
        await self._connection.execute_fetchall(DELETE_ALL_TERMS)
        count, after_key = 0, 0
        while True:
            found = list(await self._connection.execute_fetchall(SELECT_FOR_INDEX, {"after_key": after_key}))
            if not found:
                await self._connection.execute_fetchall(UPDATE_ANALYSIS, {"version": ANALYSIS_VERSION})
                return count
            await self._connection.executemany(INSERT_TERMS, [index_row(row) for row in found])
            count, after_key = count + len(found), found[-1][0]


def index_row(row: Sequence[Any]) -> tuple[int, str]:
    """The parameters of INSERT_TERMS and DELETE_TERMS for a row of SELECT_FOR_INDEX: the index is derived from these
    alone, and what is taken out of it must be exactly what was put in."""
    key, agent_key, session_key, record_type, text, name = row
    return key, index_entry(agent_key, session_key, RecordType(record_type), index_terms(text, name))
