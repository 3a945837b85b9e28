"""Converts rows of the records table to messages, pins, summaries and candidates, and back. Runs no SQL."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kalito_mcp.domain.memory_records import SYSTEM_EDITOR, EditType
from kalito_mcp.domain.records import (
    ConversationSummary,
    MessageWithImportance,
    Origin,
    PinType,
    Reach,
    RecordType,
    Role,
    SemanticPin,
    SessionView,
    SummaryMethod,
    Visibility,
    message_record_id,
    origin_of_role,
)
from kalito_mcp.domain.search import Candidate
from kalito_mcp.domain.sessions import Session
from kalito_mcp.domain.time import NEWEST_MS, OLDEST_MS
from kalito_mcp.ports.conversations import MessageDraft, PinDraft, SummaryDraft
from kalito_mcp.storage.intact_rows import intact_rows
from kalito_mcp.storage.record_fields import origin_of, packed, packed_list, stored_origin, stored_reach
from kalito_mcp.storage.record_rows import StoredRow, edit_row, hashed, stored
from kalito_mcp.storage.row_hash import UNCHANGED, real, record_hash

RECORD_COLUMNS: Final = """
    r.key, r.type, r.id, r.seq, r.end_seq, r.level, r.role, r.name, r.text, r.importance, r.tokens, r.created_at,
    r.client_key, r.attributes, r.origin, r.deleted_at IS NOT NULL, r.is_internal,
    r.reach
