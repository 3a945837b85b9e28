"""What a thousand idle subscriptions cost a server over HTTP: memory and processor time, and how soon they hear.

Each is a stream of `subscriptions/listen` on a connection of its own, to the numbers of another session and to the list
of sessions. Then another process writes: to one session, and then to a new one, of which all hear.
"""

import json
import socket
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import anyio

from bench.over_http import STATELESS, HttpClient, Served, served
from bench.process_tree import cpu_s
from bench.report import emit, options, progress, rss_mb
from kalito_mcp.domain.records import NewMessage, Role
from kalito_mcp.wiring import open_memory

TARGETS: Final = {"more_mb": 60, "idle_cpu_share": 0.02}
_PATIENCE_S: Final = 60
_META: Final = "io.modelcontextprotocol/"


class Stream:
    """One subscription."""

    def __init__(self, served: Served, number: int) -> None:
        client = {"name": "bench", "version": "1"}
        meta = {"protocolVersion": STATELESS, "clientCapabilities": {}, "clientInfo": client}
        asked = {"resourceSubscriptions": [f"memory://sessions/s{number}/stats"], "resourcesListChanged": True}
        params = {"notifications": asked, "_meta": {_META + name: value for name, value in meta.items()}}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}).encode()
        head = [
            "POST /mcp HTTP/1.1",
            f"Host: 127.0.0.1:{served.port}",
            f"Authorization: Bearer {served.token}",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            f"MCP-Protocol-Version: {STATELESS}",
            "Mcp-Method: subscriptions/listen",
            f"Content-Length: {len(body)}",
        ]
        self._socket = socket.create_connection(("127.0.0.1", served.port), timeout=_PATIENCE_S)
        self._socket.sendall("\r\n".join([*head, "", ""]).encode() + body)
        self._heard = b""
        self.wait_for(b"notifications/subscriptions/acknowledged")

    def wait_for(self, words: bytes) -> None:
        """Read until the words have come, once or again."""
        while words not in self._heard:
            chunk = self._socket.recv(65_536)
            if not chunk:
                raise RuntimeError(f"the stream ended: {self._heard[-300:]!r}")
            self._heard += chunk

    def close(self) -> None:
        """End it."""
        self._socket.close()


async def _say(database: Path, session_id: str) -> None:
    async with open_memory(database) as memory:
        await memory.record_messages(session_id, [NewMessage(Role.USER, "Where is the kite?")])


def measured(folder: Path, count: int, idle_s: float) -> dict[str, Any]:
    """The figures of so many subscriptions."""
    with served(folder) as server, ExitStack() as stack:
        HttpClient(server, protocol=STATELESS).call("list_tasks", {})
        first = Stream(server, 0)
        stack.callback(first.close)
        before = rss_mb(server.process_id)
        started = time.perf_counter()
        streams = [first]
        for number in range(1, count):
            streams.append(Stream(server, number))
            stack.callback(streams[-1].close)
        opened_s = time.perf_counter() - started
        progress(f"subscriptions: {count} are open; now {idle_s:g} s of silence")
        cpu_before = cpu_s(server.process_id)
        time.sleep(idle_s)
        cpu_after, after = cpu_s(server.process_id), rss_mb(server.process_id)
        started = time.perf_counter()
        anyio.run(_say, folder / "memory.db", f"s{count - 1}")
        wrote = time.perf_counter()
        streams[-1].wait_for(b"notifications/resources/updated")
        heard_s = time.perf_counter() - wrote
        for one in streams:
            one.wait_for(b"notifications/resources/list_changed")
        all_heard_s = time.perf_counter() - wrote
        has_figures = None not in (before, after, cpu_before, cpu_after)
        return {
            "subscriptions": count,
            "opened_s": opened_s,
            "rss_mb": {"with_one": before, "with_all": after},
            "more_mb": (after or 0) - (before or 0) if has_figures else None,
            "idle_cpu_share": ((cpu_after or 0) - (cpu_before or 0)) / idle_s if has_figures else None,
            "wrote_s": wrote - started,
            "heard_s": heard_s,
            "all_heard_s": all_heard_s,
        }


def main() -> None:
    """Run the benchmark."""
    given = options(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as name:
        figures = measured(Path(name), 200 if given.quick else 1_000, 5 if given.quick else 20)
    emit("subscriptions", {**figures, "targets": TARGETS})


if __name__ == "__main__":
    main()
