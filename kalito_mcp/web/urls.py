"""The URLs of this server: those used in sign-in, and those that an OAuth token may be for."""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from kalito_mcp.errors import ConfigurationError
from kalito_mcp.safety.addresses import LOOPBACK_HOSTS

_PATHS: Final = ("", "/", "/mcp", "/mcp/", "/sse", "/sse/")
RESOURCE_METADATA: Final = "/.well-known/oauth-protected-resource"
SERVER_METADATA: Final = "/.well-known/oauth-authorization-server"


@dataclass(frozen=True, slots=True)
class ServerUrls:
    """`base` is the scheme and host, such as `https://memory.example.org`; `path` is where MCP is served.

    Without a public URL the server is this machine, which has several names: `alternatives`.
    """

    base: str
    path: str = "/mcp"
    alternatives: tuple[str, ...] = ()

    @classmethod
    def of(cls, public_url: str, *, port: int, path: str = "/mcp") -> "ServerUrls":
        """The URLs below this public URL, or if it is empty on this port of this machine.

        Raises:
            ConfigurationError: the URL has a path, or is neither https nor loopback.
        """
        if not public_url:
            # As clients write it: who asks for port 80 does not say so.
            names = [f"[{name}]" if ":" in name else name for name in LOOPBACK_HOSTS]
            bases = tuple(f"http://{name}:{port}".removesuffix(":80") for name in names)
            return cls(bases[0], path, bases)
        base = public_url.rstrip("/").lower()
        try:
            parts = urlsplit(base)
            is_local = parts.hostname in LOOPBACK_HOSTS
            is_plain = base == f"{parts.scheme}://{parts.netloc}" and "@" not in base and bool(parts.hostname)
            _ = parts.port
        except ValueError:
            is_local = is_plain = False
        if not is_plain or (parts.scheme != "https" and not (parts.scheme == "http" and is_local)):
            raise ConfigurationError(
                f"setting http.public_url should be https:// and a name, such as https://memory.example.org, not "
                f"{public_url!r}"
            )
        default = {"https": ":443", "http": ":80"}[parts.scheme]
        return cls(base.removesuffix(default), path)

    def base_for(self, host: str) -> str:
        """The base by the name that a request used, if it is one of ours: who says localhost stays there."""
        named = f"http://{host.lower()}"
        return named if named in self.alternatives else self.base

    def is_reached_safely(self, host: str) -> bool:
        """Whether a passphrase may be typed into a page with this name: not over a network without TLS."""
        return not self.alternatives or f"http://{host.lower()}" in self.alternatives

    @property
    def is_secure(self) -> bool:
        """Whether browsers reach it by https."""
        return self.base.startswith("https:")

    @property
    def resources(self) -> frozenset[str]:
        """All URLs of this server, for one of which an OAuth token must have been made."""
        return frozenset(base + path for base in (self.base, *self.alternatives) for path in _PATHS)

    def is_ours(self, resource: str) -> bool:
        """Whether a client that names this URL means this server. Scheme and host in any case, the path as written."""
        found = re.fullmatch(r"(https?://[^/?#]*)([^?#]*)", resource, re.IGNORECASE)
        return found is not None and found[1].lower() + found[2] in self.resources

    def metadata_url(self, host: str) -> str:
        """Where a client that called by this name reads how to get a token."""
        return f"{self.base_for(host)}{RESOURCE_METADATA}{self.path}"
