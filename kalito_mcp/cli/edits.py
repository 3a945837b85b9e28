"""`kalito-mcp edit` and `revert`: what a person corrects, by hand or back to a version."""

import json
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kalito_mcp.cli.opened import tell, this_person, with_memory
from kalito_mcp.cli.options import settings_of_one_that_exists, with_settings
from kalito_mcp.cli.record_lines import indented
from kalito_mcp.domain.memory_records import MemoryRecord
from kalito_mcp.errors import ConfigurationError, Conflict, InvalidInput, KalitoError, RevisionConflict

if TYPE_CHECKING:
    from kalito_mcp.memory import Memory


@click.command()
@click.argument("record_id", metavar="ID")
@click.option("--text", help="The new text; - reads it from standard input.")
@click.option("--set", "assignments", multiple=True, metavar="FIELD=VALUE", help="VALUE is JSON, else taken as text.")
@click.option("--unset", multiple=True, metavar="FIELD", help="Take an optional field away.")
@click.option("--revision", type=int, metavar="N", help="Only if the record is still at this revision.")
@with_settings
def edit(
    database: Path | None,
    config: Path | None,
    record_id: str,
    text: str | None,
    assignments: tuple[str, ...],
    unset: tuple[str, ...],
    revision: int | None,
) -> None:
    """Change the record ID. Without a text or a field, its text is opened in $VISUAL or $EDITOR.

    The version before stays in its history. Nothing is written where somebody else has edited it meanwhile.
    """
    settings = settings_of_one_that_exists(database, config)
    changes = _changes(text, assignments, unset)
    record = with_memory(settings, lambda memory: memory.record(record_id))
    if revision is not None and revision != record.revision:
        raise _edited_meanwhile(record.id, record.revision)
    is_typed = not changes
    if is_typed and (typed := _from_editor(record.text)) is not None:
        changes = {"text": typed}

    async def write(memory: "Memory") -> tuple[MemoryRecord, list[str]]:
        changed = await memory.update_memory(
            record.id, changes, expected_revision=record.revision, editor=this_person()
        )
        return changed, await memory.diff(record.id, record.revision, changed.revision)

    try:
        changed, difference = with_memory(settings, write) if changes else (record, [])
    except KalitoError as error:
        if is_typed:
            tell(["Not kept. You wrote:", *indented(changes["text"].split("\n"))])
        if isinstance(error, RevisionConflict):
            raise _edited_meanwhile(record.id, error.current) from None
        raise
    _tell_change(record, changed, difference)


@click.command()
@click.argument("record_id", metavar="ID")
@click.argument("version", type=int)
@with_settings
def revert(database: Path | None, config: Path | None, record_id: str, version: int) -> None:
    """Give the record ID the content of VERSION again, as a new version: nothing in between is lost."""

    async def act(memory: "Memory") -> tuple[MemoryRecord, MemoryRecord, list[str]]:
        before = await memory.record(record_id)
        after = await memory.revert(record_id, version, editor=this_person())
        return before, after, await memory.diff(after.id, before.revision, after.revision)

    _tell_change(*with_memory(settings_of_one_that_exists(database, config), act))


def _changes(text: str | None, assignments: Sequence[str], unset: Sequence[str]) -> dict[str, Any]:
    """What --text, --set and --unset say together."""
    given: list[tuple[str, Any]] = [] if text is None else [("text", _standard_input() if text == "-" else text)]
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not name or not equals:
            raise click.UsageError(f"--set takes FIELD=VALUE, such as --set status=completed, not {assignment!r}")
        given.append((name, _value(value)))
    given += [(name, None) for name in unset]
    changes = dict(given)
    if len(changes) < len(given):
        raise click.UsageError("a field is given twice; give each once")
    return changes


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


def _from_editor(text: str) -> str | None:
    """The text as it was saved in the person's editor; None where it was not saved, or is the same."""
    another_way = "name an editor in $EDITOR, or give the new text with --text"
    if not sys.stdin.isatty() and not os.environ.get("VISUAL") and not os.environ.get("EDITOR"):
        raise ConfigurationError(f"there is no terminal for an editor; {another_way}")
    try:
        typed = click.edit(text)
    except (click.ClickException, ValueError) as error:
        raise ConfigurationError(f"{error}; nothing was written. To go on, {another_way}") from None
    if typed is None:
        return None
    # Editors end the last line, and so does click before them; line ends are all written in one way.
    plain = text.replace("\r\n", "\n")
    typed = typed if plain.endswith("\n") else typed.removesuffix("\n")
    return None if typed == plain else typed


def _edited_meanwhile(record_id: str, current: int) -> Conflict:
    return Conflict(
        f"{record_id} was edited by somebody else and is at revision {current} now; nothing was written. "
        f"`kalito-mcp history {record_id} --diff` shows what they changed; then edit again"
    )


def _tell_change(before: MemoryRecord, after: MemoryRecord, difference: Iterable[str]) -> None:
    is_same = before.revision == after.revision
    state = f"nothing changed; {after.id} stays" if is_same else f"{after.id} is now"
    tell([*difference, f"{state} at revision {after.revision}"])
