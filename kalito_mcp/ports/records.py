"""Whole records and their edits: reading, changing and erasing them.

A store numbers its records and sessions: their keys. The writes of one owner are one after the other, and a key is
greater than all keys that earlier writes of the same owner were given. Anyone who sees a record of an owner therefore
sees all with smaller keys. Nothing like it holds across owners.

Only stores rely on this. Above the ports, records and sessions have ids, and an order is that of their moments, of
their seqs, or the one in which a port returns them. The number in a message's id is a name.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NewType, Protocol

from kalito_mcp.domain.known import KnownRecord
from kalito_mcp.domain.memory_records import EditDraft, MemoryRecord, RecordDraft, StoredEdit
from kalito_mcp.domain.records import Origin, Reach, RecordType
from kalito_mcp.domain.scope import Scope
from kalito_mcp.text.analysis import IndexedText

IndexedPair = tuple[IndexedText | None, IndexedText | None]
"""The text and the name of a record as the text index has them before and after a change. None if it is forgotten."""


@dataclass(frozen=True, slots=True)
class Tombstone:
    """The tombstone of an erased record: its id, and when it was erased."""

    record_id: str
    purged_at: int


@dataclass(frozen=True, slots=True)
class ErasedText:
    """A text that an erased record had, and when that was said and erased. Without a message, `number` and `seq` are
    0."""

    text: str
    number: int
    seq: int
    client_key: str | None
    """If it was one of those that were asked for; None otherwise."""
    created_at: int
    purged_at: int


class AlreadyStored(Exception):
    """The id, the client key, or this part of a source in its project is stored already; nothing was written."""


@dataclass(frozen=True, slots=True)
class ForgottenValue:
    """When a value was forgotten, and whether its record was erased for good."""

    forgotten_at: int
    is_erased: bool


ScanCursor = NewType("ScanCursor", int)
"""Where a record is in a scan. Only the store knows what it means."""


@dataclass(frozen=True, slots=True)
class ScannedRecord:
    """A record as `RecordReader.scan` reads it: its words, its place, and its revision. `earlier_texts` and `tags`
    are one string each. `end_seq` is a summary's."""

    cursor: ScanCursor
    id: str
    type: RecordType
    text: str
    earlier_texts: str | None
    tags: str | None
    name: str | None
    created_at: int
    session_id: str | None
    seq: int | None
    end_seq: int | None
    revision: int


@dataclass(frozen=True, slots=True)
class RecentWords:
    """The beginning of a text that was said lately, and whose words it has."""

    record_id: str
    text: str
    origin: Origin


