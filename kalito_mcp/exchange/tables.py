"""Reads the SQLite databases of other programs, while they may be writing. Nothing is ever written to them.

SQLite itself adds a missing `-shm` to a log (`-wal`). Without a log, nothing is written beside them either.
"""

import sqlite3
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from kalito_mcp.exchange.conversation import Conversation, Reading, Turn, moment


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that cannot write. Text that is not UTF-8 is read with U+FFFD."""
    # Without a log no program has it open, unless it keeps none. To read one that had a log before, SQLite would make
    # another, which would stay.
    is_logged = path.with_name(f"{path.name}-wal").exists()
    mode = "mode=ro" if is_logged or not _keeps_log(path) else "mode=ro&immutable=1"
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True)) as connection:
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        yield connection


def _keeps_log(path: Path) -> bool:
    """Whether the database is one with a log: bytes 18 and 19 of the file are 2, see https://sqlite.org/fileformat.html."""
    with path.open("rb") as file:
        return file.read(20)[18:] == b"\2\2"


def columns(connection: sqlite3.Connection, table: str) -> frozenset[str]:
    """The names of a table's columns; empty if there is no such table."""
    return frozenset(row[0] for row in connection.execute("SELECT name FROM pragma_table_info(?)", (table,)))


def has_tables(connection: sqlite3.Connection, reading: Reading, *needed: tuple[str, Sequence[str]]) -> bool:
    """Whether the tables with their columns are there. If not, the file is counted."""
    if all(columns(connection, table) >= set(names) for table, names in needed):
        return True
    reading.skipped["database of an unknown kind"] += 1
    return False


def conversations(
    connection: sqlite3.Connection,
    reading: Reading,
    sessions: str,
    called: Container[object],
    turns: Callable[[sqlite3.Connection, str, Reading], Iterator[Turn]],
) -> Iterator[Conversation]:
    """The conversations of a table. The statement `sessions` gives id, folder and beginning of each; those that are
    `called` by another are left out."""
    for session_id, folder, created in connection.execute(sessions).fetchall():
        if session_id in called:
            reading.skipped["sub-agent"] += 1
        elif isinstance(session_id, str):
            yield Conversation(
                session_id, turns(connection, session_id, reading), text_or_none(folder), moment(created)
            )


def text_or_none(value: Any) -> str | None:
    """The value if it is a text that says something."""
    return value if isinstance(value, str) and value else None
