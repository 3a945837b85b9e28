"""A day of work: two hosts at once tell a memory of 300 prompts and their replies, in three repositories.

One host calls the tool of the server that it has started and writes transcripts, as Claude Code does. The other, Codex,
runs `kalito-hook` and has a server of its own. In the middle of the day the first host's server is killed with SIGKILL
at a random moment, and its host starts it again. Codex goes on meanwhile. Conversations end, except the one in which
the server was killed.

Afterwards each prompt and reply must be in the database once, and in the project of its repository. A call of the tool
that was open when its server was killed is cut off, and no host makes it again. What it told may be missing until the
transcripts are imported, and must be there once then. A hook that is a command is never cut off.
"""

import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import anyio

from bench.corpus import Corpus
from bench.hooks import LIMIT_S, CommandHost, Told, ToolHost, kept_for_later, marked, stored, wait_until
from bench.report import emit, latency, options, progress
from kalito_mcp.domain.findings import Verdict
from kalito_mcp.domain.time import to_iso
from kalito_mcp.exchange.importer import Importer, found_in
from kalito_mcp.exchange.sources import SOURCES
from kalito_mcp.storage.sqlite.inspection import inspect
from kalito_mcp.wiring import open_memory

_REPOSITORIES: Final = ("shop", "harbour", "notes")
_TURNS_A_SESSION: Final = 10
_PATIENCE_S: Final = 90.0
_TOOL, _COMMAND = "claude-code", "codex"


@dataclass(slots=True)
class Side:
    """One host's part of the day: what it told, and in which project each text belongs."""

    host: str
    told: list[Told] = field(default_factory=list[Told])
    project_of: dict[str, str] = field(default_factory=dict[str, str])
    cut: set[str] = field(default_factory=set[str])
    """The marks of what was told in calls that were cut off."""
    cut_sessions: set[str] = field(default_factory=set[str])


