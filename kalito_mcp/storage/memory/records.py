"""Whole records of a store in memory, and what is known of erased ones. Implements `ports.records.RecordReader`."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from kalito_mcp.domain.kinds import Kind
from kalito_mcp.domain.known import KnownRecord
from kalito_mcp.domain.memory_records import AUTO_KEY, MemoryRecord, StoredEdit
from kalito_mcp.domain.records import Origin, Reach, RecordType
from kalito_mcp.domain.scope import DEFAULT_AGENT, NO_LIMITS, PERSONAL, Scope
from kalito_mcp.errors import RecordNotFound
from kalito_mcp.ports.records import ForgottenValue, RecentWords, ScannedRecord, Tombstone, Unswept
from kalito_mcp.storage.memory.state import State, StoredRecord, StoredTombstone, is_of, is_within, reads

_MOST_EFFECTS: Final = 100
_AT_THE_END: Final = 6
"""Messages of a conversation. Items left open before them are often settled in them."""
_RECENT_PINS: Final = 500
_UNTRUSTED: Final = (Origin.TOOL, Origin.DOCUMENT, Origin.IMPORT)
_RECENT_RECORDS, _RECENT_MESSAGES, _RECENT_OF_ORIGIN = 2_000, 500, 200
_EVERY_TYPE: Final = frozenset(RecordType)


class RecordsRead:
    """`ports.records.RecordReader`."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def record(self, scope: Scope, record_id: str) -> MemoryRecord | None:
        return self._record(scope, record_id)

    async def list_records(
        self, scope: Scope, types: frozenset[RecordType], *, after: str | None = None, limit: int
    ) -> Sequence[MemoryRecord]:
        last = None if after is None else self._record(scope, after)
        if after is not None and last is None:
            raise RecordNotFound(f"no record {after!r} to continue after; list from the start")
        found = (
            one
            for one in self._newest(scope, (types or _EVERY_TYPE) - {RecordType.MESSAGE})
            if (last is None or one.record.key < last.key)
            and scope.session in (None, one.record.session_id)
            and reads(scope, one.record.project)
        )
        return self._whole(islice(found, limit))

    async def document(self, scope: Scope, source: str) -> Sequence[MemoryRecord]:
        agent = self._state.agent(scope)
        found = (one for one in self._chunks(scope, source=source) if one.record.agent_id == agent)
        return self._whole(_in_order(one for one in found if is_of(scope, one.record.project)))

    async def of_source(self, scope: Scope, source: str) -> Sequence[MemoryRecord]:
        found = self._chunks(scope, source=source)
        return self._whole(one for one in found if scope.project is None or is_of(scope, one.record.project))

    async def sources(self, scope: Scope, prefix: str) -> Sequence[tuple[str, int]]:
        sizes: dict[str, int] = {}
        for one in self._newest(scope, {RecordType.DOCUMENT}):
            source = str(one.content.get("source", ""))
            if source.startswith(prefix) and is_of(scope, one.record.project):
                sizes[source] = sizes.get(source, 0) + len(one.record.text.encode())
        return sorted(sizes.items())

    async def parts(self, scope: Scope, document_id: str) -> Sequence[MemoryRecord]:
        found = self._chunks(scope, document_id=document_id)
        return self._whole(_in_order(one for one in found if _is_named(scope, one)))

    async def known(self, scope: Scope, *, limit: int, include_internal: bool = False) -> Sequence[KnownRecord]:
        superseding = self._state.superseding()
        found = [
            one
            for one in self._newest(scope)
            if one.reach is not None
            and (one.reach is Reach.PERSON or scope.project in (None, one.record.project))
            and (include_internal or not one.is_internal)
            and one.record.id not in superseding
        ]
        best = sorted(found, key=lambda one: (-one.content["importance_score"], -one.record.created_at))
        return [self._known(scope, one) for one in best[:limit]]

    async def left_open(self, scope: Scope, *, limit: int) -> Sequence[KnownRecord]:
        superseding = self._state.superseding()
        found = [
            one
            for one in islice(self._newest(scope, {RecordType.PIN}), _RECENT_PINS)
            if one.content.get("kind") in (Kind.OPEN, Kind.OUTCOME)
            and one.reach is None
            and is_of(scope, one.record.project)
            and one.record.id not in superseding
            and one.record.created_at >= self._last_messages_from(one)
        ]
        return [self._known(scope, one) for one in sorted(found, key=lambda one: -one.record.created_at)[:limit]]

    async def superseded(self, scope: Scope, keys: Sequence[int]) -> Mapping[int, tuple[str, int]]:
        superseding, found = self._state.superseding(), dict[int, tuple[str, int]]()
        for stored in (self._state.records[key] for key in keys if key in self._state.records):
            by = [one.record for one in superseding.get(stored.record.id, ()) if is_within(scope, one)]
            if by:
                newest = max(by, key=lambda one: (one.created_at, one.key))
                found[stored.record.key] = newest.id, newest.created_at
        return found

    async def same_words(self, scope: Scope, record_type: RecordType, text: str) -> MemoryRecord | None:
        same = (one for one in self._newest(scope, {record_type}) if one.record.text == text and one.reach is None)
        own = (one for one in same if is_of(scope, one.record.project) and not _is_automatic(one))
        return next((one for one in self._whole(own) if one.session_id == scope.session), None)

    async def same_known(self, scope: Scope, reach: Reach, text: str) -> MemoryRecord | None:
        same = (one for one in self._newest(scope) if one.record.text == text and one.reach is reach)
        known = (one for one in same if reach is Reach.PERSON or is_of(scope, one.record.project))
        return next(iter(self._whole(one for one in known if not _is_automatic(one))), None)

    async def recent_words(self, scope: Scope, *, most_chars: int) -> Sequence[RecentWords]:
        session = self._state.sessions.get((scope.owner, scope.session or ""))
        agent = session.agent if session else self._state.agent(scope)
        recent = [] if agent is None else list(self._state.of_agent(scope.owner, agent))[-_RECENT_RECORDS:]
        recent += self._state.of_session(session, RecordType.MESSAGE)[-_RECENT_MESSAGES:] if session else []
        newest = sorted({one.record.key: one for one in recent}.items(), reverse=True)
        found: list[RecentWords] = []
        for origins in (_UNTRUSTED, (Origin.USER,)):
            said = (one for _, one in newest if one.record.origin in origins and not one.record.is_deleted)
            reached = (one.record for one in islice(said, _RECENT_OF_ORIGIN) if is_within(scope, one))
            found += [RecentWords(one.id, one.text[:most_chars], one.origin) for one in reached]
        return found

    async def pins_of(self, record: MemoryRecord) -> Sequence[MemoryRecord]:
        pins = self._beside(record, RecordType.PIN)
        return self._whole(one for one in pins if one.content.get("source_message_id") == record.id)

    async def summaries_over(self, record: MemoryRecord) -> Sequence[MemoryRecord]:
        stored = self._state.records.get(record.key)
        if stored is None or stored.record.seq is None:
            return []
        summaries = [one for one in self._beside(record, RecordType.SUMMARY) if not one.is_erased]
        over = [one for one in summaries if one.content["start_seq"] <= stored.record.seq <= one.content["end_seq"]]
        return self._whole(sorted(over, key=lambda one: one.content["level"]))

    async def edits(self, record: MemoryRecord) -> Sequence[StoredEdit]:
        return self._state.edits.get(record.key, ())

    async def erased_texts(self, scope: Scope, record_type: RecordType, texts: Sequence[str]) -> frozenset[str]:
        return frozenset(texts) & {one.text for one in tombstones(self._state, scope, record_type)}

    async def tombstone(self, scope: Scope, record_id: str) -> Tombstone | None:
        found = (one for one in tombstones(self._state, scope) if one.record_id == record_id)
        return next((Tombstone(record_id, one.purged_at) for one in found), None)

    async def damaged(self, record_ids: Sequence[str]) -> Sequence[str]:
        del record_ids
        return []

    async def erased(self, scope: Scope, record_ids: Sequence[str]) -> frozenset[str]:
        return frozenset(record_ids) & {one.record_id for one in self._state.tombstones if one.owner == scope.owner}

    async def scan(
        self, scope: Scope, *, after_key: int, limit: int, has_forgotten: bool = False
    ) -> Sequence[ScannedRecord]:
        agent = self._state.agent(scope)
        found = (
            one
            for one in self._state.records.values()
            if one.record.key > after_key
            and one.record.agent_id == agent
            and is_within(scope, one)
            and reads(scope, one.record.project)
            and not (one.is_erased or (one.record.is_deleted and not has_forgotten))
        )
        return [self._scanned(one, has_forgotten=has_forgotten) for one in islice(found, limit)]

    async def has_forgotten_values(self) -> bool:
        return bool(self._state.forgotten)

    async def forgotten_values(self, scope: Scope, keys: Collection[str]) -> Mapping[str, ForgottenValue]:
        found: dict[str, ForgottenValue] = {}
        for place in forgotten_places(self._state, scope, keys):
            value, other = self._state.forgotten[place], found.get(place[-1], ForgottenValue(0, is_erased=False))
            at, is_erased = max(value.forgotten_at, other.forgotten_at), value.is_erased or other.is_erased
            found[place[-1]] = ForgottenValue(at, is_erased)
        return found

    async def unswept(self) -> Unswept:
        owed = self._state.unswept
        return Unswept(max(owed, default=0), frozenset[str]().union(*owed.values()))

    def _record(self, scope: Scope, record_id: str) -> MemoryRecord | None:
        found = self._state.by_id(record_id)
        return None if found is None or not _is_named(scope, found) else self._whole([found])[0]

    def _newest(self, scope: Scope, types: Collection[RecordType] = _EVERY_TYPE) -> Iterator[StoredRecord]:
        """The records of the scope's agent within the limits, newest first, without forgotten ones."""
        agent = self._state.agent(scope)
        return (
            one
            for one in reversed(self._state.records.values())
            if one.record.agent_id == agent
            and one.record.type in types
            and not one.record.is_deleted
            and is_within(scope, one)
        )

    def _chunks(self, scope: Scope, **fields: str) -> Iterator[StoredRecord]:
        """The chunks of documents within the limits that have these fields."""
        for one in self._state.records.values():
            if (
                one.record.type is RecordType.DOCUMENT
                and is_within(scope, one)
                and fields.items() <= one.content.items()
            ):
                yield one

    def _beside(self, record: MemoryRecord, record_type: RecordType) -> Sequence[StoredRecord]:
        """The records of the type in the record's session."""
        stored = self._state.records.get(record.key)
        session = None if stored is None else self._state.sessions.get((stored.owner, record.session_id or ""))
        return [] if session is None else self._state.of_session(session, record_type)

    def _last_messages_from(self, stored: StoredRecord) -> int:
        """When the last messages of its session begin; 0 if it has no earlier ones."""
        messages = [one.record for one in self._beside(stored.record, RecordType.MESSAGE) if not one.record.is_deleted]
        return messages[-_AT_THE_END].created_at if len(messages) >= _AT_THE_END else 0

    def _whole(self, stored: Iterable[StoredRecord]) -> list[MemoryRecord]:
        """The records with what they led to."""
        effects = self._state.effects()
        return [replace(one.record, led_to=tuple(effects.get(one.record.id, ())[:_MOST_EFFECTS])) for one in stored]

    def _known(self, scope: Scope, stored: StoredRecord) -> KnownRecord:
        record, kind = stored.record, stored.content.get("kind") if stored.record.type is RecordType.PIN else None
        session = self._state.session(Scope(scope.owner, session=record.session_id, limits=scope.limits))
        return KnownRecord(
            record_id=record.id,
            type=record.type,
            reach=stored.reach or Reach.SESSION,
            text=record.text,
            importance=stored.content["importance_score"],
            created_at=record.created_at,
            tokens=stored.tokens,
            origin=record.origin,
            session_id=None if session is None else session.id,
            project=record.project,
            kind=None if kind is None else Kind(kind),
        )

    def _scanned(self, stored: StoredRecord, *, has_forgotten: bool) -> ScannedRecord:
        record, session_id = stored.record, stored.record.session_id
        edits = self._state.edits.get(record.key, ()) if has_forgotten else ()
        return ScannedRecord(
            key=record.key,
            id=record.id,
            type=record.type,
            text=record.text,
            earlier_texts="\n".join(one.before["text"] for one in edits if "text" in one.before) or None,
            tags="\n".join(stored.content.get("tags", ())) or None,
            name=stored.name,
            created_at=record.created_at,
            session_key=None if session_id is None else self._state.sessions[stored.owner, session_id].key,
            seq=record.seq if record.type is RecordType.MESSAGE else stored.content.get("start_seq"),
            end_seq=stored.content.get("end_seq"),
            revision=record.revision,
        )


