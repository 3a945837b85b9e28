"""Whether the server lives and is ready, for balancers. The answers say nothing else, so they need no token."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from kalito_mcp.errors import KalitoError

if TYPE_CHECKING:
    from kalito_mcp.memory import Memory


def health_routes(memory: "Callable[[], Awaitable[Memory]]", is_ending: Callable[[], bool]) -> list[Route]:
    """`/health/live` answers while the process runs, `/health/ready` while the memory can be read and the server does
    not end."""

    async def live(_request: Request) -> Response:
        return PlainTextResponse("live\n")

    async def ready(_request: Request) -> Response:
        try:
            if is_ending():
                return PlainTextResponse("ending\n", 503)
            await (await memory()).conversations.recent(limit=1)
        except KalitoError:
            return PlainTextResponse("not ready\n", 503)
        return PlainTextResponse("ready\n")

    return [Route("/health/live", live), Route("/health/ready", ready)]
