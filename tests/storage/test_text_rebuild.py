"""A text index is rebuilt in pieces: nobody sees half of it, and whoever is killed leaves the rest to the next."""

import logging
import random
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from kalito_mcp.domain.findings import Finding, Verdict
from kalito_mcp.domain.memory_records import DELETED_AT
from kalito_mcp.domain.scope import Scope
from kalito_mcp.errors import StorageBusy, StorageReadOnly
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.sqlite import text_rebuild
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.storage.sqlite.inspection import inspect
from kalito_mcp.storage.sqlite.schema import migrations
from kalito_mcp.text.analysis_version import ANALYSIS_VERSION
from tests import drafts
from tests.campaign import first_of
from tests.index_reads import keys_with
from tests.older_schemas import BACK_TO_9
from tests.scripted import START_MS
from tests.server import prepared
from tests.server.wire import clean_environment
from tests.storage.conftest import ROOT
from tests.storage.test_reanalysis import make_old
from tests.storage.test_sweeping import CANARY, files_with

pytestmark = pytest.mark.anyio
TRIP: Final = Scope(session="trip")
MESSAGES: Final = 1_100
BATCH: Final = 250
NEXT: Final = MESSAGES + 1
UNDO: Final = f"""{BACK_TO_9}
DROP INDEX records_columns; DROP TRIGGER records_columns_changed; DROP INDEX records_sources;
ALTER TABLE records DROP COLUMN project_key; ALTER TABLE sessions DROP COLUMN project_key;
ALTER TABLE sessions DROP COLUMN is_placed; DROP TABLE projects;
CREATE UNIQUE INDEX records_sources ON records (agent_key, source, seq) WHERE source IS NOT NULL;
DROP TABLE record_shapes; DROP TABLE record_changes; DROP TABLE text_rebuild;
DROP TRIGGER records_columns_removed;
DROP TRIGGER text_rebuild_changed; DROP TRIGGER text_rebuild_removed;
DELETE FROM sqlite_sequence WHERE name = 'record_changes'; DELETE FROM migrations WHERE number > 6;
PRAGMA user_version = 6;
"""
PROGRAM: Final = Path(__file__).with_name("open_until_killed.py")


def text_of(number: int) -> str:
    return f"The apple {number} of the ferry to {('Moss', 'Oslo', 'Horten')[number % 3]} cost {number % 7} crowns."


async def _write(path: Path) -> None:
    store = await SqliteStore.open(path)
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
        messages = [drafts.message(text_of(number), name="Ann") for number in range(1, NEXT)]
        await transaction.conversations.append_messages(session, messages, now_ms=START_MS)
    await store.close()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("written") / "memory.db"
    anyio.run(_write, path)
    return path.read_bytes()


@pytest.fixture
def current(written: bytes, database: Path) -> Path:
    """A database of this release."""
    database.write_bytes(written)
    return database


@pytest.fixture
def old(current: Path) -> Path:
    """A database of schema 6, with the terms of the first analysis."""
    make_old(current)
    with closing(sqlite3.connect(current)) as connection:
        connection.executescript(UNDO)
    return current


