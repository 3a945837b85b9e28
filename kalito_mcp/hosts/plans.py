"""Plans the changes of installing or uninstalling in one host's files: complete before anything is written."""

import difflib
import itertools
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Final

from kalito_mcp.errors import ConfigurationError
from kalito_mcp.hosts import files
from kalito_mcp.hosts.edits import (
    Part,
    Wish,
    command_in,
    has_entry,
    has_ours,
    our_events,
    programs_in,
    removed,
    summary_of,
    written,
)
from kalito_mcp.hosts.facts import HookFile, Host, Launcher, OwnFile
from kalito_mcp.hosts.files import Content
from kalito_mcp.hosts.places import Places
from kalito_mcp.hosts.plugins import enabling_file

_PLUGIN: Final = "plugin"


@dataclass(frozen=True, slots=True)
class Change:
    """One file: as it is, and the bytes that it will have. `after` is None if it is to be deleted."""

    path: Path
    before: Content
    after: bytes | None
    is_backed_up: bool = False
    """Whether `before` is kept as a backup first."""
    is_restored: bool = False
    """Whether `after` is the backup, which then goes."""
    with_folder: bool = False
    """Whether the folder of a deleted file goes, too, if nothing else is in it."""
    summary: str = ""
    """The changes of our parts, in words."""

    def diff(self) -> Iterator[str]:
        """The lines that change, without those around them, which may hold others' keys."""
        old = self.before.text.splitlines()
        new = [] if self.after is None else self.after.decode("utf-8-sig").splitlines()
        # A file of a million lines changes in a few of them, and comparing takes much longer than looking for those.
        first = _length_of_same(old, new)
        last = _length_of_same(old[first:][::-1], new[first:][::-1])
        old, new = old[first : len(old) - last], new[first : len(new) - last]
        for kind, begin, end, new_begin, new_end in difflib.SequenceMatcher(None, old, new).get_opcodes():
            if kind != "equal":
                yield f"@@ line {first + new_begin + 1} @@"
                yield from (f"-{line}" for line in old[begin:end])
                yield from (f"+{line}" for line in new[new_begin:new_end])

    def make(self) -> None:
        """Change the file. Raises ConfigurationError if it cannot be, or has changed meanwhile; it is as it was."""
        if self.after is None:
            files.delete(self.path, before=self.before, with_folder=self.with_folder)
        else:
            files.write(self.path, self.after, before=self.before, is_backed_up=self.is_backed_up)
        if self.is_restored:
            files.backup_of(self.path).unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class State:
    """Our parts of a host's files. `enabled_by` is the file that enables our plugin. `faults` are files that
    cannot be read."""

    is_found: bool
    has_entry: bool
    enabled_by: Path | None
    command: str | None
    events: tuple[str, ...]
    wanted_events: tuple[str, ...]
    hook_programs: tuple[str, ...]
    faults: tuple[str, ...]

    @property
    def has_any(self) -> bool:
        """Whether our entry or a hook of ours is in the files."""
        return self.has_entry or bool(self.events)

    @property
    def is_double(self) -> bool:
        """Whether ours is in the files although our plugin is enabled."""
        return self.enabled_by is not None and self.has_any


