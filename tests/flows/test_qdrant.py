"""A memory whose vectors are in Qdrant, from end to end: also while Qdrant is away, and on the command line."""

import logging
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from click.testing import CliRunner

from kalito_mcp import Memory, NewMessage, Role, Settings, open_memory
from kalito_mcp.cli.commands import commands
from kalito_mcp.domain.search import SearchRequest
from kalito_mcp.ports.embedder import VectorPolicy
from tests.flows.test_vectors import FACTS, SMALL, Embeddings, config, embeddings
from tests.qdrant import needs_qdrant, stored_rows
from tests.qdrant_server import QdrantServer, serving
from tests.scripted import ScriptedClock

pytestmark = [pytest.mark.anyio, needs_qdrant]
__all__ = ["embeddings"]


def settings_of(embeddings: Embeddings, address: str) -> Settings:
    server = {"name": "home", "kind": "ollama", "url": embeddings.url, "models": ("none",), "max_retries": 0}
    policy = VectorPolicy(embedder="home", model="small", qdrant=address, qdrant_timeout_s=20)
    return Settings(servers=(server,), vectors=policy)


async def record(memory: Memory, *texts: str) -> list[str]:
    recorded = await memory.record_messages("trip", [NewMessage(Role.USER, text) for text in texts])
    await memory.settled()
    return recorded.message_ids


async def found(memory: Memory, query: str) -> tuple[list[str], str | None]:
    page = await memory.search_memory(SearchRequest(query=query, k=1))
    return [hit.text for hit in page.hits], page.note


async def until_settled(memory: Memory, server: QdrantServer, count: int) -> None:
    """Until the background has left so many vectors there."""
    with anyio.fail_after(30):
        while len(stored_rows(server.client)) != count:
            await memory.settled()
            await anyio.lowlevel.checkpoint()


async def test_a_memory_finds_by_meaning_and_goes_on_by_words_while_qdrant_is_away(
    database: Path, embeddings: Embeddings, caplog: pytest.LogCaptureFixture
) -> None:
    clock = ScriptedClock()
    with serving() as server:
        async with open_memory(database, settings_of(embeddings, server.url), clock=clock) as memory:
            ids = await record(memory, *FACTS)
            assert len(stored_rows(server.client)) == 3
            assert await found(memory, "gloaming") == ([FACTS[0]], None), "no word of it is in the text"
            server.status = 503
            ids += await record(memory, "Dinner is at brillig.")
            texts, note = await found(memory, "printer")
            assert texts == [FACTS[1]]
            assert note == (
                f"searched by words only: Qdrant at {server.url} answered with status 503; its log may say why"
            )
            report = await memory.purge([ids[0]])
            assert report.erased == (ids[0],)
            assert list(report.remaining) == [f"Qdrant at {server.url}"]
            assert report.is_owed
            assert len(stored_rows(server.client)) == 3
            server.status = 200
            clock.advance(400)
            await record(memory, "One more turn.")
            await until_settled(memory, server, 4)
            assert (await found(memory, "gloaming"))[0] == ["Dinner is at brillig."]
            report = await memory.purge([])
            assert (dict(report.remaining), report.is_owed) == ({}, False)
    lines = [one.getMessage() for one in caplog.records if one.name == "kalito.qdrant" and one.levelno > logging.INFO]
    assert len(lines) == 1 and lines[0].startswith("search goes on by words only: Qdrant at ")


async def test_doctor_says_where_the_vectors_are_and_reindex_moves_and_brings_them_back(
    database: Path, embeddings: Embeddings, monkeypatch: pytest.MonkeyPatch
) -> None:
    configuration = config(embeddings, database.parent, "small")
    monkeypatch.setenv("KALITO_CONFIG", configuration)
    async with open_memory(database, settings_of(embeddings, "")) as memory:
        await record(memory, *FACTS)

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(commands, [*arguments, "--database", str(database)])
        assert result.exception is None, result.output
        return result.output

    with serving() as server:
        doctor = await anyio.to_thread.run_sync(run, "doctor")
        assert f"vectors: every record has one, made by {SMALL} and kept in the database" in doctor
        monkeypatch.setenv("KALITO_MODELS_QDRANT", server.url)
        assert "vectors complete: 3 records" in await anyio.to_thread.run_sync(run, "reindex", "--vectors")
        assert len(stored_rows(server.client)) == 3
        doctor = await anyio.to_thread.run_sync(run, "doctor")
        place = f"Qdrant at {server.url}"
        assert f"vectors: every record has one, made by {SMALL} and kept in {place}" in doctor
        assert f"qdrant: {place} answers, and has all 3 vectors of this database" in doctor
        server.client.delete_collection("kalito_messages_64")
        doctor = await anyio.to_thread.run_sync(run, "doctor")
        assert f"{place} has 0 vectors of this database instead of 3" in doctor
        assert "vectors complete: 3 records" in await anyio.to_thread.run_sync(run, "reindex", "--vectors")
        assert len(stored_rows(server.client)) == 3
        monkeypatch.delenv("KALITO_MODELS_QDRANT")
        assert "but models.qdrant is not set" in await anyio.to_thread.run_sync(run, "doctor")
        assert "vectors complete: 3 records" in await anyio.to_thread.run_sync(run, "reindex", "--vectors")
        doctor = await anyio.to_thread.run_sync(run, "doctor")
        assert f"made by {SMALL} and kept in the database" in doctor
        assert f"3 vectors of what was erased or changed left in {place}" in doctor
        monkeypatch.setenv("KALITO_MODELS_QDRANT", server.url)
    doctor = await anyio.to_thread.run_sync(run, "doctor")
    assert "cannot be reached (ConnectError" in doctor
