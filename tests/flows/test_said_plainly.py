"""What an assistant is told where it would otherwise go wrong without a word, or lose what it sent."""

from pathlib import Path
from typing import Any

import pytest

from tests.flows.harness import served

pytestmark = pytest.mark.anyio


def said(count: int) -> list[dict[str, Any]]:
    return [{"role": "user", "text": f"Gate number {number} of the garden is painted."} for number in range(count)]


async def test_an_empty_memory_says_so(database: Path, era: str) -> None:
    async with served(database, era) as h:
        assert (await h.text("build_context", query="gate")).endswith("\nNothing is remembered yet")
        assert (await h.facts("search_memory", query="gate"))["note"] == "Nothing is remembered yet."
        await h.facts("record_messages", messages=said(1))
        assert "Nothing is remembered yet" not in await h.text("build_context", query="Oslo")


async def test_a_new_session_named_almost_like_another_is_noted(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await h.facts("record_messages", session_id="importer-work", messages=said(1))
        made = await h.facts("record_messages", session_id="Importer-Work", messages=said(1))
        assert "'importer-work'" in made["note"]
        for name in ("Importer-Work", "exporter"):
            assert "note" not in await h.facts("record_messages", session_id=name, messages=said(1))


async def test_a_summary_at_the_end_of_work_takes_the_place_of_the_automatic_one(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await h.facts("record_messages", session_id="gates", messages=said(4))
        await h.facts("summarize_session", session_id="gates")
        kept = await h.facts("summarize_session", session_id="gates", summary="We painted the gates.")
        assert "has your words now" in kept["note"]
        assert "We painted the gates." in await h.text("build_context", session_id="gates")
        assert "conflict" in await h.refusal("summarize_session", session_id="gates", summary="We painted all gates.")
        assert "at most 4,000" in await h.refusal("summarize_session", session_id="gates", summary="y" * 4_001)


async def test_a_message_is_read_with_those_around_it(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await h.facts("record_messages", session_id="gates", messages=said(8))
        found = await h.facts("memory_history", record_id="msg_3", around=2)
        assert [one["id"] for one in found["around"]] == ["msg_1", "msg_2", "msg_4", "msg_5"]
        assert "around" not in await h.facts("memory_history", record_id="msg_3")


async def test_words_for_moments_are_understood_wherever_one_is_taken(database: Path, era: str) -> None:
    async with served(database, era) as h:
        message = {"role": "user", "text": "The gate is green."}
        for moment in ("March 4, 2026", 1_772_625_600, 1_772_625_600_000, "2026-03-04 12:00:00 UTC"):
            await h.facts("record_messages", messages=[{**message, "created_at": moment}])
        for bound, count in (("2026-03-03", 0), ("2026-03-04", 1)):
            hits = (await h.facts("search_memory", query="green gate", as_of=bound))["hits"]
            assert len(hits) == count
        task = await h.facts(
            "remember", type="task", text="Call", fields={"dueDate": "May 3, 2099", "priority": "HIGH"}
        )
        [listed] = (await h.facts("list_tasks"))["tasks"]
        assert (listed["id"], listed["due_date"], listed["priority"]) == (task["id"], "2099-05-03", "high")