@pytest.fixture(autouse=True)
def analysed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Make every batch a piece. The keys of the records that this process analyses."""
    keys: list[int] = []
    original = text_rebuild.entry_of_row

    def counted(row: Any) -> Any:
        keys.append(row[0])
        return original(row)

    monkeypatch.setattr(text_rebuild, "entry_of_row", counted)
    monkeypatch.setattr(text_rebuild, "_AT_ONCE", 0)
    monkeypatch.setattr(text_rebuild, "_PIECE_S", 0)
    yield keys


def start(path: Path, action: str = "open", statement: str = "", times: int = 0) -> "subprocess.Popen[str]":
    return prepared.start(
        [sys.executable, str(PROGRAM), str(path), action, statement, str(times)],
        env=clean_environment(PYTHONPATH=str(ROOT)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def kill(path: Path, statement: str, times: int, action: str = "open") -> None:
    """Let a process die before it runs the statement for the so many-th time."""
    killed = start(path, action, statement, times)
    _, said = killed.communicate(timeout=40)
    assert killed.returncode == -signal.SIGKILL, said


def query(path: Path, statement: str) -> list[Any]:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        return connection.execute(statement).fetchall()


def schema(path: Path) -> set[tuple[Any, ...]]:
    rows = query(path, "SELECT type, name, tbl_name, sql FROM sqlite_schema")
    return {(*row[:3], row[3] and " ".join(re.sub("['\"]", "", row[3]).split())) for row in rows}


def findings(path: Path) -> dict[str, Finding]:
    return {finding.check: finding for finding in inspect(path, is_deep=True)}


def assert_complete(path: Path) -> None:
    """The index equals one that is rebuilt from the records at once, and nothing is left of the rebuild."""
    assert query(path, "SELECT analysis FROM identity") == [(ANALYSIS_VERSION,)]
    assert query(path, "SELECT count(*) FROM text_rebuild") == [(0,)]
    assert query(path, "SELECT name FROM sqlite_schema WHERE name LIKE 'new%'") == []
    assert findings(path)["text index"] == Finding("text index", Verdict.OK, "0 differences from a rebuilt index")


async def holding(path: Path, term: str, *, may_write: bool) -> int:
    store = await SqliteStore.open(path, may_write=may_write)
    try:
        async with store.view() as view:
            return len(await keys_with(view, Scope(), term))
    finally:
        await store.close()


def test_the_old_database_has_the_schema_of_its_release(old: Path, tmp_path: Path) -> None:
    async def make() -> None:
        await (await SqliteStore.open(tmp_path / "six.db", steps=migrations()[:6])).close()

    anyio.run(make)
    assert schema(old) == schema(tmp_path / "six.db")


async def test_a_rebuild_in_pieces_leaves_the_schema_that_the_migrations_spell(
    old: Path, tmp_path: Path, analysed: list[int]
) -> None:
    await (await SqliteStore.open(tmp_path / "new.db")).close()
    await (await SqliteStore.open(old)).close()
    assert schema(old) == schema(tmp_path / "new.db")
    assert_complete(old)
    assert analysed == list(range(1, NEXT))


@pytest.mark.parametrize(
    ("statement", "times", "done"),
    [
        ("VACUUM INTO", 1, None),
        ("CREATE TABLE text_rebuild", 1, None),
        ("INSERT INTO new_records_text", 1, 0),
        ("INSERT INTO new_records_text", 2 * BATCH + 100, 2 * BATCH),
        ("UPDATE text_rebuild SET done_key", 4, 3 * BATCH),
        ("DROP TABLE records_text", 1, MESSAGES),
        ("ALTER TABLE new_record_shapes", 1, MESSAGES),
        ("UPDATE identity SET analysis", 1, MESSAGES),
    ],
)
def test_a_migration_that_is_killed_goes_on_where_it_stopped(
    old: Path, analysed: list[int], statement: str, times: int, done: int | None
) -> None:
    kill(old, statement, times)
    if done is None:
        assert findings(old)["schema"].verdict is Verdict.WARNING
        with pytest.raises(StorageReadOnly):
            anyio.run(lambda: holding(old, "appl", may_write=False))
    else:
        # Whoever may only read has the whole index of before.
        assert anyio.run(lambda: holding(old, "appl", may_write=False)) == MESSAGES
        assert findings(old)["text index"].verdict is Verdict.WARNING
    assert anyio.run(lambda: holding(old, "apple", may_write=True)) == MESSAGES
    assert analysed == list(range((done or 0) + 1, NEXT))
    assert_complete(old)
    assert {finding.verdict for finding in findings(old).values()} == {Verdict.OK}


def test_what_one_process_has_rebuilt_the_next_one_leaves(old: Path, analysed: list[int]) -> None:
    running = start(old)
    assert running.communicate(timeout=40)[0] == f"{MESSAGES}\n"
    anyio.run(lambda: holding(old, "apple", may_write=True))
    assert analysed == []


def test_killed_again_and_again_it_comes_to_its_end(old: Path, analysed: list[int]) -> None:
    for _ in range(3):
        kill(old, "UPDATE text_rebuild SET done_key", 2)
    assert anyio.run(lambda: holding(old, "apple", may_write=True)) == MESSAGES
    assert analysed == list(range(3 * BATCH + 1, NEXT))
    assert_complete(old)


def test_processes_that_open_at_once_index_every_record_once(old: Path) -> None:
    kill(old, "INSERT INTO new_records_text", 1)
    running = [start(old) for _ in range(3)]
    counts = []
    for process in running:
        said, complaint = process.communicate(timeout=60)
        assert process.returncode == 0, complaint
        counts.append(int(said))
    assert sum(counts) == MESSAGES
    assert_complete(old)


def test_processes_that_migrate_at_once_end_with_one_sound_index(old: Path) -> None:
    for process in [start(old) for _ in range(3)]:
        _, complaint = process.communicate(timeout=60)
        assert process.returncode == 0, complaint
    assert len(list(old.parent.glob("*.backup"))) == 1
    assert {finding.verdict for finding in findings(old).values()} == {Verdict.OK}


@pytest.mark.parametrize(
    ("change", "is_done_anew"),
    [
        ("UPDATE records SET text = 'A plum.' WHERE key = 3", True),
        ("UPDATE records SET deleted_at = 1 WHERE key = 500", True),
        ("DELETE FROM records WHERE key = 500", True),
        ("UPDATE records SET text = 'A plum.', name = NULL WHERE key = 501", False),
        ("UPDATE records SET deleted_at = 1 WHERE key = 1100", False),
        ("UPDATE records SET importance = 0.1, text = text WHERE key = 3", False),
        (
            "INSERT INTO records (agent_key, session_key, type, seq, role, text, importance, tokens, created_at, hash)"
            " VALUES (1, 1, 'message', 1101, 'user', 'A plum.', 0.5, 3, 0, x'')",
            False,
        ),
    ],
)
def test_what_another_process_changes_between_two_pieces_is_indexed_once(
    old: Path, analysed: list[int], change: str, is_done_anew: bool
) -> None:
    kill(old, "INSERT INTO new_records_text", 2 * BATCH + 1)
    with closing(sqlite3.connect(old)) as connection, connection:
        connection.execute(change)
    anyio.run(lambda: holding(old, "apple", may_write=True))
    assert min(analysed) == (1 if is_done_anew else 2 * BATCH + 1)
    assert_complete(old)


def between_pieces(monkeypatch: pytest.MonkeyPatch, work: Any, *, after: int = 2, is_repeated: bool = False) -> None:
    """Do the work before the piece after so many, or before each from there on."""
    original, pieces = text_rebuild.rebuild, 0

    async def rebuild(write: Any, *, is_forced: bool = False) -> None:
        @asynccontextmanager
        async def writing() -> Any:
            nonlocal pieces
            pieces += 1
            if pieces == after + 2 or (is_repeated and pieces > after + 2):
                await work()
            async with write() as transaction:
                yield transaction

        await original(writing, is_forced=is_forced)

    monkeypatch.setattr("kalito_mcp.storage.sqlite.database.rebuild", rebuild)


async def test_a_server_writes_and_searches_while_another_process_reindexes(
    current: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serving, other = await SqliteStore.open(current), await SqliteStore.open(current)

    async def meanwhile() -> None:
        async with serving.transaction() as transaction:
            session = await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
            [added] = await transaction.conversations.append_messages(
                session, [drafts.message("A new apple.")], now_ms=START_MS
            )
        async with serving.view() as view:
            assert (await keys_with(view, Scope(), "apple"))[0] == added.id
            assert len(await keys_with(view, Scope(), "apple")) == MESSAGES + 1

    between_pieces(monkeypatch, meanwhile)
    assert await other.reindex() == MESSAGES + 1
    async with serving.view() as view:
        assert len(await keys_with(view, Scope(), "apple")) == MESSAGES + 1
    for store in (serving, other):
        await store.close()
    assert_complete(current)


async def test_an_edit_while_another_process_reindexes_is_in_the_new_index(
    current: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    serving, other = await SqliteStore.open(current), await SqliteStore.open(current)

    async def meanwhile() -> None:
        async with serving.transaction() as transaction:
            record = await transaction.records.record(Scope(), "msg_7")
            assert record is not None
            await transaction.records.change(record, drafts.edit(record, {"text": "A plum."}))

    between_pieces(monkeypatch, meanwhile)
    assert await other.reindex() == MESSAGES
    async with serving.view() as view:
        assert await keys_with(view, Scope(), "plum") == [7]
        assert len(await keys_with(view, Scope(), "apple")) == MESSAGES - 1
    for store in (serving, other):
        await store.close()
    assert_complete(current)
    assert "beginning again" in caplog.text


async def test_a_rebuild_comes_to_its_end_however_often_records_are_changed(
    current: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    other = await SqliteStore.open(current)
    changes = 0

    async def meanwhile() -> None:
        nonlocal changes
        with closing(sqlite3.connect(current)) as connection, connection:
            changes += 1
            connection.execute("UPDATE records SET deleted_at = ? WHERE key = 1", [changes])

    between_pieces(monkeypatch, meanwhile, after=1, is_repeated=True)
    assert await other.reindex() == MESSAGES - 1
    await other.close()
    assert_complete(current)
    assert caplog.text.count("beginning again") == text_rebuild._MOST_RESTARTS
    assert "in one go" in caplog.text


@pytest.mark.parametrize("seed", first_of(range(6)))
async def test_whatever_is_changed_between_its_pieces_a_rebuild_gives_the_index_of_one_made_at_once(
    current: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    serving, other = await SqliteStore.open(current), await SqliteStore.open(current)
    drawn = random.Random(seed)

    async def meanwhile() -> None:
        async with serving.transaction() as transaction:
            records = transaction.records
            for _ in range(drawn.choice((0, 0, 1, 2))):
                record = await records.record(Scope(), f"msg_{drawn.randrange(1, NEXT)}")
                kind = drawn.choice(("edit", "forget", "restore", "purge", "record"))
                if kind == "record" or record is None:
                    session = await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
                    new = [drafts.message(f"A new plum {drawn.random()}.")]
                    await transaction.conversations.append_messages(session, new, now_ms=START_MS)
                elif kind == "edit":
                    await records.change(record, drafts.edit(record, {"text": f"A pear {drawn.random()}."}))
                elif kind == "purge":
                    await records.purge(record, now_ms=START_MS)
                elif record.is_deleted != (kind == "forget"):
                    changed = {DELETED_AT: START_MS if kind == "forget" else None}
                    await records.change(record, drafts.edit(record, changed))
        if drawn.random() < 0.1:
            await serving.maintenance.finish_erasures()

    between_pieces(monkeypatch, meanwhile, after=0, is_repeated=True)
    await other.reindex()
    for store in (serving, other):
        await store.close()
    assert_complete(current)


@pytest.mark.parametrize(
    ("statement", "times"),
    [
        ("DROP TABLE IF EXISTS new_record_shapes", 2),
        ("CREATE VIRTUAL TABLE new_records_text", 2),
        ("INSERT INTO text_rebuild", 2),
    ],
)
async def test_killed_while_it_begins_again_a_rebuild_goes_on_at_the_next_start(
    current: Path, statement: str, times: int
) -> None:
    with closing(sqlite3.connect(current)) as connection, connection:
        # Each time that it has come so far, a record is changed.
        connection.execute(
            "CREATE TRIGGER changed AFTER UPDATE OF done_key ON text_rebuild WHEN new.done_key = 500 "
            "BEGIN UPDATE records SET text = text || ' Again.' WHERE key = 3; END"
        )
    await anyio.to_thread.run_sync(kill, current, statement, times, "reindex")
    with closing(sqlite3.connect(current)) as connection, connection:
        connection.execute("DROP TRIGGER changed")
    store = await SqliteStore.open(current)
    await store.reindex()
    await store.close()
    assert_complete(current)


async def test_opening_does_not_disturb_a_reindexing_process_and_helps_it(
    current: Path, monkeypatch: pytest.MonkeyPatch, analysed: list[int]
) -> None:
    other = await SqliteStore.open(current)

    async def meanwhile() -> None:
        # Under the patched name this one would wait for itself.
        monkeypatch.setattr("kalito_mcp.storage.sqlite.database.rebuild", text_rebuild.rebuild)
        await (await SqliteStore.open(current)).close()

    between_pieces(monkeypatch, meanwhile)
    assert await other.reindex() == MESSAGES
    await other.close()
    assert analysed == list(range(1, NEXT))
    assert_complete(current)


def test_a_killed_reindex_is_completed_at_the_next_start(current: Path, analysed: list[int]) -> None:
    kill(current, "INSERT INTO new_records_text", 3 * BATCH + 1, action="reindex")
    owed = findings(current)["text index"]
    assert (owed.verdict, "750 of 1,100 records" in owed.detail) == (Verdict.WARNING, True)
    assert anyio.run(lambda: holding(current, "apple", may_write=False)) == MESSAGES
    assert anyio.run(lambda: holding(current, "apple", may_write=True)) == MESSAGES
    assert analysed == list(range(3 * BATCH + 1, NEXT))
    assert_complete(current)


async def test_a_purge_during_a_rebuild_leaves_the_words_in_no_file(current: Path) -> None:
    serving = await SqliteStore.open(current)
    async with serving.transaction() as transaction:
        record = await transaction.records.record(Scope(), "msg_7")
        assert record is not None
        record = await transaction.records.change(record, drafts.edit(record, {"text": f"A {CANARY}."}))
    await anyio.to_thread.run_sync(kill, current, "UPDATE text_rebuild SET done_key", 3, "reindex")
    async with serving.transaction() as transaction:
        await transaction.records.purge(record, now_ms=START_MS)
    assert await serving.maintenance.finish_erasures() == {}
    assert files_with(current.parent, CANARY) == []
    await serving.close()
    await (await SqliteStore.open(current)).close()
    assert findings(current)["text index"].verdict is Verdict.OK


async def test_a_rebuild_of_another_release_is_begun_anew(old: Path, analysed: list[int]) -> None:
    await anyio.to_thread.run_sync(kill, old, "UPDATE text_rebuild SET done_key", 3)
    with closing(sqlite3.connect(old)) as connection, connection:
        connection.execute("UPDATE text_rebuild SET analysis = 99")
    await (await SqliteStore.open(old)).close()
    assert analysed == list(range(1, NEXT))
    assert_complete(old)


async def test_of_two_releases_that_rebuild_at_once_one_gives_up(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def meanwhile() -> None:
        with closing(sqlite3.connect(old)) as connection, connection:
            connection.execute("UPDATE text_rebuild SET analysis = 99")

    between_pieces(monkeypatch, meanwhile)
    with pytest.raises(StorageBusy, match="another release"):
        await SqliteStore.open(old)


async def test_the_log_tells_of_the_migration_and_how_far_the_rebuild_is(
    old: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await anyio.to_thread.run_sync(kill, old, "UPDATE text_rebuild SET done_key", 3)
    caplog.set_level(logging.WARNING, "kalito")
    monkeypatch.setattr(text_rebuild, "_TELL_EVERY_S", 0)
    await (await SqliteStore.open(old)).close()
    assert [
        record.getMessage().rpartition(",")[0] for record in caplog.records if "of 1,100" in record.getMessage()
    ] == [f"rebuilding the text index: {done:,} of 1,100 records" for done in (500, 750, 1_000, 1_100)]
    assert "rebuilding the text index: 1,100 records, 500 of them done already" in caplog.text
    assert "the text index is rebuilt, after" in caplog.text
    caplog.clear()
    await (await SqliteStore.open(old)).close()
    assert caplog.text == ""


def test_a_command_tells_it_on_stderr_and_prints_only_its_results(old: Path) -> None:
    program = (
        "from kalito_mcp.storage.sqlite import text_rebuild\ntext_rebuild._AT_ONCE = 0\n"
        "from kalito_mcp.cli.main import main\nmain()"
    )
    ended = prepared.run(
        [sys.executable, "-c", program, "search", "apple 77", "--database", str(old)],
        cwd=ROOT,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=40,
        check=False,
    )
    assert ended.returncode == 0
    assert "msg_77" in ended.stdout
    assert "text index" not in ended.stdout
    for told in ("schema 6", "memory.db.before-7.backup", f"migrated to schema {len(migrations())}", "1,100 records"):
        assert told in ended.stderr


def test_who_may_only_read_an_old_index_is_told(old: Path, caplog: pytest.LogCaptureFixture) -> None:
    kill(old, "UPDATE text_rebuild SET done_key", 3)
    anyio.run(lambda: holding(old, "appl", may_write=False))
    assert "an older release made the text index" in caplog.text
