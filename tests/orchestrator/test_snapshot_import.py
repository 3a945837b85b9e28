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
        assert (await memory.past_answers(BREAD[0]))[0].record_ids == ("msg_1",)
    shutil.copytree(f"{here}.snapshots", f"{there}.snapshots")
    async with open_memory(there) as memory:
        await memory.record_messages("tram", said(*TRAM))
        await memory.settled()
        await memory.orchestrator().restore_snapshot("default")
        await memory.record_feedback("msg_2", "down")
        bread = (await memory.past_answers(BREAD[0]))[0]
        assert (bread.query, bread.record_ids, bread.answers[0].record_ids, bread.down) == (BREAD[0], (), (), 0)
        await memory.finalize_session("tram")
        tram = (await memory.past_answers(TRAM[0]))[0]
        assert (tram.record_ids, tram.answers[0].record_ids, tram.down) == (("msg_1",), ("msg_2",), 1)


async def test_in_the_same_memory_the_messages_are_known_again(tmp_path: Path) -> None:
    async with open_memory(tmp_path / "a.db") as memory:
        await memory.record_messages("bread", said(*BREAD))
        await memory.finalize_session("bread")
        before = await memory.past_answers(BREAD[0])
        await memory.orchestrator().restore_snapshot("default")
        [after] = await memory.past_answers(BREAD[0])
        assert (after.record_ids, after.answers) == (before[0].record_ids, before[0].answers)
        await memory.record_feedback("msg_2", "down")
        assert (await memory.past_answers(BREAD[0]))[0].down == 1
