"""`finalize_session` killed with SIGKILL at each stage: a second call ends in the same state."""

import shutil
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from kalito_mcp import CreatePinRequest, NewMessage, Role, Settings, SleepCycleOptions, open_memory
from kalito_mcp.domain.finalizing import Finalized, FinalizeOptions
from kalito_mcp.domain.sessions import FinalizeStage, Session, SessionState
from kalito_mcp.errors import SessionFinalized
from kalito_mcp.runtime.crash_points import VARIABLE
from tests.scripted import CountedIds, ScriptedClock
from tests.server import prepared
from tests.server.wire import clean_environment
from tests.stored import tables, talk

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
ROOT: Final = Path(__file__).parents[2]
SLEEPY: Final = Settings(sleep=SleepCycleOptions(min_rank=0.5))
STAGE_BEFORE: Final = {
    "finalize.entered": None,
    "finalize.summaries.uncommitted": None,
    "finalize.summaries": "summaries",
    "finalize.sleep.uncommitted": "summaries",
    "finalize.sleep": "sleep",
    "finalize.promotion.uncommitted": "sleep",
    "finalize.promotion": "promotion",
    "finalize.checkpoint.written": "promotion",
    "finalize.checkpoint.uncommitted": "promotion",
    "finalize.checkpoint": "checkpoint",
}
"""Each crash point, and the stage that is stored when it is reached."""
PROGRAM: Final = """
import sys
from pathlib import Path
import anyio
from tests.flows.test_finalize_crashes import finalize
anyio.run(finalize, Path(sys.argv[1]), 1_000)
"""


async def prepare(database: Path) -> None:
    """A session that the agent learned from, and one with a pin, feedback and an unsummarised rest, not yet closed."""
    async with open_memory(database, SLEEPY, clock=ScriptedClock(), ids=CountedIds()) as memory:
        await memory.record_messages("home", talk(4))
        await memory.finalize_session("home", FinalizeOptions(checkpoint=False))
        fact = [NewMessage(Role.USER, "Please remember: I'm allergic to penicillin.")]
        recorded = await memory.record_messages("trip", [*talk(20), *fact])
        await memory.create_pin(
            CreatePinRequest("trip", "The Oslo flight is SK 4711.", source_message_id=recorded.message_ids[4])
        )
        await memory.settled()
        await memory.record_feedback(recorded.message_ids[1], "up", session_id="trip")


async def finalize(database: Path, first_id: int) -> Finalized:
    """Close it an hour later; `first_id` keeps the ids of two processes apart."""
    clock = ScriptedClock()
    clock.advance(3600)
    async with open_memory(database, SLEEPY, clock=clock, ids=CountedIds(first_id)) as memory:
        return await memory.finalize_session("trip", FinalizeOptions(checkpoint_name="end"))


def outcome(database: Path) -> tuple[dict[str, Any], bytes]:
    """The tables and the checkpoint."""
    return tables(database), (database.parent / f"{database.name}.snapshots" / "end.json").read_bytes()


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the database as it is before."""
    folder = tmp_path_factory.mktemp("prepared")
    anyio.run(prepare, folder / "memory.db")
    return folder


@pytest.fixture(scope="module")
def undisturbed(before: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], bytes]:
    """What it comes to when nothing is killed."""
    folder = shutil.copytree(before, tmp_path_factory.mktemp("undisturbed") / "copy")
    finalized = anyio.run(finalize, folder / "memory.db", 2_000)
    assert finalized.summaries and finalized.sleep and finalized.promotion and finalized.snapshot
    assert finalized.sleep.freed_capacity > 10
    assert finalized.promotion.merged and finalized.promotion.merged < len(finalized.promotion.query_ids)
    return outcome(folder / "memory.db")


@pytest.fixture(scope="module")
def killed(before: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[Path, int]]]:
    """By crash point, a database whose process was killed there, and how that process ended."""

    def kill(point: str) -> tuple[Path, int]:
        folder = shutil.copytree(before, tmp_path_factory.mktemp("killed") / "copy")
        command = [sys.executable, "-c", PROGRAM, str(folder / "memory.db")]
        environment = clean_environment(**{VARIABLE: point})
        ended = prepared.run(command, cwd=ROOT, env=environment, timeout=60, check=False, capture_output=True)
        return folder / "memory.db", ended.returncode

    with ThreadPoolExecutor(3) as pool:
        yield dict(zip(STAGE_BEFORE, pool.map(kill, STAGE_BEFORE), strict=True))


async def session_of(database: Path) -> Session:
    async with open_memory(database, SLEEPY, clock=ScriptedClock(), ids=CountedIds(3_000)) as memory:
        await memory.settled()
        with pytest.raises(SessionFinalized):
            await memory.record_messages("trip", talk(1))
        [session] = [one for one in await memory.conversations.recent() if one.id == "trip"]
        return session


@pytest.mark.parametrize("point", STAGE_BEFORE)
def test_killed_at_any_stage_it_ends_as_if_it_had_not_been(
    point: str, killed: dict[str, tuple[Path, int]], undisturbed: tuple[dict[str, Any], bytes]
) -> None:
    database, code = killed[point]
    assert code == -signal.SIGKILL
    session = anyio.run(session_of, database)
    assert (session.state, session.stage) == (SessionState.FINALIZING, STAGE_BEFORE[point])
    assert session.observed_seq == session.pinned_seq == session.message_count == 41
    assert anyio.run(finalize, database, 2_000).session.state is SessionState.FINALIZED
    again, snapshot = outcome(database)
    expected, expected_snapshot = undisturbed
    assert snapshot == expected_snapshot
    for table, rows in expected.items():
        assert again[table] == rows, table


def test_every_crash_point_is_tried() -> None:
    stages = [f"finalize.{stage}" for stage in FinalizeStage]
    points = {"finalize.entered", "finalize.checkpoint.written", *stages, *(f"{stage}.uncommitted" for stage in stages)}
    assert points == set(STAGE_BEFORE)
