"""Seals the state that a host carries between the rounds of a call, with a key that all workers of a database derive.

The SDK seals the state in which `forget` asks the user. Its own key is one process's: another worker behind the same
balancer, or the same one after a restart, would refuse the answer. Ours is derived from the database's secret, which is
never shown. The server is built before its memory is open, so the key is read when the first such call arrives.
"""

import json
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver import AESGCMRequestStateCodec, InvalidRequestState, RequestStateSecurity
from mcp_types.methods import INPUT_REQUIRED_METHODS

from kalito_mcp.domain.access import Principal
from kalito_mcp.errors import KalitoError
from kalito_mcp.web.guard import PRINCIPAL_KEY

if TYPE_CHECKING:
    from kalito_mcp.memory import Memory

_PURPOSE: Final = "request state"
_ANSWER_WITHIN_S: Final = 600.0


class StateKeys:
    """The SDK's codec of the state, and the middleware that gets its key before a call can need it."""

    def __init__(self, memory: "Callable[[], Awaitable[Memory]]") -> None:
        self._memory = memory
        self._codec: AESGCMRequestStateCodec | None = None
        self.security = RequestStateSecurity(codec=self, ttl=_ANSWER_WITHIN_S, bind_principal=_bound_to)

    def use_own_key(self) -> None:
        """Seal with a key of this process: there is no database through which to share one."""
        self._codec = AESGCMRequestStateCodec([secrets.token_bytes(32)])

    async def before_calls(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Has to come before the SDK's own middleware that opens and seals the state."""
        if self._codec is None and ctx.method in INPUT_REQUIRED_METHODS:
            with suppress(KalitoError):  # the call itself says that the memory cannot be opened
                self._codec = AESGCMRequestStateCodec([await (await self._memory()).access.derived_key(_PURPOSE)])
        return await call_next(ctx)

    def seal(self, payload: bytes) -> str:
        """The payload as text that nobody without the key can read or make."""
        if self._codec is None:
            raise RuntimeError("the memory is not open yet")
        return self._codec.seal(payload)

    def unseal(self, token: str) -> bytes:
        """The payload of a text. Raises InvalidRequestState if no worker of this database made it."""
        if self._codec is None:
            raise InvalidRequestState("no key")
        return self._codec.unseal(token)


def principal_key(principal: Principal) -> str:
    """Equal for all requests of one principal, even after its OAuth client has renewed the token."""
    limits = principal.limits
    who = ["client", principal.client] if principal.client is not None else ["id", principal.id]
    return json.dumps([*who, principal.owner, principal.permission, limits.agent, limits.project])


def _bound_to(ctx: ServerRequestContext[Any, Any]) -> str | None:
    """The principal that has to send the state back. None over stdio: there is only one host."""
    principal = None if ctx.request is None else ctx.request.scope.get(PRINCIPAL_KEY)
    return principal_key(principal) if isinstance(principal, Principal) else None
