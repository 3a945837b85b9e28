"""The host behind a request that a bridge on another machine passed on.

Over stdio, the environment and the folder of the host say in which session and project it works. Over HTTP, a bridge
says it with each request, in `_meta`: `kalito/session` and `kalito/project` are the defaults of a call without its own.
They give no right that the arguments of the call would not give. `kalito/once` is the key of a call that may be sent
again, and `kalito/report` is the report of a hook on that machine.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError

from kalito_mcp.runtime.call_keys import once

_LONGEST: Final = 1_000
_HOOK_TOOL: Final = "hook_event"


@dataclass(frozen=True, slots=True)
class HostPlace:
    """The session and the project of the host that a request comes from."""

    session: str | None = None
    project: str | None = None


_NOWHERE: Final = HostPlace()
_PLACE: Final = ContextVar("host_place", default=_NOWHERE)


def host_place() -> HostPlace:
    """Where the host of the request works that is being answered."""
    return _PLACE.get()


async def with_caller(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """The SDK's middleware: remember for the length of a request what it says of its host."""
    meta: Mapping[str, Any] = ctx.meta or {}
    session, project = _text(meta, "kalito/session"), _text(meta, "kalito/project")
    if session is None and project is None:
        return await call_next(ctx)
    before = _PLACE.set(HostPlace(session, project))
    try:
        return await call_next(ctx)
    finally:
        _PLACE.reset(before)


def key_of(context: "Context[None, Any] | None") -> str | None:
    """The key of a call that may be sent again."""
    return _text(_meta(context), "kalito/once")


def taken_once(key: str | None) -> AbstractContextManager[None]:
    """During the block, the first write is made only if no earlier call had this key."""
    return nullcontext() if key is None else once(key)


def reported(context: "Context[None, Any] | None", tool: str) -> tuple[Mapping[str, Any], bool] | None:
    """The report of a hook on the bridge's machine, and whether it came late, with no hook waiting; None for other
    calls."""
    report = _meta(context).get("kalito/report") if tool == _HOOK_TOOL else None
    if report is None:
        return None
    if not isinstance(report, dict):
        raise ToolError("invalid_input: kalito/report must be an object")
    return report, _meta(context).get("kalito/late") is True


def _meta(context: "Context[None, Any] | None") -> Mapping[str, Any]:
    return {} if context is None else (context.request_context.meta or {})


def _text(meta: Mapping[str, Any], name: str) -> str | None:
    value = meta.get(name)
    return value if isinstance(value, str) and 0 < len(value) <= _LONGEST else None
