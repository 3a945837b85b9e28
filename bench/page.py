"""What the page costs the server with 100,000 records.

The processor time of its process for the first HTML of each view, for a question next to the same search as a tool, and
while many pages are open and nothing happens. `over_tool_ms` is Ask with a query less the tool's search. Bytes of a
visit are compressed: `first` with style, scripts and icon, `later` without. Use KALITO_MODELS_EMBEDDER=none: the
server would embed what was filled in while it is measured.
"""

import gzip
import http.client
import re
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import anyio

from bench.filler import Filler
from bench.over_http import HttpClient, Served, served
from bench.report import emit, options, progress
from kalito_mcp.domain.access import Permission
from kalito_mcp.web.page.table import PAGE
from kalito_mcp.web.page.view import View

TARGETS: Final = {
    "view_ms": 40,
    "over_tool_ms": 10,
    "open_pages_percent": 3,
    "event_s": 1,
    "first_kb": 40,
    "later_kb": 15,
}
_RECORDS: Final = 100_000
_QUERY: Final = "what did we say about the ferry"
_OPEN_PAGES: Final = 20
_FEED: Final = "/now/feed"
_LOOK_S: Final = 3.0
_IDLE: Final = 0.02


class Visitor:
    """A browser that keeps its connection and its cookie."""

    def __init__(self, served: Served) -> None:
        self._host = f"127.0.0.1:{served.port}"
        self._connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=120)
        self._headers = {"accept-encoding": "gzip"}
        form = urlencode({"token": served.token or "", "back": "/ask"})
        headers = {"content-type": "application/x-www-form-urlencoded", "origin": f"http://{self._host}"}
        self._connection.request("POST", "/enter", form, headers)
        answer = self._connection.getresponse()
        answer.read()
        self._headers["cookie"] = (answer.getheader("set-cookie") or "").partition(";")[0]

    def get(self, path: str) -> bytes:
        """The compressed body at a path."""
        self._connection.request("GET", path, headers=self._headers)
        answer = self._connection.getresponse()
        body = answer.read()
        if answer.status != http.client.OK:
            raise RuntimeError(f"{path}: {answer.status}")
        return body if answer.getheader("content-encoding") == "gzip" else gzip.compress(body)

    def follow(self, path: str) -> http.client.HTTPResponse:
        """The stream at a path."""
        self._connection.request("GET", path, headers=self._headers)
        return self._connection.getresponse()


def processor_s(process_id: int) -> float:
    """The processor time of a process, its own and the system's for it."""
    fields = Path(f"/proc/{process_id}/stat").read_text(encoding="ascii").rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def cost_ms(process_id: int, call: Callable[[], object], rounds: int) -> float:
    """The processor time of a call, in milliseconds."""
    call()
    before = processor_s(process_id)
    for _ in range(rounds):
        call()
    return 1_000 * (processor_s(process_id) - before) / rounds


def views(server: Served, rounds: int) -> dict[str, Any]:
    """The figures of each view."""
    visitor, tool = Visitor(server), HttpClient(server)
    found: dict[str, Any] = {}
    views = (line for line in PAGE if isinstance(line, View) and line.permission is Permission.READ)
    for path in (line.path for line in views if "{" not in line.path):
        page = visitor.get(path)
        files = re.findall(r'"(/static/[^"]+)"', gzip.decompress(page).decode())
        found[path] = {
            "cost_ms": cost_ms(server.process_id, lambda path=path: visitor.get(path), rounds),
            "later_kb": len(page) / 1_000,
            "first_kb": (len(page) + sum(len(visitor.get(file)) for file in set(files))) / 1_000,
        }
    ask = f"/ask?{urlencode({'q': _QUERY})}"
    asked = cost_ms(server.process_id, lambda: visitor.get(ask), rounds)
    searched = cost_ms(
        server.process_id, lambda: tool.call("search_memory", {"query": _QUERY, "explain": True}), rounds
    )
    found["ask_with_a_query"] = {"cost_ms": asked, "tool_ms": searched, "over_tool_ms": asked - searched}
    for path in ("/r/msg_5000", "/s/session-3"):
        found[path] = {"cost_ms": cost_ms(server.process_id, lambda path=path: visitor.get(path), rounds)}
    return found


def settle(process_id: int) -> None:
    """Wait until the server has done the work that it owes for what was filled in."""
    while True:
        before = processor_s(process_id)
        time.sleep(_LOOK_S)
        if processor_s(process_id) - before < _LOOK_S * _IDLE:
            return


def feed(server: Served, seconds: float) -> dict[str, Any]:
    """What open pages cost while nothing happens, and how soon an event comes."""
    settle(server.process_id)
    with ExitStack() as open_pages:
        for _ in range(_OPEN_PAGES):
            open_pages.enter_context(Visitor(server).follow(_FEED))
        time.sleep(_LOOK_S)
        before = processor_s(server.process_id)
        time.sleep(seconds)
        idle = 100 * (processor_s(server.process_id) - before) / seconds
        stream = open_pages.enter_context(Visitor(server).follow(_FEED))
        time.sleep(_LOOK_S)
        turn = {"session_id": "new", "messages": [{"role": "user", "text": "Hello"}]}
        HttpClient(server).call("record_messages", turn)
        started = time.perf_counter()
        while b"changed" not in stream.readline():
            pass
        return {"open_pages_percent": idle, "event_s": time.perf_counter() - started}


def main() -> None:
    """Run the benchmark."""
    parser = options(__doc__)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        progress("page: filling the memory")
        anyio.run(Filler(folder / "memory.db", None).fill, _RECORDS // (10 if given.quick else 1))
        with served(folder) as server:
            progress("page: views")
            figures = views(server, 20 if given.quick else 50)
            progress("page: open pages")
            figures |= feed(server, 10 if given.quick else 30)
    emit("page", {**figures, "targets": TARGETS})


if __name__ == "__main__":
    main()
