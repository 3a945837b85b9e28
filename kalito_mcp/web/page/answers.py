"""Answers of the page: their headers, and HTML that is compressed."""

import gzip
from collections.abc import Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from kalito_mcp.web.page.static_files import StaticFile

SEE_OTHER: Final = 303
_POLICY: Final = "default-src 'self'; object-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'"
_SAFE: Final[Mapping[str, str]] = {
    "content-security-policy": _POLICY,
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    # `no-referrer` would also take the Origin off our forms.
    "referrer-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_NOT_KEPT: Final = {"cache-control": "no-store"}
_KEPT: Final = {"cache-control": "public, max-age=31536000, immutable"}
_LEAST_ZIPPED: Final = 1_024
_LEVEL: Final = 5


def html(request: Request, content: str, status: int = 200) -> Response:
    """A page."""
    raw = content.encode("utf-8", "replace")
    headers = {**_SAFE, **_NOT_KEPT, "vary": "accept-encoding, cookie"}
    if len(raw) >= _LEAST_ZIPPED and _takes_gzip(request):
        raw = gzip.compress(raw, _LEVEL, mtime=0)
        headers["content-encoding"] = "gzip"
    return Response(raw, status, headers, "text/html; charset=utf-8")


def static(request: Request, file: StaticFile) -> Response:
    """A file that never changes."""
    headers = {**_SAFE, **_KEPT, "vary": "accept-encoding"}
    if _takes_gzip(request):
        return Response(file.zipped, 200, {**headers, "content-encoding": "gzip"}, file.media)
    return Response(file.content, 200, headers, file.media)


def download_headers(name: str, media: str) -> Mapping[str, str]:
    """The headers of a file that the browser keeps under this name, which is ASCII."""
    named = {"content-type": media, "content-disposition": f'attachment; filename="{name}"'}
    return {**_SAFE, **_NOT_KEPT, **named}


def go_to(place: str) -> Response:
    """Have the browser show another view. `place` is a path of ours."""
    return Response(b"", SEE_OTHER, {**_SAFE, **_NOT_KEPT, "location": place})


def local_path(sent: str | None, default: str) -> str:
    """A path of this page that a form or a URL names, or else the default: never another site's address."""
    is_ours = sent is not None and sent.startswith("/") and not sent.startswith("//") and "\\" not in sent
    return sent if sent is not None and is_ours and sent.isprintable() and sent.isascii() else default


def _takes_gzip(request: Request) -> bool:
    for one in request.headers.get("accept-encoding", "").split(","):
        name, _, weight = one.replace(" ", "").partition(";q=")
        if name == "gzip":
            return weight.strip("0.") != "" or not weight
    return False
