"""Closing a session: the preview matches what is done, and each stage is done once, whoever calls."""

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from kalito_mcp import CreatePinRequest, Memory, NewMessage, PromotionPolicy, Role, Settings, open_memory
from kalito_mcp.domain.finalizing import Finalized, FinalizeOptions
from kalito_mcp.domain.graph import (
    GraphPolicy,
)
from kalito_mcp.domain.sessions import SessionState
from kalito_mcp.domain.sleep import (
    SleepCycleOptions,
)
from kalito_mcp.errors import InvalidInput, SessionFinalized
from tests.empty_database import lay_empty_database
from tests.scripted import CountedIds, ScriptedClock
from tests.stored import content, said, tables, talk, texts_of

pytestmark = pytest.mark.anyio
DRY = FinalizeOptions(dry_run=True)
SLEEPY = Settings(sleep=SleepCycleOptions(min_rank=1.0))
"""Merges everything that is similar."""


@pytest.fixture
async def memory(database: Path) -> AsyncIterator[Memory]:
    """A session with many similar questions, feedback and a pin; nothing is owed."""
    async with open_memory(lay_empty_database(database), SLEEPY, clock=ScriptedClock(), ids=CountedIds()) as opened:
        await opened.record_messages("home", talk(3))
        await opened.finalize_session("home", FinalizeOptions(checkpoint=False))
        recorded = await opened.record_messages("trip", talk(20))
        await opened.create_pin(
            CreatePinRequest("trip", "The boiler is fine.", source_message_id=recorded.message_ids[0])
        )
        await opened.settled()
        await opened.record_feedback(recorded.message_ids[3], "up", session_id="trip")
        yield opened


