"""`kalito-mcp serve`."""

import gc
import importlib
import logging
import os
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import click

from kalito_mcp.bridge.connection import read_connection
from kalito_mcp.cli.options import settings_of, with_settings
from kalito_mcp.config.sources import read_sources
from kalito_mcp.domain.scope import PERSONAL
from kalito_mcp.errors import ConfigurationError, KalitoError
from kalito_mcp.server.first_answers import switches

if TYPE_CHECKING:
    from kalito_mcp.bridge.connection import Connection
    from kalito_mcp.capture.listener import Listener
    from kalito_mcp.config.settings import Settings
    from kalito_mcp.memory import Memory
    from kalito_mcp.runtime.database_address import LocalFiles
    from kalito_mcp.server.build import KalitoServer
    from kalito_mcp.server.first_answers import Begun

_SWITCH_S: Final = 0.0005
"""How long a thread that reads a long text may hold the interpreter while calls wait. Python's default is ten times as
long, and a search changes threads some ten times."""
_LISTEN_AGAIN_S: Final = 5.0
"""How long after the memory could not be opened, or hooks could not be listened to, that is tried again."""
_CALLS_FIRST_S: Final = 0.1
"""How long the model waits for calls that came while the memory was being opened."""
_LAST_SECONDS: Final = 3.0
"""How long the process may take to end after it stopped serving."""


@click.command(name="serve")
@with_settings
@click.option(
    "--transport",
    type=click.Choice(["stdio", "http", "sse"]),
    default="stdio",
    show_default=True,
    help="stdio for a host that starts it; http serves MCP at /mcp. sse, at /sse, is deprecated by MCP: for old hosts "
    "only.",
)
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="The address to listen on. 0.0.0.0: other machines, too."
)
@click.option(
    "--without-login",
    is_flag=True,
    help="Over HTTP: let every program on this machine call without a token. Only on a loopback address.",
)
@click.option(
    "--project",
    help="The folder or name of the project that the host works in. Default: $KALITO_PROJECT, or the folder that the "
    "host names, or the repository that it starts this command in; over HTTP none.",
)
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="0 picks a free one.")
@click.pass_obj
def command(
    begun: "Begun | None",
    database: str | None,
    config: Path | None,
    transport: Literal["stdio", "http", "sse"],
    host: str,
    without_login: bool,
    project: str | None,
    port: int,
) -> None:
    """Serve the memory to an MCP host."""
    if transport == "stdio":
        _serve_stdio(database, config, project, begun)
        return
    from kalito_mcp.safety.addresses import LOOPBACK_HOSTS  # noqa: PLC0415 - a host over stdio needs none of it
    from kalito_mcp.server.http_server import check_address  # noqa: PLC0415 - as above

    check_address(host, has_login=not without_login)
    start_logging()
    settings = settings_of(database, config)

    async def serve(server: "KalitoServer") -> None:
        first = None if without_login else await _first_token(await server.opened.memory())
        is_open = host not in LOOPBACK_HOSTS
        announce = partial(_announce, first_token=first, is_deprecated=transport == "sse", is_open=is_open)
        await serve_over_http(
            *(server, settings, announce),
            config=config,
            transport=transport,
            host=host,
            port=port,
            without_login=without_login,
        )

    run_server(serve, database, config, project, settings=settings)


def _serve_stdio(database: str | None, config: Path | None, project: str | None, begun: "Begun | None") -> None:
    start_logging()
    if (connection := _home_of(database, config)) is not None:
        from kalito_mcp.cli.bridge import serve_bridge  # noqa: PLC0415 - most memories are on this machine

        sys.setswitchinterval(_SWITCH_S)
        anyio.run(serve_bridge, database, config, project, connection, begun, _leave_trace)
        return

    async def serve(server: "KalitoServer") -> None:
        from kalito_mcp.server.stdio import serve_stdio  # noqa: PLC0415 - imports mcp

        await serve_stdio(server, begun)

    run_server(serve, database, config, project)


