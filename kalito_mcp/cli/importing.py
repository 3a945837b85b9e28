"""`kalito-mcp import`: conversations that other programs have kept."""

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
import click

from kalito_mcp.cli.options import settings_of, with_settings
from kalito_mcp.cli.terminal import tell
from kalito_mcp.domain.wording import did_you_mean
from kalito_mcp.exchange.programs import EXPORTS, SOURCES
from kalito_mcp.text.plurals import plural
from kalito_mcp.text.times.expressions import moment_in_words

if TYPE_CHECKING:
    from kalito_mcp.config.settings import Settings
    from kalito_mcp.exchange.conversation import Source
    from kalito_mcp.exchange.importer import Found, Report
    from kalito_mcp.memory import Memory

_INTERRUPTED: Final = 130
_REDRAWN_S: Final = 0.2
_SETTLING_S: Final = 10.0
"""For pins and summaries, after all messages are stored. What is not done then stays owed."""
_MOST_NAMED: Final = 10
_MB: Final = 1_000_000
_Files = dict[str, "list[Found]"]


@click.command(name="import", epilog=f"SOURCE is one of {', '.join(SOURCES)}.")
@click.argument("source", required=False, metavar="[SOURCE|ARCHIVE]")
@click.argument("path", required=False, type=click.Path(exists=True, path_type=Path))
@click.option("--since", metavar="WHEN", help="Only messages from then on: 2026-03-04, 30d (days ago), 'last March'.")
@click.option("--dry-run", "is_dry_run", is_flag=True, help="Only say what is there. Nothing is written.")
@with_settings
def command(
    database: str | None,
    config: Path | None,
    source: str | None,
    path: Path | None,
    since: str | None,
    is_dry_run: bool,
) -> None:
    """Import the conversations of other programs: of all that are found on this machine, or of SOURCE.

    PATH is a file or folder of that source; an export needs one. You can stop it at any time: the next run goes on.
    Running it again imports what is new. A conversation that was closed here goes on as NAME~2; one that was erased
    here is left alone.

    An ARCHIVE, which `kalito-mcp export` wrote, is restored into an empty database.
    """
    if source is not None and source not in SOURCES:
        _restore(database, config, source, has_more=path is not None or since is not None or is_dry_run)
        return
    if source in EXPORTS and path is None:
        example = f"kalito-mcp import {source} {EXPORTS[source]}"
        raise click.UsageError(f"{SOURCES[source].title} is imported from an export; name its file: `{example}`")
    chosen = list(SOURCES.values()) if source is None else [SOURCES[source]]
    settings = settings_of(database, config)
    now_ms = time.time_ns() // 1_000_000
    zone = settings.time.zone_of_user(os.environ.get("TZ"))
    since_ms = None if since is None else moment_in_words(since, "since", now_ms, is_last=False, zone=zone)
    _import(settings, chosen, path, since_ms, is_dry_run=is_dry_run)


def import_of(names: "Sequence[str]", *, is_dry_run: bool) -> None:
    """Import what these sources have on this machine, as `kalito-mcp import` does. Names of no source are left out.

    Ends the command with an error if it is interrupted.
    """
    chosen = [SOURCES[name] for name in names if name in SOURCES]
    if chosen:
        _import(settings_of(None, None), chosen, None, None, is_dry_run=is_dry_run)


def _import(
    settings: "Settings",
    chosen: "Sequence[Source]",
    path: Path | None,
    since_ms: int | None,
    *,
    is_dry_run: bool,
) -> None:
    """Import, and tell what was found, what was imported and what was not.

    Ends the command with an error if it is interrupted, and if nothing of a file that was named could be read.
    """
    files = _found(chosen, path)
    _tell_found(chosen, files, path)
    if not files:
        return
    report, made, is_over = _imported(settings, files, since_ms, is_dry_run=is_dry_run)
    tell([*_report_lines(report, is_dry_run=is_dry_run), *made])
    if not is_over:
        tell(["stopped; run it again to go on"])
        sys.exit(_INTERRUPTED)
    if path is not None and path.is_file() and not (report.found or report.unchanged_files or report.gone_sessions):
        _tell_found(chosen, {}, path)
        sys.exit(1)


def _restore(database: str | None, config: Path | None, named: str, *, has_more: bool) -> None:
    """Restore an archive."""
    from kalito_mcp.cli.running import with_memory  # noqa: PLC0415 - keeps --help quick
    from kalito_mcp.exchange.archive import is_archive, restore_archive  # noqa: PLC0415 - as above

    path = Path(named)
    if not path.exists():
        raise click.BadParameter(f"{named!r} is no source and no file{did_you_mean(named, list(SOURCES))}")
    if not is_archive(path):
        raise click.BadParameter(f"{named} is no archive of `kalito-mcp export`; name the SOURCE that wrote it first")
    if has_more:
        raise click.UsageError("an archive is restored as a whole; leave out the other arguments")
    report = with_memory(settings_of(database, config), lambda memory: restore_archive(memory, path))
    tell([f"restored {plural(sum(report.entries.values()), 'entry')}; digest {report.digest}"])


def _found(chosen: "Sequence[Source]", path: Path | None) -> _Files:
    """The files of each source that has any."""
    from kalito_mcp.exchange.conversation import Home  # noqa: PLC0415 - keeps --help quick
    from kalito_mcp.exchange.importer import found_in  # noqa: PLC0415 - keeps --help quick

    home = Home.current()
    files: _Files = {}
    for source in chosen:
        if path is None:
            found = found_in(source, source.find(home), home=home.folder)
        elif path.is_dir():
            found = found_in(source, source.within(path), folder=path)
        else:
            found = found_in(source, [path])
        if found:
            files[source.name] = found
    return files


