"""Four processes serve one memory on PostgreSQL to sixty-four clients: mixed calls for some minutes.

Each owner has four clients, each in another process, which write to one session of the owner and to one each, search,
build contexts, note, pin, edit and forget. One call in ten of those that record is a repetition of an earlier one. A
client thinks for a second on average between two calls. A process does the background work of its calls, with an
embedder that only counts. Then the database is read as a superuser. Expected are 0 of each:

- `errors`: calls that failed, and warnings in the logs.
- `lost`: acknowledged messages and notes that are not there as they were acknowledged.
- `twice`: messages, pins and notes that are there more than once, messages without their place in the order,
  summaries that overlap or leave something out, and texts of records of which more vectors were made than there are.
- `owed`: records without a vector when all processes are done.

`connections` are the most of the serving role at once, looked up each second; `limit` is what the settings allow.
"""

import hashlib
import logging
import multiprocessing
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import anyio
import asyncpg
import numpy as np
from numpy.typing import NDArray

from bench.corpus import Corpus
from bench.processes import Overheard
from bench.report import emit, latency, options, progress
from bench.stores import new_address, server
from bench.team import SERVER_SETTINGS, database_name
from kalito_mcp.config.settings import Settings
from kalito_mcp.domain.records import CreatePinRequest, NewMessage, Role
from kalito_mcp.domain.search import SearchRequest
from kalito_mcp.errors import KalitoError
from kalito_mcp.inference.registry import ModelRegistry
from kalito_mcp.memory import Memory
from kalito_mcp.ports.embedder import Unrelated, VectorPolicy
from kalito_mcp.ports.storage_policy import StoragePolicy
from kalito_mcp.runtime.database_address import DatabaseAddress
from kalito_mcp.wiring import open_memory
from tests.postgres import APP, SUPERUSER, connected

_PROCESSES, _CLIENTS, _OWNERS = 4, 64, 16
_WRITERS_AND_OTHERS: Final = 6
"""Connections of a process beyond those of its readers: writes, what it hears of others, and chores."""

_MIX: Final = {"record": 10, "search": 4, "context": 4, "note": 2, "pin": 1, "edit": 1, "forget": 1}
_AGAIN: Final = 0.1
_BATCH: Final = (1, 4)
_DIMENSION: Final = 64
_SHARED: Final = "shared"
_START_S: Final = 120.0
_END_S: Final = 600.0
"""Until all have done what they owe, on a loaded machine."""
_SELECT_MESSAGES: Final = """
SELECT o.name, s.id, r.client_key, r.key, r.seq, s.message_count
FROM records r JOIN owners o ON o.key = r.owner_key
    JOIN sessions s ON s.owner_key = r.owner_key AND s.key = r.session_key
WHERE r.type = 'message' ORDER BY o.name, s.id, r.seq
"""
_SELECT_OTHERS: Final = """
SELECT o.name, r.id, r.type, coalesce(r.session_key, 0) AS session, r.text, r.deleted_at IS NULL AS is_kept
FROM records r JOIN owners o ON o.key = r.owner_key WHERE r.type IN ('pin', 'thought')
"""
_SELECT_SUMMARIES: Final = """
SELECT r.owner_key, r.session_key, r.level, r.seq, r.end_seq FROM records r WHERE r.type = 'summary'
ORDER BY r.owner_key, r.session_key, r.level, r.seq
"""
_SELECT_TEXTS: Final = "SELECT text FROM records UNION ALL SELECT changes FROM memory_edits"
_SELECT_OWED: Final = "SELECT count(*) FROM vector_debts"
_SELECT_CONNECTIONS: Final = "SELECT count(*) FROM pg_stat_activity WHERE usename = $1"


