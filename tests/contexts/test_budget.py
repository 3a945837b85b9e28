"""A context uses the budget that it is given, and says what was left out."""

from pathlib import Path

import pytest

from kalito_mcp import CreatePinRequest, Memory
from tests.contexts.talks import opened, talk

pytestmark = pytest.mark.anyio

SAID = "and then we went on about the move of the photo archive to the new machine in the cellar, step by step"


async def long_talk(memory: Memory, count: int = 60) -> None:
    await talk(memory, "move", *(f"Step {number}: {SAID}." for number in range(1, count + 1)))


async def test_a_larger_budget_shows_more_of_a_long_conversation(database: Path) -> None:
    async with opened(database) as memory:
        await long_talk(memory, 200)
        contexts = [await memory.build_context("move", budget) for budget in (1_500, 4_000, 8_000)]
    for context in contexts:
        assert 0.9 * context.max_tokens < context.total_tokens <= context.max_tokens
        shown = [one.seq for one in context.recent_messages]
        assert shown == list(range(shown[0], 201))
    counts = [len(one.recent_messages) for one in contexts]
    assert counts == sorted(set(counts))


async def test_a_context_says_how_many_messages_it_has_neither_shown_nor_summarised(database: Path) -> None:
    async with opened(database) as memory:
        await long_talk(memory, 14)
        context = await memory.build_context("move", 420)
    left = 14 - len(context.recent_messages)
    assert left > 3
    assert context.text.splitlines()[-1] == f"No room for: {left} earlier messages."


async def test_no_message_is_out_of_sight_while_there_is_room(database: Path) -> None:
    for count in (14, 29):
        async with opened(database.with_name(f"{count}.db")) as memory:
            await long_talk(memory, count)
            context = await memory.build_context("move")
            assert [one.seq for one in context.recent_messages] == list(range(1, count + 1))
            assert context.left_out == {}


@pytest.mark.parametrize(("length", "whole_from"), [(20, 160), (430, 1_100)])
async def test_the_newest_three_stay_whatever_matches_and_whole_where_they_are_small(
    database: Path, length: int, whole_from: int
) -> None:
    async with opened(database) as memory:
        for number in range(12):
            await talk(memory, f"gate {number}", "The garden gate was painted again.", "So it was.", days_ago=3)
        await talk(memory, "now", *(f"{number}. {SAID} {SAID} {SAID} {SAID} {SAID}"[:length] for number in range(8)))
        shown = []
        for budget in (220, 300, 400, 500, 650, 800, 1_100, 2_000):
            context = await memory.build_context("now", budget, query="who painted the garden gate?")
            shown.append([len(one.text) for one in context.recent_messages[-3:]])
            assert (context.relevant_messages != ()) or budget == 220
            assert budget < whole_from or shown[-1] == [length] * 3
    assert [len(one) for one in shown] == [3] * 8


@pytest.mark.parametrize("budget", [600, 3_000])
async def test_much_that_matches_pushes_out_neither_the_newest_messages_nor_pins(database: Path, budget: int) -> None:
    port = "which port the staging database listens on was said again, and it is the same port as ever for staging"
    long = "This is about something else that is long and takes a lot of room in any context. " * 5
    async with opened(database) as memory:
        for number in range(6):
            await talk(memory, f"ports {number}", *(f"{place}: {port}" for place in range(12)), days_ago=3)
        await talk(memory, "now", *(f"Turn {number}. {long}" for number in range(12)))
        for number in range(5):
            await memory.create_pin(CreatePinRequest("now", f"Pin number {number} of this session."))
        context = await memory.build_context("now", budget, query="which port does the staging database use")
    assert len(context.recent_messages) >= 3
    assert all(f"Turn {number}." in context.text for number in (9, 10, 11))
    assert len(context.semantic_pins) >= (2 if budget == 600 else 5)
    assert len(context.relevant_messages) >= 2
