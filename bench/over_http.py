"""A server over HTTP in a process of its own, and clients that keep their connection. Protocol 2025-11-25."""

import http.client
import itertools
import json
import re
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.report import ROOT
from bench.wire import PROTOCOL, clean_environment, memory_command


class HttpClient:
    """One client with one kept connection. Use it from one thread at a time."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self._connection.connect()
        self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        self._numbers = itertools.count(1)
        about = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self.request("initialize", about)
        self._headers["MCP-Protocol-Version"] = PROTOCOL
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The result of one request."""
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
def served(folder: Path) -> Iterator[tuple[int, int]]:
    """The port and the process id of a server of the memory in this folder, which may be new."""
    command = [*memory_command(folder / "memory.db"), "--transport", "http", "--port", "0", "--without-login"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, env=clean_environment(folder), cwd=ROOT, text=True)
    assert server.stderr is not None
    try:
        found = re.search(r":(\d+)/mcp", server.stderr.readline())
        assert found is not None
        yield int(found[1]), server.pid
    finally:
        server.terminate()
        server.communicate()
