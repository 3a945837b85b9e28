"""Redirect URIs that a client may use for the answer of a sign-in. Pure.

Only to https, to a program on the person's own device (loopback, or a scheme of its own), and only to what the client
registered. The port of a loopback address is free, because programs listen on any (RFC 8252, 7.3).
"""

import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

from kalito_mcp.errors import InvalidInput
from kalito_mcp.safety.addresses import LOOPBACK_HOSTS

_KNOWN_SCHEMES: Final = frozenset(
    "claude codex cursor goose lmstudio raycast vscode vscode-insiders warp windsurf zed".split()
)
"""Schemes without a dot of known programs; others should be a domain read backwards (RFC 8252, 7.1)."""
_PRIVATE_SCHEME: Final = re.compile(r"[a-z][a-z0-9+-]*(\.[a-z0-9+-]+)+")
_PLAIN: Final = re.compile(r"[!-~]+")
_LONGEST: Final = 2_000


def checked_redirect(uri: str) -> str:
    """Return the redirect URI of a client unchanged.

    Raises:
        InvalidInput: it is not https, loopback or a program's own scheme, or has a fragment or a user name.
    """
    parts = _split(uri)
    if parts is None or "#" in uri:
        raise InvalidInput(f"redirect URI {uri[:100]!r} is not a plain absolute URL without a fragment; send another")
    host = parts.hostname or ""
    if parts.scheme in ("http", "https"):
        if "@" in parts.netloc or not host or (parts.scheme == "http" and host not in LOOPBACK_HOSTS):
            raise InvalidInput(f"redirect URI {uri[:100]!r} must be https, or http on this device; send another")
    elif parts.scheme not in _KNOWN_SCHEMES and not _PRIVATE_SCHEME.fullmatch(parts.scheme):
        raise InvalidInput(
            f"redirect URI {uri[:100]!r} must begin with https://, http://127.0.0.1 or a program's own scheme, such as "
            "com.example.app:/; send another"
        )
    return uri


def is_registered(uri: str, registered: str) -> bool:
    """Whether a redirect URI is the registered one: the same text, apart from the port on a loopback address."""
    if uri == registered:
        return True
    given, known = _split(uri), _split(registered)
    if given is None or known is None or "#" in uri or "@" in given.netloc:
        return False
    is_local = given.scheme == known.scheme == "http" and given.hostname in LOOPBACK_HOSTS
    return is_local and (given.hostname, given.path, given.query) == (known.hostname, known.path, known.query)


def is_on_device(uri: str) -> bool:
    """Whether a redirect URI leads to a program on the person's own device, and to no page on the web."""
    parts = urlsplit(uri)
    return parts.scheme not in ("http", "https") or parts.hostname in LOOPBACK_HOSTS


def _split(uri: str) -> SplitResult | None:
    """The parts of an absolute URL of plain characters, None if it is not one."""
    if len(uri) > _LONGEST or not _PLAIN.fullmatch(uri) or "\\" in uri:
        return None
    try:
        parts = urlsplit(uri)
        _ = parts.port
    except ValueError:
        return None
    return parts if parts.scheme else None
