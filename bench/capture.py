"""What a prompt waits for its hook, and that no event is lost or recorded twice, whatever the database suffers.

`tool` calls the tool `hook_event` of a server over stdio, as Claude Code does. `command` runs `kalito-hook` as a
process beside this server, with the event on stdin. The memory has 100,000 messages in the project of the prompts.
All times are wall times as a host sees them. `bare_process` is the time of a Python process that does nothing, and
`ping` a call that does nothing, at the same time on the same machine.

Then hooks tell of prompts while another process holds the write lock, imports, or purges; while the server is stopped,
or was killed; and while the disk is full, if this user may mount one. `over_300_ms` counts the hooks that took longer
than promised. When all is well again, each event must be in the database once. An event that is not, or a command that
does not exit with 0, is a violation. If the disk is full to the last byte, the spool is, too: what cannot be kept
anywhere is counted as `said_so` if the hook says so on its stderr or in its answer.

A server that is stopped or killed cannot answer a call of its tool; how long its host waits then is set in the hook.
"""

import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Final

import anyio

from bench.corpus import START_MS, Corpus
from bench.hooks import CommandHost, Told, ToolHost, kept_for_later, marked, not_once, wait_until
from bench.report import emit, latency, options, progress
from bench.troubles import full, locked, small_disk, stopped, working
from kalito_mcp.domain.records import NewMessage, Role
from kalito_mcp.wiring import open_memory

TARGETS: Final = {"tool_p50_ms": 20.0, "command_p50_ms": 80.0, "max_ms": 300.0, "violations": 0}
_BATCH: Final = 1_000
_SESSION: Final = 2_000
_PROMPTS_A_SESSION: Final = 10
_KINDS: Final = ("rare", "middling")
_PATIENCE_S: Final = 90.0
_LOCKED_S: Final = 5.0
_DISK_MB: Final = 24


class Prompts:
    """Prompts, each with its own mark: of every three, one asks and two say something."""

    def __init__(self, folder: Path, seed: int = 3) -> None:
        self._corpus = Corpus(seed)
        self._folder = str(folder)
        self._random = random.Random(seed)
        self.count = 0

    def next(self) -> tuple[str, dict[str, str]]:
        """The mark, and what a hook tells."""
        self.count += 1
        mark = f"p{self.count:06d}q{self._random.getrandbits(32):08x}"
        text = f"What about {self._corpus.query(_KINDS)}?" if self.count % 3 == 1 else self._corpus.text()
        payload = {
            "session_id": f"live-{self.count // _PROMPTS_A_SESSION}",
            "cwd": self._folder,
            "prompt": marked(text, mark),
            "prompt_id": mark,
        }
        return mark, payload


class Measure:
    """Hooks of two hosts on one database."""

    def __init__(self, database: Path, folder: Path, project: Path) -> None:
        self.database = database
        self.tool = ToolHost(database, folder)
        self.command = CommandHost(database, folder)
        self.prompts = Prompts(project)
        self.violations: Counter[str] = Counter()
        self.first_violations: list[str] = []

    def told(self, way: str) -> Told:
        """Tell one prompt."""
        mark, payload = self.prompts.next()
        host = self.tool if way == "tool" else self.command
        return host.tell("UserPromptSubmit", payload, mark)

    def quiet(self, rounds: int, pause_s: float) -> dict[str, Any]:
        """The times while nothing else is done, in turns."""
        told: dict[str, list[Told]] = {"tool": [], "command": []}
        bare: list[float] = []
        ping: list[float] = []
        for _ in range(rounds):
            for way, answers in told.items():
                answers.append(self.told(way))
                time.sleep(pause_s)
            bare.append(self.command.bare_process())
            ping.append(self.tool.ping())
        self.check("quiet", [one for answers in told.values() for one in answers])
        figures = {way: self._figures(answers) for way, answers in told.items()}
        return {**figures, "bare_process": latency(bare), "ping": latency(ping)}

    def during(
        self, name: str, trouble: AbstractContextManager[Any], ways: Sequence[str], rounds: int, pause_s: float
    ) -> dict[str, Any]:
        """The times during a trouble, and whether all is well after it."""
        told: dict[str, list[Told]] = {way: [] for way in ways}
        with trouble:
            for _ in range(rounds):
                for way, answers in told.items():
                    answers.append(self.told(way))
                    time.sleep(pause_s)
        if name == "killed":
            self.tool.start_again()
        started = time.perf_counter()
        given_up = self.check(name, [one for answers in told.values() for one in answers], is_full=name == "disk full")
        figures = {way: self._figures(answers) for way, answers in told.items()}
        progress(f"capture: {name} {figures}")
        return {**figures, "recorded_after_s": time.perf_counter() - started, "said_so": given_up}

    def check(self, name: str, told: Sequence[Told], *, is_full: bool = False) -> int:
        """Whether each event is in the database once. Returns how many are not, and their hooks said so."""
        wait_until(lambda: not kept_for_later(self.database), _PATIENCE_S)
        given_up = [one for one in told if is_full and one.error]
        unsaid = [one for one in told if one not in given_up]
        # What goes on being recorded after the hook has gone on without its answer.
        wait_until(lambda: not not_once(self.database, [one.mark for one in unsaid]).total(), _PATIENCE_S / 3)
        found = +not_once(self.database, [one.mark for one in unsaid])
        found += Counter(
            {
                "exit_code": sum(one.exit_code != 0 for one in told),
                "error": sum(bool(one.error) for one in unsaid),
                "spool": kept_for_later(self.database),
            }
        )
        for kind in +found:
            self.first_violations.append(f"{name}: {found[kind]} {kind}")
        self.first_violations += [f"{name}: {one.error[:300]}" for one in unsaid if one.error][:2]
        self.violations += found
        lost = not_once(self.database, [one.mark for one in given_up])
        self.violations += Counter({"doubled": lost["doubled"]})
        return lost["lost"]

    @staticmethod
    def _figures(told: Sequence[Told]) -> dict[str, Any]:
        return {
            **latency([one.took_s for one in told]),
            "over_300_ms": sum(one.is_late for one in told),
            "with_context": sum(bool(one.answer) for one in told),
        }


