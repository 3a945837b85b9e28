"""Stores the messages, pins and summaries of a session, and updates the text index and the counters with them."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from kalito_mcp.domain.records import (
    ConversationSummary,
    MessageWithImportance,
    SemanticPin,
    SessionView,
)
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import Session
from kalito_mcp.ports.conversations import AppendedMessage, MessageDraft, PinDraft, SummaryDraft
from kalito_mcp.ports.records import AlreadyStored
from kalito_mcp.storage import conversation_rows as rows
from kalito_mcp.storage.conversation_rows import RECORD_COLUMNS
from kalito_mcp.storage.numbered import key_of
from kalito_mcp.storage.queries import limits_of
from kalito_mcp.storage.sqlite.queries import Queries, within
from kalito_mcp.storage.sqlite.record_statements import INSERT_EDIT, INSERT_RECORD, STORED_COLUMNS, UPDATE_RECORD
from kalito_mcp.storage.sqlite.superseded import NOT_SUPERSEDED, supersede
from kalito_mcp.storage.sqlite.text_index import TextIndexStatements, index_entry
from kalito_mcp.text.analysis import IndexedText

SELECT_VIEW: Final = f"""
SELECT * FROM (
    SELECT {RECORD_COLUMNS} FROM records r
    WHERE r.session_key = :session_key AND r.type = 'message' AND r.deleted_at IS NULL
        AND (r.is_internal = 0 OR :include_internal)
    ORDER BY r.seq DESC LIMIT :tail
)
UNION ALL SELECT * FROM (
    SELECT {RECORD_COLUMNS} FROM records r
    WHERE r.session_key = :session_key AND r.type = 'pin' AND r.deleted_at IS NULL
        AND (r.is_internal = 0 OR :include_internal) AND {NOT_SUPERSEDED}
    ORDER BY r.importance DESC, r.created_at DESC, r.key DESC LIMIT :pins
)
UNION ALL SELECT * FROM (
    SELECT {RECORD_COLUMNS} FROM records r
    WHERE r.session_key = :session_key AND r.type = 'summary' AND r.is_covered = 0 AND r.deleted_at IS NULL
        AND (r.is_internal = 0 OR :include_internal)
    ORDER BY r.seq
)
"""
SELECT_MESSAGES: Final = f"""
SELECT {RECORD_COLUMNS} FROM records r
WHERE r.session_key = :session_key AND r.type = 'message' AND r.seq BETWEEN :first_seq AND :last_seq ORDER BY r.seq
"""
SELECT_MESSAGE: Final = f"""
SELECT s.id, {RECORD_COLUMNS} FROM records r JOIN sessions s ON s.key = r.session_key
WHERE r.key = :number AND r.type = 'message' AND s.owner = :owner AND (:session IS NULL OR s.id = :session)
    AND {within("s")}
"""
SELECT_MESSAGES_BY_NUMBER: Final = f"""
SELECT {RECORD_COLUMNS} FROM records r
WHERE r.key IN (SELECT value FROM json_each(:numbers)) AND r.session_key = :session_key AND r.type = 'message'
ORDER BY r.seq
"""
SELECT_SUMMARIES: Final = f"""
SELECT {RECORD_COLUMNS} FROM records r
WHERE r.session_key = :session_key AND r.type = 'summary' AND r.level = :level AND r.seq > :after_seq
ORDER BY r.seq
"""
SELECT_UNCOVERED_SUMMARIES: Final = f"""
SELECT {RECORD_COLUMNS} FROM records r
WHERE r.session_key = :session_key AND r.type = 'summary' AND r.is_covered = 0 ORDER BY r.seq
"""
SELECT_PIN_BY_CLIENT_KEY: Final = f"""
SELECT {RECORD_COLUMNS} FROM records r
WHERE r.session_key = :session_key AND r.type = 'pin' AND r.client_key = :client_key
"""
SELECT_SUMMARY_BY_CLIENT_KEY: Final = f"""
SELECT {RECORD_COLUMNS} FROM records r
WHERE r.session_key = :session_key AND r.type = 'summary' AND r.client_key = :client_key
"""
SELECT_NEXT_KEY: Final = "SELECT coalesce(max(seq), 0) + 1 FROM sqlite_sequence WHERE name = 'records'"
UPDATE_COUNTERS_OF_MESSAGES: Final = """
UPDATE sessions SET
    message_count = message_count + :messages,
    importance_sum = importance_sum + :importance,
    model = coalesce(:model, model),
    oldest_message_at = min(coalesce(oldest_message_at, :oldest), :oldest),
    newest_message_at = max(coalesce(newest_message_at, :newest), :newest),
    updated_at = :now_ms, revision = revision + 1
