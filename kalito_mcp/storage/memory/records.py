"""Whole records of a store in memory, and what is known of erased ones. Implements `ports.records`."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from kalito_mcp.domain.kinds import OF_ITS_SESSION, Kind
from kalito_mcp.domain.known import KnownRecord
from kalito_mcp.domain.memory_records import AUTO_KEY, DELETED_AT, EditDraft, MemoryRecord, RecordDraft, StoredEdit
from kalito_mcp.domain.records import Origin, Reach, RecordType
from kalito_mcp.domain.scope import DEFAULT_AGENT, Scope
from kalito_mcp.errors import RecordNotFound, RevisionConflict
from kalito_mcp.ports.records import IndexedPair, RecentWords, ScanCursor, ScannedRecord
from kalito_mcp.storage.memory.forgotten_values import ForgottenValues
from kalito_mcp.storage.memory.state import StoredRecord, is_of, is_within, made_of, picked, reads, settled
from kalito_mcp.text.analysis import IndexedText

_MOST_EFFECTS: Final = 100
_AT_THE_END: Final = 6
"""Messages of a conversation. Items left open before them are often settled in them."""
_RECENT_PINS: Final = 500
_UNTRUSTED: Final = (Origin.TOOL, Origin.DOCUMENT, Origin.IMPORT)
_RECENT_RECORDS, _RECENT_MESSAGES, _RECENT_OF_ORIGIN = 2_000, 500, 200
_EVERY_TYPE: Final = frozenset(RecordType)
_RANGE_OF_SUMMARY: Final = ("level", "start_seq", "end_seq")
_PLACE_OF_SUMMARY: Final = ("start_message_id", "end_message_id", "started_at", "ended_at", "method")
_LEFT_OF_ERASED: Final = ("importance_score", "visibility", "scope", *_RANGE_OF_SUMMARY, *_PLACE_OF_SUMMARY)


class Records(ForgottenValues):
    """`ports.records.RecordWriter`."""

    async def record(self, scope: Scope, record_id: str) -> MemoryRecord | None:
        found = self._state.records.get(record_id)
        return None if found is None or not _is_named(scope, found) else self._whole([found])[0]

    async def list_records(
        self, scope: Scope, types: frozenset[RecordType], *, after: str | None = None, limit: int
    ) -> Sequence[MemoryRecord]:
        if after is not None and await self.record(scope, after) is None:
            raise RecordNotFound(f"no record {after!r} to continue after; list from the start")
        before_key = None if after is None else self._state.records[after].key
        newest = self._newest(scope, (types or _EVERY_TYPE) - {RecordType.MESSAGE})
        found = (one for one in newest if scope.session in (None, one.session_id) and reads(scope, one.project))
        return self._whole(islice((one for one in found if before_key is None or one.key < before_key), limit))

    async def document(self, scope: Scope, source: str) -> Sequence[MemoryRecord]:
        agent = self._state.agent(scope)
        found = (one for one in self._chunks(scope, source=source) if one.agent_id == agent)
        return self._whole(sorted((one for one in found if is_of(scope, one.project)), key=_part))

    async def of_source(self, scope: Scope, source: str) -> Sequence[MemoryRecord]:
        found = self._chunks(scope, source=source)
        return self._whole(one for one in found if scope.project is None or is_of(scope, one.project))

    async def sources(self, scope: Scope, prefix: str) -> Sequence[tuple[str, int]]:
        sizes = Counter[str]()
        for one in self._newest(scope, {RecordType.DOCUMENT}):
            source = str(one.content.get("source", ""))
            if source.startswith(prefix) and is_of(scope, one.project):
                sizes[source] += len(one.text.encode())
        return sorted(sizes.items())

    async def parts(self, scope: Scope, document_id: str) -> Sequence[MemoryRecord]:
        found = self._chunks(scope, document_id=document_id)
        return self._whole(sorted((one for one in found if _is_named(scope, one)), key=_part))

    async def known(self, scope: Scope, *, limit: int, include_internal: bool = False) -> Sequence[KnownRecord]:
        theirs = [
            one for one in self._newest(scope) if one.reach is Reach.PERSON or scope.project in (None, one.project)
        ]
        known = [one for one in theirs if one.reach is not Reach.SESSION and (include_internal or not one.is_internal)]
        best = sorted(self.standing(known), key=lambda one: (-one.importance, -one.created_at))
        return [self.known_record(scope, one) for one in best[:limit]]

    async def left_open(self, scope: Scope, *, limit: int) -> Sequence[KnownRecord]:
        pins = islice(self._newest(scope, {RecordType.PIN}), _RECENT_PINS)
        theirs = [one for one in pins if one.reach is Reach.SESSION and is_of(scope, one.project)]
        left = [one for one in theirs if one.content.get("kind") in OF_ITS_SESSION]
        at_the_end = [one for one in self.standing(left) if one.created_at >= self.last_messages_from(one)]
        return [self.known_record(scope, one) for one in sorted(at_the_end, key=lambda one: -one.created_at)[:limit]]

    async def statements(
        self, scope: Scope, *, lasting: int, of_sessions: int, forgotten: int
    ) -> Sequence[MemoryRecord]:
        theirs = self._state.of_agent(scope.owner, self._state.agent(scope))[::-1]
        said = [one for one in theirs if one.type is RecordType.PIN or one.reach is not Reach.SESSION]
        read = [one for one in said if is_within(scope, one) and reads(scope, one.project) and not one.purged_at]
        current = [one for one in read if not one.is_deleted]
        found = [one for one in current if one.reach is not Reach.SESSION][:lasting]
        found += [one for one in current if one.reach is Reach.SESSION][:of_sessions]
        found += [one for one in read if one.is_deleted][:forgotten]
        return self._whole(sorted(found, key=lambda one: -one.key))

    async def superseded(self, scope: Scope, record_ids: Sequence[str]) -> Mapping[str, tuple[str, int]]:
        superseding = self._state.superseding()
        by = {named: [one for one in superseding.get(named, ()) if is_within(scope, one)] for named in record_ids}
        newest = {named: max(found, key=lambda one: (one.created_at, one.key)) for named, found in by.items() if found}
        return {named: (one.id, one.created_at) for named, one in newest.items()}

    async def same_words(self, scope: Scope, record_type: RecordType, text: str) -> MemoryRecord | None:
        same = self._same(self._newest(scope, {record_type}), Reach.SESSION, text)
        own = (one for one in same if is_of(scope, one.project) and one.session_id == scope.session)
        return next(iter(self._whole(own)), None)

    async def same_known(self, scope: Scope, reach: Reach, text: str) -> MemoryRecord | None:
        same = self._same(self._newest(scope), reach, text)
        known = (one for one in same if reach is Reach.PERSON or is_of(scope, one.project))
        return next(iter(self._whole(known)), None)

    async def recent_words(self, scope: Scope, *, most_chars: int) -> Sequence[RecentWords]:
        session = self._state.sessions.get((scope.owner, scope.session or ""))
        agent = session.agent if session else self._state.agent(scope)
        recent = self._state.of_agent(scope.owner, agent)[-_RECENT_RECORDS:]
        recent += self._state.of_session(session, RecordType.MESSAGE)[-_RECENT_MESSAGES:] if session else []
        newest = sorted({one.key: one for one in recent}.items(), reverse=True)
        found: list[RecentWords] = []
        for origins in (_UNTRUSTED, (Origin.USER,)):
            said = (one for _, one in newest if one.origin in origins and not one.is_deleted)
            reached = (one for one in islice(said, _RECENT_OF_ORIGIN) if is_within(scope, one))
            found += [RecentWords(one.id, one.text[:most_chars], one.origin) for one in reached]
        return found

    async def pins_of(self, record: MemoryRecord) -> Sequence[MemoryRecord]:
        pins = self._beside(record.id, RecordType.PIN)
        return self._whole(one for one in pins if one.content.get("source_message_id") == record.id)

    async def summaries_over(self, message_id: str) -> Sequence[MemoryRecord]:
        summaries = self._beside(message_id, RecordType.SUMMARY)
        seq = (self._state.records[message_id].seq or 0) if summaries else 0
        over = [one for one in summaries if one.content["start_seq"] <= seq <= one.content["end_seq"]]
        return self._whole(sorted((one for one in over if not one.purged_at), key=lambda one: one.content["level"]))

    async def edits(self, record: MemoryRecord) -> Sequence[StoredEdit]:
        return self._state.edits.get(record.id, ())

    async def causes(self, record: MemoryRecord) -> frozenset[str]:
        found: set[str] = set()
        cause = record.content.get("caused_by")
        while cause is not None and cause not in found:
            found.add(cause)
            cause = self._state.records[cause].content.get("caused_by")
        return frozenset(found)

    async def of_client_keys(
        self, scope: Scope, record_type: RecordType, client_keys: Collection[str]
    ) -> Sequence[MemoryRecord]:
        return self._whole(one for one in self._keyed(scope, record_type) if one.client_key in client_keys)

    async def client_keys(self, scope: Scope, record_type: RecordType, prefix: str) -> Sequence[str]:
        keys = [one.client_key or "" for one in self._keyed(scope, record_type)]
        return [key for key in keys if key.startswith(prefix)]

    async def damaged(self, scope: Scope, record_ids: Sequence[str]) -> Sequence[str]:
        del scope, record_ids
        return []

    async def scan(
        self, scope: Scope, *, after: ScanCursor | None, limit: int, has_forgotten: bool = False
    ) -> Sequence[ScannedRecord]:
        theirs = self._state.of_agent(scope.owner, self._state.agent(scope))
        within = [one for one in theirs if is_within(scope, one) and reads(scope, one.project) and not one.purged_at]
        shown = [one for one in within if has_forgotten or not one.is_deleted]
        found = [one for one in shown if one.key > (after or 0)][:limit]
        edits = self._state.edits if has_forgotten else {}
        earlier = {
            one.id: [said.before["text"] for said in edits.get(one.id, ()) if "text" in said.before] for one in found
        }
        return [
            made_of(
                ScannedRecord,
                one,
                cursor=ScanCursor(one.key),
                earlier_texts="\n".join(earlier[one.id]) or None,
                tags="\n".join(one.content.get("tags", ())) or None,
                seq=one.content.get("start_seq", one.seq),
                end_seq=one.content.get("end_seq"),
            )
            for one in found
        ]

    def _newest(self, scope: Scope, types: Collection[RecordType] = _EVERY_TYPE) -> Iterator[StoredRecord]:
        """The records of the scope's agent within the limits, newest first, without forgotten ones."""
        theirs = self._state.of_agent(scope.owner, self._state.agent(scope))
        return (one for one in theirs[::-1] if one.type in types and not one.is_deleted and is_within(scope, one))

    def _same(self, stored: Iterable[StoredRecord], reach: Reach, text: str) -> Iterator[StoredRecord]:
        """Those with this reach and text that were not made automatically."""
        same = (one for one in stored if one.text == text and one.reach is reach)
        return (one for one in same if not (one.client_key or "").startswith(AUTO_KEY))

    def standing(self, stored: Iterable[StoredRecord]) -> list[StoredRecord]:
        """Those that nothing supersedes."""
        superseding = self._state.superseding()
        return [one for one in stored if one.id not in superseding]

    def _chunks(self, scope: Scope, **named: str) -> Iterator[StoredRecord]:
        """The chunks of documents within the limits that have these fields."""
        chunks = (one for one in self._state.records.values() if one.type is RecordType.DOCUMENT)
        return (one for one in chunks if is_within(scope, one) and named.items() <= one.content.items())

    def _beside(self, record_id: str, record_type: RecordType) -> Sequence[StoredRecord]:
        """The records of the type in the record's session."""
        stored = self._state.records.get(record_id)
        session = stored and self._state.sessions.get((stored.owner, stored.session_id or ""))
        return self._state.of_session(session, record_type) if session else []

    def _keyed(self, scope: Scope, record_type: RecordType) -> Iterator[StoredRecord]:
        """The records of this type with a client key, in the session, or without one in the agent outside of them."""
        place, agent = (scope.owner, record_type, scope.session), scope.agent or DEFAULT_AGENT
        found = (one for one in self._state.records.values() if (one.owner, one.type, one.session_id) == place)
        return (one for one in found if one.client_key and (scope.session is not None or one.agent_id == agent))

    def last_messages_from(self, stored: StoredRecord) -> int:
        """When the last messages of its session begin; 0 if it has no earlier ones."""
        messages = [one for one in self._beside(stored.id, RecordType.MESSAGE) if not one.is_deleted]
        return messages[-_AT_THE_END].created_at if len(messages) >= _AT_THE_END else 0

    def _whole(self, stored: Iterable[StoredRecord]) -> list[StoredRecord]:
        """The records with what they led to."""
        effects: dict[str, list[str]] = {}
        for one in self._state.records.values():
            effects.setdefault(one.content.get("caused_by", ""), []).append(one.id)
        return [replace(one, led_to=tuple(effects.get(one.id, ())[:_MOST_EFFECTS])) for one in stored]

    def known_record(self, scope: Scope, stored: StoredRecord) -> KnownRecord:
        """The record as what is known. Its session is named if it is within the limits."""
        kind = stored.content.get("kind") if stored.type is RecordType.PIN else None
        session = self._state.session(Scope(scope.owner, session=stored.session_id, limits=scope.limits))
        place = {"record_id": stored.id, "session_id": session and session.id}
        return made_of(KnownRecord, stored, **place, kind=None if kind is None else Kind(kind))

    async def add_records(self, scope: Scope, drafts: Sequence[RecordDraft], *, now_ms: int) -> Sequence[MemoryRecord]:
        if not drafts:
            return []
        state, session = self._state, self._state.session(scope)
        agent = session.agent if session else scope.agent or DEFAULT_AGENT
        state.add_agent(scope.owner, agent)
        project = session.project if session else state.add_project(scope.owner, scope.project)
        place = {"agent_id": agent, "session_id": session and session.id, "project": project, "recorded_at": now_ms}
        kept = ("id", "origin", "client", "created_at", "client_key", "tokens")
        added = [
            state.add(scope.owner, draft.type, {**draft.content, DELETED_AT: None}, **place, **picked(draft, *kept))
            for draft in drafts
        ]
        if session is not None:
            state.update_session(scope.owner, session.id, updated_at=max(session.updated_at, now_ms))
        return self._whole(added)

    async def change(
        self, record: MemoryRecord, edit: EditDraft, *, indexed: IndexedPair | None = None
    ) -> MemoryRecord:
        before = self._stored(record, is_revision_checked=True)
        project, given = self._project_after(before, edit.content), edit.content
        if before.type is RecordType.SUMMARY:
            given = {**given, **{name: before.content[name] for name in _RANGE_OF_SUMMARY}}
        content = settled(before.type, given, before.session_id, project)
        after = replace(before, content=content, project=project, tokens=edit.tokens, indexed=indexed and indexed[1])
        after = self._state.change(before, after, edit)
        self._state.update_session(after.owner, after.session_id)
        return self._whole([after])[0]

    async def rename_project(self, owner: str, old: str, new: str) -> None:
        state = self._state
        key = state.projects.pop((owner, old))
        state.projects.setdefault((owner, new), key)
        for session in [one for one in state.sessions.values() if (one.owner, one.project) == (owner, old)]:
            state.update_session(owner, session.id, project=new)
        for one in [one for one in state.records.values() if (one.owner, one.project) == (owner, old)]:
            state.put(one.with_content({} if one.session_id else {"project": new}, project=new))
        for place in [one for one in state.forgotten if one[0] == owner and one[2] == old]:
            state.forgotten[(*place[:2], new, place[3])] = state.forgotten.pop(place)
        for entry in [entry for entry, one in state.given.items() if (entry[0], one.project) == (owner, old)]:
            state.given[entry] = replace(state.given[entry], project=new)

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
        number = before.key if before.type is RecordType.MESSAGE else None
        [key_hash] = self._hashed([before.client_key]) if before.client_key else [None]
        said = {**picked(before, "type", "seq", "created_at"), "record_id": before.id, "number": number}
        for text_hash in self._hashed(texts or [before.id]):
            made = {**said, "text_hash": text_hash, "client_key_hash": key_hash, "purged_at": now_ms}
            state.tombstones[before.owner, before.id, text_hash] = made
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
        state.update_session(before.owner, before.session_id)

    async def count_uses(self, owner: str, uses: Mapping[str, int], *, used_at: int) -> None:
        for record_id, count in uses.items():
            found = self._state.records.get(record_id)
            if found is not None and found.owner == owner and found.purged_at is None:
                last_used = max(used_at, found.last_used or used_at)
                used = replace(found, usage_count=found.usage_count + count, last_used=last_used)
                self._state.put(used)

    def _project_after(self, before: StoredRecord, content: Mapping[str, Any]) -> str | None:
        """The project that the record is of after a change of its content."""
        if content.get("scope") == Reach.PERSON:
            return None
        if before.session_id is None:
            return self._state.add_project(before.owner, content.get("project"))
        is_moved = content.get("scope") != before.content.get("scope")
        return self._state.sessions[before.owner, before.session_id].project if is_moved else before.project

    def _stored(self, record: MemoryRecord, *, is_revision_checked: bool) -> StoredRecord:
        found = self._state.records.get(record.id)
        if found is None or found.purged_at is not None:
            raise RecordNotFound(f"{record.id} was erased; nothing was written")
        if is_revision_checked and found.revision != record.revision:
            raise RevisionConflict(record.id, record.revision, found.revision)
        return found


def _is_named(scope: Scope, stored: StoredRecord) -> bool:
    """Whether the scope reaches the record by its id."""
    is_meant = scope.agent in (None, stored.agent_id) and scope.session in (None, stored.session_id)
    return is_meant and is_within(scope, stored) and stored.purged_at is None


def _part(stored: StoredRecord) -> int:
    return int(stored.content.get("chunk_index", -1))


def _stub(stored: StoredRecord, now_ms: int) -> StoredRecord:
    """What remains of an erased message or summary: its place, without text."""
    content = {name: stored.content[name] for name in _LEFT_OF_ERASED if name in stored.content}
    content |= {"text": "", DELETED_AT: stored.content.get(DELETED_AT, now_ms)}
    bare: dict[str, Any] = dict.fromkeys(("client_key", "client", "last_used", "indexed"))
    return replace(stored, **bare, content=content, revision=1, tokens=0, usage_count=0, purged_at=now_ms)
