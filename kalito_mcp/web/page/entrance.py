"""The way in: a link that works once, a passphrase, or a token; and the way out.

Each way in ends in a cookie that only the page accepts. Over a network without TLS, nothing secret may be typed in.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import Response

from kalito_mcp.domain.access import Permission, Principal
from kalito_mcp.domain.scope import LOCAL_OWNER
from kalito_mcp.errors import TooManyAttempts
from kalito_mcp.web.forms import fields_of
from kalito_mcp.web.guard import NETWORK_KEY, REFUSED_KEY, Authenticate
from kalito_mcp.web.page.answers import go_to, html, local_path
from kalito_mcp.web.page.app import FIRST, PageApp, Plain, rendered_plain
from kalito_mcp.web.page.cookies import PAGE_COOKIE
from kalito_mcp.web.problems import Problem
from kalito_mcp.web.urls import ServerUrls

if TYPE_CHECKING:
    from kalito_mcp.access.tokens import NewToken
    from kalito_mcp.memory import Memory

_NOT_SAFE: Final = (
    "this page is only for https, and for the machine where the memory is; set http.public_url to the https address of "
    "this server"
)
_WRONG: Final = "That is not right."
_USED: Final = "This link was used already, or is older than a minute. Run `kalito-mcp open` again."
