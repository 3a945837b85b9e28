"""The way in: a link that works once, a passphrase, or a token; and the way out.

Each way in ends in a cookie that only the page accepts. Over a network without TLS, nothing secret may be typed in.
"""

from typing import TYPE_CHECKING, Any, Final

from starlette.requests import Request
from starlette.responses import Response

from kalito_mcp.access.page_sessions import COOKIE_S
from kalito_mcp.domain.access import Permission, Principal
from kalito_mcp.domain.scope import LOCAL_OWNER
from kalito_mcp.errors import TooManyAttempts
from kalito_mcp.web.forms import fields_of
from kalito_mcp.web.guard import REFUSED_KEY, Authenticate
from kalito_mcp.web.limits import RateLimits, too_many
from kalito_mcp.web.page.answers import go_to, html, local_path
from kalito_mcp.web.page.browser import FIRST, Browser, rendered
from kalito_mcp.web.page.cookies import PAGE_COOKIE, UNDO_COOKIE
from kalito_mcp.web.problems import Problem
from kalito_mcp.web.sign_in import caller_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from kalito_mcp.memory import Memory

_NOT_SAFE: Final = (
    "this page is only for https, and for the machine where the memory is; set http.public_url to the https address of "
    "this server"
)
_WRONG: Final = "That is not right. Try again."
_USED: Final = "this link was used already, or is older than a minute; run `kalito-mcp open` again"


class Entrance:
    """Answers at /enter, /enter/{code} and /leave. `authenticate` knows tokens of programs and of a provider. What is
    wrong counts among the refused requests of `limits`."""

    def __init__(
        self,
        memory: "Callable[[], Awaitable[Memory]]",
        browser: Browser,
        authenticate: Authenticate | None,
        limits: RateLimits,
    ) -> None:
        self._memory = memory
        self._browser = browser
        self._authenticate = authenticate
        self._limits = limits

    async def show(self, request: Request, path: dict[str, str]) -> Response:
        """The form."""
        self._check_safe(request)
        return await self._form(request, request.query_params.get("back"))

    async def answer(self, request: Request, path: dict[str, str]) -> Response:
        """Take a passphrase or a token."""
        self._check_safe(request)
        self._browser.check_is_ours(request)
        form = dict(await fields_of(request))
        token, passphrase = form.get("token", "").strip(), form.get("passphrase", "")
        try:
            cookie = await (self._with_token(token) if token else self._with_passphrase(request, form, passphrase))
        except TooManyAttempts as error:
            refusal = await self._form(request, form.get("back"), str(error), 429)
            refusal.headers["retry-after"] = str(error.retry_after_s)
            return refusal
        if cookie is None:
            request.scope[REFUSED_KEY] = "sign_in"
            if wait_s := self._limits.refused(request.scope):
                return too_many(wait_s)
            return await self._form(request, form.get("back"), _WRONG, 403)
        answer = go_to(local_path(form.get("back"), FIRST))
        self._browser.set_cookie(answer, PAGE_COOKIE, cookie, max_age=COOKIE_S)
        return answer

    async def follow(self, request: Request, path: dict[str, str]) -> Response:
        """Take a link. The answer is a page that goes on by itself: a cookie that comes with a redirect would be held
        back if the link was followed from another program's page. A program that only looks at a link does not use it
        up."""
        self._check_safe(request)
        going_on = html(request, rendered("again.html", {"place": FIRST}))
        if request.method == "HEAD":
            return going_on
        found = await (await self._memory()).access.pages.enter(path["code"])
        if found is None:
            request.scope[REFUSED_KEY] = "sign_in"
            if wait_s := self._limits.refused(request.scope):
                return too_many(wait_s)
            raise Problem(403, "link_used", _USED)
        self._browser.set_cookie(going_on, PAGE_COOKIE, found.text, max_age=COOKIE_S)
        return going_on

    async def leave(self, request: Request, path: dict[str, str]) -> Response:
        """Sign out."""
        self._browser.check_is_ours(request)
        form = dict(await fields_of(request))
        memory = await self._memory()
        self._browser.check_form_key(request, await memory.access.derived_key("page"), form)
        await memory.access.pages.leave(self._browser.cookie(request, PAGE_COOKIE) or "")
        answer = go_to("/enter")
        self._browser.set_cookie(answer, PAGE_COOKIE, "", max_age=0)
        self._browser.set_cookie(answer, UNDO_COOKIE, "", max_age=0)
        return answer

    async def _with_token(self, token: str) -> str | None:
        memory = await self._memory()
        pages = memory.access.pages
        if (found := await pages.enter_with(token, self._browser.urls.resources)) is not None:
            return found.text
        principal = await self._authenticate(token) if self._authenticate is not None else None
        # A provider may take its token back, which only its next check would notice.
        return (await pages.enter_as(principal, expires_at=_in_an_hour(memory))).text if principal else None

    async def _with_passphrase(self, request: Request, form: dict[str, str], passphrase: str) -> str | None:
        memory = await self._memory()
        owner = form.get("owner", "").strip() or LOCAL_OWNER
        check = memory.access.sign_in.passphrases.check
        if not passphrase or not await check(owner, passphrase, address=caller_of(request)):
            return None
        return (await memory.access.pages.enter_as(Principal("passphrase", owner, Permission.ADMIN))).text

    async def _form(
        self, request: Request, back: str | None, problem: str | None = None, status: int = 200
    ) -> Response:
        memory = await self._memory()
        values: dict[str, Any] = {
            "back": local_path(back, FIRST),
            "problem": problem,
            "has_passphrase": await memory.access.sign_in.passphrases.has_any(),
            "owner": memory.place.owner,
        }
        return html(request, rendered("enter.html", values), status)

    def _check_safe(self, request: Request) -> None:
        if not self._browser.urls.is_reached_safely(request.headers.get("host", "")):
            raise Problem(403, "not_safe", _NOT_SAFE)


def _in_an_hour(memory: "Memory") -> int:
    return memory.place.clock.now_ms() + 3_600_000
