"""The page of the App, and how hosts learn of it. A host that does not declare MCP Apps gets the lists without it.

Source: the extension `io.modelcontextprotocol/ui` of MCP, 2026-01-26. Hosts differ in where they look for the address
of the page: the nested key is the specification's, and claude.ai knew only the flat one.
"""

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from mcp.server.apps import APP_MIME_TYPE, client_supports_apps
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.types import Resource, TextResourceContents

from kalito_mcp.server.app import lists

PAGE: Final = Path(__file__).with_name("what_i_used.html").read_text(encoding="utf-8")
"""The whole App: one page that loads nothing."""
PAGE_URI: Final = f"ui://kalito/{sha256(PAGE.encode()).hexdigest()[:16]}"
"""Its address, another one for each content: hosts keep pages by their address."""
_META: Final[Mapping[str, Any]] = {"ui": {"prefersBorder": True}}
_BOTH: Final = ["model", "app"]
_OPENS_PAGE: Final = {"ui": {"resourceUri": PAGE_URI, "visibility": _BOTH}, "ui/resourceUri": PAGE_URI}
_CALLED_BY_PAGE: Final = {"ui": {"visibility": _BOTH}}
APP: Final[Mapping[str, Any]] = {
    "tools": {
        **dict.fromkeys(("search_memory", "build_context"), _OPENS_PAGE),
        **dict.fromkeys(("create_pin", "update_memory", "forget", "restore", "memory_history"), _CALLED_BY_PAGE),
    },
    "resource": Resource(
        uri=PAGE_URI,
        name="what-i-used",
        title="What I used",
        description="A page for hosts that show MCP Apps: the records behind an answer, and why; correct, forget, pin.",
        mime_type=APP_MIME_TYPE,
        _meta=dict(_META),
    ).model_dump(by_alias=True, mode="json", exclude_none=True),
}
"""What the lists say of the App; see `lists.with_app`."""


def page() -> TextResourceContents:
    """The page as `resources/read` returns it."""
    return TextResourceContents(uri=PAGE_URI, mime_type=APP_MIME_TYPE, text=PAGE, _meta=dict(_META))


async def with_app(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """The SDK's middleware that names the App in the lists of a host that shows Apps."""
    result = await call_next(ctx)
    is_first_page = not (ctx.params or {}).get("cursor")
    if not isinstance(result, dict) or not is_first_page or not client_supports_apps(ctx):
        return result
    return lists.with_app(ctx.method, result, APP)
