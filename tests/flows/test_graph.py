"""Questions, answers and feedback over MCP: learnt, consolidated, carried on."""

from pathlib import Path

import pytest
from mcp.types import CallToolResult

from kalito_mcp.config.settings import Settings
from kalito_mcp.domain.graph import GraphPolicy
from tests.flows.graph_steps import AGAIN, CAPITAL, LAPTOP, PRINTER, everything, questions, remember
from tests.flows.harness import assert_states, served, text_of

pytestmark = pytest.mark.anyio


async def test_a_question_asked_again_in_a_later_session_finds_its_answer(database: Path, era: str) -> None:
    async with served(database, era) as h:
        ids = await remember(h, "monday", PRINTER, CAPITAL)
        await h.facts("finalize_session", session_id="monday")
        await remember(h, "tuesday", ("Good morning!", "Good morning."))
    async with served(database, era) as h:
        [past] = (await h.facts("search_memory", query=AGAIN))["past_answers"]
        assert past["question"] == PRINTER[0]
        assert past["message_ids"] == ids[:1]
        assert [(one["text"], one["message_ids"]) for one in past["answers"]] == [(PRINTER[1], ids[1:2])]
        assert (past["up"], past["down"], past["retry"]) == (0, 0, 0)
        assert 0.3 <= past["similarity"] < 1


