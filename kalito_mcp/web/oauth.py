"""The endpoints of the built-in authorization server: the SDK's handlers, over our provider.

What the handlers leave open is checked here first: a parameter may come once, the resource must be ours, and an answer
that goes back to a client names its issuer (RFC 9207), even when it is an error.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from mcp.server.auth.handlers.authorize import AuthorizationHandler
from mcp.server.auth.handlers.register import RegistrationHandler
from mcp.server.auth.handlers.revoke import RevocationHandler
from mcp.server.auth.handlers.token import TokenHandler
from mcp.server.auth.middleware.client_auth import ClientAuthenticator
from mcp.server.auth.provider import construct_redirect_uri
from mcp.server.auth.settings import ClientRegistrationOptions
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from kalito_mcp.access.redirects import is_on_device
from kalito_mcp.errors import InvalidInput, KalitoError, TooManyAttempts
from kalito_mcp.web.client_documents import ClientDocuments
from kalito_mcp.web.forms import FORM, fields_of
from kalito_mcp.web.oauth_metadata import server_metadata_routes
from kalito_mcp.web.oauth_provider import SIGN_IN_PATH, OAuthProvider
from kalito_mcp.web.sign_in import SignInPage, caller_of
from kalito_mcp.web.sign_in_html import problem_page
from kalito_mcp.web.urls import ServerUrls

if TYPE_CHECKING:
    from kalito_mcp.memory import Memory

_log: Final = logging.getLogger("kalito.web")
_FOUND: Final = 302
_MOST_BYTES: Final = 16_384
"""The answer to an invalid registration says what is wrong with each value."""
_NOT_KEPT: Final = {"cache-control": "no-store"}
_NOT_KNOWN: Final = (
    "The program's request is not valid: its id or its redirect URI is not known here. In the program, remove the "
    "connection to this memory, or what it has stored of signing in, and add it again."
)
_NOT_VALID: Final = "The program's request is not valid, or too many are waiting. Start again in the program."
Endpoint = Callable[[Request], Awaitable[Response]]


def oauth_routes(
    memory: "Callable[[], Awaitable[Memory]]", urls: ServerUrls, documents: ClientDocuments | None
) -> list[Route]:
    """All routes by which a client gets a token. None of them needs one.

    Without `documents`, clients have to register: no description of one is read.
    """
    endpoints = _Endpoints(memory, urls, documents)
    page = SignInPage(memory, urls)
    return [
        *server_metadata_routes(urls, reads_documents=documents is not None),
        Route("/authorize", _guarded(endpoints.authorize), methods=["GET", "POST"]),
        Route("/token", _guarded(endpoints.token), methods=["POST"]),
        Route("/register", _guarded(endpoints.register), methods=["POST"]),
        Route("/revoke", _guarded(endpoints.revoke), methods=["POST"]),
        Route(SIGN_IN_PATH, _guarded(page.show), methods=["GET"]),
        Route(SIGN_IN_PATH, _guarded(page.answer), methods=["POST"]),
    ]


class _Endpoints:
    def __init__(
        self, memory: "Callable[[], Awaitable[Memory]]", urls: ServerUrls, documents: ClientDocuments | None
    ) -> None:
        self._memory = memory
        self._urls = urls
        self._documents = documents

    async def authorize(self, request: Request) -> Response:
        base = self._urls.base_for(request.headers.get("host", ""))
        fields = request.query_params.multi_items() if request.method == "GET" else await fields_of(request)
        given = _once(fields)
        if given is None:
            fault = "a parameter twice" if fields else "no parameters"
            return problem_page(f"The program sent {fault}. Start again in the program.", 400)
        sign_in = (await self._memory()).access.sign_in
        address = caller_of(request)
        client_id = given.get("client_id", "")
        try:
            if self._documents is None:
                client = await sign_in.clients.find(client_id)
            else:
                client = await self._documents.client(sign_in.clients, client_id, address=address)
        except InvalidInput as error:
            return problem_page(f"Access cannot be granted: {error}.", 400)
        except TooManyAttempts as error:
            page = problem_page(f"Access cannot be granted now: {error}.", 429)
            page.headers["retry-after"] = str(error.retry_after_s)
            return page
        provider = OAuthProvider(sign_in, self._urls, base, address=address, client=client)
        return _for_person(await AuthorizationHandler(provider).handle(_again(request, given)), base)

    async def token(self, request: Request) -> Response:
        given = _once(await fields_of(request))
        if given is None:
            return _refused(400, "invalid_request", "send a form, with each parameter once")
        if "resource" in given and not self._urls.is_ours(given["resource"]):
            return _refused(400, "invalid_target", "the resource is another server's")
        provider = await self._provider(request)
        answer: Response = await TokenHandler(provider, ClientAuthenticator(provider)).handle(_again(request, given))
        return answer

    async def register(self, request: Request) -> Response:
        if len(await request.body()) > _MOST_BYTES:
            return _refused(400, "invalid_client_metadata", f"send at most {_MOST_BYTES:,} bytes")
        provider = await self._provider(request)
        # All scopes pass: what a client may do, the person says.
        return await RegistrationHandler(provider, ClientRegistrationOptions(enabled=True)).handle(request)

    async def revoke(self, request: Request) -> Response:
        given = _once(await fields_of(request))
        if given is None:
            return _refused(400, "invalid_request", "send a form, with each parameter once")
        provider = await self._provider(request)
        # The handler requires a secret even from clients without one, and then ignores it.
        form = {**given, "client_secret": given.get("client_secret", "none")}
        # A hint that it does not know is no reason to keep a token (RFC 7009, 2.2). Ours are found without one.
        form.pop("token_type_hint", None)
        return await RevocationHandler(provider, ClientAuthenticator(provider)).handle(_again(request, form))

    async def _provider(self, request: Request) -> OAuthProvider:
        base = self._urls.base_for(request.headers.get("host", ""))
        return OAuthProvider((await self._memory()).access.sign_in, self._urls, base, address=caller_of(request))


def _guarded(endpoint: Endpoint) -> Endpoint:
    """The endpoint, whose refusals say when to come back, and whose failures say nothing."""

    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except TooManyAttempts as error:
            refused = _refused(429, "temporarily_unavailable", str(error))
            refused.headers["retry-after"] = str(error.retry_after_s)
            return refused
        except KalitoError as error:
            _log.error("%s %s failed: %s", request.method, request.url.path, error)
            return _refused(
                503, "temporarily_unavailable", "the memory cannot be read or written; see the server's log"
            )

    return answer


def _for_person(answer: Response, base: str) -> Response:
    """The handler's answer to a person's browser: to the sign-in page, or back to the program with an error."""
    if answer.status_code != _FOUND:
        return problem_page(_NOT_KNOWN, 400)
    location = answer.headers["location"]
    if location.startswith(f"{base}{SIGN_IN_PATH}?"):
        return answer
    back = construct_redirect_uri(location, iss=base)
    if not is_on_device(back):
        # Anybody can register a page, and send people here with a mistake on purpose (RFC 9700, 4.11.2).
        return problem_page(_NOT_VALID, 400, back=back)
    answer.headers["location"] = back
    return answer


def _once(fields: list[tuple[str, str]]) -> dict[str, str] | None:
    """The parameters by name, without empty ones; None if one comes twice (RFC 6749, 3.1), or all are missing."""
    given = dict(fields)
    return {name: value for name, value in given.items() if value} if len(given) == len(fields) and fields else None


def _again(request: Request, given: dict[str, str]) -> Request:
    """The request with just these parameters."""
    encoded = urlencode(given).encode("ascii")
    scope = dict(request.scope)
    if request.method == "GET":
        scope["query_string"] = encoded
        return Request(scope)
    headers = [one for one in scope["headers"] if one[0] not in (b"content-length", b"content-type")]
    scope["headers"] = [*headers, (b"content-type", FORM.encode()), (b"content-length", b"%d" % len(encoded))]

    async def receive() -> Any:
        return {"type": "http.request", "body": encoded, "more_body": False}

    return Request(scope, receive)


def _refused(status: int, error: str, description: str) -> JSONResponse:
    return JSONResponse({"error": error, "error_description": description}, status, _NOT_KEPT)
