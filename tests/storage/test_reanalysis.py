"""A text index of an older analysis is rebuilt when the database is opened for writing, completely or not at all."""

import signal
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from kalito_mcp.domain.findings import Verdict
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import SearchRequest
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.retrieval.policy import SearchPolicy
from kalito_mcp.retrieval.search import Searcher
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.storage.sqlite.inspection import inspect
from kalito_mcp.storage.sqlite.text_index import DELETE_ALL_TERMS, INSERT_TERMS, TextIndexStatements, index_entry
from kalito_mcp.text.analysis import IndexedText, index_text
from kalito_mcp.text.analysis_version import ANALYSIS_VERSION
from tests import drafts
from tests.index_reads import keys_with, record_count
from tests.scripted import START_MS, ScriptedClock
from tests.server import prepared
from tests.server.wire import clean_environment
from tests.storage.conftest import MESSAGES, ROOT, Disk

pytestmark = pytest.mark.anyio
TRIP = Scope(session="trip")
SAID = ("The apple is ripe.", "The ferry leaves at seven.")


def of_the_first_analysis(text: str, name: str | None) -> IndexedText:
    """Terms as the first analysis had them: it took every final e away."""
    now = index_text(text, name)
    return now._replace(terms=tuple(dict.fromkeys(one[:-1] if one.endswith("e") else one for one in now.terms)))


def make_old(path: Path) -> None:
    """Give a closed database the index that the first analysis would have built."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(DELETE_ALL_TERMS)
        rows = connection.execute("SELECT key, agent_key, text, name FROM records").fetchall()
        for key, agent, text, name in rows:
            connection.execute(INSERT_TERMS, index_entry(key, agent, of_the_first_analysis(text, name))._asdict())
        connection.execute("UPDATE identity SET analysis = 1")
        connection.commit()


def analysis(path: Path) -> int:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        return int(connection.execute("SELECT analysis FROM identity").fetchone()[0])


async def holding(store: SqliteStore, term: str) -> int:
    """How many records the index has under a term."""
    async with store.view() as view:
        return len(await keys_with(view, Scope(), term))


async def found(store: SqliteStore, query: str) -> list[str]:
    searcher = Searcher(store, SearchPolicy(), ScriptedClock())
    return [hit.text for hit in (await searcher.search(Scope(), SearchRequest(query, k=100))).hits]


async def write(path: Path) -> None:
    store = await SqliteStore.open(path)
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
        await transaction.conversations.append_messages(
            session, [drafts.message(text) for text in SAID], now_ms=START_MS
        )
    await store.close()


@pytest.fixture
def old(copy: Path) -> Path:
    """The sample and two messages more, under the terms of the first analysis."""
    anyio.run(write, copy)
    make_old(copy)
    return copy


async def test_a_new_database_is_of_this_analysis(database: Path) -> None:
    await write(database)
    assert analysis(database) == ANALYSIS_VERSION > 1


async def test_what_the_first_analysis_indexed_is_found_again_after_opening(old: Path) -> None:
    store = await SqliteStore.open(old)
    assert await found(store, "apple") == [SAID[0]]
    assert (await holding(store, "apple"), await holding(store, "appl")) == (1, 0)
    assert await holding(store, "ferry") > 2 * MESSAGES
    async with store.view() as view:
        assert await record_count(view, Scope()) == 2 * (MESSAGES + 20 + 8) + 2
    await store.close()
    assert analysis(old) == ANALYSIS_VERSION
    assert [finding for finding in inspect(old, is_deep=True) if finding.verdict is Verdict.FAILED] == []


async def test_an_index_of_this_analysis_is_not_built_again(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rebuilt: list[int] = []
    original = TextIndexStatements.rebuild

    async def counting(self: TextIndexStatements) -> int:
        rebuilt.append(await original(self))
        return rebuilt[-1]

    monkeypatch.setattr(TextIndexStatements, "rebuild", counting)
    stores: list[SqliteStore] = []

    async def open_one() -> None:
        stores.append(await SqliteStore.open(old))

    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(open_one)
    assert len(rebuilt) == 1
    for store in stores:
        assert await found(store, "apple") == [SAID[0]]
        await store.close()
    await (await SqliteStore.open(old)).close()
    assert len(rebuilt) == 1


async def test_what_is_changed_after_the_rebuild_leaves_no_old_term_behind(old: Path) -> None:
    store = await SqliteStore.open(old)
    async with store.view() as view:
        [message] = [
            await view.records.record(Scope(), f"msg_{key}") for key in await keys_with(view, Scope(), "apple")
        ]
    assert message is not None
    async with store.transaction() as transaction:
        await transaction.records.change(message, drafts.edit(message, {"text": "The plum is ripe."}))
    assert (await holding(store, "apple"), await holding(store, "appl"), await holding(store, "plum")) == (0, 0, 1)
    await store.close()
    assert [finding for finding in inspect(old, is_deep=True) if finding.verdict is Verdict.FAILED] == []


@pytest.mark.parametrize("records", [0, 1, 150, 10**9], ids=["first", "second", "in the middle", "at the end"])
def test_a_process_killed_during_a_rebuild_leaves_the_old_index_to_the_next(old: Path, records: int) -> None:
    program = f"""
import anyio, os, pathlib, signal
from kalito_mcp.storage.sqlite import text_index
from kalito_mcp.storage.sqlite.database import SqliteStore

entry_of_row, rebuild, done = text_index.entry_of_row, text_index.TextIndexStatements.rebuild, []

def until_killed(row):
    done.append(row)
    if len(done) > {records}:
        os.kill(os.getpid(), signal.SIGKILL)
    return entry_of_row(row)

async def rebuild_and_die(self):
    await rebuild(self)
    os.kill(os.getpid(), signal.SIGKILL)

text_index.entry_of_row = until_killed
text_index.TextIndexStatements.rebuild = rebuild_and_die
anyio.run(SqliteStore.open, pathlib.Path({str(old)!r}))
"""
    killed = prepared.run([sys.executable, "-c", program], cwd=ROOT, env=clean_environment(), check=False, timeout=30)
    assert killed.returncode == -signal.SIGKILL
    assert analysis(old) == 1

    async def holdings(*, may_write: bool) -> tuple[int, int]:
        store = await SqliteStore.open(old, may_write=may_write)
        try:
            return await holding(store, "appl"), await holding(store, "apple")
        finally:
            await store.close()

    assert anyio.run(lambda: holdings(may_write=False)) == (1, 0)
    assert anyio.run(lambda: holdings(may_write=True)) == (0, 1)
    assert analysis(old) == ANALYSIS_VERSION
    assert [finding for finding in inspect(old, is_deep=True) if finding.verdict is Verdict.FAILED] == []


async def test_an_old_index_that_is_opened_for_reading_is_searched_as_it_is(old: Path) -> None:
    store = await SqliteStore.open(old, may_write=False)
    assert await found(store, "the ferry that leaves at seven")
    assert await holding(store, "appl") == 1
    await store.close()
    assert analysis(old) == 1


async def test_an_old_index_on_a_read_only_disk_is_searched_as_it_is(disk: Disk) -> None:
    await write(disk.database)
    make_old(disk.database)
    disk.make_read_only()
    store = await SqliteStore.open(disk.database)
    assert store.is_read_only
    assert await found(store, "ferry") == [SAID[1]]
    await store.close()


def test_the_doctor_finds_nothing_wrong_with_an_index_that_is_only_old(old: Path) -> None:
    assert [finding for finding in inspect(old, is_deep=True) if finding.verdict is Verdict.FAILED] == []
