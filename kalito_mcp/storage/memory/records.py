"""Whole records of a store in memory, and what is known of erased ones. Implements `ports.records.RecordReader`."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from kalito_mcp.domain.archive import hashed_text
from kalito_mcp.domain.kinds import Kind
from kalito_mcp.domain.known import KnownRecord
from kalito_mcp.domain.memory_records import AUTO_KEY, MemoryRecord, StoredEdit
from kalito_mcp.domain.records import Origin, Reach, RecordType
from kalito_mcp.domain.scope import DEFAULT_AGENT, NO_LIMITS, PERSONAL, Scope
from kalito_mcp.errors import RecordNotFound
from kalito_mcp.ports.records import ErasedText, ForgottenValue, RecentWords, ScanCursor, ScannedRecord, Tombstone
from kalito_mcp.storage.memory.state import StoredRecord, Tables, is_of, is_within, made_of, reads

_MOST_EFFECTS: Final = 100
_AT_THE_END: Final = 6
"""Messages of a conversation. Items left open before them are often settled in them."""
_RECENT_PINS: Final = 500
_UNTRUSTED: Final = (Origin.TOOL, Origin.DOCUMENT, Origin.IMPORT)
_RECENT_RECORDS, _RECENT_MESSAGES, _RECENT_OF_ORIGIN = 2_000, 500, 200
_EVERY_TYPE: Final = frozenset(RecordType)


class RecordsRead(Tables):
    """`ports.records.RecordReader`."""

    async def record(self, scope: Scope, record_id: str) -> MemoryRecord | None:
        found = self._state.records.get(record_id)
        return None if found is None or not _is_named(scope, found) else self._whole([found])[0]

    async def list_records(
        self, scope: Scope, types: frozenset[RecordType], *, after: str | None = None, limit: int
    ) -> Sequence[MemoryRecord]:
        if after is not None and await self.record(scope, after) is None:
            raise RecordNotFound(f"no record {after!r} to continue after; list from the start")
        before_key = None if after is None else self._state.records[after].key
        found = (
            one
            for one in self._newest(scope, (types or _EVERY_TYPE) - {RecordType.MESSAGE})
            if (before_key is None or one.key < before_key)
            and scope.session in (None, one.session_id)
            and reads(scope, one.project)
        )
        return self._whole(islice(found, limit))

    async def document(self, scope: Scope, source: str) -> Sequence[MemoryRecord]:
        agent = self._state.agent(scope)
        found = (one for one in self._chunks(scope, source=source) if one.agent_id == agent)
        return self._whole(_in_order(one for one in found if is_of(scope, one.project)))

    async def of_source(self, scope: Scope, source: str) -> Sequence[MemoryRecord]:
        found = self._chunks(scope, source=source)
        return self._whole(one for one in found if scope.project is None or is_of(scope, one.project))

    async def sources(self, scope: Scope, prefix: str) -> Sequence[tuple[str, int]]:
        sizes: dict[str, int] = {}
        for one in self._newest(scope, {RecordType.DOCUMENT}):
            source = str(one.content.get("source", ""))
            if source.startswith(prefix) and is_of(scope, one.project):
                sizes[source] = sizes.get(source, 0) + len(one.text.encode())
        return sorted(sizes.items())

    async def parts(self, scope: Scope, document_id: str) -> Sequence[MemoryRecord]:
        found = self._chunks(scope, document_id=document_id)
        return self._whole(_in_order(one for one in found if _is_named(scope, one)))

    async def known(self, scope: Scope, *, limit: int, include_internal: bool = False) -> Sequence[KnownRecord]:
        superseding = self._state.superseding()
        found = [
            one
            for one in self._newest(scope)
            if one.reach is not Reach.SESSION
            and (one.reach is Reach.PERSON or scope.project in (None, one.project))
            and (include_internal or not one.is_internal)
            and one.id not in superseding
        ]
        best = sorted(found, key=lambda one: (-one.importance, -one.created_at))
        return [self._known(scope, one) for one in best[:limit]]

    async def left_open(self, scope: Scope, *, limit: int) -> Sequence[KnownRecord]:
        superseding = self._state.superseding()
        found = [
            one
            for one in islice(self._newest(scope, {RecordType.PIN}), _RECENT_PINS)
            if one.content.get("kind") in (Kind.OPEN, Kind.OUTCOME)
            and one.reach is Reach.SESSION
            and is_of(scope, one.project)
            and one.id not in superseding
            and one.created_at >= self._last_messages_from(one)
        ]
        return [self._known(scope, one) for one in sorted(found, key=lambda one: -one.created_at)[:limit]]

    async def superseded(self, scope: Scope, record_ids: Sequence[str]) -> Mapping[str, tuple[str, int]]:
        superseding = self._state.superseding()
        by = {named: [one for one in superseding.get(named, ()) if is_within(scope, one)] for named in record_ids}
        newest = {named: max(found, key=lambda one: (one.created_at, one.key)) for named, found in by.items() if found}
        return {named: (one.id, one.created_at) for named, one in newest.items()}

    async def same_words(self, scope: Scope, record_type: RecordType, text: str) -> MemoryRecord | None:
        same = (one for one in self._newest(scope, {record_type}) if one.text == text and one.reach is Reach.SESSION)
        own = (one for one in same if is_of(scope, one.project) and not _is_automatic(one))
        return next((one for one in self._whole(own) if one.session_id == scope.session), None)

    async def same_known(self, scope: Scope, reach: Reach, text: str) -> MemoryRecord | None:
        same = (one for one in self._newest(scope) if one.text == text and one.reach is reach)
        known = (one for one in same if reach is Reach.PERSON or is_of(scope, one.project))
        return next(iter(self._whole(one for one in known if not _is_automatic(one))), None)

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
        summaries = [one for one in self._beside(message_id, RecordType.SUMMARY) if one.purged_at is None]
        seq = (self._state.records[message_id].seq or 0) if summaries else 0
        over = [one for one in summaries if one.content["start_seq"] <= seq <= one.content["end_seq"]]
        return self._whole(sorted(over, key=lambda one: one.content["level"]))

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

    async def erased_texts(
        self, scope: Scope, record_type: RecordType, texts: Collection[str], client_keys: Collection[str] = ()
    ) -> Sequence[ErasedText]:
        by_hash, keys_by_hash = self._hashed(texts), self._hashed(client_keys)
        erased = [one for one in self._tombstones(scope) if one["text_hash"] in by_hash and one["type"] == record_type]
        return [
            ErasedText(
                *(by_hash[one["text_hash"]], one["number"] or 0, one["seq"] or 0),
                *(keys_by_hash.get(one["client_key_hash"]), one["created_at"], one["purged_at"]),
            )
            for one in sorted(erased, key=lambda one: (one["purged_at"], one["record_id"]))
        ]

    async def tombstone(self, scope: Scope, record_id: str) -> Tombstone | None:
        found = (one for one in self._tombstones(scope) if one["record_id"] == record_id)
        return next((Tombstone(record_id, one["purged_at"]) for one in found), None)

    async def damaged(self, record_ids: Sequence[str]) -> Sequence[str]:
        del record_ids
        return []

    async def erased(self, scope: Scope, record_ids: Sequence[str]) -> frozenset[str]:
        return frozenset(record_ids) & {one["record_id"] for one in self._tombstones(Scope(scope.owner))}

    async def scan(
        self, scope: Scope, *, after: ScanCursor | None, limit: int, has_forgotten: bool = False
    ) -> Sequence[ScannedRecord]:
        found = (
            one
            for one in self._state.of_agent(scope.owner, self._state.agent(scope))
            if one.key > (after or 0)
            and is_within(scope, one)
            and reads(scope, one.project)
            and one.purged_at is None
            and (has_forgotten or not one.is_deleted)
        )
        return [self._scanned(one, has_forgotten=has_forgotten) for one in islice(found, limit)]

    async def has_forgotten_values(self) -> bool:
        return bool(self._state.forgotten)

    async def forgotten_values(self, scope: Scope, keys: Collection[str]) -> Mapping[str, ForgottenValue]:
        found: dict[str, ForgottenValue] = {}
        for place, key in self._forgotten(scope, keys).items():
            value, other = self._state.forgotten[place], found.get(key, ForgottenValue(0, is_erased=False))
            at, is_erased = max(value.forgotten_at, other.forgotten_at), value.is_erased or other.is_erased
            found[key] = ForgottenValue(at, is_erased)
        return found

    def _forgotten(self, scope: Scope, keys: Collection[str]) -> dict[tuple[str, str, str | None, str], str]:
        """Where these keys are forgotten for the scope, each with the key."""
        by_hash, agent = self._hashed(keys), scope.agent or DEFAULT_AGENT
        project = None if scope.project == PERSONAL else scope.project
        return {
            place: by_hash[place[3]]
            for place in self._state.forgotten
            if place[3] in by_hash
            and place[:2] == (scope.owner, agent)
            and (project is None or place[2] in (None, project))
            and scope.limits.reaches(agent, place[2])
        }

    def _hashed(self, texts: Collection[str]) -> dict[str, str]:
        return {hashed_text(self._state.secret, text): text for text in texts}

    def _tombstones(self, scope: Scope) -> Iterator[Mapping[str, Any]]:
        """The tombstones of the owner. Where an erased record was is known of messages and summaries alone, so within
        limits there are no others."""
        for (owner, record_id, _), one in self._state.tombstones.items():
            left = self._state.records.get(record_id)
            if owner == scope.owner and (scope.limits == NO_LIMITS or (left and is_within(scope, left))):
                yield one

    def _newest(self, scope: Scope, types: Collection[RecordType] = _EVERY_TYPE) -> Iterator[StoredRecord]:
        """The records of the scope's agent within the limits, newest first, without forgotten ones."""
        theirs = self._state.of_agent(scope.owner, self._state.agent(scope))
        return (one for one in theirs[::-1] if one.type in types and not one.is_deleted and is_within(scope, one))

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
        agent = scope.agent or DEFAULT_AGENT
        for one in self._state.records.values():
            is_there = (one.owner, one.type, one.session_id) == (scope.owner, record_type, scope.session)
            if is_there and one.client_key is not None and (scope.session is not None or one.agent_id == agent):
                yield one

    def _last_messages_from(self, stored: StoredRecord) -> int:
        """When the last messages of its session begin; 0 if it has no earlier ones."""
        messages = [one for one in self._beside(stored.id, RecordType.MESSAGE) if not one.is_deleted]
        return messages[-_AT_THE_END].created_at if len(messages) >= _AT_THE_END else 0

    def _whole(self, stored: Iterable[StoredRecord]) -> list[StoredRecord]:
        """The records with what they led to."""
        effects: dict[str, list[str]] = {}
        for one in self._state.records.values():
            effects.setdefault(one.content.get("caused_by", ""), []).append(one.id)
        return [replace(one, led_to=tuple(effects.get(one.id, ())[:_MOST_EFFECTS])) for one in stored]

    def _known(self, scope: Scope, stored: StoredRecord) -> KnownRecord:
        kind = stored.content.get("kind") if stored.type is RecordType.PIN else None
        session = self._state.session(Scope(scope.owner, session=stored.session_id, limits=scope.limits))
        place = {"record_id": stored.id, "session_id": session and session.id}
        return made_of(KnownRecord, stored, **place, kind=None if kind is None else Kind(kind))

    def _scanned(self, stored: StoredRecord, *, has_forgotten: bool) -> ScannedRecord:
        edits = self._state.edits.get(stored.id, ()) if has_forgotten else ()
        return made_of(
            ScannedRecord,
            stored,
            cursor=ScanCursor(stored.key),
            earlier_texts="\n".join(one.before["text"] for one in edits if "text" in one.before) or None,
            tags="\n".join(stored.content.get("tags", ())) or None,
            seq=stored.content.get("start_seq", stored.seq),
            end_seq=stored.content.get("end_seq"),
        )


def _is_named(scope: Scope, stored: StoredRecord) -> bool:
    """Whether the scope reaches the record by its id."""
    is_meant = scope.agent in (None, stored.agent_id) and scope.session in (None, stored.session_id)
    return is_meant and is_within(scope, stored) and stored.purged_at is None


def _is_automatic(stored: StoredRecord) -> bool:
    return (stored.client_key or "").startswith(AUTO_KEY)


def _in_order(stored: Iterable[StoredRecord]) -> list[StoredRecord]:
    """The chunks of a document in order."""
    return sorted(stored, key=lambda one: one.content.get("chunk_index", -1))
