"""An archive brings a memory along without loss, or is refused with the line."""

import json
import os
import shutil
import sqlite3
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from hashlib import blake2b
from itertools import islice, pairwise
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp import Memory, NewMessage, Role, SearchRequest
from kalito_mcp.config.settings import Settings
from kalito_mcp.domain.archive import FIELDS, VERSION, ArchiveEntry, Selection
from kalito_mcp.domain.memory_records import Editor, EditorType
from kalito_mcp.domain.records import RecordType
from kalito_mcp.errors import Conflict, InvalidInput, KalitoError, SessionNotFound
from kalito_mcp.exchange.archive import ArchiveReport, is_archive, restore_archive, write_archive, write_archive_file
from kalito_mcp.exchange.archive_lines import ArchiveReading
from kalito_mcp.ports.store import WriteTransaction
from kalito_mcp.storage.sqlite.archive import INSERT_ARCHIVED, SELECT_ARCHIVED
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.storage.sqlite.schema import Migration, migrations
from kalito_mcp.wiring import open_memory
from tests.empty_database import lay_empty_database
from tests.exchange.filled import ERASED, FORGOTTEN, faults, fill
from tests.scripted import CountedIds, ScriptedClock
from tests.server import prepared
from tests.server.wire import clean_environment

ROOT = Path(__file__).parents[2]
ALL = Selection()
LEFT_OUT = {
    "migrations": "the schema's own",
    "audit_log": "who did what in this database; in another one it would prove nothing",
    "audit_head": "the same",
    "given": "what this server gave; ids of another memory would name nothing",
    "imports": "what the files of this machine had; another machine has others",
    "state_secret": "opens what clients of this server carry",
    "spaces": "who shares with whom on this server; the records of a space are the memory of its owner",
    "space_members": "as above",
    "shared_copies": "as above",
    "access_tokens": "who may connect to this server; another one has its own",
    "passphrases": "as above",
    "oauth_clients": "as above",
    "oauth_requests": "as above",
    "oauth_grants": "as above",
    "oauth_codes": "as above",
    "access_attempts": "as above",
    "record_shapes": "derived",
    "record_changes": "for the caches of running processes",
    "text_rebuild": "derived",
    "superseded_records": "derived",
    "vector_indexes": "derived",
    "record_vectors": "derived",
    "vector_removals": "derived",
    "vector_debts": "derived",
    "vector_moves": "derived",
    "vector_leftovers": "says what is still to be removed elsewhere",
    "unswept": "says what is still to be cleaned in this file",
}
"""Tables that an archive does not have, and why."""