class RecordReader(Protocol):
    """Reads of one consistent view. Erased records are left out. Forgotten ones are included, except in lists.

    What is beyond the limits of a scope is as if it did not exist. But a record is returned as it is stored, with the
    ids that it names (see `records.reached`).
    """

    async def record(self, scope: Scope, record_id: str) -> MemoryRecord | None:
        """The record of this id (a message's is `msg_45`). None if the owner has no such record, or the scope names
        another agent or session."""

    async def ids_by_tail(self, scope: Scope, record_type: RecordType, tail: str) -> Sequence[str]:
        """At most 20 ids of the owner's records of this type whose last part begins with `tail`, in order:
        `pin_1763107261124_mmt85sz8b` for `mmt85`. It has letters and digits. Ids of erased records are included, and
        limits do not count. It reads the ids of all records of the type."""

    async def list_records(
        self, scope: Scope, types: frozenset[RecordType], *, after: str | None = None, limit: int
    ) -> Sequence[MemoryRecord]:
        """At most `limit` thoughts, documents, tasks, pins or summaries of the scope's agent (or session), newest
        first, that follow the record `after`. No types: all of these. Forgotten ones are left out.

        Raises:
            RecordNotFound: there is no record `after`.
        """

    async def document(self, scope: Scope, source: str) -> Sequence[MemoryRecord]:
        """The chunks of the agent's document of that source, in order."""

    async def of_source(self, scope: Scope, source: str) -> Sequence[MemoryRecord]:
        """The chunks of that source, of any agent, in the scope's project (`PERSONAL`: in none) or without one in all,
        in the order in which they were stored."""

    async def sources(self, scope: Scope, prefix: str) -> Sequence[tuple[str, int]]:
        """The sources that begin with `prefix`, which ends with a slash, of the agent's documents of exactly this
        project (`PERSONAL` or None: of none), each with its size in bytes of UTF-8, in order. Forgotten ones are left
        out."""

    async def parts(self, scope: Scope, document_id: str) -> Sequence[MemoryRecord]:
        """The chunks with this `document_id` in their content, in order."""

    async def known(self, scope: Scope, *, limit: int, include_internal: bool = False) -> Sequence[KnownRecord]:
        """Records of the person, and of the scope's project, of the scope's agent: the most important `limit`
        first, ties newest first. `PERSONAL`: only what is the person's; no project: all projects'. Forgotten and
        superseded ones are left out. Of a space, in turn of those who shared them: the most important one of each, then
        the second, the shorter ones of a turn first."""

    async def left_open(self, scope: Scope, *, limit: int) -> Sequence[KnownRecord]:
        """The `limit` newest pins that say what was open or came out at the end of their session, in its last six
        messages or after them, of the scope's agent, in its project (`PERSONAL` or None: in none). Among its newest 500
        pins; forgotten and superseded ones are left out."""

    async def statements(
        self, scope: Scope, *, lasting: int, of_sessions: int, forgotten: int
    ) -> Sequence[MemoryRecord]:
        """Pins, and notes that are known beyond their session, of the scope's agent: of its project and personal, or
        without a project of all. The one that was stored last comes first. There are at most this many of those that
        are known beyond their session, of the others, and of forgotten ones. Superseded ones are included."""

    async def superseded(self, scope: Scope, record_ids: Sequence[str]) -> Mapping[str, tuple[str, int]]:
        """Of these records, those that others name as superseded: the id of the newest of these, and when it was said,
        by the id of the superseded one. Forgotten records supersede nothing."""

    async def said_in_order(self, scope: Scope, record_ids: Sequence[str]) -> Sequence[str]:
        """Of these records of the owner, those that this memory's own clock stamped, in the order in which they were
        stored: the clock may have been set meanwhile. Left out are those with a moment that the caller named."""

    async def same_words(self, scope: Scope, record_type: RecordType, text: str) -> MemoryRecord | None:
        """The newest record of this type with exactly this text, in the scope's agent, project and session (None: in
        none), that is known nowhere else. Among the newest 5,000 of the type; forgotten ones are left out."""

    async def same_known(self, scope: Scope, reach: Reach, text: str) -> MemoryRecord | None:
        """The pin or note with exactly this text that has this reach, PROJECT or PERSON, in the scope's agent and
        project. Automatic pins and forgotten records are left out."""

    async def recent_words(self, scope: Scope, *, most_chars: int) -> Sequence[RecentWords]:
        """The latest words of users, tools, documents and imports to the scope's agent, and in its session, newest
        first: of the newest 2,000 records of the agent and 500 messages of the session at most 200 of untrusted origins
        and 200 of users, each up to `most_chars` characters."""

    async def pins_of(self, record: MemoryRecord) -> Sequence[MemoryRecord]:
        """The pins whose source is this message."""

    async def summaries_over(self, record: MemoryRecord) -> Sequence[MemoryRecord]:
        """The summaries whose range includes this message, or the first message of this summary, lowest level first.
        Their content has `level`, `start_seq` and `end_seq`."""

    async def edits(self, record: MemoryRecord) -> Sequence[StoredEdit]:
        """The stored edits of a record, oldest first. Empty for a record that was only created."""

    async def causes(self, record: MemoryRecord) -> frozenset[str]:
        """The ids of the record's cause, of the cause of that, and so on."""

    async def of_client_keys(
        self, scope: Scope, record_type: RecordType, client_keys: Collection[str]
    ) -> Sequence[MemoryRecord]:
        """The records of this type with one of these client keys, forgotten or not: those of the scope's session, or
        without one those of its agent that have none. Limits do not count, because a key is unique there."""

    async def client_keys(self, scope: Scope, record_type: RecordType, prefix: str) -> Sequence[str]:
        """The client keys there that begin with the prefix, which ends with a colon."""

    async def erased_texts(
        self, scope: Scope, record_type: RecordType, texts: Collection[str], client_keys: Collection[str] = ()
    ) -> Sequence[ErasedText]:
        """Those of the texts that an erased record of this owner and type had, once for each, the last erased last.
        Which client keys they had is only known of those passed."""

    async def tombstone(self, scope: Scope, record_id: str) -> Tombstone | None:
        """The tombstone of an erased record of this owner; None if no record of this id was erased. Within limits,
        only those of messages and summaries."""

    async def damaged(self, scope: Scope, record_ids: Sequence[str]) -> Sequence[str]:
        """Which of the records of the scope's owner do not match the hash of their row: they were damaged."""

    async def erased(self, scope: Scope, record_ids: Sequence[str]) -> frozenset[str]:
        """Which of the ids belonged to records that were erased."""

    async def scan(
        self, scope: Scope, *, after: ScanCursor | None, limit: int, has_forgotten: bool = False
    ) -> Sequence[ScannedRecord]:
        """At most `limit` records of the scope's agent and project that follow `after`, in the order in which they were
        stored. Forgotten ones and the earlier versions of all are left out unless `has_forgotten`."""

    async def has_forgotten_values(self, owner: str) -> bool:
        """Whether the owner forgot anything since this is recorded. If only other owners did, a store may say so, too:
        that is only slower."""

    async def forgotten_values(self, scope: Scope, keys: Collection[str]) -> Mapping[str, ForgottenValue]:
        """Which of these keys of `text.repetition` are forgotten for the scope's agent and project."""


