"""Changes whole records of a store in memory. Implements `ports.records.RecordWriter`."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from kalito_mcp.domain.archive import hashed_text
from kalito_mcp.domain.memory_records import DELETED_AT, EditDraft, MemoryRecord, RecordDraft, with_changes
from kalito_mcp.domain.records import Reach, RecordType
from kalito_mcp.domain.scope import DEFAULT_AGENT, PERSONAL, Scope
from kalito_mcp.errors import RecordNotFound, RevisionConflict
from kalito_mcp.ports.records import IndexedPair
from kalito_mcp.storage.memory.records import RecordsRead
from kalito_mcp.storage.memory.state import StoredForgottenValue, StoredRecord, picked, settled
from kalito_mcp.text.analysis import IndexedText

_RANGE_OF_SUMMARY: Final = ("level", "start_seq", "end_seq")
_LEFT_OF_ERASED: Final = (
    *("importance_score", "visibility", "scope", *_RANGE_OF_SUMMARY),
    *("start_message_id", "end_message_id", "started_at", "ended_at", "method"),
)


class Records(RecordsRead):
    """`ports.records.RecordWriter`."""

    async def add_records(self, scope: Scope, drafts: Sequence[RecordDraft], *, now_ms: int) -> Sequence[MemoryRecord]:
        if not drafts:
            return []
        state, session = self._state, self._state.session(scope)
        agent = session.agent if session else scope.agent or DEFAULT_AGENT
        state.add_agent(scope.owner, agent)
        project = session.project if session else state.add_project(scope.owner, scope.project)
        place = {"agent_id": agent, "session_id": session and session.id, "project": project, "recorded_at": now_ms}
        kept = ("id", "origin", "client", "created_at", "client_key", "tokens")
        contents = [with_changes(draft.content, {DELETED_AT: None}) for draft in drafts]
        added = [
            state.add(scope.owner, draft.type, content, **place, **picked(draft, *kept))
            for draft, content in zip(drafts, contents, strict=True)
        ]
        if session is not None:
            state.update_session(session, updated_at=max(session.updated_at, now_ms))
        return self._whole(added)

    async def change(
        self, record: MemoryRecord, edit: EditDraft, *, indexed: IndexedPair | None = None
    ) -> MemoryRecord:
        before = self._stored(record, is_revision_checked=True)
        project, given = self._project_after(before, edit.content), edit.content
        if before.type is RecordType.SUMMARY:
            given = {**given, **{name: before.content[name] for name in _RANGE_OF_SUMMARY}}
        content = settled(before.type, given, session_id=before.session_id, project=project)
        read = indexed and indexed[1]
        after = replace(before, content=content, project=project, tokens=edit.tokens, indexed=read)
        after = self._state.change(before, after, edit)
        self._count_again(after)
        return self._whole([after])[0]

    async def rename_project(self, owner: str, old: str, new: str) -> None:
        state = self._state
        key = state.projects.pop((owner, old))
        state.projects.setdefault((owner, new), key)
        for session in [one for one in state.sessions.values() if (one.owner, one.project) == (owner, old)]:
            state.update_session(session, project=new)
        for one in [one for one in state.records.values() if (one.owner, one.project) == (owner, old)]:
            state.put(one.with_content({} if one.session_id else {"project": new}, project=new))
        for place in [one for one in state.forgotten if one[0] == owner and one[2] == old]:
            state.forgotten[(*place[:2], new, place[3])] = state.forgotten.pop(place)

    async def drop_history(self, record: MemoryRecord) -> MemoryRecord:
        stored = self._stored(record, is_revision_checked=True)
        self._state.edits.pop(stored.id, None)
        return self._whole([stored])[0]

    async def purge(
        self,
        record: MemoryRecord,
        *,
        now_ms: int,
        texts: Sequence[str] = (),
        text_keys: Sequence[str] = (),
        indexed: IndexedText | None = None,
    ) -> None:
        del indexed
        state, before = self._state, self._stored(record, is_revision_checked=False)
        self._add_tombstones(before, texts or (before.id,), now_ms)
        state.owed_erasures[state.next_key("erasures")] = frozenset(text_keys)
        for effect in [one for one in state.records.values() if one.content.get("caused_by") == before.id]:
            state.put(effect.with_content({"caused_by": None}))
        state.edits.pop(before.id, None)
        for place in [place for place in state.feedback if place[0] == before.id]:
            del state.feedback[place]
        if before.type in (RecordType.MESSAGE, RecordType.SUMMARY):
            state.put(_stub(before, now_ms))
        else:
            state.remove(before)
        self._count_again(before)

    async def forget_values(self, scope: Scope, keys: Collection[str], *, now_ms: int, is_erased: bool = False) -> None:
        project = None if scope.project == PERSONAL else scope.project
        for value_hash in self._hashed(keys):
            place = (scope.owner, scope.agent or DEFAULT_AGENT, project, value_hash)
            known = self._state.forgotten.get(place)
            key = known.key if known else self._state.next_key("forgotten")
            is_gone = is_erased or (known is not None and known.is_erased)
            self._state.forgotten[place] = StoredForgottenValue(now_ms, is_gone, key)

    async def bring_back_values(self, scope: Scope, keys: Collection[str]) -> None:
        for place in self._forgotten(scope, keys):
            del self._state.forgotten[place]

    async def count_uses(self, uses: Mapping[str, int], *, used_at: int) -> None:
        for record_id, count in uses.items():
            found = self._state.records.get(record_id)
            if found is not None and found.purged_at is None:
                last_used = max(used_at, found.last_used or used_at)
                used = replace(found, usage_count=found.usage_count + count, last_used=last_used)
                self._state.put(used)

    def finish_erasures(self, last: int) -> None:
        """Take the erasures up to this one off the list."""
        for key in [key for key in self._state.owed_erasures if key <= last]:
            del self._state.owed_erasures[key]

    def _project_after(self, before: StoredRecord, content: Mapping[str, Any]) -> str | None:
        """The project that the record is of after a change of its content."""
        reach = content.get("scope")
        if reach == Reach.PERSON:
            return None
        if before.session_id is None:
            return self._state.add_project(before.owner, content.get("project"))
        is_moved = reach != before.content.get("scope")
        return self._state.sessions[before.owner, before.session_id].project if is_moved else before.project

    def _stored(self, record: MemoryRecord, *, is_revision_checked: bool) -> StoredRecord:
        found = self._state.records.get(record.id)
        if found is None or found.purged_at is not None:
            raise RecordNotFound(f"{record.id} was erased; nothing was written")
        if is_revision_checked and found.revision != record.revision:
            raise RevisionConflict(record.id, record.revision, found.revision)
        return found

    def _count_again(self, changed: StoredRecord) -> None:
        """Update the counters of a changed record's session."""
        if changed.session_id is not None:
            self._state.update_session(self._state.sessions[changed.owner, changed.session_id])

    def _add_tombstones(self, stored: StoredRecord, texts: Sequence[str], now_ms: int) -> None:
        number = stored.key if stored.type is RecordType.MESSAGE else None
        client_key_hash = None if stored.client_key is None else hashed_text(self._state.secret, stored.client_key)
        said = {**picked(stored, "type", "created_at"), "record_id": stored.id, "number": number, "seq": stored.seq}
        for text_hash in self._hashed(texts):
            made = {**said, "text_hash": text_hash, "client_key_hash": client_key_hash, "purged_at": now_ms}
            self._state.tombstones[stored.owner, stored.id, text_hash] = made


def _stub(stored: StoredRecord, now_ms: int) -> StoredRecord:
    """What remains of an erased message or summary: its place, without text."""
    content = {name: stored.content[name] for name in _LEFT_OF_ERASED if name in stored.content}
    content |= {"text": "", DELETED_AT: stored.content.get(DELETED_AT, now_ms)}
    bare: dict[str, Any] = dict.fromkeys(("client_key", "client", "last_used", "indexed"))
    return replace(stored, **bare, content=content, revision=1, tokens=0, usage_count=0, purged_at=now_ms)
