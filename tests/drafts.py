"""Drafts as the services hand them to a store, with every field set."""

from kalito_mcp.domain.analysis import index_terms
from kalito_mcp.domain.records import PIN_IMPORTANCE, SUMMARY_IMPORTANCE, PinType, Role, SummaryMethod
from kalito_mcp.ports.records import MessageDraft, PinDraft, SummaryDraft
from tests.scripted import START_MS


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
        terms=index_terms(text, name),
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
        terms=index_terms(content),
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
        terms=index_terms(text),
    )
