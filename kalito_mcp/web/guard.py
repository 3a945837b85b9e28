"""Checks every request before anything else reads it: Host, Origin and the sender's token.

It stands in front of all routes, so that a route cannot be forgotten. Only open paths need no token: they issue one,
reveal nothing, or check who sends it themselves, as the page does by its cookie.
"""

import ipaddress
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from kalito_mcp.access.policy import HttpPolicy
from kalito_mcp.domain.access import Principal
from kalito_mcp.errors import KalitoError
from kalito_mcp.safety.addresses import LOOPBACK_HOSTS
from kalito_mcp.web.limits import RateLimits, too_many
from kalito_mcp.web.problems import retry_after
from kalito_mcp.web.urls import ServerUrls

PRINCIPAL_KEY: Final = "kalito.principal"
"""Where the ASGI scope of a request has its principal."""
NETWORK_KEY: Final = "kalito.network"
"""Where it has what the request comes from, behind all proxies of ours: an IPv4 address or a /64 network of IPv6."""
REFUSED_KEY: Final = "kalito.refused"
"""Where it has what was refused, as the audit log calls it, if that says more than the status."""
METHOD_KEY: Final = "kalito.method"
"""Where it has the method of its JSON-RPC message."""
LONGEST_HEAD_BYTES: Final = 32_768
"""Of a request: its line, and all its headers."""
_HEALTH: Final = frozenset({"/health/live", "/health/ready"})
Authenticate = Callable[[str], Awaitable[Principal | None]]
WhyRefused = Callable[[str], Awaitable[str | None]]
_NEEDED: Final = "send a valid token as `Authorization: Bearer kal_...`"

_log: Final = logging.getLogger("kalito.server")
_UNAVAILABLE: Final = "the memory cannot be read now; the reason is in the server's log"


def is_health(scope: Scope) -> bool:
    """Whether a request asks how the server is, which needs no token."""
    return scope["path"] in _HEALTH


class Guard:
    """Passes on requests that name this server and come from a known principal, which it adds to the scope.

    `authenticate` gets the text of a bearer token. `why_refused` tells the sender why a token that was made here is
    refused. Without `authenticate` every caller is `anyone` and unlimited: that is for programs on this machine.
    `metadata_url` says where clients read how to get a token, by the Host that they called, and `scopes` what they
    should ask for. `is_open` names requests that need no token. `is_write` says whether a request may change something;
    `RequiredPermissions` counts MCP requests.
    """

    def __init__(
        self,
        app: ASGIApp,
        policy: HttpPolicy,
        *,
        authenticate: Authenticate | None,
        why_refused: WhyRefused | None = None,
        anyone: Principal,
        is_open: Callable[[Scope], bool] = is_health,
        metadata_url: Callable[[str], str] | None = None,
        scopes: Sequence[str] = (),
        limits: RateLimits | None = None,
        is_write: Callable[[Scope], bool] = lambda _: False,
    ) -> None:
        self._app = app
        self._authenticate = authenticate
        self._why_refused = why_refused
        self._is_write = is_write
        self._anyone = anyone
        self._is_open = is_open
        self._metadata_url = metadata_url
        self._scopes = " ".join(scopes)
        self._limits = limits or RateLimits(policy)
        # As browsers write it, however the setting does: in lower case, without the scheme's own port.
        public = ServerUrls.of(policy.public_url, port=0).base if policy.public_url else ""
        hosts = (*LOOPBACK_HOSTS, *policy.hosts, urlsplit(public).hostname or "")
        self._hosts = {name.lower() for name in hosts if name}
        self._origins = {*policy.origins, *([public] if public else [])}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        scope[NETWORK_KEY] = self._limits.network(scope)
        refusal = _too_long(scope) or self._wrong_name(scope, headers)
        if refusal is None and not self._is_open(scope):
            token = _token_in(headers.getlist("authorization"))
            try:
                principal = await self._principal(token)
                why = None if principal or not token or not self._why_refused else await self._why_refused(token)
            except KalitoError as error:
                _log.error("no token can be checked: %s", error)
                refusal = _refusal(503, error.code, _UNAVAILABLE)
                refusal.headers.update(retry_after(error))
                await refusal(scope, receive, send)
                return
            if principal is None:
                refusal = _refusal(401, "invalid_token", f"{why}; {_NEEDED}" if why else _NEEDED)
                refusal.headers["www-authenticate"] = self._challenge(headers)
            else:
                scope[PRINCIPAL_KEY] = principal
        if self._authenticate is not None and (refusal is None or refusal.status_code == HTTPStatus.UNAUTHORIZED):
            wait_s = self._wait_s(scope)
            refusal = too_many(wait_s) if wait_s else refusal
        await (refusal or self._app)(scope, receive, send)

    def _wait_s(self, scope: Scope) -> float:
        principal = scope.get(PRINCIPAL_KEY)
        if isinstance(principal, Principal):
            return self._limits.call(principal) or (self._limits.write(principal) if self._is_write(scope) else 0.0)
        return self._limits.open_call(scope) if self._is_open(scope) else self._limits.refused(scope)

    def _wrong_name(self, scope: Scope, headers: Headers) -> JSONResponse | None:
        """The refusal of a request from a web page of another origin, or to a host name that is not ours. Proxies and
        orchestrators ask for the health of a machine by its address."""
        hosts = headers.getlist("host")
        name = _host_name(hosts[0]) if len(hosts) == 1 else ""
        if name not in self._hosts and not (is_health(scope) and _is_address(name)):
            return _refusal(421, "unknown_host", "this server has another name; add it to the setting http.hosts")
        for origin in headers.getlist("origin"):
            if origin not in self._origins and not _is_loopback(origin):
                return _refusal(403, "unknown_origin", "this page may not call; add it to the setting http.origins")
        return None

    def _challenge(self, headers: Headers) -> str:
        """How the client can get a token (RFC 9728, 5.1). A request without a token gets no `error`."""
        parts = ['error="invalid_token"'] if "authorization" in headers else []
        if self._metadata_url is not None:
            parts.append(f'resource_metadata="{self._metadata_url(headers["host"])}"')
            parts += [f'scope="{self._scopes}"'] if self._scopes else []
        return "Bearer" + (f" {', '.join(parts)}" if parts else "")

    async def _principal(self, token: str) -> Principal | None:
        if self._authenticate is None:
            return self._anyone
        return await self._authenticate(token) if token else None


