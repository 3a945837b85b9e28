"""`kalito-mcp install`, `uninstall` and `status`: kalito in the configuration of assistants."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

import click

from kalito_mcp.bridge.connection import remove_connection
from kalito_mcp.capture.spool import Spool
from kalito_mcp.cli.home_lines import home_lines, is_connected, leaving_lines
from kalito_mcp.cli.switching import paused_line
from kalito_mcp.cli.terminal import ask, tell
from kalito_mcp.config.sources import read_sources
from kalito_mcp.errors import ConfigurationError
from kalito_mcp.hosts.facts import ON_PATH
from kalito_mcp.hosts.files import backup_of, read
from kalito_mcp.hosts.known import HOSTS, hosts_named
from kalito_mcp.hosts.launcher import find_launcher, write_scripts, written_scripts
from kalito_mcp.hosts.places import Places
from kalito_mcp.hosts.plans import Change, is_found, plan_install, plan_uninstall, state_of
from kalito_mcp.hosts.plugins import NOT_ON_PATH, TWICE
from kalito_mcp.hosts.wired import why_hooks_are_off
from kalito_mcp.runtime.default_places import data_folder, default_config
from kalito_mcp.switch import read_switch
from kalito_mcp.text.plurals import plural

if TYPE_CHECKING:
    from kalito_mcp.hosts.facts import Host

_WIDEST: Final = 160
_STARTS_WITHIN_S: Final = 10
_DATABASE: Final = "KALITO_DATABASE"
_names = click.argument("names", metavar="[HOST...|all]", nargs=-1)
_dry_run = click.option("--dry-run", "is_dry_run", is_flag=True, help="Show what would change, and write nothing.")
_yes = click.option("--yes", "-y", "is_agreed", is_flag=True, help="Do not ask before writing.")


@click.command()
@_names
@_dry_run
@_yes
@click.option("--no-hooks", "has_no_hooks", is_flag=True, help="Only the tools: the assistant has to call them itself.")
@click.option("--import", "is_imported", is_flag=True, help="Then import what they have kept of earlier conversations.")
def install(
    names: tuple[str, ...], *, is_dry_run: bool, is_agreed: bool, has_no_hooks: bool, is_imported: bool
) -> None:
    """Write kalito into the configuration of assistants.

    Without HOST, into those that are on this machine. It shows each change and asks first. Each file is backed up
    next to itself, and `kalito-mcp uninstall` undoes it.
    """
    written_into(names, is_dry_run=is_dry_run, is_agreed=is_agreed, has_no_hooks=has_no_hooks, is_imported=is_imported)


@dataclass(frozen=True, slots=True)
class Further:
    """A file written besides the hosts' files, before them: how it is shown, and how it is written."""

    shown: tuple[str, ...]
    make: Callable[[], None]


def written_into(
    names: tuple[str, ...],
    *,
    is_dry_run: bool,
    is_agreed: bool,
    has_no_hooks: bool,
    is_imported: bool = False,
    further: Further | None = None,
) -> None:
    """Write kalito into the configuration of hosts: shown, asked, backed up. Ends the command with 1 after a fault."""
    places = _here()
    hosts = _chosen(names, places)
    found = find_launcher(data_folder())
    if found.files:
        tell([f"this program is in a cache; hosts will start it by {path}" for path in found.files][:1])
    by_plugin = [host for host in hosts if state_of(host, places).enabled_by is not None]
    tell([f"{host.name} has kalito by its plugin; with both, replies would be recorded twice" for host in by_plugin])
    if not has_no_hooks and found.launcher.hook is None and any(host.hooks for host in hosts):
        tell(["without hooks: kalito-hook is not installed next to kalito-mcp"])

    def plan(host: "Host") -> list[Change]:
        return plan_install(host, places, found.launcher, has_hooks=not has_no_hooks)

    others = [host for host in hosts if host not in by_plugin]
    planned = _planned(others, plan, places, nothing="is installed already; nothing to change", is_whole=is_dry_run)
    if further is not None:
        tell(further.shown)
    tell(_elsewhere_lines())
    if further is None and is_connected(read_sources(os.environ).checked_database().files):
        tell(["the memory of this machine is on another one; `kalito-mcp status` says where"])
    if (planned.changes or further) and is_dry_run:
        tell(["nothing was written (--dry-run)"])
    elif planned.changes or further:
        if not is_agreed:
            tell(["--dry-run shows the lines that change"] if planned.changes else [])
            ask("Write these changes?", undone="nothing was written")
        if further is not None:
            further.make()
        write_scripts(found)
        _write(planned, places, has_hooks=not has_no_hooks and found.launcher.hook is not None)
    if is_imported:
        from kalito_mcp.cli.importing import import_of  # noqa: PLC0415 - imports every reader

        import_of([host.key for host in hosts], is_dry_run=is_dry_run)
    planned.end()


