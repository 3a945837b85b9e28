"""Migrations run once, completely or not at all, with a backup first. Foreign files are not changed."""

import hashlib
import signal
import sqlite3
import stat
import sys
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import aiosqlite
import anyio
import pytest

from kalito_mcp.domain.findings import Verdict
from kalito_mcp.domain.records import CreatePinRequest, NewMessage, Role
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import SearchRequest
from kalito_mcp.errors import SchemaTooNew, SchemaUnknown, StorageDamaged, StorageError
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.row_hash import row_hash
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.storage.sqlite.inspection import inspect
from kalito_mcp.storage.sqlite.schema import APPLICATION_ID, Migration, is_current, migrations
from kalito_mcp.storage.sqlite.text_index import INSERT_TERMS
from kalito_mcp.text.analysis import index_text
from kalito_mcp.wiring import open_memory
from tests import drafts
from tests.older_schemas import BACK_TO_9, BACK_TO_20
from tests.scripted import START_MS
from tests.server import prepared
from tests.server.wire import clean_environment
from tests.storage.conftest import ROOT

pytestmark = pytest.mark.anyio
NEXT = len(migrations()) + 1
ADDS_A_TABLE = Migration(NEXT, "notes", "CREATE TABLE notes (text TEXT) STRICT;\nINSERT INTO notes VALUES ('a;b');\n")
FAILS_HALFWAY = Migration(NEXT, "broken", "CREATE TABLE notes (text TEXT) STRICT;\nINSERT INTO nowhere VALUES (1);\n")


