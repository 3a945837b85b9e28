"""The memory that a server serves, while it is open."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from kalito_mcp.errors import InvalidInput
from kalito_mcp.memory import Memory

MemoryOpener = Callable[[], AbstractAsyncContextManager[Memory]]


class OpenedMemory:
    """Holds the memory for tools, resources and prompts.

    `default_session` is the handle that the host's environment gives, where it gives one.
    """

    def __init__(self, opener: MemoryOpener, default_session: str | None) -> None:
        self._opener = opener
        self._memory: Memory | None = None
        self.default_session = default_session

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Open the memory for the block; inside another such block, leave it as it is."""
        if self._memory is not None:
            yield
            return
        async with self._opener() as memory:
            self._memory = memory
            try:
                yield
            finally:
                self._memory = None

    def lifespan(self, _server: Any) -> AbstractAsyncContextManager[None]:
        """The SDK's lifespan: once a process, except over SSE, where it is once a connection. The transports
        therefore open the memory around it, and only a server that is driven without one opens it here."""
        return self.open()

    @property
    def memory(self) -> Memory:
        """The opened memory."""
        if self._memory is None:
            raise RuntimeError("the memory is open only while the server runs")
        return self._memory

    def session(self, session_id: str | None) -> str:
        """The given session, or the host's.

        Raises:
            InvalidInput: neither is there.
        """
        chosen = session_id or self.default_session
        if not chosen:
            raise InvalidInput("session_id is missing; send the one that record_messages returned")
        return chosen