def _write(planned: "_Planned", places: "Places", *, has_hooks: bool) -> None:
    """Make the changes, and say what to do next in each host that has all of its own."""
    failed = _make(planned.changes, planned, places)
    written = [host for host in planned.hosts if failed.isdisjoint(planned.paths[host.key])]
    for host in written:
        tell(_fault_of_hooks(host, places))
        tell([f"{host.name}: {hint}" for hint in host.confirm + (host.confirm_hooks if has_hooks else ())])
    if written:
        tell([f"to undo: kalito-mcp uninstall {' '.join(host.key for host in written)}"])


@click.command()
@_names
@_dry_run
@_yes
def uninstall(names: tuple[str, ...], *, is_dry_run: bool, is_agreed: bool) -> None:
    """Take kalito out of the configuration of assistants. The memory itself stays.

    Without HOST, out of all that have it. Only what `install` wrote goes. A file that has not changed otherwise becomes
    what it was, byte for byte.
    """
    places = _here()
    hosts = hosts_named(names) if names else HOSTS
    staying = [host for host in HOSTS if host not in hosts]
    planned = _planned(
        hosts,
        lambda host: plan_uninstall(host, places, staying=staying),
        places,
        nothing="" if not names else "has nothing of kalito",
        is_whole=is_dry_run,
    )
    is_last = not planned.faults and not any(_may_have_ours(one, places) for one in staying)
    scripts = _scripts_to_delete() if is_last else []
    tell([_shown(change, places) for change in scripts])
    files = read_sources(os.environ).checked_database().files
    is_leaving = is_last and is_connected(files)
    if is_leaving:
        tell(leaving_lines(files))
    if not planned.changes and not scripts and not is_leaving:
        tell(["nothing to take out"] if not names and not planned.faults else [])
        planned.end()
        return
    if is_dry_run:
        tell(["nothing was written (--dry-run)"])
        planned.end()
        return
    if not is_agreed:
        ask("Write these changes?", undone="nothing was written")
    _make(planned.changes, planned, places)
    if not planned.faults:
        _make(scripts, planned, places)
        if is_leaving:
            remove_connection(files.home)
    planned.end()


@click.command()
@_names
def status(names: tuple[str, ...]) -> None:
    """Show whether the memory is paused, which assistants kalito is written into, and whether they can start it.

    Without HOST, those that are on this machine. The exit code is 1 if something is broken.
    """
    places = _here()
    lines, is_well = _switch_lines()
    home, is_reached = home_lines()
    is_well = is_well and is_reached
    tell([*home, *lines])
    hosts = hosts_named(names) or [host for host in HOSTS if is_found(host, places) or state_of(host, places).has_entry]
    for host in hosts:
        lines, is_right = _status_lines(host, places)
        is_well = is_well and is_right
        tell([host.name, *lines])
    if not hosts:
        tell([f"no assistant found; known are {', '.join(host.key for host in HOSTS)}"])
    if not is_well:
        sys.exit(1)


