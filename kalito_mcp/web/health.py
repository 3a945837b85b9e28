"""Whether the server lives and is ready, for balancers. They need no token: nothing of a memory is in the answers."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from kalito_mcp.errors import KalitoError

if TYPE_CHECKING:
    from kalito_mcp.memory import Memory


def health_routes(memory: "Callable[[], Awaitable[Memory]]", is_ending: Callable[[], bool]) -> list[Route]:
    """`/health/live` answers while the process runs, and asks no database. `/health/ready` asks it each time: 200 while
    it answers and the server does not end, with the store, its newest migration beside that of this release, and for
    how long work has been owed; else 503, and as `status` the code of the error."""

    async def live(_request: Request) -> Response:
        return PlainTextResponse("live\n")

    async def ready(_request: Request) -> Response:
        if is_ending():
            return JSONResponse({"status": "ending"}, 503)
        try:
            opened = await memory()
            schema = await opened.conversations.schema()
        except KalitoError as error:
            return JSONResponse({"status": error.code}, 503)
        return JSONResponse(
            {
                "status": "ready",
                "store": schema.store,
                "migration": schema.applied,
                "known_migration": schema.known,
                "owed_s": round(opened.conversations.owed_age_s(), 1),
            }
        )

    return [Route("/health/live", live), Route("/health/ready", ready)]