class RecordWriter(RecordReader, Protocol):
    """The same inside a write transaction. Each also updates the text index, the counters and what is superseded."""

    async def add_records(self, scope: Scope, drafts: Sequence[RecordDraft], *, now_ms: int) -> Sequence[MemoryRecord]:
        """Add thoughts, documents or tasks to the scope's session, which exists, or without one to its agent. A
        `caused_by` names a record of the owner, or an earlier draft.

        Raises:
            AlreadyStored: its id, or its part of a source, is taken.
        """

    async def change(
        self, record: MemoryRecord, edit: EditDraft, *, indexed: IndexedPair | None = None
    ) -> MemoryRecord:
        """Replace the record's content with the edit's, and append the edit to its history. `indexed` spares reading
        its texts here.

        Raises:
            RevisionConflict: it is no longer at `record.revision`; nothing was written.
            RecordNotFound: it was erased; nothing was written.
            AlreadyStored: its project has this part of a source already.
        """

    async def rename_project(self, owner: str, old: str, new: str) -> None:
        """Give a known project another id. If that is a known project, too, the two become one.

        Raises:
            AlreadyStored: both have a document of the same source; nothing was written.
        """

    async def drop_history(self, record: MemoryRecord) -> MemoryRecord:
        """Delete the record's edits, because they quote text that was erased. The record keeps its content and
        revision, so an edit that is based on an older revision is still refused.

        Raises:
            RevisionConflict: it is no longer at `record.revision`; nothing was written.
        """

    async def purge(
        self,
        record: MemoryRecord,
        *,
        now_ms: int,
        texts: Sequence[str] = (),
        text_keys: Sequence[str] = (),
        indexed: IndexedText | None = None,
    ) -> None:
        """Erase the record with its edits, its usage, the feedback on it and its index entries, and leave a tombstone,
        which `erased_texts` finds by `texts`. A message or summary keeps an empty row, so that its session has no gap.

        The text may be left in a file until `Maintenance.finish_erasures`. Until then `owed_erasures` has the
        `text_keys`: hashes by which its texts are found outside the store. `indexed` spares reading the record's text
        here.

        Raises:
            RecordNotFound: it was erased before; nothing was written.
        """

    async def forget_values(self, scope: Scope, keys: Collection[str], *, now_ms: int, is_erased: bool = False) -> None:
        """Note that these keys of `text.repetition` are forgotten for the scope's agent and project, both of which
        exist."""

    async def bring_back_values(self, scope: Scope, keys: Collection[str]) -> None:
        """Undo `forget_values`."""

    async def count_uses(self, owner: str, uses: Mapping[str, int], *, used_at: int) -> None:
        """Add to the usage of the owner's records, by id. Records that are gone, or another owner's, are skipped."""
