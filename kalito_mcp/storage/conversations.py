"""Stores the messages, pins and summaries of a session, and updates the text index and the counters with them."""

from collections.abc import Sequence
from typing import Any

from kalito_mcp.domain.records import ConversationSummary, MessageWithImportance, SemanticPin, SessionView
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import Session
from kalito_mcp.ports.conversations import AppendedMessage, MessageDraft, PinDraft, SummaryDraft
from kalito_mcp.storage import conversation_rows as rows
from kalito_mcp.storage.numbered import key_of
from kalito_mcp.storage.queries import Queries, places_of
from kalito_mcp.text.analysis import IndexedText


class ConversationQueries(Queries):
    """`ports.conversations.ConversationReader`."""

    async def view(self, session: Session, *, tail: int, pins: int, include_internal: bool = False) -> SessionView:
        found = await self._all(
            self._sql.conversations.SELECT_VIEW, tail=tail, pins=pins, include_internal=include_internal, **_of(session)
        )
        return rows.session_view(session, found, include_internal=include_internal)

    async def messages(self, session: Session, *, first_seq: int, last_seq: int) -> Sequence[MessageWithImportance]:
        found = await self._all(
            self._sql.conversations.SELECT_MESSAGES, first_seq=first_seq, last_seq=last_seq, **_of(session)
        )
        return rows.messages(session.id, found)

    async def message(self, scope: Scope, number: int) -> MessageWithImportance | None:
        found = await self._all(self._sql.conversations.SELECT_MESSAGE, number=number, **places_of(scope))
        return next((rows.messages(row[0], [row[1:]])[0] for row in found), None)

    async def messages_by_number(self, session: Session, numbers: Sequence[int]) -> Sequence[MessageWithImportance]:
        found = await self._all(self._sql.conversations.SELECT_MESSAGES_BY_NUMBER, keys=list(numbers), **_of(session))
        return rows.messages(session.id, found)

    async def summaries(self, session: Session, *, level: int, after_seq: int) -> Sequence[ConversationSummary]:
        found = await self._all(
            self._sql.conversations.SELECT_SUMMARIES, level=level, after_seq=after_seq, **_of(session)
        )
        return rows.summaries(session, found)

    async def uncovered_summaries(self, session: Session) -> Sequence[ConversationSummary]:
        return rows.summaries(
            session, await self._all(self._sql.conversations.SELECT_UNCOVERED_SUMMARIES, **_of(session))
        )

    async def summarized_to(self, session: Session, level: int) -> int:
        ends = await self._all(self._sql.conversations.SELECT_LEVEL_END, level=level, **_of(session))
        return int(ends[0][0]) if ends else 0

    async def summary_by_client_key(self, session: Session, client_key: str) -> ConversationSummary | None:
        found = await self._all(
            self._sql.conversations.SELECT_SUMMARY_BY_CLIENT_KEY, client_key=client_key, **_of(session)
        )
        return next(iter(rows.summaries(session, found)), None)

    async def pin_by_client_key(self, session: Session, client_key: str) -> SemanticPin | None:
        found = await self._all(self._sql.conversations.SELECT_PIN_BY_CLIENT_KEY, client_key=client_key, **_of(session))
        return next(iter(rows.pins(session, found)), None)


class ConversationStatements(ConversationQueries):
    """`ports.conversations.ConversationWriter`."""

    async def append_messages(
        self, session: Session, drafts: Sequence[MessageDraft], *, now_ms: int
    ) -> Sequence[AppendedMessage]:
        if not drafts:
            return []
        first_seq, key = session.message_count + 1, key_of(session)
        entries = [
            (rows.message_row(key, seq, draft, now_ms=now_ms), draft.indexed)
            for seq, draft in enumerate(drafts, first_seq)
        ]
        counters = {**rows.message_counters(drafts), "now_ms": now_ms}
        statement = self._sql.conversations.UPDATE_COUNTERS_OF_MESSAGES
        keys = await self._store(statement, session, entries, **counters)
        appended = [AppendedMessage(key, seq) for seq, key in enumerate(keys, first_seq)]
        for one, draft in zip(appended, drafts, strict=True):
            if draft.details and (named := draft.details.get("supersedes")):
                await self._sql.superseded.supersede(self._transaction, session.owner, one.id, named)
        return appended

    async def add_pins(self, session: Session, drafts: Sequence[PinDraft]) -> None:
        if not drafts:
            return
        counters = {"now_ms": max(draft.created_at for draft in drafts)}
        entries = [
            (rows.pin_row(key_of(session), draft, has_project=session.project is not None), draft.indexed)
            for draft in drafts
        ]
        keys = await self._store(self._sql.conversations.UPDATE_COUNTERS_OF_PINS, session, entries, **counters)
        for key, draft in zip(keys, drafts, strict=True):
            if draft.supersedes:
                await self._sql.superseded.supersede(self._transaction, session.owner, key, draft.supersedes)

    async def add_summaries(self, session: Session, drafts: Sequence[SummaryDraft]) -> None:
        if not drafts:
            return
        place = {"level": drafts[0].level, "start_seq": drafts[0].start_seq, "end_seq": drafts[-1].end_seq}
        if drafts[0].level:
            await self._all(self._sql.conversations.UPDATE_COVERED, **place, **_of(session))
        statement = self._sql.conversations.UPDATE_COUNTERS_OF_SUMMARIES
        entries = [(rows.summary_row(key_of(session), draft), draft.indexed) for draft in drafts]
        await self._store(statement, session, entries, **place)

    async def set_importance(self, session: Session, scores: Sequence[tuple[int, float]], *, now_ms: int) -> None:
        wanted = dict(scores)
        found = await self._all(self._sql.conversations.SELECT_SCORED, keys=list(wanted), **_of(session))
        scored, edits, change = rows.rescored(found, wanted, now_ms)
        await self._many(self._sql.record_statements.UPDATE_RECORD, scored, owner=session.owner)
        await self._many(self._sql.record_statements.INSERT_EDIT, edits, owner=session.owner)
        await self._all(self._sql.conversations.UPDATE_IMPORTANCE_SUM, change=change, **_of(session))

    async def _store(
        self, statement: str, session: Session, entries: Sequence[tuple[rows.Row, IndexedText]], **counters: Any
    ) -> Sequence[int]:
        """Store new records of the session, rows with their index entries, and count them. Returns their keys."""
        parameters = {**counters, **_of(session), "records": len(entries)}
        keys: Sequence[int] = await self._sql.conversations.stored(self._transaction, statement, parameters, entries)
        return keys


def _of(session: Session) -> dict[str, Any]:
    return {"owner": session.owner, "session_key": key_of(session)}
