"""Adds, edits and erases whole records, under the rules that other records set."""

from collections.abc import Sequence

from kalito_mcp.domain.memory_records import EditDraft, EditType, MemoryRecord, RecordDraft, scope_of
from kalito_mcp.domain.records import Reach, RecordType
from kalito_mcp.domain.scope import NO_PROJECT, PERSONAL, Scope
from kalito_mcp.editing.plans import PlannedErasure
from kalito_mcp.errors import Conflict, InvalidInput
from kalito_mcp.ports.records import AlreadyStored, IndexedPair, RecordWriter
from kalito_mcp.records.client_keys import check_same_words, known_by_key
from kalito_mcp.records.named import CAUSE, SUPERSEDES, check_cause, check_superseded
from kalito_mcp.records.stored_before import refuse_erased


async def add_new_records(
    records: RecordWriter, place: Scope, drafts: Sequence[RecordDraft], *, now_ms: int
) -> Sequence[MemoryRecord]:
    """Add the drafts, all of one type, to the session of the place, or without one to its agent and project. A known
    client_key returns its record. A `caused_by` may name an earlier draft.

    Raises:
        Conflict: such a text was erased for good, or an id or a part of the source is stored already.
        ClientKeyReused: a known client_key came with another text, or was chosen for another request.
        RecordNotFound: a record that is named does not exist.
        InvalidInput: it is for a whole project, and there is no project.
    """
    kind = drafts[0].type
    await refuse_erased(records, place, kind, [str(draft.content["text"]) for draft in drafts])
    known = await known_by_key(records, place, kind, [draft.client_key for draft in drafts])
    new: dict[str, RecordDraft] = {}
    for draft in drafts:
        if (before := known.get(draft.client_key)) is not None:
            check_same_words(draft.client_key, is_same=before.text == draft.content["text"])
            continue
        cause = draft.content.get(CAUSE)
        if cause is not None and cause not in new:
            await check_cause(records, place, cause)
        if draft.content.get("scope") == Reach.PROJECT and place.project in (None, PERSONAL):
            raise InvalidInput(NO_PROJECT)
        new[draft.id] = draft
    try:
        added = {one.id: one for one in await records.add_records(place, list(new.values()), now_ms=now_ms)}
    except AlreadyStored as error:
        raise Conflict("this id, or this part of the source, is stored already; update that record") from error
    for draft in new.values():
        if draft.content.get(SUPERSEDES):
            await check_superseded(records, place.owner, draft.id)
    return [known.get(draft.client_key) or added[draft.id] for draft in drafts]


async def change_record(
    records: RecordWriter, owner: str, record: MemoryRecord, edit: EditDraft, *, indexed: IndexedPair | None = None
) -> MemoryRecord:
    """Write the edit of a record.

    Raises:
        Conflict: its new cause is something that it led to, or its project has a document of its source already.
        RecordNotFound: a record that it newly names does not exist, or it was erased itself.
        RevisionConflict: it was changed meanwhile.
        InvalidInput: it is for a whole project, and there is no project.
    """
    cause, known = edit.content.get(CAUSE), record.content.get(SUPERSEDES) or ()
    if cause is not None and cause != record.content.get(CAUSE):
        await check_cause(records, Scope(owner), cause, record)
    try:
        changed = await records.change(record, edit, indexed=indexed)
    except AlreadyStored as error:
        raise Conflict(
            f"the project has a document of the source {edit.content.get('source')!r} already; forget or move that one "
            "first"
        ) from error
    if changed.content.get(SUPERSEDES, ()) != known:
        await check_superseded(records, owner, record.id, known)
    if edit.type is EditType.UPDATE and edit.content.get("scope") == Reach.PROJECT and changed.project is None:
        raise InvalidInput(NO_PROJECT)
    return changed


async def erase_record(
    records: RecordWriter,
    owner: str,
    record: MemoryRecord,
    plan: PlannedErasure,
    *,
    now_ms: int,
    text_keys: Sequence[str] = (),
) -> None:
    """Erase the record, so that what comes again with its words is recognised. `text_keys`: see the port."""
    await records.forget_values(scope_of(owner, record), plan.keys, now_ms=now_ms, is_erased=True)
    # The forgotten value stops a pin from coming back, and the user can bring it back.
    texts = () if record.type is RecordType.PIN else plan.texts
    await records.purge(record, now_ms=now_ms, texts=texts, text_keys=text_keys, indexed=plan.indexed)
