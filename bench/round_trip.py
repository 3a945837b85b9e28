"""What a call costs a host over stdio: our tools beside one that gives its text back, on a plain server of the SDK.

Both servers run at once and take turns, with the SDK's client and with a raw pipe. `echo_same_size` echoes as many
characters as our context has. `context_after_write` builds each context right after a message was recorded. Cold
start is from the spawn to the first answer to tools/list, raw, by turns.
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from bench.corpus import Corpus
from bench.report import ROOT, emit, latency, options, progress, rss_mb
from bench.wire import WireServer, clean_environment, echo_command, memory_command
from kalito_mcp.wiring import open_memory

TARGETS: Final = {"context_ratio": 1.5, "cold_start_ratio": 1.2}
_SESSION: Final = "s"
_MESSAGES: Final = 400
_QUERY_KINDS: Final = ("rare", "middling", "middling", "common", "common")
_WARM_UP: Final = 5

Call = Callable[[str, str, dict[str, Any]], Awaitable[Any]]


async def fill(database: Path) -> int:
    """Record and summarise a session; how many characters its context has."""
    async with open_memory(database) as memory:
        await memory.record_messages(_SESSION, Corpus().messages(_MESSAGES))
        await memory.settled()
        return len((await memory.build_context(_SESSION)).text)


async def timed(call: Call, rounds: int, context_chars: int) -> dict[str, Any]:
    """Each kind of call in turn, `rounds` times. `call` takes the server, the tool and its arguments."""
    corpus = Corpus(seed=3)
    times: dict[str, list[float]] = {}
    for place in range(-_WARM_UP, rounds):
        message = {"role": "user", "text": corpus.text()}
        query = corpus.query(_QUERY_KINDS)
        turns: list[tuple[str, str, str, dict[str, Any]]] = [
            ("echo", "echo", "echo", {"text": message["text"]}),
            ("build_context", "kalito", "build_context", {"session_id": _SESSION}),
            ("echo_same_size", "echo", "echo", {"text": "x" * context_chars}),
            ("search_memory", "kalito", "search_memory", {"query": query}),
            ("record_messages", "kalito", "record_messages", {"session_id": _SESSION, "messages": [message]}),
            ("context_after_write", "kalito", "build_context", {"session_id": _SESSION}),
        ]
        for name, server, tool, arguments in turns:
            started = time.perf_counter()
            await call(server, tool, arguments)
            if place >= 0:
                times.setdefault(name, []).append(time.perf_counter() - started)
    figures: dict[str, Any] = {name: latency(of_name) for name, of_name in times.items()}
    echo_ms = figures["echo"]["p50_ms"]
    ratios = {name: figures[name]["p50_ms"] / echo_ms for name in figures if name != "echo"}
    return {**figures, "ratio_to_echo": ratios}


async def with_sdk_client(database: Path, environment: Mapping[str, str], rounds: int, chars: int) -> dict[str, Any]:
    """The figures as a host sees them that uses the SDK's client."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        ours, theirs = (
            stdio_client(
                StdioServerParameters(command=sys.executable, args=command[1:], env=dict(environment), cwd=ROOT),
                errlog=nowhere,
            )
            for command in (memory_command(database), echo_command())
        )
        async with Client(ours) as kalito, Client(theirs) as echo:
            clients = {"kalito": kalito, "echo": echo}

            async def call(server: str, tool: str, arguments: dict[str, Any]) -> None:
                result = await clients[server].call_tool(tool, arguments)
                assert not result.is_error, result.content

            return await timed(call, rounds, chars)


def with_raw_pipe(database: Path, environment: Mapping[str, str], rounds: int, chars: int) -> dict[str, Any]:
    """The figures without a client's own cost; with both servers' memory at the end."""
    with (
        WireServer(memory_command(database), environment) as kalito,
        WireServer(echo_command(), environment) as echo,
    ):
        servers = {"kalito": kalito, "echo": echo}

        async def call(server: str, tool: str, arguments: dict[str, Any]) -> None:
            servers[server].call(tool, arguments)

        figures = anyio.run(timed, call, rounds, chars)
        return figures | {"rss_mb": {name: rss_mb(server.process_id) for name, server in servers.items()}}


def cold_starts(database: Path, environment: Mapping[str, str], count: int) -> dict[str, Any]:
    """Seconds from the spawn to the first list of tools, and the memory then; medians of `count` by turns."""
    commands = {"kalito": memory_command(database), "echo": echo_command()}
    took: dict[str, list[float]] = {name: [] for name in commands}
    resident: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(count):
        for name, command in commands.items():
            started = time.perf_counter()
            with WireServer(command, environment) as server:
                server.request("tools/list")
                took[name].append(time.perf_counter() - started)
                resident[name].append(rss_mb(server.process_id) or 0.0)
    medians = {name: statistics.median(times) for name, times in took.items()}
    return {
        "n": count,
        "median_s": medians,
        "fastest_s": {name: min(times) for name, times in took.items()},
        "ratio": medians["kalito"] / medians["echo"],
        "ratio_of_fastest": min(took["kalito"]) / min(took["echo"]),
        "rss_mb": {name: statistics.median(values) for name, values in resident.items()},
    }


def measure(folder: Path, *, rounds: int, starts: int) -> dict[str, Any]:
    """All figures."""
    database = folder / "memory.db"
    environment = clean_environment(folder)
    chars = anyio.run(fill, database)
    progress(f"round_trip: {rounds} rounds with the SDK's client")
    sdk = anyio.run(with_sdk_client, database, environment, rounds, chars)
    progress(f"round_trip: {rounds} rounds over a raw pipe")
    raw = with_raw_pipe(database, environment, rounds, chars)
    progress(f"round_trip: {starts} cold starts of each")
    cold = cold_starts(database, environment, starts)
    return {"context_chars": chars, "sdk_client": sdk, "raw_pipe": raw, "cold_start": cold, "targets": TARGETS}


def main() -> None:
    """Run it."""
    parser = options(__doc__)
    parser.add_argument("--rounds", type=int, help="of six calls each (default 500, quick 100)")
    parser.add_argument("--starts", type=int, help="cold starts of each server (default 11, quick 7)")
    given = parser.parse_args()
    rounds = given.rounds or (100 if given.quick else 500)
    starts = given.starts or (7 if given.quick else 11)
    with tempfile.TemporaryDirectory() as folder:
        emit("round_trip", measure(Path(folder), rounds=rounds, starts=starts))


if __name__ == "__main__":
    main()
