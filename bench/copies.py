"""Copies: conversations of every format, each in five files, are imported in random order by importers that are killed,
while a server records some of them live and is killed, too.

Of each conversation there is an earlier export, the whole one in its place, a copy in another folder, one that is torn,
and one of a worktree: for Claude Code a fork with words of its own. They are put into the folders of the programs in
random order, a few at a time. Beside each import, hooks tell a server what is said in the next conversations of Claude
Code. Half of the imports are killed at a random moment, and so is the server now and then. The last import runs to its
end. Then each message must be stored once and whole, and those of a conversation in order.
"""

import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import anyio

from bench.format_samples import SAMPLES, Talk
from bench.hooks import ToolHost
from bench.imports import faults
from bench.ledger import Violations
from bench.report import ROOT, emit, options, progress
from bench.wire import clean_environment
from kalito_mcp.exchange.importer import Importer, found_in
from kalito_mcp.exchange.programs import SOURCES
from kalito_mcp.wiring import open_memory

NOTES: Final = frozenset(("claude-mem", "server-memory", "basic-memory", "instructions", "mem0", "openmemory"))
"""Sources without conversations."""
_NAMES: Final = tuple(sorted(SAMPLES.keys() - NOTES))
_CONVERSATIONS, _QUICK_CONVERSATIONS = 100, 13
_TURNS, _SHARED = 6, 4
_BATCHES, _QUICK_BATCHES = 8, 2
_MOST_S: Final = 2.0
_CUT_BYTES: Final = 30
_READ: Final = "--import-into"
_SELECT: Final = """
SELECT s.id, r.text FROM records r JOIN sessions s ON s.key = r.session_key WHERE r.type = 'message'
ORDER BY s.key, r.seq
"""


@dataclass(frozen=True, slots=True)
class File:
    """A file that is put somewhere: of a conversation, with these turns. A torn one breaks off."""

    number: int
    place: str
    talk: Talk
    is_torn: bool = False
    is_fork: bool = False

    @property
    def name(self) -> str:
        """The source."""
        return _NAMES[self.number % len(_NAMES)]

    def write(self, home: Path) -> None:
        """Put it into its folder, in place of an earlier one."""
        file, write = SAMPLES[self.name]
        named = f"{self.talk.session}.jsonl" if self.name == "claude-code" else file
        path = home / self.name / self.place / f"c{self.number}" / named
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, self.talk)
        raw = path.read_bytes()
        if self.is_fork:
            for turn in range(_SHARED, _TURNS):
                raw = raw.replace(f'"{self.talk.prefix}u{turn}"'.encode(), f'"{self.talk.prefix}f{turn}"'.encode())
            fork = f'"forkedFrom": {{"sessionId": "{_session(self.number)}"}}, "type": "'.encode()
            head, *lines = raw.splitlines(keepends=True)
            raw = head + b"".join(line.replace(b'"type": "', fork, 1) for line in lines[:_SHARED])
            raw += b"".join(lines[_SHARED:])
            path.write_bytes(raw)
        if self.is_torn and not raw.startswith(b"SQLite"):
            path.write_bytes(raw[:-_CUT_BYTES])


def _session(number: int, kind: str = "a") -> str:
    return f"{number:08x}-{kind * 4}-4000-8000-000000000000"


def _said(number: int, kind: str = "turn") -> tuple[tuple[str, str], ...]:
    return tuple(
        (
            ("user", "assistant")[turn % 2],
            f"{kind} {number} {turn}: where is boat {number * 100 + turn}, and who sails it?",
        )
        for turn in range(_TURNS)
    )


def files_of(number: int) -> list[File]:
    """The five files of a conversation."""
    talk = Talk(_said(number), f"/home/ann/project{number % 7}", f"{number}-", _session(number))
    other = replace(talk, folder=f"{talk.folder}-worktree")
    fork = replace(other, said=talk.said[:_SHARED] + _said(number, "fork")[_SHARED:], session=_session(number, "b"))
    is_fork = _NAMES[number % len(_NAMES)] == "claude-code"
    return [
        File(number, "first", replace(talk, said=talk.said[:2])),
        File(number, "first", talk),
        File(number, "moved", talk),
        File(number, "torn", talk, is_torn=True),
        File(number, "worktree", fork if is_fork else other, is_fork=is_fork),
    ]


def expected_of(number: int) -> list[list[str]]:
    """What has to be stored of a conversation: texts that are each in it once, in this order."""
    whole = [text for _, text in _said(number)]
    fork = [text for _, text in _said(number, "fork")[_SHARED:]]
    return [whole, fork] if _NAMES[number % len(_NAMES)] == "claude-code" else [whole]


async def import_all(home: Path, database: Path) -> None:
    """Import what is in the folders of all programs."""
    async with open_memory(database) as memory:
        for name in _NAMES:
            paths = [path for path in sorted((home / name).rglob("*")) if path.is_file()]
            await Importer(memory).run(found_in(SOURCES[name], paths))