def _token_in(authorization: Sequence[str]) -> str:
    """The bearer token; empty without a token, or with more than one header."""
    scheme, _, token = authorization[0].partition(" ") if len(authorization) == 1 else ("", "", "")
    return token.strip() if scheme.lower() == "bearer" else ""


def _too_long(scope: Scope) -> JSONResponse | None:
    """The refusal of a head that is longer than one that arrives in pieces may be."""
    fields = sum(len(name) + len(value) + len(": \r\n") for name, value in scope["headers"])
    if fields + len(scope["path"]) + len(scope.get("query_string", b"")) <= LONGEST_HEAD_BYTES:
        return None
    return _refusal(431, "head_too_long", f"send at most {LONGEST_HEAD_BYTES:,} bytes before the body")


def _host_name(host: str) -> str:
    """The name in a Host header, without the port. Empty if the port is invalid."""
    try:
        parts = urlsplit(f"//{host}")
        return "" if parts.port == 0 else (parts.hostname or "").lower()
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    """Whether it is the address of a machine: no web page can get that for a name of its own."""
    try:
        return not ipaddress.ip_address(name).is_unspecified
    except ValueError:
        return False


def _is_loopback(origin: str) -> bool:
    scheme, _, host = origin.partition("://")
    return scheme in ("http", "https") and _host_name(host) in LOOPBACK_HOSTS


def _refusal(status: int, error: str, description: str) -> JSONResponse:
    content: dict[str, Any] = {"error": error, "error_description": description}
    return JSONResponse(content, status, {"cache-control": "no-store"})


@dataclass(frozen=True, slots=True)
class Denied:
    """The permission that a message needs and its principal lacks, what to say of it, and what the audit log calls the
    message."""

    needed: str
    said: str
    action: str


class RequiredPermissions:
    """Refuses MCP messages that the principal may not send with status 403, before the SDK answers them in its own way,
    and writes that come too fast with status 429.

    `denial` says of the body of a request why it is refused; None if it is not. `is_write` says whether it may change
    something. `metadata_url` is as for `Guard`.
    """

    def __init__(
        self,
        app: ASGIApp,
        denial: Callable[[Principal, Any], Denied | None],
        *,
        is_write: Callable[[Any], bool] = lambda _: False,
        metadata_url: Callable[[str], str] | None = None,
        limits: RateLimits | None = None,
    ) -> None:
        self._app = app
        self._denial = denial
        self._is_write = is_write
        self._metadata_url = metadata_url
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        principal = scope.get(PRINCIPAL_KEY)
        if scope["type"] != "http" or scope["method"] != "POST" or not isinstance(principal, Principal):
            await self._app(scope, receive, send)
            return
        first = await receive()
        try:
            message = json.loads(first.get("body", b""))
        except (ValueError, RecursionError):
            message = None
        scope[METHOD_KEY] = message.get("method") if isinstance(message, dict) else None
        denied = self._denial(principal, message)
        if denied is not None:
            scope[REFUSED_KEY] = denied.action
            answer = _refusal(403, "insufficient_scope", denied.said)
            challenge = f'Bearer error="insufficient_scope", scope="{denied.needed}"'
            if self._metadata_url is not None:
                challenge += f', resource_metadata="{self._metadata_url(Headers(scope=scope)["host"])}"'
            answer.headers["www-authenticate"] = challenge
            await answer(scope, receive, send)
            return
        wait_s = self._limits.write(principal) if self._limits is not None and self._is_write(message) else 0.0
        if wait_s:
            await too_many(wait_s)(scope, receive, send)
            return
        kept = [first]

        async def again() -> Any:
            return kept.pop() if kept else await receive()

        del first, message  # a subscription would hold them for as long as it lasts
        await self._app(scope, again, send)
