"""kill -9 during a purge, and during a checkpoint next to one: the words still leave every file."""

import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
import pytest

from kalito_mcp import Memory, open_memory
from kalito_mcp.domain.findings import Finding, Verdict
from kalito_mcp.ports.maintenance import OwedErasures
from kalito_mcp.runtime.crash_points import VARIABLE
from kalito_mcp.storage.sqlite.inspection import inspect
from kalito_mcp.storage.sqlite.maintenance import MaintenanceOfSqlite
from tests.flows.test_erasure import CANARY, TALK, holding
from tests.scripted import ScriptedClock
from tests.server import prepared
from tests.server.wire import clean_environment

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")]
ROOT: Final = Path(__file__).parents[2]
SAID: Final = ("msg_1", "msg_2")
POINTS: Final = ("purge.erased", "purge.snapshots")
SLICES: Final = ("sweep.merging", "sweep.merged", "sweep.zeroed")
PURGE: Final = """
import sys, anyio
from kalito_mcp import open_memory

async def main():
    async with open_memory(sys.argv[1]) as memory:
        await memory.settled()
        if sys.argv[2:]:
            await memory.purge(sys.argv[2:])

anyio.run(main)
"""
CHECKPOINT: Final = """
import os, signal, sys, anyio
from pathlib import Path
from kalito_mcp import open_memory
from kalito_mcp.graph import top_subgraph

best, replace, is_ahead, held = top_subgraph.top_subgraph, Path.replace, sys.argv[2] == "before", []

def copied(graph, top_k):
    chosen = best(graph, top_k)
    if not held:
        held.append(print("copied", flush=True))
        sys.stdin.readline()
    return chosen

def killed(self, target):
    if not is_ahead:
        replace(self, target)
    os.kill(os.getpid(), signal.SIGKILL)

top_subgraph.top_subgraph, Path.replace = copied, killed

async def main():
    async with open_memory(sys.argv[1]) as memory:
        await memory.orchestrator().save_snapshot("late")

anyio.run(main)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
async def database(folder: Path) -> Path:
    """A closed memory whose first two messages, and a checkpoint, have the canary."""
    async with open_memory(folder / "memory.db") as memory:
        await memory.record_messages("trip", TALK)
        await memory.finalize_session("trip")
    assert {"memory.db", "default.json"} <= set(holding(folder, CANARY))
    return folder / "memory.db"


def is_killed(database: Path, point: str, *record_ids: str) -> bool:
    """Whether a process that opens the memory and purges these was killed at this point."""
    command = [sys.executable, "-c", PURGE, str(database), *record_ids]
    environment = clean_environment(**{VARIABLE: point})
    return prepared.run(command, cwd=ROOT, env=environment, timeout=60, check=False).returncode == -signal.SIGKILL


def warnings(database: Path) -> list[Finding]:
    return [one for one in inspect(database, is_deep=False) if one.verdict is not Verdict.OK]


@pytest.mark.parametrize("point", POINTS)
async def test_a_purge_that_was_killed_is_finished_by_the_next_start(database: Path, folder: Path, point: str) -> None:
    assert is_killed(database, point, *SAID)
    assert holding(folder, CANARY)
    [owed] = warnings(database)
    assert (owed.check, owed.verdict) == ("erasures", Verdict.WARNING)
    assert "`kalito-mcp purge`" in owed.detail
    async with open_memory(database) as memory:
        await memory.settled()
        assert holding(folder, CANARY) == []
    assert holding(folder, CANARY) == []
    assert warnings(database) == []


async def test_a_sweep_that_is_killed_again_and_again_stays_owed(database: Path, folder: Path) -> None:
    assert is_killed(database, "purge.erased", *SAID)
    for _ in range(2):
        assert is_killed(database, "purge.snapshots")
    assert [one.check for one in warnings(database)] == ["erasures"]
    assert not is_killed(database, "purge.snapshots_of_nothing")
    assert holding(folder, CANARY) == []
    assert not is_killed(database, "purge.snapshots")


@pytest.mark.parametrize("point", SLICES)
async def test_a_sweep_that_is_killed_between_its_slices_is_finished_by_the_next_start(
    database: Path, folder: Path, point: str
) -> None:
    assert is_killed(database, point, *SAID)
    assert is_killed(database, point)
    assert [one.check for one in warnings(database)] == ["erasures"]
    async with open_memory(database) as memory:
        await memory.settled()
    assert holding(folder, CANARY) == []
    assert warnings(database) == []


@pytest.mark.parametrize("point", POINTS)
async def test_the_same_purge_again_finishes_it(database: Path, folder: Path, point: str) -> None:
    async with open_memory(database) as memory:
        await memory.settled()
        assert is_killed(database, point, *SAID)
        report = await memory.purge(SAID)
        assert (report.erased, report.remaining) == (SAID, {})
        assert holding(folder, CANARY) == []
        assert (await memory.purge(SAID)).erased == SAID


@pytest.mark.parametrize(
    "write",
    [
        lambda memory: memory.record_messages("next", TALK[2:3]),
        lambda memory: memory.remember("thought", {"text": "The tram is late."}),
    ],
    ids=["a message", "a thought"],
)
async def test_the_next_write_of_another_process_finishes_it(
    database: Path, folder: Path, write: Callable[[Memory], Awaitable[object]]
) -> None:
    clock = ScriptedClock()
    async with open_memory(database, clock=clock) as memory:
        await memory.settled()
        assert is_killed(database, "purge.erased", *SAID)
        clock.advance(2)
        await write(memory)
        await memory.settled()
        assert holding(folder, CANARY) == []
        assert warnings(database) == []


async def test_one_server_finishes_one_interrupted_purge_after_another(database: Path, folder: Path) -> None:
    clock = ScriptedClock()
    async with open_memory(database, clock=clock) as memory:
        await memory.settled()
        for record_id in SAID:
            assert is_killed(database, "purge.erased", record_id)
            assert warnings(database)
            clock.advance(2)
            await memory.record_messages("next", TALK[2:3])
            await memory.settled()
            assert warnings(database) == []
    assert holding(folder, CANARY) == []


async def test_without_another_write_a_running_server_finishes_it_a_moment_later(
    database: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_swept = anyio.Event()
    finish = MaintenanceOfSqlite.finish_erasures

    async def finish_and_report(chores: MaintenanceOfSqlite, owed: OwedErasures | None = None) -> Mapping[str, str]:
        left = await finish(chores, owed)
        is_swept.set()
        return left

    async with open_memory(database) as memory:
        await memory.record_messages("next", TALK[2:3])
        assert is_killed(database, "purge.erased", *SAID)
        monkeypatch.setattr(MaintenanceOfSqlite, "finish_erasures", finish_and_report)
        await memory.record_messages("next", TALK[3:4])
        with anyio.fail_after(30):
            await is_swept.wait()
        assert holding(folder, CANARY) == []


async def test_processes_that_start_together_finish_it_together(database: Path, folder: Path) -> None:
    assert is_killed(database, "purge.erased", *SAID)
    commands = [[sys.executable, "-c", PURGE, str(database)] for _ in range(4)]
    started = [prepared.start(one, cwd=ROOT, env=clean_environment(), stderr=subprocess.PIPE) for one in commands]
    assert [one.communicate()[1] for one in started] == [b""] * 4
    assert holding(folder, CANARY) == []
    assert warnings(database) == []


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
async def test_before_a_purge_answers_the_cut_of_the_log_is_on_the_disk(database: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    command = ["strace", "-f", "-y", "-o", str(trace), "-e", "trace=ftruncate,fsync,fdatasync,write"]
    program = PURGE.replace("sys.argv[2:])\n\n", "sys.argv[2:])\n            print('answered', flush=True)\n\n")
    command += [sys.executable, "-c", program, str(database), *SAID]
    await anyio.run_process(command, cwd=ROOT, env=clean_environment())
    before, answered, _ = trace.read_text(encoding="utf-8").partition("answered")
    assert answered
    _, cut, since = before.rpartition("ftruncate(")
    log, _, since = since.partition("\n")
    assert cut and f"{database}-wal>, 0)" in log
    assert any("sync(" in line and f"{database}-wal>)" in line for line in since.splitlines())


@asynccontextmanager
async def checkpoint_held(database: Path, killed: str) -> AsyncIterator[tuple[Memory, "subprocess.Popen[bytes]"]]:
    """A memory, and another process that has copied the graph for a checkpoint and dies right before or after its file
    gets its name."""
    async with open_memory(database, clock=ScriptedClock()) as memory:
        with prepared.start(
            [sys.executable, "-c", CHECKPOINT, str(database), killed],
            cwd=ROOT,
            env=clean_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"copied\n"
            yield memory, writer


@pytest.mark.parametrize("killed", ["before", "after"])
async def test_a_checkpoint_copied_before_a_purge_leaves_no_word_whenever_its_writer_dies(
    database: Path, folder: Path, killed: str
) -> None:
    async with checkpoint_held(database, killed) as (memory, writer):
        assert (await memory.purge(SAID)).remaining == {}
        writer.communicate(b"\n")
        assert writer.returncode == -signal.SIGKILL
        assert holding(folder, CANARY) == []


async def test_a_checkpoint_copied_before_a_purge_that_is_killed_is_cleaned_with_it(
    database: Path, folder: Path
) -> None:
    async with checkpoint_held(database, "after") as (memory, writer):
        assert is_killed(database, "purge.erased", *SAID)
        writer.communicate(b"\n")
        assert writer.returncode == -signal.SIGKILL
        assert holding(folder, CANARY)
        assert isinstance(memory.place.clock, ScriptedClock)
        memory.place.clock.advance(2)
        await memory.record_messages("next", TALK[2:3])
        await memory.settled()
        assert holding(folder, CANARY) == []