class Counting:
    """An embedder whose vectors are made of a hash. It keeps which texts it was given."""

    fingerprint = "counting"
    replaces = ()
    unrelated: Unrelated | None = None

    def __init__(self, texts: Counter[str]) -> None:
        self._texts = texts

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> NDArray[np.float32]:
        """A row for each text."""
        if not is_query:
            self._texts.update(texts)
        seeds = (int.from_bytes(hashlib.blake2b(one.encode(), digest_size=8).digest(), "big") for one in texts)
        rows = np.array([np.random.default_rng(seed).standard_normal(_DIMENSION) for seed in seeds], np.float32)
        rows = rows.reshape(len(texts), _DIMENSION)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    async def aclose(self) -> None:
        """Nothing is open."""


@dataclass(slots=True)
class Log:
    """What happened in one process."""

    times: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    errors: list[str] = field(default_factory=list[str])
    messages: dict[tuple[str, str, str], str] = field(default_factory=dict[tuple[str, str, str], str])
    """The id of each acknowledged message, by owner, session and client key."""
    notes: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    """The text of each acknowledged note, by owner and id; "" of one that was forgotten."""
    embedded: Counter[str] = field(default_factory=Counter[str])


class Caller:
    """One client, whose calls one process answers."""

    def __init__(self, memory: Memory, number: int, log: Log, thinking_s: float) -> None:
        self._owner = f"owner-{number % _OWNERS}"
        self._memory = memory.of_owner(self._owner)
        self._number = number
        self._log = log
        self._thinking_s = thinking_s
        self._random = random.Random(number)
        self._corpus = Corpus(seed=number)
        self._words = 0
        self._batches: list[tuple[str, list[NewMessage]]] = []
        self._notes: dict[str, int] = {}
        """The revision of each note that was not forgotten, by id."""

    async def run(self, until: float) -> None:
        """Call until this moment of the event loop."""
        calls = {
            "record": self._record,
            "search": self._search,
            "context": self._context,
            "note": self._note,
            "pin": self._pin,
            "edit": self._edit,
            "forget": self._forget,
        }
        while anyio.current_time() < until:
            [kind] = self._random.choices(list(_MIX), list(_MIX.values()))
            started = time.perf_counter()
            try:
                await calls[kind]()
            except KalitoError as error:
                self._log.errors.append(f"{kind}: {error.code}: {error}")
            self._log.times.setdefault(kind, []).append(time.perf_counter() - started)
            await anyio.sleep(self._random.expovariate(1 / self._thinking_s))

    def _text(self) -> str:
        """A text that nobody else has."""
        self._words += 1
        return f"word{self._number}x{self._words} {self._corpus.text()}"

    async def _record(self) -> None:
        if self._batches and self._random.random() < _AGAIN:
            session, messages = self._random.choice(self._batches)
        else:
            session = self._random.choice((_SHARED, f"own-{self._number}"))
            messages = [
                NewMessage((Role.USER, Role.ASSISTANT)[at % 2], text := self._text(), client_key=text.split()[0])
                for at in range(self._random.randint(*_BATCH))
            ]
            self._batches.append((session, messages))
        recorded = await self._memory.record_messages(session, messages)
        for message, record_id in zip(messages, recorded.message_ids, strict=True):
            known = self._log.messages.setdefault((self._owner, session, message.client_key or ""), record_id)
            if known != record_id:
                self._log.errors.append(f"record: {message.client_key} is {record_id}, and was {known}")

    async def _search(self) -> None:
        await self._memory.search_memory(SearchRequest(self._corpus.query(("middling", "common", "common")), k=10))

    async def _context(self) -> None:
        if self._batches:
            session, _ = self._random.choice(self._batches)
            await self._memory.build_context(session, query=self._corpus.query(("common", "common")))

    async def _note(self) -> None:
        text = self._text()
        [record] = await self._memory.remember("thought", {"text": text}, client_key=text.split()[0])
        self._notes[record.id] = record.revision
        self._log.notes[self._owner, record.id] = text

    async def _pin(self) -> None:
        if self._batches:
            session, _ = self._random.choice(self._batches)
            await self._memory.create_pin(CreatePinRequest(session, text := self._text(), client_key=text.split()[0]))

    async def _edit(self) -> None:
        if self._notes:
            record_id = self._random.choice(sorted(self._notes))
            text = self._text()
            changed = await self._memory.update_memory(
                record_id, {"text": text}, expected_revision=self._notes[record_id]
            )
            self._notes[record_id] = changed.revision
            self._log.notes[self._owner, record_id] = text

    async def _forget(self) -> None:
        if self._notes:
            record_id = self._random.choice(sorted(self._notes))
            await self._memory.forget(record_id, expected_revision=self._notes.pop(record_id))
            self._log.notes[self._owner, record_id] = ""


