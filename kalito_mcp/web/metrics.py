"""Numbers of this process for Prometheus: `/metrics`, in its text format 0.0.4.

Only routes, methods and tools of this server are named; any other counts as `other`. So the number of lines is bounded,
and they contain no user text and no ids. The totals are of all owners together.
"""

import os
import sys
import time
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kalito_mcp.domain.scope import NO_LIMITS
from kalito_mcp.web.guard import PRINCIPAL_KEY

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from kalito_mcp.memory import Memory

ROUTE_KEY: Final = "kalito.route"
"""Where an app of ours that is mounted leaves the template of its route; of others Starlette's is taken."""
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER: Final = "other"
_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_LAG_EVERY_S: Final = 0.25
_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
Labels = tuple[str, ...]


class Counter:
    """Counts by labels. Callers keep the labels to few values."""

    def __init__(self, name: str, about: str, *labels: str) -> None:
        self.name = name
        self._about = about
        self._labels = labels
        self._counts: dict[Labels, float] = {} if labels else {(): 0}

    def add(self, *values: str, by: float = 1) -> None:
        """Add to the count of these values."""
        self._counts[values] = self._counts.get(values, 0) + by

    def total(self, wanted: Callable[..., bool]) -> float:
        """The sum over the values that are wanted."""
        return sum(count for values, count in self._counts.items() if wanted(*values))

    def lines(self) -> Iterator[str]:
        """Its lines."""
        yield from _head(self.name, self._about, "counter")
        for values, count in sorted(self._counts.items()):
            yield _line(self.name, zip(self._labels, values, strict=True), count)


class Histogram:
    """Counts durations, in seconds, by labels."""

    def __init__(self, name: str, about: str, *labels: str) -> None:
        self._name = name
        self._about = about
        self._labels = labels
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}

    def add(self, seconds: float, *values: str) -> None:
        """Count one duration."""
        counts = self._counts.setdefault(values, [0] * (len(_SECONDS) + 1))
        counts[bisect_left(_SECONDS, seconds)] += 1
        self._sums[values] = self._sums.get(values, 0.0) + seconds

    def lines(self) -> Iterator[str]:
        """Its lines."""
        yield from _head(self._name, self._about, "histogram")
        for values, counts in sorted(self._counts.items()):
            labels = [*zip(self._labels, values, strict=True)]
            so_far = 0
            for bound, count in zip((*map(str, _SECONDS), "+Inf"), counts, strict=True):
                so_far += count
                yield _line(f"{self._name}_bucket", [*labels, ("le", bound)], so_far)
            yield _line(f"{self._name}_sum", labels, self._sums[values])
            yield _line(f"{self._name}_count", labels, so_far)


class Metrics:
    """What is counted while this process serves."""

    def __init__(self) -> None:
        self.requests = Counter("kalito_http_requests_total", "Requests over HTTP.", "route", "method", "status")
        self.tool_calls = Counter("kalito_tool_calls_total", "Calls of tools over MCP.", "tool", "outcome")
        self.tool_seconds = Histogram("kalito_tool_seconds", "How long calls of tools took.", "tool")
        self.loop_lag = Histogram("kalito_event_loop_lag_seconds", "How late the event loop came to a task.")

    @asynccontextmanager
    async def watching(self) -> "AsyncIterator[None]":
        """Measure during the block how late the event loop is."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch_loop)
            yield
            tasks.cancel_scope.cancel()

    async def _watch_loop(self) -> None:
        while True:
            due_s = anyio.current_time() + _LAG_EVERY_S
            await anyio.sleep_until(due_s)
            self.loop_lag.add(max(0.0, anyio.current_time() - due_s))

    def lines(self, memory: "Memory", subscriptions: int) -> Iterator[str]:
        """The whole page."""
        for one in (self.requests, self.tool_calls, self.tool_seconds, self.loop_lag):
            yield from one.lines()
        refused = self.requests.total
        yield from _value(
            "kalito_rate_limited_total", "Requests that came too fast.", "counter", refused(_is_status("429"))
        )
        yield from _value(
            "kalito_auth_failures_total", "Requests without a valid token.", "counter", refused(_is_status("401"))
        )
        counts = memory.counts
        for name, about, count in (
            ("searches", "Searches.", counts.searches),
            ("search_hits", "What searches found.", counts.hits),
            ("search_silences", "Searches that found no answer.", counts.silences),
            ("contexts", "Contexts that were built.", counts.contexts),
            ("context_tokens", "Tokens of those contexts.", counts.context_tokens),
            ("injections", "Prompts that something was put into.", counts.injections),
            ("injected_tokens", "Tokens that were put into prompts.", counts.injected_tokens),
        ):
            yield from _value(f"kalito_{name}_total", about, "counter", count)
        yield from _value(
            "kalito_owed_age_seconds",
            "How long background work has been owed.",
            "gauge",
            memory.conversations.owed_age_s(),
        )
        yield from _value("kalito_subscriptions", "Open subscriptions.", "gauge", subscriptions)
        yield from _process()


class Measured:
    """Counts the requests that pass, whatever becomes of them."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._requests = metrics.requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = "none"

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = str(message["status"])
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            method = scope["method"] if scope["method"] in _METHODS else OTHER
            self._requests.add(_template(scope), method, status)


def metrics_routes(
    metrics: Metrics, memory: "Callable[[], Awaitable[Memory]]", subscriptions: Callable[[], int]
) -> list[Route]:
    """`/metrics`, for every token that may read and is not limited to an agent or a project."""

    async def show(request: Request) -> Response:
        if request.scope[PRINCIPAL_KEY].limits != NO_LIMITS:
            return PlainTextResponse("the numbers are of all memories; use a token without limits\n", 403)
        lines = metrics.lines(await memory(), subscriptions())
        return PlainTextResponse("".join(f"{line}\n" for line in lines), media_type=_TYPE)

    return [Route("/metrics", show)]


def _template(scope: Scope) -> str:
    found = scope.get(ROUTE_KEY) or getattr(scope.get("route"), "path", None)
    return found if isinstance(found, str) else OTHER


def _is_status(wanted: str) -> Callable[[str, str, str], bool]:
    return lambda _route, _method, status: status == wanted


def _head(name: str, about: str, kind: str) -> Sequence[str]:
    return f"# HELP {name} {about}", f"# TYPE {name} {kind}"


def _value(name: str, about: str, kind: str, value: float) -> Sequence[str]:
    return *_head(name, about, kind), _line(name, (), value)


def _line(name: str, labels: Iterable[tuple[str, str]], value: float) -> str:
    shown = ",".join(f'{label}="{_escaped(one)}"' for label, one in labels)
    number = str(int(value)) if value == int(value) else repr(value)
    return f"{name}{{{shown}}} {number}" if shown else f"{name} {number}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _process() -> Iterator[str]:
    """The usual process metrics of Prometheus. Those that this system does not report are left out."""
    yield from _value(
        "process_cpu_seconds_total", "Processor time of this process.", "counter", round(time.process_time(), 3)
    )
    for name, about, value in (
        ("process_resident_memory_bytes", "Memory of this process.", _resident_bytes()),
        ("process_open_fds", "Open files of this process.", _open_files()),
    ):
        if value is not None:
            yield from _value(name, about, "gauge", value)


def _resident_bytes() -> int | None:
    if sys.platform == "linux":
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return None


def _open_files() -> int | None:
    try:
        return sum(1 for _ in Path("/dev/fd" if sys.platform == "darwin" else "/proc/self/fd").iterdir())
    except OSError:
        return None
