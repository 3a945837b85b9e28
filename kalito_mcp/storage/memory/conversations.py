"""The messages, pins and summaries of a store in memory. Implements `ports.conversations`."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from kalito_mcp.domain.memory_records import SYSTEM_EDITOR, EditType, MemoryRecord, StoredEdit
from kalito_mcp.domain.records import (
    ConversationSummary,
    MessageWithImportance,
    PinType,
    Reach,
    RecordType,
    Repetition,
    Role,
    SemanticPin,
    SummaryMethod,
    message_record_id,
    origin_of_role,
)
from kalito_mcp.domain.request_keys import chosen_part
from kalito_mcp.domain.scope import NO_LIMITS, Limits, Scope
from kalito_mcp.domain.sessions import Session
from kalito_mcp.errors import ClientKeyReused, SummaryRangeConflict
from kalito_mcp.ports.conversations import AppendedMessage, MessageDraft, PinDraft, SessionView, SummaryDraft
from kalito_mcp.storage.memory.record_changes import check_superseded, settled
from kalito_mcp.storage.memory.records import RecordsRead, tombstones
from kalito_mcp.storage.memory.state import State, StoredRecord
from kalito_mcp.text.repetition import keys_of

_PLACE: Final = ("start_message_id", "end_message_id", "level", "start_seq", "end_seq", "started_at", "ended_at")


class ConversationsRead:
    """`ports.conversations.ConversationReader`."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def view(self, session: Session, *, tail: int, pins: int, include_internal: bool = False) -> SessionView:
        messages, stored_pins, summaries = (
            [one for one in self._state.of_session(session, of_type) if not _is_hidden(one, include_internal)]
            for of_type in (RecordType.MESSAGE, RecordType.PIN, RecordType.SUMMARY)
        )
        superseding = self._state.superseding()
        standing = [one for one in reversed(stored_pins) if one.record.id not in superseding]
        standing.sort(key=lambda one: (-one.content["importance_score"], -one.record.created_at))
        return SessionView(
            tail=tuple(_message(one, include_internal=True) for one in messages[max(len(messages) - tail, 0) :]),
            pins=tuple(_pin(one) for one in standing[:pins]),
            summaries=tuple(
                _summary(one, include_internal=True) for one in sorted(summaries, key=_start) if not one.is_covered
            ),
        )

    async def messages(self, session: Session, *, first_seq: int, last_seq: int) -> Sequence[MessageWithImportance]:
        stored = self._state.of_session(session, RecordType.MESSAGE)
        return [_message(one) for one in stored[max(first_seq - 1, 0) : max(last_seq, 0)]]

    async def message(self, scope: Scope, number: int) -> MessageWithImportance | None:
        found = self._state.by_id(message_record_id(number))
        if found is None or found.owner != scope.owner or scope.session not in (None, found.record.session_id):
            return None
        session = self._state.session(Scope(scope.owner, session=found.record.session_id, limits=scope.limits))
        return None if session is None else _message(found)

    async def messages_by_key(self, session: Session, keys: Sequence[int]) -> Sequence[MessageWithImportance]:
        wanted, stored = set(keys), self._state.of_session(session, RecordType.MESSAGE)
        return [_message(one) for one in stored if one.record.key in wanted]

    async def summaries(self, session: Session, *, level: int, after_seq: int) -> Sequence[ConversationSummary]:
        of_level = self._of_level(session, level)
        return [_summary(one) for one in of_level if _start(one) > after_seq]

    async def uncovered_summaries(self, session: Session) -> Sequence[ConversationSummary]:
        stored = sorted(self._state.of_session(session, RecordType.SUMMARY), key=_start)
        return [_summary(one) for one in stored if not one.is_covered]

    async def summary_by_client_key(self, session: Session, client_key: str) -> ConversationSummary | None:
        stored = self._state.of_session(session, RecordType.SUMMARY)
        return next((_summary(one) for one in stored if one.record.client_key == client_key), None)

    async def pin_by_client_key(self, session: Session, client_key: str) -> SemanticPin | None:
        stored = self._state.of_session(session, RecordType.PIN)
        return next((_pin(one) for one in stored if one.record.client_key == client_key), None)

    def _of_level(self, session: Session, level: int) -> list[StoredRecord]:
        """The summaries of a level in order. A level is written in order."""
        return [one for one in self._state.of_session(session, RecordType.SUMMARY) if one.content["level"] == level]


