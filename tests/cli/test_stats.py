"""`kalito-mcp stats`: for people, for programs, and read-only."""

import json
from pathlib import Path

import anyio

from kalito_mcp.ports.embedder import VectorPolicy
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.upkeep.vector_worker import VectorWorker
from kalito_mcp.wiring import open_memory
from tests.cli.conftest import Invoke
from tests.scripted_embedder import ScriptedEmbedder


def test_the_memory_in_numbers(invoke: Invoke, remembered: Path) -> None:
    outcome = invoke("stats", "--database", str(remembered))
    assert (outcome.code, outcome.err) == (0, "")
    path, totals, vectors = outcome.out.splitlines()
    assert path == f"{remembered}  ({remembered.stat().st_size:,} bytes)"
    assert totals == "2 sessions, 3 messages, 1 pin, 0 summaries"
    assert vectors == "no vectors: search uses words only"


def test_notes_tasks_and_documents_are_counted(invoke: Invoke, tmp_path: Path) -> None:
    database, long = tmp_path / "memory.db", tmp_path / "long.txt"
    long.write_text("A paragraph about the ferry and the moss.\n\n" * 400, encoding="utf-8")
    for arguments in (["Bought a lawn mower."], ["--type", "task", "Renew the passport."], ["--file", str(long)]):
        assert invoke("remember", *arguments, "--database", str(database)).code == 0
    totals = invoke("stats", "--database", str(database)).out.splitlines()[1]
    assert totals == "0 sessions, 0 messages, 0 pins, 0 summaries, 1 note, 1 task, 1 document"


def test_json_is_one_object_with_the_same_numbers(invoke: Invoke, remembered: Path) -> None:
    stats = json.loads(invoke("stats", "--json", KALITO_DATABASE=str(remembered)).out)
    assert {name: stats[name] for name in ("sessions", "messages", "pins", "summaries")} == {
        "sessions": 2,
        "messages": 3,
        "pins": 1,
        "summaries": 0,
    }


def test_vectors_are_counted_of_the_owner_alone(invoke: Invoke, remembered: Path) -> None:
    async def embed() -> None:
        async with open_memory(remembered) as memory:
            await memory.of_owner("ben").remember("note", {"text": "Bees sleep in winter."})
        store = await SqliteStore.open(remembered)
        try:
            await VectorWorker(store, ScriptedEmbedder(), VectorPolicy()).rebuild(lambda done, total: None)
        finally:
            await store.close()

    anyio.run(embed)
    for owner, count in (("local", 4), ("ben", 1), ("nobody", 0)):
        shown = invoke("stats", "--json", "--database", str(remembered), KALITO_OWNER=owner)
        assert json.loads(shown.out)["vectors"] == count


def test_one_session_in_detail(invoke: Invoke, remembered: Path) -> None:
    outcome = invoke("stats", "--database", str(remembered), "--session", "trip/oslo")
    assert "total messages  1" in outcome.out
    assert "total pins  1" in outcome.out
    stats = json.loads(invoke("stats", "--database", str(remembered), "--session", "trip/oslo", "--json").out)
    assert (stats["session_id"], stats["state"], stats["total_messages"]) == ("trip/oslo", "OPEN", 1)


def test_an_unknown_session_is_an_error(invoke: Invoke, remembered: Path) -> None:
    outcome = invoke("stats", "--database", str(remembered), "--session", "nobody")
    assert outcome.code == 1
    assert outcome.err.startswith("kalito-mcp: no session 'nobody'")


def test_a_missing_database_is_not_created(invoke: Invoke, tmp_path: Path) -> None:
    outcome = invoke("stats", "--database", str(tmp_path / "none" / "memory.db"))
    assert outcome.code == 1
    assert "does not exist yet; `kalito-mcp serve` creates it" in outcome.err
    assert list(tmp_path.iterdir()) == []


def test_looking_changes_nothing(invoke: Invoke, remembered: Path) -> None:
    before = remembered.read_bytes()
    invoke("stats", "--database", str(remembered))
    assert remembered.read_bytes() == before
