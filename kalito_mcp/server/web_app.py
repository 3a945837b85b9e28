"""All that is served over HTTP, put together: MCP, sign-in, REST and the numbers, behind one guard."""

from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from kalito_mcp.access.policy import HttpPolicy, OidcPolicy
from kalito_mcp.access.tokens import PREFIX
from kalito_mcp.domain.access import Permission, Principal
from kalito_mcp.domain.scope import LOCAL_OWNER
from kalito_mcp.server.arrival import WholeRequests
from kalito_mcp.server.build import KalitoServer
from kalito_mcp.server.draining import Draining
from kalito_mcp.server.gate import http_denial, is_write
from kalito_mcp.server.mcp_sessions import CompleteResponses, SessionOwners, direct_route, streamable_http
from kalito_mcp.web.client_documents import ClientDocuments
from kalito_mcp.web.cors import with_cors
from kalito_mcp.web.guard import Authenticate, Guard, RequiredPermissions, WhyRefused, is_health
from kalito_mcp.web.health import health_routes
from kalito_mcp.web.limits import RateLimits
from kalito_mcp.web.metrics import Measured, metrics_routes
from kalito_mcp.web.oauth import oauth_routes
from kalito_mcp.web.oauth_metadata import USUAL_SCOPES, resource_metadata_routes
from kalito_mcp.web.oidc import OidcVerifier
from kalito_mcp.web.page.app import PageApp
from kalito_mcp.web.page.machine import Machine
from kalito_mcp.web.page.table import page_app
from kalito_mcp.web.refusal_log import RefusalLog
from kalito_mcp.web.rest.app import RestApp
from kalito_mcp.web.rest.endpoint import Exporter
from kalito_mcp.web.rest.table import TABLE
from kalito_mcp.web.urls import ServerUrls

_MESSAGES: Final = "/messages/"
"""Where the SDK takes what clients of SSE send."""
_REST: Final = "/api/"


def http_app(
    server: KalitoServer,
    transport: Literal["http", "sse"],
    policy: HttpPolicy,
    port: int,
    *,
    owner: str | None,
    exporter: Exporter,
    oidc: OidcPolicy | None = None,
    documents: ClientDocuments | None = None,
    machine: Machine | None = None,
) -> ASGIApp:
    """All that is served over HTTP on this port.

    Every request needs a token, unless `owner` names the memory that everybody may use. With an OpenID provider,
    people's tokens come from there, otherwise from the sign-in page. `exporter` writes the archives that REST sends.
    `documents` reads how OAuth clients describe themselves. `machine` is what the page shows of this machine.

    Raises:
        ConfigurationError: the public URL or the provider's URL is not valid.
    """
    urls = ServerUrls.of(policy.public_url, port=port, path="/mcp" if transport == "http" else "/sse")
    # The guard checks the names that the SDK would check, on every route.
    unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    mcp = streamable_http(server, unchecked) if transport == "http" else server.sse_app(transport_security=unchecked)
    login = _Login() if owner is not None else _login(server, urls, policy, oidc, documents)
    refusals = RefusalLog(server.opened.memory)
    app = _routed(server, mcp, login, refusals)
    limits = RateLimits(policy)
    metadata_url = urls.metadata_url if login.routes else None
    needs = RequiredPermissions(
        SessionOwners(CompleteResponses(_direct(mcp, app) if transport == "http" else app)),
        partial(http_denial, server.tool_names),
        is_write=is_write,
        metadata_url=metadata_url,
        limits=limits if owner is None else None,  # without login, as often as any program of this machine likes
    )
    rest = RestApp(TABLE, server.opened.memory, exporter)
    anyone = Principal("anyone", owner or LOCAL_OWNER, Permission.ADMIN)
    page = page_app(
        server.opened.memory,
        urls,
        limits,
        anyone=None if owner is None else anyone,
        authenticate=login.authenticate,
        machine=machine,
        exporter=exporter,
    )
    sign_in_paths = {route.path for route in login.routes}
    guard = Guard(
        page.recognising(WholeRequests(_chosen(_counted(rest, server.draining), page, needs, server.draining))),
        policy,
        limits=limits,
        is_write=rest.may_write,
        authenticate=login.authenticate,
        why_refused=login.why_refused,
        anyone=anyone,
        is_open=lambda scope: is_health(scope) or scope["path"] in sign_in_paths or page.has(scope),
        metadata_url=metadata_url,
        scopes=login.scopes,
    )
    return Measured(_without_end_slash(refusals.around(with_cors(guard, policy.origins))), server.metrics)


