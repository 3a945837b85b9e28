"""`kalito-mcp`: the commands, and how their errors are shown."""

import errno
import importlib
import io
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kalito_mcp.cli.options import Commands
from kalito_mcp.errors import KalitoError
from kalito_mcp.version import __version__

if TYPE_CHECKING:
    from kalito_mcp.server.first_answers import Begun

# Below each heading: name, place (the module's `command` unless another is named), and the line that --help shows
# without importing it. What most people need comes first.
_GROUPS: Final = {
    "Most used": {
        "install": ("kalito_mcp.cli.hosts:install", "Connect the assistants on this machine."),
        "import": ("kalito_mcp.cli.importing", "Bring in conversations of other programs."),
        "open": ("kalito_mcp.cli.open_page", "Open the memory as a page in the browser."),
        "search": ("kalito_mcp.cli.remembering:search", "Find what was said, in any conversation."),
        "profile": ("kalito_mcp.cli.profile", "List what every conversation knows of you and your projects."),
        "pause": ("kalito_mcp.cli.switching:pause", "Remember nothing for a while."),
    },
    "Read and keep": {
        "list": ("kalito_mcp.cli.listing", "List conversations, pins or notes."),
        "read": ("kalito_mcp.cli.read", "Read a conversation, or what was said around a record."),
        "show": ("kalito_mcp.cli.records:show", "Show a record with all its fields."),
        "history": ("kalito_mcp.cli.records:history", "Show who changed a record, when and how."),
        "tasks": ("kalito_mcp.cli.records:tasks", "List open tasks."),
        "pin": ("kalito_mcp.cli.pin", "Keep a fact that every conversation begins with."),
        "remember": ("kalito_mcp.cli.remembering:remember", "Keep a note, a task, a document or a thought."),
    },
    "Correct, forget, leave out": {
        "edit": ("kalito_mcp.cli.edits:edit", "Correct a record."),
        "revert": ("kalito_mcp.cli.edits:revert", "Return a record to an earlier version."),
        "forget": ("kalito_mcp.cli.records:forget", "Hide records from every context and search."),
        "restore": ("kalito_mcp.cli.records:restore", "Bring forgotten records back."),
        "purge": ("kalito_mcp.cli.records:purge", "Erase records for good."),
        "project": ("kalito_mcp.cli.project", "List projects, and move conversations and notes between them."),
        "exclude": ("kalito_mcp.cli.switching:exclude", "Remember nothing in some folders."),
        "resume": ("kalito_mcp.cli.switching:resume", "End a pause."),
    },
    "Connect and serve": {
        "status": ("kalito_mcp.cli.hosts:status", "Show which assistants are connected."),
        "uninstall": ("kalito_mcp.cli.hosts:uninstall", "Disconnect assistants; the memory stays."),
        "serve": ("kalito_mcp.cli.serve", "Serve the memory over MCP and REST."),
        "user": ("kalito_mcp.cli.user", "Give people keys, list them, and erase a person."),
        "space": ("kalito_mcp.cli.space", "Share records with a team, or in a project."),
        "token": ("kalito_mcp.cli.token", "Create, list and revoke tokens for programs."),
        "passphrase": ("kalito_mcp.cli.passphrase", "Set the passphrase of the sign-in page."),
        "audit": ("kalito_mcp.cli.audit", "List who changed what over HTTP."),
        "connect": ("kalito_mcp.cli.connecting:connect", "Use the memory of another machine."),
        "disconnect": ("kalito_mcp.cli.connecting:disconnect", "Use the memory of this machine again."),
        "home": ("kalito_mcp.cli.connecting:home", "Show what waits for the machine that has the memory."),
    },
    "Back up, check, repair": {
        "export": ("kalito_mcp.cli.export", "Write the memory to a file, or to a folder of Markdown."),
        "backup": ("kalito_mcp.cli.backup", "Copy the database while it is in use, or put a copy back."),
        "migrate": ("kalito_mcp.cli.migrate", "Move the memory to PostgreSQL, or back to a file."),
        "stats": ("kalito_mcp.cli.stats", "Count what is in the memory."),
        "doctor": ("kalito_mcp.cli.doctor", "Check the database and each assistant's connection to it."),
        "reindex": ("kalito_mcp.cli.reindex", "Rebuild the text index and missing vectors."),
        "snapshot": ("kalito_mcp.cli.snapshot", "Save, compare and restore an agent's graph."),
        "demo": ("kalito_mcp.cli.demo.command", "Watch a conversation being remembered."),
    },
}
_COMMANDS: Final = {name: entry for group in _GROUPS.values() for name, entry in group.items()}
_CANNOT_WRITE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
_INTERRUPTED: Final = 130
"""The exit code that shells report for a command that Ctrl-C ended."""


class LazyCommands(Commands):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of use."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        if cmd_name not in _COMMANDS:
            return None
        place, _ = _COMMANDS[cmd_name]
        module, _, name = place.partition(":")
        command: click.Command = getattr(importlib.import_module(module), name or "command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands below their headings, without importing them."""
        width = max(map(len, _COMMANDS))
        for heading, group in _GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(f"{name:<{width}}", line) for name, (_, line) in group.items()])


@click.command(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kalito-mcp")
def commands() -> None:
    """Long-term memory for AI assistants: one local file, offline, over MCP.

    Add it to the assistants on this machine:  kalito-mcp install
    """


def _give_up_output() -> None:
    """Lead stdout nowhere, so that Python does not try again at the end to write what could not be written."""
    with suppress(OSError), Path(os.devnull).open("wb") as nothing:
        os.dup2(nothing.fileno(), sys.stdout.fileno())


def run(begun: "Begun | None" = None) -> None:
    """Run the command line. `serve` goes on with the connection, if one was begun.

    An error of ours is one line on stderr and exit code 1, never a traceback; so is output that cannot be
    written, such as to a full disk.
    """
    for stream in (sys.stdout, sys.stderr):
        # A pipe on Windows takes only some scripts. A letter that it cannot take is shown as \u82b1.
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")
    try:
        code = commands.main(prog_name="kalito-mcp", standalone_mode=False, obj=begun)
        sys.stdout.flush()
        sys.exit(code)
    except OSError as error:
        if error.errno not in _CANNOT_WRITE:
            raise
        _give_up_output()
        click.echo(f"kalito-mcp: cannot write the output: {error.strerror}", err=True)
        sys.exit(1)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except KalitoError as error:
        click.echo(f"kalito-mcp: {error}", err=True)
        sys.exit(1)
    except click.Abort:
        sys.exit(_INTERRUPTED)
