"""`kalito-mcp edit` and `revert`: correct a record by hand, or go back to a version."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kalito_mcp.cli.options import settings_of_existing, with_assignments, with_settings
from kalito_mcp.cli.record_lines import indented, redaction_lines
from kalito_mcp.cli.running import this_person, with_derived, with_memory
from kalito_mcp.cli.terminal import tell, typed_fields
from kalito_mcp.domain.memory_records import MemoryRecord
from kalito_mcp.domain.records import short_record_id
from kalito_mcp.errors import ConfigurationError, Conflict, KalitoError, RevisionConflict

if TYPE_CHECKING:
    from kalito_mcp.memory import Memory


@click.command()
@click.argument("record_id", metavar="ID")
@click.option("--text", help="The new text; - reads it from standard input.")
@with_assignments
@click.option("--unset", multiple=True, metavar="FIELD", help="Remove an optional field.")
@click.option(
    "--revision", type=click.IntRange(min=1), metavar="N", help="Only if the record is still at this revision."
)
@with_settings
def edit(
    database: str | None,
    config: Path | None,
    record_id: str,
    text: str | None,
    assignments: tuple[str, ...],
    unset: tuple[str, ...],
    revision: int | None,
) -> None:
    """Change the record ID. Without a text or a field, its text is opened in $VISUAL or $EDITOR.

    The earlier version stays in its history. Nothing is written if somebody else edited the record meanwhile.
    """
    settings = settings_of_existing(database, config)
    changes = typed_fields(text, assignments, unset)
    record = with_memory(settings, lambda memory: memory.records.get(record_id))
    name = short_record_id(record.id)
    if revision is not None and revision > record.revision:
        raise Conflict(
            f"{name} is at revision {record.revision}, and there is no revision {revision} yet; nothing was "
            f"written. `kalito-mcp history {name}` lists its revisions"
        )
    if revision is not None and revision < record.revision:
        raise _edited_meanwhile(name, record.revision)
    is_typed = not changes
    if is_typed and (typed := _from_editor(record.text)) is not None:
        changes = {"text": typed}

    async def write(memory: "Memory") -> tuple[MemoryRecord, list[str], list[str]]:
        after, derived = await with_derived(
            memory,
            record,
            lambda: memory.update_memory(record.id, changes, expected_revision=record.revision, editor=this_person()),
        )
        return after, await memory.records.diff(record.id, record.revision, after.revision), derived

    try:
        changed, difference, derived = with_memory(settings, write) if changes else (record, [], [])
    except KalitoError as error:
        if is_typed:
            tell(["Not stored. You wrote:", *indented(changes["text"].split("\n"))])
        if isinstance(error, RevisionConflict):
            raise _edited_meanwhile(name, error.current) from None
        raise
    _tell_change(record, changed, difference, derived)
    tell(redaction_lines(changed.redacted))


@click.command()
@click.argument("record_id", metavar="ID")
@click.argument("version", type=int)
@with_settings
def revert(database: str | None, config: Path | None, record_id: str, version: int) -> None:
    """Return the record ID to the content of VERSION, as a new version. The versions in between stay."""

    async def act(memory: "Memory") -> tuple[MemoryRecord, MemoryRecord, list[str], list[str]]:
        before = await memory.records.get(record_id)
        after, derived = await with_derived(
            memory, before, lambda: memory.records.revert(record_id, version, editor=this_person())
        )
        return before, after, await memory.records.diff(after.id, before.revision, after.revision), derived

    _tell_change(*with_memory(settings_of_existing(database, config), act))


def _from_editor(text: str) -> str | None:
    """The text as it was saved in the person's editor; None if it was not saved or did not change."""
    another_way = "name an editor in $EDITOR, or give the new text with --text"
    if not sys.stdin.isatty() and not os.environ.get("VISUAL") and not os.environ.get("EDITOR"):
        raise ConfigurationError(f"there is no terminal for an editor; {another_way}")
    try:
        typed = click.edit(text)
    except (click.ClickException, ValueError) as error:
        raise ConfigurationError(f"{error}; nothing was written. To go on, {another_way}") from None
    if typed is None:
        return None
    # Click and editors add a newline at the end; click makes all line ends the same.
    plain = text.replace("\r\n", "\n")
    typed = typed if plain.endswith("\n") else typed.removesuffix("\n")
    return None if typed == plain else typed


def _edited_meanwhile(record_id: str, current: int) -> Conflict:
    return Conflict(
        f"{record_id} was edited by somebody else and is at revision {current} now; nothing was written. "
        f"`kalito-mcp history {record_id} --diff` shows what they changed; then edit again"
    )


def _tell_change(before: MemoryRecord, after: MemoryRecord, difference: Iterable[str], derived: Iterable[str]) -> None:
    is_same = before.revision == after.revision
    name = short_record_id(after.id)
    state = f"nothing changed; {name} is still" if is_same else f"{name} is now"
    tell([*difference, f"{state} at revision {after.revision}", *derived])
