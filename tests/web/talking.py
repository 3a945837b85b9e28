"""A server that asks for tokens, and calls to it over real connections."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx2

from kalito_mcp.domain.access import Permission
from kalito_mcp.domain.scope import NO_LIMITS, Limits
from kalito_mcp.wiring import open_memory
from tests.empty_database import lay_empty_database
from tests.server.web import Web, web
from tests.server.wire import COVERED

ERA = "2025-11-25"


def token(database: Path, permission: Permission, *, owner: str = "local", limits: Limits = NO_LIMITS) -> str:
    """The text of a new token."""

    async def made() -> str:
        async with open_memory(lay_empty_database(database)) as memory:
            return (await memory.access.create_token(permission, owner=owner, limits=limits)).text

    return anyio.run(made)


@dataclass
class Caller:
    """One client over MCP, with a token and a session."""

    http: httpx2.Client
    url: str
    headers: dict[str, str]

    @classmethod
    def connect(cls, http: httpx2.Client, url: str, text: str) -> "Caller":
        """Say hello, and keep the session."""
        headers = {
            "Authorization": f"Bearer {text}",
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            "MCP-Protocol-Version": ERA,
        }
        caller = cls(http, url, headers)
        about = {"protocolVersion": ERA, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        hello = caller.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about})
        caller.headers["Mcp-Session-Id"] = hello.headers["mcp-session-id"]
        caller.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return caller

    def send(self, message: Any) -> httpx2.Response:
        """The answer to a message."""
        return self.http.post(self.url, headers=self.headers, content=json.dumps(message))

    def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The result of a tool, or the error."""
        params = {"name": tool, "arguments": arguments}
        answer = self.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        [line] = [line for line in answer.text.splitlines() if line.startswith(("data: {", "{"))]
        found: dict[str, Any] = json.loads(line.removeprefix("data: "))
        return found


@contextmanager
def talking(database: Path, *, transport: str = "http", **environment: str) -> Iterator[tuple[Web, httpx2.Client]]:
    """A server with login on a database that has a token, and a client whose paths are the server's."""
    with web(transport, database, login=True, **environment, **COVERED) as serving:
        root = serving.url.rpartition("/")[0]
        with httpx2.Client(base_url=root, timeout=30, trust_env=False, verify=False) as http:
            yield serving, http
