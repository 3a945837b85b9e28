"""The text index on FTS5: which records contain a term.

FTS5 does not score here: its bm25() visits every record of every term, which for a common word is a scan of 10^6
records. Instead one statement reads at most `cap` records of each term, newest first.
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
"""A connection needs this before `similar_terms`. The table stores nothing; it is a view of the text index."""
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
DELETE_TERMS: Final = "INSERT INTO records_text (records_text, rowid, terms) VALUES ('delete', ?, ?)"
SELECT_FOR_INDEX: Final = """
SELECT r.key, r.agent_key, r.session_key, r.type, r.text, r.name
FROM records r WHERE r.key > :after_key AND r.deleted_at IS NULL ORDER BY r.key LIMIT 1000
"""
SELECT_ANALYSIS: Final = "SELECT analysis FROM identity"
UPDATE_ANALYSIS: Final = "UPDATE identity SET analysis = :version"
DELETE_ALL_TERMS: Final = "INSERT INTO records_text (records_text) VALUES ('delete-all')"
# FTS5 walks both lists of an AND, at 13 microseconds a step. If most records pass anyway, it is cheaper to read more
# of them and let `candidates` filter.
_WIDE_SHARE: Final = 0.2
# Among 10^6 records with 270,000 terms: 5 ms for one word, 35 to 60 ms for eight with the commonest beginnings.
_MISTYPED_WORDS: Final = 8
_COMPARED_TERMS: Final = 4_000
_MOST_ENDING_LETTERS: Final = 8
_COUNTED_RECORDS: Final = 1_000
_ANY_KEY: Final = 2**63 - 1


def index_entry(agent_key: int, session_key: int | None, record_type: RecordType, terms: Sequence[str]) -> str:
    """The indexed text of a record: its terms and its type, both prefixed by its agent, and its session if any."""
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
            # All other types are rare compared with messages, so their lists are short.
            kinds = " OR ".join(f'"{agent_key}:t:{kind}"' for kind in sorted(types))
            of_types = f" AND ({kinds})"
        if not is_wide:
            return await self._postings(agent_key, asked, in_session + of_types, cap, last)
        found = list(await self._postings(agent_key, asked, of_types, cap, last))
        # For a common term the cap may leave only newer records of other sessions.
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
        # The mistake may be in the head, so look up every likely spelling as well.
        spelled = {word: {term for term in map(stem, spellings(word)) if is_spellable(term)} for word in asked}
        known = await self._indexed_terms(prefix, set().union(*spelled.values()))
        found = {
            word: near(
                word,
                (by_head.get(head(word), {}) | {term: known[term] for term in spelled[word] & known.keys()}).items(),
                limit=limit,
            )
            for word in asked
        }
        return {word: terms for word, terms in found.items() if terms}

    async def terms_with_prefixes(self, scope: Scope, prefixes: Sequence[str]) -> Mapping[str, Sequence[str]]:
        agents = await self._agent(scope) if scope.session is None else await self._session(scope)
        if not agents or not prefixes:
            return {}
        lengths = {prefix: (len(prefix), len(prefix) + _MOST_ENDING_LETTERS) for prefix in prefixes}
        found = await self._terms_between(f"{agents[0][0]}:", lengths)
        return {prefix: sorted(terms) for prefix, terms in found.items()}

    async def _terms_of_heads(self, prefix: str, words: Sequence[str]) -> dict[str, dict[str, int]]:
        """For each head of the words, the terms that begin with it, and how many records contain each."""
        lengths: dict[str, tuple[int, int]] = {}
        for word in words:
            least, most = term_lengths(word)
            before = lengths.get(head(word), (least, most))
            lengths[head(word)] = (min(least, before[0]), max(most, before[1]))
        return await self._terms_between(prefix, lengths)

    async def _terms_between(self, prefix: str, lengths: Mapping[str, tuple[int, int]]) -> dict[str, dict[str, int]]:
        """For each beginning, the terms of so many letters that have it, and how many records contain each."""
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

    async def _indexed_terms(self, prefix: str, terms: set[str]) -> dict[str, int]:
        """Which of the terms are indexed, and how many records contain each, counted up to a cap."""
        # Sorted like the index itself: that saves a quarter of the time.
        found = await self._connection.execute_fetchall(
            SELECT_INDEXED_TERMS, {"prefix": prefix, "terms": json.dumps(sorted(terms)), "cap": _COUNTED_RECORDS}
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
        """Key and record count of the session's agent, then of the session; empty if there is no such session."""
        return await self._of(
            scope, SELECT_SESSION_AGENT, {"owner": scope.owner, "agent": scope.agent, "session": scope.session}
        )

    async def _agent(self, scope: Scope) -> Sequence[tuple[int, int]]:
        """Key and record count of the agent; empty if there is no such agent."""
        return await self._of(scope, SELECT_AGENT, {"owner": scope.owner, "agent": scope.agent or DEFAULT_AGENT})

    async def _of(self, scope: Scope, statement: str, asked: Mapping[str, Any]) -> Sequence[Any]:
        """Read once for each view: a search asks three times, and each time two threads take turns."""
        if scope not in self._scopes:
            self._scopes[scope] = list(await self._connection.execute_fetchall(statement, asked))
        return self._scopes[scope]


class TextIndexStatements(TextIndexQueries):
    """The index inside a write transaction."""

    async def _of(self, scope: Scope, statement: str, asked: Mapping[str, Any]) -> Sequence[Any]:
        """Read each time: the rows change within the transaction."""
        return list(await self._connection.execute_fetchall(statement, asked))

    async def is_current(self) -> bool:
        """Whether this release's analysis made the index."""
        [[version]] = await self._connection.execute_fetchall(SELECT_ANALYSIS)
        return bool(version == ANALYSIS_VERSION)

    async def rebuild(self) -> int:
        """Rebuild the index from the records that are not forgotten. Returns how many those are."""
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
    """The parameters of INSERT_TERMS and DELETE_TERMS for a row of SELECT_FOR_INDEX. FTS5 must delete exactly what was
    inserted, so both use only these columns."""
    key, agent_key, session_key, record_type, text, name = row
    return key, index_entry(agent_key, session_key, RecordType(record_type), index_terms(text, name))