class _Planned:
    """The changes of each host, and which hosts cannot be changed."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.hosts: list[Host] = []
        self.paths: dict[str, frozenset[PurePath]] = {}
        """The files that change of each host."""
        self.faults = 0

    def end(self) -> None:
        """End the command with 1 if a host could not be changed."""
        if self.faults:
            sys.exit(1)


def _planned(
    hosts: Sequence["Host"], plan: Callable[["Host"], list[Change]], places: Places, *, nothing: str, is_whole: bool
) -> _Planned:
    """Work out and show the changes of each host: a sentence a file and then, if `is_whole`, the lines of all of them.
    A host that is refused does not keep the others from theirs."""
    planned = _Planned()
    for host in hosts:
        try:
            # VS Code and Copilot CLI have one file of hooks.
            changes = [change for change in plan(host) if change not in planned.changes]
        except ConfigurationError as refusal:
            planned.faults += 1
            click.echo(f"{host.name}: {refusal}", err=True)
            continue
        if changes:
            planned.hosts.append(host)
            planned.paths[host.key] = frozenset(change.path for change in changes)
            planned.changes += changes
            tell([host.name])
            tell([_shown(change, places) for change in changes])
        elif nothing:
            tell([f"{host.name} {nothing}"])
    for change in planned.changes if is_whole else ():
        tell(_diff_lines(change, places))
    return planned


def _shown(change: Change, places: Places) -> str:
    """The file, and what of ours changes in it."""
    what = " (new)" if change.before.data is None else " (deleted)" if change.after is None else ""
    return f"  {places.shown(change.path)}{what}" + (f": {change.summary}" if change.summary else "")


def _diff_lines(change: Change, places: Places) -> Iterator[str]:
    """The lines of a file that change."""
    from kalito_mcp.safety.redaction import redact  # noqa: PLC0415 - only to show a change

    yield f"  {places.shown(change.path)}"
    for line in change.diff():
        shown = redact(line).text
        yield f"    {shown if len(shown) <= _WIDEST else shown[:_WIDEST] + ' ...'}"


def _may_have_ours(host: "Host", places: Places) -> bool:
    """Whether the files of a host have anything of ours, or cannot be read."""
    state = state_of(host, places)
    return state.has_any or bool(state.faults)


def _scripts_to_delete() -> list[Change]:
    """The small programs that no host starts any more."""
    return [Change(path, read(path), None) for path in written_scripts(data_folder())]


def _make(changes: Sequence[Change], planned: _Planned, places: Places) -> set[PurePath]:
    """Make the changes, and say what became of each. Those that fail are faults of what is planned; their files are
    returned."""
    failed: set[PurePath] = set()
    for change in changes:
        try:
            change.make()
        except ConfigurationError as refusal:
            planned.faults += 1
            failed.add(change.path)
            click.echo(f"{refusal}", err=True)
            continue
        backup = backup_of(change.path)
        verb = "restored" if change.is_restored else "deleted" if change.after is None else "wrote"
        kept = f"; as it was before: {places.shown(backup)}" if backup.exists() else ""
        tell([f"{verb} {places.shown(change.path)}{kept}"])
    return failed


def _chosen(names: tuple[str, ...], places: Places) -> Sequence["Host"]:
    if names:
        return hosts_named(names)
    found = [host for host in HOSTS if is_found(host, places)]
    missing = [host.key for host in HOSTS if host not in found]
    tell([f"found: {', '.join(host.name for host in found) or 'no assistant'}"])
    if missing:
        tell([f"not found: {', '.join(missing)}"])
    if not found:
        said = "to connect one anyway, name it: `kalito-mcp install claude-code`"
        tell([f"{said}; any other MCP host can start `kalito-mcp serve` (docs/connect.md)"])
    return found


def _switch_lines() -> tuple[list[str], bool]:
    """What waits for a server, and when and where nothing is remembered, in lines; and whether that can be read."""
    try:
        files = read_sources(os.environ).checked_database().files
        switch = read_switch(files.switch)
    except ConfigurationError as error:
        return [str(error)], False
    lines: list[str] = []
    if waiting := Spool(files.spool).count():
        lines.append(f"{plural(waiting, 'event')} of hooks {'waits' if waiting == 1 else 'wait'} for the next server")
    if switch.is_paused(time.time_ns() // 1_000_000):
        lines.append(paused_line(switch))
    lines += [f"nothing is remembered in {folder}: it is excluded" for folder in switch.excluded]
    return lines, True


def _status_lines(host: "Host", places: Places) -> tuple[list[str], bool]:
    state = state_of(host, places)
    lines = [f"  {fault}" for fault in state.faults]
    lines.append(f"  found: {'yes' if state.is_found else 'no'}")
    if state.enabled_by is not None:
        lines.append(f"  by its plugin: {places.shown(state.enabled_by)} enables it")
    elif not state.has_entry:
        return [*lines, f"  not installed: kalito-mcp install {host.key}"], not state.faults
    if state.is_double:
        lines.append(f"  twice: {TWICE}: kalito-mcp uninstall {host.key}")
    command = state.command or shutil.which(ON_PATH.server, path=places.environment.get("PATH", os.defpath))
    lines.append(f"  server: {command or ON_PATH.server}")
    fault = f"no, it {NOT_ON_PATH}" if command is None else _start_fault(command)
    lines.append(f"  starts: {fault or 'yes'}")
    off = _fault_of_hooks(host, places)
    lines += [f"  hooks: {one}" for one in off]
    if state.wanted_events and state.has_entry and not off:
        missing = [event for event in state.wanted_events if event not in state.events]
        hooks = ", ".join(state.events) or f"none: kalito-mcp install {host.key}"
        lines.append(f"  hooks: {hooks}" + (f"; missing: {', '.join(missing)}" if state.events and missing else ""))
    gone = [program for program in state.hook_programs if not os.access(program, os.X_OK)]
    lines += [f"  the hook program {program} is not there; run `kalito-mcp install` again" for program in gone]
    if state.events or state.enabled_by is not None:
        lines.append(f"  last event: {_last_event(host.key) or 'none yet'}")
    return lines, not state.faults and not gone and not state.is_double and not off and fault is None


def _fault_of_hooks(host: "Host", places: Places) -> list[str]:
    """That the host has our hooks, but runs none."""
    with suppress(ConfigurationError):  # a fault of its own
        if state_of(host, places).events and (off := why_hooks_are_off(host, places)) is not None:
            return [f"{host.name} runs no hooks: {off}"]
    return []


def _elsewhere_lines() -> list[str]:
    """That the assistants will use another database than this terminal, if it is named in the environment alone."""
    here = read_sources(os.environ).checked_database()
    others = {name: value for name, value in os.environ.items() if name != _DATABASE}
    there = read_sources(others).checked_database()
    if here == there:
        return []
    return [
        f"{_DATABASE} is set in this terminal: assistants that are started elsewhere use {there}, not {here}. For all "
        f'of them, write database = "{here}" into {default_config()}'
    ]


def _last_event(host: str) -> str | None:
    """When a hook of this host last reached a server of the memory."""
    files = read_sources(os.environ).checked_database().files
    try:
        heard_s = files.trace(host).stat().st_mtime
    except OSError:
        return None
    return datetime.fromtimestamp(heard_s).astimezone().isoformat(" ", "seconds")


def _start_fault(command: str) -> str | None:
    """Why the program does not start, or None if it does."""
    if not Path(command).is_absolute():
        return f"not checked: {command} is not a whole path; `kalito-mcp install` writes one"
    try:
        ended = subprocess.run(  # noqa: S603 - the program that the host starts
            [command, "--version"], capture_output=True, timeout=_STARTS_WITHIN_S, check=False
        )
    except FileNotFoundError:
        return "no, it is not there; run `kalito-mcp install` again"
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"no, {error}"
    return None if ended.returncode == 0 else f"no, it ends with {ended.returncode}"


def _here() -> Places:
    return Places(sys.platform, Path.home(), os.environ)
