"""What an archive is made of: the kinds of its entries with their fields, and which part of a memory it has. Pure.

An entry is one thing of one owner's memory, such as a record or an edit of it. Kinds and fields have the names that
SQLite's tables and columns had in the first release. Since then they are the archive's own: a store translates them.

- `key` is the number of an entry in its archive, unique in its kind. Later entries refer to it by `agent_key`,
  `project_key`, `session_key`, `record_key`, `graph_key`, `from_key` and `to_key` (nodes); records before or after it
  by `caused_by`. A store keeps these numbers: hashes are made of them, and `msg_7` has the key 7.
- Moments are milliseconds since 1970, booleans 0 or 1, lists and objects JSON. `attributes` has what else there is in
  a record's content, and `changes` what an edit replaced. `storage/sparse_vectors` says how an `embedding` is
  packed.
- `hash` protects a row against decay (`storage/row_hash`).
- `identity` has the secret with which `hashed_text` makes the hashes of `forgotten_values` and `tombstones`.
- `sqlite_sequence` has the highest numbers that `graphs` and `records` ever had, so that none is given twice.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from kalito_mcp.domain.records import RecordType
from kalito_mcp.errors import InvalidInput

Value = str | int | float | bytes | None


class ArchiveEntry(NamedTuple):
    """An entry. `line` is its line in a file, or 0."""

    kind: str
    fields: Mapping[str, Value]
    line: int = 0


def _fields(names: str, **defaults: Value) -> Mapping[str, Value]:
    return {**dict.fromkeys(names.split()), **defaults}


VERSION: Final = 21
"""The version of FIELDS, which a new kind or field raises. The first line of an archive has it as `schema`. Up to 21 it
was the number of SQLite's schema."""
FIELDS: Final[Mapping[str, Mapping[str, Value]]] = {
    "identity": _fields("secret"),
    "projects": _fields("key id"),
    "agents": _fields("key id record_count", record_count=0),
    "sessions": _fields(
        "key id agent_key state model message_count summary_count pin_count importance_sum summarized_seq pinned_seq "
        "oldest_message_at newest_message_at created_at updated_at revision observed_seq stage hidden_count "
        "project_key is_placed",
        state="OPEN",
        **dict.fromkeys("message_count summary_count pin_count importance_sum summarized_seq pinned_seq".split(), 0),
        **dict.fromkeys("revision observed_seq hidden_count is_placed".split(), 0),
    ),
    "records": _fields(
        "key agent_key session_key type id seq end_seq level is_covered role name text importance tokens created_at "
        "client_key attributes hash origin client recorded_at revision deleted_at purged_at is_internal is_critical "
        "tags caused_by source document_id project_key reach",
        revision=1,
        is_internal=0,
        is_critical=0,
    ),
    "memory_edits": _fields("record_key version edit_type editor_type editor_id changes edited_at hash"),
    "record_usage": _fields("record_key usage_count last_used"),
    "feedback": _fields("record_key label count last_at"),
    "graphs": _fields(
        "key agent_key session_key revision removed_revision slept_at embedder", revision=0, removed_revision=0
    ),
    "graph_nodes": _fields(
        "key graph_key id type text canonical_key summary source_node_ids source_record_ids repeat feedback is_pinned "
        "created_at last_access embedding revision hash"
    ),
    "graph_edges": _fields("from_key type to_key graph_key weight created_at last_access revision hash"),
    "forgotten_values": _fields("key value_hash agent_key project_key forgotten_at is_erased"),
    "tombstones": _fields("record_id text_hash type number seq client_key_hash created_at purged_at"),
    "sqlite_sequence": _fields("name seq"),
}
"""By kind, in the order of an archive: the fields, and their values in an entry of an older release that lacks them."""
_SECRET_BYTES: Final = 16
_HASH_BYTES: Final = 16


def completed(entry: ArchiveEntry) -> ArchiveEntry:
    """The entry with all fields of its kind.

    Raises:
        InvalidInput: it cannot be an entry of its kind; the message names its line.
    """
    kind, fields, line = entry
    known = FIELDS.get(kind)
    if known is None:
        raise InvalidInput(f"line {line}: an archive has no entries of the kind {kind[:40]!r}; nothing was restored")
    if unknown := fields.keys() - known.keys():
        raise InvalidInput(f"line {line}: {kind} have no field {min(unknown)[:40]!r}; nothing was restored")
    secret = fields.get("secret")
    if kind == "identity" and not (isinstance(secret, bytes) and len(secret) == _SECRET_BYTES):
        raise InvalidInput(f"line {line}: not a valid memory identity; nothing was restored")
    is_number = fields.get("name") in ("graphs", "records") and isinstance(fields.get("seq"), int)
    if kind == "sqlite_sequence" and not is_number:
        raise InvalidInput(f"line {line}: not a valid number of the last record; nothing was restored")
    return ArchiveEntry(kind, {**known, **fields}, line)


def unstorable(entry: ArchiveEntry, reason: object) -> InvalidInput:
    """Why an archive with this entry is refused."""
    return InvalidInput(f"line {entry.line}: this entry cannot be stored ({reason}); nothing was restored")


def hashed_text(secret: bytes, text: str) -> str:
    """The keyed hash of a text, 32 hexadecimal digits."""
    return blake2b(text.encode("utf-8", "surrogatepass"), key=secret, digest_size=_HASH_BYTES).hexdigest()


@dataclass(frozen=True, slots=True)
class Selection:
    """Which part of a memory is exported. What is not set does not narrow it.

    `session` is one conversation, `project` what is of one project (`personal`: of none) and `agent` one agent's
    memory. `types` are the types of records. `since_ms` and `until_ms` bound when they were said, both included.
    """

    session: str | None = None
    project: str | None = None
    agent: str | None = None
    types: frozenset[RecordType] = field(default=frozenset())
    since_ms: int | None = None
    until_ms: int | None = None

    @property
    def is_all(self) -> bool:
        """Whether it is the whole memory."""
        return self == Selection()

    @property
    def is_restorable(self) -> bool:
        """Whether it has whole conversations only. A conversation without some of its messages cannot be restored."""
        return not self.types and self.since_ms is None and self.until_ms is None

    def to_dict(self) -> dict[str, Any]:
        """What is set, JSON-ready."""
        given = {
            "session": self.session,
            "project": self.project,
            "agent": self.agent,
            "types": sorted(map(str, self.types)) or None,
            "since_ms": self.since_ms,
            "until_ms": self.until_ms,
        }
        return {name: value for name, value in given.items() if value is not None}