def work(
    number: int, address: DatabaseAddress, seconds: float, thinking_s: float, start: threading.Barrier, end: Any
) -> Log:
    """Serve a quarter of the clients. All processes begin together, and end when all of them are done."""
    return anyio.run(_work, number, address, seconds, thinking_s, start, end)


async def _work(
    number: int, address: DatabaseAddress, seconds: float, thinking_s: float, start: threading.Barrier, end: Any
) -> Log:
    log = Log()
    for name in ("kalito", "kalito_mcp"):
        logging.getLogger(name).addHandler(Overheard(log.errors))
    embedder = Counting(log.embedded)
    settings = replace(
        Settings(),
        database=replace(address, prefix=address.prefix.with_name(f"worker-{number}")),
        vectors=VectorPolicy(embedder="auto"),
    )
    with patch.object(ModelRegistry, "embedder", lambda *_: embedder):
        async with open_memory(None, settings) as memory:
            await anyio.to_thread.run_sync(start.wait, _START_S)
            until = anyio.current_time() + seconds
            async with anyio.create_task_group() as tasks:
                for client in range(number, _CLIENTS, _PROCESSES):
                    tasks.start_soon(Caller(memory, _shuffled(client), log, thinking_s).run, until)
            await memory.settled()
            await anyio.to_thread.run_sync(end.wait, _END_S)
            await memory.settled()
    return log


def _shuffled(client: int) -> int:
    """The clients of a process are those of different owners, and those of an owner are in different processes."""
    process, place = client % _PROCESSES, client // _PROCESSES
    return process * _OWNERS + place


