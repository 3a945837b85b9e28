"""Endpoints of records: read, create, edit, forget, bring back, and their history."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field

from kalito_mcp.domain.memory_records import MemoryRecord
from kalito_mcp.domain.records import RecordType
from kalito_mcp.errors import InvalidInput
from kalito_mcp.memory.verbs import forgetting
from kalito_mcp.memory.verbs import records as verbs
from kalito_mcp.memory.verbs.json_schemas import fields_given
from kalito_mcp.memory.verbs.shapes import (
    AgentName,
    Input,
    KnownAlready,
    OriginName,
    Output,
    Redacted,
    SessionName,
    Version,
)
from kalito_mcp.web.rest.cursors import cursor_of, place_in
from kalito_mcp.web.rest.endpoint import Call, InProject, Nothing, Reply, place_of, reads, serves
from kalito_mcp.web.rest.shapes import CursorText, NextCursor, PageSize, RecordBody, record_body

_LISTED: Final = frozenset(RecordType) - {RecordType.MESSAGE}
ListedType = Literal["thought", "document", "task", "pin", "summary"]


class Records(InProject):
    """Which records to list."""

    type: Annotated[list[ListedType], Field(default_factory=list, description="Only these types.", max_length=5)]
    session_id: SessionName | None = None
    agent_id: AgentName = None
    limit: PageSize = 50
    cursor: CursorText = None


class RecordPage(Output):
    """Records that are not forgotten, newest first. Messages are listed by their conversation."""

    records: list[RecordBody]
    next_cursor: NextCursor = None


class Pins(InProject):
    """Which pins to list."""

    session_id: SessionName | None = None
    agent_id: AgentName = None
    limit: PageSize = 50
    cursor: CursorText = None


class Moment(verbs.AsItWas, InProject):
    """Which version of a record to read."""


class Remembered(Output):
    """What was stored. A document has a record for each of its parts; `id` names all of them."""

    type: Literal["note", "task", "document", "thought"]
    id: str
    project: str | None = None
    record_ids: list[str]
    revision: int
    known_already: KnownAlready = None
    origin: OriginName
    redacted: Redacted = None


class Changes(Input):
    """New values of fields by name, such as text, status or tags. null removes a field."""

    model_config = ConfigDict(
        extra="allow",
        frozen=True,
        json_schema_extra={"minProperties": 1, **fields_given(*RecordType, removes_by_null=True)},
    )


class StillSaying(Output):
    """A pin in somebody's own words, made from a record that was changed."""

    record_id: str
    made_from: str
    text: str


class Changed(Output):
    """Which records changed, and what was made from them: summaries that changed with them, and pins that still say the
    same. `revision` is that of the first."""

    record_ids: list[str]
    revision: int
    rewritten: list[str]
    still_says: list[StillSaying]


class EditedRecord(RecordBody):
    """The record as it is now, with the summaries that changed with it and the pins that still say the same."""

    rewritten: list[str]
    still_says: list[StillSaying]


class Revert(Input):
    """Which version to go back to."""

    version: Version


class Edit(Output):
    """One edit of a record."""

    id: str
    type: str
    timestamp: str
    original_memory_id: str
    original_type: str
    original_timestamp: str
    edit_type: Literal["create", "update", "delete", "restore", "revert"]
    editor_type: Literal["human", "agent", "system"]
    editor_id: str | None = None
    diff_summary: str | None = None
    version: int
    current: bool
    previous_version_id: str | None = None


class History(Output):
    """Every edit of a record, oldest first."""

    record_id: str
    edits: list[Edit]


class Diff(InProject):
    """Which versions to compare."""

    old: Version
    new: Version


class Differences(Output):
    """What differs between two versions, a line each."""

    lines: list[str]


async def list_records(call: Call[Nothing, Records]) -> Reply:
    """A page of records."""
    types = frozenset(map(RecordType, call.query.type)) or _LISTED
    return await _page(call, call.query, types)


async def list_pins(call: Call[Nothing, Pins]) -> Reply:
    """A page of pins: also of those without a conversation, which are notes."""
    return await _page(call, call.query, frozenset({RecordType.PIN, RecordType.DOCUMENT}), only=lambda one: one.is_pin)


async def read_record(call: Call[Nothing, Moment]) -> Reply:
    """One record, as it is or was."""
    query = call.query
    sent = verbs.ReadRecord.model_construct(record_id=call.path["record_id"], as_of=query.as_of, version=query.version)
    record = await verbs.read_record(await call.caller(), sent)
    return Reply(record_body(record), revision=None if sent.is_of_the_past else record.revision)


async def read_parts(call: Call[Nothing, InProject]) -> Reply:
    """All parts of a document."""
    found = await call.memory.records.get_all(call.path["record_id"])
    return Reply(RecordPage(records=[record_body(one) for one in found]))


async def remember(call: Call[verbs.Remember, InProject]) -> Reply:
    """Store a note, a task, a document or a thought."""
    body = call.body
    kept = await verbs.remember(await call.caller(body.session_id), body)
    name = str(kept[0].content.get("document_id", kept[0].id))
    found = Remembered(
        type=body.type,
        id=name,
        project=kept[0].project,
        record_ids=[one.id for one in kept],
        revision=kept[0].revision,
        known_already=kept[0].is_known or None,
        origin=kept[0].origin.value,
        redacted=list(kept[0].redacted) or None,
    )
    return Reply(found, location=place_of("/records", name))


