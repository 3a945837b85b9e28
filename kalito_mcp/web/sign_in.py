"""The page on which a person lets a program in, and what they answer.

The form works only in the browser that first showed the page: it carries the request's handle, and a cookie that no
other site can make the browser send has its other half.
"""

from collections.abc import Awaitable, Callable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from mcp.server.auth.provider import construct_redirect_uri
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from kalito_mcp.access.consents import REQUEST_S, Answer
from kalito_mcp.domain.access import Permission, Principal
from kalito_mcp.domain.scope import LOCAL_OWNER
from kalito_mcp.domain.sign_in import SignInRequest
from kalito_mcp.errors import NotFound, TooManyAttempts
from kalito_mcp.web.forms import fields_of
from kalito_mcp.web.guard import NETWORK_KEY, REFUSED_KEY
from kalito_mcp.web.sign_in_html import Question, problem_page, question_page
from kalito_mcp.web.urls import ServerUrls

if TYPE_CHECKING:
    from kalito_mcp.memory import Memory

_SEE_OTHER: Final = 303
_NOT_SAFE: Final = (
    "This page is only for https, and for the machine where the memory is. Set http.public_url to the https address of "
    "this server."
)
_WRONG: Final = "The name or the passphrase is not right."


class SignInPage:
    """The two routes of the page."""

    def __init__(self, memory: "Callable[[], Awaitable[Memory]]", urls: ServerUrls) -> None:
        self._memory = memory
        self._urls = urls

    async def show(self, request: Request) -> Response:
        """The page with the program's request."""
        if not self._urls.is_reached_safely(request.headers.get("host", "")):
            return problem_page(_NOT_SAFE, 403)
        handle = request.query_params.get("request", "")
        memory = await self._memory()
        try:
            pending, cookie = await memory.access.sign_in.consents.bind(handle, self._cookie_of(request, handle))
        except NotFound as error:
            return problem_page(_sentence(error), 404)
        page = await self._page(memory, handle, pending, owner=memory.place.owner)
        page.set_cookie(
            self._cookie_name(handle),
            cookie,
            max_age=REQUEST_S,
            path="/",
            secure=self._urls.is_secure,
            httponly=True,
            samesite="strict",
        )
        return page

    async def answer(self, request: Request) -> Response:
        """Take the person's answer."""
        form = dict(await fields_of(request))
        handle = form.get("request", "")
        memory = await self._memory()
        cookie = self._cookie_of(request, handle)
        if not self._is_from_page(request):
            return problem_page("Another page sent this form. Start again in the program that you came from.", 403)
        try:
            pending = await memory.access.sign_in.consents.read_request(handle, cookie)
            if form.get("answer") != "allow":
                return self._back(request, await memory.access.sign_in.consents.deny(handle, cookie))
            return await self._allowed(request, memory, handle, pending, form)
        except NotFound as error:
            return problem_page(_sentence(error), 403)

    async def _allowed(
        self, request: Request, memory: "Memory", handle: str, pending: SignInRequest, form: Mapping[str, str]
    ) -> Response:
        owner = form.get("owner", "").strip() or LOCAL_OWNER
        named = form.get("permission", "")
        chosen = Permission(named) if named in [*Permission] else Permission.READ
        passphrase, address = form.get("passphrase", ""), caller_of(request)
        try:
            is_right = await memory.access.sign_in.passphrases.check(owner, passphrase, address=address)
        except TooManyAttempts as error:
            page = await self._page(
                memory, handle, pending, owner=owner, chosen=chosen, problem=_sentence(error), status=429
            )
            page.headers["retry-after"] = str(error.retry_after_s)
            return page
        if not is_right:
            request.scope[REFUSED_KEY] = "sign_in"
            return await self._page(memory, handle, pending, owner=owner, chosen=chosen, problem=_WRONG, status=403)
        cookie = self._cookie_of(request, handle)
        answer = await memory.access.sign_in.consents.allow(handle, cookie, owner=owner, permission=chosen)
        if (grant := answer.grant) is not None:
            let_in = Principal(grant.id, grant.owner, grant.permission, client=grant.client_id)
            await memory.access.log("sign_in", principal=let_in)
        return self._back(request, answer)

    async def _page(
        self,
        memory: "Memory",
        handle: str,
        pending: SignInRequest,
        *,
        owner: str,
        chosen: Permission | None = None,
        problem: str | None = None,
        status: int = 200,
    ) -> Response:
        client = await memory.access.sign_in.clients.find(pending.client_id)
        question = Question(
            handle,
            pending.client_name,
            described_at=urlsplit(pending.client_id).hostname if client is not None and client.is_document else None,
            answers_to=pending.answers_to,
            redirect_uri=pending.redirect_uri,
            permission=pending.permission,
            chosen=chosen,
            owner=owner,
            can_sign_in=await memory.access.sign_in.passphrases.has_any(),
            problem=problem,
        )
        return question_page(question, status)

    def _back(self, request: Request, answer: Answer) -> Response:
        """Send the browser back to the program with the answer."""
        pending = answer.request
        issuer = self._urls.base_for(request.headers.get("host", ""))
        given = {"code": answer.code} if answer.code is not None else {"error": "access_denied"}
        location = construct_redirect_uri(pending.redirect_uri, **given, state=pending.state, iss=issuer)
        return RedirectResponse(location, _SEE_OTHER, {"cache-control": "no-store", "referrer-policy": "no-referrer"})

    def _is_from_page(self, request: Request) -> bool:
        """Whether the browser says that our own page sent the form. Old browsers do not say it."""
        origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
        return origin in (None, self._urls.base_for(request.headers.get("host", ""))) and site in (None, "same-origin")

    def _cookie_of(self, request: Request, handle: str) -> str | None:
        return request.cookies.get(self._cookie_name(handle))

    def _cookie_name(self, handle: str) -> str:
        """One a request, so that two can be answered side by side."""
        prefix = "__Host-" if self._urls.is_secure else ""
        return f"{prefix}kalito-{sha256(handle.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def caller_of(request: Request) -> str:
    """The address or network that a request comes from, as the guard found it."""
    return str(request.scope[NETWORK_KEY])


def _sentence(error: Exception) -> str:
    said = str(error)
    return f"{said[:1].upper()}{said[1:]}."