def run_server(
    serve: "Callable[[KalitoServer], Awaitable[None]]",
    database: str | None,
    config: Path | None,
    project: str | None,
    *,
    settings: "Settings | None" = None,
) -> None:
    """Build the server of this memory, and run it until `serve` returns. Without `settings` it is the server of the one
    host that has started this process."""
    from kalito_mcp.server.build import build_server  # noqa: PLC0415 - importing mcp takes a second
    from kalito_mcp.server.telemetry import start_telemetry  # noqa: PLC0415 - the same

    sys.setswitchinterval(_SWITCH_S)
    # The environment names the session of the host that started us. Over HTTP, other hosts connect too.
    host_session = os.environ.get("KALITO_SESSION") or os.environ.get("CLAUDE_CODE_SESSION_ID")
    reported: list[str] = []
    server = build_server(
        lambda: _opened(database, config, reported, project, is_hosted=settings is None),
        default_session=host_session if settings is None else None,
        public_url=settings.http.public_url if settings else "",
        **switches(os.environ),
    )
    server.opened.is_session_fixed = bool(os.environ.get("KALITO_SESSION"))
    start_telemetry(os.environ, server.tool_names)

    async def run() -> None:
        async with server.opened.open(), _listening(server, database, config):
            await serve(server)

    try:
        anyio.run(run)
    except KalitoError as error:
        if str(error) not in reported[-1:]:
            raise
        sys.exit(1)
    finally:
        _end_for_certain()


async def serve_over_http(
    server: "KalitoServer",
    settings: "Settings",
    announce: Callable[[str], None],
    *,
    config: Path | None,
    transport: Literal["http", "sse"] = "http",
    host: str = "127.0.0.1",
    port: int = 0,
    without_login: bool = False,
) -> None:
    """Serve until interrupted. `announce` gets the URL of MCP once it can be connected to; meanwhile `kalito-mcp open`
    finds this server. `config` is the file that the settings were read from, if one was named.

    Raises:
        ConfigurationError: the port is taken.
    """
    from kalito_mcp.cli.this_machine import ThisMachine  # noqa: PLC0415 - a host over stdio needs none of it
    from kalito_mcp.exchange.archive import archive_pieces  # noqa: PLC0415 - imports mcp
    from kalito_mcp.server.address_file import local_url, naming  # noqa: PLC0415 - the same
    from kalito_mcp.server.http_server import serve_http  # noqa: PLC0415 - imports mcp
    from kalito_mcp.server.web_app import http_app  # noqa: PLC0415 - as above

    owner = settings.owner if without_login else None
    app_on = partial(
        http_app,
        server,
        transport,
        settings.http,
        owner=owner,
        oidc=settings.oidc,
        exporter=archive_pieces,
        machine=ThisMachine(settings, config),
    )
    path = "/mcp" if transport == "http" else "/sse"
    with ExitStack() as until_end:

        def listens(url: str) -> None:
            here = local_url(host, urlsplit(url).port or 0)
            if here is not None:
                until_end.enter_context(naming(settings.database.files.http_address, here))
            announce(url)

        await serve_http(app_on, path, server=server, host=host, port=port, announce=listens)


def _home_of(database: str | None, config: Path | None) -> "Connection | None":
    """Where the memory is, if this machine is connected to another. What is wrong with that, every call says."""
    try:
        sources = read_sources(os.environ, config=config, database=database)
        return read_connection(sources.checked_database().files.home)
    except ConfigurationError:
        return None


@asynccontextmanager
async def _listening(server: "KalitoServer", database: str | None, config: Path | None) -> AsyncIterator[None]:
    """Listen to hooks during the block."""
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_listen_to_hooks, server, database, config)
            tasks.start_soon(_warm_up, server)
            yield
            tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        # The listener raises nothing, so this is what the block raised: pass it on without the group.
        raise group.exceptions[0] from group.exceptions[0].__cause__


async def _warm_up(server: "KalitoServer") -> None:
    """Load the model that a prompt would wait for, while the host is still starting. Calls that came first go first."""
    with suppress(KalitoError):  # what is wrong with the memory, every call says
        memory = await server.opened.memory()
        await anyio.sleep(_CALLS_FIRST_S)
        await memory.hooks.warm_up()


async def _listen_to_hooks(server: "KalitoServer", database: str | None, config: Path | None) -> None:
    """Take what the hooks of any host on this machine report, as soon as the memory is open. This also opens the memory
    again, if nothing else asks for it."""
    listener = None
    while True:
        with suppress(KalitoError):  # what is wrong with the memory, every call says
            files = settings_of(database, config).database.files
            if read_connection(files.home) is not None:
                return  # hooks of this machine are for its home
            listener = listener or _listener(server, files)
            listener.wait_s = (await server.opened.memory()).hooks.policy.timeout_s
            await listener.run()
        await anyio.sleep(_LISTEN_AGAIN_S)


