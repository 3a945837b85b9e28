"""The messages, pins and summaries of a store in memory. Implements `ports.conversations`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from kalito_mcp.domain.memory_records import SYSTEM_EDITOR, EditType, StoredEdit
from kalito_mcp.domain.records import (
    ConversationSummary,
    MessageWithImportance,
    PinType,
    Reach,
    RecordType,
    Role,
    SemanticPin,
    SessionView,
    SummaryMethod,
    message_record_id,
    origin_of_role,
)
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import Session
from kalito_mcp.ports.conversations import AppendedMessage, MessageDraft, PinDraft, SummaryDraft
from kalito_mcp.storage.memory.state import StoredRecord, Tables

_PLACE: Final = ("start_message_id", "end_message_id", "level", "start_seq", "end_seq", "started_at", "ended_at")


class ConversationsRead(Tables):
    """`ports.conversations.ConversationReader`."""

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
        """The summaries of a level in order. A level is written in order."""
        return [one for one in self._state.of_session(session, RecordType.SUMMARY) if one.content["level"] == level]


class ConversationsWritten(ConversationsRead):
    """`ports.conversations.ConversationWriter`."""

    async def append_messages(
        self, session: Session, drafts: Sequence[MessageDraft], *, now_ms: int
    ) -> Sequence[AppendedMessage]:
        appended: list[AppendedMessage] = []
        for seq, draft in enumerate(drafts, session.message_count + 1):
            content = {
                **(draft.details or {}),
                **_fields(draft, "text", "name", "model_id", "token_usage"),
                "importance_score": draft.importance,
            }
            origin = draft.origin or origin_of_role(draft.role)
            said = {"origin": origin, "client": draft.client, "role": draft.role, "seq": seq, "recorded_at": now_ms}
            stored = self._add(session, RecordType.MESSAGE, draft, content, **said)
            appended.append(AppendedMessage(stored.key, seq))
        if drafts:
            self._state.update_session(session, updated_at=now_ms)
        return appended

    async def add_pins(self, session: Session, drafts: Sequence[PinDraft]) -> None:
        for draft in drafts:
            content = {
                **_fields(draft, "pin_type", "source_message_id", "kind"),
                "text": draft.content,
                "importance_score": draft.importance,
                "supersedes": list(draft.supersedes) or None,
                "scope": draft.reach,
            }
            others = {"id": draft.id, "origin": draft.origin, "client": draft.client}
            self._add(session, RecordType.PIN, draft, content, **others)
        if drafts:
            updated_at = max(session.updated_at, *(draft.created_at for draft in drafts))
            self._state.update_session(session, updated_at=updated_at)

    async def add_summary(self, session: Session, draft: SummaryDraft) -> None:
        for one in self._of_level(session, draft.level - 1):
            if draft.start_seq <= _start(one) <= draft.end_seq:
                self._state.put(replace(one, is_covered=True))
        content = {**_fields(draft, "text", "method", "model_id", *_PLACE), "importance_score": draft.importance}
        self._add(session, RecordType.SUMMARY, draft, content, id=draft.id, origin=draft.origin, client=None)
        self._state.update_session(session, **({} if draft.level else {"summarized_seq": draft.end_seq}))

    async def set_importance(self, session: Session, scores: Sequence[tuple[int, float]], *, now_ms: int) -> None:
        for number, score in scores:
            one = self._state.records.get(message_record_id(number))
            if one and one.session_id == session.id and not one.is_deleted and one.importance != score:
                version, before = one.revision + 1, {"importance_score": one.importance}
                self._state.put(one.with_content({"importance_score": score}, revision=version))
                made = StoredEdit(version, EditType.UPDATE, SYSTEM_EDITOR, now_ms, before)
                self._state.edits[one.id] = (*self._state.edits.get(one.id, ()), made)
        self._state.update_session(session)

    def _add(
        self,
        session: Session,
        record_type: RecordType,
        draft: MessageDraft | PinDraft | SummaryDraft,
        content: Mapping[str, Any],
        **others: Any,
    ) -> StoredRecord:
        """Add a record of the session."""
        stored = self._state.sessions[session.owner, session.id]
        place = {"agent_id": stored.agent, "session_id": stored.id, "project": stored.project}
        said = {"recorded_at": draft.created_at, **_fields(draft, "created_at", "client_key", "tokens", "indexed")}
        return self._state.add(stored.owner, record_type, content, **{**place, **said, **others})


def _fields(draft: MessageDraft | PinDraft | SummaryDraft, *names: str) -> dict[str, Any]:
    return {name: getattr(draft, name) for name in names}


def _is_hidden(stored: StoredRecord, include_internal: bool) -> bool:
    return stored.is_deleted or (stored.is_internal and not include_internal)


def _message(stored: StoredRecord, *, include_internal: bool = False) -> MessageWithImportance:
    content, is_hidden = stored.content, _is_hidden(stored, include_internal)
    return MessageWithImportance(
        id=stored.key,
        session_id=stored.session_id or "",
        role=stored.role or Role.USER,
        text="" if is_hidden else stored.text,
        model_id=content.get("model_id"),
        token_usage=content.get("token_usage"),
        created_at=stored.created_at,
        importance_score=stored.importance,
        seq=stored.seq or 0,
        tokens=0 if is_hidden else stored.tokens,
        name=None if is_hidden else stored.name,
        client_key=stored.client_key,
        origin=stored.origin,
        is_hidden=is_hidden,
    )


def _pin(stored: StoredRecord) -> SemanticPin:
    return SemanticPin(
        id=stored.id,
        session_id=stored.session_id,
        content=stored.text,
        source_message_id=stored.content.get("source_message_id"),
        importance_score=stored.importance,
        pin_type=PinType(stored.content["pin_type"]),
        created_at=stored.created_at,
        tokens=stored.tokens,
        origin=stored.origin,
        reach=stored.reach or Reach.SESSION,
    )


def _summary(stored: StoredRecord, *, include_internal: bool = False) -> ConversationSummary:
    content = stored.content
    return ConversationSummary(
        id=stored.id,
        session_id=stored.session_id or "",
        summary="" if _is_hidden(stored, include_internal) else stored.text,
        message_count=content["end_seq"] - content["start_seq"] + 1,
        importance_score=stored.importance,
        created_at=stored.created_at,
        tokens=stored.tokens,
        method=SummaryMethod(content["method"]),
        model_id=content.get("model_id"),
        origin=stored.origin,
        **{name: content[name] for name in _PLACE},
    )


def _start(stored: StoredRecord) -> int:
    start: int = stored.content["start_seq"]
    return start
