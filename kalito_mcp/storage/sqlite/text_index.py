"""The text index on FTS5, used for what it is best at: which records hold a term.

Scoring is not FTS5's: its bm25() visits every record of every term, and a common word among 10^6 records is a scan.
Here each term yields at most `cap` records, newest first, in one statement, whatever the word.
"""

import json
from collections.abc import Sequence
from typing import Any, Final

import aiosqlite

from kalito_mcp.domain.analysis import index_terms
from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import DEFAULT_AGENT, Scope
from kalito_mcp.domain.search import Posting

INSERT_TERMS: Final = "INSERT INTO records_text (rowid, terms) VALUES (?, ?)"
SELECT_AGENT: Final = "SELECT key, record_count FROM agents WHERE owner = :owner AND id = :agent"
SELECT_SESSION_AGENT: Final = """
SELECT a.key, a.record_count, s.key, s.message_count + s.pin_count + s.summary_count
FROM sessions s JOIN agents a ON a.key = s.agent_key
WHERE s.owner = :owner AND s.id = :session AND (:agent IS NULL OR a.id = :agent)
"""
SELECT_POSTINGS: Final = """
SELECT asked.value, (
    SELECT json_group_array(key) FROM (
        SELECT rowid AS key FROM records_text
        WHERE records_text MATCH '"' || :agent_key || ':' || asked.value || '"' || :narrowing
        ORDER BY rowid DESC LIMIT :cap
    )
) FROM json_each(:terms) AS asked
"""
DELETE_TERMS: Final = "INSERT INTO records_text (records_text, rowid, terms) VALUES ('delete', ?, ?)"
SELECT_FOR_INDEX: Final = """
SELECT r.key, r.agent_key, r.session_key, r.type, r.text, r.name
FROM records r WHERE r.key > :after_key AND r.deleted_at IS NULL ORDER BY r.key LIMIT 1000
"""
DELETE_ALL_TERMS: Final = "INSERT INTO records_text (records_text) VALUES ('delete-all')"
# FTS5 walks both lists of an AND: 13 microseconds a step measured. Where most records pass anyway, it is cheaper
# to take more of them and let `candidates` filter.
_WIDE_SHARE: Final = 0.2


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

    async def postings(
        self, scope: Scope, terms: Sequence[str], *, types: frozenset[RecordType], cap: int
    ) -> Sequence[Posting]:
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
            return await self._postings(agent_key, terms, in_session + of_types, cap)
        found = await self._postings(agent_key, terms, of_types, cap)
        # What the cap left of a common term may be newer records of other sessions, and of this one nothing.
        cut = [posting.term for posting in found if not posting.is_complete]
        within = {p.term: p for p in await self._postings(agent_key, cut, in_session + of_types, cap)} if cut else {}
        return [within.get(posting.term, posting) for posting in found]

    async def record_count(self, scope: Scope) -> int:
        rows = await self._agent(scope) if scope.session is None else await self._session(scope)
        return sum(row[1] for row in rows)

    async def _postings(self, agent_key: int, terms: Sequence[str], narrowing: str, cap: int) -> Sequence[Posting]:
        found = await self._connection.execute_fetchall(
            SELECT_POSTINGS,
            {
                "agent_key": str(agent_key),
                "narrowing": narrowing,
                "terms": json.dumps(list(terms)),
                "cap": cap + 1,
            },
        )
        return [
            Posting(term=term, keys=tuple(keys[:cap]), is_complete=len(keys) <= cap)
            for term, keys in ((term, json.loads(keys)) for term, keys in found)
        ]

    async def _session(self, scope: Scope) -> Sequence[tuple[int, int, int, int]]:
        rows = await self._connection.execute_fetchall(
            SELECT_SESSION_AGENT, {"owner": scope.owner, "agent": scope.agent, "session": scope.session}
        )
        return [(row[0], row[1], row[2], row[3]) for row in rows]

    async def _agent(self, scope: Scope) -> Sequence[tuple[int, int]]:
        rows = await self._connection.execute_fetchall(
            SELECT_AGENT, {"owner": scope.owner, "agent": scope.agent or DEFAULT_AGENT}
        )
        return [(row[0], row[1]) for row in rows]


class TextIndexStatements(TextIndexQueries):
    """The index inside a write transaction."""

    async def rebuild(self) -> int:
        """Empty the index and fill it from the records that are not forgotten; how many those are."""
        await self._connection.execute_fetchall(DELETE_ALL_TERMS)
        count, after_key = 0, 0
        while True:
            found = list(await self._connection.execute_fetchall(SELECT_FOR_INDEX, {"after_key": after_key}))
            if not found:
                return count
            await self._connection.executemany(INSERT_TERMS, [index_row(row) for row in found])
            count, after_key = count + len(found), found[-1][0]


def index_row(row: Sequence[Any]) -> tuple[int, str]:
    """The parameters of INSERT_TERMS and DELETE_TERMS for a row of SELECT_FOR_INDEX: the index is derived from these
    alone, and what is taken out of it must be exactly what was put in."""
    key, agent_key, session_key, record_type, text, name = row
    return key, index_entry(agent_key, session_key, RecordType(record_type), index_terms(text, name))
