"""Endpoints of records: read, create, edit, forget, bring back, and their history."""

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field

from kalito_mcp.domain.access import Permission
from kalito_mcp.domain.memory_records import MemoryRecord
from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.time import last_moment
from kalito_mcp.errors import InvalidInput
from kalito_mcp.shapes import KnownAlready, OriginName, Output, Redacted
from kalito_mcp.web.rest.cursors import cursor_of, place_in
from kalito_mcp.web.rest.endpoint import REST, Call, Endpoint, InProject, Input, Nothing, Reply, place_of
from kalito_mcp.web.rest.shapes import (
    AgentName,
    CursorText,
    NextCursor,
    PageSize,
    RecordBody,
    SessionName,
    fields_schema,
    record_body,
)

_LISTED: Final = frozenset(RecordType) - {RecordType.MESSAGE}
RecordName = Annotated[str, Field(min_length=1, max_length=200)]
ListedType = Literal["thought", "document", "task", "pin", "summary"]
Version = Annotated[int, Field(ge=1, le=1_000_000_000)]


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


class Moment(InProject):
    """Which version of a record to read."""

    version: Annotated[Version | None, Field(description="As it was in this version.")] = None
    as_of: Annotated[
        str | None, Field(description="As it was then: ISO 8601. A date means its end.", min_length=1, max_length=40)
    ] = None


class Remember(Input):
    """A record to keep. `fields` are those of its type; a document needs its `source`."""

    type: Literal["note", "task", "document", "thought"]
    text: Annotated[str, Field(min_length=1, pattern=r"\S")]
    fields: Annotated[
        dict[str, Any],
        Field(
            default_factory=dict,
            json_schema_extra=fields_schema(RecordType.DOCUMENT, RecordType.TASK, RecordType.THOUGHT),
        ),
    ]
    session_id: SessionName | None = None
    agent_id: AgentName = None
    confirmed: Annotated[
        bool, Field(description="The user has confirmed a note with the words of a tool or a document.")
    ] = False


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

    model_config = ConfigDict(extra="allow", frozen=True, json_schema_extra={"minProperties": 1})


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
    """A page of pins."""
    return await _page(call, call.query, frozenset({RecordType.PIN}))


async def read_record(call: Call[Nothing, Moment]) -> Reply:
    """One record, as it is or was."""
    query, name, memory = call.query, call.path["record_id"], call.memory
    if query.version is not None and query.as_of is not None:
        raise InvalidInput("send version or as_of, not both")
    if query.version is not None:
        return Reply(record_body(await memory.records.version(name, query.version)))
    if query.as_of is not None:
        moment = last_moment(query.as_of, "as_of", memory.zone)
        return Reply(record_body(await memory.records.as_of(name, moment)))
    record = await memory.records.get(name)
    return Reply(record_body(record), revision=record.revision)


async def read_parts(call: Call[Nothing, InProject]) -> Reply:
    """All parts of a document."""
    found = await call.memory.records.get_all(call.path["record_id"])
    return Reply(RecordPage(records=[record_body(one) for one in found]))


async def remember(call: Call[Remember, InProject]) -> Reply:
    """Store a note, a task, a document or a thought."""
    body = call.body
    if "text" in body.fields or "type" in body.fields:
        raise InvalidInput("leave text and type out of fields; they are sent next to it")
    memory = call.memory if body.session_id is None else await call.memory_of(body.session_id)
    kept = await memory.remember(
        body.type,
        {"text": body.text, **body.fields},
        session_id=body.session_id,
        agent_id=body.agent_id,
        editor=REST,
        client_key=call.request_key,
        is_confirmed=body.confirmed,
    )
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
    record = await call.memory.update_memory(
        call.path["record_id"], changes, expected_revision=call.expected_revision, editor=REST
    )
    return await _reply_with_record(call, record)


async def forget_record(call: Call[Nothing, InProject]) -> Reply:
    """Hide a record, or all parts of a document."""
    forgotten = await call.memory.forget(call.path["record_id"], editor=REST, expected_revision=call.expected_revision)
    return await reply_with_changes(call, forgotten)


async def restore_record(call: Call[Nothing, InProject]) -> Reply:
    """Bring back what is forgotten."""
    restored = await call.memory.restore(call.path["record_id"], editor=REST, expected_revision=call.expected_revision)
    return await reply_with_changes(call, restored)


async def revert_record(call: Call[Revert, InProject]) -> Reply:
    """Go back to an earlier version, as a new one."""
    record = await call.memory.records.revert(
        call.path["record_id"], call.body.version, editor=REST, expected_revision=call.expected_revision
    )
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


async def _page(call: Call[Nothing, Any], request: Records | Pins, types: frozenset[RecordType]) -> Reply:
    after = None if request.cursor is None else place_in(call, request, request.cursor, str)[0]
    found = await call.memory.records.page(
        types, agent_id=request.agent_id, session_id=request.session_id, after=after, limit=request.limit + 1
    )
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
    Endpoint(
        "GET", "/records", Permission.READ, "Thoughts, documents, tasks, pins and summaries, newest first",
        list_records, RecordPage, Nothing, Records, tag="records",
    ),
    Endpoint(
        "POST", "/records", Permission.WRITE, "Keep a note, a task, a document or a thought", remember, Remembered,
        Remember, InProject, status=201, tag="records", takes_key=True,
    ),
    Endpoint(
        "GET", "/records/{record_id}", Permission.READ, "One record, as it is or as it was", read_record, RecordBody,
        Nothing, Moment, tag="records",
    ),
    Endpoint(
        "PATCH", "/records/{record_id}", Permission.WRITE, "Change fields of a record", edit_record, EditedRecord,
        Changes, InProject, tag="records", needs_match=True,
    ),
    Endpoint(
        "DELETE", "/records/{record_id}", Permission.WRITE, "Forget a record: it can be restored", forget_record,
        Changed, Nothing, InProject, tag="records", needs_match=True,
    ),
    Endpoint(
        "GET", "/records/{record_id}/parts", Permission.READ, "All parts of a document", read_parts, RecordPage,
        Nothing, InProject, tag="records",
    ),
    Endpoint(
        "POST", "/records/{record_id}/restore", Permission.WRITE, "Bring back a forgotten record", restore_record,
        Changed, Nothing, InProject, tag="records", is_idempotent=True,
    ),
    Endpoint(
        "POST", "/records/{record_id}/revert", Permission.WRITE, "Go back to an earlier version", revert_record,
        EditedRecord, Revert, InProject, tag="records", is_idempotent=True,
    ),
    Endpoint(
        "GET", "/records/{record_id}/history", Permission.READ, "Who changed what, and when", read_history, History,
        Nothing, InProject, tag="records",
    ),
    Endpoint(
        "GET", "/records/{record_id}/diff", Permission.READ, "The differences between two versions", compare_versions,
        Differences, Nothing, Diff, tag="records",
    ),
    Endpoint(
        "GET", "/pins", Permission.READ, "Pins, newest first", list_pins, RecordPage, Nothing, Pins, tag="records",
    ),
)  # fmt: skip
