"""House: how much is where, which hosts report, and whether all of it is well; projects that move or are left out.

What takes longer than the rest of the view is a view of its own, which the browser loads into this one.
"""

import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeVar

import anyio
import anyio.to_thread
from pydantic import Field

from kalito_mcp.domain.access import Permission
from kalito_mcp.domain.archive import Selection
from kalito_mcp.domain.folders import is_foreign
from kalito_mcp.domain.given import KEPT_DAYS, GivenKind
from kalito_mcp.domain.scope import NO_LIMITS, PERSONAL
from kalito_mcp.domain.sizes import PartSize
from kalito_mcp.errors import ConfigurationError, NotFound
from kalito_mcp.memory.projects import Moved
from kalito_mcp.projects import is_path
from kalito_mcp.text.plurals import plural
from kalito_mcp.web.page.chart import DayBar, day_bars
from kalito_mcp.web.page.machine import Machine, checked_machine, sees_machine
from kalito_mcp.web.page.view import PERSON, Act, Done, Download, Nothing, Shown, Undo, View, ViewFields, Visit
from kalito_mcp.web.rest.endpoint import Exporter

_MOST_ROWS: Final = 100
_NEWEST_ENTRIES: Final = 10
_ENTRIES: Final = 50
_RUNS_MS: Final = 15_000
"""How long after its last file an import counts as running."""
_MOST_KEPT: Final = 100
_KINDS: Final[Mapping[str, str]] = {
    GivenKind.PROMPT: "prompts",
    GivenKind.START: "beginnings",
    GivenKind.CONTEXT: "contexts",
    GivenKind.SEARCH: "searches",
}
"""What was given, from below, with its name for people."""
_PROJECT: Final = Field(min_length=1, max_length=1_000)
ProjectId = Annotated[str, _PROJECT]
Name = TypeVar("Name", str, str | None)


class House(ViewFields):
    """Whether every project is listed, or the newest ones."""

    whole: bool = False


class LogPage(ViewFields):
    """Entries of the audit log with a lower number than `before`."""

    before: Annotated[int | None, Field(ge=1, le=1_000_000_000_000)] = None


class Renaming(ViewFields):
    """A project, and its new name or the project that gets all of it."""

    old: ProjectId
    new: ProjectId


class KeptMove(ViewFields):
    """The key under which the server keeps what was moved."""

    key: Annotated[str, Field(min_length=1, max_length=40)]


@dataclass(frozen=True, slots=True)
class Row:
    """A project or an agent with its size. `is_folder`: it can be left out by its folder."""

    name: str
    size: PartSize
    is_excluded: bool = False
    is_folder: bool = False


@dataclass(frozen=True, slots=True)
class _Kept:
    owner: str
    old: str
    new: str
    moved: Moved


