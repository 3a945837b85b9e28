"""`doctor`: it finds what SQLite's own checks miss, says what to do, and changes nothing."""

import hashlib
import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from kalito_mcp.domain.findings import Verdict
from kalito_mcp.domain.memory_records import DELETED_AT
from kalito_mcp.domain.records import Origin, Reach, RecordType, Role
from kalito_mcp.domain.scope import Scope
from kalito_mcp.errors import StorageDamaged
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.storage.sqlite.environment import access, users
from kalito_mcp.storage.sqlite.inspection import inspect, wal_reset_exposure
from tests import drafts
from tests.scripted import START_MS
from tests.server import prepared
from tests.server.wire import clean_environment

TRIP = Scope(session="trip")


def failures(path: Path, *, is_deep: bool = True) -> dict[str, str]:
    """What failed, and the words for it."""
    return {f.check: f.detail for f in inspect(path, is_deep=is_deep) if f.verdict is Verdict.FAILED}


def change(path: Path, *statements: str) -> None:
    """Change what kalito itself never would, as another program or a bad disk may."""
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


async def reindex(path: Path) -> int:
    store = await SqliteStore.open(path)
    try:
        return await store.reindex()
    finally:
        await store.close()


def test_a_sound_database_passes_every_check_and_stays_as_it_is(copy: Path) -> None:
    before = hashlib.sha256(copy.read_bytes()).hexdigest()
    findings = list(inspect(copy, is_deep=True))
    assert {finding.verdict for finding in findings} == {Verdict.OK}
    assert [finding.check for finding in findings] == [
        "schema",
        "size",
        "structure",
        "references",
        "audit log",
        "row hashes",
        "counters",
        "summaries",
        "histories",
        "ownership",
        "graphs",
        "text index",
    ]
    assert hashlib.sha256(copy.read_bytes()).hexdigest() == before


def test_a_shallow_look_leaves_the_rows_alone(copy: Path) -> None:
    change(copy, "UPDATE records SET text = 'forged' WHERE key = 5")
    assert failures(copy, is_deep=False) == {}
    assert "record 5" in failures(copy)["row hashes"]


@pytest.mark.campaign
def test_a_flipped_bit_in_a_text_is_always_found(sample: bytes, database: Path) -> None:
    chance = random.Random(1)
    places = [start for start in range(len(sample)) if sample.startswith(b"The ferry to Moss leaves", start)]
    assert len(places) >= 200
    for _ in range(60):
        damaged = bytearray(sample)
        damaged[chance.choice(places) + chance.randrange(60)] ^= 1 << chance.randrange(8)
        database.write_bytes(damaged)
        assert "row hashes" in failures(database)


@pytest.mark.campaign
def test_flipped_bits_zeroed_pages_garbage_and_cuts_are_found(sample: bytes, database: Path) -> None:
    chance = random.Random(2)
    found = {"bit": 0, "zero": 0, "garbage": 0, "cut": 0}
    rounds = 40
    # What lies between the cells of a page belongs to nobody.
    written = [place for place, byte in enumerate(sample) if byte]
    used = [page for page in range(len(sample) // 4096) if any(sample[page * 4096 : (page + 1) * 4096])]

    def is_found(damaged: bytes) -> bool:
        database.write_bytes(damaged)
        return bool(failures(database))

    for _ in range(rounds):
        bit = bytearray(sample)
        bit[chance.choice(written)] ^= 1 << chance.randrange(8)
        found["bit"] += is_found(bytes(bit))
        start = chance.choice(used) * 4096
        found["zero"] += is_found(sample[:start] + bytes(4096) + sample[start + 4096 :])
        start = min(chance.choice(written), len(sample) - 512)
        found["garbage"] += is_found(sample[:start] + chance.randbytes(512) + sample[start + 512 :])
        found["cut"] += is_found(sample[: chance.randrange(2, len(sample))])
    assert found["zero"] == found["cut"] == rounds
    assert found["garbage"] >= 0.95 * rounds
    assert found["bit"] >= 0.85 * rounds


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE records SET text = text || ' ' WHERE key = 7",
        "UPDATE records SET importance = 0.51 WHERE key = 7",
        "UPDATE records SET created_at = created_at + 1 WHERE key = 7",
        "UPDATE records SET role = 'assistant' WHERE key = 7",
        "UPDATE records SET name = 'Ann' WHERE key = 7",
        "UPDATE records SET client_key = 'other' WHERE key = 7",
        "UPDATE records SET attributes = '{}' WHERE key = 7",
        "UPDATE records SET hash = x'0000000000000000' WHERE key = 7",
    ],
)
def test_a_changed_field_of_a_record_is_found(copy: Path, statement: str) -> None:
    change(copy, statement)
    assert "record 7 (message)" in failures(copy)["row hashes"]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE sessions SET message_count = message_count + 1 WHERE id = 'trip'",
        "UPDATE sessions SET pin_count = 0 WHERE id = 'trip'",
        "UPDATE sessions SET summary_count = summary_count - 1 WHERE id = 'trip'",
        "UPDATE sessions SET summarized_seq = 3 WHERE id = 'trip'",
        "DELETE FROM records WHERE type = 'pin' AND session_key = (SELECT key FROM sessions WHERE id = 'trip')",
        "DELETE FROM records WHERE type = 'message' AND seq = 9 AND session_key = "
        "(SELECT key FROM sessions WHERE id = 'trip')",
    ],
)
def test_wrong_counters_are_found_with_their_session(copy: Path, statement: str) -> None:
    change(copy, statement)
    assert "trip" in failures(copy)["counters"]
    assert "home" not in failures(copy)["counters"]