WHERE key = :session_key
"""
UPDATE_COUNTERS_OF_PINS: Final = """
UPDATE sessions SET pin_count = pin_count + :pins, updated_at = max(updated_at, :now_ms), revision = revision + 1
WHERE key = :session_key
"""
UPDATE_COUNTERS_OF_SUMMARY: Final = """
UPDATE sessions SET
    summary_count = summary_count + 1,
    summarized_seq = CASE WHEN :level = 0 THEN :end_seq ELSE summarized_seq END,
    revision = revision + 1
WHERE key = :session_key
"""
SELECT_OWNERSHIP: Final = "SELECT agent_key, project_key FROM sessions WHERE key = :session_key"
UPDATE_AGENT_COUNT: Final = "UPDATE agents SET record_count = record_count + :records WHERE key = :agent_key"
SELECT_LEVEL_END: Final = """
SELECT end_seq FROM records WHERE session_key = :session_key AND type = 'summary' AND level = :level
ORDER BY seq DESC LIMIT 1
"""
UPDATE_COVERED: Final = """
UPDATE records SET is_covered = 1
WHERE session_key = :session_key AND type = 'summary' AND level = :level - 1 AND seq BETWEEN :start_seq AND :end_seq
"""
SELECT_SCORED: Final = f"""
SELECT {STORED_COLUMNS} FROM records r
WHERE r.key IN (SELECT value FROM json_each(:keys)) AND r.session_key = :session_key AND r.type = 'message'
    AND r.deleted_at IS NULL
"""
UPDATE_IMPORTANCE_SUM: Final = """
UPDATE sessions SET importance_sum = importance_sum + :change, revision = revision + 1 WHERE key = :session_key
"""


@contextmanager
def stored_once() -> Iterator[None]:
    """Report a constraint that says what is stored once."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise AlreadyStored from error


class ConversationQueries(Queries):
    """`ports.conversations.ConversationReader`."""

    async def view(self, session: Session, *, tail: int, pins: int, include_internal: bool = False) -> SessionView:
        found = await self._all(
            SELECT_VIEW, session_key=key_of(session), tail=tail, pins=pins, include_internal=include_internal
        )
        return rows.session_view(session, found, include_internal=include_internal)

    async def messages(self, session: Session, *, first_seq: int, last_seq: int) -> Sequence[MessageWithImportance]:
        found = await self._all(SELECT_MESSAGES, session_key=key_of(session), first_seq=first_seq, last_seq=last_seq)
        return rows.messages(session.id, found)

    async def message(self, scope: Scope, number: int) -> MessageWithImportance | None:
        parameters = {"number": number, "owner": scope.owner, "session": scope.session}
        found = await self._all(SELECT_MESSAGE, **parameters, **limits_of(scope))
        return next((rows.messages(row[0], [row[1:]])[0] for row in found), None)

    async def messages_by_number(self, session: Session, numbers: Sequence[int]) -> Sequence[MessageWithImportance]:
        found = await self._all(
            SELECT_MESSAGES_BY_NUMBER, session_key=key_of(session), numbers=json.dumps(list(numbers))
        )
        return rows.messages(session.id, found)

    async def summaries(self, session: Session, *, level: int, after_seq: int) -> Sequence[ConversationSummary]:
        found = await self._all(SELECT_SUMMARIES, session_key=key_of(session), level=level, after_seq=after_seq)
        return rows.summaries(session, found)

    async def uncovered_summaries(self, session: Session) -> Sequence[ConversationSummary]:
        return rows.summaries(session, await self._all(SELECT_UNCOVERED_SUMMARIES, session_key=key_of(session)))

    async def summarized_to(self, session: Session, level: int) -> int:
        ends = await self._all(SELECT_LEVEL_END, session_key=key_of(session), level=level)
        return int(ends[0][0]) if ends else 0

    async def summary_by_client_key(self, session: Session, client_key: str) -> ConversationSummary | None:
        found = await self._all(SELECT_SUMMARY_BY_CLIENT_KEY, session_key=key_of(session), client_key=client_key)
        return next(iter(rows.summaries(session, found)), None)

    async def pin_by_client_key(self, session: Session, client_key: str) -> SemanticPin | None:
        found = await self._all(SELECT_PIN_BY_CLIENT_KEY, session_key=key_of(session), client_key=client_key)
        return next(iter(rows.pins(session, found)), None)


