"""What the commands of single records share: a memory opened for one of them, who runs it, and words to a terminal."""

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
import click

from kalito_mcp.domain.memory_records import Editor, EditorType
from kalito_mcp.engine.render import as_data

if TYPE_CHECKING:
    from kalito_mcp.memory import Memory
    from kalito_mcp.settings import Settings

Result = TypeVar("Result")
_LONGEST_NAME: Final = 200


def with_memory(settings: "Settings", act: Callable[["Memory"], Awaitable[Result]]) -> Result:
    """What the act returns, with the memory opened for it. Raises as `open_memory` and the act do."""
    from kalito_mcp.wiring import open_memory  # noqa: PLC0415 - keeps --help quick

    async def run() -> Result:
        async with open_memory(settings.database, settings) as memory:
            return await act(memory)

    return anyio.run(run)


def this_person() -> Editor:
    """Who is logged in, by the name that the system has for them, if any."""
    import getpass  # noqa: PLC0415 - only who edits needs it

    try:
        return Editor(EditorType.HUMAN, getpass.getuser()[:_LONGEST_NAME] or None)
    except (OSError, KeyError, ImportError):
        return Editor(EditorType.HUMAN)


def tell(lines: Iterable[str]) -> None:
    """Print lines, with what a terminal would obey written as escapes."""
    for line in lines:
        click.echo(as_data(line))


def tell_json(values: Iterable[Mapping[str, Any]]) -> None:
    """Print one JSON object a line."""
    for value in values:
        # In ASCII: JSON's own escapes are the only ones that a program reads back.
        click.echo(json.dumps(value))
