"""What the commands of single records share: a memory opened for one of them, who runs it and what they typed, what a
change took along, and words to a terminal."""

import json
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
import click

from kalito_mcp.cli.record_lines import echo_lines
from kalito_mcp.domain.memory_records import DELETED_AT, Editor, EditorType, MemoryRecord, changed_fields
from kalito_mcp.errors import Conflict, InvalidInput
from kalito_mcp.safety.escaping import as_data

if TYPE_CHECKING:
    from kalito_mcp.memory import Memory
    from kalito_mcp.settings import Settings

Result = TypeVar("Result")
_LONGEST_NAME: Final = 200
_REPEATED: Final = {"text", "name", "visibility", DELETED_AT}
"""Fields of a message that what was made of it repeats, or is hidden with."""


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


def typed_fields(text: str | None, assignments: Sequence[str], unset: Sequence[str] = ()) -> dict[str, Any]:
    """What a text (`-` is standard input), --set and --unset say together; None for what is to be taken away.

    Raises:
        click.UsageError: an assignment without a field or a value, or a field given twice.
    """
    given: list[tuple[str, Any]] = [] if text is None else [("text", _standard_input() if text == "-" else text)]
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not name or not equals:
            raise click.UsageError(f"--set takes FIELD=VALUE, such as --set status=completed, not {assignment!r}")
        given.append((name, _value(value)))
    given += [(name, None) for name in unset]
    fields = dict(given)
    if len(fields) < len(given):
        raise click.UsageError("a field is given twice; give each once")
    return fields


def _value(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        return json.loads(text, parse_constant=refuse)  # NaN and Infinity are words, too
    except (ValueError, RecursionError):
        return text


def _standard_input() -> str:
    try:
        return sys.stdin.read().removesuffix("\n")
    except UnicodeDecodeError:
        raise InvalidInput("standard input is not UTF-8; nothing was written") from None


def ask(question: str, *, is_left: str) -> None:
    """Go on only where the person says yes; `is_left` says what stays undone.

    Raises:
        Conflict: there is no terminal to ask on. click.Abort: they do not say yes.
    """
    if not sys.stdin.isatty():
        raise Conflict(f"{is_left}: there is no terminal to ask on; add --yes if it is meant")
    click.confirm(question, abort=True)


async def with_echoes(
    memory: "Memory", record: MemoryRecord, change: Callable[[], Awaitable[Result]]
) -> tuple[Result, list[str]]:
    """What the change of the record returns, and what else speaks of the record, as lines: none unless it is a message
    that reads otherwise now."""
    _, summaries = await memory.derived_from(record.id)
    result = await change()
    after = await memory.record(record.id)
    if not _REPEATED & changed_fields(record.content, after.content).keys():
        return result, []
    pins, now = await memory.derived_from(record.id)
    # Those that the memory found by itself have followed the message: they say what it says now.
    known = {one.version_id for one in summaries}
    return result, echo_lines(record.id, pins, [one for one in now if one.version_id not in known])


def tell(lines: Iterable[str]) -> None:
    """Print lines, with what a terminal would obey written as escapes."""
    for line in lines:
        click.echo(as_data(line))


def tell_json(values: Iterable[Mapping[str, Any]]) -> None:
    """Print one JSON object a line."""
    for value in values:
        # In ASCII: JSON's own escapes are the only ones that a program reads back.
        click.echo(json.dumps(value))
