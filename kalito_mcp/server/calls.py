"""How many calls of a host run at once over stdio. The others wait, as the lines that they came in.

A host that sends thousands of calls and does not read the answers would otherwise make the server hold all answers. A
call runs until its answer is in the pipe. Cancellations, answers and notifications from the host never wait behind
calls. Nor does a ping, unless as many pings wait to be read. A host may write all its calls before it reads: up to 64
MiB of lines wait here, and only then is nothing more read.
"""

from collections import Counter, deque
from typing import Final

import anyio
from mcp.shared.dispatcher import coerce_request_id
from mcp.types import JSONRPCRequest, RequestId

_MOST_RUNNING: Final = 64
_MOST_WITH_PINGS: Final = 2 * _MOST_RUNNING
_MOST_WAITING_BYTES: Final = 64 * 1024 * 1024


class Calls:
    """The requests of one host that run or wait. Subscriptions do not count: they end with the connection."""

    def __init__(self) -> None:
        self._running: Counter[RequestId] = Counter()
        self._waiting: deque[tuple[RequestId, bytes]] = deque()
        self._waiting_bytes = 0
        self._changed = anyio.Event()

    def begin(self, request: JSONRPCRequest) -> bool:
        """Count the request as running. False, and it is not counted, if it has to wait."""
        if request.method == "subscriptions/listen":
            return True
        if request.method == "ping":
            may_run = self._running.total() < _MOST_WITH_PINGS
        else:
            may_run = not self._waiting and self._running.total() < _MOST_RUNNING
        if may_run:
            self._running[coerce_request_id(request.id)] += 1
        return may_run

    async def keep(self, request: JSONRPCRequest, line: bytes) -> None:
        """Let the request wait for its turn. Returns as soon as there is room for its line."""
        while self._waiting and self._waiting_bytes + len(line) > _MOST_WAITING_BYTES:
            await self._changed.wait()
        self._waiting.append((request.id, line))
        self._waiting_bytes += len(line)
        self._change()

    async def next_line(self) -> bytes:
        """The line of the request that has waited longest, as soon as it may run. It is counted as running."""
        while not self._waiting or self._running.total() >= _MOST_RUNNING:
            await self._changed.wait()
        request_id, line = self._waiting[0]
        self._drop(0)
        self._running[coerce_request_id(request_id)] += 1
        return line

    def cancel(self, request_id: RequestId) -> bool:
        """Forget a request that the host cancels: it is never answered. Whether it was still waiting."""
        cancelled = coerce_request_id(request_id)
        for place, (waiting_id, _) in enumerate(self._waiting):
            if coerce_request_id(waiting_id) == cancelled:
                self._drop(place)
                return True
        self.end(request_id)
        return False

    def end(self, request_id: RequestId) -> None:
        """Forget a request that runs no longer, if there is one with this id."""
        self._running -= Counter((coerce_request_id(request_id),))
        self._change()

    async def wait_until_answered(self, grace_s: float) -> None:
        """Wait until no request runs or waits, or until for `grace_s` seconds none was answered or started."""
        while self._running or self._waiting:
            with anyio.move_on_after(grace_s) as grace:
                await self._changed.wait()
            if grace.cancelled_caught:
                return

    def waiting_ids(self) -> list[RequestId]:
        """The ids of the requests that wait, the oldest first."""
        return [request_id for request_id, _ in self._waiting]

    def _drop(self, place: int) -> None:
        _, line = self._waiting[place]
        del self._waiting[place]
        self._waiting_bytes -= len(line)
        self._change()

    def _change(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
