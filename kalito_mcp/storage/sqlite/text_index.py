"""The text index on FTS5, used for what it is best at: which records hold a term.

Scoring is not FTS5's: its bm25() visits every record of every term, and a common word among 10^6 records is a scan.
Here each term yields at most `cap` records, newest first, in one statement, whatever the word.
"""

import json
from collections.abc import Sequence
from typing import Final

import aiosqlite

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
# FTS5 walks both lists of an AND: 13 microseconds a step measured. Where most records pass anyway, it is cheaper
# to take more of them and let `candidates` filter.
_WIDE_SHARE: Final = 0.2


def index_entry(agent_key: int, session_key: int, record_type: RecordType, terms: Sequence[str]) -> str:
    """What is indexed for one record: its terms under its agent, its session and its type."""
    agent = f"{agent_key}:"
    scoped = f" {agent}".join(terms)
    return f"s:{session_key} {agent}t:{record_type} {agent if scoped else ''}{scoped}"


class TextIndexQueries:
    """`ports.text_index.TextIndexReader`."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection

    async def postings(
        self, scope: Scope, terms: Sequence[str], *, types: frozenset[RecordType], cap: int
    ) -> Sequence[Posting]:
        if scope.session is None:
            agents = await self._agent(scope)
            if not agents:
                return []
            [(agent_key, _)], narrowing = agents, ""
        else:
            sessions = list(
                await self._connection.execute_fetchall(
                    SELECT_SESSION_AGENT, {"owner": scope.owner, "agent": scope.agent, "session": scope.session}
                )
            )
            if not sessions:
                return []
            [(agent_key, records, session_key, in_session)] = sessions
            narrowing = f' AND "s:{session_key}"' if in_session < _WIDE_SHARE * records else ""
        if types and RecordType.MESSAGE not in types:
            # Pins and summaries are few beside messages: their lists are short.
            wanted = " OR ".join(f'"{agent_key}:t:{kind}"' for kind in sorted(types))
            narrowing += f" AND ({wanted})"
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

    async def record_count(self, scope: Scope) -> int:
        return sum(row[1] for row in await self._agent(scope))

    async def _agent(self, scope: Scope) -> Sequence[tuple[int, int]]:
        rows = await self._connection.execute_fetchall(
            SELECT_AGENT, {"owner": scope.owner, "agent": scope.agent or DEFAULT_AGENT}
        )
        return [(row[0], row[1]) for row in rows]