class _Connections(threading.Thread):
    """Looks each second how many connections there are."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self.over = threading.Event()
        self.most = 0

    def run(self) -> None:
        """Look until it is over."""
        anyio.run(self._look)

    async def _look(self) -> None:
        connection = await asyncpg.connect(self._url)
        while not self.over.is_set():
            self.most = max(self.most, await connection.fetchval(_SELECT_CONNECTIONS, APP))
            await anyio.sleep(1)
        await connection.close()


def campaign(folder: Path, *, seconds: float, thinking_s: float) -> dict[str, Any]:
    """Run them, and look at what is stored."""
    on = server(**SERVER_SETTINGS)
    address = anyio.run(new_address, on, folder / "memory")
    assert address.server is not None
    name = database_name(address.server.url)
    watch = _Connections(on.url(name, SUPERUSER))
    watch.start()
    spawn = multiprocessing.get_context("spawn")
    try:
        with spawn.Manager() as manager, spawn.Pool(_PROCESSES) as pool:
            start, end = manager.Barrier(_PROCESSES), manager.Barrier(_PROCESSES)
            progress(f"workers: {_CLIENTS} clients for {seconds:.0f} s")
            each = partial(work, address=address, seconds=seconds, thinking_s=thinking_s, start=start, end=end)
            logs = list(pool.imap_unordered(each, range(_PROCESSES)))  # the first to fail says why
    finally:
        watch.over.set()
        watch.join()

    async def look() -> dict[str, list[str]]:
        async with connected(name, SUPERUSER, on) as connection:
            return await found(connection, logs)

    violations = anyio.run(look)
    times: dict[str, list[float]] = {}
    for log in logs:
        for kind, of_kind in log.times.items():
            times.setdefault(kind, []).extend(of_kind)
    return {
        "seconds": seconds,
        "calls": {kind: latency(of_kind) for kind, of_kind in times.items()},
        "acknowledged": {
            "messages": sum(len(log.messages) for log in logs),
            "notes": sum(len(log.notes) for log in logs),
        },
        "embedded": sum(log.embedded.total() for log in logs),
        **{kind: len(details) for kind, details in violations.items()},
        "first": {kind: details[:3] for kind, details in violations.items() if details},
        "connections": watch.most,
        "limit": _PROCESSES * (StoragePolicy().readers + _WRITERS_AND_OTHERS),
    }


async def found(connection: asyncpg.Connection, logs: Sequence[Log]) -> dict[str, list[str]]:
    """What is not as it must be, by kind."""
    stored: dict[tuple[str, str, str | None], str] = {}
    lost: list[str] = []
    twice: list[str] = []
    sessions: dict[tuple[str, str], list[int]] = {}
    for owner, session, client_key, key, seq, _ in await connection.fetch(_SELECT_MESSAGES):
        if (owner, session, client_key) in stored:
            twice.append(f"message {client_key} of {owner}")
        stored[owner, session, client_key] = f"msg_{key}"
        sessions.setdefault((owner, session), []).append(seq)
    for log in logs:
        lost += [f"message {key}" for key, record_id in log.messages.items() if stored.get(key) != record_id]
    twice += [f"places in {session}" for session, seqs in sessions.items() if seqs != list(range(1, len(seqs) + 1))]
    others = await connection.fetch(_SELECT_OTHERS)
    kept: Mapping[tuple[str, str], str] = {(one[0], one[1]): one["text"] if one["is_kept"] else "" for one in others}
    for log in logs:
        lost += [f"note {key}" for key, text in log.notes.items() if kept.get(key) != text]
    same = Counter((one[0], one["type"], one["session"], one["text"]) for one in others if one["is_kept"])
    twice += [f"{text} {count} times" for text, count in same.items() if count > 1]
    ranges: dict[tuple[int, int, int], list[tuple[int, int]]] = {}
    for owner, session, level, first, last in await connection.fetch(_SELECT_SUMMARIES):
        ranges.setdefault((owner, session, level), []).append((first, last))
    for place, of_level in ranges.items():
        if of_level[0][0] != 1 or any(after[0] != before[1] + 1 for before, after in pairwise(of_level)):
            twice.append(f"summaries of {place}: {of_level}")
    texts = " ".join(one[0] for one in await connection.fetch(_SELECT_TEXTS))
    embedded = sum((log.embedded for log in logs), Counter[str]())
    twice += [f"vector of {text[:60]!r}" for text, count in embedded.items() if 0 < texts.count(text) < count]
    owed = await connection.fetchval(_SELECT_OWED)
    errors = [error for log in logs for error in log.errors]
    return {"errors": errors, "lost": lost, "twice": twice, "owed": ["a vector"] * owed}


def main() -> int:
    """Run the campaign. The exit code is 1 if anything was not as it must be."""
    parser = options(__doc__)
    parser.add_argument("--minutes", type=float, help="how long (default 10; quick 0.25)")
    parser.add_argument("--thinking", type=float, default=1.0, help="seconds between two calls of a client (default 1)")
    given = parser.parse_args()
    minutes = given.minutes or (0.25 if given.quick else 10)
    with tempfile.TemporaryDirectory() as folder:
        figures = campaign(Path(folder), seconds=60 * minutes, thinking_s=given.thinking)
    emit("workers", figures)
    broken = any(figures[kind] for kind in ("errors", "lost", "twice", "owed"))
    return int(broken or figures["connections"] > figures["limit"])


if __name__ == "__main__":
    sys.exit(main())
