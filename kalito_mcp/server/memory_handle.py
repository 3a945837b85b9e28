"""The memory that a server serves, while it is open.

A server answers its host before the memory is open: opening goes on beside it, and the first call that needs the
memory waits for it.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol, cast

import anyio

from kalito_mcp.domain.validation import checked_name
from kalito_mcp.errors import InvalidInput, KalitoError

if TYPE_CHECKING:
    from mcp.server.mcpserver import Context

    from kalito_mcp.memory import Memory


class _Serving(Protocol):
    opened: "MemoryHandle"


MemoryOpener = Callable[[], AbstractAsyncContextManager["Memory"]]


class MemoryHandle:
    """Holds the memory for tools, resources and prompts.

    `default_session` is the handle that the host's environment gives, where it gives one.
    """

    def __init__(self, opener: MemoryOpener, default_session: str | None) -> None:
        self._opener = opener
        self._memory: Memory | None = None
        self._failure: KalitoError | None = None
        self._ready: anyio.Event | None = None
        self.default_session = default_session

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Begin to open the memory, and close it when the block ends; inside another such block, do neither.

        Raises:
            KalitoError: it could not be opened, or the block raised it.
        """
        if self._ready is not None:
            yield
            return
        self._ready, done = anyio.Event(), anyio.Event()
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._hold, self._ready, done)
                try:
                    yield
                except KalitoError as error:  # out of the task group, which would wrap it
                    self._failure = error
                done.set()
        finally:
            self._ready = None
        if self._failure is not None:
            raise self._failure

    async def memory(self) -> "Memory":
        """The memory, as soon as it is open.

        Raises:
            KalitoError: why it could not be opened, at every call: a host shows its user the answer of a call, and
            rarely what a server that ended wrote to stderr.
        """
        if self._ready is None:
            raise RuntimeError("the memory is open only while the server runs")
        await self._ready.wait()
        if self._failure is not None:
            raise self._failure
        assert self._memory is not None  # noqa: S101 - set before `ready`, and unset after every call has ended
        return self._memory

    def lifespan(self, _server: Any) -> AbstractAsyncContextManager[None]:
        """The SDK's lifespan: once a process, except over SSE, where it is once a connection. The transports
        therefore open the memory around it, and only a server that is driven without one opens it here."""
        return self.open()

    async def _hold(self, ready: anyio.Event, done: anyio.Event) -> None:
        try:
            async with self._opener() as memory:
                self._memory = memory
                ready.set()
                await done.wait()
        except KalitoError as error:
            self._failure = error
            ready.set()
        finally:
            self._memory = None

    def session(self, session_id: str | None) -> str:
        """The given session, or the host's.

        Raises:
            InvalidInput: neither is there, or it is no name.
        """
        chosen = session_id or self.default_session
        if not chosen:
            raise InvalidInput("session_id is missing; send the one that record_messages returned")
        return checked_name(chosen, "session_id")


def opened_by(context: "Context[None, Any]") -> MemoryHandle:
    """The memory of the server that answers this call, for what is no method of a tool."""
    return cast("_Serving", context.mcp_server).opened