async def test_an_answer_is_found_before_its_session_is_finalized(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await remember(h, "monday", PRINTER)
        for more in ({}, {"session_id": "monday"}):
            [past] = (await h.facts("search_memory", query=AGAIN, **more))["past_answers"]
            assert past["question"] == PRINTER[0]
        assert await questions(h, session_id="nobody") == await questions(h, agent_id="other") == []


async def test_past_answers_come_with_the_first_page_of_a_search_that_filters_nothing(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await remember(h, "s", PRINTER, LAPTOP)
        first = await h.facts("search_memory", query=AGAIN, session_id="s", k=1)
        assert len(first["past_answers"]) == 2
        for more in ({"cursor": first["next_cursor"]}, {"types": ["message"]}, {"roles": ["user"]}, {"since": "7d"}):
            assert await questions(h, session_id="s", **more) == []


async def test_of_a_long_answer_the_beginning_is_shown_and_the_hits_have_all_of_it(database: Path, era: str) -> None:
    long = "Restart the printer as follows. " * 200
    async with served(database, era) as h:
        await remember(h, "s", (PRINTER[0], long))
        found = await h.facts("search_memory", query=AGAIN, session_id="s")
        [[shown]] = [past["answers"] for past in found["past_answers"]]
        assert shown["text"] == f"{long[:999]}…"
        assert long in [hit["text"] for hit in found["hits"]]


async def test_a_dry_run_tells_what_finalizing_does_and_changes_nothing(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await remember(h, "s", PRINTER, ("How do I restart the printer in the hall again?", "As before."), CAPITAL)
        before = await everything(h, "s")
        would = await h.facts("finalize_session", session_id="s", dry_run=True, checkpoint_name="kept")
        assert (would["state"], would["dry_run"], "snapshot" in would) == ("OPEN", True, False)
        assert await everything(h, "s") == before
        done = await h.facts("finalize_session", session_id="s", checkpoint_name="kept")
        assert (done["state"], done["dry_run"], done["snapshot"]) == ("FINALIZED", False, "kept")
        counts = {"questions_merged": 1, "questions_kept": 2, "answers_kept": 3}
        assert done.items() >= counts.items() <= would.items()


async def test_a_dry_run_of_a_finalized_session_says_that_nothing_is_left_to_do(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await remember(h, "s", PRINTER)
        await h.facts("finalize_session", session_id="s")
        before = await everything(h, "s")
        told = await h.facts("finalize_session", session_id="s", dry_run=True)
        assert {"questions_merged", "questions_kept", "snapshot"} & told.keys() == set()
        assert await everything(h, "s") == before


async def test_finalizing_tells_each_stage_as_it_begins(database: Path, era: str) -> None:
    told: list[tuple[float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    async with served(database, era) as h:
        await remember(h, "s", PRINTER)
        for _ in range(2):
            result = await h.client.call_tool("finalize_session", {"session_id": "s"}, progress_callback=hear)
            assert isinstance(result, CallToolResult)
            assert_states(text_of(result), result.structured_content)
    stages = [(0, 4, "summaries"), (1, 4, "sleep"), (2, 4, "promotion"), (3, 4, "checkpoint"), (4, 4, "finalized")]
    assert told == [*stages, stages[-1]]


async def test_without_promotion_and_checkpoint_the_agent_learns_nothing(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await remember(h, "s", PRINTER)
        facts = await h.facts("finalize_session", session_id="s", promote=False, checkpoint=False)
        assert {"questions_kept", "snapshot"} & facts.keys() == set()
        assert (await h.resource("memory://agent"))["nodes"] == 0
        assert await h.resource("memory://snapshots") == {"snapshots": []}
        assert await questions(h) == await questions(h, session_id="s") == [PRINTER[0]]


async def test_an_answer_that_was_not_liked_comes_below_another(database: Path, era: str) -> None:
    async with served(database, era) as h:
        ids = await remember(h, "s", PRINTER, LAPTOP)
        await h.facts("finalize_session", session_id="s")
        assert await questions(h) == [LAPTOP[0], PRINTER[0]]
        facts = await h.facts("record_feedback", target_id=ids[3], label="down", note="There is no such page.")
        assert (facts["target_id"], facts["label"]) == (ids[3], "down")
        for session_id in (None, "s"):
            assert await questions(h, session_id=session_id) == [PRINTER[0], LAPTOP[0]]
        [_, disliked] = (await h.facts("search_memory", query=AGAIN))["past_answers"]
        assert (disliked["up"], disliked["down"], disliked["retry"]) == (0, 1, 0)


async def test_feedback_is_counted_by_label_and_up_brings_an_answer_back(database: Path, era: str) -> None:
    async with served(database, era) as h:
        ids = await remember(h, "s", PRINTER, LAPTOP)
        for label in ("down", "retry", "up", "up", "up"):
            await h.facts("record_feedback", target_id=ids[1], label=label)
        [first, _] = (await h.facts("search_memory", query=AGAIN, session_id="s"))["past_answers"]
        assert (first["question"], first["up"], first["down"], first["retry"]) == (PRINTER[0], 3, 1, 1)


async def test_feedback_takes_a_messages_number_and_a_node_of_either_graph(database: Path, era: str) -> None:
    async with served(database, era) as h:
        ids = await remember(h, "s", PRINTER)
        await h.facts("record_feedback", target_id=ids[1].removeprefix("msg_"), label="up")
        graph = await (await h.server.opened.memory()).orchestrator().get_session_store("s")
        node_id = graph.node_of_record(ids[1])
        assert "is not a question or answer" in await h.refusal("record_feedback", target_id=node_id, label="up")
        await h.facts("record_feedback", target_id=node_id, label="up", session_id="s")
        await h.facts("finalize_session", session_id="s")
        await h.facts("record_feedback", target_id=node_id, label="up")
        assert [past["up"] for past in (await h.facts("search_memory", query=AGAIN))["past_answers"]] == [3]


async def test_another_process_hears_of_feedback_and_of_promotion_at_once(database: Path, era: str) -> None:
    async with served(database, era) as one, served(database, era) as other:
        ids = await remember(one, "s", PRINTER, LAPTOP)
        await one.facts("finalize_session", session_id="s")
        assert await questions(other) == [LAPTOP[0], PRINTER[0]]
        await other.facts("record_feedback", target_id=ids[3], label="down")
        assert await questions(one) == [PRINTER[0], LAPTOP[0]]


async def test_agents_do_not_share_what_they_learnt(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await remember(h, "work", PRINTER, agent_id="office")
        facts = await h.facts("finalize_session", session_id="work")
        assert facts["snapshot"] == "office"
        assert await questions(h, agent_id="office") == [PRINTER[0]]
        assert await questions(h) == []
        assert (await h.resource("memory://agent"))["nodes"] == 0


async def test_switched_off_nothing_is_learnt_and_everything_else_works(database: Path, era: str) -> None:
    off = Settings(graph=GraphPolicy(enabled=False))
    async with served(database, era, settings=off) as h:
        ids = await remember(h, "s", PRINTER)
        assert await questions(h, session_id="s") == [PRINTER[0]]
        assert "memory.graph" in await h.refusal("record_feedback", target_id=ids[1], label="up")
        assert "questions_kept" not in await h.facts("finalize_session", session_id="s", dry_run=True)
        facts = await h.facts("finalize_session", session_id="s")
        assert (facts["state"], {"questions_merged", "snapshot"} & facts.keys()) == ("FINALIZED", set())
        assert (await h.facts("search_memory", query=AGAIN))["hits"]
    assert not database.with_name("memory.db.snapshots").exists()
