"""The browser that a request comes from: its cookies, and whether our own page sent its form."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from kalito_mcp.web.page.cookies import PAGE_COOKIE, cookie_name, is_form_key
from kalito_mcp.web.problems import Problem
from kalito_mcp.web.urls import ServerUrls

FIRST: Final = "/ask"
"""The view where the page begins."""


@dataclass(frozen=True, slots=True)
class Browser:
    """What the server knows of browsers: by which URLs they reach it."""

    urls: ServerUrls

    def check_is_ours(self, request: Request) -> None:
        """Raise Problem unless the browser says that a page of this server sent the form."""
        ours = self.urls.base_for(request.headers.get("host", ""))
        site = request.headers.get("sec-fetch-site")
        if request.headers.get("origin") != ours or site not in (None, "same-origin"):
            raise Problem(403, "unknown_origin", "another page sent this form; use the page of this server")

    def check_form_key(self, request: Request, key: bytes, form: Mapping[str, str]) -> None:
        """Raise Problem unless a form has the key of an answer to this browser."""
        if not is_form_key(key, self.cookie(request, PAGE_COOKIE) or "", form.get("form_key", "")):
            raise Problem(403, "stale_form", "this form is not from this browser's page; load the page again")

    def check_may_read(self, request: Request) -> None:
        """Raise Problem if a page of another site asks for a part of this one, such as an image. It may lead here."""
        headers = request.headers
        if (
            headers.get("sec-fetch-site") in ("cross-site", "same-site")
            and headers.get("sec-fetch-mode", "navigate") != "navigate"
        ):
            raise Problem(403, "unknown_origin", "another page may not take this in; open it by itself")

    def cookie(self, request: Request, name: str) -> str | None:
        """The value of a cookie of ours."""
        return request.cookies.get(cookie_name(name, is_secure=self.urls.is_secure))

    def set_cookie(self, answer: Response, name: str, value: str, *, max_age: int | None = None) -> None:
        """Have the browser keep a cookie for this page alone, for `max_age` seconds; None: until it is closed."""
        answer.set_cookie(
            cookie_name(name, is_secure=self.urls.is_secure),
            value,
            max_age=max_age,
            path="/",
            secure=self.urls.is_secure,
            httponly=True,
            samesite="strict",
        )


def rendered(template: str, values: dict[str, Any]) -> str:
    """The HTML of a template. Jinja2 is loaded with the first page."""
    from kalito_mcp.web.page.rendering import rendered as render  # noqa: PLC0415 - 80 ms that a server may never need

    return render(template, values)
