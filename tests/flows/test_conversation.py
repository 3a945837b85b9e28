"""A conversation from its first message to its end, through a client of either era."""

from pathlib import Path

import pytest

from tests.flows.harness import said, served

pytestmark = pytest.mark.anyio


async def test_a_conversation_is_recorded_summarised_pinned_found_and_closed(tmp_path: Path, era: str) -> None:
    lines = [f"Day {day}: we measured the well, and the water stood at {200 - day} centimetres." for day in range(20)]
    async with served(tmp_path / "memory.db", era) as h:
        for line in lines:
            await h.facts("record_messages", session_id="well", messages=said(line))
        await h.facts("record_messages", session_id="well", messages=said("Please remember: I am allergic to peanuts."))
        await h.settled()

        stats = await h.stats("well")
        assert stats["total_messages"] == 21
        assert stats["total_summaries"] >= 1
        assert 0 < stats["summarized_messages"] <= 21
        assert stats["total_pins"] >= 1

        context = await h.facts("build_context", session_id="well", query="day 2", format="structured")
        assert any("allergic to peanuts" in pin["content"] for pin in context["semantic_pins"])
        assert context["summaries"][0]["first_message"] == 1
        assert context["recent_messages"][-1]["text"] == "Please remember: I am allergic to peanuts."

        hits = (await h.facts("search_memory", query="198 centimetres", types=["message"], k=1))["hits"]
        assert hits[0]["text"] == lines[2]

        closed = await h.facts("finalize_session", session_id="well")
        assert closed["state"] == "FINALIZED"
        stats = await h.stats("well")
        assert stats["summarized_messages"] == stats["total_messages"] == 21
        found = (await h.facts("search_memory", query="198 centimetres", types=["message"], k=1))["hits"]
        assert [hit["record_id"] for hit in found] == [hit["record_id"] for hit in hits]
        assert "allergic to peanuts" in await h.text("build_context", session_id="well")


async def test_another_process_goes_on_with_the_conversation(tmp_path: Path, era: str) -> None:
    database = tmp_path / "memory.db"
    async with served(database, era) as one, served(database, era) as other:
        await one.facts("record_messages", session_id="s", messages=said("The key is under the blue stone."))
        assert "blue stone" in await other.text("build_context", session_id="s")
        await other.facts("record_messages", session_id="s", messages=said("It moved to the red stone."))
        assert "red stone" in await one.text("build_context", session_id="s")
    async with served(database, era) as later:
        assert (await later.stats("s"))["total_messages"] == 2


async def test_owed_work_of_a_process_that_ended_is_paid_by_the_next(tmp_path: Path, era: str) -> None:
    database = tmp_path / "memory.db"
    async with served(database, era) as h:
        await h.facts("record_messages", session_id="s", messages=said(*(f"line {n} of the log" for n in range(40))))
    async with served(database, era) as h:
        await h.settled()
        assert (await h.stats("s"))["summarized_messages"] >= 30
