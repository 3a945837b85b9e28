"""Serves the table below /api, and nothing else: finds the endpoint, checks the permission, reads the request, acts on
the principal's behalf, and answers.
"""

from collections.abc import Awaitable, Callable, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from kalito_mcp.domain.access import Permission, Principal, denial
from kalito_mcp.errors import InvalidInput
from kalito_mcp.runtime.acting import acting_as
from kalito_mcp.web.guard import PRINCIPAL_KEY, REFUSED_KEY
from kalito_mcp.web.metrics import ROUTE_KEY
from kalito_mcp.web.problems import Problem, forbidden, problems
from kalito_mcp.web.rest import requests
from kalito_mcp.web.rest.endpoint import AnyEndpoint, Call, Exporter, InProject, Reply
from kalito_mcp.web.routes import Routes
from kalito_mcp.web.streaming import send_stream

if TYPE_CHECKING:
    from kalito_mcp.memory import Memory

_ALL: Final = "*"
_READABLE: Final = {"cache-control": "private, no-cache", "vary": "authorization"}
"""A browser may keep an answer, and asks every time whether it is still the same."""
_NOT_KEPT: Final = {"cache-control": "no-store"}


class RestApp:
    """An ASGI application. `memory` gives the memory of the owner on whose behalf a task acts."""

    def __init__(
        self, table: Sequence[AnyEndpoint], memory: "Callable[[], Awaitable[Memory]]", exporter: Exporter
    ) -> None:
        self._routes = Routes(table, "/api", "/api/openapi.json")
        self._memory = memory
        self._exporter = exporter

    def may_write(self, scope: Scope) -> bool:
        """Whether a request is for an endpoint that may change something."""
        if not scope["path"].startswith("/api/"):
            return False
        try:
            endpoint, _ = self._routes.find(scope)
        except (Problem, InvalidInput):
            return False
        return endpoint.permission is not Permission.READ and endpoint.method not in ("GET", "HEAD")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            with problems(f"{scope['method']} below /api"):
                endpoint, path = self._routes.find(scope)
                scope[ROUTE_KEY] = f"/api{endpoint.path}"
                principal = _allowed(scope, endpoint)
            with acting_as(principal, endpoint.name), problems(endpoint.name):
                request = Request(scope, receive)
                reply = await self._reply(endpoint, path, principal, request)
                if reply.stream is None:
                    answer = _answer(endpoint, reply, request.headers)
                else:
                    headers = {"content-type": endpoint.media, **_NOT_KEPT}
                    await send_stream(endpoint.name, reply.stream, headers, request, send)
                    return
        except Problem as problem:
            answer = problem.answer()
        await answer(scope, receive, send)

    async def _reply(
        self, endpoint: AnyEndpoint, path: dict[str, str], principal: Principal, request: Request
    ) -> Reply:
        raw, query = await request.body(), request.scope["query_string"]
        parsed = requests.query_of(endpoint.query, query)
        expected = requests.expected_revision_of(endpoint, request.headers)
        body = requests.body_of(endpoint.body, request.headers, raw)
        key = await requests.request_key_of(endpoint, request.headers, repr(path), query, raw)
        project = parsed.project if isinstance(parsed, InProject) else None
        is_placed = project not in (None, _ALL)
        # A caller limited to a project means that project; `*` is refused.
        chosen = principal.limits.project if project is None else project if is_placed else None
        memory = await (await self._memory()).in_project(chosen)
        return await endpoint.handler(
            Call(memory, principal, path, body, parsed, expected, key, self._exporter, is_placed)
        )


def _allowed(scope: Scope, endpoint: AnyEndpoint) -> Principal:
    """The principal of the request. Raises Problem if they may not use the endpoint."""
    principal = scope.get(PRINCIPAL_KEY)
    if not isinstance(principal, Principal):
        raise Problem(401, "invalid_token", "the request has no principal; send a token")
    if not principal.may(endpoint.permission):
        scope[REFUSED_KEY] = endpoint.name
        raise forbidden(endpoint.permission, denial(principal, endpoint.permission))
    return principal


def _answer(endpoint: AnyEndpoint, reply: Reply, headers: Headers) -> Response:
    """The answer, or only that it is still the same."""
    # A line, so that a shell's prompt comes below it.
    content = b"" if reply.content is None else reply.content.model_dump_json(exclude_none=True).encode() + b"\n"
    more = {"location": reply.location} if reply.location is not None else {}
    if reply.revision is not None:
        more["etag"] = f'"{reply.revision}"'
    if endpoint.method != "GET":
        return Response(content, endpoint.status, {**_NOT_KEPT, **more}, endpoint.media)
    etag = more.setdefault("etag", f'W/"{blake2b(content, digest_size=12).hexdigest()}"')
    if requests.has_none_match(headers, etag):
        return Response(b"", 304, {**_READABLE, **more})
    return Response(content, endpoint.status, {**_READABLE, **more}, endpoint.media)
