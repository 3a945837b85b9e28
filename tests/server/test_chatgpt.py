"""The tools `search` and `fetch`: only where they are switched on, and in the shapes that ChatGPT reads."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import TextContent

from kalito_mcp.domain.access import Permission
from kalito_mcp.memory import Memory
from kalito_mcp.server.build import build_server
from kalito_mcp.wiring import open_memory
from tests.empty_database import lay_empty_database
from tests.web.rest.served import Served, served

pytestmark = pytest.mark.anyio
LONG = "\n\n".join(f"Chapter {place}. " + "Bees fly far. " * 120 for place in range(4))


async def called(client: Client, tool: str, **arguments: Any) -> Mapping[str, Any]:
    """What a tool answers: the same in both channels."""
    result = await client.call_tool(tool, arguments)
    [block] = result.content
    assert isinstance(block, TextContent)
    assert not result.is_error, block.text
    assert json.loads(block.text) == result.structured_content
    found: Mapping[str, Any] = result.structured_content or {}
    return found


async def test_a_search_gives_ids_that_fetch_takes(tmp_path: Path) -> None:
    server = build_server(lambda: open_memory(lay_empty_database(tmp_path / "memory.db")), has_chatgpt=True)
    async with Client(server) as client:
        memory: Memory = await server.opened.memory()
        [note] = await memory.remember("note", {"text": "The shop has bees.", "tags": ["hive"]})
        [found] = (await called(client, "search", query="bees"))["results"]
        assert found.keys() == {"id", "title", "url", "text"}
        assert (found["id"], found["url"]) == (note.id, f"memory://records/{note.id}")
        assert found["title"].endswith("The shop has bees.")
        fetched = await called(client, "fetch", id=note.id)
        assert fetched.keys() == {"id", "title", "text", "url", "metadata"}
        assert (fetched["text"], fetched["metadata"]["tags"]) == ("The shop has bees.", "hive")
        assert await called(client, "search", query="nothing of the kind") == {"results": []}


async def test_a_document_is_fetched_whole_and_what_is_forgotten_is_not(tmp_path: Path) -> None:
    server = build_server(
        lambda: open_memory(lay_empty_database(tmp_path / "memory.db")),
        has_chatgpt=True,
        public_url="https://memory.example.org/",
    )
    async with Client(server) as client:
        memory: Memory = await server.opened.memory()
        parts = await memory.remember("document", {"text": LONG, "source": "book", "title": "On bees"})
        name = str(parts[0].content["document_id"])
        fetched = await called(client, "fetch", id=name)
        assert (fetched["title"], fetched["url"]) == ("On bees", f"https://memory.example.org/api/records/{name}")
        assert all(f"Chapter {place}." in fetched["text"] for place in range(4))
        await memory.forget(name)
        for gone in (name, "note_nothing"):
            result = await client.call_tool("fetch", {"id": gone})
            assert result.is_error
            [block] = result.content
            assert isinstance(block, TextContent)
            assert block.text.startswith("record_not_found")


@pytest.mark.parametrize(
    ("environment", "is_listed"),
    [({}, False), ({"KALITO_CHATGPT": "1"}, True)],
    ids=["off", "on"],
)
def test_over_http_they_are_listed_by_variable(tmp_path: Path, environment: dict[str, str], *, is_listed: bool) -> None:
    with served(tmp_path, **environment) as running:
        assert ("fetch" in anyio.run(listed, running)) is is_listed


async def listed(running: Served) -> set[str]:
    headers = {"authorization": f"Bearer {running.tokens[Permission.READ]}"}
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False, verify=False) as http,
        Client(streamable_http_client(f"{running.origin}/mcp", http_client=http)) as client,
    ):
        return {tool.name for tool in (await client.list_tools()).tools}
