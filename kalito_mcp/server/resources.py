"""Resources: the list of sessions, and each session's numbers."""

import json
from typing import Any, Final

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from mcp.server.mcpserver.resources import ResourceSecurity
from mcp.types import Completion, PromptReference, ResourceTemplateReference

from kalito_mcp.errors import SessionNotFound
from kalito_mcp.server.opened import OpenedMemory
from kalito_mcp.server.refusals import protocol_errors
from kalito_mcp.server.subscriptions import SESSIONS_URI

STATS_URI: Final = "memory://sessions/{session_id}/stats"
_MAX_SESSIONS: Final = 100
_MAX_COMPLETIONS: Final = 100


def register_resources(server: MCPServer[Any], opened: OpenedMemory) -> None:
    """Add the resources and the completion of session ids."""

    @server.resource(
        SESSIONS_URI,
        name="sessions",
        title="Sessions",
        description="The 100 sessions that were written last: id, agent, state, counts.",
        mime_type="application/json",
    )
    async def sessions() -> str:
        with protocol_errors("resource sessions"):
            found = await (await opened.memory()).list_sessions(limit=_MAX_SESSIONS)
        return _json(
            {"sessions": [session.to_dict() for session in found], "shown": len(found), "limit": _MAX_SESSIONS}
        )

    @server.resource(
        STATS_URI,
        name="session-stats",
        title="Session statistics",
        description="One session in numbers: messages, summaries, pins, oldest and newest message, mean importance.",
        mime_type="application/json",
        # An id is no path: it may begin with a slash or hold two dots, and is only ever a parameter of a query.
        security=ResourceSecurity(exempt_params={"session_id"}),
    )
    async def session_stats(session_id: str) -> str:
        with protocol_errors("resource session-stats"):
            try:
                stats = await (await opened.memory()).session_stats(session_id)
            except SessionNotFound as error:
                raise ResourceNotFoundError(str(error)) from error
        return _json(stats.to_dict())

    @server.completion()  # type: ignore[no-untyped-call, untyped-decorator]
    async def complete_session_id(
        ref: PromptReference | ResourceTemplateReference, argument: Any, _context: Any
    ) -> Completion | None:
        if argument.name != "session_id":
            return None
        with protocol_errors("completion of session_id"):
            found = await (await opened.memory()).list_sessions(prefix=argument.value, limit=_MAX_COMPLETIONS + 1)
        values = [session.id for session in found[:_MAX_COMPLETIONS]]
        return Completion(values=values, has_more=len(found) > _MAX_COMPLETIONS)


def _json(content: dict[str, Any]) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))