class HouseViews:
    """The views and acts. Without a machine nothing is shown of it. What was moved is kept for as long as the server
    runs, so that it can be moved back."""

    def __init__(self, machine: Machine | None, exporter: Exporter | None) -> None:
        self._machine = machine
        self._exporter = exporter
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._checks = anyio.CapacityLimiter(1)

    def lines(self) -> "tuple[View[Any] | Act[Any], ...]":
        """Their lines of the table."""
        return (
            View("/house", self.house, House),
            View("/house/machine", self.machine, Nothing, Permission.ADMIN),
            View("/house/check", self.check, Nothing, Permission.ADMIN),
            View("/house/log", self.log, LogPage, Permission.ADMIN),
            View("/house/export", self.export, Nothing, Permission.ADMIN),
            Act("rename_project", self.rename, Renaming),
            Act("move_back", self.move_back, KeptMove),
        )

    async def house(self, visit: Visit[House]) -> Shown:
        """All that is counted quickly."""
        memory, is_whole = visit.memory, visit.principal.limits == NO_LIMITS
        sizes = await memory.projects.sizes()
        imports = await memory.imports.sources() if is_whole else []
        rows = _by_project(sizes, _excluded(visit))
        values: dict[str, Any] = {
            "totals": await memory.conversations.totals(),
            "rows": rows if visit.sent.whole else rows[:_MOST_ROWS],
            "left_out": 0 if visit.sent.whole else max(0, len(rows) - _MOST_ROWS),
            "agents": _by_agent(sizes),
            "spaces": await memory.spaces.with_members(),
            "days": await _days(visit),
            "kinds": _KINDS,
            "imports": imports,
            "is_importing": bool(imports) and memory.place.clock.now_ms() - imports[0].read_at < _RUNS_MS,
            "may_move": is_whole and visit.may(Permission.WRITE),
            "may_exclude": sees_machine(visit, self._machine),
            "has_machine": sees_machine(visit, self._machine),
            "can_export": self._exporter is not None and is_whole and visit.may(Permission.ADMIN),
            "entries": [],
            "tokens": [],
        }
        if is_whole and visit.may(Permission.ADMIN):
            values["entries"] = await memory.access.audit(limit=_NEWEST_ENTRIES)
            now_ms, found = memory.place.clock.now_ms(), await memory.access.tokens(visit.principal.owner)
            values["tokens"] = [one for one in found if one.revoked_at is None and not one.is_expired(now_ms)]
        return Shown("house.html", "House", values)

    async def machine(self, visit: Visit[Nothing]) -> Shown:
        """Hosts, backups and files of the machine that the memory is on, and the vectors."""
        machine = checked_machine(visit, self._machine)
        folder, backups = await anyio.to_thread.run_sync(machine.backups)
        values = {
            "hosts": await anyio.to_thread.run_sync(machine.hosts),
            "stored": await anyio.to_thread.run_sync(machine.stored_files),
            "folder": str(folder),
            "backups": backups,
            "vectors": await visit.memory.records.vectors(),
        }
        return Shown("house_machine.html", "This machine", values)

    async def check(self, visit: Visit[Nothing]) -> Shown:
        """Check the database now. Each check is a process, so there is one at a time; others wait for theirs."""
        check = checked_machine(visit, self._machine).check
        found = await anyio.to_thread.run_sync(check, abandon_on_cancel=True, limiter=self._checks)
        return Shown("house_check.html", "Check", {"findings": found})

    async def log(self, visit: Visit[LogPage]) -> Shown:
        """The audit log, newest first."""
        entries = await visit.memory.access.audit(before=visit.sent.before, limit=_ENTRIES)
        before = entries[-1].number if len(entries) == _ENTRIES else None
        return Shown("house_log.html", "Audit log", {"entries": entries, "before": before})

    async def export(self, visit: Visit[Nothing]) -> Download:
        """All of the memory as an archive."""
        if self._exporter is None:
            raise NotFound("this server writes no archives; run `kalito-mcp export`")
        visit.memory.place.limits.check_none("an archive")
        await visit.memory.access.log("page /house/export")
        everything = await visit.memory.in_project(None)
        return Download("kalito-memory.jsonl", "application/x-ndjson", self._exporter(everything, Selection()))

    async def rename(self, visit: Visit[Renaming]) -> Done:
        """Give a project another name; or give all of it to another project, if that is known."""
        old, new = visit.sent.old, visit.sent.new
        memory = visit.memory
        known = [project for project, _ in await memory.projects.all()]
        target = await memory.projects.named(new) if is_path(new) else new
        if target not in (*known, PERSONAL):
            after = await memory.projects.rename(old, new)
            return Done("Project renamed", Undo("rename_project", {"old": after, "new": old}))
        moved = await memory.projects.move_all(old, None if target == PERSONAL else target, editor=PERSON)
        return Done(_said(moved), Undo("move_back", {"key": self._keep(visit, old, target, moved)}))

    async def move_back(self, visit: Visit[KeptMove]) -> Done:
        """Move back what was moved, and nothing else."""
        kept = self._kept.get(visit.sent.key)
        if kept is None or kept.owner != visit.principal.owner:
            raise NotFound(
                "this server no longer knows what was moved: it was restarted, or moved much since; move it yourself"
            )
        moved = await visit.memory.projects.move_all(kept.new, kept.old, only=kept.moved, editor=PERSON)
        return Done(f"{_said(moved)} back", Undo("move_back", {"key": self._keep(visit, kept.new, kept.old, moved)}))

    def _keep(self, visit: Visit[Any], old: str, new: str, moved: Moved) -> str:
        """Keep what was moved. Its key."""
        key = secrets.token_urlsafe(12)
        self._kept[key] = _Kept(visit.principal.owner, old, new, moved)
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return key


async def _days(visit: Visit[Any]) -> list[DayBar]:
    """The tokens that were given on each of the last days, by kind."""
    numbers: dict[str, dict[str, int]] = {}
    for one in await visit.memory.given.tokens_by_day():
        numbers.setdefault(one.day, {})[one.kind] = one.tokens
    today = visit.memory.zone.date(visit.memory.place.clock.now_ms())
    return day_bars(numbers, [*_KINDS], days=KEPT_DAYS, today=today) if numbers else []


def _said(moved: Moved) -> str:
    parts = [plural(len(moved.sessions), "session"), *([plural(len(moved.records), "record")] if moved.records else [])]
    left = f"; {plural(len(moved.left), 'document')} stayed, because the other has the same" if moved.left else ""
    return f"{' and '.join(parts)} moved{left}"


def _excluded(visit: Visit[Any]) -> Sequence[str]:
    try:
        return visit.memory.projects.excluded()
    except ConfigurationError:  # every write says so
        return ()


def _by_project(sizes: Sequence[PartSize], excluded: Sequence[str]) -> list[Row]:
    """A row for each project, what changed last first, and one for what is of none."""
    rows = [
        Row(
            name or PERSONAL,
            _sum(some),
            name in excluded,
            is_folder=name is not None and (is_path(name) or is_foreign(name)),
        )
        for name, some in _grouped(sizes, lambda one: one.project).items()
    ]
    return sorted(rows, key=lambda row: -(row.size.newest_at or 0))


def _by_agent(sizes: Sequence[PartSize]) -> list[Row]:
    return [Row(name, _sum(some)) for name, some in _grouped(sizes, lambda one: one.agent).items()]


def _grouped(sizes: Sequence[PartSize], key: Callable[[PartSize], Name]) -> dict[Name, list[PartSize]]:
    groups: dict[Name, list[PartSize]] = {}
    for one in sizes:
        groups.setdefault(key(one), []).append(one)
    return groups


def _sum(sizes: Sequence[PartSize]) -> PartSize:
    return PartSize(
        sizes[0].agent,
        sizes[0].project,
        sum(one.sessions for one in sizes),
        sum(one.messages for one in sizes),
        sum(one.records for one in sizes),
        max((one.newest_at for one in sizes if one.newest_at is not None), default=None),
    )
