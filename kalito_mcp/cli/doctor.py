"""`kalito-mcp doctor`."""

import os
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kalito_mcp.capture.spool import Spool
from kalito_mcp.cli.home_lines import home_lines, is_connected
from kalito_mcp.cli.options import settings_of, with_settings
from kalito_mcp.domain.findings import Verdict
from kalito_mcp.hosts.known import HOSTS, hosts_named
from kalito_mcp.hosts.places import Places
from kalito_mcp.hosts.plans import hook_path, state_of
from kalito_mcp.projects import working_folder
from kalito_mcp.text.plurals import plural
from kalito_mcp.version import __version__

if TYPE_CHECKING:
    from kalito_mcp.hosts.facts import Host


@click.command(name="doctor")
@click.argument("names", metavar="[HOST...|all]", nargs=-1)
@with_settings
@click.option("--deep", "is_deep", is_flag=True, help="Read every record: hashes, counters, text index, vectors.")
def command(database: str | None, config: Path | None, names: tuple[str, ...], *, is_deep: bool) -> None:
    """Check the database and its surroundings, and the way from each assistant to its database.

    It starts each assistant's server and hook as the assistant does, sends a prompt through them, finds it in the
    database and erases it. Nothing else is changed. Without HOST: of all that kalito is installed in; with --database
    or --config of none. If the memory is on another machine, it asks that one instead. The exit code is 1 if a check
    failed.
    """
    from kalito_mcp.diagnosing import diagnose  # noqa: PLC0415 - keeps --help quick

    settings = settings_of(database, config)
    files = settings.database.files
    click.echo(f"kalito-mcp {__version__}, Python {platform.python_version()}, {platform.platform(terse=True)}")
    click.echo(f"database  {settings.database}")
    lines, is_well = home_lines(files)
    for line in lines:
        _tell("ok" if is_well else "FAILED", "home", line)
    if aside := Spool(files.spool).put_aside_count():
        _tell("warning", "hooks", _put_aside(aside, files.spool))
    is_away = is_connected(files)
    for finding in () if is_away and not settings.database.exists() else diagnose(settings, is_deep=is_deep):
        is_well = is_well and finding.verdict is not Verdict.FAILED
        _tell(finding.verdict, finding.check, finding.detail)
    if is_away:
        _tell("note", "assistants", "`kalito-mcp status` says whether they start; run doctor on the home, too")
    elif names or (database is None and config is None):
        is_well = _are_hosts_well(names) and is_well
    if not is_well:
        sys.exit(1)


def _put_aside(count: int, folder: Path) -> str:
    return (
        f"{plural(count, 'event')} could not be recorded; the server's log says why: {folder / '*.broken'}. They are "
        "deleted after a week; delete them yourself if their words must not be kept that long"
    )


def _are_hosts_well(names: tuple[str, ...]) -> bool:
    """Check each host, and say what was found."""
    import anyio  # noqa: PLC0415 - keeps --help quick

    places = Places(sys.platform, Path.home(), os.environ)
    hosts = hosts_named(names)
    if not names:
        hosts = _installed(places)
    if not hosts:
        return True
    from kalito_mcp.cli.host_checks import check_host  # noqa: PLC0415 - importing mcp takes a second

    is_well = True
    for host in hosts:
        links = anyio.run(check_host, host, places, os.environ, working_folder() or Path.home())
        for link in links:
            _tell("ok" if link.is_whole else "FAILED", f"{host.name}, {link.name}", link.detail)
        if all(link.is_whole for link in links):
            for hint in host.confirm_hooks if any(link.name == "hook" for link in links) else ():
                _tell("note", f"{host.name}, in the program itself", hint)
        else:
            is_well = False
    return is_well


def _installed(places: Places) -> "tuple[Host, ...]":
    """The hosts with something of kalito in their files or with its plugin, and those on this machine whose files
    cannot be read."""
    states = [(host, state_of(host, places)) for host in HOSTS]
    known = {hook_path(host, places) for host, state in states if state.has_entry}
    chosen: list[Host] = []
    for host, state in states:
        path = hook_path(host, places)
        # Hooks without an entry count once, though two hosts may read them.
        if (
            state.has_entry
            or state.enabled_by
            or (state.events and path not in known)
            or (state.is_found and state.faults)
        ):
            chosen.append(host)
            known.add(path)
    return tuple(chosen)


def _tell(verdict: str, check: str, detail: str) -> None:
    colour = {"ok": "green", "warning": "yellow"}.get(verdict, "red")
    click.echo(f"{click.style(f'{verdict:>7}', fg=colour)}  {check}: {detail}")
