"""Changes whole records of a store in memory. Implements `ports.records.RecordWriter`."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from kalito_mcp.domain.memory_records import (
    DELETED_AT,
    EditDraft,
    EditType,
    MemoryRecord,
    RecordDraft,
    StoredEdit,
    changed_fields,
    scope_of,
    texts_ever,
)
from kalito_mcp.domain.records import Reach, RecordType, Visibility
from kalito_mcp.domain.scope import DEFAULT_AGENT, NO_PROJECT, PERSONAL, Scope
from kalito_mcp.domain.time import to_iso
from kalito_mcp.errors import ClientKeyReused, Conflict, InvalidInput, RecordNotFound, RevisionConflict
from kalito_mcp.ports.records import ForgottenValue
from kalito_mcp.runtime.long_texts import Readings
from kalito_mcp.storage.memory.records import RecordsRead, forgotten_places, tombstones
from kalito_mcp.storage.memory.sessions import ensure_session
from kalito_mcp.storage.memory.state import State, StoredRecord, StoredTombstone
from kalito_mcp.text.analysis import index_text
from kalito_mcp.text.repetition import keys_to_forget

_DEFAULT_IMPORTANCE: Final = 0.5
_PLACE_OF_SUMMARY: Final = (
    *("level", "start_seq", "end_seq", "start_message_id", "end_message_id", "started_at", "ended_at", "method"),
)


def settled(
    kind: RecordType, content: Mapping[str, Any], *, session_id: str | None, project: str | None
) -> dict[str, Any]:
    """The content as it is kept: without fields that say nothing, and with values of its own. A thought is always
    internal."""
    is_internal = kind is RecordType.THOUGHT or content.get("visibility") == Visibility.INTERNAL
    reach = content.get("scope")
    is_known = reach == Reach.PERSON or (reach == Reach.PROJECT and project is not None)
    fields = {
        **content,
        "importance_score": float(content.get("importance_score", _DEFAULT_IMPORTANCE)) + 0.0,  # never -0.0
        "tags": content.get("tags") or None,
        "critical": True if content.get("critical") else None,
        "visibility": Visibility.INTERNAL if is_internal else None,
        "scope": reach if is_known else None,
        "project": project if session_id is None else None,
    }
    kept: dict[str, Any] = json.loads(json.dumps({name: value for name, value in fields.items() if value is not None}))
    return kept


def check_superseded(state: State, stored: StoredRecord, *, before: Sequence[str] = ()) -> None:
    """Refuse a record that names one as superseded, and did not before, that its agent and project do not have.

    Raises:
        RecordNotFound: it does.
    """
    place = (stored.owner, stored.record.agent_id, stored.record.project)
    for record_id in stored.content.get("supersedes", ()):
        named = state.by_id(record_id)
        is_there = named is not None and (named.owner, named.record.agent_id, named.record.project) == place
        if not is_there and record_id not in before:
            raise RecordNotFound(f"record {record_id!r} does not exist; use ids returned by a search")


class RecordsWritten(RecordsRead):
    """`ports.records.RecordWriter`."""

    async def add_records(self, scope: Scope, drafts: Sequence[RecordDraft], *, now_ms: int) -> Sequence[MemoryRecord]:
        if not drafts:
            return []
        agent, session_id, project = self._place(scope, now_ms)
        for draft in drafts:
            self._refuse_erased(scope, draft)
        keys: list[int] = []
        for draft in drafts:
            known = self._with_client_key(scope.owner, agent, session_id, draft)
            if known is None:
                known = self._new(scope.owner, agent, session_id, project, draft, now_ms=now_ms)
                if (cause := draft.content.get("caused_by")) is not None:
                    self._cause(scope, cause)
                self._check_free(known)
                self._state.put(known)
            keys.append(known.record.key)
        if session_id is not None:
            session = self._state.sessions[scope.owner, session_id]
            self._state.update_session(scope.owner, session_id, updated_at=max(session.updated_at, now_ms))
        return self._whole(self._state.records[key] for key in keys)

    async def change(self, record: MemoryRecord, edit: EditDraft, *, readings: Readings | None = None) -> MemoryRecord:
        before = self._stored(record, is_revision_checked=True)
        self._check_cause(before, edit.content.get("caused_by"))
        project = self._project_after(before, edit)
        content = settled(record.type, edit.content, session_id=before.record.session_id, project=project)
        if record.type is RecordType.SUMMARY:
            content |= {name: before.content[name] for name in _PLACE_OF_SUMMARY[:3]}
        version = record.revision + 1
        changed = replace(before.record, content=content, project=project, revision=version)
        after = _indexed(replace(before, record=changed, tokens=edit.tokens))
        self._check_free(after)
        self._state.put(after)
        check_superseded(self._state, after, before=before.content.get("supersedes", ()))
        changes = changed_fields(before.content, content)
        made = StoredEdit(version, edit.type, edit.editor, edit.edited_at, changes)
        self._state.add_edit(record.key, made)
        self._count(before, after)
        return self._whole([after])[0]

    async def rename_project(self, owner: str, old: str, new: str) -> None:
        state = self._state
        key = state.projects.pop((owner, old))
        state.projects.setdefault((owner, new), key)
        for session in [one for one in state.sessions.values() if (one.owner, one.project) == (owner, old)]:
            state.update_session(owner, session.id, project=new)
        for one in [one for one in state.records.values() if (one.owner, one.record.project) == (owner, old)]:
            moved = replace(one, record=replace(one.record, project=new))
            moved = moved.with_content({"project": new}) if one.record.session_id is None else moved
            self._check_free(moved, "both projects have a document of one source; forget or move one of them first")
            state.put(moved)
        for place in [one for one in state.forgotten if one[0] == owner and one[2] == old]:
            state.forgotten[(*place[:2], new, place[3])] = state.forgotten.pop(place)

    async def drop_history(self, record: MemoryRecord) -> MemoryRecord:
        stored = self._stored(record, is_revision_checked=True)
        self._state.edits.pop(record.key, None)
        return self._whole([stored])[0]

    async def purge(
        self, record: MemoryRecord, *, now_ms: int, text_keys: Sequence[str] = (), readings: Readings | None = None
    ) -> None:
        before = self._stored(record, is_revision_checked=False)
        state, kept = self._state, before.record
        texts = texts_ever(kept, state.edits.get(kept.key, ()))
        keys = frozenset[str]().union(*[keys_to_forget(text, kept.type) for text in texts])
        await self.forget_values(scope_of(before.owner, kept), keys, now_ms=now_ms, is_erased=True)
        # The forgotten value stops a pin from coming back, and the user can bring it back.
        of_texts = [kept.id] if kept.type is RecordType.PIN else texts
        state.tombstones += tuple(_tombstone(before, text, now_ms) for text in of_texts)
        state.unswept[state.next_key("unswept")] = frozenset(text_keys)
        for effect in [one for one in state.records.values() if one.content.get("caused_by") == kept.id]:
            state.put(effect.with_content({"caused_by": None}))
        state.feedback.pop(kept.key, None)
        if kept.type not in (RecordType.MESSAGE, RecordType.SUMMARY):
            state.remove(before)
            self._count(before, None)
            return
        state.edits.pop(kept.key, None)
        stub = _stub(before, now_ms)
        state.put(stub)
        self._count(before, stub)
        self._forget_model(before)

    async def forget_values(self, scope: Scope, keys: Collection[str], *, now_ms: int, is_erased: bool = False) -> None:
        project = None if scope.project == PERSONAL else scope.project
        for key in keys:
            place = (scope.owner, scope.agent or DEFAULT_AGENT, project, key)
            known = self._state.forgotten.get(place)
            was_erased = known is not None and known.is_erased
            self._state.forgotten[place] = ForgottenValue(now_ms, is_erased or was_erased)

    async def bring_back_values(self, scope: Scope, keys: Collection[str]) -> None:
        for place in forgotten_places(self._state, scope, keys):
            del self._state.forgotten[place]

    async def count_uses(self, uses: Mapping[str, int], *, used_at: int) -> None:
        for record_id, count in uses.items():
            found = self._state.by_id(record_id)
            if found is not None and not found.is_erased:
                last_used = max(used_at, found.record.last_used or used_at)
                used = replace(found.record, usage_count=found.record.usage_count + count, last_used=last_used)
                self._state.records[used.key] = replace(found, record=used)

    def take_off_unswept(self, up_to: int) -> None:
        """Take the erasures up to this one off `unswept`."""
        for key in [one for one in self._state.unswept if one <= up_to]:
            del self._state.unswept[key]

    def _place(self, scope: Scope, now_ms: int) -> tuple[str, str | None, str | None]:
        """The scope's agent, session and project. Creates them if they are new."""
        scope = scope.landing()
        if scope.session is not None:
            session = ensure_session(self._state, scope, now_ms=now_ms)
            return session.agent, session.id, session.project
        agent = scope.agent or DEFAULT_AGENT
        self._state.add_agent(scope.owner, agent)
        return agent, None, self._state.add_project(scope.owner, scope.project)

    def _new(
        self, owner: str, agent: str, session_id: str | None, project: str | None, draft: RecordDraft, *, now_ms: int
    ) -> StoredRecord:
        reach = draft.content.get("scope")
        if reach == Reach.PROJECT and project is None:
            raise InvalidInput(NO_PROJECT)
        of_project = None if reach == Reach.PERSON else project
        content = {name: value for name, value in draft.content.items() if name != DELETED_AT}
        record = MemoryRecord(
            key=self._state.next_key("records"),
            id=draft.id,
            type=draft.type,
            agent_id=agent,
            session_id=session_id,
            content=settled(draft.type, content, session_id=session_id, project=of_project),
            origin=draft.origin,
            client=draft.client,
            created_at=draft.created_at,
            recorded_at=now_ms,
            revision=1,
            client_key=draft.client_key,
            project=of_project,
        )
        return _indexed(StoredRecord(owner, record, draft.tokens, None))

    def _project_after(self, before: StoredRecord, edit: EditDraft) -> str | None:
        """The project that the record is of after the edit.

        Raises:
            InvalidInput: it should reach its whole project, and is of none.
        """
        content, session_id, project = edit.content, before.record.session_id, before.record.project
        reach = content.get("scope")
        if reach == Reach.PERSON:
            return None
        if session_id is None:
            project = self._state.add_project(before.owner, content.get("project"))
        elif reach != before.content.get("scope"):
            project = self._state.sessions[before.owner, session_id].project
        if reach == Reach.PROJECT and project is None and edit.type is EditType.UPDATE:
            raise InvalidInput(NO_PROJECT)
        return project

    def _with_client_key(
        self, owner: str, agent: str, session_id: str | None, draft: RecordDraft
    ) -> StoredRecord | None:
        """The record that was written with the draft's client_key."""
        if draft.client_key is None:
            return None
        for one in self._state.of_agent(owner, agent):
            record = one.record
            if (record.session_id, record.type, record.client_key) == (session_id, draft.type, draft.client_key):
                if record.text != draft.content["text"]:
                    raise ClientKeyReused(draft.client_key)
                return one
        return None

    def _refuse_erased(self, scope: Scope, draft: RecordDraft) -> None:
        text = draft.content["text"]
        for one in tombstones(self._state, scope, draft.type):
            if one.text == text:
                raise Conflict(
                    f"a {draft.type} with this text ({len(text):,} characters) was erased for good on "
                    f"{to_iso(one.purged_at)[:10]} and stays erased; nothing was written. Put it in other words if you "
                    "need it after all"
                )

    def _check_free(self, stored: StoredRecord, refusal: str | None = None) -> None:
        """Raise Conflict if another record has this id, or this part of a source in its project."""
        same_id = self._state.by_id(stored.record.id)
        part = _part(stored)
        others = [] if part is None else [one for one in self._state.records.values() if _part(one) == part]
        if any(one.record.key != stored.record.key for one in (*others, *([same_id] if same_id else ()))):
            is_moved = stored.record.key in self._state.records
            raise Conflict(
                refusal
                or (
                    f"the project has a document of the source {stored.content.get('source')!r} already; "
                    "forget or move that one first"
                    if is_moved
                    else "this id, or this part of the source, is stored already; update that record"
                )
            )

    def _check_cause(self, before: StoredRecord, cause: str | None) -> None:
        if cause is None or cause == before.content.get("caused_by"):
            return
        found: StoredRecord | None = self._cause(Scope(before.owner), cause)
        while found is not None:
            if found.record.key == before.record.key:
                raise Conflict(
                    f"{before.record.id} led to {cause}, so {cause} cannot be its cause; leave caused_by out"
                )
            found = self._state.by_id(found.content.get("caused_by", ""))

    def _cause(self, scope: Scope, record_id: str) -> StoredRecord:
        if self._record(scope.anywhere(), record_id) is None:
            raise RecordNotFound(f"no record {record_id!r} for caused_by; send the id of a record")
        return self._state.records[self._state.keys_by_id[record_id]]

    def _stored(self, record: MemoryRecord, *, is_revision_checked: bool) -> StoredRecord:
        found = self._state.records.get(record.key)
        if found is None or found.is_erased:
            raise RecordNotFound(f"{record.id} was erased; nothing was written")
        if is_revision_checked and found.record.revision != record.revision:
            raise RevisionConflict(record.id, record.revision, found.record.revision)
        return found

    def _count(self, before: StoredRecord, after: StoredRecord | None) -> None:
        """Update the session's counters. Forgotten records are not counted."""
        record = before.record
        was, is_now = not record.is_deleted, after is not None and not after.record.is_deleted
        records = is_now - was
        importance = (after.content["importance_score"] if after is not None and is_now else 0.0) - (
            before.content["importance_score"] if was else 0.0
        )
        if record.session_id is None or not (records or importance):
            return
        session = self._state.sessions[before.owner, record.session_id]
        changes: dict[str, Any] = {}
        if record.type is RecordType.MESSAGE:
            changes = {
                "hidden_count": session.hidden_count - records,
                "importance_sum": session.importance_sum + importance,
            }
        elif record.type is RecordType.PIN:
            changes = {"pin_count": session.pin_count + records}
        elif record.type is RecordType.SUMMARY:
            changes = {"summary_count": session.summary_count + records}
        self._state.update_session(before.owner, session.id, **changes)

    def _forget_model(self, erased: StoredRecord) -> None:
        """Let the session name another model, unless another of its messages named the same."""
        model = erased.content.get("model_id")
        session = self._state.sessions[erased.owner, erased.record.session_id or ""]
        if erased.record.type is RecordType.MESSAGE and model is not None and session.model == model:
            named = [one.content.get("model_id") for one in self._state.of_session(session, RecordType.MESSAGE)]
            newest = next((one for one in reversed(named) if one is not None), None)
            self._state.update_session(session.owner, session.id, model=newest, revision=session.revision)