@pytest.mark.parametrize(
    ("change_of", "named"),
    [
        ("graph_nodes SET text = text || ' ' WHERE key = 7", "node 7 (query)"),
        ("graph_nodes SET id = 'other' WHERE key = 7", "node 7 (query)"),
        ("graph_nodes SET canonical_key = NULL WHERE key = 7", "node 7 (query)"),
        ("graph_nodes SET summary = 'forged' WHERE key = 7", "node 7 (query)"),
        ("graph_nodes SET source_node_ids = '[]' WHERE key = 7", "node 7 (query)"),
        ("graph_nodes SET source_record_ids = NULL WHERE key = 7", "node 7 (query)"),
        ("graph_nodes SET repeat = 2 WHERE key = 7", "node 7 (query)"),
        ("graph_nodes SET feedback = -1 WHERE key = 7", "node 7 (query)"),
        ("graph_nodes SET is_pinned = 1 WHERE key = 7", "node 7 (query)"),
        ("graph_nodes SET created_at = created_at + 1 WHERE key = 7", "node 7 (query)"),
        ("graph_nodes SET last_access = last_access + 1 WHERE key = 7", "node 7 (query)"),
        ("graph_nodes SET embedding = x'0300000000' WHERE key = 7", "node 7 (query)"),
        ("graph_nodes SET revision = 0 WHERE key = 7", "node 7 (query)"),
        ("graph_nodes SET hash = x'0000000000000000' WHERE key = 7", "node 7 (query)"),
        ("graph_edges SET weight = 0.81 WHERE from_key = 7 AND to_key = 8", "edge 7 to 8 (similar_to)"),
        ("graph_edges SET to_key = 10 WHERE from_key = 7 AND to_key = 8", "edge 7 to 10 (similar_to)"),
        ("graph_edges SET created_at = 0 WHERE from_key = 7 AND to_key = 8", "edge 7 to 8 (similar_to)"),
        ("graph_edges SET last_access = 0 WHERE from_key = 7 AND to_key = 8", "edge 7 to 8 (similar_to)"),
        ("graph_edges SET revision = 0 WHERE from_key = 7 AND to_key = 8", "edge 7 to 8 (similar_to)"),
        ("graph_edges SET type = 'has_feedback' WHERE from_key = 7 AND to_key = 8", "edge 7 to 8 (has_feedback)"),
    ],
)
def test_a_changed_field_of_a_node_or_an_edge_is_found(copy: Path, change_of: str, named: str) -> None:
    change(copy, f"UPDATE {change_of}")
    assert failures(copy, is_deep=False) == {}
    assert named in failures(copy)["row hashes"]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE graphs SET revision = 0 WHERE key = 2",
        "UPDATE graphs SET removed_revision = 2 WHERE key = 2",
        "UPDATE graph_edges SET graph_key = 2 WHERE from_key = 7",
    ],
)
def test_a_graph_whose_revision_or_edges_are_not_its_own_is_found(copy: Path, statement: str) -> None:
    change(copy, statement)
    assert "graph 2. To repair it, restore a backup" in failures(copy)["graphs"]


def test_an_edge_without_an_end_is_found(copy: Path) -> None:
    change(copy, "DELETE FROM graph_nodes WHERE key = 7")
    assert "graph_edges" in failures(copy, is_deep=False)["references"]


