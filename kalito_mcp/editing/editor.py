"""Creates, edits, forgets and restores records. Every change is one edit in the record's history. The same transaction
updates what was derived from the record: pins, summaries and graph nodes.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from kalito_mcp.domain.memory_records import (
    DELETED_AT,
    EditDraft,
    Editor,
    EditorType,
    EditType,
    MemoryRecord,
    RecordDraft,
    versions,
    with_changes,
)
from kalito_mcp.domain.records import Origin, RecordType
from kalito_mcp.domain.request_keys import part_key
from kalito_mcp.domain.scope import NO_LIMITS, Scope
from kalito_mcp.domain.sessions import SessionState
from kalito_mcp.domain.spaces import space_of
from kalito_mcp.domain.validation import LimitsPolicy, check_lengths, checked_moment, checked_text
from kalito_mcp.editing.cascade import Cascade, CascadeTransaction
from kalito_mcp.editing.forgotten_notes import ForgottenNotes, without_forgotten
from kalito_mcp.editing.plans import again_if_overtaken, planned_change
from kalito_mcp.editing.writing import add_new_records, change_record
from kalito_mcp.errors import Conflict, InvalidInput, RevisionConflict, SessionFinalized
from kalito_mcp.ports.clock import Clock, IdSource
from kalito_mcp.ports.records import RecordWriter
from kalito_mcp.ports.store import ReadView, Store, WriteTransaction
from kalito_mcp.ports.tokens import TokenCounter
from kalito_mcp.records.chunking import ChunkPolicy, chunks
from kalito_mcp.records.historian import at_version, current_parts, get_record, get_records
from kalito_mcp.records.named import check_may_end, check_named
from kalito_mcp.records.reached import check_is_reached, unnamed
from kalito_mcp.records.repetitions import repetition_refused, scope_of_session
from kalito_mcp.records.same_words import known_already
from kalito_mcp.records.schemas import check_size, checked_changes, checked_content
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.records.stored_before import refuse_erased
from kalito_mcp.runtime.long_texts import read_aside
from kalito_mcp.safety.escaping import as_data
from kalito_mcp.safety.redaction import checked_handle, cleaned
from kalito_mcp.text.plurals import plural

_REMEMBERED: Final = {RecordType.THOUGHT, RecordType.DOCUMENT, RecordType.TASK}

Change = Callable[[MemoryRecord], Mapping[str, Any]]
Adding = Callable[[], Coroutine[Any, Any, Sequence[MemoryRecord]]]
Around = Callable[[WriteTransaction, Adding], Coroutine[Any, Any, Sequence[MemoryRecord]]]


class RecordEditor:
    """Creates and changes records on behalf of an `Editor`."""

    def __init__(
        self,
        store: Store,
        cascade: Cascade,
        counter: TokenCounter,
        clock: Clock,
        ids: IdSource,
        *,
        limits: LimitsPolicy,
        chunking: ChunkPolicy,
    ) -> None:
        self._store = store
        self._cascade = cascade
        self._counter = counter
        self._clock = clock
        self._ids = ids
        self._forgotten = ForgottenNotes(store, clock)
        self._limits = limits
        self._chunking = chunking

    async def remember(
        self,
        scope: Scope,
        record_type: RecordType,
        fields: Mapping[str, Any],
        *,
        editor: Editor,
        origin: Origin,
        created_at: int | None = None,
        client_key: str | None = None,
        around: Around | None = None,
    ) -> Sequence[MemoryRecord]:
        """Store a thought, a document or a task; see `Memory.remember`. No `created_at` means now. `around` is called
        in the transaction that adds the records, to do so; records of the same words do not count then."""
        if record_type not in _REMEMBERED:
            raise InvalidInput(
                f"type={str(record_type)!r} cannot be created with remember; use thought, document or task"
            )
        check_size(record_type, fields, self._limits)
        if scope.agent:
            checked_handle(scope.agent, "agent_id")
        now_ms = self._clock.now_ms()
        said_ms = now_ms if created_at is None else checked_moment(created_at, "created_at")
        given, redacted = await read_aside(len(str(fields)), lambda: cleaned(fields))
        content = checked_content(record_type, given, now_ms=now_ms)
        if not str(content["text"]).strip():
            raise InvalidInput("text is blank; send the text to remember")
        if "chunk_index" in content:
            # A single part, taken for the whole document, would replace the other parts.
            raise InvalidInput(
                "chunk_index and total_chunks are set by the memory; leave them out and send the whole document"
            )
        size = len(str(content["text"]))
        drafts = await read_aside(size, lambda: self._drafts(record_type, content, editor, origin, said_ms))
        if client_key is not None:
            drafts = [replace(one, client_key=part_key(client_key, place)) for place, one in enumerate(drafts)]
        records = await self._add(scope, record_type, drafts, editor, now_ms, around)
        left_out = (plural(len(drafts) - len(records), "forgotten part"),) if len(records) < len(drafts) else ()
        return [replace(one, redacted=(*redacted, *left_out)) for one in records]

    async def _add(
        self,
        scope: Scope,
        record_type: RecordType,
        drafts: Sequence[RecordDraft],
        editor: Editor,
        now_ms: int,
        around: Around | None,
    ) -> Sequence[MemoryRecord]:
        keys = await self._forgotten.keys_of_drafts(scope.owner, drafts)

        async def add(transaction: WriteTransaction) -> Sequence[MemoryRecord]:
            records, place = transaction.records, scope.landing()
            if scope.session is not None:
                checked_handle(scope.session, "session_id")
                session = await ensure_session(transaction.sessions, scope, now_ms=now_ms)
                if session.state is not SessionState.OPEN:
                    raise SessionFinalized(session.id, session.state)
                place = scope_of_session(session, scope.limits).of_session(session.id)
            repeated = await self._forgotten.repeated(records, place, drafts, keys)
            if around is None and (known := await known_already(records, place, drafts)):
                return [known]
            if record_type is RecordType.DOCUMENT:
                texts = [str(draft.content["text"]) for draft in drafts]
                erased = {one.text for one in await records.erased_texts(place, record_type, texts)}
                if not repeated and erased.issuperset(texts):
                    await refuse_erased(records, place, record_type, texts)
                kept = without_forgotten(drafts, repeated | erased)
                return await self._replace_document(records, place, kept, editor, now_ms)
            if repeated:
                raise repetition_refused()
            return await add_new_records(records, place, drafts, now_ms=now_ms)

        return await self._store.write(add if around is None else lambda one: around(one, lambda: add(one)))

    async def update(
        self, scope: Scope, record_id: str, changes: Mapping[str, Any], *, expected_revision: int, editor: Editor
    ) -> MemoryRecord:
        """See `Memory.update_memory`."""
        check_lengths(changes, self._limits.max_text_bytes)
        kept, redacted = await read_aside(len(str(changes)), lambda: cleaned(changes))
        named: dict[str, Any] = {}

        def change(record: MemoryRecord) -> Mapping[str, Any]:
            if record.is_deleted:
                raise Conflict(f"{record.id} is forgotten; restore it first")
            content = checked_changes(record, kept, now_ms=self._clock.now_ms())
            if scope.limits != NO_LIMITS:
                named.update(checked_changes(unnamed(record), kept, now_ms=self._clock.now_ms()))
            checked_text(str(content["text"]), "text", max_bytes=self._limits.max_text_bytes)
            if not str(content["text"]).strip():
                raise InvalidInput("text is blank; send some text, or forget the record")
            return content

        changed = await self._edit(scope, record_id, change, EditType.UPDATE, editor, expected_revision, named)
        return replace(changed, redacted=redacted)

    async def forget(
        self, scope: Scope, record_id: str, *, editor: Editor, expected_revision: int | None = None
    ) -> Sequence[MemoryRecord]:
        """See `Memory.forget`. Forgetting it twice changes nothing."""
        now_ms = self._clock.now_ms()

        def change(record: MemoryRecord) -> Mapping[str, Any]:
            return record.content if record.is_deleted else with_changes(record.content, {DELETED_AT: now_ms})

        parts = await self._parts(scope, record_id)
        return await self._edit_all(scope, parts, change, EditType.DELETE, editor, expected_revision)

    async def restore(
        self, scope: Scope, record_id: str, *, editor: Editor, expected_revision: int | None = None
    ) -> Sequence[MemoryRecord]:
        """Undo `forget`. A record that is not forgotten is unchanged. Parts that the document lost stay forgotten.

        Raises:
            RecordNotFound: no such record, or it was erased for good.
        """

        def change(record: MemoryRecord) -> Mapping[str, Any]:
            return with_changes(record.content, {DELETED_AT: None})

        parts = current_parts(await self._parts(scope, record_id))
        return await self._edit_all(scope, parts, change, EditType.RESTORE, editor, expected_revision)

    async def move(
        self, scope: Scope, record_id: str, project: str | None, *, editor: Editor
    ) -> Sequence[MemoryRecord]:
        """Give a record, or all parts of a document, to a project; None makes it personal.

        Raises:
            RecordNotFound: no such record, or it was erased.
            Conflict: it belongs to a session; or the project has a document of the same source.
        """

        def change(record: MemoryRecord) -> Mapping[str, Any]:
            if record.session_id is not None:
                session = "a session" if scope.limits != NO_LIMITS else f"session {record.session_id!r}"
                raise Conflict(f"{record.id} belongs to {session}, and so to its project; move the session")
            return with_changes(record.content, {"project": project})

        return await self._edit_all(scope, await self._parts(scope, record_id), change, EditType.UPDATE, editor, None)

    async def change(self, scope: Scope, record_id: str, change: Change, *, editor: Editor) -> MemoryRecord:
        """Give a record the content that `change` makes of it, as one edit.

        Raises:
            RecordNotFound: no such record, or it was erased. Whatever `change` raises.
        """
        return await self._edit(scope, record_id, change, EditType.UPDATE, editor)

    async def revert(
        self, scope: Scope, record_id: str, version: int, *, editor: Editor, expected_revision: int | None = None
    ) -> MemoryRecord:
        """Write the content of an earlier version as a new version, so that no version is lost. A `caused_by` that was
        erased meanwhile is left out.

        Raises:
            InvalidInput: no such version. RevisionConflict, RecordNotFound: see `update`.
        """

        async def look(view: ReadView) -> tuple[MemoryRecord, Mapping[str, Any]]:
            record = await get_record(view.records, scope, record_id)
            content = at_version(record, versions(record, await view.records.edits(record)), version).content
            cause = content.get("caused_by")
            if cause is not None and await view.records.record(scope.anywhere(), cause) is None:
                content = with_changes(content, {"caused_by": None})
            return record, content

        record, content = await self._store.read(look)
        return await self._edit(
            scope,
            record_id,
            lambda _: content,
            EditType.REVERT,
            editor,
            record.revision if expected_revision is None else expected_revision,
        )

    async def _parts(self, scope: Scope, record_id: str) -> Sequence[MemoryRecord]:
        return await self._store.read(lambda view: get_records(view.records, scope, record_id))

    async def _edit_all(
        self,
        scope: Scope,
        parts: Sequence[MemoryRecord],
        change: Change,
        edit_type: EditType,
        editor: Editor,
        expected_revision: int | None,
    ) -> list[MemoryRecord]:
        """Change all parts of a document, if the first is at this revision."""
        expected = (expected_revision, *[None] * (len(parts) - 1))
        return [
            await self._edit(scope, one.id, change, edit_type, editor, revision)
            for one, revision in zip(parts, expected, strict=True)
        ]

    @again_if_overtaken
    async def _edit(
        self,
        scope: Scope,
        record_id: str,
        change: Change,
        edit_type: EditType,
        editor: Editor,
        expected_revision: int | None = None,
        named: Mapping[str, Any] | None = None,
    ) -> MemoryRecord:
        seen = await self._store.read(lambda view: get_record(view.records, scope, record_id))
        if expected_revision is not None and seen.revision != expected_revision:
            raise RevisionConflict(seen.id, expected_revision, seen.revision)
        planned = change(seen)
        if space_of(scope.owner) is not None:
            await self._store.read(lambda view: check_may_end(view.spaces, scope.owner, editor.user, seen, planned))
        plan = await self._cascade.prepare(scope, seen, planned)
        texts = await read_aside(len(seen.text) + len(str(planned["text"])), lambda: planned_change(seen, planned))

        async def edit_it(transaction: CascadeTransaction, record: MemoryRecord) -> MemoryRecord:
            content = change(record)
            await check_named(transaction.records, scope, named)
            if content == record.content:
                return record
            edit = await read_aside(len(str(content["text"])), lambda: self._draft(content, edit_type, editor))
            await self._forgotten.follow(transaction.records, scope, record, edit, texts.keys)
            changed = await change_record(transaction.records, scope.owner, record, edit, indexed=texts.indexed)
            await check_is_reached(transaction.records, scope, record)
            await self._cascade.apply(transaction, before=record, after=changed)
            return changed

        return await self._cascade.change(plan, edit_it)

    def _draft(self, content: Mapping[str, Any], edit_type: EditType, editor: Editor) -> EditDraft:
        text = str(content["text"])
        return EditDraft(
            type=edit_type,
            editor=cleaned(editor)[0],
            edited_at=self._clock.now_ms(),
            content=content,
            tokens=self._counter.count(as_data(text)),
        )

    def _drafts(
        self, record_type: RecordType, content: Mapping[str, Any], editor: Editor, origin: Origin, said_ms: int
    ) -> list[RecordDraft]:
        record_id = self._ids.record_id(str(record_type), said_ms)
        if record_type is not RecordType.DOCUMENT:
            return [self._record_draft(record_id, record_type, content, editor, origin, said_ms)]
        parts = chunks(str(content["text"]), self._chunking)
        if len(parts) > 1 and content.get("scope"):
            raise InvalidInput("scope is for pins and short notes; leave it out, and pin what matters of the document")
        return [
            self._record_draft(
                record_id if len(parts) == 1 else f"{record_id}.{place}",
                record_type,
                with_changes(
                    content,
                    {"text": text, "document_id": record_id, "chunk_index": place, "total_chunks": len(parts)},
                ),
                editor,
                origin,
                said_ms,
            )
            for place, text in enumerate(parts)
        ]

    def _record_draft(
        self,
        record_id: str,
        record_type: RecordType,
        content: Mapping[str, Any],
        editor: Editor,
        origin: Origin,
        said_ms: int,
    ) -> RecordDraft:
        return RecordDraft(
            id=record_id,
            type=record_type,
            content=content,
            origin=origin,
            client=cleaned(editor.id)[0] if editor.type is EditorType.AGENT else None,
            created_at=said_ms,
            tokens=self._counter.count(as_data(str(content["text"]))),
        )

    async def _replace_document(
        self,
        records: RecordWriter,
        place: Scope,
        drafts: Sequence[RecordDraft],
        editor: Editor,
        now_ms: int,
    ) -> Sequence[MemoryRecord]:
        """Update the known parts to the new content, add missing parts, forget surplus ones."""
        known = await records.document(place, str(drafts[0].content["source"]))
        if not known:
            return await add_new_records(records, place, drafts, now_ms=now_ms)
        if all(one.is_deleted for one in known):
            raise Conflict(
                f"the document of source {known[0].content['source']!r} is forgotten; restore "
                f"{known[0].content['document_id']} first, then send it again"
            )
        document_id = known[0].content["document_id"]
        by_place = {int(one.content["chunk_index"]): one for one in known}
        kept: list[MemoryRecord] = []
        for part, draft in enumerate(drafts):
            place_of_all = {"document_id": document_id, "project": known[0].content.get("project")}
            content = with_changes(draft.content, place_of_all)
            before = by_place.pop(part, None)
            if before is None:
                added = replace(draft, id=f"{document_id}.{part}", content=content)
                kept += await add_new_records(records, place, [added], now_ms=now_ms)
            elif content == before.content:
                kept.append(before)
            else:
                edit = self._draft(content, EditType.UPDATE, editor)
                kept.append(await change_record(records, place.owner, before, edit))
        for surplus in by_place.values():
            if not surplus.is_deleted:
                content = with_changes(surplus.content, {DELETED_AT: now_ms})
                await records.change(surplus, self._draft(content, EditType.DELETE, editor))
        return kept