async def edit_record(call: Call[Changes, InProject]) -> Reply:
    """Change fields of a record."""
    changes = dict(call.body.model_extra or {})
    if not changes:
        raise InvalidInput("the body names no field; send new values by field, such as text")
    assert call.expected_revision is not None  # noqa: S101 - the endpoint needs it
    sent = verbs.UpdateMemory.model_construct(
        record_id=call.path["record_id"], changes=changes, expected_revision=call.expected_revision
    )
    return await _reply_with_record(call, await verbs.update_memory(await call.caller(), sent))


async def forget_record(call: Call[Nothing, InProject]) -> Reply:
    """Hide a record, or all parts of a document."""
    sent = forgetting.NamedRecords.model_construct(record_ids=[call.path["record_id"]])
    return await reply_with_changes(call, await forgetting.forget(await call.caller(), sent))


async def restore_record(call: Call[Nothing, InProject]) -> Reply:
    """Bring back what is forgotten."""
    sent = verbs.Restore.model_construct(record_id=call.path["record_id"])
    return await reply_with_changes(call, (await verbs.restore(await call.caller(), sent)).records)


async def revert_record(call: Call[Revert, InProject]) -> Reply:
    """Go back to an earlier version, as a new one."""
    sent = verbs.Restore.model_construct(record_id=call.path["record_id"], version=call.body.version)
    [record] = (await verbs.restore(await call.caller(), sent)).records
    return await _reply_with_record(call, record)


async def read_history(call: Call[Nothing, InProject]) -> Reply:
    """Every edit of a record."""
    name = call.path["record_id"]
    return Reply(History(record_id=name, edits=[Edit(**one) for one in await call.memory.records.history(name)]))


async def compare_versions(call: Call[Nothing, Diff]) -> Reply:
    """The differences between two versions."""
    return Reply(
        Differences(lines=await call.memory.records.diff(call.path["record_id"], call.query.old, call.query.new))
    )


async def _page(
    call: Call[Nothing, Any],
    request: Records | Pins,
    types: frozenset[RecordType],
    only: Callable[[MemoryRecord], bool] = lambda _: True,
) -> Reply:
    after = None if request.cursor is None else place_in(call, request, request.cursor, str)[0]
    found: list[MemoryRecord] = []
    while len(found) <= request.limit:
        read = await call.memory.records.page(
            types, agent_id=request.agent_id, session_id=request.session_id, after=after, limit=request.limit + 1
        )
        found += filter(only, read)
        if len(read) <= request.limit:
            break
        after = read[-1].id
    page = found[: request.limit]
    following = cursor_of(call, request, page[-1].id) if len(found) > len(page) else None
    return Reply(RecordPage(records=[record_body(one) for one in page], next_cursor=following))


async def reply_with_changes(call: Call[Any, Any], records: Sequence[MemoryRecord]) -> Reply:
    """Which records changed, and what was made from them."""
    rewritten, pins = await _made_from(call, records)
    found = Changed(
        record_ids=[one.id for one in records],
        revision=records[0].revision,
        rewritten=rewritten,
        still_says=pins,
    )
    return Reply(found, revision=records[0].revision)


async def _reply_with_record(call: Call[Any, Any], record: MemoryRecord) -> Reply:
    rewritten, pins = await _made_from(call, [record])
    found = EditedRecord(**record_body(record).model_dump(), rewritten=rewritten, still_says=pins)
    return Reply(found, revision=record.revision)


async def _made_from(call: Call[Any, Any], records: Sequence[MemoryRecord]) -> tuple[list[str], list[StillSaying]]:
    """The summaries that were rewritten with these records, and the pins that were not."""
    found = await call.memory.records.derived_from_all(records)
    pins = [StillSaying(record_id=pin.id, made_from=source, text=pin.text) for pin, source in found.pins]
    return list(found.summary_ids), pins


RECORDS: Final = (
    reads(
        "/records", "Thoughts, documents, tasks, pins and summaries, newest first", list_records, RecordPage, Records,
        tag="records",
    ),
    serves(verbs.REMEMBER, "POST", "/records", remember, Remembered, status=201, tag="records", takes_key=True),
    serves(
        verbs.READ, "GET", "/records/{record_id}", read_record, RecordBody, body=Nothing, query=Moment, tag="records",
    ),
    serves(
        verbs.UPDATE, "PATCH", "/records/{record_id}", edit_record, EditedRecord, body=Changes, tag="records",
        needs_match=True,
    ),
    serves(
        forgetting.FORGET, "DELETE", "/records/{record_id}", forget_record, Changed, body=Nothing, tag="records",
        needs_match=True,
    ),
    reads("/records/{record_id}/parts", "All parts of a document", read_parts, RecordPage, tag="records"),
    serves(
        verbs.RESTORE, "POST", "/records/{record_id}/restore", restore_record, Changed, body=Nothing, tag="records",
        is_idempotent=True,
    ),
    serves(
        verbs.RESTORE, "POST", "/records/{record_id}/revert", revert_record, EditedRecord,
        summary="Go back to an earlier version", body=Revert, tag="records", is_idempotent=True,
    ),
    reads("/records/{record_id}/history", "Who changed what, and when", read_history, History, tag="records"),
    reads(
        "/records/{record_id}/diff", "The differences between two versions", compare_versions, Differences, Diff,
        tag="records",
    ),
    reads("/pins", "Pins, newest first", list_pins, RecordPage, Pins, tag="records"),
)  # fmt: skip
