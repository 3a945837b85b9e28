"""Whole records and their edits: reading one, changing one, erasing one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kalito_mcp.domain.memory_records import EditDraft, MemoryRecord, RecordDraft, StoredEdit
from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import Scope


@dataclass(frozen=True, slots=True)
class Tombstone:
    """What is left of an erased record: its id, and when it was erased."""

    record_id: str
    purged_at: int


@dataclass(frozen=True, slots=True)
class Swept:
    """What the physical erasure reached. `remaining` are files that may still hold the words, with the reason."""

    remaining: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Unswept:
    """Erasures whose words may still be in a file. `last` numbers the newest, 0 where there are none; `text_keys` are
    those that `RecordWriter.purge` was given for them."""

    last: int
    text_keys: frozenset[str]


class RecordReader(Protocol):
    """Reads of one consistent view. Erased records do not exist here; forgotten ones do."""

    async def record(self, scope: Scope, record_id: str) -> MemoryRecord | None:
        """A record by `msg_45` or its own id; None where the owner (and the scope's agent and session, where those
        are named) has none."""
        ...

    async def list_records(
        self, scope: Scope, types: frozenset[RecordType], *, after: str | None = None, limit: int
    ) -> Sequence[MemoryRecord]:
        """Thoughts, documents, tasks, pins or summaries of the scope's agent (or session), newest first, that are not
        forgotten; from behind the record `after`. No types: all of these. Raises RecordNotFound for an unknown
        `after`."""
        ...

    async def document(self, scope: Scope, source: str) -> Sequence[MemoryRecord]:
        """The chunks of the agent's document of that source, in order, the forgotten ones included."""
        ...

    async def parts(self, scope: Scope, document_id: str) -> Sequence[MemoryRecord]:
        """The chunks of a document by the id that they share (`document_id` in their content), in order."""
        ...

    async def pins_of(self, record: MemoryRecord) -> Sequence[MemoryRecord]:
        """The pins whose source is this message, the forgotten ones included."""
        ...

    async def summaries_over(self, record: MemoryRecord) -> Sequence[MemoryRecord]:
        """The summaries whose range holds this message, lowest level first. Their content has `level`, `start_seq`
        and `end_seq`."""
        ...

    async def edits(self, record: MemoryRecord) -> Sequence[StoredEdit]:
        """The stored edits of a record, oldest first; none for a record that was only created."""
        ...

    async def erased_texts(self, scope: Scope, record_type: RecordType, texts: Sequence[str]) -> frozenset[str]:
        """Those of the texts that a record of this type had, of this owner, which was erased."""
        ...

    async def tombstone(self, scope: Scope, record_id: str) -> Tombstone | None:
        """What is left of an erased record of this owner."""
        ...

    async def damaged(self, record_ids: Sequence[str]) -> Sequence[str]:
        """Those of the ids whose record is not as it was written, by the hash of its row."""
        ...

    async def erased(self, scope: Scope, record_ids: Sequence[str]) -> frozenset[str]:
        """Those of the ids whose records were erased."""
        ...

    async def unswept(self) -> Unswept:
        """The erasures, of any owner, that `Store.sweep` has not finished."""
        ...


class RecordWriter(RecordReader, Protocol):
    """The same inside a write transaction. Each also updates the text index and the counters."""

    async def add_records(self, scope: Scope, drafts: Sequence[RecordDraft], *, now_ms: int) -> Sequence[MemoryRecord]:
        """Add thoughts, documents or tasks to the scope's session, or to its agent where it names none; a known
        `client_key` gives its record back. `caused_by` may name a draft before it.

        Raises:
            Conflict: the same text of the same type was erased for good, or the part of the source is there already;
                nothing was written. ClientKeyReused: a known `client_key` with another text.
            RecordNotFound: a `caused_by` names no record of the owner.
        """
        ...

    async def change(self, record: MemoryRecord, edit: EditDraft) -> MemoryRecord:
        """Give the record the edit's content, and append the edit to its history.

        Raises:
            RevisionConflict: it is no longer at `record.revision`; nothing was written.
            RecordNotFound: it was erased, or `caused_by` names no record of the owner.
            Conflict: `caused_by` would close a circle of causes.
        """
        ...

    async def drop_history(self, record: MemoryRecord) -> MemoryRecord:
        """Let the record as it is be its first version: its edits go, because they quote what was erased. It keeps its
        revision, so that whoever read it before still loses against those who wrote since.

        Raises:
            RevisionConflict: it is no longer at `record.revision`; nothing was written.
        """
        ...

    async def purge(self, record: MemoryRecord, *, now_ms: int, text_keys: Sequence[str] = ()) -> None:
        """Erase the record with its edits, its use and its place in the text index, and leave a tombstone. A message or
        summary keeps an empty row, so that its session has no gap. The file still holds the words until
        `Store.sweep`; until then `unswept` has the erasure and its `text_keys`, hashes by which the texts are found
        outside the database. Raises RecordNotFound where it was erased before."""
        ...

    async def count_uses(self, uses: Mapping[str, int], *, used_at: int) -> None:
        """Add to the records' usage, by their ids; those that are gone are passed over."""
        ...
