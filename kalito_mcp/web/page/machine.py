"""What the page shows of the machine that the memory is on. The command line knows it, and hands it in."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from kalito_mcp.domain.access import Permission
from kalito_mcp.domain.backups import Backup
from kalito_mcp.domain.findings import Finding
from kalito_mcp.domain.scope import NO_LIMITS
from kalito_mcp.domain.sizes import StoredFiles
from kalito_mcp.errors import NotFound
from kalito_mcp.web.page.view import Visit


@dataclass(frozen=True, slots=True)
class WiredHost:
    """A host on this machine. `hooks` are the events that it reports, `missing` those that it should, and `faults` what
    is wrong, in sentences. `last_event_at` is when one of its hooks reached a server, in milliseconds since 1970."""

    key: str
    name: str
    is_wired: bool
    hooks: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    last_event_at: int | None = None


class Machine(Protocol):
    """Each method reads files or starts a process, so call it in a thread. None raises an error of ours."""

    @property
    def owner(self) -> str:
        """Whose machine it is. Other owners of the database see nothing of it."""

    def hosts(self) -> Sequence[WiredHost]:
        """The hosts that are on this machine or have kalito in their files."""

    def backups(self) -> tuple[Path, Sequence[Backup]]:
        """The folder of the backups, and those in it, the newest first."""

    def stored_files(self) -> StoredFiles:
        """The files of the memory with their sizes."""

    def check(self) -> Sequence[Finding]:
        """Check the database, which takes seconds if it is large. Changes nothing."""


def sees_machine(visit: Visit[Any], machine: Machine | None) -> bool:
    """Whether the machine is the person's."""
    is_theirs = machine is not None and visit.principal.owner == machine.owner
    return is_theirs and visit.principal.limits == NO_LIMITS and visit.may(Permission.ADMIN)


def checked_machine(visit: Visit[Any], machine: Machine | None) -> Machine:
    """The machine. Raises NotFound if it is not the person's."""
    if machine is None or not sees_machine(visit, machine):
        raise NotFound("this machine is not yours")
    return machine
