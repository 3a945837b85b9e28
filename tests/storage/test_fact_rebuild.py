"""The facts can be rebuilt from the records at any time."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from kalito_mcp.storage.sqlite.database import SqliteStore
from tests.retrieval.stored_memories import remember

pytestmark = pytest.mark.anyio
COLUMNS = "record_key, subject, attribute, value, polarity, ordered_at, superseded_by, superseded_at, conflict_key"


def facts(database: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(f"SELECT {COLUMNS} FROM facts ORDER BY record_key, place").fetchall()


async def test_a_rebuild_gives_the_same_facts(store: SqliteStore, database: Path) -> None:
    await remember(store, "I live in Porto.", "I work at Globex.", "I moved to Graz.", "I work at Initech.")
    await remember(store, *(f"I now live in Porto{place}." for place in range(600)))
    before = facts(database)
    assert len(before) == 604
    await store.reindex()
    assert facts(database) == before


async def test_facts_of_other_rules_are_rebuilt_when_the_database_is_opened(store: SqliteStore, database: Path) -> None:
    await remember(store, "I live in Porto.", "I moved to Graz.")
    before = facts(database)
    await store.close()
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("DELETE FROM facts")
        connection.execute("UPDATE facts_state SET rules = 0")
    await (await SqliteStore.open(database)).close()
    assert facts(database) == before
