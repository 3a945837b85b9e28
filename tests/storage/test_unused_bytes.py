"""The bytes that no page uses are zeroed, and no others."""

import os
import random
import re
import sqlite3
import struct
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from kalito_mcp.storage.sqlite.unused_bytes import UnusedBytes, _descriptor_of

pytestmark = pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="the system has no list of descriptors")
ALL: Final = 1_000_000
PAGE: Final = 4_096
LENGTHS: Final = (1, 2, 5, 10, 30, 60, 150, 400)
SCHEMA: Final = """
CREATE TABLE records (key INTEGER PRIMARY KEY, id TEXT, text TEXT NOT NULL, tag TEXT, place INTEGER);
CREATE UNIQUE INDEX records_ids ON records (id);
CREATE INDEX records_tags ON records (place, tag);
CREATE TABLE edits (key INTEGER, version INTEGER, changes TEXT, PRIMARY KEY (key, version)) WITHOUT ROWID;
"""


def opened(path: Path, *, is_secure: bool = True) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA secure_delete = {'ON' if is_secure else 'OFF'}")
    return connection


def unused_of(path: Path) -> UnusedBytes:
    found = UnusedBytes.of(path)
    assert found is not None
    return found


class Changes:
    """Random changes of rows of every size. Each text of a row has the row's number as its words."""

    def __init__(self, connection: sqlite3.Connection, seed: int, lengths: Sequence[int]) -> None:
        self._connection = connection
        self._lengths = lengths
        self._random = random.Random(seed)
        self._count = 0
        self.kept: set[int] = set()
        self.gone: set[int] = set()
        connection.executescript(SCHEMA)

    def make(self, transactions: int) -> None:
        for _ in range(transactions):
            self._connection.execute("BEGIN")
            for _ in range(self._random.randrange(1, 30)):
                self._step()
            self._connection.execute("COMMIT")
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _step(self) -> None:
        chance = self._random.random()
        if chance < 0.5 or not self.kept:
            self._count += 1
            key = self._random.choice((self._count, 10_000_000 - self._count))  # not only at the end of the table
            self.kept.add(key)
            self._connection.execute("INSERT INTO records VALUES (?, ?, ?, ?, ?)", self._row(key))
        elif chance < 0.85:
            key = self._random.choice(sorted(self.kept))
            self._connection.execute("INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?, ?)", self._row(key))
            changed = (key, self._random.randrange(4), self._words(key))
            self._connection.execute("INSERT OR REPLACE INTO edits VALUES (?, ?, ?)", changed)
        else:
            key = self._random.choice(sorted(self.kept))
            self.kept.remove(key)
            self.gone.add(key)
            self._connection.execute("DELETE FROM edits WHERE key = ?", (key,))
            self._connection.execute("DELETE FROM records WHERE key = ?", (key,))

    def _row(self, key: int) -> tuple[int, str, str, str, int]:
        return key, f"id-{_word(key)}", self._words(key), _word(key), self._random.randrange(50)

    def _words(self, key: int) -> str:
        return " ".join([_word(key)] * self._random.choice(self._lengths))


def _word(key: int) -> str:
    return f"quux{key:08}quux"


def found(path: Path, keys: set[int]) -> set[int]:
    # Read only where no connection of this process has it open, or in a copy: closing it would drop SQLite's locks.
    return {int(key) for key in re.findall(rb"quux(\d{8})quux", path.read_bytes())} & keys


def rows(connection: sqlite3.Connection) -> list[object]:
    return [
        *connection.execute("SELECT * FROM records ORDER BY key"),
        *connection.execute("SELECT * FROM edits ORDER BY key, version"),
        connection.execute("PRAGMA integrity_check").fetchone(),
    ]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rows.db"


