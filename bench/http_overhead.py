"""What a call costs a client over HTTP: this server, which asks for a token, next to an echo tool on a plain server of
the SDK, which asks for nothing.

Both servers run at once and take turns, on kept connections, in both eras of the protocol. `ping` (2025 only) is
answered by the SDK alone, so it shows what the guard in front of it costs; `list_tasks` reads the database, `context`
comes from the cache. `over_echo_ms` is the median of a call less that of the echo.
"""

import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import anyio

from bench.over_http import STATELESS, HttpClient, Served, served, served_echo
from bench.report import emit, latency, options, progress, rss_mb
from bench.round_trip import fill
from bench.wire import PROTOCOL

TARGETS: Final = {"over_echo_ms": 1.5}
_WARM_UP: Final = 20
_TEXT: Final = "what did we say about the ferry"


def timed(ours: Served, echo: Served, rounds: int) -> dict[str, Any]:
    """The figures of each kind of call, in turns."""
    figures: dict[str, Any] = {}
    for protocol in (PROTOCOL, STATELESS):
        mine, theirs = HttpClient(ours, protocol=protocol), HttpClient(echo, protocol=protocol)
        calls: dict[str, Callable[[], object]] = {
            "echo": lambda client=theirs: client.request("tools/call", _call("echo", {"text": _TEXT})),
            "list_tasks": lambda client=mine: client.call("list_tasks", {}),
            "context": lambda client=mine: client.call("build_context", {"session_id": "s"}),
            "search": lambda client=mine: client.call("search_memory", {"query": _TEXT}),
        }
        if protocol == PROTOCOL:
            calls["ping_of_echo"] = lambda client=theirs: client.request("ping", {})
            calls["ping"] = lambda client=mine: client.request("ping", {})
        took: dict[str, list[float]] = {name: [] for name in calls}
        for place in range(-_WARM_UP, rounds):
            for name, call in calls.items():
                started = time.perf_counter()
                call()
                if place >= 0:
                    took[name].append(time.perf_counter() - started)
        found = {name: latency(times) for name, times in took.items()}
        plain = found["echo"]["p50_ms"]
        figures[protocol] = {**found, "over_echo_ms": {name: of["p50_ms"] - plain for name, of in found.items()}}
    return figures


def _call(tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": tool, "arguments": arguments}


def main() -> None:
    """Run the benchmark."""
    parser = options(__doc__)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        anyio.run(fill, folder / "memory.db")
        progress("http_overhead: in turns with the plain server")
        with served(folder) as ours, served_echo(folder) as echo:
            figures = timed(ours, echo, 100 if given.quick else 500)
            rss = {"kalito": rss_mb(ours.process_id), "echo": rss_mb(echo.process_id)}
    emit("http_overhead", {**figures, "rss_mb": rss, "targets": TARGETS})


if __name__ == "__main__":
    main()
