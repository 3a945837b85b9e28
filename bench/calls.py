"""What calls over stdio cost the server: processor time of all its threads, on a memory of real conversations.

The turns of LoCoMo, without those of one conversation, are imported over stdio in batches of 1,000, and what they owe
is done before a call is measured. For each size above that, turns of the other data set and made ones are added around
them (see `bench.growth`), and a server is started again. The conversation held back is what is then recorded.

Each figure is that of a row of calls, with what they leave to the background: from the first one until the server has
been idle for a while, less what an idle server takes in that time. `record_apart` are messages 100 ms apart, as a
conversation brings them. `import_a_second` is of wall-clock time, until the last batch is acknowledged.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

import anyio

from bench.conversation import as_message
from bench.growth import Around, Growing
from bench.recall import bench_data_options, find_bench_data
from bench.report import emit, latency, progress, rss_mb
from bench.wire import WireServer, clean_environment, memory_command
from kalito_mcp.domain.time import from_iso
from kalito_mcp.wiring import open_memory

TARGETS: Final = {
    "search_cpu_ms": (2.5, 4.0, 7.0),
    "context_cpu_ms": 0.5,
    "context_with_query_cpu_ms": 5.0,
    "record_cpu_ms": 1.2,
    "import_a_second": 20_000,
}
_SET: Final = "locomo-dev"
_SIZES: Final = (0, 100_000)
_QUICK_SIZES: Final = (0, 10_000)
_QUESTIONS, _QUICK_QUESTIONS = 200, 40
_BATCH: Final = 1_000
_APART_S: Final = 0.1
_IDLE_S: Final = 0.5
_STEP_MS: Final = 60_000

Ask = Callable[[str], object]


def cpu_ms(process_id: int) -> float:
    """Processor time of all threads of a process so far, in Linux's way."""
    return 1000 * time.clock_gettime(((~process_id) << 3) | 2)


def costs(server: WireServer, ask: Ask, questions: Sequence[str], *, apart_s: float = 0.0) -> dict[str, float]:
    """The processor time of one call for each of the questions, and their latencies."""
    process = server.process_id
    for question in questions[:5]:
        ask(question)
    settle(server)
    before = cpu_ms(process)
    time.sleep(_IDLE_S)
    idle = cpu_ms(process) - before
    taken: list[float] = []
    started = cpu_ms(process)
    for question in questions:
        began = time.perf_counter()
        ask(question)
        taken.append(time.perf_counter() - began)
        if apart_s:
            time.sleep(apart_s)
    settle(server)
    return {"cpu_ms": (cpu_ms(process) - started - idle) / len(questions), **latency(taken)}


def settle(server: WireServer) -> None:
    """Wait until the server does next to nothing."""
    process = server.process_id
    while True:
        before = cpu_ms(process)
        time.sleep(_IDLE_S)
        if cpu_ms(process) - before < 1000 * _IDLE_S / 20:
            return


def of_calls(server: WireServer, questions: Sequence[str], texts: Iterator[str]) -> dict[str, Any]:
    """The figures of each kind of call."""

    def say(text: str) -> object:
        messages = [{"role": "user", "text": text}]
        return server.call("record_messages", {"session_id": "live", "messages": messages})

    count = len(questions)
    say("A first message, so that there is a session.")
    return {
        "ping": costs(server, lambda _: server.request("ping"), questions),
        "list_tasks": costs(server, lambda _: server.call("list_tasks", {}), questions),
        "search": costs(server, lambda asked: server.call("search_memory", {"query": asked}), questions),
        "context": costs(server, lambda _: server.call("build_context", {"session_id": "live"}), questions),
        "context_with_query": costs(
            server, lambda asked: server.call("build_context", {"session_id": "live", "query": asked}), questions
        ),
        "record": costs(server, say, list(islice(texts, count))),
        "record_apart": costs(server, say, list(islice(texts, count // 4)), apart_s=_APART_S),
        "rss_mb": rss_mb(server.process_id),
    }


def imported(server: WireServer, conversations: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Record every turn, in batches; what that takes until it is acknowledged, and with what is owed."""
    batches: list[dict[str, Any]] = []
    for one in conversations:
        speakers: dict[str, str] = {}
        messages = [as_message(turn, place, speakers) for place, turn in enumerate(one["turns"])]
        batches += [
            {"session_id": one["id"], "messages": messages[first : first + _BATCH]}
            for first in range(0, len(messages), _BATCH)
        ]
    count = sum(len(batch["messages"]) for batch in batches)
    started, used = time.perf_counter(), cpu_ms(server.process_id)
    for batch in batches:
        server.call("record_messages", batch)
    took, acknowledged = time.perf_counter() - started, cpu_ms(server.process_id)
    settle(server)
    return {
        "messages": count,
        "import_a_second": count / took,
        "cpu_ms_to_acknowledge": (acknowledged - used) / count,
        "cpu_ms_owed": (cpu_ms(server.process_id) - acknowledged) / count,
    }


async def add(growing: Growing, count: int, *, started_at: int) -> None:
    """Add messages, half of them older than the conversations, and do what they owe."""
    await growing.add_around(count // 2, started_at=started_at - count * _STEP_MS)
    await growing.add_around(count - count // 2, started_at=started_at)
    async with open_memory(growing.database) as memory:
        await memory.settled()


def main() -> int:
    """Run the benchmark."""
    parser = bench_data_options(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", help=f"messages (default {_SIZES}, quick {_QUICK_SIZES})")
    given = parser.parse_args()
    bench_data = find_bench_data(parser, given.bench_data)
    if bench_data is None:
        return 0
    sets = {name: bench_data.load(name, None)["conversations"] for name in bench_data.names(())}
    *conversations, live = sets.pop(_SET)
    questions = [one["text"] for conversation in conversations for one in conversation["questions"]]
    count = _QUICK_QUESTIONS if given.quick else _QUESTIONS
    asked = questions[:: len(questions) // count][:count]
    around = Around([one for others in sets.values() for one in others])
    texts = (turn["text"] for turn in live["turns"])
    newest = max(from_iso(turn["ts"]) for one in conversations for turn in one["turns"] if turn.get("ts"))
    figures: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        growing = Growing(folder, around)
        environment = {**clean_environment(folder), "KALITO_PROJECT": "personal"}
        command = memory_command(growing.database)
        with WireServer(command, environment) as server:
            server.call("list_tasks", {})
            emptied = {"idle_rss_mb": rss_mb(server.process_id), **imported(server, conversations)}
        total = int(emptied["messages"] or 0)
        for size in given.sizes or (_QUICK_SIZES if given.quick else _SIZES):
            if size > total:
                anyio.run(partial(add, growing, size - total, started_at=newest + _STEP_MS))
                total = size
            with WireServer(command, environment) as server:
                figures.append({"messages": total, **of_calls(server, asked, texts)})
            progress(f"calls: {figures[-1]}")
    emit("calls", {"imported": emptied, "sizes": figures, "targets": TARGETS})
    return 0


if __name__ == "__main__":
    sys.exit(main())
