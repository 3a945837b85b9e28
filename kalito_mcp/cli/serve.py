"""`kalito-mcp serve`."""

import importlib
import logging
import os
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import anyio
import anyio.to_thread
import click

from kalito_mcp.cli.options import with_settings
from kalito_mcp.errors import ConfigurationError, KalitoError

if TYPE_CHECKING:
    from kalito_mcp.memory import Memory

_LAST_SECONDS: Final = 3.0
"""How long the process may take to end after it has served."""


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
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="0 takes a free one.")
def command(
    database: Path | None, config: Path | None, transport: Literal["stdio", "http", "sse"], host: str, port: int
) -> None:
    """Serve the memory to an MCP host."""
    from kalito_mcp.server.build import build_server  # noqa: PLC0415 - importing mcp takes a second
    from kalito_mcp.server.http import check_address, serve_http  # noqa: PLC0415
    from kalito_mcp.server.stdio import serve_stdio  # noqa: PLC0415

    if transport != "stdio":
        check_address(host)
    _configure_logging(os.environ.get("KALITO_LOG", ""))
    # The environment names the session of the host that started us: over HTTP, others come too.
    host_session = os.environ.get("KALITO_SESSION") or os.environ.get("CLAUDE_CODE_SESSION_ID")
    told: list[KalitoError] = []
    server = build_server(
        lambda: _opened(database, config, told), default_session=host_session if transport == "stdio" else None
    )

    async def run() -> None:
        async with server.opened.open():
            if transport == "stdio":
                await serve_stdio(server)
            else:
                await server.opened.memory()
                await serve_http(server, transport, host=host, port=port, announce=_announce)

    try:
        anyio.run(run)
    except KalitoError as error:
        if error not in told:
            raise
        sys.exit(1)
    finally:
        _end_for_certain()


def _end_for_certain() -> None:
    """A driver's thread that does not end would leave a process behind that keeps the database open."""
    if any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        watchdog = threading.Timer(_LAST_SECONDS, os._exit, (1,))
        watchdog.daemon = True
        watchdog.start()


def _announce(url: str) -> None:
    click.echo(f"kalito-mcp: serving at {url}", err=True)


def _configure_logging(name: str) -> None:
    levels = logging.getLevelNamesMapping()
    level = levels.get(name.upper() or "WARNING")
    if level is None:
        raise ConfigurationError(f"KALITO_LOG={name!r} is not a level; use one of {', '.join(levels)}")
    logging.basicConfig(
        stream=sys.stderr,
        # Below a warning, libraries log what they handle: the database driver every message's words.
        level=max(level, logging.WARNING),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        force=True,
    )
    logging.getLogger("kalito").setLevel(level)


@asynccontextmanager
async def _opened(database: Path | None, config: Path | None, told: list[KalitoError]) -> "AsyncIterator[Memory]":
    """The memory. Imported in a thread and opened while the server already answers its host: a fifth of a second.

    Why it cannot be opened is said on stderr at once, and added to `told`.
    """
    wiring = await anyio.to_thread.run_sync(importlib.import_module, "kalito_mcp.wiring")
    from kalito_mcp.cli.options import settings_of  # noqa: PLC0415 - imports every policy

    try:
        async with wiring.open_memory(settings=settings_of(database, config)) as memory:
            yield memory
    except KalitoError as error:
        click.echo(f"kalito-mcp: {error}", err=True)
        told.append(error)
        raise
