"""Permissions over MCP: one check in front of every message, on every transport.

The guard in front of HTTP leaves the principal in the request. Over stdio there is no request: the program that started
the server may do everything.
"""

from collections.abc import Collection, Mapping
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_REQUEST

from kalito_mcp.domain.access import Permission, Principal, denial
from kalito_mcp.runtime.acting import acting_as
from kalito_mcp.server.tools.table import PERMISSIONS
from kalito_mcp.web.guard import PRINCIPAL_KEY, Denied


def permission_of(method: str, params: Mapping[str, Any] | None) -> Permission:
    """The permission that a message needs: a tool's is in its line of the table, and more if it erases."""
    if method != "tools/call":
        return Permission.READ
    given = params or {}
    needed = PERMISSIONS.get(str(given.get("name")), Permission.WRITE)
    if needed is Permission.READ:
        return needed
    arguments = given.get("arguments")
    # Whatever is not plainly false may be read as true by the tool's parser.
    purges = isinstance(arguments, Mapping) and arguments.get("purge", False) not in (False, None)
    return Permission.ADMIN if purges else needed


def action_of(method: str, params: Mapping[str, Any] | None) -> str:
    """A message's name in the audit log: the tool's name, or else the method."""
    name = (params or {}).get("name")
    return name if method == "tools/call" and isinstance(name, str) else method


def http_denial(tools: Collection[str], principal: Principal, message: Any) -> Denied | None:
    """Why the JSON-RPC message of a request is refused: its principal lacks the permission. `tools` are the names that
    the audit log may have."""
    if not isinstance(message, Mapping):
        return None
    method, params = str(message.get("method")), message.get("params")
    given = params if isinstance(params, Mapping) else None
    needed = permission_of(method, given)
    if principal.may(needed):
        return None
    action = action_of(method, given)
    return Denied(needed, denial(principal, needed), action if action in tools else "tools/call")


def is_write(message: Any) -> bool:
    """Whether the JSON-RPC message of a request may change something."""
    if not isinstance(message, Mapping):
        return False
    params = message.get("params")
    needed = permission_of(str(message.get("method")), params if isinstance(params, Mapping) else None)
    return needed is not Permission.READ


class Gate:
    """The SDK's middleware that lets a message pass on behalf of its principal, if they may send it."""

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Raises MCPError if the principal may not."""
        if ctx.request is None:
            return await call_next(ctx)
        principal = ctx.request.scope.get(PRINCIPAL_KEY)
        if not isinstance(principal, Principal):
            raise MCPError(code=INVALID_REQUEST, message="forbidden: the request has no principal")
        needed = permission_of(ctx.method, ctx.params)
        if not principal.may(needed):
            raise MCPError(code=INVALID_REQUEST, message=f"forbidden: {denial(principal, needed)}")
        with acting_as(principal, action_of(ctx.method, ctx.params)):
            return await call_next(ctx)
