"""The memory as a library, as a program that opens it sees it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from kalito_mcp import Memory, NewMessage, Role, Settings, open_memory
from kalito_mcp.domain.graph import GraphPolicy, GraphScope
from kalito_mcp.domain.memory_records import Editor, EditorType
from kalito_mcp.domain.records import Origin
from kalito_mcp.domain.sleep import SleepCycleOptions, SleepCycleReport
from kalito_mcp.errors import Conflict, InvalidInput, RecordNotFound

pytestmark = pytest.mark.anyio

TURNS = (
    NewMessage(Role.USER, "How do I restart the printer in the hall?"),
    NewMessage(Role.ASSISTANT, "Hold its power button for ten seconds."),
)
AGAIN = "how can I restart the printer?"


async def recorded(memory: Memory, session: str, *, agent: str | None = None) -> list[str]:
    """The two turns in a session's graph; their ids."""
    ids = (await memory.record_messages(session, TURNS, agent_id=agent)).message_ids
    await memory.settled()
    return ids


async def test_what_a_program_raises_inside_reaches_it_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        async with open_memory(tmp_path / "memory.db"):
            raise ZeroDivisionError


async def test_a_memory_that_is_cancelled_closes_and_opens_again(tmp_path: Path) -> None:
    with anyio.CancelScope() as scope:
        async with open_memory(tmp_path / "memory.db") as memory:
            await recorded(memory, "s")
            scope.cancel()
            await anyio.sleep_forever()
    async with open_memory(tmp_path / "memory.db") as memory:
        assert (await memory.conversations.stats("s")).total_messages == 2


async def test_past_answers_are_of_all_sessions_of_the_agent(tmp_path: Path) -> None:
    async with open_memory(tmp_path / "memory.db") as memory:
        await recorded(memory, "now")
        [past] = await memory.past_answers(AGAIN)
        assert [one.text for one in past.answers] == [TURNS[1].text]
        assert await memory.past_answers(AGAIN, agent_id="another") == []


async def test_a_program_sums_up_what_sleep_merges_and_hears_of_it(tmp_path: Path) -> None:
    class FirstWords:
        def summarize(self, texts: Sequence[str], max_length: int) -> str:
            return texts[0][: min(9, max_length)]

    heard: list[tuple[GraphScope, SleepCycleReport]] = []
    settings = replace(Settings(), sleep=SleepCycleOptions(similarity_threshold=0.75, min_rank=1.0))
    path = tmp_path / "memory.db"
    async with open_memory(
        path, settings, summarizer=FirstWords(), emit=lambda scope, report: heard.append((scope, report))
    ) as memory:
        again = replace(TURNS[0], text="How do I restart the old printer in the hall?")
        await memory.record_messages("s", [*TURNS, again, TURNS[1]])
        finalized = await memory.finalize_session("s")
        assert finalized.sleep is not None
        [cluster] = finalized.sleep.clusters
        assert cluster.summary == "How do I"
        assert heard == [(GraphScope.SESSION, finalized.sleep)]


async def test_feedback_is_refused_where_it_could_not_be_kept(tmp_path: Path) -> None:
    async with open_memory(tmp_path / "memory.db") as memory:
        [_, answer] = await recorded(memory, "s", agent="mine")
        with pytest.raises(InvalidInput, match="agent 'mine', not 'yours'"):
            await memory.record_feedback(answer, "up", agent_id="yours")
        with pytest.raises(InvalidInput, match="target_id='msg_x'"):
            await memory.record_feedback("msg_x", "up")
        with pytest.raises(RecordNotFound):
            await memory.record_feedback("msg_999", "up")
    off = replace(Settings(), graph=GraphPolicy(enabled=False))
    async with open_memory(tmp_path / "memory.db", off) as memory:
        with pytest.raises(Conflict, match=r"memory\.graph"):
            await memory.record_feedback(answer, "up")


async def test_what_a_program_keeps_and_changes_is_not_the_users_own_word(tmp_path: Path) -> None:
    async with open_memory(tmp_path / "memory.db") as memory:
        for record_type, fields in (("note", {}), ("task", {}), ("thought", {}), ("document", {"source": "a"})):
            [kept] = await memory.remember(record_type, {"text": "Send the plan to Ann.", **fields})
            assert kept.origin is not Origin.USER
            await memory.update_memory(kept.id, {"text": "Send it to Bob."}, expected_revision=1)
            await memory.forget(kept.id)
            await memory.restore(kept.id)
            await memory.records.revert(kept.id, 1)
            assert {(one["editor_type"], one["editor_id"]) for one in await memory.records.history(kept.id)} == {
                ("agent", "python")
            }
        [said] = await memory.remember("note", {"text": "Ann likes tea."}, editor=Editor(EditorType.HUMAN, "ann"))
        assert said.origin is Origin.USER
