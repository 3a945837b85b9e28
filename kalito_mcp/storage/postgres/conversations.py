"""Stores the messages, pins and summaries of a session, and updates the text index and the counters with them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kalito_mcp.domain.records import ConversationSummary, MessageWithImportance, SemanticPin, SessionView
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import Session
from kalito_mcp.ports.conversations import AppendedMessage, MessageDraft, PinDraft, SummaryDraft
from kalito_mcp.storage import conversation_rows as rows
from kalito_mcp.storage.conversation_rows import RECORD_COLUMNS
from kalito_mcp.storage.numbered import key_of
from kalito_mcp.storage.postgres.queries import Queries, limits_of, within
from kalito_mcp.storage.postgres.record_statements import (
    INSERT_EDIT,
    STORED_COLUMNS,
    UPDATE_RECORD,
    inserted_edit,
)
from kalito_mcp.storage.postgres.superseded import NOT_SUPERSEDED, supersede
from kalito_mcp.storage.postgres.text_index import TextIndexStatements
from kalito_mcp.text.analysis import IndexedText

_OF_SESSION: Final = (
    f"SELECT {RECORD_COLUMNS} FROM records r WHERE r.owner_key = :owner AND r.session_key = :session_key"
)
_IN_VIEW: Final = "r.deleted_at IS NULL AND (r.is_internal = 0 OR :include_internal)"
SELECT_VIEW: Final = f"""
SELECT * FROM (
    ({_OF_SESSION} AND r.type = 'message' AND {_IN_VIEW} ORDER BY r.seq DESC LIMIT :tail)
    UNION ALL (
        {_OF_SESSION} AND r.type = 'pin' AND {_IN_VIEW} AND {NOT_SUPERSEDED}
        ORDER BY r.importance DESC, r.created_at DESC, r.key DESC LIMIT :pins
    )
    UNION ALL ({_OF_SESSION} AND r.type = 'summary' AND r.is_covered = 0 AND {_IN_VIEW})
) found
ORDER BY type, CASE type WHEN 'message' THEN -seq ELSE seq END,
    CASE type WHEN 'pin' THEN importance END DESC, created_at DESC, key DESC
"""
SELECT_MESSAGES: Final = f"""
{_OF_SESSION} AND r.type = 'message' AND r.seq BETWEEN :first_seq AND :last_seq ORDER BY r.seq
"""
SELECT_MESSAGE: Final = f"""
SELECT s.id, {RECORD_COLUMNS} FROM records r JOIN sessions s ON s.owner_key = :owner AND s.key = r.session_key
WHERE r.owner_key = :owner AND r.key = :number AND r.type = 'message' AND (:session IS NULL OR s.id = :session)
    AND {within("s")}
