"""The facts can be rebuilt from the records at any time."""

import re
import sqlite3
from contextlib import closing
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from kalito_mcp.domain.scope import Scope
from kalito_mcp.errors import RecordNotFound
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.storage.sqlite.fact_rows import read_source
from tests import drafts
from tests.retrieval.stored_memories import remember
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio
COLUMNS = "record_key, subject, attribute, value, polarity, ordered_at, superseded_by, superseded_at, conflict_key"


def facts(database: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(f"SELECT {COLUMNS} FROM facts ORDER BY record_key, place").fetchall()


async def test_a_rebuild_gives_the_same_facts(store: SqliteStore, database: Path) -> None:
    await remember(store, "I live in Porto.", "I work at Globex.", "I moved to Graz.", "I work at Initech.")
    for hundred in range(6):
        await remember(store, *(f"I now live in Porto{100 * hundred + place}." for place in range(100)))
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


def outdate(database: Path) -> None:
    """Make the facts those of other rules."""
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE facts_state SET rules = 0")


@pytest.mark.campaign
async def test_the_facts_of_many_records_are_rebuilt_in_the_background(
    store: SqliteStore, database: Path, caplog: pytest.LogCaptureFixture
) -> None:
    towns = ("Porto", "Graz", "Leeds")
    await remember(store, *(f"I moved to {towns[place % 3]}." for place in range(1_200)))
    await store.close()
    outdate(database)

    opened = await SqliteStore.open(database)
    assert facts(database) == []
    assert await opened.catch_up()
    assert 0 < len(facts(database)) < 1_200
    # What is said meanwhile belongs to the same lines.
    await remember(opened, "I moved to Ghent.")
    await opened.close()

    # The next process goes on where this one ended.
    opened = await SqliteStore.open(database)
    pieces = 1
    while await opened.catch_up():
        pieces += 1
    assert pieces > 5
    rebuilt = facts(database)
    assert len(rebuilt) == 1_201
    assert [row[6] for row in rebuilt].count(None) == 1
    await opened.reindex()
    assert facts(database) == rebuilt
    assert not await opened.catch_up()
    await opened.close()
    assert "reading 1,200 records for facts, in the background" in caplog.text
    assert "all records are read for facts" in caplog.text


async def test_a_large_batch_is_read_in_the_background_as_if_it_had_been_read_at_once(
    store: SqliteStore, database: Path
) -> None:
    towns = ("Porto", "Graz", "Leeds")
    await remember(store, "I live in Ghent.")
    await remember(store, *(f"I moved to {towns[place % 3]}." for place in range(250)))
    assert len(facts(database)) == 1
    await remember(store, "I moved to Oslo.")
    await remember(store, *(f"I moved to {towns[place % 3]} again." for place in range(300)))
    async with store.read() as view:
        assert await view.facts.is_behind()
    while await store.catch_up():
        pass
    async with store.read() as view:
        assert not await view.facts.is_behind()
    read = facts(database)
    assert len(read) == 552
    assert [row[6] for row in read].count(None) == 1
    await store.reindex()
    assert facts(database) == read


async def test_a_large_batch_that_names_what_it_supersedes_is_read_at_once(store: SqliteStore, database: Path) -> None:
    await remember(store, "The red mug is mine.")
    batch = [drafts.message(f"The mug {place} is mine.", details={"supersedes": ["msg_1"]}) for place in range(201)]
    await remember(store, *batch)
    assert not await store.catch_up()
    with pytest.raises(RecordNotFound, match="msg_999"):
        await remember(store, *batch, drafts.message("Mine.", details={"supersedes": ["msg_999"]}))


async def test_a_record_that_changes_while_it_is_read_is_read_again(store: SqliteStore, database: Path) -> None:
    await remember(store, *(f"I moved to Porto {place} years ago." for place in range(1_100)))
    await store.close()
    outdate(database)
    opened = await SqliteStore.open(database)
    async with opened.read() as view:
        _, sources = await view.facts.left()
    async with opened.write() as transaction:
        erased = await transaction.records.record(Scope(), "msg_1")
        assert erased is not None
        await transaction.records.purge(erased, now_ms=START_MS)
        left = await transaction.facts.go_on({source: read_source(source) for source in sources})
    assert left == 1_000
    assert not any(row[0] == 1 for row in facts(database))
    await opened.close()


async def test_the_rest_is_foretold_by_what_was_read_though_more_is_recorded_meanwhile(
    store: SqliteStore, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = count(0, 10)
    monkeypatch.setattr("kalito_mcp.storage.sqlite.fact_rebuild.time", SimpleNamespace(monotonic=lambda: next(seconds)))
    await remember(store, *(f"I saw {place} gulls." for place in range(1_000)))
    while await store.catch_up():
        # As many as were just read.
        await remember(store, *(f"I saw {place} terns." for place in range(300)))
        if "left, about" in caplog.text:
            break
    [foretold] = re.findall(r"for facts: ([\d,]+) left, about (\d+) s", caplog.text)
    left, about_s = (int(number.replace(",", "")) for number in foretold)
    assert left >= 1_000
    assert about_s < 10 * left