def test_a_damaged_graph_is_an_error_in_words_when_it_is_loaded(sample: bytes, database: Path) -> None:
    async def load() -> None:
        store = await SqliteStore.open(database)
        try:
            async with store.view() as view:
                await view.graphs.load(Scope())
        finally:
            await store.close()

    for statement in (
        "UPDATE graph_nodes SET embedding = x'03'",
        "UPDATE graph_nodes SET embedding = x''",
        "UPDATE graph_nodes SET source_record_ids = '[\"a\"'",
        "UPDATE graph_nodes SET source_record_ids = '[],[]'",
        "UPDATE graph_nodes SET text = CAST(x'ff' AS TEXT)",
        "DELETE FROM graph_nodes WHERE id = 'q3'",
    ):
        database.write_bytes(sample)
        change(database, statement)
        with pytest.raises(StorageDamaged, match="doctor --deep"):
            anyio.run(load)


def test_a_gap_between_summaries_is_found(copy: Path) -> None:
    change(
        copy,
        "DELETE FROM records WHERE type = 'summary' AND seq = 31 AND session_key = "
        "(SELECT key FROM sessions WHERE id = 'home')",
    )
    assert "home" in failures(copy)["summaries"]


@pytest.mark.parametrize(
    ("row", "check"),
    [
        ("NULL, printf('%.32c', 'a'), 99, NULL, 0, 0", "references"),
        ("NULL, printf('%.32c', 'a'), 1, 99, 0, 0", "references"),
        ("NULL, 'Trondheim', 1, NULL, 0, 0", "row hashes"),
        ("NULL, printf('%.32c', 'x'), 1, NULL, 0, 0", "row hashes"),
        ("NULL, printf('%.32c', 'a'), 1, NULL, 0, 7", "row hashes"),
    ],
)
def test_a_forgotten_value_that_cannot_be_is_found(copy: Path, row: str, check: str) -> None:
    change(copy, "PRAGMA ignore_check_constraints = ON", f"INSERT INTO forgotten_values VALUES ({row})")
    assert check in failures(copy)


def test_a_record_whose_session_is_gone_is_found(copy: Path) -> None:
    change(copy, "DELETE FROM sessions WHERE id = 'home'")
    assert "references" in failures(copy)


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO records_text (rowid, terms) VALUES (9999, 's:1 1:t:message 1:ghost')",
        "INSERT INTO records_text (records_text) VALUES ('delete-all')",
        "DELETE FROM records_text_data WHERE id > 10",
    ],
)
def test_a_text_index_that_differs_is_found_and_reindex_repairs_it(copy: Path, statement: str) -> None:
    change(copy, statement)
    assert list(failures(copy)) == ["text index"]
    assert "reindex" in failures(copy)["text index"]
    assert anyio.run(reindex, copy) == 296
    assert failures(copy) == {}


def test_terms_that_a_lookup_would_miss_are_found_and_reindex_repairs_them(copy: Path) -> None:
    async def write() -> None:
        store = await SqliteStore.open(copy)
        async with store.transaction() as transaction:
            session = await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
            many = [drafts.message(" ".join(f"word{n + step}" for step in range(20))) for n in range(0, 4_000, 20)]
            await transaction.conversations.append_messages(session, many, now_ms=START_MS)
        await store.close()

    anyio.run(write)
    assert failures(copy) == {}
    change(copy, "DELETE FROM records_text_idx")
    assert list(failures(copy)) == ["text index"]
    anyio.run(reindex, copy)
    assert failures(copy) == {}


def test_a_record_that_is_missing_from_the_index_is_found_and_reindex_repairs_it(copy: Path) -> None:
    with closing(sqlite3.connect(copy)) as connection:
        connection.execute("INSERT INTO records_text (records_text) VALUES ('delete-all')")
        connection.commit()
    anyio.run(reindex, copy)
    change(copy, "INSERT INTO records_text (rowid, terms) VALUES (3, '1:extra')")
    assert "1 difference from a rebuilt index;" in failures(copy)["text index"]
    anyio.run(reindex, copy)
    assert failures(copy) == {}


def test_reindexing_a_sound_database_changes_no_record(copy: Path) -> None:
    def rows() -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(copy)) as connection:
            return connection.execute("SELECT * FROM records ORDER BY key").fetchall()

    before = rows()
    assert anyio.run(reindex, copy) == len(before)
    assert rows() == before
    assert failures(copy) == {}


