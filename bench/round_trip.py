"""What a call costs a host over stdio: our tools compared with an echo tool on a plain server of the SDK.

Both servers run at once and take turns, with the SDK's client and over a raw pipe. `reading` rounds only read: contexts
come from the cache, and `echo_same_size` returns as many characters as a context has. `writing` rounds record a message
first. So each context is read from the database while the owed work of that message goes on. Cold start is the time
from the spawn to the first answer to tools/list over a raw pipe. The servers take turns.
"""

import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

import anyio
from mcp import Client

from bench.corpus import Corpus
from bench.report import emit, latency, options, progress, rss_mb
from bench.wire import WireServer, clean_environment, echo_command, memory_command, sdk_transport
from kalito_mcp.wiring import open_memory

TARGETS: Final = {"context_ratio": 1.5, "cold_start_ratio": 1.2}
_SESSION: Final = "s"
_MESSAGES: Final = 400
_QUERY_KINDS: Final = ("rare", "middling", "middling", "common", "common")
_WARM_UP: Final = 5

Call = Callable[[str, str, dict[str, Any]], Awaitable[Any]]


async def fill(database: Path) -> int:
    """Record and summarise a session. Returns the length of its context in characters."""
    async with open_memory(database) as memory:
        await memory.record_messages(_SESSION, Corpus().messages(_MESSAGES))
        await memory.settled()
        return len((await memory.build_context(_SESSION)).text)


async def timed(call: Call, rounds: int, context_chars: int) -> dict[str, Any]:
    """Make each kind of call in turn, `rounds` times. `call` gets the server, the tool and its arguments."""
    corpus = Corpus(seed=3)
    reading, writing = _Times(call), _Times(call)
    # The servers run in a folder that may be a project, in which the session was not recorded.
    context = {"session_id": _SESSION, "project": "personal"}
    for place in range(-_WARM_UP, rounds):
        for times in (reading, writing):
            times.is_counting = place >= 0
        text = corpus.text()
        await reading.add("echo", "echo", "echo", {"text": text})
        await reading.add("build_context", "kalito", "build_context", context)
        await reading.add("echo_same_size", "echo", "echo", {"text": "x" * context_chars})
        await reading.add("search_memory", "kalito", "search_memory", {"query": corpus.query(_QUERY_KINDS)})
    for place in range(-_WARM_UP, rounds):
        for times in (reading, writing):
            times.is_counting = place >= 0
        message = {"role": "user", "text": corpus.text()}
        await writing.add("echo", "echo", "echo", {"text": message["text"]})
        await writing.add("record_messages", "kalito", "record_messages", {**context, "messages": [message]})
        await writing.add("build_context", "kalito", "build_context", context)
    return {"reading": reading.figures(), "writing": writing.figures()}


class _Times:
    """Seconds of each kind of call."""

    def __init__(self, call: Call) -> None:
        self.is_counting = True
        self._call = call
        self._times: dict[str, list[float]] = {}

    async def add(self, name: str, server: str, tool: str, arguments: dict[str, Any]) -> None:
        """Make one call."""
        started = time.perf_counter()
        await self._call(server, tool, arguments)
        if self.is_counting:
            self._times.setdefault(name, []).append(time.perf_counter() - started)

    def figures(self) -> dict[str, Any]:
        """The figures by kind, with each median as a multiple of echo's."""
        figures: dict[str, Any] = {name: latency(times) for name, times in self._times.items()}
        echo_ms = figures["echo"]["p50_ms"]
        return figures | {"ratio_to_echo": {name: of["p50_ms"] / echo_ms for name, of in figures.items()}}


async def with_sdk_client(database: Path, environment: Mapping[str, str], rounds: int, chars: int) -> dict[str, Any]:
    """The figures with the SDK's client."""
    with (
        sdk_transport(memory_command(database), environment) as ours,
        sdk_transport(echo_command(), environment) as theirs,
    ):
        async with Client(ours) as kalito, Client(theirs) as echo:
            clients = {"kalito": kalito, "echo": echo}

            async def call(server: str, tool: str, arguments: dict[str, Any]) -> None:
                result = await clients[server].call_tool(tool, arguments)
                assert not result.is_error, result.content

            return await timed(call, rounds, chars)


def with_raw_pipe(database: Path, environment: Mapping[str, str], rounds: int, chars: int) -> dict[str, Any]:
    """The figures over a raw pipe, without the cost of a client, and the memory of both servers at the end."""
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
    """Medians of `count` starts in turns: seconds from the spawn to the first list of tools, and the memory then."""
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
    """Run the benchmark."""
    parser = options(__doc__)
    parser.add_argument("--rounds", type=int, help="of each kind of call (default 500, quick 100)")
    parser.add_argument("--starts", type=int, help="cold starts of each server (default 11, quick 7)")
    given = parser.parse_args()
    rounds = given.rounds or (100 if given.quick else 500)
    starts = given.starts or (7 if given.quick else 11)
    with tempfile.TemporaryDirectory() as folder:
        emit("round_trip", measure(Path(folder), rounds=rounds, starts=starts))


if __name__ == "__main__":
    main()
