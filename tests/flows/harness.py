"""A server in this process and a connected client, through which the flows run."""

import json
import os
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pytest
from mcp import Client, MCPError
from mcp.types import CallToolResult, TextContent, TextResourceContents

from kalito_mcp.config.settings import Settings
from kalito_mcp.contexts.injector import InjectionPolicy
from kalito_mcp.domain.zone_names import TimePolicy
from kalito_mcp.memory import Memory
from kalito_mcp.ports.clock import Clock, IdSource
from kalito_mcp.runtime.database_address import DatabaseAddress, ServerAddress
from kalito_mcp.server.build import KalitoServer, build_server
from kalito_mcp.text.titles import short_id
from kalito_mcp.wiring import open_memory
from tests.empty_database import lay_empty_database
from tests.postgres import OWNER, new_database, shared_server

ERAS: Final = ("legacy", "2026-07-28")
"""The client's modes: the handshake of 2025-11-25, and the self-contained requests of 2026-07-28."""


@dataclass(frozen=True)
class Harness:
    """A connected client, and the server that it talks to."""

    client: Client
    server: KalitoServer

    async def call(self, tool: str, **arguments: Any) -> CallToolResult:
        result = await self.client.call_tool(tool, arguments)
        assert isinstance(result, CallToolResult)
        return result

    async def text(self, tool: str, **arguments: Any) -> str:
        """The text of a call that succeeds."""
        result = await self.call(tool, **arguments)
        assert not result.is_error, text_of(result)
        return text_of(result)

    async def facts(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured content of a call that succeeds. Also checks that the text states the same."""
        result = await self.call(tool, **arguments)
        assert not result.is_error, text_of(result)
        assert result.structured_content is not None
        assert_states(text_of(result), result.structured_content)
        return result.structured_content

    async def refusal(self, tool: str, **arguments: Any) -> str:
        """The text of a call that is refused."""
        result = await self.call(tool, **arguments)
        assert result.is_error, text_of(result)
        assert result.structured_content is None
        return text_of(result)

    async def resource(self, uri: str) -> dict[str, Any]:
        result = await self.client.read_resource(uri, cache_mode="bypass")
        [content] = result.contents
        assert isinstance(content, TextResourceContents)
        assert content.mime_type == "application/json"
        found: dict[str, Any] = json.loads(content.text)
        return found

    async def stats(self, session_id: str) -> dict[str, Any]:
        return await self.resource(stats_uri(session_id))

    async def resource_error(self, uri: str) -> MCPError:
        with pytest.raises(MCPError) as caught:
            await self.client.read_resource(uri, cache_mode="bypass")
        return caught.value

    async def prompt(self, **arguments: str) -> str:
        result = await self.client.get_prompt("resume_session", arguments)
        [message] = result.messages
        assert isinstance(message.content, TextContent)
        return message.content.text

    async def settled(self) -> None:
        """Wait until the owed work is done."""
        await (await self.server.opened.memory()).settled()


STORE = os.environ.get("KALITO_TEST_STORE", "sqlite")
"""Where the memories of flows are: "sqlite", or "postgres"."""

_ON_SERVER: Final[dict[Path, ServerAddress]] = {}


async def _address(database: Path) -> DatabaseAddress:
    """The address of the memory at a path. A new one is empty. On a server, its local files are at the path."""
    if STORE == "sqlite":
        return DatabaseAddress(lay_empty_database(database))
    if database not in _ON_SERVER:
        server, name = shared_server(), await new_database()
        _ON_SERVER[database] = ServerAddress(server.url(name), server.url(name, OWNER))
    return DatabaseAddress(database, _ON_SERVER[database])


@asynccontextmanager
async def served(
    database: Path,
    era: str,
    *,
    default_session: str | None = None,
    clock: Clock | None = None,
    ids: IdSource | None = None,
    settings: Settings | None = None,
    project: str | None = None,
) -> AsyncIterator[Harness]:
    """Serve a memory, or what one project has of it, to a client of the given era. Yields the connected client. Days
    are of UTC without `settings`, and hooks wait however slow the machine is."""
    chosen = settings or Settings(time=TimePolicy("UTC"), injection=InjectionPolicy(timeout_s=4))
    chosen = replace(chosen, database=await _address(database))

    @asynccontextmanager
    async def opens() -> AsyncIterator[Memory]:
        async with open_memory(None, chosen, clock=clock, ids=ids) as memory:
            yield await memory.in_project(project)

    server = build_server(opens, default_session=default_session)
    async with Client(server, mode=era) as client:
        yield Harness(client, server)


def said(*texts: str, role: str = "user") -> list[dict[str, Any]]:
    """Messages with these texts, with a client_key each."""
    return [{"role": role, "text": text, "client_key": f"key-{text[:50]}"} for text in texts]


def asked(*turns: tuple[str, str]) -> list[dict[str, Any]]:
    """Messages: each question of the user, followed by the assistant's answer."""
    return [
        {"role": role, "text": text} for turn in turns for role, text in zip(("user", "assistant"), turn, strict=True)
    ]


def stats_uri(session_id: str) -> str:
    return f"memory://sessions/{quote(session_id, safe='')}/stats"


def text_of(result: CallToolResult) -> str:
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


def assert_states(text: str, structured: Any) -> None:
    """Check that the text states the structured content: as JSON, or by containing each of its leaves.

    A number must not be part of a longer one. The name of a switch appears only if the switch is on. A session is named
    by as much of its id as finds it.
    """
    if text.startswith("{"):
        assert json.loads(text) == structured
        return
    for key, leaf in _leaves(structured):
        if isinstance(leaf, bool):
            assert (key.replace("_", " ") in text.lower()) is leaf, f"{key} is {leaf}, and not so in: {text}"
        elif isinstance(leaf, str):
            assert (short_id(leaf) if key == "session_id" else leaf) in text
        else:
            assert re.search(rf"(?<![\d.]){re.escape(json.dumps(leaf))}(?!\d)", text), f"{leaf} is not in: {text}"


def _leaves(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, one in value.items():
            yield from _leaves(one, name)
    elif isinstance(value, list):
        for one in value:
            yield from _leaves(one, key)
    else:
        yield key, value
