"""The App where the memory is on another machine: the page is this machine's, and the records are the home's."""

import sys
from pathlib import Path
from typing import Any, Final

import pytest
from mcp import Client, StdioServerParameters
from mcp.types import TextResourceContents

from kalito_mcp.server.app.offering import PAGE, PAGE_URI
from tests.bridge.machines import connected, gate, home_behind, turn
from tests.flows.harness import ERAS
from tests.server.app.served import SHOWS_APPS
from tests.server.wire import clean_environment

FOUND: Final = {"query": "question"}


@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
async def test_a_host_that_shows_apps_gets_the_page_and_the_records(tmp_path: Path, era: Any) -> None:
    with gate() as between:
        database = connected(tmp_path / "laptop", between.url)
        environment = clean_environment(KALITO_DATABASE=str(database))
        server = StdioServerParameters(command=sys.executable, args=["-m", "kalito_mcp", "serve"], env=environment)
        async with Client(server, mode=era, extensions=[SHOWS_APPS]) as shows, Client(server, mode=era) as other:
            with home_behind(between, tmp_path / "home"):
                await shows.call_tool("record_messages", {"session_id": "s", "messages": turn(1)})
                found = await shows.call_tool("search_memory", FOUND)
                plain = await other.call_tool("search_memory", FOUND)
            assert [one["record_id"] for one in (found.meta or {})["kalito/records"]][:1] == ["msg_1"]
            assert "kalito/records" not in (plain.meta or {})
            # Each is shown its own last answer while the home is away.
            assert "kalito/records" in ((await shows.call_tool("search_memory", FOUND)).meta or {})
            assert "kalito/records" not in ((await other.call_tool("search_memory", FOUND)).meta or {})
            [tool] = [one for one in (await shows.list_tools()).tools if one.name == "search_memory"]
            assert (tool.meta or {})["ui/resourceUri"] == PAGE_URI
            [content] = (await shows.read_resource(PAGE_URI)).contents
            assert isinstance(content, TextResourceContents)
            assert content.text == PAGE