def _length_of_same(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines are the same at the beginning."""
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def is_found(host: Host, places: Places) -> bool:
    """Whether the host is on this machine."""
    if any(Path(sign(places)).exists() for sign in host.signs):
        return True
    path = places.environment.get("PATH", os.defpath)
    return any(shutil.which(program, path=path) for program in host.programs)


def plan_install(host: Host, places: Places, launcher: Launcher, *, has_hooks: bool) -> list[Change]:
    """The changes that write our entry and, if wanted and known for this host, our hooks. None if they are there.

    Raises:
        ConfigurationError: a file cannot be read, or not be edited; says which and why.
    """
    wished = has_hooks and host.hooks is not None and launcher.hook is not None
    variables = (host.hooks.variables or {}) if wished and isinstance(host.hooks, HookFile) else {}
    wish = Wish(launcher, wished, variables)
    changes = []
    for path, parts in _parts(host, places).items():
        before = files.read(path)
        if before.data is None and not wished and all(isinstance(part, HookFile) for part in parts):
            continue
        with _naming(path):
            after = written(parts, before.text, wish)
            if after != before.text:
                is_backed_up = _is_to_be_kept(path, parts, before)
                summary = summary_of(parts, before.text, after)
                changes.append(
                    Change(path, before, before.with_text(after), is_backed_up=is_backed_up, summary=summary)
                )
    if isinstance(host.hooks, OwnFile):
        changes += _own_file(host.hooks, places, launcher if wished else None)
    return changes


def plan_uninstall(host: Host, places: Places, *, staying: Sequence[Host] = ()) -> list[Change]:
    """The changes that take out what is ours. None if nothing is. Hooks that one of the `staying` hosts reads as well
    stay if it has our entry.

    Raises:
        ConfigurationError: a file cannot be read, or not be edited; says which and why.
    """
    changes = []
    for path, all_parts in _parts(host, places).items():
        is_shared = path == hook_path(host, places) and _is_read_by_any(staying, path, places)
        parts = [part for part in all_parts if not (is_shared and isinstance(part, HookFile))]
        now = files.read(path)
        if now.data is None or not parts:
            continue
        with _naming(path):
            if has_ours(parts, now.text):
                changes.append(_taken_out(path, parts, now))
    if isinstance(host.hooks, OwnFile):
        changes += _own_file(host.hooks, places, None)
    return changes


def hook_path(host: Host, places: Places) -> Path | None:
    """The file with the host's hooks, which is there or not. Several hosts may read one file."""
    return None if host.hooks is None else Path(host.hooks.where(places))


def state_of(host: Host, places: Places) -> State:
    """Our current parts of the host's files. Raises nothing: a file that cannot be read is a fault."""
    faults: list[str] = []
    entry, command, events, programs = False, None, list[str](), list[str]()
    for path, parts in _parts(host, places).items():
        try:
            text = files.read(path).text
            with _naming(path):
                entry = entry or has_entry(parts, text)
                command = command or command_in(parts, text)
                events += our_events(parts, text)
                programs += programs_in(parts, text)
        except ConfigurationError as error:
            faults.append(str(error))
    wanted: tuple[str, ...] = ()
    if isinstance(host.hooks, HookFile):
        wanted = tuple(host.hooks.hooks(Launcher("", "", is_windows=places.is_windows)))
    elif isinstance(host.hooks, OwnFile):
        wanted = (_PLUGIN,)
        try:
            events += [_PLUGIN] if _is_own(host.hooks, files.read(Path(host.hooks.where(places)))) else []
        except ConfigurationError as error:
            faults.append(str(error))
    enabled_by = None
    with suppress(ConfigurationError):  # a fault by now: the file has our hooks as well
        enabled_by = enabling_file(host, places)
    found = is_found(host, places)
    return State(found, entry, enabled_by, command, tuple(events), wanted, tuple(programs), tuple(faults))


def _parts(host: Host, places: Places) -> dict[Path, list[Part]]:
    """The files of a host with what we write into each; some hosts have one file for both."""
    parts: dict[PurePath, list[Part]] = {host.entry.where(places): [host.entry]}
    if isinstance(host.hooks, HookFile):
        parts.setdefault(host.hooks.where(places), []).append(host.hooks)
    return {Path(path): among for path, among in parts.items()}


def _is_read_by_any(hosts: Sequence[Host], path: Path, places: Places) -> bool:
    """Whether any of the hosts has our entry, and its hooks in this file."""
    return any(hook_path(one, places) == path and state_of(one, places).has_entry for one in hosts)


def _is_to_be_kept(path: Path, parts: list[Part], before: Content) -> bool:
    """Whether a backup is made: of a file without ours, or of one with ours and others' that has no backup yet."""
    if not has_ours(parts, before.text):
        return True
    return not files.backup_of(path).exists() and removed(parts, before.text, None) is not None


def _taken_out(path: Path, parts: list[Part], now: Content) -> Change:
    backup = files.read(files.backup_of(path))
    earlier = None if backup.data is None else backup.text
    after = removed(parts, now.text, earlier)
    summary = summary_of(parts, now.text, after or "")
    if after is None:
        with_folder = any(isinstance(part, HookFile) and part.has_own_folder for part in parts)
        return Change(path, now, None, with_folder=with_folder, summary=summary)
    if backup.data is not None and after == earlier:
        return Change(path, now, backup.data, is_restored=True, summary=f"{summary}; it becomes what it was")
    return Change(path, now, now.with_text(after), summary=summary)


def _own_file(own: OwnFile, places: Places, launcher: Launcher | None) -> list[Change]:
    """The change of a file that is wholly ours: written for this launcher, deleted without one."""
    path = Path(own.where(places))
    before = files.read(path)
    if before.data is not None and not _is_own(own, before):
        if launcher is None:
            return []
        raise ConfigurationError(f"{path} exists and was not written by kalito; it was left unchanged. Rename it first")
    after = own.content(launcher).encode() if launcher else None
    verb = "removes" if after is None else "adds" if before.data is None else "changes"
    return [Change(path, before, after, summary=f"{verb} the plugin kalito")] if after != before.data else []


def _is_own(own: OwnFile, content: Content) -> bool:
    return own.mark in content.text.partition("\n")[0]


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Turns a refusal of a text into an error that names the file."""
    try:
        yield
    except ValueError as error:
        raise ConfigurationError(f"{path}: {error}; it was left as it is") from error