class ConversationsWritten(ConversationsRead):
    """`ports.conversations.ConversationWriter`."""

    async def append_messages(
        self, session: Session, drafts: Sequence[MessageDraft], *, now_ms: int, limits: Limits = NO_LIMITS
    ) -> Sequence[AppendedMessage]:
        known = {one.record.client_key: one for one in self._state.of_session(session, RecordType.MESSAGE)}
        first_seq = self._stored(session).message_count + 1
        appended: list[AppendedMessage] = []
        new: list[MessageDraft] = []
        for draft in drafts:
            before = None if draft.client_key is None else known.get(draft.client_key)
            if before is not None:
                is_same = (before.record.role, before.record.text) == (draft.role, draft.text)
                if not is_same and chosen_part(draft.client_key) is None:
                    raise ClientKeyReused(before.record.client_key or "")
                appended.append(AppendedMessage(before.record.key, before.record.seq or 0, is_new=False))
            elif (erased := self._erased(Scope(session.owner, limits=limits), draft)) is not None:
                appended.append(erased)
            elif draft.is_left_out:
                appended.append(AppendedMessage(id=0, seq=0, is_new=False, repetition=Repetition.LEFT_OUT))
            else:
                seq = first_seq + len(new)
                known[draft.client_key] = stored = self._append(session, draft, seq=seq, now_ms=now_ms)
                new.append(draft)
                appended.append(AppendedMessage(stored.record.key, seq, is_new=True))
        if new:
            self._count(session, new, now_ms=now_ms)
        return appended

    async def add_pins(self, session: Session, drafts: Sequence[PinDraft], *, limits: Limits = NO_LIMITS) -> int:
        scope = Scope(session.owner, session.agent, project=session.project, limits=limits)
        records, known = RecordsRead(self._state), set[str | None]()
        known |= {one.record.client_key for one in self._state.of_session(session, RecordType.PIN)}
        gone = await records.erased_texts(scope, RecordType.PIN, [draft.content for draft in drafts])
        moments: list[int] = []
        for draft in drafts:
            is_gone = draft.content in gone or await records.forgotten_values(scope, keys_of(draft.content))
            if not is_gone and (draft.client_key is None or draft.client_key not in known):
                self._add_pin(session, draft)
                known.add(draft.client_key)
                moments.append(draft.created_at)
        if moments:
            now = self._stored(session)
            pins, updated_at = now.pin_count + len(moments), max(now.updated_at, *moments)
            self._state.update_session(session.owner, session.id, pin_count=pins, updated_at=updated_at)
        return len(moments)

    async def add_summary(self, session: Session, draft: SummaryDraft) -> None:
        of_level = self._of_level(session, draft.level)
        next_seq = of_level[-1].content["end_seq"] + 1 if of_level else 1
        if draft.start_seq != next_seq:
            raise SummaryRangeConflict(
                f"the next summary of session {session.id!r} begins at its message {next_seq}, not {draft.start_seq}: "
                "summaries may not overlap or leave gaps; begin there"
            )
        for one in self._of_level(session, draft.level - 1):
            if draft.start_seq <= _start(one) <= draft.end_seq:
                self._state.put(replace(one, is_covered=True))
        content = {"text": draft.text, "importance_score": draft.importance}
        content |= {name: getattr(draft, name) for name in (*_PLACE, "method", "model_id")}
        self._add(session, RecordType.SUMMARY, draft, content, origin=draft.origin)
        now = self._stored(session)
        summarized = draft.end_seq if draft.level == 0 else now.summarized_seq
        changes = {"summary_count": now.summary_count + 1, "summarized_seq": summarized}
        self._state.update_session(session.owner, session.id, **changes)

    async def set_importance(self, session: Session, scores: Sequence[tuple[int, float]], *, now_ms: int) -> None:
        total, wanted = self._stored(session).importance_sum, dict(scores)
        for one in self._state.of_session(session, RecordType.MESSAGE):
            before = one.content["importance_score"]
            after = before if one.record.is_deleted else wanted.get(one.record.key, before)
            if after != before:
                version = one.record.revision + 1
                scored = one.with_content({"importance_score": after})
                made = StoredEdit(version, EditType.UPDATE, SYSTEM_EDITOR, now_ms, {"importance_score": before})
                self._state.put(replace(scored, record=replace(scored.record, revision=version)))
                self._state.add_edit(one.record.key, made)
                total += after - before
        self._state.update_session(session.owner, session.id, importance_sum=total)

    def _stored(self, session: Session) -> Session:
        return self._state.sessions[session.owner, session.id]

    def _erased(self, scope: Scope, draft: MessageDraft) -> AppendedMessage | None:
        """Where the draft was stored, if it is an erased message that comes again: one with the same text, and the same
        client_key or time."""
        found: AppendedMessage | None = None
        for one in tombstones(self._state, scope, RecordType.MESSAGE):
            is_same_key = draft.client_key is not None and draft.client_key == one.client_key
            if one.text == draft.text and (is_same_key or one.created_at == draft.created_at):
                found = AppendedMessage(id=one.key, seq=one.seq or 0, is_new=False, is_erased=True)
        return found

    def _append(self, session: Session, draft: MessageDraft, *, seq: int, now_ms: int) -> StoredRecord:
        content = {
            **(draft.details or {}),
            "text": draft.text,
            "importance_score": draft.importance,
            **{name: getattr(draft, name) for name in ("name", "model_id", "token_usage")},
        }
        origin = draft.origin or origin_of_role(draft.role)
        said = {"origin": origin, "client": draft.client, "role": draft.role, "seq": seq, "recorded_at": now_ms}
        return self._add(session, RecordType.MESSAGE, draft, content, **said)

    def _count(self, session: Session, new: Sequence[MessageDraft], *, now_ms: int) -> None:
        now, moments = self._stored(session), [draft.created_at for draft in new]
        models = [draft.model_id for draft in new if draft.model_id is not None]
        oldest, newest = now.oldest_message_at, now.newest_message_at
        self._state.update_session(
            session.owner,
            session.id,
            message_count=now.message_count + len(new),
            importance_sum=now.importance_sum + sum(draft.importance for draft in new),
            model=models[-1] if models else now.model,
            oldest_message_at=min(moments) if oldest is None else min(oldest, *moments),
            newest_message_at=max(moments) if newest is None else max(newest, *moments),
            updated_at=now_ms,
        )

    def _add_pin(self, session: Session, draft: PinDraft) -> None:
        content = {
            "text": draft.content,
            "importance_score": draft.importance,
            **{name: getattr(draft, name) for name in ("pin_type", "source_message_id", "kind")},
            "supersedes": list(draft.supersedes) or None,
            "scope": draft.reach,
        }
        self._add(session, RecordType.PIN, draft, content, origin=draft.origin, client=draft.client)

    def _add(
        self,
        session: Session,
        record_type: RecordType,
        draft: MessageDraft | PinDraft | SummaryDraft,
        content: dict[str, Any],
        **fields: Any,
    ) -> StoredRecord:
        """Add a record of the session."""
        key = self._state.next_key("records")
        project = None if content.get("scope") == Reach.PERSON else self._stored(session).project
        made: dict[str, Any] = {
            "id": message_record_id(key) if isinstance(draft, MessageDraft) else draft.id,
            "content": settled(record_type, content, session_id=session.id, project=project),
            "client": None,
            "recorded_at": draft.created_at,
            **fields,
        }
        record = MemoryRecord(
            key=key,
            type=record_type,
            agent_id=session.agent,
            session_id=session.id,
            created_at=draft.created_at,
            revision=1,
            client_key=draft.client_key,
            project=project,
            **made,
        )
        stored = StoredRecord(session.owner, record, draft.tokens, draft.indexed)
        self._state.put(stored)
        check_superseded(self._state, stored)
        return stored