@pytest.mark.parametrize("importance", [0, 1, -0.0, 0.1 + 0.2, 1 / 3, 5e-324])
def test_a_record_of_any_importance_is_as_it_was_written(database: Path, importance: float) -> None:
    async def write() -> None:
        store = await SqliteStore.open(database)
        async with store.transaction() as transaction:
            session = await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
            odd = drafts.message("a\x1fb", name="", role=Role.SYSTEM, importance=importance, created_at=-1)
            [one] = await transaction.conversations.append_messages(session, [odd], now_ms=START_MS)
            [two] = await transaction.conversations.append_messages(
                await ensure_session(transaction.sessions, TRIP, now_ms=0), [drafts.message("two")], now_ms=START_MS
            )
            scores = [(two.id, importance), (one.id, importance)]
            await transaction.conversations.set_importance(session, scores, now_ms=START_MS)
            await transaction.conversations.add_pins(session, [drafts.pin("pin", importance=importance)])
        await store.close()

    anyio.run(write)
    assert failures(database) == {}


def test_what_is_no_database_of_ours_is_named_and_looked_at_no_further(database: Path) -> None:
    change(database, "CREATE TABLE theirs (x)")
    assert list(failures(database)) == ["schema"]
    database.write_bytes(b"not a database at all" * 400)
    assert list(failures(database)) == ["readable"]
    database.write_bytes(b"")
    assert list(failures(database)) == ["schema"]


def test_a_newer_schema_is_named(copy: Path) -> None:
    change(copy, "PRAGMA user_version = 99")
    assert "upgrade" in failures(copy)["schema"]


def test_a_database_in_use_is_looked_over_with_what_its_wal_has(copy: Path) -> None:
    async def look() -> dict[str, str]:
        store = await SqliteStore.open(copy)
        async with store.transaction() as transaction:
            session = await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
            await transaction.conversations.append_messages(session, [drafts.message("new")], now_ms=START_MS)
        found = failures(copy)
        assert Path(f"{copy}-wal").exists()
        await store.close()
        return found

    assert anyio.run(look) == {}


@pytest.mark.parametrize(
    ("version", "is_affected"),
    [
        ((3, 6, 23), False),
        ((3, 7, 0), True),
        ((3, 40, 1), True),
        ((3, 51, 2), True),
        ((3, 51, 3), False),
        ((3, 52, 0), True),
        ((3, 53, 0), False),
        ((3, 54, 1), False),
    ],
)
def test_the_versions_with_the_wal_reset_bug_are_named(version: tuple[int, ...], is_affected: bool) -> None:
    assert ("no other program" in wal_reset_exposure(version).detail) is is_affected


def test_a_database_that_others_may_open_is_a_warning(copy: Path) -> None:
    copy.chmod(0o644)
    assert access(copy).verdict is Verdict.WARNING
    copy.chmod(0o600)
    assert access(copy).verdict is Verdict.OK