"""
# Read by key (OFFSET): a plan by session might read all messages of a long one.
_OF_KEYS: Final = "(SELECT * FROM records WHERE owner_key = :owner AND key = ANY(:keys) OFFSET 0) r"
SELECT_MESSAGES_BY_NUMBER: Final = f"""
SELECT {RECORD_COLUMNS} FROM {_OF_KEYS} WHERE r.session_key = :session_key AND r.type = 'message' ORDER BY r.seq
"""
SELECT_SUMMARIES: Final = f"""
{_OF_SESSION} AND r.type = 'summary' AND r.level = :level AND r.seq > :after_seq ORDER BY r.seq
"""
SELECT_UNCOVERED_SUMMARIES: Final = f"{_OF_SESSION} AND r.type = 'summary' AND r.is_covered = 0 ORDER BY r.seq"
SELECT_PIN_BY_CLIENT_KEY: Final = f"{_OF_SESSION} AND r.type = 'pin' AND r.client_key = :client_key"
SELECT_SUMMARY_BY_CLIENT_KEY: Final = f"{_OF_SESSION} AND r.type = 'summary' AND r.client_key = :client_key"
SELECT_LEVEL_END: Final = """
SELECT end_seq FROM records
WHERE owner_key = :owner AND session_key = :session_key AND type = 'summary' AND level = :level
ORDER BY seq DESC LIMIT 1
"""
# The owner is locked before this statement, so the keys of one owner ascend. It returns them with the keys of the
# session's agent and project.
_TAKE_KEYS: Final = """
, of_agent AS (
    UPDATE agents SET record_count = record_count + :records::bigint
    WHERE owner_key = :owner AND key = (SELECT agent_key FROM counted)
)
SELECT agent_key, project_key, ARRAY(SELECT nextval('record_keys') FROM generate_series(1, :records::bigint))
FROM counted
"""
UPDATE_COUNTERS_OF_MESSAGES: Final = f"""
WITH counted AS (
    UPDATE sessions SET
        message_count = message_count + :records::bigint,
        importance_sum = importance_sum + :importance,
        model = coalesce(:model, model),
        oldest_message_at = least(oldest_message_at, :oldest),
        newest_message_at = greatest(newest_message_at, :newest),
        updated_at = :now_ms, revision = revision + 1
    WHERE owner_key = :owner AND key = :session_key
    RETURNING agent_key, project_key
){_TAKE_KEYS}
"""
UPDATE_COUNTERS_OF_PINS: Final = f"""
WITH counted AS (
    UPDATE sessions SET
        pin_count = pin_count + :records::bigint, updated_at = greatest(updated_at, :now_ms), revision = revision + 1
    WHERE owner_key = :owner AND key = :session_key
    RETURNING agent_key, project_key
){_TAKE_KEYS}
"""
UPDATE_COUNTERS_OF_SUMMARY: Final = f"""
WITH covered AS (
    UPDATE records SET is_covered = 1
    WHERE owner_key = :owner AND session_key = :session_key AND type = 'summary' AND level = :level::bigint - 1
        AND seq BETWEEN :start_seq AND :end_seq
), counted AS (
    UPDATE sessions SET
        summary_count = summary_count + 1,
        summarized_seq = CASE WHEN :level::bigint = 0 THEN :end_seq ELSE summarized_seq END,
        revision = revision + 1
    WHERE owner_key = :owner AND key = :session_key
    RETURNING agent_key, project_key
){_TAKE_KEYS}
"""
SELECT_SCORED: Final = f"""
SELECT {STORED_COLUMNS} FROM {_OF_KEYS}
WHERE r.session_key = :session_key AND r.type = 'message' AND r.deleted_at IS NULL
"""
UPDATE_IMPORTANCE_SUM: Final = """
UPDATE sessions SET importance_sum = importance_sum + :change, revision = revision + 1
WHERE owner_key = :owner AND key = :session_key
"""


class ConversationQueries(Queries):
    """`ports.conversations.ConversationReader`."""

    async def view(self, session: Session, *, tail: int, pins: int, include_internal: bool = False) -> SessionView:
        found = await self._all(SELECT_VIEW, tail=tail, pins=pins, include_internal=include_internal, **_of(session))
        return rows.session_view(session, found, include_internal=include_internal)

    async def messages(self, session: Session, *, first_seq: int, last_seq: int) -> Sequence[MessageWithImportance]:
        found = await self._all(SELECT_MESSAGES, first_seq=first_seq, last_seq=last_seq, **_of(session))
        return rows.messages(session.id, found)

    async def message(self, scope: Scope, number: int) -> MessageWithImportance | None:
        parameters = {"number": number, "owner": scope.owner, "session": scope.session}
        found = await self._all(SELECT_MESSAGE, **parameters, **limits_of(scope))
        return next((rows.messages(row[0], [row[1:]])[0] for row in found), None)

    async def messages_by_number(self, session: Session, numbers: Sequence[int]) -> Sequence[MessageWithImportance]:
        found = await self._all(SELECT_MESSAGES_BY_NUMBER, keys=list(numbers), **_of(session))
        return rows.messages(session.id, found)

    async def summaries(self, session: Session, *, level: int, after_seq: int) -> Sequence[ConversationSummary]:
        found = await self._all(SELECT_SUMMARIES, level=level, after_seq=after_seq, **_of(session))
        return rows.summaries(session, found)

    async def uncovered_summaries(self, session: Session) -> Sequence[ConversationSummary]:
        return rows.summaries(session, await self._all(SELECT_UNCOVERED_SUMMARIES, **_of(session)))

    async def summarized_to(self, session: Session, level: int) -> int:
        ends = await self._all(SELECT_LEVEL_END, level=level, **_of(session))
        return int(ends[0][0]) if ends else 0

    async def summary_by_client_key(self, session: Session, client_key: str) -> ConversationSummary | None:
        found = await self._all(SELECT_SUMMARY_BY_CLIENT_KEY, client_key=client_key, **_of(session))
        return next(iter(rows.summaries(session, found)), None)

    async def pin_by_client_key(self, session: Session, client_key: str) -> SemanticPin | None:
        found = await self._all(SELECT_PIN_BY_CLIENT_KEY, client_key=client_key, **_of(session))
        return next(iter(rows.pins(session, found)), None)


class ConversationStatements(ConversationQueries):
    """`ports.conversations.ConversationWriter`."""

    async def append_messages(
        self, session: Session, drafts: Sequence[MessageDraft], *, now_ms: int
    ) -> Sequence[AppendedMessage]:
        if not drafts:
            return []
        counters = {**rows.message_counters(drafts), "now_ms": now_ms}
        agent_key, project_key, keys = await self._count(UPDATE_COUNTERS_OF_MESSAGES, session, len(drafts), counters)
        appended = [AppendedMessage(key, seq) for seq, key in enumerate(keys, session.message_count + 1)]
        entries: list[tuple[rows.Row, IndexedText]] = []
        for one, draft in zip(appended, drafts, strict=True):
            row = rows.message_row(one.id, agent_key, key_of(session), one.seq, draft, now_ms=now_ms)
            entries.append(((*row, project_key, None), draft.indexed))
        await self._insert(session, entries)
        for one, draft in zip(appended, drafts, strict=True):
            if draft.details and (named := draft.details.get("supersedes")):
                await supersede(self._transaction, session.owner, one.id, named)
        return appended

    async def add_pins(self, session: Session, drafts: Sequence[PinDraft]) -> None:
        if not drafts:
            return
        counters = {"now_ms": max(draft.created_at for draft in drafts)}
        agent_key, project_key, keys = await self._count(UPDATE_COUNTERS_OF_PINS, session, len(drafts), counters)
        entries = [
            (rows.pin_row(key, agent_key, key_of(session), project_key, draft), draft.indexed)
            for key, draft in zip(keys, drafts, strict=True)
        ]
        await self._insert(session, entries)
        for key, draft in zip(keys, drafts, strict=True):
            if draft.supersedes:
                await supersede(self._transaction, session.owner, key, draft.supersedes)

    async def add_summary(self, session: Session, draft: SummaryDraft) -> None:
        place = {"level": draft.level, "start_seq": draft.start_seq, "end_seq": draft.end_seq}
        agent_key, project_key, [key] = await self._count(UPDATE_COUNTERS_OF_SUMMARY, session, 1, place)
        row = rows.summary_row(key, agent_key, key_of(session), draft)
        await self._insert(session, [((*row, project_key, None), draft.indexed)])

    async def set_importance(self, session: Session, scores: Sequence[tuple[int, float]], *, now_ms: int) -> None:
        wanted = dict(scores)
        found = await self._all(SELECT_SCORED, keys=list(wanted), **_of(session))
        scored, edits, change = rows.rescored(found, wanted, now_ms)
        await self._many(UPDATE_RECORD, scored, owner=session.owner)
        await self._many(INSERT_EDIT, map(inserted_edit, edits), owner=session.owner)
        await self._all(UPDATE_IMPORTANCE_SUM, change=change, **_of(session))

    async def _count(
        self, statement: str, session: Session, records: int, counters: Mapping[str, Any]
    ) -> tuple[int, int | None, Sequence[int]]:
        """Count new records. The keys of the session's agent and project, and a key for each record."""
        [[agent_key, project_key, keys]] = await self._all(statement, records=records, **counters, **_of(session))
        return agent_key, project_key, keys

    async def _insert(self, session: Session, entries: Sequence[tuple[rows.Row, IndexedText]]) -> None:
        """Insert rows, all of one agent, with their index entries."""
        index = TextIndexStatements(self._transaction)
        await index.insert(session.owner, [row for row, _ in entries], [indexed for _, indexed in entries])


def _of(session: Session) -> dict[str, Any]:
    return {"owner": session.owner, "session_key": key_of(session)}
