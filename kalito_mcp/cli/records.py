"""`kalito-mcp show, history, tasks, forget, restore, purge`.

The person who runs them is the editor of the changes. Control characters of remembered text are escaped, in JSON as
well.
"""

import shlex
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kalito_mcp.cli.options import settings_of_existing, settings_to_read, with_settings
from kalito_mcp.cli.record_lines import edit_line, erasure_line, indented, record_lines, task_lines
from kalito_mcp.cli.running import this_person, with_derived, with_memory
from kalito_mcp.cli.subject import confirmed_session, confirmed_token, subject_request, with_subject
from kalito_mcp.cli.terminal import ask, tell, tell_json
from kalito_mcp.domain.erasing import PurgeReport
from kalito_mcp.domain.memory_records import MemoryRecord
from kalito_mcp.domain.records import short_record_id
from kalito_mcp.domain.time import last_moment
from kalito_mcp.errors import InvalidInput, RecordErased, RecordNotFound

if TYPE_CHECKING:
    from kalito_mcp.config.settings import Settings
    from kalito_mcp.memory import Memory

with_json = click.option("--json", "is_json", is_flag=True, help="JSON, one object a line, for programs.")


@click.command()
@click.argument("record_id", metavar="ID")
@click.option("--as-of", metavar="WHEN", help="As it was then: ISO 8601; a date means the end of that day.")
@click.option("--version", type=int, metavar="N", help="As it was in this version; `history` lists them.")
@with_json
@with_settings
def show(
    database: str | None, config: Path | None, record_id: str, as_of: str | None, version: int | None, is_json: bool
) -> None:
    """Show the record ID with all its fields, or all parts of a document, forgotten or not."""
    if as_of is not None and version is not None:
        raise click.UsageError("give --as-of or --version, not both")

    async def found(memory: "Memory") -> Sequence[MemoryRecord]:
        moment_ms = None if as_of is None else last_moment(as_of, "--as-of", memory.zone)
        if version is not None:
            return [await memory.records.version(record_id, version)]
        try:
            records = await memory.records.get_all(record_id)
        except RecordNotFound:
            if await memory.conversations.get(record_id) is None:
                raise
            quoted = shlex.quote(record_id)
            raise InvalidInput(f"{record_id} is a conversation; read it with: kalito-mcp read {quoted}") from None
        if moment_ms is None:
            return records
        # Parts that came later are left out. If all came later, reading the first raises the error that says so.
        then = [one for one in records if one.recorded_at <= moment_ms] or records[:1]
        return [await memory.records.as_of(one.id, moment_ms) for one in then]

    records = with_memory(settings_to_read(database, config), found)
    if is_json:
        tell_json(one.to_dict() for one in records)
        return
    for place, record in enumerate(records):
        tell(["", *record_lines(record)] if place else record_lines(record))


@click.command()
@click.argument("record_id", metavar="ID")
@click.option("--diff", "has_diff", is_flag=True, help="Also show what each edit changed, in full.")
@with_json
@with_settings
def history(database: str | None, config: Path | None, record_id: str, has_diff: bool, is_json: bool) -> None:
    """List who changed the record ID, when and how, the newest last."""

    async def found(memory: "Memory") -> list[dict[str, Any]]:
        edits = await memory.records.history(record_id)
        if has_diff:
            for before, after in pairwise(edits):
                after["diff"] = await memory.records.diff(record_id, before["version"], after["version"])
        return edits

    edits = with_memory(settings_to_read(database, config), found)
    if is_json:
        tell_json(edits)
        return
    for one in edits:
        tell([edit_line(one), *indented(one.get("diff", []))])


@click.command()
@click.argument("record_ids", metavar="[ID]...", nargs=-1)
@click.option("--session", "session_id", metavar="ID", help="Everything of this conversation.")
@with_subject
@with_settings
def forget(
    database: str | None,
    config: Path | None,
    record_ids: tuple[str, ...],
    about: str | None,
    identifier: str | None,
    agent_id: str | None,
    session_id: str | None,
    yes: bool,
) -> None:
    """Hide records, or all parts of documents, from every context and search. `restore` brings them back.

    Their words do not come back by an import or an assistant that repeats them, only if you say them again.
    """
    request = subject_request(record_ids, about, identifier, is_purge=False)
    settings = settings_of_existing(database, config)
    if session_id is not None:
        if record_ids or request is not None:
            raise click.UsageError("give --session, or IDs, or --about and --identifier")
        ids = confirmed_session(settings, session_id, is_agreed=yes)
        tell(f"forgot {short_record_id(one)}" for one in with_memory(settings, partial(_forget_all, ids)))
        return
    if request is None:
        if not record_ids:
            raise click.UsageError("give an ID, --session, --about or --identifier")
        _change_all(settings, record_ids, is_forgotten=True)
        return
    token = confirmed_token(settings, request, agent_id, is_agreed=yes)
    if token is not None:
        forgotten = with_memory(
            settings,
            lambda memory: memory.records.forget_previewed(request, token, agent_id=agent_id, editor=this_person()),
        )
        tell(f"forgot {short_record_id(one.id)}" for one in forgotten)


