"""A snapshot restored into another memory keeps its knowledge, without the ids of the old messages."""

import shutil
from pathlib import Path

import pytest

from kalito_mcp import open_memory
from tests.stored import said

pytestmark = pytest.mark.anyio

BREAD = ("How do I feed the sourdough?", "With rye flour, once a day.")
TRAM = ("Which tram goes to the harbour?", "Number 12, every ten minutes.")


async def test_in_another_memory_no_message_is_taken_for_one_of_the_snapshots(tmp_path: Path) -> None:
    here, there = tmp_path / "a.db", tmp_path / "b.db"
    async with open_memory(here) as memory:
        await memory.record_messages("bread", said(*BREAD))
        await memory.finalize_session("bread")
    shutil.copytree(f"{here}.snapshots", f"{there}.snapshots")
    async with open_memory(there) as memory:
        await memory.record_messages("tram", said(*TRAM))
        agent = memory.orchestrator()
        await agent.restore_snapshot("default")
        await memory.record_feedback("msg_2", "down")
        bread = (await agent.get_agent_store()).node((await agent.search(None, BREAD[0]))[0].id)
        assert (bread.text, bread.source_record_ids, bread.weights.feedback) == (BREAD[0], (), 0)
        [tram] = await memory.past_answers(TRAM[0])
        assert (tram.record_ids, tram.answers[0].record_ids, tram.down) == (("msg_1",), ("msg_2",), 1)


async def test_in_the_same_memory_the_messages_are_known_again(tmp_path: Path) -> None:
    async with open_memory(tmp_path / "a.db") as memory:
        await memory.record_messages("bread", said(*BREAD))
        await memory.finalize_session("bread")
        agent = memory.orchestrator()
        before = (await agent.get_agent_store()).node_of_record("msg_1")
        await agent.restore_snapshot("default")
        assert (await agent.get_agent_store()).node_of_record("msg_1") == before is not None
        await memory.record_feedback("msg_2", "down")
        assert (await memory.past_answers(BREAD[0]))[0].down == 1
