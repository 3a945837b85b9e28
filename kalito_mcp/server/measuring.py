"""Measures the calls of tools, over every transport."""

import time
from collections.abc import Container
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.types import CallToolResult

from kalito_mcp.web.metrics import OTHER, Metrics


class Measuring:
    """The SDK's middleware that counts each call of a tool, and how long it took. A tool that is not `known` counts as
    `other`, because its name is a word of the caller."""

    def __init__(self, metrics: Metrics, known: Container[str]) -> None:
        self._metrics = metrics
        self._known = known

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """As the tool's."""
        if ctx.method != "tools/call":
            return await call_next(ctx)
        named = (ctx.params or {}).get("name")
        tool = named if isinstance(named, str) and named in self._known else OTHER
        outcome, begun_s = "failed", time.perf_counter()
        try:
            result = await call_next(ctx)
            outcome = "refused" if _is_error(result) else "done"
            return result
        finally:
            self._metrics.tool_calls.add(tool, outcome)
            self._metrics.tool_seconds.add(time.perf_counter() - begun_s, tool)


def _is_error(result: HandlerResult) -> bool:
    if isinstance(result, CallToolResult):
        return bool(result.is_error)
    return isinstance(result, dict) and result.get("isError") is True
