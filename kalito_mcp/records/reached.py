"""A caller's view of records within its limits, without the ids of records beyond them. Reads only.

A record within the limits may name others beyond them: the session that a personal pin was made in, its cause, what it
led to, the project that it came from. A change needs the record as it is stored, so this is only for display.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from kalito_mcp.domain.memory_records import SYSTEM_EDITOR, EditorType, MemoryRecord, StoredEdit, with_changes
from kalito_mcp.domain.scope import NO_LIMITS, Scope
from kalito_mcp.domain.statements import HOLDS_WITH
from kalito_mcp.errors import AccessDenied
from kalito_mcp.ports.records import RecordReader
from kalito_mcp.ports.store import ReadView, Store
from kalito_mcp.records.named import CAUSE, SUPERSEDES

NAMED: Final = (CAUSE, "source_message_id", "vision_response_for")
"""Fields of a record that name another."""
NAMED_LISTS: Final = (SUPERSEDES, "related_to", HOLDS_WITH)
"""Fields that name several."""
_PROJECT: Final = "project"


@dataclass(frozen=True, slots=True)
class Reached:
    """The sessions, records and projects named by some records that are within the limits of a scope."""

    scope: Scope
    session_ids: frozenset[str] = frozenset()
    record_ids: frozenset[str] = frozenset()

    def record(self, record: MemoryRecord) -> MemoryRecord:
        """The record, as it is shown."""
        if self.scope.limits == NO_LIMITS:
            return record
        return replace(
            record,
            session_id=record.session_id if record.session_id in self.session_ids else None,
            content=self.content(record.content),
            led_to=tuple(one for one in record.led_to if one in self.record_ids),
        )

    def content(self, content: Mapping[str, Any]) -> Mapping[str, Any]:
        """The content of a version of a record, as it is shown."""
        limits = self.scope.limits
        if limits == NO_LIMITS:
            return content
        seen = {name: value for name, value in content.items() if name not in NAMED or value in self.record_ids}
        if limits.project is not None and seen.get(_PROJECT) != limits.project:
            seen.pop(_PROJECT, None)
        for name in NAMED_LISTS:
            if kept := [one for one in seen.pop(name, None) or () if one in self.record_ids]:
                seen[name] = kept
        return seen

    def edit(self, edit: StoredEdit) -> StoredEdit:
        """The edit, as it is shown: one of the memory itself names the record that was its cause."""
        cause = (edit.editor.id or "").removeprefix(f"{SYSTEM_EDITOR.id}:").partition("@")[0]
        if self.scope.limits == NO_LIMITS or edit.editor.type is not EditorType.SYSTEM or cause in self.record_ids:
            return edit
        return replace(edit, editor=SYSTEM_EDITOR)


async def look_up(
    view: ReadView,
    scope: Scope,
    records: Sequence[MemoryRecord],
    contents: Iterable[Mapping[str, Any]] = (),
    edits: Iterable[StoredEdit] = (),
) -> Reached:
    """Look up what these records name, and these contents and edits of theirs."""
    if scope.limits == NO_LIMITS:
        return Reached(scope)
    anywhere = scope.anywhere()
    sessions = {one.session_id for one in records if one.session_id is not None}
    known = {one for one in sessions if await view.sessions.get(anywhere.of_session(one)) is not None}
    named = {one for record in records for one in record.led_to}
    for content in (*(record.content for record in records), *contents):
        named |= {str(content[name]) for name in NAMED if name in content}
        named |= {one for name in NAMED_LISTS for one in content.get(name) or ()}
    for edit in edits:
        if edit.editor.type is EditorType.SYSTEM:
            named.add((edit.editor.id or "").removeprefix(f"{SYSTEM_EDITOR.id}:").partition("@")[0])
    found = {one for one in named if await _is_reached(view.records, anywhere, one)}
    return Reached(scope, frozenset(known), frozenset(found))


async def _is_reached(records: RecordReader, anywhere: Scope, named: str) -> bool:
    """Whether a record of this id is within the limits, or a part of the document of this id."""
    return await records.record(anywhere, named) is not None or bool(await records.parts(anywhere, named))


async def reached(store: Store, scope: Scope, records: Sequence[MemoryRecord]) -> list[MemoryRecord]:
    """The records, as they are shown to a caller with the limits of the scope."""
    if scope.limits == NO_LIMITS:
        return list(records)
    found = await store.read(lambda view: look_up(view, scope, records))
    return [found.record(one) for one in records]


def unnamed(record: MemoryRecord) -> MemoryRecord:
    """The record as if it named no cause and superseded nothing: what a change of it names is then all there is."""
    return replace(record, content=with_changes(record.content, {CAUSE: None, SUPERSEDES: None}))


async def check_is_reached(records: RecordReader, scope: Scope, record: MemoryRecord) -> None:
    """Refuse a change that has moved the record beyond the limits of the caller.

    Raises:
        AccessDenied: it is beyond them now.
    """
    if scope.limits != NO_LIMITS and await records.record(scope.anywhere(), record.id) is None:
        raise AccessDenied(f"this would move {record.id} beyond what this token reaches; nothing was written")
