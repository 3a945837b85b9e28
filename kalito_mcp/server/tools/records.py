"""Tools of single records: remember, update_memory, restore, memory_history, list_tasks."""

import json
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult
from pydantic import Field

from kalito_mcp.domain.memory_records import Editor, EditorType, MemoryRecord
from kalito_mcp.domain.records import Origin
from kalito_mcp.domain.time import last_moment
from kalito_mcp.errors import InvalidInput
from kalito_mcp.safety.escaping import escape_json
from kalito_mcp.server.memory_handle import MemoryHandle
from kalito_mcp.server.tools.answers import answer, redaction_lines
from kalito_mcp.server.tools.derived import Derived, derived_from, excerpt, listed, more, shown
from kalito_mcp.server.tools.shapes import (
    AgentId,
    ChangedRecords,
    Project,
    RecordHistory,
    RememberedRecords,
    TaskList,
)
from kalito_mcp.text.plurals import plural

RecordId = Annotated[str, Field(description="As returned: `msg_45`, `task_…`.", min_length=1, max_length=200)]
_REPEATED: Final = frozenset({"text", "name", "visibility", "isInternalMessage", "notForChat"})
"""The fields of a message that its pins and summaries repeat."""
_TO_CONFIRM: Final = (
    "So it is no lasting fact. If the user wants that, call again with scope in fields and confirmed=true."
)
_TASK_FIELDS: Final = "id text status priority due_date assigned_to completed_at tags revision".split()