async def fill(database: Path, project: Path, records: int) -> None:
    """Record so many messages in the project, and let all owed work be done."""
    corpus = Corpus()
    async with open_memory(database) as opened:
        memory = await opened.in_project(str(project))
        for first in range(0, records, _BATCH):
            batch = [
                NewMessage((Role.USER, Role.ASSISTANT)[place % 2], corpus.text(), created_at=START_MS + place * 60_000)
                for place in range(first, min(first + _BATCH, records))
            ]
            await memory.record_messages(f"session-{first // _SESSION}", batch)
        progress(f"capture: {records} messages are recorded")
        await memory.settled()


def measure(folder: Path, records: int, rounds: int, pause_s: float) -> dict[str, Any]:
    """All figures."""
    project = folder / "shop"
    (project / ".git").mkdir(parents=True)
    database = folder / "memory.db"
    anyio.run(fill, database, project, records)
    hosts = Measure(database, folder, project)
    both, fewer = ("tool", "command"), max(3, rounds // 5)
    try:
        hosts.tool.greet()
        quiet = hosts.quiet(rounds, pause_s)
        progress(f"capture: quiet {quiet}")
        troubles = {
            "locked": hosts.during("locked", locked(database, _LOCKED_S), both, fewer, pause_s),
            "import": hosts.during("import", working(database, "import"), both, fewer, pause_s),
            "purge": hosts.during("purge", working(database, "purge"), both, fewer, pause_s),
            "stopped": hosts.during("stopped", stopped(hosts.tool.process_id), ["command"], fewer, pause_s),
        }
        hosts.tool.server.kill()
        troubles["killed"] = hosts.during("killed", nullcontext(), ["command"], fewer, pause_s)
    finally:
        hosts.tool.close()
    small = folder / "disk"
    with small_disk(small, _DISK_MB) as is_mounted:
        if is_mounted:
            anyio.run(fill, small / "memory.db", project, _BATCH)
            on_disk = Measure(small / "memory.db", folder, project)
            try:
                on_disk.tool.greet()
                troubles["disk full"] = on_disk.during("disk full", full(small), both, fewer, pause_s)
            finally:
                on_disk.tool.close()
            hosts.violations += on_disk.violations
            hosts.first_violations += on_disk.first_violations
    longest = [of[way]["max_ms"] for of in (quiet, *troubles.values()) for way in both if way in of]
    return {
        "records": records,
        "quiet": quiet,
        **troubles,
        "longest_ms": max(longest),
        "violations": hosts.violations.total(),
        "violations_by_kind": dict(hosts.violations),
        "first_violations": hosts.first_violations[:10],
        "targets": TARGETS,
    }


def main() -> int:
    """Run the benchmark. The exit code is 1 if an event was lost or doubled, or a command failed."""
    parser = options(__doc__)
    parser.add_argument("--records", type=int, help="default 100,000, quick 1,000")
    parser.add_argument("--rounds", type=int, help="prompts on each way in quiet (default 200, quick 15)")
    parser.add_argument("--pause", type=float, default=0.1, help="seconds between two prompts")
    given = parser.parse_args()
    records = given.records or (1_000 if given.quick else 100_000)
    rounds = given.rounds or (15 if given.quick else 200)
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(Path(folder), records, rounds, given.pause)
    emit("capture", figures)
    return 1 if figures["violations"] else 0


if __name__ == "__main__":
    sys.exit(main())