class Day:
    """Two hosts, three repositories, one database."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._random = random.Random(seed)
        self._seed = seed
        self.database = folder / "memory.db"
        self.repositories = [folder / name for name in _REPOSITORIES]
        for repository in self.repositories:
            subprocess.run(["git", "init", "--quiet", str(repository)], check=True)
        self.first = ToolHost(self.database, folder, _TOOL)
        self.second = ToolHost(self.database, folder, _COMMAND)
        self.command = CommandHost(self.database, folder, _COMMAND)
        self.sides = {name: Side(name) for name in (_TOOL, _COMMAND)}
        self._transcripts = folder / "transcripts"
        self._transcripts.mkdir()
        self._half_is_over = threading.Event()

    def play(self, prompts: int) -> int:
        """The whole day, until the spool is empty. Returns how many events it had when the last was told."""
        self.first.greet()
        self.second.greet()
        half = prompts // 2
        sides = [
            threading.Thread(target=self._side, args=(_TOOL, half)),
            threading.Thread(target=self._side, args=(_COMMAND, prompts - half)),
        ]
        for side in sides:
            side.start()
        while not self._half_is_over.wait(1) and sides[0].is_alive():
            continue
        time.sleep(self._random.uniform(0, 0.2))
        self.first.server.kill()
        for side in sides:
            side.join()
        left = kept_for_later(self.database)
        wait_until(lambda: not kept_for_later(self.database), _PATIENCE_S)
        wait_until(lambda: not self._missing(), _PATIENCE_S / 9)
        self.first.close()
        self.second.close()
        return left

    def _missing(self) -> set[str]:
        return {mark for side in self.sides.values() for mark in side.project_of} - set(stored(self.database))

    def _side(self, host: str, prompts: int) -> None:
        """The prompts and replies of one host."""
        side, corpus, chance = self.sides[host], Corpus(len(host)), random.Random(self._seed + len(host))
        for number in range(prompts):
            session, place = divmod(number, _TURNS_A_SESSION)
            session_id = f"{len(host):08x}-{session:04x}-4000-8000-{self._seed:012x}"
            repository = self.repositories[session % len(self.repositories)]
            turn = f"{host.replace('-', '')}{number}"
            for kind in ("prompt", "reply"):
                mark = f"{turn}{kind}{chance.getrandbits(32):08x}"
                text = marked(corpus.text(), mark)
                self._tell(side, kind, session_id, repository, turn, text, mark)
            is_last = place == _TURNS_A_SESSION - 1 or number == prompts - 1
            if is_last and session_id not in side.cut_sessions:
                told = {"session_id": session_id, "cwd": str(repository), "reason": "other"}
                (self.command if host == _COMMAND else CommandHost(self.database, self._folder, host)).tell(
                    "SessionEnd", told, ""
                )
            if host == _TOOL and number == prompts // 2:
                self._half_is_over.set()

    def _tell(self, side: Side, kind: str, session_id: str, repository: Path, turn: str, text: str, mark: str) -> None:
        payload = {"session_id": session_id, "cwd": str(repository), "prompt_id": turn}
        event = "UserPromptSubmit" if kind == "prompt" else "Stop"
        side.project_of[mark] = str(repository)
        if side.host == _COMMAND:
            words = {"prompt": text} if kind == "prompt" else {"last_assistant_message": text}
            side.told.append(self.command.tell(event, payload | words, mark))
            return
        self._write(session_id, repository, kind, text, mark)
        told = self.first.tell(event, payload | {"prompt" if kind == "prompt" else "text": text}, mark)
        if told.error == "gone":
            side.cut.add(mark)
            side.cut_sessions.add(session_id)
            self.first.start_again()
        else:
            side.told.append(told)

    def _write(self, session_id: str, repository: Path, kind: str, text: str, mark: str) -> None:
        """A line of a transcript of Claude Code."""
        role = "user" if kind == "prompt" else "assistant"
        record = {
            "type": role,
            "uuid": mark,
            "sessionId": session_id,
            "cwd": str(repository),
            "timestamp": to_iso(time.time_ns() // 1_000_000),
            "isSidechain": False,
            "message": {"role": role, "content": text if role == "user" else [{"type": "text", "text": text}]},
        }
        with (self._transcripts / f"{session_id}.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")

    def look(self, *, is_imported: bool) -> tuple[Counter[str], list[str]]:
        """What is wrong: how often, by kind, and the first of each."""
        found = stored(self.database)
        wrong: Counter[str] = Counter()
        first: list[str] = []

        def add(kind: str, mark: str) -> None:
            wrong[kind] += 1
            if wrong[kind] == 1:
                first.append(f"{'after the import, ' if is_imported else ''}{kind}: {mark}")

        for side in self.sides.values():
            for mark, project in side.project_of.items():
                places = found.get(mark, [])
                if not places and (is_imported or mark not in side.cut):
                    add("lost", mark)
                if len(places) > 1:
                    add("doubled", mark)
                if any(place != project for place in places):
                    add("other_project", mark)
            for told in side.told:
                if told.exit_code or told.error:
                    add("error", f"{told.mark}: {told.error[:300]}")
        return wrong, first

    async def take_transcripts(self) -> dict[str, int]:
        """Import the transcripts of the first host."""
        source = SOURCES[_TOOL]
        async with open_memory(self.database) as memory:
            report = await Importer(memory).run(found_in(source, source.within(self._transcripts)))
            await memory.settled()
        return {
            "new": report.messages,
            "present": report.present,
            "continued_sessions": report.continued_sessions,
            "skipped": report.skipped.total() + len(report.unreadable),
        }


def _times(told: Sequence[Told]) -> dict[str, Any]:
    times = [one.took_s for one in told]
    return {**latency(times), "over_300_ms": sum(time_s > LIMIT_S for time_s in times)}


def campaign(*, prompts: int, seed: int = 1) -> dict[str, Any]:
    """Play one day. Returns the figures."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as named:
        day = Day(Path(named).resolve(), seed)
        try:
            left = day.play(prompts)
            progress(f"workday: {prompts} prompts are told")
        finally:
            day.first.close()
            day.second.close()
        violations, first = day.look(is_imported=False)
        missing = day.sides[_TOOL].cut - set(stored(day.database))
        imported = anyio.run(day.take_transcripts)
        then, first_then = day.look(is_imported=True)
        violations.update(then)
        if found := [one for one in inspect(day.database, is_deep=True) if one.verdict is Verdict.FAILED]:
            violations["inspection"] += len(found)
            first.append(f"inspection: {found[0].check}: {found[0].detail}")
    return {
        "seed": seed,
        "prompts_and_replies": sum(len(side.project_of) for side in day.sides.values()),
        "cut_calls": len(day.sides[_TOOL].cut),
        "missing_until_imported": len(missing),
        "imported": imported,
        "in_spool_at_the_end": left,
        "tool": _times(day.sides[_TOOL].told),
        "command": _times(day.sides[_COMMAND].told),
        "violations": violations.total(),
        "violations_by_kind": dict(violations),
        "first_violations": [*first, *first_then][:10],
        "took_s": time.perf_counter() - started,
    }


def main() -> int:
    """Play the day. The exit code is 1 if something was lost, doubled, or in another project."""
    parser = options(__doc__)
    parser.add_argument("--prompts", type=int, help="default 300, quick 30")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    figures = campaign(prompts=given.prompts or (30 if given.quick else 300), seed=given.seed)
    emit("workday", figures)
    return 1 if figures["violations"] else 0


if __name__ == "__main__":
    sys.exit(main())