class ConversationStatements(ConversationQueries):
    """`ports.conversations.ConversationWriter`."""

    async def append_messages(
        self, session: Session, drafts: Sequence[MessageDraft], *, now_ms: int
    ) -> Sequence[AppendedMessage]:
        if not drafts:
            return []
        first_key, first_seq = await self._next_key(), session.message_count + 1
        appended = [AppendedMessage(first_key + place, first_seq + place) for place in range(len(drafts))]
        agent_key, project_key = await self._ownership(session)
        entries: list[tuple[rows.Row, IndexedText]] = []
        for one, draft in zip(appended, drafts, strict=True):
            row = rows.message_row(one.id, agent_key, key_of(session), one.seq, draft, now_ms=now_ms)
            entries.append(((*row, project_key, None), draft.indexed))
        await self._insert(entries)
        for one, draft in zip(appended, drafts, strict=True):
            if draft.details and draft.details.get("supersedes"):
                await supersede(self._connection, one.id)
        counters = {**rows.message_counters(drafts), "messages": len(drafts)}
        await self._all(UPDATE_COUNTERS_OF_MESSAGES, **counters, now_ms=now_ms, session_key=key_of(session))
        return appended

    async def add_pins(self, session: Session, drafts: Sequence[PinDraft]) -> None:
        if not drafts:
            return
        first_key, (agent_key, project_key) = await self._next_key(), await self._ownership(session)
        entries = [
            (rows.pin_row(key, agent_key, key_of(session), project_key, draft), draft.indexed)
            for key, draft in enumerate(drafts, first_key)
        ]
        await self._insert(entries)
        for key, draft in enumerate(drafts, first_key):
            if draft.supersedes:
                await supersede(self._connection, key)
        await self._all(
            UPDATE_COUNTERS_OF_PINS,
            pins=len(drafts),
            now_ms=max(draft.created_at for draft in drafts),
            session_key=key_of(session),
        )

    async def add_summary(self, session: Session, draft: SummaryDraft) -> None:
        key, (agent_key, project_key) = await self._next_key(), await self._ownership(session)
        row = rows.summary_row(key, agent_key, key_of(session), draft)
        await self._insert([((*row, project_key, None), draft.indexed)])
        place = {"session_key": key_of(session), "level": draft.level, "end_seq": draft.end_seq}
        await self._all(UPDATE_COVERED, start_seq=draft.start_seq, **place)
        await self._all(UPDATE_COUNTERS_OF_SUMMARY, **place)

    async def set_importance(self, session: Session, scores: Sequence[tuple[int, float]], *, now_ms: int) -> None:
        wanted = dict(scores)
        found = await self._all(SELECT_SCORED, keys=json.dumps(list(wanted)), session_key=key_of(session))
        scored, edits, change = rows.rescored(found, wanted, now_ms)
        await self._connection.executemany(UPDATE_RECORD, scored)
        await self._connection.executemany(INSERT_EDIT, edits)
        await self._all(UPDATE_IMPORTANCE_SUM, change=change, session_key=key_of(session))

    async def _ownership(self, session: Session) -> tuple[int, int | None]:
        """The keys of the session's agent and project."""
        [[agent_key, project_key]] = await self._all(SELECT_OWNERSHIP, session_key=key_of(session))
        return agent_key, project_key

    async def _insert(self, entries: Sequence[tuple[rows.Row, IndexedText]]) -> None:
        """Insert rows, all of one agent, with their index entries."""
        agent_key = entries[0][0][1]
        await self._all(UPDATE_AGENT_COUNT, records=len(entries), agent_key=agent_key)
        with stored_once():
            await self._connection.executemany(INSERT_RECORD, [row for row, _ in entries])
        await TextIndexStatements(self._connection).add(
            [index_entry(row[0], agent_key, indexed) for row, indexed in entries]
        )

    async def _next_key(self) -> int:
        [[key]] = await self._all(SELECT_NEXT_KEY)
        return int(key)