def _without_end_slash(app: ASGIApp) -> ASGIApp:
    """The same app, for which a path with a slash at its end is the path without, except below /api, where what stands
    there may be a name. Starlette would redirect the request to the scheme and host that arrive here. Behind a proxy
    these are not what the client called."""

    def answer(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] == "http" and scope["path"] != _MESSAGES and not scope["path"].startswith(_REST):
            scope["path"] = scope["path"].rstrip("/") or "/"
        return app(scope, receive, send)

    return answer


def _routed(server: KalitoServer, mcp: Starlette, login: "_Login", refusals: RefusalLog) -> Starlette:
    """What is served besides REST, by path."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[Any]:
        async with server.metrics.watching(), refusals.writing(), mcp.router.lifespan_context(app) as state:
            yield state

    memory = server.opened.memory
    numbers = metrics_routes(server.metrics, memory, server.subscriptions.open_count)
    health = health_routes(memory, server.draining.has_begun)
    app = Starlette(routes=[*mcp.routes, *health, *numbers, *login.routes], lifespan=lifespan)
    app.router.redirect_slashes = False
    return app


def _direct(mcp: Starlette, app: ASGIApp) -> ASGIApp:
    """`app`, with MCP's endpoint called directly, past the router."""
    endpoint = next((route for route in mcp.routes if isinstance(route, Route)), None)
    return app if endpoint is None else direct_route(endpoint.app, endpoint.path, app)


def _counted(app: ASGIApp, draining: Draining) -> ASGIApp:
    """The same app; the server waits for its answers before it ends, as for calls over MCP."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        with draining.call():
            await app(scope, receive, send)

    return answer


def _chosen(rest: ASGIApp, page: PageApp, other: ASGIApp, draining: Draining) -> ASGIApp:
    """Gives `rest` what is below /api, and `page` what is its. Starlette's own mounts match no path with a line break
    in it."""
    counted_page = _counted(page, draining)

    def choose(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        app = other
        if scope["type"] == "http" and scope["path"].startswith(_REST):
            app = rest
        elif page.has(scope):
            app = page if page.is_stream(scope) else counted_page
        return app(scope, receive, send)

    return choose


@dataclass(frozen=True, slots=True)
class _Login:
    """How clients get a token, what they should ask for, and how a token is checked."""

    routes: Sequence[Route] = ()
    scopes: Sequence[str] = ()
    authenticate: Authenticate | None = None
    why_refused: WhyRefused | None = None


def _login(
    server: KalitoServer,
    urls: ServerUrls,
    policy: HttpPolicy,
    oidc: OidcPolicy | None,
    documents: ClientDocuments | None,
) -> _Login:
    memory = server.opened.memory
    provider = OidcVerifier(oidc, sorted(urls.resources)) if oidc is not None and oidc.issuer else None

    async def authenticate(token: str) -> Principal | None:
        if provider is not None and not token.startswith(PREFIX):
            return await provider.principal(token)
        return await (await memory()).access.principal_of(token, urls.resources)

    async def why_refused(token: str) -> str | None:
        return await (await memory()).access.why_refused(token, urls.resources)

    if oidc is not None and provider is not None:
        scopes = (*oidc.read_scopes[:1], *oidc.write_scopes[:1]) if oidc.scope_claim in ("scope", "scp") else ()
        return _Login(resource_metadata_routes(urls, oidc.issuer, scopes), scopes, authenticate, why_refused)
    if policy.sign_in:
        if documents is None and policy.client_documents and policy.public_url:
            documents = ClientDocuments()
        routes = [*resource_metadata_routes(urls, None, USUAL_SCOPES), *oauth_routes(memory, urls, documents)]
        return _Login(routes, USUAL_SCOPES, authenticate, why_refused)
    return _Login(authenticate=authenticate, why_refused=why_refused)