def _listener(server: "KalitoServer", files: "LocalFiles") -> "Listener":
    """The listener for reports of hooks to this server. Until it listens, hooks put them into the spool."""
    from kalito_mcp.capture.listener import Listener  # noqa: PLC0415 - as above

    listener = Listener(files, server.capture.take)
    server.capture.heard, server.capture.keep = partial(_leave_trace, files), listener.keep
    server.capture.catch_up = listener.catch_up
    server.capture.share_in(files.conversations)
    listener.opened = server.capture.go_on_in
    return listener


def _leave_trace(files: "LocalFiles", host: str) -> None:
    """Tell `status` that this host's hooks work."""
    with suppress(OSError):
        files.trace(host).touch()


def _end_for_certain() -> None:
    """End the process even if a driver's thread does not: the process would keep the database open."""
    if any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        watchdog = threading.Timer(_LAST_SECONDS, os._exit, (1,))
        watchdog.daemon = True
        watchdog.start()


async def _first_token(memory: "Memory") -> str | None:
    """Make the first token, without which nobody could connect. Returns its text."""
    from kalito_mcp.domain.access import Permission  # noqa: PLC0415 - only HTTP needs it

    if any(not one.is_for_page for one in await memory.access.tokens()):
        return None
    return (await memory.access.create_token(Permission.ADMIN, name="first")).text


def _announce(url: str, *, first_token: str | None, is_deprecated: bool, is_open: bool) -> None:
    click.echo(f"kalito-mcp: serving at {url}", err=True)
    if is_open:
        said = "what is sent here is not encrypted: let other machines come through a proxy with TLS (docs/machines.md)"
        click.echo(f"kalito-mcp: {said}", err=True)
    if is_deprecated:
        said = "MCP has deprecated SSE and may remove it; use --transport http, which does all that this does"
        click.echo(f"kalito-mcp: {said}", err=True)
    if first_token is not None:
        click.echo(f"kalito-mcp: the first token, shown this once: {first_token}", err=True)


def start_logging() -> None:
    """Log to stderr, from the level in $KALITO_LOG. Raises ConfigurationError if it is not a level."""
    name = os.environ.get("KALITO_LOG", "")
    levels = logging.getLevelNamesMapping()
    level = levels.get(name.upper() or "WARNING")
    if level is None:
        raise ConfigurationError(f"KALITO_LOG={name!r} is not a level; use one of {', '.join(levels)}")
    logging.basicConfig(
        stream=sys.stderr,
        # Below WARNING, libraries log their data: the database driver logs the text of every message.
        level=max(level, logging.WARNING),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        force=True,
    )
    logging.getLogger("kalito").setLevel(level)


@asynccontextmanager
async def _opened(
    database: str | None, config: Path | None, reported: list[str], project: str | None, *, is_hosted: bool
) -> "AsyncIterator[Memory]":
    """Open the memory for the project, or else, if one host has started us, for the host's. The import takes a fifth of
    a second, so a thread does it while the server answers its host.

    An error is written to stderr at once, unless it was the last time, and its text added to `reported`.
    """
    wiring = await anyio.to_thread.run_sync(importlib.import_module, "kalito_mcp.wiring")
    from kalito_mcp.projects import project_of_host, working_folder  # noqa: PLC0415 - as above

    try:
        settings = settings_of(database, config)
        if read_connection(settings.database.files.home) is not None and is_hosted:  # raises if it is damaged
            raise ConfigurationError(
                "this machine was connected to another one after this server had started; restart the assistant"
            )
        named = project or os.environ.get("KALITO_PROJECT")
        if not named:
            named = project_of_host(os.environ, working_folder(), settings.projects) if is_hosted else PERSONAL
        async with wiring.open_memory(settings=settings) as memory:
            # All that is there now stays. To look it through again and again, all calls would wait for 0.1 s.
            gc.freeze()
            yield await memory.in_project(named)
    except KalitoError as error:
        if str(error) not in reported[-1:]:
            click.echo(f"kalito-mcp: {error}", err=True)
        reported.append(str(error))
        raise
