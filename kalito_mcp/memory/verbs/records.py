"""Single records: pinning, keeping, correcting, forgetting and bringing them back, and their history."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from kalito_mcp.domain.access import Permission
from kalito_mcp.domain.memory_records import MemoryRecord
from kalito_mcp.domain.records import CreatePinRequest, MessageWithImportance, PinType, RecordType, SemanticPin
from kalito_mcp.domain.spaces import SharedCopy
from kalito_mcp.domain.zone import Zone
from kalito_mcp.errors import InvalidInput
from kalito_mcp.memory.verbs.json_schemas import fields_given
from kalito_mcp.memory.verbs.shapes import (
    AgentName,
    Confirmed,
    Input,
    MessageName,
    MomentText,
    PinTypeName,
    ReachName,
    RecordId,
    Repeatable,
    SessionName,
    Text,
    Version,
)
from kalito_mcp.memory.verbs.verb import Caller, Verb
from kalito_mcp.text.times.expressions import moment_in_words


class CreatePin(Repeatable):
    """A fact to pin. Without a session it is known in its project, or to the person."""

    content: Annotated[Text, Field(description="The fact, in one sentence that makes sense on its own.")]
    session_id: SessionName | None = None
    source_message_id: MessageName | None = None
    importance_score: Annotated[float | None, Field(description="0 to 1; default: 0.8.")] = None
    pin_type: Annotated[PinTypeName, Field(description="`manual` when the user asked for it.")] = "manual"
    scope: Annotated[
        ReachName | None,
        Field(
            description="Which contexts show it: `person` all, for what is about the user; `project` those of the "
            "project. Default: by what it says. Both need no session_id."
        ),
    ] = None
    replaces: Annotated[
        list[str] | None,
        Field(description="What no longer holds because of it: ids, or words as they were stored.", max_length=20),
    ] = None
    space: Annotated[str | None, Field(description="Also share it in this space.", min_length=1, max_length=60)] = None
    confirmed: Confirmed = False


class Remember(Input):
    """A record to keep. `fields` are those of its type; a document needs its `source`."""

    type: Annotated[
        Literal["note", "task", "document", "thought"],
        Field(description="`thought`: your own reflection, left out of contexts unless asked for."),
    ]
    text: Annotated[Text, Field(description="What to remember.")]
    fields: Annotated[
        dict[str, Any] | None,
        Field(
            description="importance_score, tags, critical, caused_by, supersedes; of a task: status, priority, "
            "due_date, assigned_to; of a document: source (required), title, content_type, file_type; of a "
            "thought: message_type (reflection, planning), related_to.",
            json_schema_extra=fields_given(RecordType.DOCUMENT, RecordType.TASK, RecordType.THOUGHT),
        ),
    ] = None
    session_id: Annotated[SessionName | None, Field(description="Only if it belongs to one conversation.")] = None
    agent_id: AgentName = None
    confirmed: Confirmed = False


class UpdateMemory(Input):
    """Which fields of a record to change."""

    record_id: RecordId
    changes: Annotated[
        dict[str, Any],
        Field(
            description="New values of fields such as text, status, tags; null removes one.",
            json_schema_extra=fields_given(*RecordType, removes_by_null=True),
        ),
    ]
    expected_revision: Annotated[
        Version, Field(description="The revision you have seen: 1 unless it was edited; memory_history shows it.")
    ]


class Restore(Input):
    """What to bring back, or to which version to go back."""

    record_id: RecordId
    version: Annotated[
        Version | None, Field(description="The version to go back to; without it, `forget` is undone.")
    ] = None


class AsItWas(Input):
    """Which version of a record."""

    as_of: Annotated[MomentText | None, Field(description="The record as it was then, or at the end of that day.")] = (
        None
    )
    version: Annotated[Version | None, Field(description="The record as it was in this version.")] = None

    @property
    def is_of_the_past(self) -> bool:
        """Whether an earlier version is asked for."""
        return self.as_of is not None or self.version is not None


class ReadRecord(AsItWas):
    """Which record, and which version of it."""

    record_id: RecordId
    around: Annotated[int | None, Field(description="And this many messages before and after it.", ge=1, le=50)] = None


class ListTasks(Input):
    """Which tasks to list."""

    is_done: Annotated[
        bool | None, Field(description="false: open tasks; true: completed and failed ones; default: all.")
    ] = None
    agent_id: AgentName = None


@dataclass(frozen=True, slots=True)
class Restored:
    """The records as they are now, and whether anything changed."""

    records: Sequence[MemoryRecord]
    is_changed: bool


async def create_pin(caller: Caller, sent: CreatePin) -> tuple[SemanticPin, SharedCopy | None]:
    """Pin a fact, and share it if it names a space. Where it may not be shared, it is not pinned."""
    if sent.space is not None:
        await caller.memory.spaces.writable(sent.space)
    pin = await caller.memory.create_pin(
        CreatePinRequest(
            session_id=sent.session_id,
            content=sent.content,
            source_message_id=sent.source_message_id,
            importance_score=sent.importance_score,
            pin_type=PinType(sent.pin_type),
            client_key=caller.request_key or sent.own_key,
            client=caller.editor.id,
            is_confirmed=sent.confirmed,
            scope=sent.scope,
            replaces=tuple(sent.replaces or ()),
        )
    )
    if sent.space is None:
        return pin, None
    return pin, (await caller.memory.spaces.share(pin.id, sent.space, editor=caller.editor))[1]


async def remember(caller: Caller, sent: Remember) -> Sequence[MemoryRecord]:
    """Store a note, a task, a document or a thought. Raises InvalidInput if `fields` has the text or the type."""
    given = sent.fields or {}
    if "text" in given or "type" in given:
        raise InvalidInput("leave text and type out of fields; they are arguments")
    return await caller.memory.remember(
        sent.type,
        {"text": sent.text, **_dated(caller, given)},
        session_id=sent.session_id,
        agent_id=sent.agent_id,
        editor=caller.editor,
        client_key=caller.request_key,
        is_confirmed=sent.confirmed,
    )


def with_due_day(fields: Mapping[str, Any], now_ms: int, zone: Zone) -> Mapping[str, Any]:
    """The fields with the day that words for a due date name (tomorrow, May 3), unless it is over: a name of a day such
    as Friday means the last one."""
    words = fields.get("due_date")
    if not isinstance(words, str) or not any(map(str.isalpha, words)):
        return fields
    try:
        due_ms = moment_in_words(words, "due_date", now_ms, is_last=False, zone=zone)
    except InvalidInput:
        return fields
    is_iso = words.strip()[:4].isdecimal()
    return fields if is_iso or due_ms < zone.first_ms(zone.day(now_ms)) else {**fields, "due_date": zone.date(due_ms)}


def _dated(caller: Caller, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    return with_due_day(fields, caller.memory.place.clock.now_ms(), caller.memory.zone)


async def update_memory(caller: Caller, sent: UpdateMemory) -> MemoryRecord:
    """Change fields of a record."""
    return await caller.memory.update_memory(
        sent.record_id, _dated(caller, sent.changes), expected_revision=sent.expected_revision, editor=caller.editor
    )


async def restore(caller: Caller, sent: Restore) -> Restored:
    """Bring back what is forgotten, or go back to an earlier version, as a new one."""
    records, expected = caller.memory.records, caller.expected_revision
    if sent.version is None:
        is_changed = any(one.is_deleted for one in await records.get_all(sent.record_id))
        found = await caller.memory.restore(sent.record_id, editor=caller.editor, expected_revision=expected)
        return Restored(found, is_changed)
    before = await records.get(sent.record_id)
    after = await records.revert(sent.record_id, sent.version, editor=caller.editor, expected_revision=expected)
    return Restored([after], after.revision != before.revision)


async def read_record(caller: Caller, sent: ReadRecord) -> MemoryRecord:
    """One record, as it is or was."""
    records = caller.memory.records
    if sent.as_of is not None and sent.version is not None:
        raise InvalidInput("send as_of or version, not both")
    if sent.as_of is not None:
        now_ms, zone = caller.memory.place.clock.now_ms(), caller.memory.zone
        return await records.as_of(
            sent.record_id, moment_in_words(sent.as_of, "as_of", now_ms, is_last=True, zone=zone)
        )
    if sent.version is not None:
        return await records.version(sent.record_id, sent.version)
    return await records.get(sent.record_id)


async def read_around(caller: Caller, sent: ReadRecord) -> Sequence[MessageWithImportance]:
    """The messages of the conversation around a message, in their order; none if they are not asked for."""
    if sent.around is None:
        return ()
    return await caller.memory.conversations.around(sent.record_id, sent.around)


async def list_tasks(caller: Caller, sent: ListTasks) -> Sequence[MemoryRecord]:
    """Tasks, by due date."""
    return await caller.memory.records.tasks(agent_id=sent.agent_id, is_done=sent.is_done)


PIN: Final = Verb("create_pin", Permission.WRITE, "Pin a fact", CreatePin)
REMEMBER: Final = Verb("remember", Permission.WRITE, "Keep a note, a task, a document or a thought", Remember)
UPDATE: Final = Verb("update_memory", Permission.WRITE, "Change fields of a record", UpdateMemory)
RESTORE: Final = Verb("restore", Permission.WRITE, "Bring back a forgotten record", Restore)
READ: Final = Verb("memory_history", Permission.READ, "One record, as it is or as it was", ReadRecord)
TASKS: Final = Verb("list_tasks", Permission.READ, "Tasks, the earliest due first", ListTasks)
