"""Damaged files: each import format, the archive, and the configuration of each host, 10,000 times each.

A file of a format is damaged at random: bytes change, go, come twice or are cut off; in JSON, a value becomes another,
a name goes, or an element comes twice. The same seed damages the same. A violation is

- `crash`: a reader raises what `Importer` does not count as unreadable, or gives a turn that no memory could store;
- `unnamed`: because of one other value a text is not read though it is still there, and the report names nothing; of
  databases this is not looked at;
- `half`: of each hundredth file, imported into a memory: its messages are not those that the reader gave, or a second
  import changes something; and a damaged archive that is refused has left rows in the database;
- `host`: a configuration that is neither refused nor edited so that the edit can be undone.
"""

import random
import shutil
import sqlite3
import sys
import tempfile
import time
import zipfile
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import anyio

from bench.damage import contents, damaged, damaged_inside
from bench.format_samples import SAMPLES, Talk
from bench.report import ROOT, emit, options, progress
from kalito_mcp.domain.archive import Selection
from kalito_mcp.domain.records import NewMessage, Role
from kalito_mcp.errors import Conflict, InvalidInput
from kalito_mcp.exchange.archive import restore_archive, write_archive_file
from kalito_mcp.exchange.conversation import Conversation, Note, Reading
from kalito_mcp.exchange.importer import Importer, found_in
from kalito_mcp.exchange.programs import SOURCES
from kalito_mcp.hosts.edits import Part, Wish, has_ours, removed, written
from kalito_mcp.hosts.facts import HookFile, Launcher
from kalito_mcp.hosts.known import HOSTS
from kalito_mcp.hosts.places import Places
from kalito_mcp.memory import Memory
from kalito_mcp.wiring import open_memory

_MUTATIONS, _QUICK_MUTATIONS = 10_000, 200
_STORED_EVERY: Final = 100
_RESTORED_EVERY: Final = 20
_SHOWN: Final = 3
_MOST_SESSIONS: Final = 1_000_000
_GOLDEN: Final = ROOT / "tests" / "hosts" / "golden"
_REFUSED: Final = (OSError, sqlite3.Error, zipfile.BadZipFile, EOFError, ValueError, zlib.error)
"""As in `Importer`."""
_WISH: Final = Wish(Launcher("/b/kalito-mcp", "/b/kalito-hook"), has_hooks=True, variables={"KALITO_HOOKS": "x"})


class Found:
    """Counts what was tried, and the violations with the first of each kind."""

    def __init__(self) -> None:
        self.tried: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.violations: Counter[str] = Counter()
        self.first: list[str] = []

    def add(self, kind: str, what: str) -> None:
        """Add a violation."""
        self.violations[kind] += 1
        if self.violations[kind] <= _SHOWN:
            self.first.append(f"{kind}: {what[:1600]}")


def read(name: str, path: Path) -> tuple[list[tuple[str, str, str]], Counter[str]]:
    """The texts of a file with their sessions and keys, and what is skipped. Raises AssertionError."""
    reading = Reading(path)
    found: list[tuple[str, str, str]] = []
    for one in SOURCES[name].read(reading):
        if isinstance(one, Note):
            one.text.encode()
            found.append(("", one.name, one.text))
            continue
        assert isinstance(one, Conversation) and isinstance(one.session_id, str)
        assert one.folder is None or isinstance(one.folder, str)
        for turn in one.turns:
            turn.text.encode()
            assert isinstance(turn.role, Role) and turn.text.strip() and isinstance(turn.key, str)
            assert turn.at is None or isinstance(turn.at, int)
            found.append((one.session_id, turn.key, turn.text))
    return found, reading.skipped


async def damage_source(name: str, folder: Path, memory: Memory, times: int, seed: int, found: Found) -> None:
    """Damage a file of a source, many times."""
    chance = random.Random(f"{seed} {name}")
    file, write = SAMPLES[name]
    path = folder / file
    write(path, Talk())
    raw = path.read_bytes()
    whole, _ = read(name, path)
    for number in range(times):
        path.write_bytes(raw)
        is_inside = number % 2 == 1 and damaged_inside(path, chance)
        if not is_inside:
            path.write_bytes(damaged(raw, chance))
        found.tried[name] += 1
        try:
            texts, skipped = read(name, path)
        except _REFUSED:
            found.refused[name] += 1
            continue
        except Exception as error:
            found.add("crash", f"{name} {number}: {type(error).__name__}: {error}")
            continue
        if is_inside and len(texts) < len(whole) and not skipped:
            there, read_now = contents(path), {text for _, _, text in texts}
            if any(text not in read_now and text.encode() in there for _, _, text in whole):
                found.add("unnamed", f"{name} {number}: {there.decode()[:1500]}")
        if number % _STORED_EVERY == 0:
            await _store(name, path, memory, number, found)


async def _store(name: str, path: Path, memory: Memory, number: int, found: Found) -> None:
    """Import the file twice: what the report says must be there, and the second changes nothing."""
    # In a place of its own: of a file that was read before only what is new would be read.
    path = shutil.copy(path, Path(tempfile.mkdtemp(dir=path.parent)) / path.name)
    counted = await Importer(None).run(found_in(SOURCES[name], [path]))
    before = await _count(memory)
    first = await Importer(memory).run(found_in(SOURCES[name], [path]))
    between = await _count(memory)
    second = await Importer(memory).run(found_in(SOURCES[name], [path]))
    if between - before != first.messages or second.messages or await _count(memory) != between:
        found.add("half", f"{name} {number}: {between - before} of {first.messages}, then {second.messages}")
    if first.messages + first.present + sum(first.skipped.values()) < counted.messages:
        found.add("unnamed", f"{name} {number}: {counted.messages} read, {first}")


