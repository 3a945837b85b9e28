"""What the page shows of this machine: hosts, backups, files, and what `doctor` finds. Implements
`web.page.machine.Machine`."""

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kalito_mcp.domain.backups import Backup
from kalito_mcp.domain.findings import Finding, Verdict
from kalito_mcp.domain.sizes import StoredFiles
from kalito_mcp.errors import ConfigurationError
from kalito_mcp.hosts.known import HOSTS
from kalito_mcp.hosts.places import Places
from kalito_mcp.hosts.plans import state_of
from kalito_mcp.hosts.plugins import TWICE
from kalito_mcp.hosts.wired import why_hooks_are_off
from kalito_mcp.web.page.machine import WiredHost
from kalito_mcp.wiring import backups, stored_files

if TYPE_CHECKING:
    from kalito_mcp.config.settings import Settings
    from kalito_mcp.hosts.facts import Host

_DOCTOR_S: Final = 300.0
_PLUGIN: Final = "by its plugin"


class ThisMachine:
    """Of the memory with these settings. `config` is the file that they were read from, if one was named."""

    def __init__(self, settings: "Settings", config: Path | None) -> None:
        self.owner = settings.owner
        self._settings = settings
        self._config = config

    def hosts(self) -> Sequence[WiredHost]:
        """The hosts that are here or have kalito in their files."""
        places = Places(sys.platform, Path.home(), os.environ)
        found = [(host, state_of(host, places)) for host in HOSTS]
        return [self._wired(host, places) for host, state in found if state.is_found or state.has_any]

    def backups(self) -> tuple[Path, Sequence[Backup]]:
        """The folder of the backups, and those in it."""
        return backups(self._settings)

    def stored_files(self) -> StoredFiles:
        """The files of the memory."""
        return stored_files(self._settings)

    def check(self) -> Sequence[Finding]:
        """What `doctor` finds, in a process of its own: this one must not open the files of its database once more."""
        config = [] if self._config is None else ["--config", str(self._config)]
        arguments = ["-m", "kalito_mcp", "doctor", "--database", str(self._settings.database), *config]
        try:
            ended = subprocess.run(  # noqa: S603 - this program
                [sys.executable, *arguments], capture_output=True, encoding="utf-8", timeout=_DOCTOR_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return [Finding("doctor", Verdict.FAILED, f"it did not end: {error}; run `kalito-mcp doctor`")]
        return [found for line in ended.stdout.splitlines() if (found := _finding(line)) is not None]

    def _wired(self, host: "Host", places: Places) -> WiredHost:
        state = state_of(host, places)
        faults = [*state.faults, *([TWICE] if state.is_double else [])]
        if state.events:
            with suppress(ConfigurationError):  # a fault by now
                faults += [off] if (off := why_hooks_are_off(host, places)) is not None else []
        gone = [program for program in state.hook_programs if not os.access(program, os.X_OK)]
        faults += [f"the hook program {one} is not there; run `kalito-mcp install` again" for one in gone]
        is_by_plugin = state.enabled_by is not None
        missing = [] if is_by_plugin else [one for one in state.wanted_events if one not in state.events]
        return WiredHost(
            host.key,
            host.name,
            is_wired=state.has_entry or is_by_plugin,
            hooks=(_PLUGIN,) if is_by_plugin else state.events,
            missing=tuple(missing),
            faults=tuple(faults),
            last_event_at=self._last_event(host.key),
        )

    def _last_event(self, host: str) -> int | None:
        with suppress(OSError):
            return self._settings.database.files.trace(host).stat().st_mtime_ns // 1_000_000
        return None


def _finding(line: str) -> Finding | None:
    """A finding from a line of `doctor`."""
    verdict, _, rest = line.strip().partition("  ")
    check, colon, detail = rest.partition(": ")
    return Finding(check, Verdict(verdict), detail) if colon and verdict in [*Verdict] else None