def _is_hidden(stored: StoredRecord, include_internal: bool) -> bool:
    return stored.record.is_deleted or (stored.is_internal and not include_internal)


def _message(stored: StoredRecord, *, include_internal: bool = False) -> MessageWithImportance:
    record, content, is_hidden = stored.record, stored.content, _is_hidden(stored, include_internal)
    return MessageWithImportance(
        id=record.key,
        session_id=record.session_id or "",
        role=record.role or Role.USER,
        text="" if is_hidden else record.text,
        model_id=content.get("model_id"),
        token_usage=content.get("token_usage"),
        created_at=record.created_at,
        importance_score=content["importance_score"],
        seq=record.seq or 0,
        tokens=0 if is_hidden else stored.tokens,
        name=None if is_hidden else content.get("name"),
        client_key=record.client_key,
        origin=record.origin,
        is_hidden=is_hidden,
    )


def _pin(stored: StoredRecord) -> SemanticPin:
    record, content = stored.record, stored.content
    return SemanticPin(
        id=record.id,
        session_id=record.session_id,
        content=record.text,
        source_message_id=content.get("source_message_id"),
        importance_score=content["importance_score"],
        pin_type=PinType(content["pin_type"]),
        created_at=record.created_at,
        tokens=stored.tokens,
        origin=record.origin,
        reach=stored.reach or Reach.SESSION,
    )


def _summary(stored: StoredRecord, *, include_internal: bool = False) -> ConversationSummary:
    record, content = stored.record, stored.content
    return ConversationSummary(
        id=record.id,
        session_id=record.session_id or "",
        summary="" if _is_hidden(stored, include_internal) else record.text,
        message_count=content["end_seq"] - content["start_seq"] + 1,
        importance_score=content["importance_score"],
        created_at=record.created_at,
        tokens=stored.tokens,
        method=SummaryMethod(content["method"]),
        model_id=content.get("model_id"),
        origin=record.origin,
        **{name: content[name] for name in _PLACE},
    )


def _start(stored: StoredRecord) -> int:
    start: int = stored.content["start_seq"]
    return start
