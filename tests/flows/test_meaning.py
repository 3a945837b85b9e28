"""The model of every installation from end to end: what was said is found in another language."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from time import monotonic

from tests.meaning_package import MEANING
from tests.server.wire import COVERED, PATIENCE_S, clean_environment, served
from tests.server.wire import call as wire_call

FACTS = ("Meine Katze schläft auf dem Drucker.", "Im Mai fliegen wir nach Oslo.", "Die Steuer ist bezahlt.")


def vector_count(database: Path) -> int:
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
        return int(connection.execute("SELECT count(*) FROM record_vectors").fetchone()[0])


def said(database: Path, *arguments: str, **environment: str) -> str:
    """What a command prints."""
    return subprocess.run(
        [sys.executable, "-m", "kalito_mcp", *arguments],
        env=clean_environment(KALITO_DATABASE=str(database), **environment),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    ).stdout


def test_with_no_setting_a_search_finds_what_was_said_in_another_language(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    with served(database, is_fresh=True, **MEANING, **COVERED) as wire:
        messages = [{"role": "user", "text": text} for text in FACTS]
        wire.send(wire_call(1, "record_messages", session_id="home", messages=messages))
        assert not wire.answer(1)["result"].get("isError")
        number, deadline = 2, monotonic() + PATIENCE_S
        while vector_count(database) < len(FACTS):
            assert monotonic() < deadline
            wire.send(wire_call(number, "build_context", session_id="home"))
            wire.answer(number)
            number += 1
        wire.send(wire_call(number, "search_memory", query="Where does my cat sleep?"))
        page = wire.answer(number)["result"]["structuredContent"]
    assert page["hits"][0]["text"] == FACTS[0]

    maker = "meaning:use-multilingual-3:1"
    report = said(database, "doctor", **MEANING)
    assert f"embedder: {maker}" in report
    assert f"vectors: every record has one, made by {maker}" in report
    assert f"3 vectors, made by {maker}" in said(database, "stats", **MEANING)


def test_switched_off_nothing_is_embedded(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    said(database, "remember", FACTS[0])
    assert vector_count(database) == 0
    reason = 'embedder: none, so search uses words only: vectors.embedder is "none"'
    assert reason in said(database, "doctor")
    assert "no vectors: search uses words only" in said(database, "stats")
