"""A real server and a client that declares MCP Apps, called from tests that drive a browser."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client
from mcp.client import advertise
from mcp.server.apps import APP_MIME_TYPE, EXTENSION_ID
from mcp.types import CallToolResult

from kalito_mcp.server.build import KalitoServer, build_server
from kalito_mcp.wiring import open_memory
from tests.empty_database import lay_empty_database

SHOWS_APPS: Final = advertise(EXTENSION_ID, {"mimeTypes": [APP_MIME_TYPE]})


@dataclass(frozen=True)
class Served:
    """A client of a server, whose calls wait."""

    portal: BlockingPortal
    client: Client
    server: KalitoServer

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """A tool's result as on the wire."""
        return wired(self.portal.call(self.client.call_tool, name, arguments))

    def facts(self, name: str, **arguments: Any) -> dict[str, Any]:
        """The structured content of a call that succeeds, after all owed work."""
        self.portal.call(self._settled)
        result = self.call(name, arguments)
        assert not result.get("isError"), result
        found: dict[str, Any] = result["structuredContent"]
        return found

    def text_of(self, record_id: str) -> str:
        """A record's text as it is now."""
        found: str = self.facts("memory_history", record_id=record_id)["record"]["text"]
        return found

    def found(self, query: str) -> set[str]:
        """The texts that a search finds."""
        return {hit["text"] for hit in self.facts("search_memory", query=query)["hits"]}

    async def _settled(self) -> None:
        await (await self.server.opened.memory()).settled()


@contextmanager
def served(database: Path, era: str, *, has_apps: bool = True) -> Iterator[Served]:
    """A server of a new memory. Its client shows apps, or does not."""
    server = build_server(lambda: open_memory(lay_empty_database(database)))
    with start_blocking_portal() as portal:
        client = Client(server, mode=era, extensions=[SHOWS_APPS] if has_apps else [])  # type: ignore[arg-type]
        connection = portal.wrap_async_context_manager(client)
        connection.__enter__()
        try:
            yield Served(portal, client, server)
        finally:
            connection.__exit__(None, None, None)  # with an error of the test, it would wrap it in groups


def wired(result: CallToolResult) -> dict[str, Any]:
    """The result as on the wire."""
    return result.model_dump(by_alias=True, mode="json", exclude_none=True)