@asynccontextmanager
async def opened(path: Path, owner: str = "local") -> AsyncIterator[Memory]:
    async with open_memory(
        lay_empty_database(path), Settings(owner=owner), clock=ScriptedClock(), ids=CountedIds()
    ) as memory:
        yield memory


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a filled database and its archive."""
    folder = tmp_path_factory.mktemp("filled")

    async def make() -> None:
        async with opened(folder / "memory.db") as memory:
            await fill(memory)
            await write_archive_file(memory, folder / "memory.jsonl", ALL)

    anyio.run(make)
    return folder


@pytest.fixture
def archive(filled: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(filled / "memory.jsonl", tmp_path / "memory.jsonl"))


async def restored(archive: Path, database: Path, owner: str = "local") -> ArchiveReport:
    async with opened(database, owner) as memory:
        report = await restore_archive(memory, archive)
        await memory.settled()
        again = await write_archive_file(memory, database.with_suffix(".jsonl"), ALL)
        assert again.digest == report.digest
        return again


def counted(database: Path) -> int:
    with closing(sqlite3.connect(database)) as connection:
        return sum(
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in FIELDS
            if table not in ("identity", "sqlite_sequence")
        )


def said(database: Path) -> list[tuple[str, ...]]:
    """Everything that is canonical, straight from the tables."""
    with closing(sqlite3.connect(database)) as connection:
        return [
            (table, *map(repr, row))
            for table in FIELDS
            for row in sorted(connection.execute(f"SELECT * FROM {table}").fetchall(), key=repr)
            if table != "identity" and (table != "sqlite_sequence" or row[0] in ("records", "graphs"))
        ]


@pytest.mark.anyio
async def test_a_restored_memory_has_the_same_rows_and_digest(filled: Path, archive: Path, tmp_path: Path) -> None:
    report = await restored(archive, tmp_path / "new.db")
    assert said(tmp_path / "new.db") == said(filled / "memory.db")
    assert all(report.entries[table] for table in FIELDS)
    assert faults(tmp_path / "new.db") == []


def test_every_table_is_in_an_archive_or_left_out_for_a_reason(filled: Path) -> None:
    with closing(sqlite3.connect(filled / "memory.db")) as connection:
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    tables = {name for name in tables if not name.startswith(("sqlite_stat", "records_text"))}
    assert tables == {*FIELDS, *LEFT_OUT}


def test_every_column_of_an_archived_table_is_a_field_or_left_out_for_a_reason(filled: Path) -> None:
    left_out = {"owner": "the one who restores it", "analysis": "how far the derived text index is"}
    with closing(sqlite3.connect(filled / "memory.db")) as connection:
        for kind, fields in FIELDS.items():
            columns = {row[1] for row in connection.execute(f"PRAGMA table_info({kind})")}
            assert columns - left_out.keys() == fields.keys(), kind


def test_other_kinds_or_fields_need_another_version() -> None:
    known = blake2b(json.dumps(FIELDS).encode(), digest_size=8).hexdigest()
    assert (VERSION, known) == (21, "c15b7f36ac63e555")


@pytest.mark.anyio
async def test_a_restored_memory_finds_the_same_and_remembers_what_was_forgotten(
    filled: Path, archive: Path, tmp_path: Path
) -> None:
    pages = []
    for path in (Path(shutil.copy(filled / "memory.db", tmp_path / "old.db")), tmp_path / "new.db"):
        async with opened(path) as memory:
            if path.name == "new.db":
                await restore_archive(memory, archive)
                await memory.settled()
            page = await memory.search_memory(SearchRequest("what is the status of the boiler?", k=5))
            pages.append([(hit.record_id, hit.text, hit.score) for hit in page.hits])
            assert pages[-1]
            again = await memory.record_messages("new", [NewMessage(Role.ASSISTANT, FORGOTTEN)])
            pages.append([one.is_new for one in again.messages])
            assert ERASED not in (await memory.build_context("home", 4_000)).text
    assert pages[:2] == pages[2:]


@pytest.mark.anyio
async def test_what_a_record_supersedes_is_superseded_after_a_restore(tmp_path: Path) -> None:
    async with opened(tmp_path / "memory.db") as memory:
        [old] = (await memory.record_messages("s", [NewMessage(Role.USER, "The blue mug is Petra's.")])).message_ids
        newer = NewMessage(Role.USER, "Igor has it now.", details={"supersedes": [old]})
        [new] = (await memory.record_messages("s", [newer])).message_ids
        await memory.settled()
        await write_archive_file(memory, tmp_path / "memory.jsonl", ALL)
    async with opened(tmp_path / "new.db") as memory:
        await restore_archive(memory, tmp_path / "memory.jsonl")
        [hit, *_] = (await memory.search_memory(SearchRequest("the blue mug"))).hits
        assert (hit.record_id, hit.superseded_by) == (old, new)


@pytest.mark.anyio
async def test_an_archive_is_of_one_owner_and_becomes_that_of_who_restores_it(tmp_path: Path) -> None:
    async with opened(tmp_path / "memory.db", "ann") as memory:
        await memory.record_messages("s", [NewMessage(Role.USER, "Ann's own words.")])
    async with opened(tmp_path / "memory.db", "bob") as memory:
        await memory.record_messages("s", [NewMessage(Role.USER, "Bob's own words.")])
        await memory.settled()
        await write_archive_file(memory, tmp_path / "bob.jsonl", ALL)
    assert "Ann" not in (tmp_path / "bob.jsonl").read_text()
    assert "bob" not in (tmp_path / "bob.jsonl").read_text()
    await restored(tmp_path / "bob.jsonl", tmp_path / "new.db", "carl")
    async with opened(tmp_path / "new.db", "carl") as memory:
        assert [one.text for one in (await memory.conversations.transcript("s")).messages] == ["Bob's own words."]


@pytest.mark.anyio
async def test_a_memory_with_anything_in_it_is_not_restored_into(archive: Path, tmp_path: Path) -> None:
    async with opened(tmp_path / "new.db", "ann") as memory:
        await memory.record_messages("s", [NewMessage(Role.USER, "Mine.")])
    before = said(tmp_path / "new.db")
    async with opened(tmp_path / "new.db") as memory:
        with pytest.raises(Conflict, match="not empty"):
            await restore_archive(memory, archive)
    assert [row for row in said(tmp_path / "new.db") if row[0] == "records"] == [
        row for row in before if row[0] == "records"
    ]


def _lines(archive: Path) -> list[bytes]:
    return archive.read_bytes().splitlines(keepends=True)


@pytest.mark.anyio
async def test_a_cut_archive_is_refused_wherever_it_is_cut(archive: Path, tmp_path: Path) -> None:
    whole = archive.read_bytes()
    ends = [at for at, byte in enumerate(whole) if byte == 10]
    async with opened(tmp_path / "new.db") as memory:
        for cut in (0, 1, 40, ends[0], ends[1], ends[1] + 1, ends[5] + 9, ends[-2], ends[-2] + 1, len(whole) - 5):
            archive.write_bytes(whole[:cut])
            with pytest.raises(InvalidInput, match=r"line \d+"):
                await restore_archive(memory, archive)
        archive.write_bytes(whole[:-1])  # only the line feed of the last line is gone
        await restore_archive(memory, archive)


@pytest.mark.anyio
@pytest.mark.parametrize("where", [1, 3, 20, -3, -1])
async def test_a_changed_line_is_named(archive: Path, tmp_path: Path, where: int) -> None:
    lines = _lines(archive)
    number = where if where > 0 else len(lines) + 1 + where
    line = lines[number - 1]
    changed = {
        "byte": [line[:25] + bytes([line[25] ^ 1]) + line[26:]],
        "gone": [],
        "twice": [line, line],
        "not JSON": [b"\x00\xff garbage\n"],
        "pretty": [json.dumps(json.loads(line)).encode() + b"\n"],
    }
    async with opened(tmp_path / "new.db") as memory:
        for what, instead in changed.items():
            archive.write_bytes(b"".join([*lines[: number - 1], *instead, *lines[number:]]))
            named = number + (what == "twice")
            with pytest.raises(InvalidInput, match=rf"line {named}\b"):
                await restore_archive(memory, archive)
            assert counted(tmp_path / "new.db") == 0


@pytest.mark.anyio
async def test_two_lines_that_changed_places_are_refused(archive: Path, tmp_path: Path) -> None:
    lines = _lines(archive)
    archive.write_bytes(b"".join([*lines[:7], lines[8], lines[7], *lines[9:]]))
    async with opened(tmp_path / "new.db") as memory:
        with pytest.raises(InvalidInput, match="line 8"):
            await restore_archive(memory, archive)


def forged(fields: Sequence[object]) -> bytes:
    """An archive whose checks are right, whatever its lines say."""
    check, written = "", b""
    for one in fields:
        body = json.dumps(one, ensure_ascii=True, separators=(",", ":")).encode()[:-1]
        check = blake2b(body, key=check.encode(), digest_size=8).hexdigest()
        written += body + f',"check":"{check}"}}\n'.encode()
    return written


HEADER = {
    "kalito_archive": 1,
    "schema": 12,
    "made_by": "0.1.0",
    "made_at": "",
    "selection": {},
    "is_restorable": True,
}
WRONG_ROWS: Sequence[object] = (
    {"table": "agents", "row": {"key": 1, "id": "x", "nothing": 2}},
    {"table": "agents", "row": {}},
    {"table": "agents", "row": {"key": "one", "id": "x"}},
    {"table": "agents", "row": {"key": 1, "id": "\ud800"}},
    {"table": "agents", "row": {"key": 1 << 70, "id": "x"}},
    {"table": "agents", "row": {"key": 1, "id": ["x"]}},
    {"table": "agents", "row": {"key": True, "id": "x"}},
    {"table": "agents", "row": {"key": {"hex": "zz"}, "id": "x"}},
    {"table": "agents", "row": [1, 2]},
    {"table": "migrations", "row": {"number": 1}},
    {"table": "agents; DROP TABLE records", "row": {"key": 1}},
    {"table": "identity", "row": {"secret": {"hex": "00"}}},
    {"table": "sqlite_sequence", "row": {"name": "records", "seq": "x"}},
    {"table": "sessions", "row": {"key": 1, "id": "x", "agent_key": 9, "created_at": 1, "updated_at": 1}},
    {"row": {}},
    {"rows": {"agents": 5}, "digest": "0"},
)


@pytest.mark.anyio
@pytest.mark.parametrize("wrong", WRONG_ROWS, ids=str)
async def test_a_row_that_cannot_be_stored_is_refused_with_its_line(tmp_path: Path, wrong: object) -> None:
    archive = tmp_path / "forged.jsonl"
    archive.write_bytes(forged([HEADER, {"table": "agents", "row": {"key": 7, "id": "fine"}}, wrong]))
    async with opened(tmp_path / "new.db") as memory:
        with pytest.raises(InvalidInput, match=r"line 3\b"):
            await restore_archive(memory, archive)
    assert counted(tmp_path / "new.db") == 0


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ({**HEADER, "kalito_archive": 2}, "upgrade"),
        ({**HEADER, "schema": 999}, "newer kalito"),
        ({**HEADER, "schema": None}, "line 1"),
        ({**HEADER, "is_restorable": False}, "parts of conversations"),
        ({"anything": 1}, "line 1"),
    ],
)
async def test_what_this_release_cannot_restore_is_refused_with_a_sentence(
    tmp_path: Path, header: object, reason: str
) -> None:
    archive = tmp_path / "forged.jsonl"
    archive.write_bytes(forged([header, {"rows": {}, "digest": ""}]))
    async with opened(tmp_path / "new.db") as memory:
        with pytest.raises(InvalidInput, match=reason):
            await restore_archive(memory, archive)


@given(st.binary(max_size=300), st.integers(0, 10_000), st.integers(0, 40))
def test_garbage_is_refused_and_stores_nothing(filled: Path, garbage: bytes, at: int, cut: int) -> None:
    whole = (filled / "memory.jsonl").read_bytes()
    at %= len(whole)
    broken = whole[:at] + garbage + whole[at + cut :]
    if broken.rstrip() == whole.rstrip():
        return
    database, archive = filled / "garbage.db", filled / "garbage.jsonl"
    archive.write_bytes(broken)

    async def run() -> None:
        async with opened(database) as memory:
            with pytest.raises(InvalidInput, match=r"line \d+"):
                await restore_archive(memory, archive)

    anyio.run(run)
    assert counted(database) == 0


async def entries_of(memory: Memory) -> list[ArchiveEntry]:
    async with memory.archive.reading(ALL) as view:
        return [entry async for page in view.entries() for entry in page]


def archived(archive: Path) -> list[ArchiveEntry]:
    return [entry._replace(line=0) for entry in ArchiveReading(_lines(archive)).entries()]


def test_an_archive_has_every_kind_with_its_fields_in_their_order(archive: Path) -> None:
    found = {entry.kind: [*entry.fields] for entry in archived(archive)}
    assert [*found.items()] == [(kind, [*fields]) for kind, fields in FIELDS.items()]


@pytest.mark.anyio
async def test_an_entry_of_an_older_release_gets_the_defaults_of_fields_that_it_lacks(tmp_path: Path) -> None:
    given = [
        ArchiveEntry("agents", {"key": 1, "id": "default"}),
        ArchiveEntry("sessions", {"key": 1, "id": "s", "agent_key": 1, "created_at": 1, "updated_at": 1}),
    ]
    async with opened(tmp_path / "new.db") as memory:
        await memory.archive.restore(given)
        found = [one for one in await entries_of(memory) if one.kind in ("agents", "sessions")]
    assert [one.fields for one in found] == [{**FIELDS[one.kind], **one.fields} for one in given]


@pytest.mark.anyio
async def test_a_column_that_sqlite_renames_keeps_its_field(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    select, [insert] = SELECT_ARCHIVED["records"], INSERT_ARCHIVED["records"]
    monkeypatch.setitem(SELECT_ARCHIVED, "records", select.replace(" client,", " program AS client,"))
    monkeypatch.setitem(INSERT_ARCHIVED, "records", [insert.replace(" client,", " program,")])
    renamed = Migration(len(migrations()) + 1, "renamed", "ALTER TABLE records RENAME COLUMN client TO program;\n")
    store, given = await SqliteStore.open(tmp_path / "new.db", steps=[*migrations(), renamed]), archived(archive)
    await store.write(lambda transaction: transaction.archive.add("local", given))
    async with store.view() as view:
        assert [entry async for page in view.archive.entries("local", ALL) for entry in page] == given
    await store.close()


@pytest.mark.anyio
async def test_the_archive_of_the_first_release_can_be_restored(tmp_path: Path) -> None:
    report = await restored(Path(__file__).with_name("archive-1.jsonl"), tmp_path / "new.db")
    assert report.entries["records"] == 5
    assert faults(tmp_path / "new.db") == []


@pytest.mark.anyio
@pytest.mark.parametrize(
    "selection",
    [Selection(session="home"), Selection(project="boats"), Selection(agent="other"), Selection(project="personal")],
    ids=["session", "project", "agent", "personal"],
)
async def test_a_part_is_restored_whole(filled: Path, tmp_path: Path, selection: Selection) -> None:
    path = Path(shutil.copy(filled / "memory.db", tmp_path / "memory.db"))
    async with opened(path) as memory:
        part = await write_archive_file(memory, tmp_path / "part.jsonl", selection)
        everything = await write_archive_file(memory, tmp_path / "all.jsonl", ALL)
        assert 0 < part.entries["records"] < everything.entries["records"]
    async with opened(tmp_path / "new.db") as memory:
        await restore_archive(memory, tmp_path / "part.jsonl")
        await memory.settled()
    assert faults(tmp_path / "new.db") == []
    kept = {row[1:] for row in said(tmp_path / "new.db") if row[0] in ("sessions", "graph_nodes")}
    assert kept <= {row[1:] for row in said(path)}


@pytest.mark.anyio
async def test_parts_of_conversations_have_no_secret_and_only_what_was_asked_for(filled: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(filled / "memory.db", tmp_path / "memory.db"))
    async with opened(path) as memory:
        tasks = await write_archive_file(
            memory, tmp_path / "tasks.jsonl", Selection(types=frozenset({RecordType.TASK}))
        )
        none = await write_archive_file(memory, tmp_path / "none.jsonl", Selection(until_ms=0))
        with pytest.raises(SessionNotFound):
            await write_archive_file(memory, tmp_path / "not.jsonl", Selection(session="nothing like it"))
    assert not set(tasks.entries) & {"identity", "graphs", "graph_nodes", "forgotten_values", "tombstones"}
    assert tasks.entries["records"] == 1
    assert "records" not in none.entries
    assert not (tmp_path / "not.jsonl").exists()
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.anyio
async def test_an_archive_shows_one_moment_while_others_write(tmp_path: Path) -> None:
    async with opened(tmp_path / "memory.db") as memory, opened(tmp_path / "memory.db") as host:
        for turn in range(3):
            await memory.record_messages("s", [NewMessage(Role.USER, f"Turn {turn}.")])
        await memory.settled()
        written: list[bytes] = []
        async with memory.archive.reading(ALL) as view:
            entries = view.entries()
            first = await anext(entries)
            assert first[0].kind == "identity"
            await host.record_messages("s", [NewMessage(Role.USER, "Too late.")])
            found = [entry async for page in entries for entry in page]
        texts = [entry.fields["text"] for entry in found if entry.kind == "records"]
        assert texts == ["Turn 0.", "Turn 1.", "Turn 2."]
        await write_archive(memory, written.append, ALL)
        assert b"Too late." in b"".join(written)


@pytest.mark.campaign
@pytest.mark.anyio
async def test_neither_writing_nor_restoring_holds_more_than_some_hundred_rows(tmp_path: Path) -> None:
    said = [NewMessage(Role.USER, f"Message {n}.") for n in range(350)]
    async with opened(tmp_path / "memory.db") as memory:
        for session in ("a", "b", "c"):
            await memory.record_messages(session, said)
        await memory.settled()
        written: list[bytes] = []
        await write_archive(memory, written.append, ALL)
    lines = [line for chunk in written for line in chunk.splitlines(keepends=True)]
    assert len(lines) > 1_050
    assert max(chunk.count(b"\n") for chunk in written) <= 500
    read = 0

    def counting() -> Iterator[bytes]:
        nonlocal read
        for line in lines:
            read += 1
            yield line

    reading, ahead = ArchiveReading(counting()), []

    async def add(transaction: WriteTransaction) -> None:
        entries = reading.entries()
        while page := list(islice(entries, 500)):
            await transaction.archive.add("local", page)
            ahead.append(read)

    async with opened(tmp_path / "new.db") as memory:
        await memory.place.store.write(add)
    assert [after - before for before, after in pairwise(ahead)][:-1] == [500] * (len(ahead) - 2)


@pytest.mark.anyio
async def test_a_full_disk_leaves_no_half_of_an_archive_and_a_memory_that_works(filled: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(filled / "memory.db", tmp_path / "memory.db"))

    def refuse(lines: bytes) -> None:
        if b'"records"' in lines:
            raise OSError(28, "No space left on device")

    async with opened(path) as memory:
        with pytest.raises(OSError, match="No space"):
            await write_archive(memory, refuse, ALL)
        await memory.record_messages("s", [NewMessage(Role.USER, "Goes on.")])
        assert (await write_archive_file(memory, tmp_path / "memory.jsonl", ALL)).entries["records"]


@pytest.mark.anyio
async def test_only_an_archive_is_written_over(tmp_path: Path) -> None:
    other, mine = tmp_path / "thesis.txt", tmp_path / "memory.jsonl"
    other.write_text("My thesis.")
    async with opened(tmp_path / "memory.db") as memory:
        with pytest.raises(Conflict, match="no archive"):
            await write_archive_file(memory, other, ALL)
        with pytest.raises(Conflict, match="folder"):
            await write_archive_file(memory, tmp_path, ALL)
        await write_archive_file(memory, mine, ALL)
        first = mine.read_bytes()
        await memory.record_messages("s", [NewMessage(Role.USER, "More.")])
        await write_archive_file(memory, mine, ALL)
        with pytest.raises(InvalidInput, match="cannot write"):
            await write_archive_file(memory, tmp_path / "no folder" / "x.jsonl", ALL)
        with pytest.raises(InvalidInput, match="cannot read"):
            await restore_archive(memory, tmp_path / "nothing.jsonl")
        if sys.platform != "win32":
            with pytest.raises(Conflict, match="no archive"):
                await write_archive_file(memory, Path(os.devnull), ALL)
            link = tmp_path / "link.jsonl"
            link.symlink_to(mine)
            await write_archive_file(memory, link, ALL)
            assert link.is_symlink()
    assert other.read_text() == "My thesis."
    assert mine.read_bytes() != first
    assert is_archive(mine)
    assert not is_archive(other)
    assert mine.stat().st_mode & 0o077 == 0 or sys.platform == "win32"


_RESTORING = """
import sys, anyio
from pathlib import Path
from kalito_mcp.exchange.archive import restore_archive
from kalito_mcp.wiring import open_memory
async def run():
    async with open_memory(sys.argv[1]) as memory:
        await restore_archive(memory, Path(sys.argv[2]))
