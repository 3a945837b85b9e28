"""The table of the page: every view and every act, with the permission that it needs."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from kalito_mcp.domain.access import Principal
from kalito_mcp.web.guard import Authenticate
from kalito_mcp.web.limits import RateLimits
from kalito_mcp.web.page.acts import ACTS
from kalito_mcp.web.page.app import Line, PageApp, Plain
from kalito_mcp.web.page.ask import ASK
from kalito_mcp.web.page.browser import Browser
from kalito_mcp.web.page.entrance import Entrance
from kalito_mcp.web.page.record import RECORD
from kalito_mcp.web.urls import ServerUrls

if TYPE_CHECKING:
    from kalito_mcp.memory import Memory

PAGE: Final[tuple[Line, ...]] = (*ASK, *RECORD, *ACTS)


def page_app(
    memory: "Callable[[], Awaitable[Memory]]",
    urls: ServerUrls,
    limits: RateLimits,
    *,
    anyone: Principal | None,
    authenticate: Authenticate | None,
) -> PageApp:
    """The page with its entrance. `anyone` is who calls where no login is needed; `authenticate` knows tokens."""
    browser = Browser(urls)
    entrance = Entrance(memory, browser, authenticate)
    ways = (
        Plain("GET", "/enter", entrance.show),
        Plain("POST", "/enter", entrance.answer),
        Plain("GET", "/enter/{code}", entrance.follow),
        Plain("POST", "/leave", entrance.leave),
    )
    return PageApp(PAGE, memory, browser, limits, anyone=anyone, plain=() if anyone else ways)
