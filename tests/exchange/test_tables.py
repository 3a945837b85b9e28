"""Databases of other programs are read without leaving anything beside them."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from kalito_mcp.exchange.tables import columns, opened


def database(folder: Path, journal_mode: str) -> Path:
    path = folder / "state.vscdb"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA journal_mode = {journal_mode}")
        connection.execute("CREATE TABLE talks (id, text)")
    return path


@pytest.mark.parametrize("journal_mode", ["WAL", "DELETE"])
def test_reading_a_closed_database_leaves_no_file_beside_it(tmp_path: Path, journal_mode: str) -> None:
    path = database(tmp_path, journal_mode)
    before = path.read_bytes()
    with opened(path) as connection:
        assert columns(connection, "talks") == {"id", "text"}
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes() == before


def test_what_is_only_in_the_log_of_an_open_database_is_read(tmp_path: Path) -> None:
    path = database(tmp_path, "WAL")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE more (id)")
        with opened(path) as reading:
            assert columns(reading, "more") == {"id"}
