"""The memory that a server serves, while it is open.

A server answers its host before the memory is open. The first call that needs the memory waits for it. If it cannot be
opened, or not for writing, the next call tries again: locks end, drives are mounted, room is made on a disk.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import anyio
from anyio.abc import TaskGroup, TaskStatus

from kalito_mcp.domain.validation import checked_name
from kalito_mcp.errors import InvalidInput, KalitoError, StorageError
from kalito_mcp.runtime.acting import acting
from kalito_mcp.server.caller import host_place

if TYPE_CHECKING:
    from kalito_mcp.memory import Memory


ALL_PROJECTS: Final = "*"
PAUSE_S: Final = 0.5
"""How long after an attempt to open the memory the next one begins."""
_LONGER_PAUSE_S: Final = 2.0
"""The same while the memory can be read, but not written."""
_MOST_WAIT_S: Final = 1.0
"""How long a call waits to see whether the memory can be written again. Then it reads."""
MemoryOpener = Callable[[], AbstractAsyncContextManager["Memory"]]


class MemoryHandle:
    """Holds the memory for tools, resources and prompts.

    `default_session` is the session id from the host's environment, if any.
    """

    def __init__(self, opener: MemoryOpener, default_session: str | None) -> None:
        self._opener = opener
        self._memory: Memory | None = None
        self._failure: KalitoError | None = None
        self._attempt: anyio.Event | None = None
        """Set when the last attempt to open the memory has ended."""
        self._next_attempt_at = 0.0
        self._tasks: TaskGroup | None = None
        """Where the memory is held open; None while the server does not run."""
        self._done = anyio.Event()
        self._default_session = default_session
        self.is_session_fixed = False
        """Whether a person has named the session, so that hooks do not change it."""
        self.alongside: Callable[..., Awaitable[None]] | None = None
        """A task that runs while this is open. It reports when it has started, and ends when it is cancelled."""

    @property
    def host_session(self) -> str | None:
        """The session of the host that a request comes from, or else of the one that has started this process."""
        return host_place().session or self.default_session

    @property
    def default_session(self) -> str | None:
        """The session of the host that started the server; None for those that call over HTTP."""
        return self._default_session if acting() is None else None

    @default_session.setter
    def default_session(self, session_id: str | None) -> None:
        self._default_session = session_id

    def goes_on_in(self, session_id: str) -> None:
        """Remember which conversation the host that started the server works on now: it has said so by a hook. The
        environment still names the one that the host began with. Nothing changes for those that call over HTTP."""
        if acting() is None and not self.is_session_fixed:
            self._default_session = session_id

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Start to open the memory, and close it when the block ends. Inside another such block, do neither.

        Raises:
            KalitoError: the memory could not be opened, or the block raised the error.
        """
        if self._tasks is not None:
            yield
            return
        self._done = anyio.Event()
        try:
            async with anyio.create_task_group() as self._tasks:
                self._begin_attempt()
                beside = anyio.CancelScope()
                if self.alongside is not None:
                    await self._tasks.start(self._run_in, beside, self.alongside)
                try:
                    yield
                except KalitoError as error:  # out of the task group, which would wrap it
                    self._failure = error
                beside.cancel()
                self._done.set()
        finally:
            self._tasks = self._attempt = None
        if self._failure is not None:
            raise self._failure

    async def memory(self) -> "Memory":
        """Return the memory of the owner on whose behalf this call works, within its limits, as soon as it is open: for
        the project of the host that the call comes from, if it says.

        Raises:
            KalitoError: the memory could not be opened just now. Every call raises it: hosts show the answer of a call
            to the user, but rarely show what a server wrote to stderr.
        """
        opened = await self._opened()
        called, project = acting(), host_place().project
        memory = opened.of_owner(called.principal.owner, called.principal.limits) if called else opened
        return memory if project is None else await memory.in_project(project)

    async def _opened(self) -> "Memory":
        """The memory; after a failure, what another attempt finds."""
        if self._tasks is None or self._attempt is None:
            raise RuntimeError("the memory is open only while the server runs")
        if self._memory is None:
            failed = self._attempt
            if failed.is_set():
                await anyio.sleep_until(self._next_attempt_at)
                if self._attempt is failed:  # no other call was faster
                    self._begin_attempt()
            await self._attempt.wait()
        elif self._memory.is_read_only:
            if anyio.current_time() >= self._next_attempt_at:
                self._begin_attempt()
            with anyio.move_on_after(_MOST_WAIT_S):
                await self._attempt.wait()
        if self._memory is not None:
            return self._memory
        assert self._failure is not None  # noqa: S101 - an attempt leaves one of the two
        raise self._failure

    def _begin_attempt(self) -> None:
        """Try to open the memory, unless an attempt is under way."""
        if self._tasks is not None and (self._attempt is None or self._attempt.is_set()):
            self._attempt = anyio.Event()
            self._tasks.start_soon(self._hold, self._attempt)

    async def _hold(self, attempt: anyio.Event) -> None:
        """Open the memory, and hold it open until the server ends. One that can be read and not written is held until
        then, too: calls may use it. But no second one."""
        try:
            async with self._opener() as memory:
                if self._memory is None or not memory.is_read_only:
                    self._memory, self._failure = memory, None
                    self._end(attempt)
                    await self._done.wait()
        except KalitoError as error:
            self._fail(error)
        except OSError as error:  # a folder that is gone, a drive that has failed
            self._fail(StorageError(f"the memory cannot be opened: {error.strerror}: {error.filename}"))
        finally:
            self._end(attempt)
            if self._done.is_set():
                self._memory = None

    def _fail(self, error: KalitoError) -> None:
        if self._memory is None or self._done.is_set():
            self._failure = error

    def _end(self, attempt: anyio.Event) -> None:
        is_limited = self._memory is not None and self._memory.is_read_only
        self._next_attempt_at = anyio.current_time() + (_LONGER_PAUSE_S if is_limited else PAUSE_S)
        attempt.set()

    async def memory_for(self, project: str | None) -> "Memory":
        """Return the memory for the project that a call names (`*`: all of them), or else for the host's.

        Raises:
            KalitoError: the memory could not be opened, or the project is mistyped, or beyond the caller's limits.
        """
        memory = await self.memory()
        return await memory.in_project(None if project == ALL_PROJECTS else project) if project else memory

    async def memory_asked(self, project: str | None, session_id: str | None = None) -> "Memory":
        """Return the memory for a question: for the project that the call names, or else the host's. A host outside any
        project asks all of it; see `Memory.for_question`.

        Raises:
            KalitoError: see `memory_for`.
        """
        memory = await self.memory_for(project)
        return memory if project else await memory.for_question(session_id)

    async def memory_of(self, session_id: str) -> "Memory":
        """Return the memory for the project of a session, whichever it is; for the host's if the session is new."""
        return await (await self.memory()).in_project_of(session_id)

    def lifespan(self, _server: Any) -> AbstractAsyncContextManager[None]:
        """The SDK's lifespan: one a process, but over SSE one a connection. The transports therefore open the memory
        around it. Only a server without a transport of ours opens it here."""
        return self.open()

    async def _run_in(
        self,
        scope: anyio.CancelScope,
        function: Callable[..., Awaitable[None]],
        *,
        task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        with scope:
            await function(task_status=task_status)

    def session(self, session_id: str | None) -> str:
        """Return the given session id, or else the host's.

        Raises:
            InvalidInput: both are missing, or the id is not a valid name.
        """
        chosen = session_id or self.host_session
        if not chosen:
            raise InvalidInput("session_id is missing; send the one that record_messages returned")
        return checked_name(chosen, "session_id")