def _indexed(stored: StoredRecord) -> StoredRecord:
    """The record with its terms, unless it is forgotten."""
    is_shown = not stored.record.is_deleted
    return replace(stored, indexed=index_text(stored.record.text, stored.name) if is_shown else None)


def _part(stored: StoredRecord) -> tuple[Any, ...] | None:
    """The part of a document's source that it is; None if it is none."""
    record, content = stored.record, stored.content
    source, place = content.get("source"), content.get("chunk_index")
    if record.type is not RecordType.DOCUMENT or source is None or place is None:
        return None
    return stored.owner, record.agent_id, record.project, source, place


def _tombstone(stored: StoredRecord, text: str, now_ms: int) -> StoredTombstone:
    record = stored.record
    return StoredTombstone(
        record_id=record.id,
        text=text,
        owner=stored.owner,
        type=record.type,
        key=record.key,
        seq=record.seq,
        client_key=record.client_key,
        created_at=record.created_at,
        purged_at=now_ms,
    )


def _stub(stored: StoredRecord, now_ms: int) -> StoredRecord:
    """What remains of an erased message or summary: its place, without text."""
    record = stored.record
    kept = (
        "importance_score",
        "visibility",
        "scope",
        *(_PLACE_OF_SUMMARY if record.type is RecordType.SUMMARY else ()),
    )
    content = {name: record.content[name] for name in kept if name in record.content}
    content |= {"text": "", DELETED_AT: record.content.get(DELETED_AT, now_ms)}
    stub = replace(record, content=content, revision=1, client_key=None, client=None, usage_count=0, last_used=None)
    return replace(stored, record=stub, tokens=0, indexed=None, is_erased=True)
