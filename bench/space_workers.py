"""Processes that each open one memory and do what a campaign of spaces asks of them, several calls at a time."""

import multiprocessing
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import Any, Final, Self

import anyio
from anyio import to_thread

from kalito_mcp.config.settings import Settings
from kalito_mcp.domain.records import CreatePinRequest, NewMessage, Reach
from kalito_mcp.domain.records import Role as Sender
from kalito_mcp.domain.scope import NO_LIMITS, Limits
from kalito_mcp.domain.search import SearchRequest
from kalito_mcp.domain.spaces import Role
from kalito_mcp.errors import KalitoError
from kalito_mcp.memory import Memory
from kalito_mcp.wiring import open_memory

CANARY: Final = re.compile(r"[a-z]{5}zq[a-z]{7}")
"""A word of `bench.ledger`. Each text has one that no other text has."""

_TOKENS: Final = 8_000
_A_PAGE: Final = 100
_START_S: Final = 120.0

Seen = frozenset[tuple[str, str | None]]
"""Canaries, each with the space in which it was shown."""


@dataclass(frozen=True, slots=True)
class Call:
    """What somebody does: a verb and its arguments, within limits and in a project."""

    number: int
    verb: str
    owner: str
    arguments: tuple[Any, ...] = ()
    limits: Limits = NO_LIMITS
    project: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a call: the name of an error with its words, or what was found."""

    number: int
    found: Any = None
    error: str | None = None
    words: str = ""


class Workers:
    """The processes, for the block. `send` gives a call to the one with the fewest, `wait` returns the next answers."""

    def __init__(self, settings: Settings, count: int) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._connections: list[Connection] = []
        self._processes = []
        for _ in range(count):
            ours, theirs = spawn.Pipe()
            process = spawn.Process(target=serve, args=(theirs, settings), daemon=True)
            process.start()
            theirs.close()
            self._connections.append(ours)
            self._processes.append(process)
        self._open = [0] * count
        self._where: dict[int, int] = {}

    def __enter__(self) -> Self:
        for one in self._connections:
            if not one.poll(_START_S):
                raise RuntimeError("a worker did not start")
            one.recv()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for one, process in zip(self._connections, self._processes, strict=True):
            if kind is None:
                one.send(None)
                process.join(_START_S)
            process.kill()
            process.join()

    def send(self, call: Call) -> None:
        """Let a worker begin with a call."""
        worker = self._open.index(min(self._open))
        self._open[worker] += 1
        self._where[call.number] = worker
        self._connections[worker].send(call)

    def wait(self) -> Iterable[Answer]:
        """The answers that are there, at least one. Raises EOFError if a worker ended."""
        for ready in wait(self._connections):
            assert isinstance(ready, Connection)
            answer: Answer = ready.recv()
            self._open[self._where.pop(answer.number)] -= 1
            yield answer


def serve(connection: Connection, settings: Settings) -> None:
    """Run a worker until it gets None."""
    anyio.run(_serve, connection, settings)


async def _serve(connection: Connection, settings: Settings) -> None:
    async with open_memory(None, settings) as memory, anyio.create_task_group() as tasks:

        async def answer(call: Call) -> None:
            try:
                done = Answer(call.number, await _done(memory, call))
            except KalitoError as error:
                done = Answer(call.number, None, type(error).__name__, str(error))
            except Exception as error:
                done = Answer(call.number, None, f"not ours: {type(error).__name__}", str(error))
            connection.send(done)

        connection.send(None)
        while (call := await to_thread.run_sync(_next, connection)) is not None:
            tasks.start_soon(answer, call)


def _next(connection: Connection) -> Call | None:
    """The next call. None at the end, or if the campaign was stopped."""
    try:
        call: Call | None = connection.recv()
    except (EOFError, OSError):
        return None
    return call


async def _done(memory: Memory, call: Call) -> Any:
    theirs = memory.of_owner(call.owner, call.limits)
    if call.limits.project is None:
        theirs = await theirs.in_project(call.project)
    return await _VERBS[call.verb](memory if call.verb in OF_ADMINISTRATOR else theirs, *call.arguments)


async def _pin(memory: Memory, text: str, reach: Reach) -> str:
    return (await memory.create_pin(CreatePinRequest(None, text, scope=reach))).id


async def _say(memory: Memory, session: str, text: str) -> str:
    [record_id] = (await memory.record_messages(session, [NewMessage(Sender.USER, text)])).message_ids
    return record_id


async def _get(memory: Memory, record_id: str) -> tuple[str, int]:
    record = await memory.records.get(record_id)
    return record.text, record.revision


async def _search(memory: Memory, words: Sequence[str]) -> Seen:
    found: set[tuple[str, str | None]] = set()
    cursor = None
    while True:  # to the last page: words that are alike put others before a record
        page = await memory.search_memory(SearchRequest(" ".join(words), k=_A_PAGE, cursor=cursor))
        found.update((word, hit.space) for hit in page.hits for word in CANARY.findall(repr(hit)))
        cursor = page.next_cursor
        if cursor is None:
            return frozenset(found)


async def _context(memory: Memory, words: Sequence[str]) -> Seen:
    context = await memory.build_context(None, _TOKENS, query=" ".join(words))
    parts = [*context.known, *context.relevant_messages]
    of_parts = {(word, one.space) for one in parts for word in CANARY.findall(repr(one))}
    named = {word for word, _ in of_parts}
    # The text says of words that it found nowhere that they are not found.
    return frozenset(of_parts | {(one, None) for one in CANARY.findall(context.text) if one not in {*words, *named}})


async def _share(memory: Memory, record_id: str, space: str | None) -> tuple[str, str, str, str, str]:
    copy, noted = await memory.spaces.share(record_id, space)
    return copy.id, copy.text, noted.user, noted.source_id, noted.space


async def _update(memory: Memory, record_id: str, text: str, revision: int) -> tuple[str, int]:
    record = await memory.update_memory(record_id, {"text": text}, expected_revision=revision)
    return record.text, record.revision


async def _forget(memory: Memory, record_id: str) -> tuple[str, int]:
    [record] = await memory.forget(record_id)
    return record.text, record.revision


async def _restore(memory: Memory, record_id: str) -> tuple[str, int]:
    [record] = await memory.restore(record_id)
    return record.text, record.revision


async def _revert(memory: Memory, record_id: str, version: int) -> tuple[str, int]:
    record = await memory.records.revert(record_id, version)
    return record.text, record.revision


async def _purge(memory: Memory, record_ids: Sequence[str]) -> frozenset[str]:
    return frozenset((await memory.purge(record_ids)).erased)


async def _mine(memory: Memory) -> frozenset[tuple[str, Role]]:
    return frozenset((one.space.name, one.role) for one in await memory.spaces.mine())


async def _create(memory: Memory, name: str, project: str | None) -> None:
    await memory.spaces.create(name, project)


async def _remove(memory: Memory, name: str) -> int:
    return await memory.spaces.remove(name)


async def _join(memory: Memory, name: str, user: str, role: Role) -> Role:
    return (await memory.spaces.set_member(name, user, role)).role


async def _leave(memory: Memory, name: str, user: str) -> None:
    await memory.spaces.remove_member(name, user)


OF_ADMINISTRATOR: Final = frozenset(("create", "remove", "join", "leave"))
"""Verbs of who runs the server. The others are of an owner."""
_VERBS: Final[dict[str, Callable[..., Awaitable[Any]]]] = {
    "pin": _pin,
    "say": _say,
    "get": _get,
    "search": _search,
    "context": _context,
    "share": _share,
    "update": _update,
    "forget": _forget,
    "restore": _restore,
    "revert": _revert,
    "purge": _purge,
    "mine": _mine,
    "create": _create,
    "remove": _remove,
    "join": _join,
    "leave": _leave,
}
