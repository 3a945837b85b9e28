"""Past answers over MCP: only of questions that ask the same, from every conversation of the agent."""

from pathlib import Path

import pytest

from tests.flows.graph_steps import questions, remember
from tests.flows.harness import served

pytestmark = pytest.mark.anyio
RELEASE = "When is the Orion release?"


async def test_a_statement_and_its_acknowledgement_are_no_past_answer(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await remember(h, "trip", ("We fly to Oslo on May 3.", "Noted."), ("When do we fly to Oslo?", "Noted."))
        assert await questions(h, "Oslo") == []
        assert await questions(h, "When do we fly to Oslo?") == []
        await remember(h, "later", ("When do we fly to Oslo?", "On May 3, from Leeds."))
        [past] = (await h.facts("search_memory", query="When do we fly to Oslo?"))["past_answers"]
        assert [one["text"] for one in past["answers"]] == ["On May 3, from Leeds."]


async def test_a_question_of_six_open_sessions_brings_its_newest_answers(database: Path, era: str) -> None:
    async with served(database, era) as h:
        for number in range(1, 7):
            again = " again" if number % 2 else ""
            await remember(h, f"day {number}", (f"When is the Orion release{again}?", f"On June {number}."))
        past = (await h.facts("search_memory", query=RELEASE))["past_answers"]
        assert len(past) == 3
        assert all(one["similarity"] == 1.0 and one["source"] == "session" for one in past)
        assert len({answer["text"] for one in past for answer in one["answers"]}) == 3
        assert await questions(h, "When is the Atlas release?") == []
        assert await questions(h, "Who leads the Orion release?") == []


async def test_feedback_on_the_node_of_another_session_names_that_session(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await remember(h, "monday", (RELEASE, "On June 1."))
        [past] = (await h.facts("search_memory", query=RELEASE))["past_answers"]
        target = past["answers"][0]["node_id"]
        await h.facts("record_feedback", target_id=target, label="down", session_id=past["session_id"])
        assert (await h.facts("search_memory", query=RELEASE))["past_answers"][0]["down"] == 1


async def test_a_promoted_answer_is_shown_once(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await remember(h, "monday", (RELEASE, "On June 1."))
        await h.facts("finalize_session", session_id="monday")
        [past] = (await h.facts("search_memory", query=RELEASE))["past_answers"]
        assert (past["source"], "session_id" in past) == ("agent", False)


async def test_answers_of_another_project_stay_there(database: Path, era: str, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    async with served(database, era) as h:
        for folder in (here, there):
            folder.mkdir()
            turn = (RELEASE, f"It is in {folder.name}.")
            await remember(h, f"of {folder.name}", turn, project=str(folder))
        await remember(h, "personal", (RELEASE, "It is secret."))
        for folder in (here, there):
            past = (await h.facts("search_memory", query=RELEASE, project=str(folder)))["past_answers"]
            texts = {answer["text"] for one in past for answer in one["answers"]}
            assert texts == {f"It is in {folder.name}.", "It is secret."}


async def test_a_forgotten_answer_is_offered_no_more(database: Path, era: str) -> None:
    async with served(database, era) as h:
        ids = await remember(h, "monday", (RELEASE, "On June 1."))
        assert await questions(h, RELEASE) == [RELEASE]
        await h.text("forget", record_ids=[ids[1]])
        assert await questions(h, RELEASE) == []
