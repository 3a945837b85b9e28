"""Writes refused requests to the audit log: one entry per minute for each principal and kind of refusal, with a count.
One entry per request would let anybody fill the disk."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kalito_mcp.domain.access import Principal
from kalito_mcp.domain.audit import Outcome
from kalito_mcp.errors import KalitoError
from kalito_mcp.web.guard import PRINCIPAL_KEY, REFUSED_KEY

if TYPE_CHECKING:
    from kalito_mcp.memory import Memory

NOBODY: Final = Principal("nobody", "nobody")
"""Who sent no valid token."""
_REFUSALS: Final = {401: "no valid token", 403: "not allowed", 421: "wrong host", 429: "too many requests"}
_EVERY_S: Final = 60
_MOST_KINDS: Final = 1_000


class RefusalLog:
    """Counts the refusals of `app`."""

    def __init__(self, memory: "Callable[[], Awaitable[Memory]]") -> None:
        self._memory = memory
        self._counts: Counter[tuple[str, Principal]] = Counter()

    def around(self, app: ASGIApp) -> ASGIApp:
        """The app, with its refusals counted."""

        async def counted(scope: Scope, receive: Receive, send: Send) -> None:
            async def noted(message: Message) -> None:
                if message["type"] == "http.response.start" and message["status"] in _REFUSALS:
                    action = scope.get(REFUSED_KEY, _REFUSALS[message["status"]])
                    self._count(action, scope.get(PRINCIPAL_KEY))
                await send(message)

            await app(scope, receive, noted)

        return counted

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Write during the block, and at its end, what was counted."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._write_each_minute)
            yield
            tasks.cancel_scope.cancel()
        await self.write()

    async def write(self) -> None:
        """Write what was counted. A memory that cannot be written loses it: the requests were refused all the same."""
        counts, self._counts = self._counts, Counter()
        with suppress(KalitoError):
            for (action, principal), count in counts.items():
                memory = await self._memory()
                await memory.access.log(action, principal=principal, outcome=Outcome.REFUSED, count=count)

    def _count(self, action: str, principal: Principal | None) -> None:
        kind = (action, principal or NOBODY)
        self._counts[kind if kind in self._counts or len(self._counts) < _MOST_KINDS else (action, NOBODY)] += 1

    async def _write_each_minute(self) -> None:
        while True:
            await anyio.sleep(_EVERY_S)
            await self.write()