"""
_TYPES: Final = {str(of_type): of_type for of_type in RecordType}
_ROLES: Final = {str(role): role for role in Role}
_ORIGINS: Final = {str(origin): origin for origin in Origin}
_ORIGINS_OF_ROLES: Final = {str(role): origin_of_role(role) for role in Role}
_COLUMN_DETAILS: Final = frozenset({"tags", "visibility", "critical"})

Row = Sequence[Any]


def message_row(session_key: int, seq: int, draft: MessageDraft, *, now_ms: int) -> Row:
    """The columns of a message, for `placed`."""
    attributes, is_internal, is_critical, tags = None, 0, 0, None
    if draft.model_id is not None or draft.token_usage is not None or draft.details:
        kept = {"model_id": draft.model_id, "token_usage": draft.token_usage}
        if draft.details:
            kept |= {name: value for name, value in draft.details.items() if name not in _COLUMN_DETAILS}
            is_internal = int(draft.details.get("visibility") == Visibility.INTERNAL)
            is_critical = int(bool(draft.details.get("critical")))
            tags = packed_list(draft.details.get("tags"))
        attributes = packed(kept) if any(value is not None for value in kept.values()) else None
    role = draft.role.value
    origin = None if draft.origin is None or draft.origin is _ORIGINS_OF_ROLES[role] else draft.origin.value
    recorded_at = None if draft.created_at == now_ms else now_ms
    importance = real(draft.importance)
    said = (session_key, "message", None, seq, None, None, role, draft.name, draft.text, importance)
    hashed = (*said, draft.created_at, draft.client_key, attributes, recorded_at, draft.client, origin)
    return (
        *(session_key, "message", None, seq, None, None, None),
        *(role, draft.name, draft.text, importance, draft.tokens, draft.created_at, draft.client_key, attributes),
        record_hash((*hashed, is_internal, is_critical, tags)),
        *(origin, draft.client, recorded_at, is_internal, is_critical, tags, None, None, None, None),
    )


def pin_row(session_key: int, draft: PinDraft, *, has_project: bool) -> Row:
    """The columns of a pin, for `placed`. `has_project` says whether its session is of one."""
    reach = stored_reach(draft.reach, has_project=has_project)
    attributes = packed(
        {
            "pin_type": str(draft.pin_type),
            "source_message_id": draft.source_message_id,
            **({} if draft.kind is None else {"kind": str(draft.kind)}),
            **({"supersedes": list(draft.supersedes)} if draft.supersedes else {}),
        }
    )
    hashed = (session_key, "pin", draft.id, None, None, None, None, None, draft.content)
    kept = (real(draft.importance), draft.created_at, draft.client_key, attributes)
    return (
        *(session_key, "pin", draft.id, None, None, None, None, None, None),
        *(draft.content, real(draft.importance), draft.tokens, draft.created_at, draft.client_key, attributes),
        *_hash_and_origin((*hashed, *kept), draft.origin, draft.client, reach),
    )


def summary_row(session_key: int, draft: SummaryDraft) -> Row:
    """The columns of a summary, for `placed`."""
    attributes = packed(
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
    kept = (real(draft.importance), draft.created_at, draft.client_key, attributes)
    return (
        *(session_key, "summary", *place, 0, None, None),
        *(draft.text, real(draft.importance), draft.tokens, draft.created_at, draft.client_key, attributes),
        *_hash_and_origin((*hashed, *kept), draft.origin, None),
    )


def placed(rows: Iterable[Row], keys: Iterable[int], agent_key: int, project_key: int | None) -> list[Row]:
    """The parameters of INSERT_RECORD for rows of a session of this agent and project. What reaches the person has no
    project."""
    return [
        (key, agent_key, *row[:-1], None if row[-1] == Reach.PERSON else project_key, row[-1])
        for key, row in zip(keys, rows, strict=True)
    ]


def message_counters(drafts: Sequence[MessageDraft]) -> dict[str, Any]:
    """What messages add to the counters of their session, by parameter."""
    models = [draft.model_id for draft in drafts if draft.model_id is not None]
    moments = [draft.created_at for draft in drafts]
    return {
        "importance": sum(draft.importance for draft in drafts),
        "model": models[-1] if models else None,
        "oldest": min(moments),
        "newest": max(moments),
    }


def rescored(
    found: Iterable[Row], scores: Mapping[int, float], now_ms: int
) -> tuple[list[StoredRow], list[StoredRow], float]:
    """The rows whose score is another one, with the new score, their edits, and the change of the sum of scores."""
    scored: list[StoredRow] = []
    edits: list[StoredRow] = []
    change = 0.0
    for before in map(stored, found):
        importance = real(scores[before["key"]])
        if importance == before["importance"]:
            continue
        version = before["revision"] + 1
        changes = {"importance_score": before["importance"]}
        edits.append(edit_row(before["key"], version, EditType.UPDATE, SYSTEM_EDITOR, now_ms, changes))
        scored.append(hashed({**before, "importance": importance, "revision": version}))
        change += importance - before["importance"]
    return scored, edits, change


def session_view(session: Session, found: Sequence[Row], *, include_internal: bool) -> SessionView:
    """The view of a session from its messages, newest first, its pins and its summaries, both in order."""
    by_type: dict[str, list[Row]] = {}
    for row in found:
        by_type.setdefault(row[1], []).append(row)
    newest = by_type.get(RecordType.MESSAGE, [])
    written = by_type.get(RecordType.SUMMARY, [])
    return SessionView(
        tail=tuple(messages(session.id, reversed(newest), include_internal=include_internal)),
        pins=tuple(pins(session, by_type.get(RecordType.PIN, []))),
        summaries=tuple(summaries(session, written, include_internal=include_internal)),
    )


def messages(session_id: str, rows: Iterable[Row], *, include_internal: bool = False) -> list[MessageWithImportance]:
    """Rows of RECORD_COLUMNS as messages. Hidden ones have no text."""
    with intact_rows():
        return [_message(session_id, row, is_hidden=row[15] or (row[16] and not include_internal)) for row in rows]


def _message(session_id: str, row: Row, *, is_hidden: bool) -> MessageWithImportance:
    attributes = {} if row[13] is None else json.loads(row[13])
    return MessageWithImportance(
        id=row[0],
        session_id=session_id,
        role=_ROLES[row[6]],
        text="" if is_hidden else _text(row[8]),
        model_id=attributes.get("model_id"),
        token_usage=attributes.get("token_usage"),
        created_at=_moment(row[11]),
        importance_score=row[9],
        seq=row[3],
        tokens=0 if is_hidden else row[10],
        name=None if is_hidden else row[7],
        client_key=row[12],
        origin=_ORIGINS_OF_ROLES[row[6]] if row[14] is None else _ORIGINS[row[14]],
        is_hidden=bool(is_hidden),
    )


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
                origin=_ORIGINS[row[14] or "assistant"],
                reach=Reach.SESSION if row[17] is None else Reach(row[17]),
            )
            for row, attributes in ((row, json.loads(row[13])) for row in rows)
        ]


def summaries(session: Session, rows: Iterable[Row], *, include_internal: bool = False) -> list[ConversationSummary]:
    """Rows of RECORD_COLUMNS as summaries. Hidden ones have no text."""
    with intact_rows():
        return [
            ConversationSummary(
                id=row[2],
                session_id=session.id,
                summary="" if row[15] or (row[16] and not include_internal) else _text(row[8]),
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
                origin=_ORIGINS[row[14] or "assistant"],
            )
            for row, attributes in ((row, json.loads(row[13])) for row in rows)
        ]


def candidates(rows: Iterable[Row]) -> dict[int, Candidate]:
    """Rows of SELECT_CANDIDATES as candidates, by key."""
    with intact_rows():
        return {row[0]: _candidate(row) for row in rows}


def _candidate(row: Row) -> Candidate:
    task = {} if row[16] is None else json.loads(row[16])
    return Candidate(
        record_id=row[2] or message_record_id(row[0]),
        type=_TYPES[row[1]],
        session_id=row[3],
        role=None if row[4] is None else _ROLES[row[4]],
        name=row[5],
        text=_text(row[6]),
        created_at=_moment(row[7]),
        seq=row[8],
        client_key=row[9],
        origin=origin_of(row[4], row[10]),
        importance=row[11],
        is_critical=bool(row[12]),
        usage_count=row[13] or 0,
        last_used=row[14],
        revision=row[15],
        status=task.get("status"),
        due_date=task.get("due_date"),
        project=row[17],
    )


def _hash_and_origin(hashed: Sequence[Any], origin: Origin, client: str | None, reach: str | None = None) -> Row:
    """The end of a row that sets only origin, client and reach of the columns of the third schema and later ones."""
    kept = stored_origin(None, origin)
    return (
        record_hash((*hashed, None, client, kept, *UNCHANGED[3:-1], reach)),
        *(kept, client, None, 0, 0, None, None, None, None, reach),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _moment(value: Any) -> int:
    if not OLDEST_MS <= value <= NEWEST_MS:
        raise ValueError
    return int(value)
