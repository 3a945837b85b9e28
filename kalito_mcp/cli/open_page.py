"""`kalito-mcp open`: the memory as a page in the browser."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import click

from kalito_mcp.bridge.connection import read_connection
from kalito_mcp.cli.options import settings_of, with_settings
from kalito_mcp.cli.running import with_memory
from kalito_mcp.cli.serve import run_server, serve_over_http, start_logging

if TYPE_CHECKING:
    from kalito_mcp.config.settings import Settings
    from kalito_mcp.memory import Memory
    from kalito_mcp.server.build import KalitoServer


@click.command(name="open")
@click.option("--no-browser", "is_printed", is_flag=True, help="Print the link instead of opening it.")
@with_settings
def command(database: str | None, config: Path | None, *, is_printed: bool) -> None:
    """Open the memory as a page in the browser.

    The link signs one browser in, within a minute. If no server of this memory runs on this machine (`kalito-mcp serve
    --transport http`), this command is one until Ctrl-C.
    """
    from kalito_mcp.server.address_file import running_server  # noqa: PLC0415 - keeps --help quick

    settings = settings_of(database, config)
    connection = read_connection(settings.database.files.home)
    if connection is not None:
        click.echo(f"the memory of this machine is at {connection.origin}; open that address in a browser")
        return
    found = running_server(settings.database.files.http_address)
    if found is not None:
        _show(found, with_memory(settings, _link), is_printed=is_printed)
        return
    start_logging()
    run_server(partial(_serve, settings, config, is_printed=is_printed), database, config, None, settings=settings)


async def _serve(settings: "Settings", config: Path | None, server: "KalitoServer", *, is_printed: bool) -> None:
    """Serve on a free port until interrupted, and show the page."""
    async with anyio.create_task_group() as tasks:

        async def show(url: str) -> None:
            link = await _link(await server.opened.memory())
            # A browser in the terminal lasts until the person leaves it.
            show_link = partial(_show, url.removesuffix("/mcp"), link, is_printed=is_printed)
            await anyio.to_thread.run_sync(show_link, abandon_on_cancel=True)

        def announce(url: str) -> None:
            click.echo("kalito-mcp: serving the page until Ctrl-C", err=True)
            tasks.start_soon(show, url)

        await serve_over_http(server, settings, announce, config=config)
        tasks.cancel_scope.cancel()


async def _link(memory: "Memory") -> str:
    return await memory.access.pages.link()


def _show(url: str, code: str, *, is_printed: bool) -> None:
    """Open the page, or print the link to it."""
    import webbrowser  # noqa: PLC0415 - keeps --help quick

    link = f"{url}/enter/{code}"
    if not is_printed and webbrowser.open(link):
        click.echo(f"kalito-mcp: opened {url}", err=True)
        return
    if not is_printed:
        click.echo(
            "kalito-mcp: no browser can be opened here; open this link, which works once and for a minute", err=True
        )
    click.echo(link)
