"""CORS: preflight requests, and answers that scripts of other pages may read."""

from collections.abc import Sequence
from typing import Final

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

_METHODS: Final = ("GET", "POST", "PATCH", "DELETE")
_SENT: Final = """
    authorization content-type accept if-match if-none-match idempotency-key last-event-id mcp-protocol-version
    mcp-session-id mcp-method mcp-name
""".split()
_READ: Final = ("etag", "mcp-session-id", "retry-after", "www-authenticate")


def open_to_pages(app: ASGIApp, origins: Sequence[str]) -> ASGIApp:
    """The app, with answers that scripts of these pages may read. `*` is never sent, and credentials are never allowed:
    there are no cookies, and each request still needs its token."""
    if not origins:
        return app
    return CORSMiddleware(app, allow_origins=origins, allow_methods=_METHODS, allow_headers=_SENT, expose_headers=_READ)