anyio.run(run)
"""


@pytest.mark.parametrize(("point", "is_whole"), [("restore.entries", False), ("restore.stored", True)])
def test_a_restoring_process_that_is_killed_leaves_nothing_or_all(
    filled: Path, archive: Path, tmp_path: Path, point: str, is_whole: bool
) -> None:
    database = lay_empty_database(tmp_path / "new.db")
    killed = prepared.run(
        [sys.executable, "-c", _RESTORING, str(database), str(archive)],
        cwd=ROOT,
        env=clean_environment(KALITO_CRASH_POINT=point),
        check=False,
    )
    assert killed.returncode < 0

    async def look() -> None:
        async with opened(database) as memory:
            if not is_whole:
                assert counted(database) == 0
                await restore_archive(memory, archive)
            await memory.settled()
            assert (await memory.search_memory(SearchRequest("boiler"))).hits

    anyio.run(look)
    assert [row for row in said(database) if row[0] != "record_usage"] == [
        row for row in said(filled / "memory.db") if row[0] != "record_usage"
    ]
    assert faults(database) == []


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["say", "remember", "edit", "forget", "restore", "purge", "feedback", "finalize"]),
        st.integers(0, 5),
    ),
    min_size=3,
    max_size=12,
)
HUMAN = Editor(EditorType.HUMAN)


async def act(memory: Memory, what: str, number: int, made: list[str]) -> None:
    """One change, as far as the memory allows it."""
    target = made[number % len(made)] if made else "msg_1"
    if what == "say":
        said = NewMessage(Role.USER if number % 2 else Role.ASSISTANT, f"How is number {number}, {len(made)}?")
        recorded = await memory.record_messages(f"s{number % 2}", [said], agent_id=f"a{number % 2}")
        made += [f"msg_{one.id}" for one in recorded.messages]
    elif what == "remember":
        place = await memory.in_project("boats" if number % 2 else None)
        made += [one.id for one in await place.remember("task", {"text": f"Task {number} of {len(made)}"})]
    elif what == "edit":
        record = await memory.records.get(target)
        await memory.update_memory(target, {"text": f"Changed {number}"}, expected_revision=record.revision)
    elif what in ("forget", "restore"):
        await (memory.forget if what == "forget" else memory.restore)(target)
    elif what == "purge":
        await memory.purge([target])
    elif what == "feedback":
        await memory.record_feedback(target, "up")
    else:
        await memory.finalize_session(f"s{number % 2}")


@given(STEPS)
def test_whatever_was_done_a_restored_memory_has_the_same_digest(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    folder = tmp_path_factory.mktemp("steps")

    async def run() -> None:
        made: list[str] = []
        async with opened(folder / "memory.db") as memory:
            for what, number in steps:
                try:
                    await act(memory, what, number, made)
                except KalitoError:
                    continue  # the state does not allow it
            await memory.settled()
            await write_archive_file(memory, folder / "memory.jsonl", ALL)
        await restored(folder / "memory.jsonl", folder / "new.db")

    anyio.run(run)
    assert said(folder / "new.db") == said(folder / "memory.db")
    assert faults(folder / "new.db") == []
    shutil.rmtree(folder)
