"""`kalito-mcp demo`: shows how a real server remembers a conversation of some seventy turns.

The words are a script (`conversation`) and the drawing is pure (`screen`). The rest is real (`show`): an MCP client
starts `kalito-mcp serve` and talks to it over stdio, as any host does. It calls no model and needs no network. It
writes to a temporary database or, in one that `--database` names, to an agent of its own.
"""

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

import click

from kalito_mcp.cli.demo import screen as draw
from kalito_mcp.cli.demo.conversation import USER_NAME

if TYPE_CHECKING:
    from kalito_mcp.cli.demo.show import Stage

_DEFAULT_BUDGET: Final = 1200
_SMALLEST_BUDGET: Final = 300
_GIVE_UP_S: Final = 60.0


@click.command(name="demo")
@click.option("--fast/--slow", default=False, help="Without pauses, or with brief ones (the default on a terminal).")
@click.option(
    "--budget",
    type=click.IntRange(min=_SMALLEST_BUDGET),
    default=_DEFAULT_BUDGET,
    show_default=True,
    help="Most tokens in a context.",
)
@click.option(
    "--database",
    type=click.Path(dir_okay=False),
    help="Keep the memory in this file instead of a temporary one.",
)
def command(*, fast: bool, budget: int, database: str | None) -> None:
    """Play a conversation through a real server, and show what it remembers."""
    started = time.monotonic()
    is_terminal = sys.stdout.isatty()
    screen = draw.screen_for(
        shutil.get_terminal_size().columns,
        is_terminal=is_terminal and os.environ.get("TERM") != "dumb",
        no_color=bool(os.environ.get("NO_COLOR")),
        encoding=sys.stdout.encoding or "utf-8",
    )
    for line in _opening(screen, budget):
        click.echo(draw.writable(screen, line), color=screen.colour)

    # These imports take a second; the reader has something to read meanwhile.
    import anyio  # noqa: PLC0415
    from mcp import MCPError  # noqa: PLC0415

    from kalito_mcp.cli.demo.client import CallRefused  # noqa: PLC0415
    from kalito_mcp.cli.demo.show import Pace, Stage  # noqa: PLC0415

    stage = Stage(screen, Pace(pauses=is_terminal and not fast, started=started), budget, keeps=database)
    with tempfile.TemporaryDirectory(prefix="kalito-demo-", ignore_cleanup_errors=True) as folder:
        log_path = Path(folder) / "server.log"
        try:
            with log_path.open("w", encoding="utf-8") as log:
                anyio.run(_perform, stage, database, Path(folder), log)
        except (OSError, MCPError, CallRefused, ExceptionGroup) as error:
            cause: BaseException = error
            while isinstance(cause, BaseExceptionGroup):
                cause = cause.exceptions[0]
            if isinstance(cause, BrokenPipeError) or not isinstance(cause, (OSError, MCPError, CallRefused)):
                raise cause from None
            click.echo(f"kalito-mcp: {_sentence(cause, log_path, is_gone=isinstance(cause, MCPError))}", err=True)
            sys.exit(1)


async def _perform(stage: "Stage", database: str | None, folder: Path, log: TextIO) -> None:
    from anyio import fail_after  # noqa: PLC0415

    from kalito_mcp.cli.demo.client import connected  # noqa: PLC0415
    from kalito_mcp.cli.demo.show import perform  # noqa: PLC0415

    with fail_after(_GIVE_UP_S):
        async with connected(str(folder / "demo.db") if database is None else database, folder, log) as client:
            await perform(client, stage)


def _opening(screen: draw.Screen, budget: int) -> list[str]:
    return [
        *draw.heading(screen, "kalito-mcp"),
        "",
        *draw.prose(
            screen,
            f"{USER_NAME} talks with her assistant on some evenings in March. Their words are a script; the memory is "
            "real. A server process, reached over MCP, writes each message to disk, summarises as it goes, and "
            f"returns what matters in at most {budget:,} tokens. No model, no network.",
        ),
    ]


def _sentence(cause: BaseException, log_path: Path, *, is_gone: bool) -> str:
    logged = [draw.one_line(line) for line in log_path.read_text("utf-8", "replace").splitlines() if line.strip()]
    if is_gone and logged:
        # A server that stopped logs why in its last line; the client only sees that it is gone.
        said = logged[-1].removeprefix("kalito-mcp: ")
    elif isinstance(cause, TimeoutError):
        said = "it did not answer in time; try again"
    else:
        said = draw.one_line(str(cause)) or type(cause).__name__
    return f"the demonstration's server failed: {said}"
