"""The hash that every row has. It finds every flipped bit of a record; SQLite's own checks found 2 of 120. Pure.

It protects against decay, not against an attacker: BLAKE2b, 8 bytes.
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

_FIELD_SEPARATOR: Final = "\x1f"
_HASH_BYTES: Final = 8

HASHED_COLUMNS: Final = (
    "session_key, type, id, seq, end_seq, level, role, name, text, importance, created_at, client_key, attributes"
)
LATER_COLUMNS: Final = (
    "recorded_at, client, origin, is_internal, is_critical, tags, revision, deleted_at, purged_at, caused_by, "
    "source, document_id, CASE WHEN session_key IS NULL THEN agent_key END, "
    "CASE WHEN session_key IS NULL THEN project_key END, reach"
)
"""Columns that the third schema added, most often set first, and the reach of the tenth. The agent, and the project of
the ninth, are hashed only if there is no session."""
UNCHANGED: Final = (None, None, None, 0, 0, None, 1, None, None, None, None, None, None, None, None)
"""The values of LATER_COLUMNS in a record that was written before the third schema, or that uses none of them."""
_PLACES: Final = len(HASHED_COLUMNS.split(", "))
_HASHED_NAMES: Final = tuple(HASHED_COLUMNS.split(", "))
_LATER_NAMES: Final = tuple(LATER_COLUMNS.split(", "))[:-3]


def row_hash(*fields: str | int | float | None) -> bytes:
    """The hash of a row's canonical fields, in this order."""
    return blake2b(
        _FIELD_SEPARATOR.join(map(str, fields)).encode("utf-8", "surrogatepass"), digest_size=_HASH_BYTES
    ).digest()


def real(value: float) -> float:
    """The number as SQLite returns it, for the hash: SQLite stores -0.0 as 0.0."""
    return float(value) + 0.0


def record_hash(fields: Sequence[Any]) -> bytes:
    """The hash of a record from its HASHED_COLUMNS and LATER_COLUMNS. Trailing later ones may be left out.

    Trailing values that equal UNCHANGED are not hashed, so a record keeps the hash that an older schema gave it.
    """
    end = len(fields)
    while end > _PLACES and fields[end - 1] == UNCHANGED[end - 1 - _PLACES]:
        end -= 1
    return row_hash(*fields[:end])


def hash_of_record(row: Mapping[str, Any]) -> bytes:
    """The hash of a record from its row by column."""
    place = (row["agent_key"], row["project_key"]) if row["session_key"] is None else (None, None)
    return record_hash([*(row[name] for name in (*_HASHED_NAMES, *_LATER_NAMES)), *place, row["reach"]])
