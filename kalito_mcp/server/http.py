"""MCP over streamable HTTP, and over the older HTTP with server-sent events, behind one guard."""

import asyncio
import os
import socket
from collections.abc import Callable, Sequence
from typing import Final, Literal

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import ASGIApp

from kalito_mcp.access.policy import HttpPolicy, OidcPolicy
from kalito_mcp.access.tokens import PREFIX
from kalito_mcp.domain.access import Permission, Principal
from kalito_mcp.domain.scope import LOCAL_OWNER
from kalito_mcp.errors import ConfigurationError
from kalito_mcp.server.arrival import IDLE_S, TimelyConnection, WholeRequests
from kalito_mcp.server.build import KalitoServer
from kalito_mcp.server.gate import http_denial
from kalito_mcp.web.client_documents import ClientDocuments
from kalito_mcp.web.guard import LOOPBACK, OPEN, Guard, Needs
from kalito_mcp.web.health import health_routes
from kalito_mcp.web.oauth import oauth_routes
from kalito_mcp.web.oauth_metadata import USUAL_SCOPES, resource_metadata_routes
from kalito_mcp.web.oidc import OidcVerifier
from kalito_mcp.web.site import Site

_GRACE_S: Final = 2
"""How long open requests may continue after the process was asked to end: a subscription never ends by itself."""
_MOST_CONNECTIONS: Final = 512
"""Requests beyond are refused with status 503. Many systems give a process 1,024 files at most."""


def check_address(host: str, *, has_login: bool) -> None:
    """Refuse an address that other machines reach while everybody may call.

    Raises:
        ConfigurationError: it is not one of this machine's own addresses, and no token is needed.
    """
    if not has_login and host not in LOOPBACK:
        raise ConfigurationError(
            f"--host {host} would let other machines read and write this memory without a token; leave out "
            f"--without-login, or use one of {', '.join(LOOPBACK)}"
        )


def http_app(
    server: KalitoServer,
    transport: Literal["http", "sse"],
    policy: HttpPolicy,
    *,
    owner: str | None,
    port: int,
    oidc: OidcPolicy | None = None,
    documents: ClientDocuments | None = None,
) -> ASGIApp:
    """All that is served over HTTP on this port: MCP, and what `web` has.

    Every request needs a token, unless `owner` says whose memory everybody may use. With an OpenID provider, tokens of
    people come from there, and else from the sign-in page. `documents` reads how OAuth clients describe themselves.

    Raises:
        ConfigurationError: the public URL or the provider's cannot be one.
    """
    site = Site.of(policy.public_url, port=port, path=f"/{transport}".replace("http", "mcp"))
    # The guard checks the names that the SDK would check, on every route.
    unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    if transport == "http":
        mcp = server.streamable_http_app(transport_security=unchecked)
    else:
        mcp = server.sse_app(transport_security=unchecked)

    provider = OidcVerifier(oidc, sorted(site.resources)) if oidc is not None and oidc.issuer else None

    async def authenticate(token: str) -> Principal | None:
        if provider is not None and not token.startswith(PREFIX):
            return await provider.principal(token)
        return await (await server.opened.memory()).principal_of(token, site.resources)

    login: list[Route] = []
    scopes: Sequence[str] = USUAL_SCOPES
    if oidc is not None and provider is not None:
        scopes = [*oidc.read_scopes[:1], *oidc.write_scopes[:1]] if oidc.scope_claim in ("scope", "scp") else ()
        login = resource_metadata_routes(site, oidc.issuer, scopes)
    elif policy.sign_in:
        login = [*resource_metadata_routes(site, None, scopes), *oauth_routes(server.opened.memory, site, documents)]
    if owner is not None:
        login = []
    app = Starlette(
        routes=[*mcp.routes, *health_routes(server.opened.memory), *login], lifespan=mcp.router.lifespan_context
    )
    return Guard(
        WholeRequests(Needs(app, http_denial)),
        policy,
        authenticate=authenticate if owner is None else None,
        anyone=Principal("anyone", owner or LOCAL_OWNER, Permission.ADMIN),
        open_paths=OPEN | {route.path for route in login},
        metadata_url=site.metadata_url if login else None,
        scopes=scopes,
    )


async def serve_http(
    app_on: Callable[[int], ASGIApp], path: str, *, host: str, port: int, announce: Callable[[str], None]
) -> None:
    """Serve until interrupted. `app_on` makes the application for the port that was taken; port 0 takes a free one.
    `announce` gets the URL of `path` as soon as it can be connected to. What does not arrive in time is closed (see
    `arrival`).

    Raises:
        ConfigurationError: the port is taken.
    """
    with _listen(host, port) as listening:
        config = uvicorn.Config(
            app_on(listening.getsockname()[1]),
            http=TimelyConnection,
            limit_concurrency=_MOST_CONNECTIONS,
            timeout_keep_alive=IDLE_S,
            log_config=None,
            log_level="warning",
            timeout_graceful_shutdown=_GRACE_S,
        )
        shown = f"[{host}]" if ":" in host else host
        url = f"http://{shown}:{listening.getsockname()[1]}{path}"
        # Once the server handles Ctrl-C, which it does before it first waits: earlier, Ctrl-C would end in a traceback.
        asyncio.get_running_loop().call_soon(announce, url)
        await uvicorn.Server(config).serve(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    try:
        bound = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise ConfigurationError(f"cannot listen on {host}, port {port}: {reason}; use another --port") from error
    # asyncio sends small parts of an answer at once only if the socket names its protocol. Otherwise each call on a
    # kept connection waits 40 ms for the host's delayed acknowledgement.
    return socket.socket(bound.family, bound.type, socket.IPPROTO_TCP, fileno=bound.detach())
