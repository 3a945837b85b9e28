"""`kalito-mcp connect`, `disconnect` and `home`: a memory on another machine."""

import os
import sys
from typing import Final

import anyio
import click

from kalito_mcp.bridge.answers import Answers
from kalito_mcp.bridge.connection import (
    NO_CONNECTION,
    TOKEN_VARIABLE,
    Connection,
    checked_token,
    connection_to,
    read_token,
    remove_connection,
    write_connection,
)
from kalito_mcp.bridge.outbox import Entry, Outbox
from kalito_mcp.cli.home_lines import checked, entry_line, home_lines, is_connected, leaving_lines
from kalito_mcp.cli.hosts import Further, written_into
from kalito_mcp.cli.terminal import ask, tell
from kalito_mcp.config.sources import read_sources
from kalito_mcp.errors import ConfigurationError, InvalidInput
from kalito_mcp.runtime.database_address import LocalFiles
from kalito_mcp.text.plurals import plural

_WITHIN_S: Final = 20.0
_ALL: Final = "all"


@click.command(name="connect")
@click.argument("url")
@click.argument("names", metavar="[HOST...|all]", nargs=-1)
@click.option("--plain-http", "is_plain", is_flag=True, help="Allow http to a private address such as 192.168.1.20.")
@click.option("--dry-run", "is_dry_run", is_flag=True, help="Ask the home, show what would change, and write nothing.")
@click.option("--yes", "-y", "is_agreed", is_flag=True, help="Do not ask before writing.")
@click.option("--no-hooks", "has_no_hooks", is_flag=True, help="Only the tools: the assistant has to call them itself.")
def connect(
    url: str, names: tuple[str, ...], *, is_plain: bool, is_dry_run: bool, is_agreed: bool, has_no_hooks: bool
) -> None:
    """Use the memory of the kalito server at URL on this machine.

    Make a token there with `kalito-mcp token create`. It is asked for, or read from standard input or from
    $KALITO_HOME_TOKEN, and kept in a file that only you can read. Then the assistants on this machine get kalito as
    with `kalito-mcp install`: each change is shown and asked. `kalito-mcp disconnect` ends it.
    """
    database = read_sources(os.environ).checked_database()
    connection = connection_to(url, is_plain=is_plain)
    files = database.files
    token = _token(files, connection)
    fault = anyio.run(_checked_in_time, connection, token)
    if fault is not None:
        hint = "; is `kalito-mcp serve --transport http` running there?" if fault.startswith(NO_CONNECTION) else "."
        raise ConfigurationError(f"{connection.url} cannot be the home: {fault}{hint} Nothing was written")
    tell([f"{connection.url} answers"])
    folder = files.home
    state = "changed" if folder.exists() else "new"
    shown = [f"  {folder} ({state}): where the home is, and the token, readable by you alone"]
    if database.exists():
        shown.append(
            f"  {database} stays as it is, and is not used while this machine is connected; a home that is empty "
            "takes it along: `kalito-mcp export memory.jsonl` here, `kalito-mcp import memory.jsonl` there"
        )
    waiting = Outbox(folder).count()
    if waiting:
        shown.append(f"  {plural(waiting, 'earlier call')} will be delivered there")
    written_into(
        names,
        is_dry_run=is_dry_run,
        is_agreed=is_agreed,
        has_no_hooks=has_no_hooks,
        further=Further(tuple(shown), lambda: _write(files, connection, token)),
    )


@click.command(name="disconnect")
@click.option("--yes", "-y", "is_agreed", is_flag=True, help="Do not ask.")
def disconnect(*, is_agreed: bool) -> None:
    """Use the memory on this machine again. The assistants keep their entries.

    The token is deleted here; `kalito-mcp token revoke` on the home makes it worthless. Restart the assistants.
    """
    database = read_sources(os.environ).checked_database()
    if not is_connected(database.files):
        tell(["this machine is not connected"])
        return
    tell(leaving_lines(database.files))
    if not is_agreed:
        ask("Leave the home?", undone="nothing was changed")
    remove_connection(database.files.home)
    tell([f"this machine uses {database} again; restart the assistants"])


@click.command(name="home")
@click.option("--retry", metavar="ID|all", help="Let a refused call wait again.")
@click.option("--discard", metavar="ID|all", help="Delete a refused call for good.")
@click.option(
    "--erase-answers", "is_erased", is_flag=True, help="Delete the answers that are kept for when it is away."
)
def home(*, retry: str | None, discard: str | None, is_erased: bool) -> None:
    """Show where the memory of this machine is, what waits for it, and what it refused. The exit code is 1 if
    something is wrong."""
    files = read_sources(os.environ).checked_database().files
    outbox, answers = Outbox(files.home), Answers(files.answers)
    if is_erased:
        tell([f"{plural(answers.count(), 'answer')} deleted"])
        answers.clear()
        return
    if retry is not None or discard is not None:
        for entry in _chosen(outbox, retry or discard or ""):
            if retry is not None:
                outbox.send_again(entry)
                tell([f"{entry.id} waits again"])
            else:
                outbox.remove(entry)
                tell([f"{entry.id} deleted"])
        return
    lines, is_well = home_lines(files)
    tell(lines or ["the memory of this machine is on this machine; `kalito-mcp connect URL` uses another one"])
    tell([f"  waits: {entry_line(entry)}" for entry in outbox.waiting()])
    tell([f"  refused: {entry_line(entry)}" for entry in outbox.refused()])
    if answers.count():
        tell([f"{plural(answers.count(), 'answer')} kept for when it is away; --erase-answers deletes them"])
    if not is_well:
        sys.exit(1)


def _write(files: LocalFiles, connection: Connection, token: str) -> None:
    if token != _token_of_before(files, connection):
        # They may be of another owner, or of more than this token reaches.
        Answers(files.answers).clear()
    write_connection(files.home, connection, token)
    tell([f"this machine is connected to {connection.url}; restart the assistants"])


def _token(files: LocalFiles, connection: Connection) -> str:
    """The token: from the environment, or what is piped in, or typed unseen. Enter keeps the present one."""
    given = os.environ.get(TOKEN_VARIABLE)
    if given:
        return checked_token(given)
    before = _token_of_before(files, connection)
    if not sys.stdin.isatty():
        piped = sys.stdin.readline()
        if piped.strip() or before is None:
            return checked_token(piped)
        return before
    said = " (Enter: keep the present one)" if before else ""
    typed = click.prompt(
        f"Token for {connection.origin}{said}", hide_input=True, default=before or "", show_default=False
    )
    return checked_token(typed)


def _token_of_before(files: LocalFiles, connection: Connection) -> str | None:
    """The token that this machine has for the same origin, if any."""
    try:
        return read_token(files.home, {}, connection.origin)
    except ConfigurationError:
        return None


async def _checked_in_time(connection: Connection, token: str) -> str | None:
    with anyio.move_on_after(_WITHIN_S):
        return await checked(connection, token)
    return f"no, not within {_WITHIN_S:g} s"


def _chosen(outbox: Outbox, name: str) -> list[Entry]:
    found = [entry for entry in outbox.refused() if name in (_ALL, entry.id)]
    if not found and name != _ALL:
        raise InvalidInput(f"no refused call {name!r}; `kalito-mcp home` lists them")
    return found
