"""A server over HTTP in a process of its own, and clients that keep their connection and send a token."""

import http.client
import itertools
import json
import re
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.report import ROOT
from bench.wire import PROTOCOL, clean_environment, echo_command, memory_command

STATELESS: Final = "2026-07-28"
_META: Final = "io.modelcontextprotocol/"


@dataclass(frozen=True)
class Served:
    """A server: its port, its process, and a token for it, if it wants one."""

    port: int
    process_id: int
    token: str | None = None


class HttpClient:
    """One client with one kept connection. Use it from one thread at a time. `protocol` is 2025-11-25, with a handshake
    and a session, or the stateless one."""

    def __init__(self, served: Served, *, protocol: str = PROTOCOL) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=120)
        self._connection.connect()
        self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if served.token is not None:
            self._headers["Authorization"] = f"Bearer {served.token}"
        self._numbers = itertools.count(1)
        self._is_stateless = protocol == STATELESS
        if self._is_stateless:
            self._headers["MCP-Protocol-Version"] = STATELESS
            return
        about = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self.request("initialize", about)
        self._headers["MCP-Protocol-Version"] = PROTOCOL
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The result of one request."""
        if self._is_stateless:
            self._headers |= {"Mcp-Method": method, "Mcp-Name": str(params.get("name", ""))}
            client = {"name": "bench", "version": "1"}
            meta = {"protocolVersion": STATELESS, "clientCapabilities": {}, "clientInfo": client}
            params = {**params, "_meta": {_META + name: value for name, value in meta.items()}}
        raw = self._send({"jsonrpc": "2.0", "id": next(self._numbers), "method": method, "params": params})
        [line] = [line for line in raw.splitlines() if line.startswith((b"data: {", b"{"))]
        return dict(json.loads(line.removeprefix(b"data: "))["result"])

    def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The structured answer of one tool call.

        Raises:
            RuntimeError: the tool refused the call.
        """
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            raise RuntimeError(f"{tool}: {result['content'][0]['text'][:200]}")
        return dict(result.get("structuredContent", {}))

    def _send(self, message: Mapping[str, Any]) -> bytes:
        self._connection.request("POST", "/mcp", json.dumps(message).encode(), self._headers)
        answer = self._connection.getresponse()
        if session := answer.getheader("mcp-session-id"):
            self._headers["Mcp-Session-Id"] = session
        return answer.read()


@contextmanager
def served(folder: Path) -> Iterator[Served]:
    """A server of the memory in this folder, which may be new. It asks for tokens."""
    database = folder / "memory.db"
    made = subprocess.run(
        [*memory_command(database)[:-3], "token", "create", "bench", "--database", str(database)],
        env=clean_environment(folder),
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    # All clients of a benchmark share the token, and call faster than those of one person.
    settings = {"KALITO_HTTP_CALLS_PER_MINUTE": "1000000"}
    command = [*memory_command(database), "--transport", "http", "--port", "0"]
    with _started(command, clean_environment(folder) | settings) as (port, process_id):
        yield Served(port, process_id, made.stdout.strip())


@contextmanager
def served_echo(folder: Path) -> Iterator[Served]:
    """The plainest server of the SDK over HTTP. It asks for nothing."""
    with _started([*echo_command(), "http"], clean_environment(folder)) as (port, process_id):
        yield Served(port, process_id)


@contextmanager
def _started(command: Sequence[str], environment: Mapping[str, str]) -> Iterator[tuple[int, int]]:
    server = subprocess.Popen(command, stderr=subprocess.PIPE, env=dict(environment), cwd=ROOT, text=True)
    assert server.stderr is not None
    try:
        found = re.search(r":(\d+)/mcp", server.stderr.readline())
        assert found is not None
        # The plain server can only say where it will listen before it does.
        while server.poll() is None:
            with suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", int(found[1]))):
                break
        yield int(found[1]), server.pid
    finally:
        server.terminate()
        server.communicate()
