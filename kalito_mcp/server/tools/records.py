"""Tools of single records: remember, update_memory, restore, memory_history, list_tasks."""

import json
from collections.abc import Sequence
from typing import Annotated, Final

from mcp.types import CallToolResult

from kalito_mcp.domain.memory_records import MemoryRecord
from kalito_mcp.domain.records import Origin
from kalito_mcp.memory.verbs import records as verbs
from kalito_mcp.memory.verbs.verb import Caller
from kalito_mcp.safety.escaping import escape_json
from kalito_mcp.server.tools.answers import answer, redaction_lines
from kalito_mcp.server.tools.derived import Derived, derived_from, excerpt, listed, more, shown
from kalito_mcp.server.tools.serving import ToolContext, caller_of, serving
from kalito_mcp.server.tools.shapes import (
    ChangedRecords,
    Project,
    RecordHistory,
    RememberedRecords,
    TaskList,
)
from kalito_mcp.text.plurals import plural
from kalito_mcp.text.sentences import cut

_REPEATED: Final = frozenset({"text", "name", "visibility", "isInternalMessage", "notForChat"})
"""The fields of a message that its pins and summaries repeat."""
_TO_CONFIRM: Final = (
    "So it is no lasting fact. If the user wants that, call again with scope in fields and confirmed=true."
)
_TASK_FIELDS: Final = "id text status priority due_date assigned_to completed_at tags revision".split()


_MOST_CHARS_AROUND: Final = 2_000


class Remember(verbs.Remember):
    """The arguments of remember."""

    project: Project = None


async def remember(context: ToolContext, sent: Remember) -> Annotated[CallToolResult, RememberedRecords]:
    """Keep a note, a task, a document or a thought beyond this conversation. A document replaces the earlier one of
    the same source. For a fact that every context of this conversation needs, use create_pin."""
    kept = await verbs.remember(caller_of(context, await serving(context).opened.memory_for(sent.project)), sent)
    first, ids = kept[0], [one.id for one in kept]
    name = str(first.content.get("document_id", first.id))
    place = f" of project {first.project}" if first.project else ""
    parts = f"{plural(len(ids), 'record')}: {listed(ids)}"
    did = "Known already:" if first.is_known else "Remembered"
    lines = [f"{did} {sent.type} {name}{place} ({parts}), revision {first.revision}."]
    borrowed = None if sent.type == "document" or first.origin.distrust < Origin.TOOL.distrust else first.origin
    if borrowed is not None:
        lines.append(f"Its words have another origin: {borrowed}.")
        lines += [] if sent.confirmed else [_TO_CONFIRM]
    redacted = list(first.redacted)
    return answer(
        "\n".join([*lines, *redaction_lines(redacted)]),
        RememberedRecords(
            type=sent.type,
            id=name,
            project=first.project,
            records=len(ids),
            record_ids=shown(ids),
            more=more(record_ids=ids),
            revision=first.revision,
            known_already=first.is_known or None,
            origin=None if borrowed is None else borrowed.value,
            redacted=redacted or None,
        ),
    )


async def update_memory(context: ToolContext, sent: verbs.UpdateMemory) -> Annotated[CallToolResult, ChangedRecords]:
    """Correct a record. Its earlier version stays in its history. Refused if it was edited since."""
    caller = await _caller(context)
    record = await verbs.update_memory(caller, sent)
    if record.revision == sent.expected_revision:
        return await _changed(caller, "Nothing to change", [record], is_changed=False)
    return await _changed(caller, "Updated", [record], has_derived=bool(_REPEATED & set(sent.changes)))


async def restore(context: ToolContext, sent: verbs.Restore) -> Annotated[CallToolResult, ChangedRecords]:
    """Bring back a forgotten record, or return an edited one to an earlier version. Its history stays."""
    caller = await _caller(context)
    restored = await verbs.restore(caller, sent)
    if not restored.is_changed:
        return await _changed(caller, "Nothing to restore", restored.records, is_changed=False)
    did = "Restored" if sent.version is None else f"Restored revision {sent.version} of"
    return await _changed(caller, did, restored.records, version=sent.version)


async def memory_history(context: ToolContext, sent: verbs.ReadRecord) -> Annotated[CallToolResult, RecordHistory]:
    """Return one record with all its fields, and who changed what and when."""
    caller = await _caller(context)
    record = await verbs.read_record(caller, sent)
    edits = [] if sent.is_of_the_past else await caller.memory.records.history(sent.record_id)
    turns = [
        {"id": one.record_id, "role": one.role, "name": one.name, "text": cut(one.text, _MOST_CHARS_AROUND)}
        for one in await verbs.read_around(caller, sent)
    ]
    found = escape_json({"record": record.to_dict(), "edits": edits, **({"around": turns} if turns else {})})
    return answer(json.dumps(found, ensure_ascii=False, separators=(",", ":")), RecordHistory(**found))


async def list_tasks(context: ToolContext, sent: verbs.ListTasks) -> Annotated[CallToolResult, TaskList]:
    """Return the tasks with status, priority and due date, the earliest due first."""
    tasks = [one.to_dict() for one in await verbs.list_tasks(await _caller(context), sent)]
    found = escape_json({"tasks": [{name: one[name] for name in _TASK_FIELDS if name in one} for one in tasks]})
    return answer(json.dumps(found, ensure_ascii=False, separators=(",", ":")), TaskList(**found))


async def _caller(context: ToolContext) -> Caller:
    return caller_of(context, await serving(context).opened.memory())


async def _changed(
    caller: Caller,
    did: str,
    records: Sequence[MemoryRecord],
    *,
    version: int | None = None,
    is_changed: bool = True,
    has_derived: bool = True,
) -> CallToolResult:
    ids = [one.id for one in records]
    revision, text, redacted = records[0].revision, excerpt(records[0].text), list(records[0].redacted)
    derived = await derived_from(caller.memory, records) if is_changed and has_derived else Derived()
    head = f"{did} {listed(ids)}, now" if is_changed else f"{did} in {listed(ids)}, still"
    lines = [f"{head} at revision {revision}: {text}", *redaction_lines(redacted), *derived.lines()]
    return answer(
        "\n".join(lines),
        ChangedRecords(
            record_ids=shown(ids),
            more=more(record_ids=ids, rewritten=derived.rewritten, still_says=derived.still_says),
            revision=revision,
            text=text,
            version=version,
            rewritten=shown(derived.rewritten) or None,
            still_says=derived.pins or None,
            note=None if is_changed else did,
            redacted=redacted or None,
        ),
    )