class Campaign:
    """Conversations, their files, one database, and a server that hooks reach."""

    def __init__(self, folder: Path, conversations: int, batches: int, seed: int) -> None:
        self._random = random.Random(seed)
        self._home, self.database = folder / "home", folder / "memory.db"
        self._host = ToolHost(self.database, folder)
        self._environment = clean_environment(folder) | {"PYTHONPATH": str(ROOT)}
        self._numbers = range(conversations)
        self._batches = batches
        self._told: set[int] = set()
        self.kills = 0
        self.events = 0

    def run(self) -> None:
        """Put the files into their folders and import them, until all are there and an import has ended."""
        files = [file for number in self._numbers for file in files_of(number)]
        self._random.shuffle(files)
        # The earlier export comes before the whole one, in the places that both got.
        for number in self._numbers:
            places = [place for place, one in enumerate(files) if (one.number, one.place) == (number, "first")]
            for place, one in zip(places, files_of(number)[:2], strict=True):
                files[place] = one
        size = -(-len(files) // self._batches)
        batches = [files[first : first + size] for first in range(0, len(files), size)]
        self._host.greet()
        try:
            with ThreadPoolExecutor(1) as hooks:
                self._tell(batches[0])
                for batch, following in zip(batches, [*batches[1:], []], strict=True):
                    for file in batch:
                        file.write(self._home)
                    telling = hooks.submit(self._tell, following)
                    self._import(is_killed=self._random.random() < 1 / 2)
                    telling.result()
                    if self._random.random() < 1 / self._batches:
                        self._host.server.kill()
                        self._host.start_again()
                        self.kills += 1
                self._import(is_killed=False)
        finally:
            self._host.close()

    def _tell(self, files: Sequence[File]) -> None:
        """Let hooks report every other conversation of Claude Code before a file of it is there."""
        for number in {file.number for file in files if file.name == "claude-code"} - self._told:
            self._told.add(number)
            for place, (role, text) in enumerate(() if number // len(_NAMES) % 2 else _said(number)):
                event, field = ("UserPromptSubmit", "prompt") if role == "user" else ("Stop", "text")
                payload = {"session_id": _session(number), "cwd": "/", "prompt_id": f"{number}-{place}", field: text}
                self.events += 1
                self._host.tell(event, payload, "")

    def _import(self, *, is_killed: bool) -> None:
        command = [sys.executable, "-m", "bench.copies", _READ, str(self._home), str(self.database)]
        importing = subprocess.Popen(command, env=self._environment, cwd=ROOT)
        if is_killed:
            time.sleep(self._random.uniform(0, _MOST_S))
            self.kills += importing.poll() is None
            importing.kill()
            importing.wait()
        elif code := importing.wait():
            raise RuntimeError(f"the import ended with {code}")

    def look(self, violations: Violations) -> int:
        """Compare what is stored with what was said; how many messages there are."""
        with closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True)) as connection:
            rows = connection.execute(_SELECT).fetchall()
        places: dict[str, list[tuple[str, int]]] = {}
        for place, (session, text) in enumerate(rows):
            places.setdefault(text, []).append((session, place))
        known = {text for number in self._numbers for texts in expected_of(number) for text in texts}
        for text in places.keys() - known:
            violations.add("not_whole", text)
        for texts in (texts for number in self._numbers for texts in expected_of(number)):
            last: dict[str, int] = {}
            for text in texts:
                found = places.get(text, [])
                if len(found) != 1:
                    violations.add("twice" if found else "missing", f"{text} {found}")
                for session, place in found[:1]:
                    if place < last.get(session, -1):
                        violations.add("order", text)
                    last[session] = place
        for fault in faults(self.database):
            violations.add("inspection", fault)
        return len(rows)


def campaign(*, conversations: int, batches: int = _BATCHES, seed: int = 1) -> dict[str, Any]:
    """Import the copies of this many conversations. Returns the figures."""
    violations, started = Violations(), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        copies = Campaign(Path(folder), conversations, batches, seed)
        copies.run()
        messages = copies.look(violations)
    return {
        "seed": seed,
        "conversations": conversations,
        "formats": len(_NAMES),
        "files": 5 * conversations,
        "messages": messages,
        "events": copies.events,
        "kills": copies.kills,
        **violations.figures(),
        "took_s": time.perf_counter() - started,
    }


def main() -> int:
    """Run the campaign. The exit code is 1 if it found a violation."""
    parser = options(__doc__)
    parser.add_argument("--conversations", type=int, help=f"default {_CONVERSATIONS}, quick {_QUICK_CONVERSATIONS}")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(_READ, type=Path, nargs=2, metavar=("HOME", "DATABASE"), help="only import what is there")
    given = parser.parse_args()
    if given.import_into:
        anyio.run(import_all, *given.import_into)
        return 0
    count = given.conversations or (_QUICK_CONVERSATIONS if given.quick else _CONVERSATIONS)
    progress(f"copies: {count} conversations")
    figures = campaign(conversations=count, batches=_QUICK_BATCHES if given.quick else _BATCHES, seed=given.seed)
    emit("copies", figures)
    return 1 if figures["violations"] else 0


if __name__ == "__main__":
    sys.exit(main())
