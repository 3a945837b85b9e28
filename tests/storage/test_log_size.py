"""Doctor tells of a write-ahead log that a foreign reader keeps from being emptied."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from kalito_mcp.domain.findings import Verdict
from kalito_mcp.storage.sqlite import environment
from kalito_mcp.storage.sqlite.environment import log_size


def test_a_log_that_grows_beside_a_reader_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "_LONG_LOG_BYTES", 2 * 1024**2)
    path = tmp_path / "memory.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode=WAL")
        writer.execute("CREATE TABLE said (text)")
        assert log_size(path).verdict is Verdict.OK
        with closing(sqlite3.connect(path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM said").fetchall()
            for _ in range(300):
                writer.execute("INSERT INTO said VALUES (?)", ("x" * 10_000,))
            told = log_size(path)
    assert told.verdict is Verdict.WARNING
    assert "memory.db-wal has" in told.detail
    assert log_size(path).verdict is Verdict.OK