async def _count(memory: Memory) -> int:
    return sum(session.message_count for session in await memory.conversations.recent(limit=_MOST_SESSIONS))


async def damage_archive(folder: Path, times: int, seed: int, found: Found) -> None:
    """Damage an archive: all of it is restored, or nothing."""
    chance = random.Random(f"{seed} archive")
    whole, path, database = folder / "whole.jsonl", folder / "archive.jsonl", folder / "restored.db"
    async with open_memory(folder / "filled.db") as memory:
        await memory.record_messages("s", [NewMessage(Role.USER, f"The ferry {n} is late.") for n in range(6)])
        await memory.remember("note", {"text": "I am allergic to nuts."})
        await memory.forget("msg_2")
        await write_archive_file(memory, whole, Selection())
    raw = whole.read_bytes()
    async with open_memory(database) as memory:
        for number in range(times):
            path.write_bytes(damaged(raw, chance))
            if _without_line_ends(path.read_bytes()) == _without_line_ends(raw):
                continue
            found.tried["archive"] += 1
            try:
                await restore_archive(memory, path)
            except (InvalidInput, Conflict):
                found.refused["archive"] += 1
            except Exception as error:
                found.add("crash", f"archive {number}: {type(error).__name__}: {error}")
            else:
                changed = path.read_bytes()
                at = next((n for n, (a, b) in enumerate(zip(raw, changed, strict=False)) if a != b), len(raw))
                found.add(
                    "half",
                    f"archive {number}: a damaged archive was restored: {raw[at - 40 : at + 60]!r} "
                    f"became {changed[at - 40 : at + 60]!r}",
                )
                return
            if number % _RESTORED_EVERY == 0 and await memory.conversations.recent():
                found.add("half", f"archive {number}: it was refused and left rows")
                return
        if times:
            await restore_archive(memory, whole)


def _without_line_ends(raw: bytes) -> list[bytes]:
    return [line.rstrip(b"\r") for line in raw.rstrip(b" \r\n").split(b"\n")]


def host_files() -> list[tuple[str, tuple[Part, ...], str]]:
    """Each configuration file of a host that tests have, and what is written into it."""
    found = []
    for host in HOSTS:
        places = Places("linux", _GOLDEN / host.key / "before", {})
        parts: dict[Path, tuple[Part, ...]] = {Path(host.entry.where(places)): (host.entry,)}
        if isinstance(host.hooks, HookFile):
            path = Path(host.hooks.where(places))
            parts[path] = (*parts.get(path, ()), host.hooks)
        found += [(host.key, among, path.read_text()) for path, among in parts.items() if path.exists()]
    return found


def damage_hosts(times: int, seed: int, found: Found) -> None:
    """Damage the configuration of hosts: refused, or edited so that the edit can be undone."""
    for place, (host, parts, text) in enumerate(host_files()):
        chance = random.Random(f"{seed} {host} {place}")
        for number in range(times):
            before = damaged(text.encode(), chance).decode("utf-8", "replace")
            found.tried[f"host {host}"] += 1
            try:
                after = written(parts, before, _WISH)
            except ValueError:
                found.refused[f"host {host}"] += 1
                continue
            except Exception as error:
                found.add("crash", f"{host} {number}: {type(error).__name__}: {error}")
                continue
            try:
                is_ours = has_ours(parts, after) and written(parts, after, _WISH) == after
                is_undone = has_ours(parts, before) or removed(parts, after, before) == before
            except Exception as error:
                found.add("crash", f"{host} {number}: {type(error).__name__}: {error} in what was written")
                continue
            if not (is_ours and is_undone):
                found.add("host", f"{host} {number}: {before!r}")


def campaign(*, mutations: int, seed: int = 1, only: Sequence[str] = ()) -> dict[str, Any]:
    """Damage each format `mutations` times. Returns the figures."""
    found = Found()
    started = time.perf_counter()

    async def run(folder: Path) -> None:
        async with open_memory(folder / "memory.db") as memory:
            for name in SOURCES:
                if name not in SAMPLES:
                    found.add("no_sample", name)
                elif not only or name in only:
                    await damage_source(name, folder, memory, mutations, seed, found)
                    progress(f"formats: {name} {dict(found.violations)}")
        if not only or "archive" in only:
            await damage_archive(folder, mutations, seed, found)
            progress(f"formats: archive {dict(found.violations)}")

    with tempfile.TemporaryDirectory() as folder:
        anyio.run(run, Path(folder))
    if not only or "hosts" in only:
        damage_hosts(mutations, seed, found)
    return {
        "seed": seed,
        "mutations": found.tried.total(),
        "formats": len(found.tried),
        "refused_whole": dict(found.refused),
        "violations": found.violations.total(),
        "violations_by_kind": dict(found.violations),
        "first_violations": found.first,
        "took_s": time.perf_counter() - started,
    }


def main() -> int:
    """Run the campaign. The exit code is 1 if it found a violation."""
    parser = options(__doc__)
    parser.add_argument("--mutations", type=int, help=f"of each (default {_MUTATIONS}, quick {_QUICK_MUTATIONS})")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", default=[], help="sources, `archive`, `hosts`")
    given = parser.parse_args()
    mutations = given.mutations or (_QUICK_MUTATIONS if given.quick else _MUTATIONS)
    figures = campaign(mutations=mutations, seed=given.seed, only=given.only)
    emit("formats", figures)
    return 1 if figures["violations"] else 0


if __name__ == "__main__":
    sys.exit(main())
