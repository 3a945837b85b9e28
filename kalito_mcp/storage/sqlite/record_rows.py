"""Rows of the records table to typed views, and back. No SQL runs here."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kalito_mcp.domain.records import (
    ConversationSummary,
    MessageWithImportance,
    PinType,
    RecordType,
    Role,
    SemanticPin,
    SummaryMethod,
)
from kalito_mcp.domain.search import Candidate
from kalito_mcp.domain.sessions import Session
from kalito_mcp.domain.time import NEWEST_MS, OLDEST_MS
from kalito_mcp.ports.records import MessageDraft, PinDraft, SummaryDraft
from kalito_mcp.storage.sqlite.failures import intact_rows
from kalito_mcp.storage.sqlite.row_hash import row_hash

RECORD_COLUMNS: Final = """
    r.key, r.type, r.id, r.seq, r.end_seq, r.level, r.role, r.name, r.text, r.importance, r.tokens, r.created_at,
    r.client_key, r.attributes
"""
INSERT_RECORD: Final = """
INSERT INTO records (
    key, session_key, type, id, seq, end_seq, level, is_covered, role, name, text, importance, tokens, created_at,
    client_key, attributes, hash
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_ROLES: Final = {str(role): role for role in Role}

Row = Sequence[Any]


def message_row(key: int, session_key: int, seq: int, draft: MessageDraft) -> Row:
    """The parameters of INSERT_RECORD for a message."""
    attributes = None
    if draft.model_id is not None or draft.token_usage is not None:
        attributes = _packed({"model_id": draft.model_id, "token_usage": draft.token_usage})
    hashed = (session_key, "message", None, seq, None, None, draft.role.value, draft.name, draft.text)
    kept = (real(draft.importance), draft.created_at, draft.client_key, attributes)
    return (
        *(key, session_key, "message", None, seq, None, None, None),
        *(draft.role.value, draft.name, draft.text, real(draft.importance), draft.tokens, draft.created_at),
        *(draft.client_key, attributes, row_hash(*hashed, *kept)),
    )


def pin_row(key: int, session_key: int, draft: PinDraft) -> Row:
    """The parameters of INSERT_RECORD for a pin."""
    attributes = _packed({"pin_type": str(draft.pin_type), "source_message_id": draft.source_message_id})
    hashed = (session_key, "pin", draft.id, None, None, None, None, None, draft.content)
    kept = (real(draft.importance), draft.created_at, draft.client_key, attributes)
    return (
        *(key, session_key, "pin", draft.id, None, None, None, None, None, None),
        *(draft.content, real(draft.importance), draft.tokens, draft.created_at),
        *(draft.client_key, attributes, row_hash(*hashed, *kept)),
    )


def summary_row(key: int, session_key: int, draft: SummaryDraft) -> Row:
    """The parameters of INSERT_RECORD for a summary."""
    attributes = _packed(
        {
            "start_message_id": draft.start_message_id,
            "end_message_id": draft.end_message_id,
            "started_at": draft.started_at,
            "ended_at": draft.ended_at,
            "method": str(draft.method),
            "model_id": draft.model_id,
        }
    )
    place = (draft.id, draft.start_seq, draft.end_seq, draft.level)
    hashed = (session_key, "summary", *place, None, None, draft.text)
    kept = (real(draft.importance), draft.created_at, None, attributes)
    return (
        *(key, session_key, "summary", *place, 0, None, None),
        *(draft.text, real(draft.importance), draft.tokens, draft.created_at),
        *(None, attributes, row_hash(*hashed, *kept)),
    )


def messages(session_id: str, rows: Iterable[Row]) -> list[MessageWithImportance]:
    """Rows of RECORD_COLUMNS as messages."""
    with intact_rows():
        return [
            MessageWithImportance(
                id=row[0],
                session_id=session_id,
                role=_ROLES[row[6]],
                text=_text(row[8]),
                model_id=None if row[13] is None else json.loads(row[13]).get("model_id"),
                token_usage=None if row[13] is None else json.loads(row[13]).get("token_usage"),
                created_at=_moment(row[11]),
                importance_score=row[9],
                seq=row[3],
                tokens=row[10],
                name=row[7],
                client_key=row[12],
            )
            for row in rows
        ]


def pins(session: Session, rows: Iterable[Row]) -> list[SemanticPin]:
    """Rows of RECORD_COLUMNS as pins."""
    with intact_rows():
        return [
            SemanticPin(
                id=row[2],
                session_id=session.id,
                content=_text(row[8]),
                source_message_id=attributes.get("source_message_id"),
                importance_score=row[9],
                pin_type=PinType(attributes["pin_type"]),
                created_at=_moment(row[11]),
                tokens=row[10],
            )
            for row, attributes in ((row, json.loads(row[13])) for row in rows)
        ]


def summaries(session: Session, rows: Iterable[Row]) -> list[ConversationSummary]:
    """Rows of RECORD_COLUMNS as summaries."""
    with intact_rows():
        return [
            ConversationSummary(
                id=row[2],
                session_id=session.id,
                summary=_text(row[8]),
                message_count=row[4] - row[3] + 1,
                start_message_id=attributes["start_message_id"],
                end_message_id=attributes["end_message_id"],
                importance_score=row[9],
                created_at=_moment(row[11]),
                tokens=row[10],
                level=row[5],
                start_seq=row[3],
                end_seq=row[4],
                started_at=_moment(attributes["started_at"]),
                ended_at=_moment(attributes["ended_at"]),
                method=SummaryMethod(attributes["method"]),
                model_id=attributes.get("model_id"),
            )
            for row, attributes in ((row, json.loads(row[13])) for row in rows)
        ]


def candidate(row: Row, record_id: str) -> Candidate:
    """A row of SELECT_CANDIDATES."""
    with intact_rows():
        return Candidate(
            key=row[0],
            record_id=record_id,
            type=RecordType(row[1]),
            session_id=row[3],
            role=None if row[4] is None else _ROLES[row[4]],
            name=row[5],
            text=_text(row[6]),
            created_at=_moment(row[7]),
            seq=row[8],
            client_key=row[9],
        )


def real(value: float) -> float:
    """The number as it comes back: SQLite keeps no -0.0, and the hash is of what is read again."""
    return float(value) + 0.0


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _moment(value: Any) -> int:
    if not OLDEST_MS <= value <= NEWEST_MS:
        raise ValueError
    return int(value)


def _packed(attributes: Mapping[str, Any]) -> str:
    kept = {name: value for name, value in attributes.items() if value is not None}
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":"))