@click.command()
@click.argument("record_ids", metavar="ID...", nargs=-1, required=True)
@with_settings
def restore(database: str | None, config: Path | None, record_ids: tuple[str, ...]) -> None:
    """Bring forgotten records back."""
    _change_all(settings_of_existing(database, config), record_ids, is_forgotten=False)


@click.command()
@click.argument("record_ids", metavar="[ID]...", nargs=-1)
@with_subject
@with_settings
def purge(
    database: str | None,
    config: Path | None,
    record_ids: tuple[str, ...],
    about: str | None,
    identifier: str | None,
    agent_id: str | None,
    yes: bool,
) -> None:
    """Erase records for good, with their history and everything that was made from them. This cannot be undone.

    Without an ID, no record is erased; the files are cleaned of what was erased earlier.
    """
    request = subject_request(record_ids, about, identifier, is_purge=True)
    settings = settings_of_existing(database, config)
    if request is not None:
        token = confirmed_token(settings, request, agent_id, is_agreed=yes)
        if token is not None:
            _tell_erased(
                with_memory(settings, lambda memory: memory.records.purge_previewed(request, token, agent_id=agent_id))
            )
        return
    given = list(dict.fromkeys(record_ids))

    async def found(memory: "Memory") -> list[str]:
        lines: list[str] = []
        for one in given:
            try:
                records = await memory.records.get_all(one)
            except RecordErased as error:
                lines.append(str(error).partition(";")[0])
                continue
            lines.append(erasure_line(one, records, memory.zone))
            lines += [
                f"with it {erasure_line(pin.id, [pin], memory.zone)}"
                for pin in (await memory.records.derived_from(records[0].id))[0]
            ]
        return lines

    if given and not yes:
        tell(["To be erased for good, with everything that was made from it:", *indented(with_memory(settings, found))])
        ask("Erase this? It cannot be undone.", undone="nothing was erased")
    _tell_erased(with_memory(settings, lambda memory: memory.purge(given)))


def _tell_erased(report: PurgeReport) -> None:
    tell(f"erased {short_record_id(one)}" for one in report.erased)
    tell(f"rewritten without the erased text: {short_record_id(one)}" for one in report.rewritten)
    tell(f"could not clean {place}: {reason}" for place, reason in report.remaining.items())
    if not report.remaining:
        tell([f"no erased text remains in the memory's {'tables' if report.elsewhere else 'files'}"])
    tell(f"note: {one}" for one in report.elsewhere)
    if report.erased:
        tell(["copies elsewhere, such as backups of the folder, are not cleaned: delete them yourself"])


@click.command()
@click.option("--all", "is_all", is_flag=True, help="Also completed and failed tasks.")
@click.option("--done", "is_done", is_flag=True, help="Only completed and failed tasks.")
@click.option("--agent", "agent_id", default="default", show_default=True, help="Whose tasks.")
@with_json
@with_settings
def tasks(database: str | None, config: Path | None, is_all: bool, is_done: bool, agent_id: str, is_json: bool) -> None:
    """List the open tasks, the earliest due first. `edit ID --set status=completed` completes one."""
    if is_all and is_done:
        raise click.UsageError("give --all or --done, not both")

    async def read(memory: "Memory") -> tuple[datetime, list[MemoryRecord]]:
        return memory.zone.local(memory.place.clock.now_ms()), await memory.records.tasks(
            agent_id=agent_id, is_done=None if is_all else is_done
        )

    now, found = with_memory(settings_to_read(database, config), read)
    if is_json:
        tell_json(one.to_dict() for one in found)
    elif found:
        tell(task_lines(found, now))
    else:
        tell([f"agent {agent_id!r} has no {'' if is_all else 'finished ' if is_done else 'open '}tasks"])


async def _forget_all(record_ids: Sequence[str], memory: "Memory") -> list[str]:
    """Forget the records, and return the ids of those that were not forgotten along with an earlier one."""
    editor = this_person()
    return [
        one.id
        for record_id in record_ids
        if not (await memory.records.get(record_id)).is_deleted
        for one in await memory.forget(record_id, editor=editor)
    ]


def _change_all(settings: "Settings", record_ids: Iterable[str], *, is_forgotten: bool) -> None:
    """Forget or restore the records; change none if one of the ids is unknown."""
    did, already = ("forgot", "is forgotten already") if is_forgotten else ("restored", "is not forgotten")

    async def act(memory: "Memory") -> list[str]:
        found = {given: await memory.records.get_all(given) for given in record_ids}
        change = memory.forget if is_forgotten else memory.restore
        lines: list[str] = []
        for given, before in found.items():
            after, derived = await with_derived(memory, before[0], partial(change, given, editor=this_person()))
            revisions = {one.id: one.revision for one in before}
            for one in after:
                name = short_record_id(one.id)
                lines.append(f"{name} {already}" if one.revision == revisions.get(one.id) else f"{did} {name}")
            # A restored message agrees with its pins again: there is nothing to report.
            lines += derived if is_forgotten else []
        return lines

    tell(with_memory(settings, act))
