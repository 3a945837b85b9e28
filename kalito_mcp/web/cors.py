"""CORS: which web pages' scripts may call this server and read its answers."""

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


def with_cors(app: ASGIApp, origins: Sequence[str]) -> ASGIApp:
    """The app, which answers preflight requests of these origins and lets their scripts read its answers.

    `*` is never sent, and credentials are never allowed: there are no cookies, and each request needs its token.
    """
    if not origins:
        return app
    return CORSMiddleware(app, allow_origins=origins, allow_methods=_METHODS, allow_headers=_SENT, expose_headers=_READ)
