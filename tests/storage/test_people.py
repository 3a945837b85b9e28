"""What is of a person: every table of the SQLite file is erased with them, or is named here with the reason."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

from kalito_mcp.storage.sqlite.people import DELETE_ACCESS, DELETE_NAMES, DELETE_RECORDS, DELETE_SLICES
from tests.access.test_audit import SCHEMA_TABLES

WITH_ANOTHER: Final[Mapping[str, str]] = {
    "graph_edges": "with their nodes, by a foreign key",
    "oauth_codes": "with their consent, by a foreign key",
    "record_shapes": "with the record's entry in the text index",
    "record_vectors": "with the record, by a trigger",
    "vector_debts": "with the record, by a trigger",
    "sessions": "by a statement of its own, DELETE_SESSIONS",
    "space_members": "by `ports.spaces`, before",
    "shared_copies": "by `ports.spaces`, before, with what they are copies of",
}
KEPT: Final[Mapping[str, str]] = {
    "audit_log": "the log of who did what, without words",
    "audit_head": "the log's",
    "spaces": "of all their members",
    "oauth_clients": "programs, which are let in by a consent",
    "oauth_requests": "of nobody yet; for some minutes",
    "access_attempts": "keyed hashes of who tried; for a day",
    "identity": "the database's",
    "state_secret": "the database's",
    "migrations": "the schema's",
    "record_changes": "keys of rows",
    "text_rebuild": "how far a rebuild has come",
    "vector_indexes": "of all owners",
    "vector_removals": "keys of rows",
    "vector_moves": "of all owners",
    "vector_leftovers": "ids of points elsewhere that the sweep removes",
    "unswept": "what the sweep has still to do",
}


def test_every_table_is_erased_with_a_person_or_left_for_a_reason(copy: Path) -> None:
    with closing(sqlite3.connect(copy)) as connection:
        tables = {name for [name] in connection.execute(SCHEMA_TABLES) if not name.startswith("sqlite_")}
    erased = DELETE_ACCESS.keys() | DELETE_RECORDS.keys() | DELETE_SLICES.keys() | DELETE_NAMES.keys()
    assert tables == erased | WITH_ANOTHER.keys() | KEPT.keys()
    assert not erased & KEPT.keys()