def test_another_process_that_has_the_database_open_is_named(copy: Path) -> None:
    program = f"""
import sqlite3, sys
connection = sqlite3.connect({str(copy)!r})
connection.execute("SELECT count(*) FROM records").fetchone()
print("open", flush=True)
sys.stdin.read()
"""
    with prepared.start(
        [sys.executable, "-c", program],
        env=clean_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        assert f"process {process.pid} (python" in users(copy).detail
        process.kill()


def test_this_process_is_not_named_among_those_that_have_the_database_open(copy: Path) -> None:
    with closing(sqlite3.connect(copy)) as connection:
        connection.execute("SELECT count(*) FROM records").fetchone()
        assert users(copy).detail == "no process"


async def _fill_with_edits(path: Path) -> None:
    store = await SqliteStore.open(path)
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
        details = {"tags": ["a"], "visibility": "internal", "critical": True}
        batch = [
            drafts.message("one", origin=Origin.IMPORT, client="host", created_at=START_MS - 1, details=details),
            drafts.message("two"),
            drafts.message("three"),
        ]
        appended = await transaction.conversations.append_messages(session, batch, now_ms=START_MS)
        pin = drafts.pin("pin", origin=Origin.TOOL, client="host")
        await transaction.conversations.add_pins(session, [pin])
        await transaction.conversations.add_summaries(session, [replace(drafts.summary(1, 3), origin=Origin.TOOL)])
        records = [await transaction.records.record(TRIP, f"msg_{one.id}") for one in appended]
        kinds = (RecordType.THOUGHT, RecordType.DOCUMENT, RecordType.TASK)
        own = [drafts.record(kind, f"own {kind}", source="a.md", document_id="d", chunk_index=3) for kind in kinds]
        records += await transaction.records.add_records(Scope(), own, now_ms=START_MS)
        records += [await transaction.records.record(TRIP, record_id) for record_id in (pin.id, "summary_0_1_3")]
        for record in records:
            assert record is not None
            cause = {"caused_by": "msg_1"} if record.id != "msg_1" else {}
            changed = await transaction.records.change(
                record, drafts.edit(record, {"text": f"new {record.key}", **cause})
            )
            await transaction.records.change(changed, drafts.edit(changed, {"tags": ["b"], "name": "Ann"}))
        two = await transaction.records.record(TRIP, "msg_2")
        assert two is not None
        await transaction.records.change(two, drafts.edit(two, {DELETED_AT: START_MS}))
        three = await transaction.records.record(TRIP, "msg_3")
        assert three is not None
        await transaction.records.purge(three, now_ms=START_MS)
    await store.close()


@pytest.fixture(scope="session")
def edited(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a database with records of every type, edited, forgotten and erased."""
    path = tmp_path_factory.mktemp("edited") / "memory.db"
    anyio.run(_fill_with_edits, path)
    return path.read_bytes()


def test_a_database_of_edited_forgotten_and_erased_records_is_sound_and_can_be_reindexed(
    edited: bytes, database: Path
) -> None:
    database.write_bytes(edited)
    assert failures(database) == {}
    assert anyio.run(reindex, database) == 6
    assert failures(database) == {}


@pytest.mark.parametrize(
    ("statement", "check"),
    [
        ("UPDATE records SET origin = 'user' WHERE key = 1", "row hashes"),
        ("UPDATE records SET client = NULL WHERE key = 1", "row hashes"),
        ("UPDATE records SET recorded_at = 0 WHERE key = 1", "row hashes"),
        ("UPDATE records SET is_internal = 0 WHERE key = 1", "row hashes"),
        ("UPDATE records SET is_critical = 0 WHERE key = 1", "row hashes"),
        ("UPDATE records SET tags = '[]' WHERE key = 1", "row hashes"),
        ("UPDATE records SET deleted_at = deleted_at + 1 WHERE key = 2", "row hashes"),
        ("UPDATE records SET purged_at = purged_at + 1 WHERE key = 3", "row hashes"),
        ("UPDATE records SET caused_by = 2 WHERE key = 4", "row hashes"),
        ("UPDATE records SET source = 'b' WHERE type = 'document'", "row hashes"),
        ("UPDATE records SET document_id = 'b' WHERE type = 'document'", "row hashes"),
        ("UPDATE records SET agent_key = 2 WHERE type = 'task'", "row hashes"),
        ("UPDATE memory_edits SET changes = '{}' WHERE record_key = 1 AND version = 2", "row hashes"),
        ("UPDATE memory_edits SET editor_id = 'eve' WHERE record_key = 1 AND version = 2", "row hashes"),
        ("UPDATE memory_edits SET edited_at = 0 WHERE record_key = 1 AND version = 2", "row hashes"),
        ("UPDATE memory_edits SET edit_type = 'revert' WHERE record_key = 1 AND version = 2", "row hashes"),
        ("DELETE FROM memory_edits WHERE record_key = 2 AND version = 3", "histories"),
        ("DELETE FROM memory_edits WHERE record_key = 2 AND version = 4", "histories"),
        ("UPDATE records SET caused_by = 99 WHERE key = 4", "ownership"),
        ("UPDATE records SET agent_key = 2 WHERE key = 1", "ownership"),
        ("UPDATE sessions SET hidden_count = 1", "counters"),
        ("UPDATE sessions SET importance_sum = importance_sum + 0.01", "counters"),
        ("UPDATE agents SET record_count = record_count + 1", "counters"),
    ],
)
def test_what_was_changed_of_an_edited_record_or_its_history_is_found(
    edited: bytes, database: Path, statement: str, check: str
) -> None:
    database.write_bytes(edited)
    change(database, "INSERT INTO agents (key, owner, id) VALUES (2, 'local', 'other')", statement)
    assert check in failures(database)


def test_a_pin_of_the_person_that_is_in_a_project_is_found(database: Path) -> None:
    async def write() -> None:
        store = await SqliteStore.open(database)
        async with store.transaction() as transaction:
            session = await ensure_session(transaction.sessions, Scope(session="a", project="A"), now_ms=START_MS)
            lasting = [drafts.pin(str(reach), reach=reach) for reach in Reach]
            await transaction.conversations.add_pins(session, lasting)
        await store.close()

    anyio.run(write)
    assert failures(database) == {}
    change(database, "UPDATE records SET project_key = 1 WHERE reach = 'person'")
    assert "ownership" in failures(database)
    change(database, "UPDATE records SET project_key = NULL WHERE reach = 'person'")
    change(database, "UPDATE records SET reach = 'person', project_key = NULL WHERE text = 'session'")
    assert list(failures(database)) == ["row hashes"]
