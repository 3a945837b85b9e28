"""A conversation begins with how the latest ones ended, and "where did I leave off" leads there."""

from pathlib import Path

import pytest

from kalito_mcp import Memory, SearchRequest
from tests.contexts.talks import opened, talk
from tests.scripted import ScriptedClock

pytestmark = pytest.mark.anyio

HEADING = "LATEST CONVERSATIONS (how they ended)"
ENDED = "ok, we stop here. on monday: draw the barcode with reportlab"
OLDER = "The dead letters were replayed, and three of them failed."


async def week(memory: Memory) -> None:
    """The clock stands on a Wednesday. The last conversation was on the Friday before, and others earlier."""
    await talk(memory, "tuesday", "Replay the dead letters of the importer.", OLDER, days_ago=8)
    await talk(
        memory,
        "friday",
        "Left and right margins of the label, please.",
        "The label endpoint has margins now, left and right.",
        ENDED,
        "Noted for Monday: the barcode, on branch labels-fast.",
        "thanks, bye",
        "Have a good weekend!",
        days_ago=5,
    )


async def test_the_first_turn_of_a_conversation_begins_with_the_ends_of_the_latest(database: Path) -> None:
    async with opened(database) as memory:
        await week(memory)
        first = await memory.build_context(None)
        assert first.text.splitlines()[2] == HEADING
        assert first.text.index(ENDED) < first.text.index(OLDER)
        assert "Have a good weekend" not in first.text
        assert [one.session_id for one in first.latest_messages] == ["friday"] * 4 + ["tuesday"] * 2
        assert first.to_dict()["latest_messages"][2]["text"] == ENDED
        await talk(memory, "new", "Good morning.")
        assert HEADING in (await memory.build_context("new")).text
        await talk(memory, "new", "Again, good morning.", "Good morning!")
        assert HEADING not in (await memory.build_context("new")).text


@pytest.mark.parametrize(
    ("turns", "ends"),
    [
        (("How do I search a sorted list?", "Like so ...", "Which valves leak?", "I don't know."), 2),
        (("We fly to Oslo on May 3.", "Have a good flight.", "That was Bergen, not Oslo.", "Corrected."), 4),
        (("We fly to Oslo on May 3.", "Have a good flight.", "thanks, bye", "Sleep well!"), 2),
        (("Good morning!", "Good morning, Ann!"), 0),
    ],
)
async def test_a_short_turn_is_in_an_end_with_its_prompt_and_its_reply_or_not_at_all(
    database: Path, turns: tuple[str, ...], ends: int
) -> None:
    async with opened(database) as memory:
        await talk(memory, "old", *turns)
        assert [one.text for one in (await memory.build_context(None)).latest_messages] == [*turns][:ends]


async def test_another_projects_conversations_are_no_beginning(database: Path) -> None:
    async with opened(database) as memory:
        await week(memory)
        shop, web = await memory.in_project("shop"), await memory.in_project("web")
        await talk(shop, "shop", "We ship the parcels from Porto.", "Noted: the parcels ship from Porto.")
        assert "Porto" in (await shop.build_context(None)).text
        assert ENDED not in (await shop.build_context(None)).text
        assert HEADING not in (await web.build_context(None)).text
        outside = await memory.in_project("personal")
        assert ENDED in (await outside.build_context(None)).text
        assert "Porto" not in (await outside.build_context(None)).text


async def test_who_asks_where_the_work_was_left_gets_the_end_of_the_newest_conversation(database: Path) -> None:
    async with opened(database) as memory:
        await week(memory)
        for asked in (
            "where did I leave off",
            "good morning, where did I leave off and what is open today?",
            "what was the last thing we did",
            "what should I do next?",
            "wo haben wir aufgehört?",
        ):
            page = await memory.search_memory(SearchRequest(asked))
            newest = ["Noted for Monday: the barcode, on branch labels-fast.", ENDED]
            assert [hit.text for hit in page.hits[:2]] == newest, asked
            context = await memory.build_context("new", 600, query=asked)
            assert context.text.splitlines()[2] == HEADING
            assert ENDED in context.text
            assert ENDED in (await memory.hooks.inject("new", asked)).text


async def test_a_past_day_that_is_named_says_which_conversations_are_meant(database: Path) -> None:
    async with opened(database, ScriptedClock()) as memory:
        await week(memory)
        for asked, found in (("where did we leave off last week?", OLDER), ("where did I leave off on friday?", ENDED)):
            page = await memory.search_memory(SearchRequest(asked))
            assert found in [hit.text for hit in page.hits], asked
        on_friday = await memory.build_context(None, query="where did I leave off on friday?")
        assert OLDER not in on_friday.text


async def test_pages_of_the_latest_conversations_follow_each_other(database: Path) -> None:
    async with opened(database) as memory:
        await week(memory)
        first = await memory.search_memory(SearchRequest("where did I leave off", k=4))
        assert first.next_cursor is not None
        rest = await memory.search_memory(SearchRequest("where did I leave off", k=4, cursor=first.next_cursor))
        assert [hit.session_id for hit in (*first.hits, *rest.hits)] == ["friday"] * 4 + ["tuesday"] * 2
        assert rest.next_cursor is None


async def test_a_memory_without_a_conversation_has_no_beginning_and_finds_nothing(database: Path) -> None:
    async with opened(database) as memory:
        assert HEADING not in (await memory.build_context(None)).text
        assert (await memory.search_memory(SearchRequest("where did I leave off"))).hits == ()
        assert (await memory.hooks.inject("new", "where did I leave off")).text == ""


async def test_the_start_of_a_session_says_how_the_latest_conversations_ended(database: Path) -> None:
    async with opened(database) as memory:
        await week(memory)
        start = await memory.hooks.inject_known()
        assert HEADING in start.text
        assert ENDED in start.text
        # What was put in already is not put in again.
        again = await memory.hooks.inject("new", "where did I leave off", shown=frozenset(start.record_ids))
        assert ENDED not in again.text
