"""The table of the page: every view and every act, with the permission that it needs."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from kalito_mcp.domain.access import Principal
from kalito_mcp.web.guard import Authenticate
from kalito_mcp.web.limits import RateLimits
from kalito_mcp.web.page.acts import ACTS
from kalito_mcp.web.page.app import Line, PageApp, Plain, first
from kalito_mcp.web.page.ask import ASK
from kalito_mcp.web.page.browser import Browser
from kalito_mcp.web.page.entrance import Entrance
from kalito_mcp.web.page.house import HouseViews
from kalito_mcp.web.page.known import KNOWN
from kalito_mcp.web.page.machine import Machine
from kalito_mcp.web.page.now import now_views
from kalito_mcp.web.page.record import RECORD
from kalito_mcp.web.page.session import SESSION
from kalito_mcp.web.page.switching import Switching
from kalito_mcp.web.page.timeline import TIMELINE
from kalito_mcp.web.rest.endpoint import Exporter
from kalito_mcp.web.urls import ServerUrls

if TYPE_CHECKING:
    from kalito_mcp.memory import Memory


def page_table(machine: Machine | None = None, exporter: Exporter | None = None) -> tuple[Line, ...]:
    """The lines. `machine` is the one that the memory is on, and `exporter` writes archives; without them, their views
    say that they are not there."""
    house = HouseViews(machine, exporter).lines()
    now, switching = now_views(machine), Switching(machine).lines()
    return (*ASK, *now, *KNOWN, *TIMELINE, *SESSION, *RECORD, *house, *ACTS, *switching)


PAGE: Final = page_table()


def page_app(
    memory: "Callable[[], Awaitable[Memory]]",
    urls: ServerUrls,
    limits: RateLimits,
    *,
    anyone: Principal | None,
    authenticate: Authenticate | None,
    machine: Machine | None = None,
    exporter: Exporter | None = None,
) -> PageApp:
    """The page with its entrance. `anyone` is who calls where no login is needed; `authenticate` knows tokens. The
    others are as for `page_table`."""
    browser = Browser(urls)
    entrance = Entrance(memory, browser, authenticate, limits)
    ways: tuple[Plain, ...] = (
        Plain("GET", "/enter", entrance.show),
        Plain("POST", "/enter", entrance.answer),
        Plain("GET", "/enter/{code}", entrance.follow),
        Plain("POST", "/leave", entrance.leave),
    )
    if anyone is not None:
        ways = (Plain("GET", "/enter/{code}", first),)
    table = page_table(machine, exporter)
    return PageApp(table, memory, browser, limits, anyone=anyone, plain=ways)
