"""How long a purge, a sweep at a start, a finalize and a reindex make others wait, in a large database.

Another process writes a message every 20 ms while this one does each of them. `writer_max_ms` is the longest that one
of its writes took, and `loop_max_ms` how late a timer of 5 ms rang on this process's event loop. `quiet` is the same
while nothing else is done. All are wall times: on a machine that does something else meanwhile they are upper bounds.
"""

import asyncio
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

import anyio

from bench.corpus import START_MS, Corpus
from bench.report import ROOT, emit, options, progress
from kalito_mcp.domain.records import NewMessage, Role
from kalito_mcp.domain.scope import Scope
from kalito_mcp.memory import Memory
from kalito_mcp.ports.conversations import MessageDraft
from kalito_mcp.ports.store import WriteTransaction
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.runtime.crash_points import VARIABLE
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.text.analysis import index_text
from kalito_mcp.wiring import open_memory

TARGETS: Final = {"writer_max_ms": 500.0}
_MESSAGES: Final = 100_000
_QUICK_MESSAGES: Final = 5_000
_BESIDE: Final = "beside"
_BATCH: Final = 1_000
_SESSION: Final = 2_000
_PAUSE_S: Final = 0.02
_TICK_S: Final = 0.005
_QUIET_S: Final = 2.0
_PURGE_UNTIL_KILLED: Final = """
import sys, anyio
from kalito_mcp import open_memory

async def main():
    async with open_memory(sys.argv[1]) as memory:
        await memory.purge(sys.argv[2:])

anyio.run(main)
"""


def write(database: str, pipe: Connection) -> None:
    """Write a message now and then, until the pipe says so. Sends the times of the writes."""
    anyio.run(_write, database, pipe)


async def _write(database: str, pipe: Connection) -> None:
    store = await SqliteStore.open(Path(database))
    pipe.send("ready")
    times: list[float] = []
    while not pipe.poll():
        started = time.perf_counter()
        await store.write(_add)
        times.append(time.perf_counter() - started)
        await anyio.sleep(_PAUSE_S)
    pipe.send(times)
    await store.close()


async def _add(transaction: WriteTransaction) -> None:
    session = await ensure_session(transaction.sessions, Scope(session=_BESIDE), now_ms=START_MS)
    await transaction.conversations.append_messages(session, [_draft("Said beside it.")], now_ms=START_MS)


def _draft(text: str) -> MessageDraft:
    return MessageDraft(
        role=Role.USER,
        text=text,
        name=None,
        created_at=START_MS,
        importance=0.5,
        tokens=len(text) // 4,
        model_id=None,
        token_usage=None,
        client_key=None,
        indexed=index_text(text),
    )


async def _beside(database: Path, deed: Callable[[], Awaitable[object]]) -> dict[str, float]:
    """What others feel of the deed."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=write, args=(str(database), theirs))
    process.start()
    await anyio.to_thread.run_sync(ours.recv)
    lags: list[float] = []

    async def tick() -> None:
        while True:
            started = time.perf_counter()
            await asyncio.sleep(_TICK_S)
            lags.append(time.perf_counter() - started - _TICK_S)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tick)
        started = time.perf_counter()
        await deed()
        took = time.perf_counter() - started
        tasks.cancel_scope.cancel()
    ours.send("stop")
    times = await anyio.to_thread.run_sync(ours.recv)
    await anyio.to_thread.run_sync(process.join)
    return {
        "writer_max_ms": 1e3 * max(times),
        "loop_max_ms": 1e3 * max(lags, default=0.0),
        "took_s": took,
    }


async def _fill(database: Path, messages: int, sentences: int) -> None:
    corpus = Corpus()
    async with open_memory(database) as memory:
        for first in range(0, messages, _BATCH):
            batch = [
                NewMessage(
                    role=(Role.USER, Role.ASSISTANT)[place % 2],
                    text=" ".join(corpus.texts(sentences)),
                    created_at=START_MS + place * 60_000,
                )
                for place in range(first, min(first + _BATCH, messages))
            ]
            await memory.record_messages(f"session-{first // _SESSION}", batch)
        progress(f"waits: {messages} messages are recorded")
        await memory.settled()


async def measure(database: Path, messages: int) -> dict[str, Any]:
    """The figures of a database that is filled."""
    found: dict[str, Any] = {"mb": (await anyio.Path(database).stat()).st_size / 1e6}

    async def note(name: str, deed: Callable[[], Awaitable[object]]) -> None:
        found[name] = await _beside(database, deed)
        progress(f"waits: {name} {found[name]}")

    async def start() -> None:
        async with open_memory(database) as started:
            await started.settled()

    async with open_memory(database) as memory:
        await memory.settled()
        await note("quiet", lambda: anyio.sleep(_QUIET_S))
        await note("purge", lambda: _purge(memory, f"msg_{messages // 2}"))
        await note("next purge", lambda: _purge(memory, f"msg_{messages // 3}"))
    arguments = [sys.executable, "-c", _PURGE_UNTIL_KILLED, str(database), f"msg_{messages // 4}"]
    killed = await anyio.run_process(
        arguments, cwd=ROOT, env={**os.environ, VARIABLE: "purge.erased"}, check=False, stdout=subprocess.DEVNULL
    )
    if not killed.returncode:
        raise RuntimeError("the purge was not cut short")
    await note("start", start)
    async with open_memory(database) as memory:
        await memory.settled()
        session_id = next(one.id for one in await memory.conversations.recent() if one.id != _BESIDE)
        await note("finalize", lambda: memory.finalize_session(session_id))
    store = await SqliteStore.open(database)
    await note("reindex", store.reindex)
    await store.close()
    return found


async def _purge(memory: Memory, record_id: str) -> None:
    report = await memory.purge([record_id])
    if report.remaining:
        raise RuntimeError(f"not reached: {report.remaining}")


async def _run(database: Path | None, messages: int, sentences: int) -> dict[str, Any]:
    if database is not None:
        return await measure(database, messages)
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "memory.db"
        await _fill(made, messages, sentences)
        return await measure(made, messages)


def main() -> None:
    """Run the benchmark."""
    parser = options(__doc__)
    parser.add_argument("--messages", type=int, help=f"default {_MESSAGES}, quick {_QUICK_MESSAGES}")
    parser.add_argument("--texts", type=int, default=1, help="of so many texts each message consists (14: 2.2 KB)")
    parser.add_argument("--database", type=Path, help="a filled database, which is changed; default: a new one")
    given = parser.parse_args()
    messages = given.messages or (_QUICK_MESSAGES if given.quick else _MESSAGES)
    emit("waits", {"messages": messages, **anyio.run(_run, given.database, messages, given.texts)})


if __name__ == "__main__":
    main()
