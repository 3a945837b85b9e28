"""The messages, pins and summaries of a store in memory. Implements `ports.conversations`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kalito_mcp.domain.memory_records import SYSTEM_EDITOR, EditDraft, EditType
from kalito_mcp.domain.records import (
    ConversationSummary,
    MessageWithImportance,
    PinType,
    RecordType,
    SemanticPin,
    SessionView,
    SummaryMethod,
    message_record_id,
    origin_of_role,
)
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import Session
from kalito_mcp.ports.conversations import AppendedMessage, MessageDraft, PinDraft, SummaryDraft
from kalito_mcp.storage.memory.state import StoredRecord, Tables, made_of, picked


class Conversations(Tables):
    """`ports.conversations.ConversationWriter`."""

    async def view(self, session: Session, *, tail: int, pins: int, include_internal: bool = False) -> SessionView:
        messages, stored_pins, summaries = (
            [one for one in self._state.of_session(session, of_type) if not _is_hidden(one, include_internal)]
            for of_type in (RecordType.MESSAGE, RecordType.PIN, RecordType.SUMMARY)
        )
        superseding = self._state.superseding()
        standing = [one for one in reversed(stored_pins) if one.id not in superseding]
        standing.sort(key=lambda one: (-one.importance, -one.created_at))
        uncovered = [one for one in sorted(summaries, key=_start) if not one.is_covered]
        return SessionView(
            tail=tuple(_message(one, include_internal=True) for one in messages[max(len(messages) - tail, 0) :]),
            pins=tuple(_pin(one) for one in standing[:pins]),
            summaries=tuple(_summary(one, include_internal=True) for one in uncovered),
        )

    async def messages(self, session: Session, *, first_seq: int, last_seq: int) -> Sequence[MessageWithImportance]:
        stored = self._state.of_session(session, RecordType.MESSAGE)
        return [_message(one) for one in stored[max(first_seq - 1, 0) : max(last_seq, 0)]]

    async def message(self, scope: Scope, number: int) -> MessageWithImportance | None:
        found = self._state.records.get(message_record_id(number))
        if found is None or found.owner != scope.owner or scope.session not in (None, found.session_id):
            return None
        session = self._state.session(Scope(scope.owner, session=found.session_id, limits=scope.limits))
        return None if session is None else _message(found)

    async def messages_by_number(self, session: Session, numbers: Sequence[int]) -> Sequence[MessageWithImportance]:
        stored = self._state.of_session(session, RecordType.MESSAGE)
        return [_message(one) for one in stored if one.key in numbers]

    async def summaries(self, session: Session, *, level: int, after_seq: int) -> Sequence[ConversationSummary]:
        return [_summary(one) for one in self._of_level(session, level) if _start(one) > after_seq]

    async def uncovered_summaries(self, session: Session) -> Sequence[ConversationSummary]:
        stored = sorted(self._state.of_session(session, RecordType.SUMMARY), key=_start)
        return [_summary(one) for one in stored if not one.is_covered]

    async def summarized_to(self, session: Session, level: int) -> int:
        return max((one.content["end_seq"] for one in self._of_level(session, level)), default=0)

    async def summary_by_client_key(self, session: Session, client_key: str) -> ConversationSummary | None:
        stored = self._state.of_session(session, RecordType.SUMMARY)
        return next((_summary(one) for one in stored if one.client_key == client_key), None)

    async def pin_by_client_key(self, session: Session, client_key: str) -> SemanticPin | None:
        stored = self._state.of_session(session, RecordType.PIN)
        return next((_pin(one) for one in stored if one.client_key == client_key), None)

    def _of_level(self, session: Session, level: int) -> list[StoredRecord]:
        """The summaries of a level, which is written in order."""
        return [one for one in self._state.of_session(session, RecordType.SUMMARY) if one.content["level"] == level]

    async def append_messages(
        self, session: Session, drafts: Sequence[MessageDraft], *, now_ms: int
    ) -> Sequence[AppendedMessage]:
        appended: list[AppendedMessage] = []
        for seq, draft in enumerate(drafts, session.message_count + 1):
            said = {**(draft.details or {}), **picked(draft, "text", "name", "model_id", "token_usage")}
            others = {**picked(draft, "client", "role"), "seq": seq, "recorded_at": now_ms}
            others["origin"] = draft.origin or origin_of_role(draft.role)
            appended.append(AppendedMessage(self._add(session, RecordType.MESSAGE, draft, said, **others).key, seq))
        if drafts:
            self._state.update_session(session.owner, session.id, updated_at=now_ms)
        return appended

    async def add_pins(self, session: Session, drafts: Sequence[PinDraft]) -> None:
        for draft in drafts:
            said = {"text": draft.content, "scope": draft.reach, "supersedes": list(draft.supersedes) or None}
            said |= picked(draft, "pin_type", "source_message_id", "kind")
            self._add(session, RecordType.PIN, draft, said, **picked(draft, "id", "origin", "client"))
        if drafts:
            updated_at = max(session.updated_at, *(draft.created_at for draft in drafts))
            self._state.update_session(session.owner, session.id, updated_at=updated_at)

    async def add_summaries(self, session: Session, drafts: Sequence[SummaryDraft]) -> None:
        for draft in drafts:
            self._add_summary(session, draft)

    def _add_summary(self, session: Session, draft: SummaryDraft) -> None:
        for one in self._of_level(session, draft.level - 1):
            if draft.start_seq <= _start(one) <= draft.end_seq:
                self._state.put(replace(one, is_covered=True))
        place = ("level", "start_seq", "end_seq", "start_message_id", "end_message_id", "started_at", "ended_at")
        said = picked(draft, "text", "method", "model_id", *place)
        self._add(session, RecordType.SUMMARY, draft, said, **picked(draft, "id", "origin"), client=None)
        self._state.update_session(
            session.owner, session.id, **({} if draft.level else {"summarized_seq": draft.end_seq})
        )

    async def set_importance(self, session: Session, scores: Sequence[tuple[int, float]], *, now_ms: int) -> None:
        for number, score in scores:
            one = self._state.records.get(message_record_id(number))
            if one and one.session_id == session.id and not one.is_deleted and one.importance != score:
                after = one.with_content({"importance_score": score})
                edit = EditDraft(EditType.UPDATE, SYSTEM_EDITOR, now_ms, after.content, one.tokens)
                self._state.change(one, after, edit)
        self._state.update_session(session.owner, session.id)

    def _add(
        self,
        session: Session,
        kind: RecordType,
        draft: MessageDraft | PinDraft | SummaryDraft,
        said: Mapping[str, Any],
        **others: Any,
    ) -> StoredRecord:
        """Add a record of the session."""
        stored = self._state.sessions[session.owner, session.id]
        place = {"agent_id": stored.agent, "session_id": stored.id, "project": stored.project}
        kept = {"recorded_at": draft.created_at, **picked(draft, "created_at", "client_key", "tokens", "indexed")}
        content = {**said, "importance_score": draft.importance}
        return self._state.add(stored.owner, kind, content, **{**place, **kept, **others})


def _is_hidden(stored: StoredRecord, include_internal: bool) -> bool:
    return stored.is_deleted or (stored.is_internal and not include_internal)


def _message(stored: StoredRecord, *, include_internal: bool = False) -> MessageWithImportance:
    is_hidden = _is_hidden(stored, include_internal)
    left_out = {"text": "", "tokens": 0, "name": None} if is_hidden else {}
    said = {"id": stored.key, "is_hidden": is_hidden, **left_out}
    said |= {name: stored.content.get(name) for name in ("model_id", "token_usage")}
    return made_of(MessageWithImportance, stored, **said)


def _pin(stored: StoredRecord) -> SemanticPin:
    source, pin_type = stored.content.get("source_message_id"), PinType(stored.content["pin_type"])
    return made_of(SemanticPin, stored, content=stored.text, source_message_id=source, pin_type=pin_type)


def _summary(stored: StoredRecord, *, include_internal: bool = False) -> ConversationSummary:
    return made_of(
        ConversationSummary,
        stored,
        summary="" if _is_hidden(stored, include_internal) else stored.text,
        message_count=stored.content["end_seq"] - _start(stored) + 1,
        method=SummaryMethod(stored.content["method"]),
    )


def _start(stored: StoredRecord) -> int:
    return int(stored.content["start_seq"])
