"""The model of every installation from end to end: what was said is found in another language."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from time import monotonic

import anyio
import pytest

from kalito_mcp import NewMessage, Role, open_memory
from kalito_mcp.upkeep.vector_worker import VectorWorker
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
    reason = 'embedder: none, so search uses words only: models.embedder is "none"'
    assert reason in said(database, "doctor")
    assert "no vectors: search uses words only" in said(database, "stats")


@pytest.mark.anyio
@pytest.mark.usefixtures("meaning_installed")
async def test_a_search_before_the_first_vectors_says_that_it_went_by_words(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_run, run = anyio.Event(), VectorWorker.run

    async def run_later(worker: VectorWorker) -> None:
        await may_run.wait()
        await run(worker)

    monkeypatch.setattr(VectorWorker, "run", run_later)
    async with open_memory(database) as memory:
        await memory.record_messages("home", [NewMessage(Role.USER, "My cat sleeps on the printer.")])
        page = await memory.search_memory("cat")
        assert len(page.hits) == 1
        assert page.note == "searched by words only: the first vectors are still being made"
        may_run.set()
        await memory.settled()
        assert (await memory.search_memory("cat")).note is None
