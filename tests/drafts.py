"""Drafts as the services pass them to a store, with every field set."""

from collections.abc import Mapping
from typing import Any, Final

from kalito_mcp.domain.kinds import Kind
from kalito_mcp.domain.memory_records import (
    EditDraft,
    Editor,
    EditorType,
    EditType,
    MemoryRecord,
    RecordDraft,
    with_changes,
)
from kalito_mcp.domain.records import (
    PIN_IMPORTANCE,
    SUMMARY_IMPORTANCE,
    Origin,
    PinType,
    Reach,
    RecordType,
    Role,
    SummaryMethod,
)
from kalito_mcp.ports.conversations import MessageDraft, PinDraft, SummaryDraft
from kalito_mcp.text.analysis import index_text
from tests.scripted import START_MS

ANN: Final = Editor(EditorType.HUMAN, "ann")


def message(
    text: str,
    *,
    role: Role = Role.USER,
    name: str | None = None,
    created_at: int = START_MS,
    importance: float = 0.5,
    model_id: str | None = None,
    token_usage: int | None = None,
    client_key: str | None = None,
    origin: Origin | None = None,
    client: str | None = None,
    details: Mapping[str, Any] | None = None,
) -> MessageDraft:
    return MessageDraft(
        role=role,
        text=text,
        name=name,
        created_at=created_at,
        importance=importance,
        tokens=len(text),
        model_id=model_id,
        token_usage=token_usage,
        client_key=client_key,
        indexed=index_text(text, name),
        origin=origin,
        client=client,
        details=details,
    )


def pin(
    content: str,
    *,
    record_id: str | None = None,
    source_message_id: str | None = None,
    importance: float = PIN_IMPORTANCE,
    pin_type: PinType = PinType.MANUAL,
    created_at: int = START_MS,
    client_key: str | None = None,
    origin: Origin = Origin.ASSISTANT,
    client: str | None = None,
    reach: Reach = Reach.SESSION,
    kind: Kind | None = None,
    supersedes: tuple[str, ...] = (),
) -> PinDraft:
    return PinDraft(
        id=record_id or f"pin_{content}",
        content=content,
        source_message_id=source_message_id,
        importance=importance,
        tokens=len(content),
        pin_type=pin_type,
        created_at=created_at,
        client_key=client_key,
        indexed=index_text(content),
        origin=origin,
        client=client,
        reach=reach,
        kind=kind,
        supersedes=supersedes,
    )


def summary(
    start_seq: int,
    end_seq: int,
    *,
    level: int = 0,
    text: str = "What was said.",
    record_id: str | None = None,
    created_at: int = START_MS,
    model_id: str | None = None,
) -> SummaryDraft:
    return SummaryDraft(
        id=record_id or f"summary_{level}_{start_seq}_{end_seq}",
        text=text,
        level=level,
        start_seq=start_seq,
        end_seq=end_seq,
        start_message_id=f"msg_{start_seq}",
        end_message_id=f"msg_{end_seq}",
        started_at=created_at,
        ended_at=created_at,
        importance=SUMMARY_IMPORTANCE,
        tokens=len(text),
        method=SummaryMethod.MODEL if model_id else SummaryMethod.EXTRACTIVE,
        model_id=model_id,
        created_at=created_at,
        indexed=index_text(text),
    )


def record(
    record_type: RecordType,
    text: str,
    *,
    record_id: str | None = None,
    origin: Origin = Origin.ASSISTANT,
    client: str | None = None,
    created_at: int = START_MS,
    client_key: str | None = None,
    **fields: Any,
) -> RecordDraft:
    """A thought, document or task with these fields of content."""
    return RecordDraft(
        id=record_id or f"{record_type}_{text}",
        type=record_type,
        content={"text": text, "importance_score": 0.5, **fields},
        origin=origin,
        client=client,
        created_at=created_at,
        tokens=len(text),
        client_key=client_key,
    )


def edit(
    before: MemoryRecord,
    changes: Mapping[str, Any],
    *,
    edit_type: EditType = EditType.UPDATE,
    editor: Editor = ANN,
    edited_at: int = START_MS + 1,
) -> EditDraft:
    """The record's content with these fields replaced. None removes a field."""
    content = with_changes(before.content, changes)
    return EditDraft(
        type=edit_type,
        editor=editor,
        edited_at=edited_at,
        content=content,
        tokens=len(content["text"]),
    )
