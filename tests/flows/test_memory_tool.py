"""Anthropic's memory tool over MCP: where it is switched on, in both protocol eras."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcp import Client

from kalito_mcp.memory import Memory
from kalito_mcp.server.build import build_server
from kalito_mcp.wiring import open_memory
from tests.empty_database import lay_empty_database
from tests.flows.harness import Harness, served

pytestmark = pytest.mark.anyio
PATH = "/memories/guests.md"
GUESTS = "Guests:\n- Ines is allergic to nuts\n"


@asynccontextmanager
async def with_memory_tool(database: Path, era: str, project: str | None = None) -> AsyncIterator[Harness]:
    @asynccontextmanager
    async def opens() -> AsyncIterator[Memory]:
        async with open_memory(lay_empty_database(database)) as memory:
            yield await memory.in_project(project)

    server = build_server(opens, has_memory_tool=True)
    async with Client(server, mode=era) as client:
        yield Harness(client, server)


async def test_it_is_listed_and_known_only_where_it_is_switched_on(tmp_path: Path, era: str) -> None:
    async with served(tmp_path / "off.db", era) as h:
        assert "memory" not in {tool.name for tool in (await h.client.list_tools()).tools}
    async with with_memory_tool(tmp_path / "on.db", era) as h:
        [tool] = [tool for tool in (await h.client.list_tools()).tools if tool.name == "memory"]
        assert set(tool.input_schema["properties"]["command"]["enum"]) == {
            "view",
            "create",
            "str_replace",
            "insert",
            "delete",
            "rename",
        }
        assert tool.input_schema["required"] == ["command"]
        assert tool.output_schema is None


async def test_a_model_writes_reads_and_changes_its_files(tmp_path: Path, era: str) -> None:
    async with with_memory_tool(tmp_path / "memory.db", era) as h:
        done = await h.text("memory", command="create", path=PATH, file_text=GUESTS)
        assert done == f"File created successfully at: {PATH}"
        await h.text("memory", command="str_replace", path=PATH, old_str="nuts", new_str="eggs")
        await h.text("memory", command="insert", path=PATH, insert_line=2, insert_text="- Bo")
        seen = await h.text("memory", command="view", path=PATH, view_range=[2, -1])
        assert seen.endswith("     2\t- Ines is allergic to eggs\n     3\t- Bo\n     4\t")
        await h.text("memory", command="rename", old_path=PATH, new_path="/memories/trip/g.md")
        assert (await h.text("memory", command="view", path="/memories")).endswith("B\t/memories/trip/g.md")
        assert "eggs" in await h.text("search_memory", query="who is allergic to eggs?")
        history = await h.text("memory_history", record_id="/memories/trip/g.md")
        assert "update" in history
        await h.text("memory", command="delete", path="/memories/trip")
        assert (await h.text("memory", command="view", path="/memories")).endswith("0B\t/memories")
        await h.text("restore", record_id="/memories/trip/g.md")
        assert "Bo" in await h.text("memory", command="view", path="/memories/trip/g.md")


async def test_refusals_have_the_words_that_models_know(tmp_path: Path, era: str) -> None:
    async with with_memory_tool(tmp_path / "memory.db", era) as h:
        assert await h.refusal("memory", command="view", path=PATH) == (
            f"The path {PATH} does not exist. Please provide a valid path."
        )
        assert await h.refusal("memory", command="delete", path="/memories") == (
            "Cannot delete the /memories directory itself"
        )
        assert await h.refusal("memory", command="create", path=PATH) == "create needs file_text; send it"
        assert "command must be" in await h.refusal("memory", command="append", path=PATH)
        assert "did you mean" in await h.refusal("memory", command="view", pathh=PATH)


async def test_a_text_that_is_json_is_kept_as_text(tmp_path: Path, era: str) -> None:
    async with with_memory_tool(tmp_path / "memory.db", era) as h:
        await h.text("memory", command="create", path="/memories/a.json", file_text='{"a": [1, 2]}')
        await h.text("memory", command="insert", path="/memories/a.json", insert_line=1, insert_text="[1, 2]")
        seen = await h.text("memory", command="view", path="/memories/a.json")
        assert seen.endswith('     1\t{"a": [1, 2]}\n     2\t[1, 2]\n     3\t')


async def test_it_works_in_the_host_s_project_or_the_one_that_is_named(tmp_path: Path, era: str) -> None:
    async with with_memory_tool(tmp_path / "memory.db", era, "shop") as h:
        await h.text("memory", command="create", path=PATH, file_text=GUESTS)
        await h.text("memory", command="create", path=PATH, file_text="Mine", project="personal")
        assert "Ines" in await h.text("memory", command="view", path=PATH)
        assert "Mine" in await h.text("memory", command="view", path=PATH, project="personal")
    async with with_memory_tool(tmp_path / "memory.db", era, "blog") as h:
        assert (await h.text("memory", command="view", path="/memories")).endswith("0B\t/memories")
