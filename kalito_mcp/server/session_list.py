"""resources/list in pages: first what is always there, then the sessions, a hundred at a time.

The first page is the same for everybody, so hosts get it before the server is loaded, and it may be shared. The others
belong to the principal of the request.
"""

from typing import Any, Final
from urllib.parse import quote, unquote

from mcp.server import MCPServer
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, ListResourcesResult, PaginatedRequestParams, Resource

from kalito_mcp.domain.sessions import Session
from kalito_mcp.errors import SessionNotFound
from kalito_mcp.server.addresses import stats_uri
from kalito_mcp.server.memory_handle import MemoryHandle
from kalito_mcp.server.refusals import protocol_errors
from kalito_mcp.server.subscriptions import Subscriptions
from kalito_mcp.text.plurals import plural

PAGE: Final = 100
FIRST_CURSOR: Final = "sessions"
_ONE_PAGE: Final = frozenset({"tools/list", "prompts/list", "resources/templates/list"})
_START_AGAIN: Final = "list again without a cursor"


def register_session_list(server: MCPServer[Any], opened: MemoryHandle, subscriptions: Subscriptions) -> None:
    """Answer resources/list, whatever its cursor."""

    async def listed(context: ServerRequestContext[Any], params: PaginatedRequestParams) -> ListResourcesResult:
        if not params.cursor:
            return ListResourcesResult(resources=await server.list_resources(), next_cursor=FIRST_CURSOR)
        before = _session_before(params.cursor)
        with protocol_errors("resources/list"):
            await subscriptions.notify_of_sessions(context)
            try:
                memory = await opened.memory()
                found = await memory.conversations.begun_before(before, limit=PAGE + 1)
                titles = await memory.conversations.titles(one.id for one in found)
            except SessionNotFound:
                said = f"the session that this page begins after is no longer there; {_START_AGAIN}"
                raise MCPError(code=INVALID_PARAMS, message=said) from None
        shown, has_more = found[:PAGE], len(found) > PAGE
        return ListResourcesResult(
            resources=[_resource(session, titles.get(session.id)) for session in shown],
            next_cursor=f"{FIRST_CURSOR}/{quote(shown[-1].id, safe='')}" if has_more else None,
            cache_scope="private",
            ttl_ms=0,
        )

    core = server._lowlevel_server  # MCPServer has no public way to give pages
    core.add_request_handler("resources/list", PaginatedRequestParams, listed)


async def refuse_cursors(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """The SDK's middleware that refuses a cursor where there is one page: the SDK would begin again with the first. An
    empty cursor counts as missing."""
    if ctx.method in _ONE_PAGE and (ctx.params or {}).get("cursor"):
        raise MCPError(code=INVALID_PARAMS, message=f"{ctx.method} has one page and no cursor; {_START_AGAIN}")
    return await call_next(ctx)


def _session_before(cursor: str) -> str | None:
    """The session that the page begins after. Raises MCPError for what is not our cursor."""
    name, slash, session_id = cursor.partition("/")
    if name != FIRST_CURSOR or bool(slash) != bool(session_id):
        said = f"{cursor[:100]!r} is not a cursor of resources/list; send one that it returned, or {_START_AGAIN}"
        raise MCPError(code=INVALID_PARAMS, message=said)
    return unquote(session_id) or None


def _resource(session: Session, title: str | None) -> Resource:
    messages = session.message_count - session.hidden_count
    return Resource(
        uri=stats_uri(session.id),
        name=f"session {session.id}",
        title=title,
        description=f"{session.state}, {plural(messages, 'message')}; the session in numbers.",
        mime_type="application/json",
    )
