"""What a migration moves besides the entries of an archive: tables whose rows are the same in every store. Pure.

A store translates names, as it does with the entries of an archive. `UNMOVED` has what stays where it is, each with the
reason; a test compares both with the schemas, so that no table and no column is forgotten.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

Row = Mapping[str, Any]


class MovedTable(NamedTuple):
    """A table. `order` is unique. `is_owned`: its rows are read and written for one owner at a time, who is not among
    the columns. `is_single`: it always has one row."""

    columns: tuple[str, ...]
    order: str
    is_owned: bool
    is_single: bool


def _table(columns: str, *, order: str = "", is_owned: bool = False) -> MovedTable:
    return MovedTable(tuple(columns.split()), order or columns.split(maxsplit=1)[0], is_owned, is_single=not order)


MOVED: Final[Mapping[str, MovedTable]] = {
    "imports": _table(
        "source place size modified_ns read_to fingerprint imported_at", order="source, place", is_owned=True
    ),
    "given": _table(
        "key agent project session kind at client budget tokens parts left_out", order="key", is_owned=True
    ),
    "spaces": _table("name project created_at", order="name"),
    "space_members": _table("space member role since", order="space, member"),
    "shared_copies": _table("space record_id member source_id shared_at", order="space, record_id"),
    "unswept": _table("text_keys", order="key"),
    "access_tokens": _table(
        "id text_hash prefix name kind owner permission agent project client grant_id resource created_at expires_at "
        "last_used_at revoked_at",
        order="key",
    ),
    "passphrases": _table("owner salt hash n r p changed_at", order="owner"),
    "oauth_clients": _table("id name redirect_uris is_document created_at checked_at", order="id"),
    "oauth_requests": _table(
        "handle_hash client client_name redirect_uri is_redirect_explicit challenge permission resource state "
        "expires_at browser_hash",
        order="handle_hash",
    ),
    "oauth_grants": _table(
        "id owner client client_name permission resource created_at last_used_at revoked_at", order="key"
    ),
    "oauth_codes": _table(
        "code_hash grant_id redirect_uri is_redirect_explicit challenge expires_at used_at", order="code_hash"
    ),
    "access_attempts": _table("subject count since last_at", order="subject"),
    "audit_log": _table("number at principal owner client action outcome count changes hash", order="number"),
    "audit_head": _table("count hash"),
    "state_secret": _table("secret"),
}
"""By name, in the order in which they are written."""

_REBUILT: Final = "derived: the text index is rebuilt at the end"
_VECTORS: Final = "its vectors are moved through `ports.vectors`, which keeps what belongs to them"
_DERIVED_AT_ONCE: Final = "derived: follows the records that are stored"
UNMOVED: Final[Mapping[str, str]] = {
    "migrations": "of each store's schema",
    "owners": "made with what is the owner's; its counters are of one store",
    "text_rebuild": _REBUILT,
    "record_shapes": _REBUILT,
    "records_text": _REBUILT,
    "term_pages": _REBUILT,
    "fresh_terms": _REBUILT,
    "superseded_records": "derived: `ArchiveWriter.finish` makes it of what records say",
    "record_changes": _DERIVED_AT_ONCE,
    "removed_records": _DERIVED_AT_ONCE,
    "record_vectors": _VECTORS,
    "vector_indexes": _VECTORS,
    "vector_debts": _VECTORS,
    "vector_debtors": _VECTORS,
    "vector_removals": "what a cache of vectors in this process has to drop",
    "vector_moves": "how far vectors have come to Qdrant, which is of the SQLite store",
    "vector_leftovers": "points that are still to be removed from Qdrant, as above",
    "audit_noticed": "of a transaction that is under way",
    "records.changed_at_revision": "a counter of one store",
    "sessions.said_at": "computed from other columns",
    "oauth_grants.ends_at": "computed from its tokens",
    "identity.analysis": "says which release made the text index",
    "imports.key": "seen by nobody",
    "unswept.key": "seen by nobody",
    "access_tokens.key": "seen by nobody, and in the order of the rows",
    "oauth_grants.key": "seen by nobody, and in the order of the rows",
}
"""Tables, and columns of tables that are moved, that are not, and why."""