def query(path: Path, statement: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        return connection.execute(statement).fetchall()


def version(path: Path) -> int:
    [[number]] = query(path, "PRAGMA user_version")
    assert isinstance(number, int)
    return number


def schema(path: Path) -> list[tuple[object, ...]]:
    return query(path, "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name")


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


async def open_and_close(path: Path, steps: list[Migration] | None = None) -> list[int]:
    """The numbers of the migrations that opening applied."""
    before = version(path) if path.exists() else 0
    store = await SqliteStore.open(path, steps=steps)
    await store.close()
    return list(range(before + 1, version(path) + 1))


async def test_a_new_database_has_the_schema_that_the_migrations_spell(database: Path, tmp_path: Path) -> None:
    await open_and_close(database)
    with closing(sqlite3.connect(tmp_path / "by hand.db")) as by_hand:
        for step in migrations():
            by_hand.executescript(step.sql)
    expected = schema(tmp_path / "by hand.db")
    assert [row for row in schema(database) if row[2] != "migrations"] == expected
    assert version(database) == len(migrations())
    assert query(database, "PRAGMA application_id") == [(APPLICATION_ID,)]


def test_migrations_are_numbered_from_one_without_gaps() -> None:
    assert [step.number for step in migrations()] == list(range(1, NEXT))
    assert len({step.name for step in migrations()}) == len(migrations())


async def test_opening_again_applies_nothing_and_makes_no_backup(database: Path) -> None:
    assert await open_and_close(database) == list(range(1, NEXT))
    before = digest(database)
    assert await open_and_close(database) == []
    assert digest(database) == before
    assert not list(database.parent.glob("*.backup"))


async def test_opening_a_new_database_from_many_sides_at_once_creates_it_once(database: Path) -> None:
    stores: list[SqliteStore] = []

    async def open_one() -> None:
        stores.append(await SqliteStore.open(database))

    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(open_one)
    assert query(database, "SELECT number FROM migrations") == [(number,) for number in range(1, NEXT)]
    assert len({await store.secret() for store in stores}) == 1
    for store in stores:
        await store.close()


@pytest.mark.parametrize("statement", range(4))
async def test_a_database_that_another_process_creates_meanwhile_is_recognised(database: Path, statement: int) -> None:
    database.touch()
    looks = 0

    def create(_: str) -> None:
        nonlocal looks
        if looks == statement:
            # Where the look has its lock already, the other process comes too late, and that is well.
            with suppress(sqlite3.OperationalError), closing(sqlite3.connect(database, timeout=0)) as other, other:
                other.executescript(f"BEGIN; CREATE TABLE anything (x); PRAGMA application_id = {APPLICATION_ID};")
                other.executescript("CREATE TABLE migrations (number, checksum); COMMIT")
        looks += 1

    async with aiosqlite.connect(database, isolation_level=None) as looking:
        await looking.set_trace_callback(create)
        await is_current(looking, [], database)


async def test_a_later_migration_is_applied_once_with_a_backup_of_what_was_before(copy: Path) -> None:
    before = query(copy, "SELECT * FROM records ORDER BY key")
    assert await open_and_close(copy, [*migrations(), ADDS_A_TABLE]) == [NEXT]
    assert query(copy, "SELECT * FROM notes") == [("a;b",)]
    assert query(copy, "SELECT * FROM records ORDER BY key") == before
    assert await open_and_close(copy, [*migrations(), ADDS_A_TABLE]) == []
    [backup] = copy.parent.glob("*.backup")
    assert backup.name == f"memory.db.before-{NEXT}.backup"
    assert version(backup) == NEXT - 1
    assert query(backup, "SELECT * FROM records ORDER BY key") == before
    assert query(backup, "PRAGMA integrity_check") == [("ok",)]
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600


async def test_erasures_of_a_release_that_did_not_know_an_interrupted_one_are_swept_again(database: Path) -> None:
    await open_and_close(database, migrations()[:4])
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("INSERT INTO tombstones VALUES ('msg_1', 'x', 'local', 'message', 1, 1, NULL, 0, 0)")
    assert await open_and_close(database) == list(range(5, NEXT))
    assert query(database, "SELECT text_keys FROM unswept") == [("[]",)]


async def test_the_backup_can_be_opened_in_the_databases_place(copy: Path) -> None:
    await open_and_close(copy, [*migrations(), ADDS_A_TABLE])
    [backup] = copy.parent.glob("*.backup")
    backup.rename(copy)
    store = await SqliteStore.open(copy)
    async with store.view() as view:
        assert (await view.sessions.totals(Scope()))["sessions"] == 2
    await store.close()


async def test_a_failing_migration_leaves_the_old_version_and_the_next_try_succeeds(copy: Path) -> None:
    before = schema(copy), version(copy)
    with pytest.raises(StorageError):
        await open_and_close(copy, [*migrations(), FAILS_HALFWAY])
    assert (schema(copy), version(copy)) == before
    assert await open_and_close(copy) == []
    assert await open_and_close(copy, [*migrations(), ADDS_A_TABLE]) == [NEXT]


async def test_of_two_migrations_the_one_before_the_failing_one_stays(copy: Path) -> None:
    second = replace(FAILS_HALFWAY, number=NEXT + 1, sql="CREATE TABLE more (x);\nINSERT INTO nowhere VALUES (1);\n")
    with pytest.raises(StorageError):
        await open_and_close(copy, [*migrations(), ADDS_A_TABLE, second])
    assert version(copy) == NEXT
    assert [row[1] for row in schema(copy) if row[1] in {"notes", "more"}] == ["notes"]


@pytest.mark.parametrize("sql", ["CREATE TABLE notes (x)", "CREATE TABLE notes (x); -- the last\n"])
async def test_a_last_statement_is_executed_whatever_stands_after_it(copy: Path, sql: str) -> None:
    await open_and_close(copy, [*migrations(), replace(ADDS_A_TABLE, sql=sql)])
    assert any(row[1] == "notes" for row in schema(copy))


async def test_a_migration_that_was_applied_in_another_form_is_refused(copy: Path) -> None:
    before = digest(copy)
    steps = [replace(migrations()[0], sql=migrations()[0].sql + "-- changed\n"), *migrations()[1:]]
    with pytest.raises(SchemaUnknown, match="It is not damaged: open it with the version that wrote it"):
        await open_and_close(copy, steps)
    assert digest(copy) == before


async def test_a_newer_schema_is_refused_and_the_file_stays_as_it_is(copy: Path) -> None:
    await open_and_close(copy, [*migrations(), ADDS_A_TABLE])
    before = digest(copy)
    for may_write in (True, False):
        with pytest.raises(SchemaTooNew, match="upgrade"):
            await SqliteStore.open(copy, may_write=may_write)
    assert digest(copy) == before


async def test_a_newer_schema_with_unfinished_work_is_refused_and_not_changed(copy: Path) -> None:
    await open_and_close(copy, [*migrations(), ADDS_A_TABLE])
    wal = leave_a_wal_behind(copy)
    before = digest(copy), digest(wal)
    with pytest.raises(SchemaTooNew):
        await SqliteStore.open(copy)
    assert (digest(copy), digest(wal)) == before


@pytest.mark.parametrize(
    "statement",
    ["CREATE TABLE theirs (x)", "PRAGMA user_version = 7", "PRAGMA application_id = 252006674"],
)
async def test_another_programs_database_is_refused_and_stays_as_it_is(database: Path, statement: str) -> None:
    with closing(sqlite3.connect(database)) as theirs:
        theirs.execute(statement)
        theirs.commit()
    before = digest(database)
    with pytest.raises(StorageDamaged, match="another program"):
        await SqliteStore.open(database)
    assert digest(database) == before
    assert {path.name for path in database.parent.iterdir()} <= {database.name, f"{database.name}.lock"}


async def test_another_programs_wal_is_not_merged_into_its_database(database: Path) -> None:
    with closing(sqlite3.connect(database)) as theirs:
        theirs.execute("PRAGMA journal_mode = WAL")
        theirs.execute("CREATE TABLE theirs (x)")
    wal = leave_a_wal_behind(database, "INSERT INTO theirs VALUES (1)")
    before = digest(database), digest(wal)
    with pytest.raises(StorageDamaged, match="another program"):
        await SqliteStore.open(database)
    assert (digest(database), digest(wal)) == before


@pytest.mark.parametrize("statement", [0, 1, 2])
def test_a_process_killed_inside_a_migration_leaves_the_old_schema_and_can_be_resumed(
    copy: Path, statement: int
) -> None:
    program = f"""
import anyio, os, pathlib, signal, sqlite3
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.storage.sqlite.schema import Migration, migrations

class Fatal(Migration):
    def statements(self):
        for place, statement in enumerate(super().statements()):
            if place == {statement}:
                os.kill(os.getpid(), signal.SIGKILL)
            yield statement
        os.kill(os.getpid(), signal.SIGKILL)

steps = [*migrations(), Fatal({NEXT}, "notes", {ADDS_A_TABLE.sql!r})]
anyio.run(SqliteStore.open, pathlib.Path({str(copy)!r}), None, steps)
"""
    assert (
        prepared.run(
            [sys.executable, "-c", program], cwd=ROOT, env=clean_environment(), check=False, timeout=30
        ).returncode
        == -signal.SIGKILL
    )
    assert version(copy) == NEXT - 1
    assert anyio.run(open_and_close, copy, [*migrations(), ADDS_A_TABLE]) == [NEXT]
    assert query(copy, "SELECT count(*) FROM notes") == [(1,)]


def leave_a_wal_behind(path: Path, statement: str = "UPDATE sessions SET updated_at = updated_at + 1") -> Path:
    """Commit something in a process that dies before it can move it from the -wal into the database."""
    program = f"""
import os, signal, sqlite3
connection = sqlite3.connect({str(path)!r}, isolation_level=None)
connection.execute({statement!r})
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert (
        prepared.run(
            [sys.executable, "-c", program], cwd=ROOT, env=clean_environment(), check=False, timeout=30
        ).returncode
        == -signal.SIGKILL
    )
    wal = path.with_name(f"{path.name}-wal")
    assert wal.stat().st_size > 0
    return wal


async def test_opening_for_reading_on_purpose_changes_neither_the_file_nor_its_wal(copy: Path) -> None:
    wal = leave_a_wal_behind(copy)
    before = digest(copy), digest(wal)
    store = await SqliteStore.open(copy, may_write=False)
    async with store.view() as view:
        session = await view.sessions.get(Scope(session="trip"))
        assert session is not None
    await store.close()
    assert (digest(copy), digest(wal)) == before


def index_as_then(
    connection: sqlite3.Connection, key: object, session: object, kind: object, text: str, name: object = None
) -> None:
    """Index a record as the first releases did: with its session and its type, and without counts. The session's agent
    has the same number."""
    terms = index_text(text, None if name is None else str(name)).terms
    entry = " ".join((f"s:{session}", f"{session}:t:{kind}", *(f"{session}:{term}" for term in terms)))
    connection.execute(INSERT_TERMS, {"key": key, "terms": entry})


def write_with_the_first_release(path: Path) -> None:
    """A session with messages, as the first schema has it."""
    text = "The ferry leaves at seven."
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO agents (owner, id, record_count) VALUES ('local', 'default', 2)")
        connection.execute(
            "INSERT INTO sessions (owner, id, agent_key, message_count, importance_sum, pinned_seq, created_at,"
            " updated_at) VALUES ('local', 'trip', 1, 2, 1.0, 2, 0, 0)"
        )
        for seq in (1, 2):
            hashed = (1, "message", None, seq, None, None, "user", None, text, 0.5, START_MS, None, None)
            connection.execute(
                "INSERT INTO records (key, session_key, type, seq, role, text, importance, tokens, created_at, hash)"
                " VALUES (?, 1, 'message', ?, 'user', ?, 0.5, 7, ?, ?)",
                (seq, seq, text, START_MS, row_hash(*hashed)),
            )
            index_as_then(connection, seq, 1, "message", text)
        connection.commit()


async def test_the_first_releases_messages_are_kept_and_in_no_graph(database: Path) -> None:
    await open_and_close(database, migrations()[:1])
    write_with_the_first_release(database)
    columns = "key, session_key, type, seq, role, text, importance, tokens, created_at, hash"
    before = query(database, f"SELECT {columns} FROM records ORDER BY key")
    assert await open_and_close(database) == list(range(2, NEXT))
    assert query(database, f"SELECT {columns} FROM records ORDER BY key") == before
    store = await SqliteStore.open(database)
    async with store.view() as view:
        session = await view.sessions.get(Scope(session="trip"))
        assert session is not None
        assert (session.message_count, session.observed_seq, session.stage) == (2, 0, None)
        assert (await view.graphs.load(Scope(session="trip"))).nodes == ()
    await store.close()
    assert {finding.verdict for finding in inspect(database, is_deep=True)} == {Verdict.OK}


def test_the_first_releases_database_is_looked_over_as_it_is(database: Path) -> None:
    anyio.run(open_and_close, database, migrations()[:1])
    write_with_the_first_release(database)
    findings = {finding.check: finding for finding in inspect(database, is_deep=True)}
    assert findings.pop("schema").verdict is Verdict.WARNING
    assert findings.pop("text index").verdict is Verdict.WARNING
    assert {finding.verdict for finding in findings.values()} == {Verdict.OK}
    assert "row hashes" in findings


BEFORE_TYPES = migrations()[:2]
OLD_COLUMNS = (
    "key, session_key, type, id, seq, end_seq, level, is_covered, role, name, text, importance, tokens, created_at,"
    " client_key, attributes, hash"
)


def write_with_the_second_release(path: Path) -> None:
    """Two sessions with messages, a pin and a summary, and a record number that is no longer in use."""
    rows: list[tuple[object, ...]] = []

    def keep(kind: str, session: int, **fields: object) -> None:
        row = {
            **dict.fromkeys(("id", "seq", "end_seq", "level", "role", "name"), None),
            **{"text": f"{kind} of the ferry", "importance": 0.5, "created_at": START_MS},
            **{"client_key": None, "attributes": None, "is_covered": None, **fields},
        }
        place = [row[name] for name in ("id", "seq", "end_seq", "level", "role", "name")]
        kept = [row[name] for name in ("text", "importance", "created_at", "client_key", "attributes")]
        rows.append(
            (
                *(len(rows) + 1, session, kind, *place[:4], row["is_covered"], *place[4:], *kept[:2], 7, *kept[2:]),
                row_hash(session, kind, *place, *kept),  # type: ignore[arg-type]
            )
        )

    for session in (1, 2):
        for seq in (1, 2, 3):
            keep("message", session, seq=seq, role="user", name="Ann", client_key=f"k{seq}", attributes='{"a":1}')
        keep("pin", session, id=f"p{session}", attributes='{"pin_type":"manual","source_message_id":"msg_1"}')
        moments = f'"started_at":{START_MS},"ended_at":{START_MS},"method":"extractive"'
        attributes = f'{{"start_message_id":"msg_1","end_message_id":"msg_2",{moments}}}'
        place = {"seq": 1, "end_seq": 2, "level": 0, "is_covered": 0}
        keep("summary", session, id=f"s{session}", attributes=attributes, **place)
    with closing(sqlite3.connect(path)) as connection:
        for agent, name in ((1, "default"), (2, "other")):
            connection.execute(
                "INSERT INTO agents (key, owner, id, record_count) VALUES (?, 'local', ?, 5)", (agent, name)
            )
            connection.execute(
                "INSERT INTO sessions (key, owner, id, agent_key, message_count, pin_count, summary_count,"
                " importance_sum, summarized_seq, created_at, updated_at)"
                " VALUES (?, 'local', ?, ?, 3, 1, 1, 1.5, 2, 0, 0)",
                (agent, f"trip {agent}", agent),
            )
        connection.executemany(f"INSERT INTO records ({OLD_COLUMNS}) VALUES ({', '.join('?' * 17)})", rows)
        for row in rows:
            index_as_then(connection, row[0], row[1], row[2], str(row[10]), row[9])
        connection.execute("UPDATE sqlite_sequence SET seq = 50 WHERE name = 'records'")
        connection.commit()


async def test_the_second_releases_records_keep_everything_and_get_their_agent(database: Path) -> None:
    await open_and_close(database, BEFORE_TYPES)
    write_with_the_second_release(database)
    before = query(database, f"SELECT {OLD_COLUMNS} FROM records ORDER BY key")
    assert len(before) == 10
    assert await open_and_close(database) == list(range(3, NEXT))
    assert query(database, f"SELECT {OLD_COLUMNS} FROM records ORDER BY key") == before
    assert query(database, "SELECT count(*) FROM records WHERE agent_key = session_key") == [(10,)]
    assert {finding.verdict for finding in inspect(database, is_deep=True)} == {Verdict.OK}
    store = await SqliteStore.open(database)
    async with store.view() as view:
        message = await view.records.record(Scope(session="trip 2"), "msg_6")
        pin = await view.records.record(Scope(), "p1")
    assert message is not None
    assert pin is not None
    assert (message.agent_id, message.revision, message.origin, message.recorded_at) == ("other", 1, "user", START_MS)
    assert pin.content["source_message_id"] == "msg_1"
    await store.close()


async def test_a_session_of_a_release_without_projects_goes_along_with_the_first_that_goes_on_in_it(
    database: Path,
) -> None:
    await open_and_close(database, BEFORE_TYPES)
    write_with_the_second_release(database)
    async with open_memory(database) as memory:
        kite = await memory.in_project("kite")
        recorded = await kite.record_messages("trip 1", [NewMessage(Role.USER, "The ferry leaves at noon.")])
        assert recorded.session.project == "kite"
        found = await kite.search_memory(SearchRequest("ferry", k=20), agent_id="default")
        assert len(found.hits) + sum(len(hit.same) for hit in found.hits) == 6
        personal = await memory.in_project("personal")
        assert not (await personal.search_memory(SearchRequest("ferry"), agent_id="default")).hits
        other = await (await memory.in_project("boat")).search_memory(SearchRequest("ferry"), agent_id="other")
        assert other.hits, "a session that no project has taken along is personal"
    assert {finding.verdict for finding in inspect(database, is_deep=True)} == {Verdict.OK}
    assert [one.name for one in database.parent.glob("*.backup")] == ["memory.db.before-3.backup"]


async def test_a_record_number_that_was_used_before_the_migration_is_not_used_again(database: Path) -> None:
    await open_and_close(database, BEFORE_TYPES)
    write_with_the_second_release(database)
    store = await SqliteStore.open(database)
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, Scope(session="trip 1"), now_ms=START_MS)
        [appended] = await transaction.conversations.append_messages(session, [drafts.message("new")], now_ms=START_MS)
    await store.close()
    assert (appended.id, appended.seq) == (51, 4)
    assert query(database, "SELECT name FROM sqlite_sequence WHERE name LIKE '%records'") == [("records",)]


def test_the_second_releases_database_is_looked_over_as_it_is(database: Path) -> None:
    anyio.run(open_and_close, database, BEFORE_TYPES)
    write_with_the_second_release(database)
    findings = {finding.check: finding for finding in inspect(database, is_deep=True)}
    assert findings.pop("schema").verdict is Verdict.WARNING
    assert findings.pop("text index").verdict is Verdict.WARNING
    assert {finding.verdict for finding in findings.values()} == {Verdict.OK}
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("UPDATE records SET text = 'forged' WHERE key = 5")
        connection.commit()
    findings = {finding.check: finding for finding in inspect(database, is_deep=True)}
    assert "record 5 (summary)" in findings["row hashes"].detail


@pytest.mark.parametrize("statement", [1, 2, 5, 6, 12, 18])
def test_a_process_killed_while_records_are_rebuilt_leaves_them_as_they_were(database: Path, statement: int) -> None:
    anyio.run(open_and_close, database, BEFORE_TYPES)
    write_with_the_second_release(database)
    before = query(database, "SELECT * FROM records ORDER BY key"), schema(database)
    program = f"""
import anyio, os, pathlib, signal
from dataclasses import astuple
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.storage.sqlite.schema import Migration, migrations

class Fatal(Migration):
    def statements(self):
        for place, statement in enumerate(super().statements()):
            if place == {statement}:
                os.kill(os.getpid(), signal.SIGKILL)
            yield statement

steps = migrations()
steps[2] = Fatal(*astuple(steps[2]))
anyio.run(SqliteStore.open, pathlib.Path({str(database)!r}), None, steps)
"""
    killed = prepared.run([sys.executable, "-c", program], cwd=ROOT, env=clean_environment(), check=False, timeout=30)
    assert killed.returncode == -signal.SIGKILL
    assert (query(database, "SELECT * FROM records ORDER BY key"), schema(database)) == before
    assert anyio.run(open_and_close, database) == list(range(3, NEXT))
    assert {finding.verdict for finding in inspect(database, is_deep=True)} == {Verdict.OK}


async def test_pins_of_the_ninth_schema_stay_their_sessions_and_keep_their_hashes(copy: Path) -> None:
    with closing(sqlite3.connect(copy)) as connection, connection:
        connection.executescript(BACK_TO_9)
    assert [one.check for one in inspect(copy, is_deep=True) if one.verdict is Verdict.FAILED] == []
    before = query(copy, "SELECT key, hash, text, project_key FROM records ORDER BY key")
    assert await open_and_close(copy) == list(range(10, NEXT))
    assert query(copy, "SELECT key, hash, text, project_key FROM records ORDER BY key") == before
    assert query(copy, "SELECT count(*) FROM records WHERE reach IS NOT NULL") == [(0,)]
    assert [one.check for one in inspect(copy, is_deep=True) if one.verdict is not Verdict.OK] == []


async def test_what_a_record_of_an_older_schema_supersedes_is_still_superseded(database: Path) -> None:
    async with open_memory(database) as memory:
        pin = await memory.create_pin(CreatePinRequest("s", "The bell rings at six."))
        said = NewMessage(Role.USER, "The bell is gone.", details={"supersedes": [pin.id]})
        [gone] = (await memory.record_messages("s", [said])).message_ids
        await memory.remember("note", {"text": "It is back.", "supersedes": [gone]})
    links = query(database, "SELECT by_key, record_key FROM superseded_records ORDER BY by_key")
    assert len(links) == 2
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.executescript(BACK_TO_9)
    assert await open_and_close(database) == list(range(10, NEXT))
    assert query(database, "SELECT by_key, record_key FROM superseded_records ORDER BY by_key") == links


async def test_the_feedback_of_graphs_is_counted_once_for_the_newest_message_of_its_node(database: Path) -> None:
    async with open_memory(database) as memory:
        turns = [NewMessage(Role.USER, "Where is Ann?"), NewMessage(Role.ASSISTANT, "In Oslo.")]
        await memory.record_messages("trip", [*turns, *turns])
        for target, label, note in (("msg_2", "up", None), ("msg_4", "up", "yes"), ("msg_3", "retry", None)):
            await memory.record_feedback(target, label, note)
        await memory.finalize_session("trip")
        await memory.record_feedback("msg_4", "down")
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript(BACK_TO_20)
    async with open_memory(database) as memory:
        [past] = await memory.past_answers("Where is Ann?")
        assert (past.up, past.down, past.retry) == (2, 1, 1)
    counted = query(database, "SELECT record_key, label, count FROM feedback ORDER BY record_key, label")
    assert counted == [(3, "retry", 1), (4, "down", 1), (4, "up", 2)]
