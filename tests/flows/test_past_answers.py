"""Past answers over MCP: only of questions that ask the same, from every conversation of the agent."""

import sqlite3
from contextlib import closing
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


async def test_a_question_of_six_open_sessions_comes_once_with_its_newest_answers(database: Path, era: str) -> None:
    async with served(database, era) as h:
        for number in range(1, 7):
            await remember(h, f"day {number}", (RELEASE.upper() if number % 2 else RELEASE, f"On June {number}."))
        [past] = (await h.facts("search_memory", query=RELEASE))["past_answers"]
        assert (past["question"], past["similarity"]) == (RELEASE, 1.0)
        assert past["message_ids"] == [f"msg_{place}" for place in (11, 9, 7, 5, 3, 1)]
        assert [one["text"] for one in past["answers"]] == ["On June 6.", "On June 5.", "On June 4."]
        assert await questions(h, "When is the Atlas release?") == []
        assert await questions(h, "Who leads the Orion release?") == []


async def test_feedback_counts_for_whoever_says_the_same(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await remember(h, "monday", (RELEASE, "On June 1."), (RELEASE, "On June 2."))
        await remember(h, "tuesday", (RELEASE, "On June 1."))
        [past] = (await h.facts("search_memory", query=RELEASE))["past_answers"]
        assert [one["message_ids"] for one in past["answers"]] == [["msg_6", "msg_2"], ["msg_4"]]
        for target, label in (("msg_2", "down"), ("msg_6", "retry"), ("msg_4", "up"), ("msg_3", "retry")):
            await h.facts("record_feedback", target_id=target, label=label)
        [past] = (await h.facts("search_memory", query=RELEASE))["past_answers"]
        assert [(one["text"], one["feedback"]) for one in past["answers"]] == [("On June 2.", 1), ("On June 1.", -1.5)]
        assert (past["up"], past["down"], past["retry"]) == (1, 1, 2)


async def test_a_promoted_answer_is_shown_once(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await remember(h, "monday", (RELEASE, "On June 1."))
        await h.facts("finalize_session", session_id="monday")
        assert await questions(h, RELEASE) == [RELEASE]


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


async def test_the_replies_to_a_question_end_where_something_was_forgotten(database: Path, era: str) -> None:
    async with served(database, era) as h:
        ids = await remember(h, "monday", (RELEASE, "Noted."), ("And who leads it?", "Ann does."))
        await h.text("forget", record_ids=[ids[2]])
        assert await questions(h, RELEASE) == []


async def test_feedback_on_what_is_erased_is_erased_with_it(database: Path, era: str) -> None:
    async with served(database, era) as h:
        ids = await remember(h, "monday", (RELEASE, "On June 1."), (RELEASE, "On June 2."))
        for target in (ids[1], ids[3]):
            await h.facts("record_feedback", target_id=target, label="down")
        memory = await h.server.opened.memory()
        await memory.purge([ids[1]])
        [past] = (await h.facts("search_memory", query=RELEASE))["past_answers"]
        assert ([one["text"] for one in past["answers"]], past["down"]) == (["On June 2."], 1)
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT record_key FROM feedback").fetchall() == [(4,)]
