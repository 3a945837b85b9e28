"""Running a command on an opened memory: who runs it, and what its change affects."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeVar

import anyio
import click

from kalito_mcp.bridge.connection import read_connection
from kalito_mcp.cli.record_lines import derived_lines
from kalito_mcp.domain.memory_records import DELETED_AT, Editor, EditorType, MemoryRecord, changed_fields

if TYPE_CHECKING:
    from kalito_mcp.config.settings import Settings
    from kalito_mcp.memory import Memory

Result = TypeVar("Result")
_LONGEST_NAME: Final = 200
_REPEATED: Final = {"text", "name", "visibility", DELETED_AT}
"""Fields of a message that its pins and summaries repeat or follow."""


def with_memory(settings: "Settings", act: Callable[["Memory"], Awaitable[Result]]) -> Result:
    """Open the memory for `act`, and return its result."""
    from kalito_mcp.wiring import open_memory  # noqa: PLC0415 - keeps --help quick

    connection = read_connection(settings.database.files.home)
    if connection is not None:
        said = f"this is the memory on this machine; what assistants here record is at {connection.origin}"
        click.echo(f"kalito-mcp: {said}", err=True)

    async def run() -> Result:
        async with open_memory(settings=settings) as memory:
            return await act(memory)

    return anyio.run(run)


def this_person() -> Editor:
    """The editor who is logged in, with the system's name for them, if any."""
    import getpass  # noqa: PLC0415 - only edits need it

    try:
        return Editor(EditorType.HUMAN, getpass.getuser()[:_LONGEST_NAME] or None)
    except (OSError, KeyError, ImportError):
        return Editor(EditorType.HUMAN)


async def with_derived(
    memory: "Memory", record: MemoryRecord, change: Callable[[], Awaitable[Result]]
) -> tuple[Result, list[str]]:
    """Make the change. Returns its result and, if the record's words changed, lines about its pins and summaries."""
    _, summaries = await memory.records.derived_from(record.id)
    result = await change()
    after = await memory.records.get(record.id)
    if not _REPEATED & changed_fields(record.content, after.content).keys():
        return result, []
    pins, current = await memory.records.derived_from(record.id)
    # Automatic pins changed with the message, so they are not among these.
    known = {one.version_id for one in summaries}
    return result, derived_lines(record.id, pins, [one for one in current if one.version_id not in known])
