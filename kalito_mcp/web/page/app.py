"""Serves the page's table: finds out who the person is by their cookie, checks the permission, and shows or acts.

The guard lets its paths through without a token. A form also needs our own Origin and the key of its answer, so that no
other site can send one. What cannot be done, the page says in words.
"""

import math
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from kalito_mcp.domain.access import Permission, Principal, denial
from kalito_mcp.errors import RevisionConflict
from kalito_mcp.runtime.acting import acting_as
from kalito_mcp.text.plurals import plural
from kalito_mcp.web.forms import fields_of
from kalito_mcp.web.guard import PRINCIPAL_KEY, REFUSED_KEY
from kalito_mcp.web.limits import RateLimits
from kalito_mcp.web.metrics import ROUTE_KEY
from kalito_mcp.web.page.answers import download_headers, go_to, html, local_path, static
from kalito_mcp.web.page.browser import FIRST, Browser, rendered
from kalito_mcp.web.page.cookies import (
    PAGE_COOKIE,
    UNDO_COOKIE,
    form_key,
    last_act,
    undo_cookie,
)
from kalito_mcp.web.page.live import Live
from kalito_mcp.web.page.static_files import static_files
from kalito_mcp.web.page.view import Act, Download, Fields, View, Visit, link
from kalito_mcp.web.problems import Problem, problems
from kalito_mcp.web.rest.requests import checked_pairs
from kalito_mcp.web.routes import Routes, sent_path
from kalito_mcp.web.streaming import send_stream

if TYPE_CHECKING:
    from kalito_mcp.memory import Memory

_MOST_FIELDS: Final = 2_000
_NAVIGATION: Final = (
    ("/ask", "Ask"),
    ("/now", "Now"),
    ("/known", "What is known"),
    ("/timeline", "Timeline"),
    ("/house", "House"),
)
_FEED: Final = "/now/feed"
_UNDO_S: Final = 86_400
_CHANGED: Final = "it was changed since you opened it; look at it again, and if your change is still needed, repeat it"


@dataclass(frozen=True, slots=True)
class Plain:
    """A line for what needs no person: `answer` gets the request and the parameters of its path."""

    method: str
    path: str
    answer: Callable[[Request, dict[str, str]], Awaitable[Response]]


Line = View[Any] | Act[Any]