class Heard:
    """A progress callback that records its calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[float, float | None, str | None]] = []

    async def __call__(self, done: float, total: float | None, message: str | None) -> None:
        self.calls.append((done, total, message))


async def test_a_dry_run_changes_nothing_on_disk(memory: Memory, database: Path) -> None:
    before = tables(database, is_exact=True)
    told = await memory.finalize_session("trip", DRY)
    assert told.is_dry_run and told.session.state is SessionState.OPEN
    assert tables(database, is_exact=True) == before
    assert memory.orchestrator().list_snapshots() == []
    await memory.record_messages("trip", talk(1))


async def test_a_dry_run_reports_what_is_done_later(memory: Memory) -> None:
    told = await memory.finalize_session("trip", DRY)
    done = await memory.finalize_session("trip")
    assert told.sleep is not None and told.sleep.freed_capacity > 5
    assert told.promotion is not None and told.promotion.merged > 0
    assert (told.sleep, told.promotion) == (done.sleep, done.promotion)
    assert (told.snapshot, told.summaries) == (None, ())


async def test_a_dry_run_does_owed_work_first_and_includes_it(database: Path) -> None:
    async with open_memory(database, SLEEPY, clock=ScriptedClock()) as memory:
        memory._services.owed.nudge = lambda scope: None  # type: ignore[method-assign]  # as if it had no time yet
        await memory.record_messages("trip", [*talk(8), *said("Please remember: I'm allergic to penicillin.", "Yes.")])
        told = await memory.finalize_session("trip", DRY)
        done = await memory.finalize_session("trip")
        assert told.sleep is not None and told.sleep.inspected > 0
        assert (told.sleep, told.promotion) == (done.sleep, done.promotion)


async def test_a_dry_run_of_a_closing_session_reports_the_remaining_stages(memory: Memory) -> None:
    class Stop(Exception):
        pass

    async def stop(done: float, total: float | None, message: str | None) -> None:
        if message == "promotion":
            raise Stop

    with pytest.raises(Stop):
        await memory.finalize_session("trip", progress=stop)
    told = await memory.finalize_session("trip", DRY)
    assert (told.session.state, told.session.stage) == (SessionState.FINALIZING, "sleep")
    assert told.sleep is None and told.promotion is not None
    done = await memory.finalize_session("trip")
    assert (done.sleep, done.promotion, done.summaries) == (None, told.promotion, [])
    assert await memory.finalize_session("trip", DRY) == Finalized(done.session, is_dry_run=True)


async def test_progress_reports_each_stage_in_order_before_it_starts(memory: Memory) -> None:
    heard = Heard()
    await memory.finalize_session("trip", progress=heard)
    assert heard.calls == [
        (0, 4, "summaries"), (1, 4, "sleep"), (2, 4, "promotion"), (3, 4, "checkpoint"), (4, 4, "finalized"),
    ]  # fmt: skip
    again = Heard()
    await memory.finalize_session("trip", progress=again)
    assert again.calls == [(4, 4, "finalized")]


async def test_a_finalized_session_is_as_its_stages_left_it(memory: Memory) -> None:
    done = await memory.finalize_session("trip")
    assert (done.session.state, done.session.stage) == (SessionState.FINALIZED, "checkpoint")
    assert done.snapshot is not None and done.snapshot.path.is_file()
    agent = await memory.orchestrator().get_agent_store()
    assert done.promotion is not None
    assert set(done.promotion.query_ids) <= {node.id for node in agent.nodes()}
    with pytest.raises(SessionFinalized):
        await memory.record_messages("trip", talk(1))


async def test_calling_again_changes_nothing(memory: Memory, database: Path) -> None:
    first = await memory.finalize_session("trip")
    assert first.snapshot is not None
    before, written = tables(database, is_exact=True), first.snapshot.path.stat()
    again = await memory.finalize_session("trip")
    assert again == Finalized(first.session, [])
    assert tables(database, is_exact=True) == before
    assert first.snapshot.path.stat() == written


async def test_a_named_snapshot_is_written_for_a_closed_session_too(memory: Memory, database: Path) -> None:
    await memory.finalize_session("trip")
    before = tables(database, is_exact=True)
    again = await memory.finalize_session("trip", FinalizeOptions(checkpoint_name="second"))
    assert again.snapshot is not None and again.snapshot.name == "second"
    assert {one.name for one in memory.orchestrator().list_snapshots()} == {"default", "second"}
    refused = await memory.finalize_session("trip", FinalizeOptions(checkpoint=False, checkpoint_name="third"))
    assert refused.snapshot is None
    assert tables(database, is_exact=True) == before


async def test_the_orchestrators_own_method_is_the_same(memory: Memory) -> None:
    done = await memory.orchestrator().finalize_session("trip", promote=False, checkpoint_name="end")
    assert done.session.state is SessionState.FINALIZED
    assert (done.promotion, done.snapshot and done.snapshot.name) == (None, "end")


async def test_without_promotion_and_checkpoint_the_agent_and_its_files_do_not_change(
    memory: Memory,
) -> None:
    before = content(await memory.orchestrator().get_agent_store())
    done = await memory.finalize_session("trip", FinalizeOptions(promote=False, checkpoint=False))
    assert done.session.state is SessionState.FINALIZED
    assert (done.promotion, done.snapshot) == (None, None)
    assert content(await memory.orchestrator().get_agent_store()) == before
    assert memory.orchestrator().list_snapshots() == []


async def test_a_snapshot_has_the_given_name(memory: Memory) -> None:
    done = await memory.finalize_session("trip", FinalizeOptions(checkpoint_name="after-trip"))
    assert done.snapshot is not None and done.snapshot.name == "after-trip"
    assert [one.name for one in memory.orchestrator().list_snapshots()] == ["after-trip"]


@pytest.mark.parametrize("name", ["../up", "a/b", ".", "nul", "a b", "x" * 101, "a\0b"])
async def test_a_bad_name_is_refused_before_anything_changes(memory: Memory, database: Path, name: str) -> None:
    before = tables(database, is_exact=True)
    for options in (FinalizeOptions(checkpoint_name=name), FinalizeOptions(checkpoint_name=name, dry_run=True)):
        with pytest.raises(InvalidInput, match="not plain"):
            await memory.finalize_session("trip", options)
    assert tables(database, is_exact=True) == before


async def test_each_agent_learns_from_its_own_sessions(database: Path) -> None:
    async with open_memory(database) as memory:
        await memory.record_messages("trip", said("Where is Ann?", "In Oslo."), agent_id="travel")
        done = await memory.finalize_session("trip")
        assert done.snapshot is not None and done.snapshot.name == "travel"
        assert texts_of(await memory.orchestrator("travel").get_agent_store(), "query") == ["Where is Ann?"]
        assert (await memory.orchestrator().get_agent_store()).stats().nodes == 0


async def test_switched_off_graphs_leave_only_the_summaries(database: Path) -> None:
    async with open_memory(database, Settings(graph=GraphPolicy(enabled=False))) as memory:
        await memory.record_messages("trip", talk(20))
        await memory.settled()
        assert await memory.finalize_session("trip", DRY) == Finalized(
            (await memory.conversations.recent())[0], is_dry_run=True
        )
        done = await memory.finalize_session("trip")
        assert (done.session.state, done.session.stage) == (SessionState.FINALIZED, "checkpoint")
        assert done.session.summarized_seq == 40
        assert (done.sleep, done.promotion, done.snapshot) == (None, None, None)


async def test_an_empty_graph_is_closed_like_any_other(database: Path) -> None:
    async with open_memory(database) as memory:
        await memory.record_messages("trip", [NewMessage(Role.ASSISTANT, "Welcome.")])
        done = await memory.finalize_session("trip")
        assert done.session.state is SessionState.FINALIZED
        assert done.promotion is not None and done.promotion.query_ids == ()


async def test_two_processes_that_close_a_session_at_once_do_everything_once(database: Path) -> None:
    async def close(memory: Memory, into: list[Finalized]) -> None:
        into.append(await memory.finalize_session("trip"))

    settings = Settings(promotion=PromotionPolicy(min_rank=0.0), sleep=SleepCycleOptions(max_clusters=1))
    both: list[Finalized] = []
    async with open_memory(database, settings) as one, open_memory(database, settings) as other:
        await one.record_messages("trip", talk(10))
        await one.settled()
        async with anyio.create_task_group() as tasks:
            for memory in (one, other, one, other):
                tasks.start_soon(close, memory, both)
        assert [done.session.state for done in both] == [SessionState.FINALIZED] * 4
        for part in ("sleep", "promotion"):
            assert len([done for done in both if getattr(done, part) is not None]) == 1
        assert sum(len(done.summaries) for done in both) == 1
        agent = await other.orchestrator().get_agent_store()
        assert sum(node.weights.repeat for node in agent.nodes() if node.type == "query") == 10
        [stats] = [await other.conversations.stats("trip")]
        assert (stats.summarized_messages, stats.total_summaries) == (20, 2)


async def test_feedback_after_the_end_reaches_the_agents_graph_once(memory: Memory) -> None:
    recorded = await memory.record_messages("trip", said("Where does Ann live?", "In Oslo."))
    await memory.finalize_session("trip")
    await memory.record_feedback(recorded.message_ids[1], "down")
    [found] = [
        one for one in await memory.past_answers("Where does Ann live?") if one.question == "Where does Ann live?"
    ]
    assert (found.down, found.answers[0].feedback) == (1, -1)


async def test_an_answer_of_one_session_is_found_in_the_next(memory: Memory) -> None:
    await memory.record_messages("trip", said("How do I reset the boiler in winter?", "Hold the red button for 5 s."))
    await memory.finalize_session("trip")
    [found, *_] = await memory.past_answers("how can I reset our boiler when it is winter?")
    assert [one.text for one in found.answers] == ["Hold the red button for 5 s."]