# Without secure_delete, SQLite also leaves something behind the end of rows of several pages. Kalito always has it.
@pytest.mark.parametrize(("is_secure", "lengths"), [(True, LENGTHS), (False, LENGTHS[:5])])
@pytest.mark.parametrize("seed", [1, 4, 5])
def test_what_was_deleted_at_random_is_gone_and_what_is_there_is_untouched(
    path: Path, seed: int, lengths: Sequence[int], *, is_secure: bool
) -> None:
    with closing(opened(path, is_secure=is_secure)) as connection:
        changes = Changes(connection, seed, lengths)
        changes.make(150)
    assert found(path, changes.gone)
    with closing(opened(path)) as connection:
        before = rows(connection)
        assert unused_of(path).zero(ALL)
    assert found(path, changes.gone) == set()
    assert found(path, changes.kept) == changes.kept
    with closing(opened(path)) as connection:
        assert rows(connection) == before


def test_a_call_zeroes_no_more_pages_than_it_may_and_the_calls_together_all(path: Path) -> None:
    with closing(opened(path)) as connection:
        Changes(connection, 1, LENGTHS).make(100)
        unused, before = unused_of(path), path.stat().st_size
        pages = [page for _, page in unused._pages()]
        calls = []
        while not unused.zero(20):
            after = [page for _, page in unused._pages()]
            calls.append(sum(old != new for old, new in zip(pages, after, strict=True)))
            pages = after
        assert len(calls) > 2
        assert set(calls) == {20}
        assert unused.zero(0)
        assert path.stat().st_size == before


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_writer_that_has_a_page_in_memory_brings_nothing_back_after_a_commit_of_another(
    path: Path, *, is_committed: bool
) -> None:
    with closing(opened(path)) as writer, closing(opened(path)) as other:
        writer.execute("CREATE TABLE apart (text TEXT)")
        writer.execute("INSERT INTO apart VALUES ('one')")
        other.execute("CREATE TABLE marks (key)")
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        [number] = writer.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'apart'").fetchone()
        descriptor = _descriptor_of(path)
        assert descriptor is not None
        os.pwrite(descriptor, b"what was erased", (number - 1) * PAGE + 100)
        writer.execute("SELECT * FROM apart").fetchall()
        other.execute("BEGIN IMMEDIATE")
        assert unused_of(path).zero(ALL)
        if is_committed:
            other.execute("INSERT INTO marks VALUES (1)")
        other.execute("COMMIT")
        writer.execute("UPDATE apart SET text = 'six'")
        writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    # It comes back without the commit: so the commit is needed.
    assert (b"what was erased" in path.read_bytes()) == (not is_committed)


def _damage(path: Path, number: int, offset: int, value: int) -> None:
    with path.open("rb+") as file:
        file.seek((number - 1) * PAGE + offset)
        file.write(struct.pack(">H", value))


@pytest.mark.parametrize(("offset", "value"), [(5, 3), (5, PAGE + 1), (3, 3_000), (1, 2), (1, PAGE - 2)])
def test_a_malformed_page_is_refused_and_stays_as_it_is(path: Path, offset: int, value: int) -> None:
    with closing(opened(path)) as connection:
        Changes(connection, 1, LENGTHS).make(20)
        [number] = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'records'").fetchone()
    _damage(path, number, offset, value)
    with path.open("rb") as file:
        before = file.read()[(number - 1) * PAGE : number * PAGE]
    with closing(opened(path)) as connection:
        connection.execute("PRAGMA user_version").fetchone()
        with pytest.raises(sqlite3.DatabaseError, match=f"page {number} is malformed"):
            unused_of(path).zero(ALL)
    with path.open("rb") as file:
        assert file.read()[(number - 1) * PAGE : number * PAGE] == before


def test_a_file_with_pages_of_pointers_is_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA auto_vacuum = FULL")
        connection.executescript(SCHEMA)
        assert UnusedBytes.of(path) is None


def test_a_file_that_this_process_has_not_open_for_writing_is_left_alone(path: Path) -> None:
    with closing(opened(path)) as connection:
        connection.executescript(SCHEMA)
    assert UnusedBytes.of(path) is None
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        connection.execute("PRAGMA user_version").fetchone()
        assert UnusedBytes.of(path) is None