class PageApp:
    """An ASGI application. `memory` gives the memory of the owner on whose behalf a task acts.

    `anyone` is who calls where no login is needed; None where each person needs a cookie.
    """

    def __init__(
        self,
        table: Sequence[Line],
        memory: "Callable[[], Awaitable[Memory]]",
        browser: Browser,
        limits: RateLimits,
        *,
        anyone: Principal | None,
        plain: Sequence[Plain] = (),
    ) -> None:
        self._memory = memory
        self._browser = browser
        self._secret: bytes | None = None
        self._limits = limits
        self._anyone = anyone
        self._live = Live()
        own = (
            Plain("GET", "/", first),
            Plain("GET", "/static/{hash}/{file}", _static),
            Plain("GET", _FEED, self._feed),
        )
        self._routes: Routes[Line | Plain] = Routes([*own, *plain, *table], "", "the page at /")
        paths = {one.path for one in table}
        self._navigation = [(path, name) for path, name in _NAVIGATION if path in paths]

    def has(self, scope: Scope) -> bool:
        """Whether a request is for the page."""
        return scope["type"] == "http" and self._routes.has(scope)

    def is_stream(self, scope: Scope) -> bool:
        """Whether a request is for the changes, whose answer ends only with its reader or the server."""
        return bool(scope["path"] == _FEED)

    def recognising(self, app: ASGIApp) -> ASGIApp:
        """The app, which learns who sends a form of the page before it reads it: a stranger may send few bytes."""

        async def recognised(scope: Scope, receive: Receive, send: Send) -> None:
            if self.has(scope) and scope["method"] == "POST":
                request = Request(scope, receive)
                try:
                    with problems("the page"):
                        principal = await self._principal(request)
                except Problem as problem:
                    await self._refused(request, problem, FIRST)(scope, receive, send)
                    return
                if principal is not None:
                    scope[PRINCIPAL_KEY] = principal
            await app(scope, receive, send)

        return recognised

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            with problems("the page"):
                line, path = self._routes.find(scope)
                scope[ROUTE_KEY] = line.path
                self._browser.check_may_read(request)
                answer = await self._answer(request, line, path)
                if not isinstance(answer, Response):  # a refusal of its first piece has a status of its own
                    await answer(scope, receive, send)
                    return
        except Problem as problem:
            sent = dict(await fields_of(request, most=_MOST_FIELDS)) if scope["method"] == "POST" else {}
            answer = self._refused(request, problem, local_path(sent.get("back"), FIRST))
        await answer(scope, receive, send)

    async def _answer(self, request: Request, line: Line | Plain, path: dict[str, str]) -> ASGIApp:
        if isinstance(line, Plain):
            return await line.answer(request, path)
        principal = request.scope.get(PRINCIPAL_KEY) or await self._principal(request)
        if principal is None:
            return self._has_no_cookie(request, line)
        request.scope[PRINCIPAL_KEY] = principal
        self._check_rate(principal, is_write=isinstance(line, Act))
        if not principal.may(line.permission):
            request.scope[REFUSED_KEY] = line.name
            raise Problem(403, "insufficient_scope", denial(principal, line.permission))
        with acting_as(principal, line.name), problems(line.name):
            if isinstance(line, Act):
                return await self._act(request, line, path, principal)
            return await self._show(request, line, path, principal)

    async def _feed(self, request: Request, path: dict[str, str]) -> Response:
        """The stream of changes for an open page."""
        principal = await self._principal(request)
        if principal is None:
            raise Problem(401, "invalid_token", "you are not signed in, or no longer")
        self._check_rate(principal, is_write=False)
        with acting_as(principal, f"page {_FEED}"):
            memory = await self._memory()

        async def may_go_on() -> bool:
            return await self._principal(request) == principal

        return self._live.stream(memory, principal.id, may_go_on, request.query_params.get("since"))

    async def _principal(self, request: Request) -> Principal | None:
        if self._anyone is not None:
            return self._anyone
        text = self._browser.cookie(request, PAGE_COOKIE)
        return await (await self._memory()).access.pages.principal_of(text) if text else None

    def _check_rate(self, principal: Principal, *, is_write: bool) -> None:
        if self._anyone is not None:  # without login, as often as any program of this machine likes
            return
        wait_s = self._limits.call(principal) or (self._limits.write(principal) if is_write else 0.0)
        if wait_s:
            seconds = math.ceil(wait_s)
            said = f"too many requests; try again in {plural(seconds, 'second')}"
            raise Problem(429, "too_many_requests", said, {"retry-after": str(seconds)})

    async def _show(self, request: Request, view: View[Any], path: dict[str, str], principal: Principal) -> ASGIApp:
        try:
            pairs = parse_qsl(request.url.query, keep_blank_values=True, max_num_fields=_MOST_FIELDS)
        except ValueError:
            raise Problem(422, "invalid_input", f"this address has more than {_MOST_FIELDS:,} fields") from None
        visit = await self._visit(view.sent, pairs, path, principal)
        shown = await view.handler(visit)
        if isinstance(shown, Download):
            return _download(shown, view.name, principal)
        cookie = self._browser.cookie(request, PAGE_COOKIE)
        is_new = cookie is None
        cookie = cookie or secrets.token_urlsafe(16)
        key = await self._key()
        values = {
            **self._frame(request, visit.project),
            "title": shown.title,
            "form_key": form_key(key, cookie),
            "last": last_act(key, cookie, self._browser.cookie(request, UNDO_COOKIE)),
            "projects": [name for name, _ in await visit.memory.projects.all()],
            "can_write": visit.may(Permission.WRITE),
            "is_admin": visit.may(Permission.ADMIN),
            "has_login": self._anyone is None,
            **shown.values,
        }
        answer = html(request, rendered(shown.template, values))
        if is_new:
            self._browser.set_cookie(answer, PAGE_COOKIE, cookie)
        return answer

    async def _act(self, request: Request, act: Act[Any], path: dict[str, str], principal: Principal) -> Response:
        pairs = await fields_of(request, most=_MOST_FIELDS)
        form = dict(pairs)
        self._browser.check_is_ours(request)
        key = await self._key()
        cookie = self._browser.cookie(request, PAGE_COOKIE) or ""
        self._browser.check_form_key(request, key, form)
        visit = await self._visit(act.sent, pairs, path, principal)
        try:
            done = await act.handler(visit)
        except RevisionConflict as error:
            raise Problem(409, error.code, _CHANGED) from error
        answer = go_to(done.back or local_path(form.get("back"), FIRST))
        if done.said:
            self._browser.set_cookie(answer, UNDO_COOKIE, undo_cookie(key, cookie, done), max_age=_UNDO_S)
        else:
            self._browser.set_cookie(answer, UNDO_COOKIE, "", max_age=0)
        return answer

    async def _visit(
        self, model: type[Fields], pairs: Sequence[tuple[str, str]], path: dict[str, str], principal: Principal
    ) -> Visit[Any]:
        known = [(name, value) for name, value in pairs if value.strip() and name in model.model_fields]
        sent = checked_pairs(model, known)
        project = principal.limits.project or getattr(sent, "project", None)
        memory = await (await self._memory()).in_project(project)
        return Visit(memory, principal, path, sent, project)

    def _has_no_cookie(self, request: Request, line: Line) -> Response:
        if isinstance(line, Act):
            raise Problem(401, "invalid_token", "you are not signed in, or no longer; sign in and try again")
        place = local_path(_here(request), FIRST)
        if request.headers.get("sec-fetch-site") == "cross-site":
            # The browser kept the cookie back, because the link is on another site. Ours leads there, too.
            return html(request, rendered("again.html", {"place": place}))
        return go_to(link("/enter", back=place))

    def _refused(self, request: Request, problem: Problem, back: str) -> Response:
        frame = self._frame(request, None)
        values = {**frame, "title": "This did not work", "said": problem.body.error_description, "back": back}
        answer = html(request, rendered("error.html", values), problem.status)
        answer.headers.update({name: value for name, value in problem.headers.items() if name != "cache-control"})
        return answer

    def _frame(self, request: Request, project: str | None) -> dict[str, Any]:
        """What every template of the page needs."""

        def to(path: str, **query: Any) -> str:
            return link(path, **{"project": project, **query})

        path = sent_path(request.scope)
        return {"to": to, "project": project, "navigation": self._navigation, "here": _here(request), "path": path}

    async def _key(self) -> bytes:
        if self._secret is None:
            self._secret = await (await self._memory()).access.derived_key("page")
        return self._secret


def _here(request: Request) -> str:
    """The path and the query, as they were sent."""
    return sent_path(request.scope) + (f"?{request.url.query}" if request.url.query else "")


def _download(file: Download, name: str, principal: Principal) -> ASGIApp:
    """The answer that sends a file, on the principal's behalf."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        with acting_as(principal, name), problems(name):
            headers = download_headers(file.name, file.media)
            await send_stream(name, file.pieces, headers, Request(scope, receive), send)

    return answer


async def first(request: Request, path: dict[str, str]) -> Response:
    """The beginning of the page, with the question if the address has one."""
    return go_to(f"{FIRST}?{request.url.query}" if request.url.query else FIRST)


async def _static(request: Request, path: dict[str, str]) -> Response:
    """A static file. An old hash gets the newest: nothing else is here."""
    file = static_files().get(path["file"])
    if file is None:
        raise Problem(404, "unknown_path", "no such file")
    return static(request, file)