def tombstones(state: State, scope: Scope, record_type: RecordType | None = None) -> Iterator[StoredTombstone]:
    """The tombstones of the owner. Where an erased record was is known of messages and summaries alone, so within
    limits there are no others."""
    for one in state.tombstones:
        if one.owner == scope.owner and record_type in (None, one.type):
            left = state.by_id(one.record_id)
            if scope.limits == NO_LIMITS or (left is not None and is_within(scope, left)):
                yield one


def forgotten_places(state: State, scope: Scope, keys: Collection[str]) -> list[tuple[str, str, str | None, str]]:
    """Where these keys are forgotten for the scope."""
    project = None if scope.project == PERSONAL else scope.project
    agent = scope.agent or DEFAULT_AGENT
    return [
        place
        for place in state.forgotten
        if place[3] in keys
        and place[:2] == (scope.owner, agent)
        and (project is None or place[2] in (None, project))
        and scope.limits.reaches(agent, place[2])
    ]


def _is_named(scope: Scope, stored: StoredRecord) -> bool:
    """Whether the scope reaches the record by its id."""
    record = stored.record
    is_asked = scope.agent in (None, record.agent_id) and scope.session in (None, record.session_id)
    return is_asked and is_within(scope, stored) and not stored.is_erased


def _is_automatic(stored: StoredRecord) -> bool:
    return (stored.record.client_key or "").startswith(AUTO_KEY)


def _in_order(stored: Iterable[StoredRecord]) -> list[StoredRecord]:
    """The chunks of a document in order."""
    return sorted(stored, key=lambda one: one.content.get("chunk_index", -1))
