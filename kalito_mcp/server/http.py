"""MCP over streamable HTTP, and over the older HTTP with server-sent events. Loopback only: there is no login."""

from typing import Final, Literal

from kalito_mcp.errors import ConfigurationError
from kalito_mcp.server.build import KalitoServer

LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


def check_address(host: str) -> None:
    """Refuse every address but this machine's own.

    Raises:
        ConfigurationError: other machines could reach it, and there is no login yet.
    """
    if host not in LOOPBACK:
        raise ConfigurationError(
            f"--host {host} would let other machines read and write this memory, and there is no login yet; "
            f"use one of {', '.join(LOOPBACK)}"
        )


async def serve_http(server: KalitoServer, transport: Literal["http", "sse"], *, host: str, port: int) -> None:
    """Serve until interrupted, at /mcp (http) or /sse (sse). The SDK checks the Host and Origin of every request
    against the loopback names, which keeps web pages from reaching it through DNS rebinding."""
    check_address(host)
    if transport == "http":
        await server.run_streamable_http_async(host=host, port=port)
    else:
        await server.run_sse_async(host=host, port=port)
