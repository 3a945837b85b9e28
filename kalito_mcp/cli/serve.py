"""`kalito-mcp serve`."""

import logging
import os
import sys
from pathlib import Path
from typing import Literal

import anyio
import click

from kalito_mcp.cli.options import settings_of, with_settings


@click.command(name="serve")
@with_settings
@click.option(
    "--transport",
    type=click.Choice(["stdio", "http", "sse"]),
    default="stdio",
    show_default=True,
    help="stdio for a host that starts it; http (at /mcp) or sse (at /sse, deprecated by MCP) on this machine.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Loopback only.")
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True)
def command(
    database: Path | None, config: Path | None, transport: Literal["stdio", "http", "sse"], host: str, port: int
) -> None:
    """Serve the memory to an MCP host."""
    from kalito_mcp.server.build import build_server  # noqa: PLC0415 - importing mcp takes a second
    from kalito_mcp.server.http import check_address, serve_http  # noqa: PLC0415
    from kalito_mcp.server.stdio import serve_stdio  # noqa: PLC0415
    from kalito_mcp.wiring import open_memory  # noqa: PLC0415

    settings = settings_of(database, config)
    if transport != "stdio":
        check_address(host)
    logging.basicConfig(
        stream=sys.stderr,
        level=os.environ.get("KALITO_LOG", "WARNING").upper(),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        force=True,
    )
    # The environment names the session of the host that started us: over HTTP, others come too.
    host_session = os.environ.get("KALITO_SESSION") or os.environ.get("CLAUDE_CODE_SESSION_ID")
    server = build_server(
        lambda: open_memory(settings=settings), default_session=host_session if transport == "stdio" else None
    )

    async def run() -> None:
        async with server.opened.open():
            if transport == "stdio":
                await serve_stdio(server)
            else:
                await serve_http(server, transport, host=host, port=port)

    anyio.run(run)