class RecordTools:
    """The tools that add, show, correct and bring back records."""

    def __init__(self, opened: MemoryHandle) -> None:
        self._opened = opened

    async def remember(
        self,
        context: Context[None, Any],
        type: Annotated[  # noqa: A002 - the name that callers expect
            Literal["note", "task", "document", "thought"],
            Field(description="`thought`: your own reflection, left out of contexts unless asked for."),
        ],
        text: Annotated[str, Field(description="What to remember.", min_length=1, pattern=r"\S")],
        fields: Annotated[
            dict[str, Any] | None,
            Field(
                description="importance_score, tags, critical, caused_by, supersedes; of a task: status, priority, "
                "due_date, assigned_to; of a document: source (required), title, content_type, file_type; of a "
                "thought: message_type (reflection, planning), related_to."
            ),
        ] = None,
        session_id: Annotated[
            str | None, Field(description="Only if it belongs to one conversation.", max_length=200)
        ] = None,
        agent_id: AgentId = None,
        project: Project = None,
        confirmed: Annotated[bool, Field(description="As in create_pin.")] = False,
    ) -> Annotated[CallToolResult, RememberedRecords]:
        """Keep a note, a task, a document or a thought beyond this conversation. A document replaces the earlier one of
        the same source. For a fact that every context of this conversation needs, use create_pin."""
        memory = await self._opened.memory_for(project)
        given = dict(fields or {})
        if "text" in given or "type" in given:
            raise InvalidInput("leave text and type out of fields; they are arguments")
        kept = await memory.remember(
            type,
            {"text": text, **given},
            session_id=session_id or None,
            agent_id=agent_id or None,
            editor=editor_of(context),
            is_confirmed=confirmed,
        )
        ids = [one.id for one in kept]
        name = str(kept[0].content.get("document_id", kept[0].id))
        project_id = kept[0].project
        place = f" of project {project_id}" if project_id else ""
        parts = f"{plural(len(ids), 'record')}: {listed(ids)}"
        did = "Known already:" if kept[0].is_known else "Remembered"
        lines = [f"{did} {type} {name}{place} ({parts}), revision {kept[0].revision}."]
        borrowed = None if type == "document" or kept[0].origin.distrust < Origin.TOOL.distrust else kept[0].origin
        if borrowed is not None:
            lines.append(f"Its words have another origin: {borrowed}.")
            lines += [] if confirmed else [_TO_CONFIRM]
        redacted = list(kept[0].redacted)
        return answer(
            "\n".join([*lines, *redaction_lines(redacted)]),
            RememberedRecords(
                type=type,
                id=name,
                project=project_id,
                records=len(ids),
                record_ids=shown(ids),
                more=more(record_ids=ids),
                revision=kept[0].revision,
                known_already=kept[0].is_known or None,
                origin=None if borrowed is None else borrowed.value,
                redacted=redacted or None,
            ),
        )

    async def update_memory(
        self,
        context: Context[None, Any],
        record_id: RecordId,
        changes: Annotated[
            dict[str, Any], Field(description="New values of fields such as text, status, tags; null removes one.")
        ],
        expected_revision: Annotated[
            int,
            Field(
                description="The revision you have seen: 1 unless it was edited; memory_history shows it.",
                ge=1,
                le=1_000_000_000,
            ),
        ],
    ) -> Annotated[CallToolResult, ChangedRecords]:
        """Correct a record. Its earlier version stays in its history. Refused if it was edited since."""
        memory = await self._opened.memory()
        record = await memory.update_memory(
            record_id, changes, expected_revision=expected_revision, editor=editor_of(context)
        )
        if record.revision == expected_revision:
            return await self._changed("Nothing to change", [record], is_changed=False)
        return await self._changed("Updated", [record], has_derived=bool(_REPEATED & set(changes)))

    async def restore(
        self,
        context: Context[None, Any],
        record_id: RecordId,
        version: Annotated[
            int | None,
            Field(
                description="The version to go back to; without it, `forget` is undone.",
                ge=1,
                le=1_000_000_000,
            ),
        ] = None,
    ) -> Annotated[CallToolResult, ChangedRecords]:
        """Bring back a forgotten record, or return an edited one to an earlier version. Its history stays."""
        memory = await self._opened.memory()
        if version is None:
            is_changed = any(one.is_deleted for one in await memory.records.get_all(record_id))
            did, restored = "Restored", await memory.restore(record_id, editor=editor_of(context))
        else:
            before = await memory.records.get(record_id)
            restored = [await memory.records.revert(record_id, version, editor=editor_of(context))]
            did, is_changed = f"Restored revision {version} of", restored[0].revision != before.revision
        did = did if is_changed else "Nothing to restore"
        return await self._changed(did, restored, version=version if is_changed else None, is_changed=is_changed)

    async def memory_history(
        self,
        record_id: RecordId,
        as_of: Annotated[
            str | None,
            Field(description="ISO 8601: the record as it was then; a date means the end of that day.", max_length=40),
        ] = None,
        version: Annotated[
            int | None, Field(description="The record as it was in this version.", ge=1, le=1_000_000_000)
        ] = None,
    ) -> Annotated[CallToolResult, RecordHistory]:
        """Return one record with all its fields, and who changed what and when."""
        memory = await self._opened.memory()
        edits: list[dict[str, Any]] = []
        if as_of is not None and version is not None:
            raise InvalidInput("send as_of or version, not both")
        if as_of is not None:
            record = await memory.records.as_of(record_id, last_moment(as_of, "as_of", memory.zone))
        elif version is not None:
            record = await memory.records.version(record_id, version)
        else:
            record = await memory.records.get(record_id)
            edits = await memory.records.history(record_id)
        found = escape_json({"record": record.to_dict(), "edits": edits})
        return answer(json.dumps(found, ensure_ascii=False, separators=(",", ":")), RecordHistory(**found))

    async def list_tasks(
        self,
        is_done: Annotated[
            bool | None,
            Field(description="false: open tasks; true: completed and failed ones; default: all."),
        ] = None,
        agent_id: AgentId = None,
    ) -> Annotated[CallToolResult, TaskList]:
        """Return the tasks with status, priority and due date, the earliest due first."""
        memory = await self._opened.memory()
        tasks = [one.to_dict() for one in await memory.records.tasks(agent_id=agent_id or None, is_done=is_done)]
        found = escape_json({"tasks": [{name: one[name] for name in _TASK_FIELDS if name in one} for one in tasks]})
        return answer(json.dumps(found, ensure_ascii=False, separators=(",", ":")), TaskList(**found))

    async def _changed(
        self,
        did: str,
        records: Sequence[MemoryRecord],
        *,
        version: int | None = None,
        is_changed: bool = True,
        has_derived: bool = True,
    ) -> CallToolResult:
        ids = [one.id for one in records]
        revision, text, redacted = records[0].revision, excerpt(records[0].text), list(records[0].redacted)
        derived = Derived()
        if is_changed and has_derived:
            derived = await derived_from(await self._opened.memory(), records)
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


def editor_of(context: Context[None, Any]) -> Editor:
    """The calling assistant, by the name that its host reports."""
    client = context.session.client_params
    return Editor(EditorType.AGENT, client.client_info.name[:200] if client is not None else None)