def _tell_found(chosen: "Sequence[Source]", files: _Files, path: Path | None) -> None:
    for source in chosen:
        if source.name in files:
            found = files[source.name]
            size = sum(one.size for one in found) / _MB
            tell([f"{source.title}: {plural(len(found), 'file')}, {size:.1f} MB"])
    if not files:
        where = "on this machine" if path is None else f"in {path}"
        names = ", ".join(source.title for source in chosen)
        tell([f"nothing found {where} of {names}"])


def _imported(
    settings: "Settings", files: _Files, since_ms: int | None, *, is_dry_run: bool
) -> "tuple[Report, list[str], bool]":
    """The import's report, lines about it, and whether it ran to its end."""
    from kalito_mcp.capture.listener import take_waiting  # noqa: PLC0415 - keeps --help quick
    from kalito_mcp.exchange.importer import Importer  # noqa: PLC0415 - keeps --help quick
    from kalito_mcp.wiring import open_memory  # noqa: PLC0415 - keeps --help quick

    line = ProgressLine(sum(one.size for found in files.values() for one in found))
    importer = Importer(None, since=since_ms, progress=line)
    made: list[str] = []

    async def run() -> None:
        if is_dry_run:
            for found in files.values():
                await importer.run(found)
            return
        async with open_memory(settings=settings) as memory:
            # Hook reports of these conversations come first, so that each message is recognised.
            await take_waiting(settings.database.files, memory)
            importer.memory = memory
            for found in files.values():
                await importer.run(found)
            line.say("looking for what is to be kept in sight")
            made.extend(await _made(memory, is_new=importer.report.messages > 0))

    try:
        anyio.run(run)
    except KeyboardInterrupt:
        return importer.report, made, False
    finally:
        line.clear()
    return importer.report, made, True


async def _made(memory: "Memory", *, is_new: bool) -> list[str]:
    """Give the background work that messages owe its time. Lines on what there is now, if there are new messages, and
    on what is left to do."""
    with anyio.move_on_after(_SETTLING_S) as waited:
        await memory.settled(with_vectors=False)
    lines: list[str] = []
    if is_new:
        totals = await memory.conversations.totals()
        there = f"{plural(totals['pins'], 'pin')} and {plural(totals['summaries'], 'summary')}"
        lines.append(f"the memory has {there} now; `kalito-mcp profile` lists what every conversation begins with")
    if waited.cancelled_caught:
        lines.append("not all is read for pins and summaries yet: that goes on while an assistant is open")
    return lines


def _report_lines(report: "Report", *, is_dry_run: bool) -> list[str]:
    verb = "found" if is_dry_run else "imported"
    lines = [f"{verb} {plural(report.messages, 'message')} in {plural(report.sessions, 'session')}"]
    if report.notes:
        lines.append(f"{verb} {plural(report.notes, 'note')}")
    if report.documents:
        lines.append(f"{verb} {plural(report.documents, 'document')}")
    if report.present:
        lines.append(f"already there: {plural(report.present, 'message')}")
    if report.completed:
        lines.append(f"of these, completed by what the source has now: {plural(report.completed, 'message')}")
    if report.unchanged_files:
        lines.append(f"unchanged since the last import: {plural(report.unchanged_files, 'file')}")
    if report.continued_sessions:
        lines.append(
            f"closed here, so what is new continues it as NAME~2: {plural(report.continued_sessions, 'session')}"
        )
    if report.gone_sessions:
        lines.append(f"left alone: {plural(report.gone_sessions, 'session')} that you forgot or erased here")
    lines += [f"could not be read: {path}" for path in report.unreadable[:_MOST_NAMED]]
    if (more := len(report.unreadable) - _MOST_NAMED) > 0:
        lines.append(f"could not be read: {plural(more, 'more file')}")
    if report.skipped:
        lines.append("skipped:")
        lines += [f"  {count:>9,}  {reason}" for reason, count in report.skipped.most_common()]
    return lines


class ProgressLine:
    """One line on stderr with share, rate and rest; nothing if stderr is not a terminal."""

    def __init__(self, total: int) -> None:
        self._total = max(1, total)
        self._began_at = time.monotonic()
        self._drawn_at = 0.0
        self._is_shown = sys.stderr.isatty()
        self._is_drawn = False

    def __call__(self, done: int, messages: int) -> None:
        """Show that `done` bytes were read and `messages` stored."""
        now = time.monotonic()
        if not self._is_shown or now - self._drawn_at < _REDRAWN_S:
            return
        self._drawn_at, self._is_drawn = now, True
        passed_s = max(now - self._began_at, 1e-6)
        share = min(1.0, done / self._total)
        rest = f"{passed_s / share - passed_s:,.0f} s left" if share else "reading"
        line = f"{share:4.0%}  {messages:,} messages  {messages / passed_s:,.0f}/s  {rest}"
        click.echo(f"\r{line:<70}", err=True, nl=False)

    def say(self, text: str) -> None:
        """Show what is being done."""
        if self._is_shown:
            self._is_drawn = True
            click.echo(f"\r{text:<70}", err=True, nl=False)

    def clear(self) -> None:
        """Remove the line."""
        if self._is_drawn:
            click.echo(f"\r{'':<70}\r", err=True, nl=False)
