"""Whether the server ends, and which calls it still has to finish."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import anyio
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

CALLS_S: Final = 25.0
"""How long running calls may take to finish. Service managers kill after 30 to 90 s."""
_log: Final = logging.getLogger("kalito.server")


class Draining:
    """Whether the server is about to end, and how many calls still run. Subscriptions do not count as calls."""

    def __init__(self) -> None:
        self._has_begun = False
        self._running = 0
        self._none_runs = anyio.Event()

    def begin(self) -> None:
        """From now on the server ends."""
        self._has_begun = True

    def has_begun(self) -> bool:
        """Whether the server ends, so that nobody should begin anything here."""
        return self._has_begun

    @contextmanager
    def call(self) -> Iterator[None]:
        """Count a call as running during the block."""
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            if not self._running:
                self._none_runs.set()

    async def count_calls(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """The SDK's middleware that knows which calls run."""
        with self.call():
            return await call_next(ctx)

    async def calls_ended(self) -> None:
        """Wait until no call runs, but not forever."""
        with anyio.move_on_after(CALLS_S) as limit:
            while self._running:
                self._none_runs = anyio.Event()
                await self._none_runs.wait()
        if limit.cancelled_caught:
            _log.warning("%d calls did not end within %g s and were given up", self._running, CALLS_S)
