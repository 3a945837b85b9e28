"""A conversation begins with what the latest ones left open, and what came out of them."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from kalito_mcp import CreatePinRequest, Memory, open_memory
from kalito_mcp.domain.kinds import Kind
from kalito_mcp.domain.records import Reach
from tests.contexts.talks import talk
from tests.scripted import CountedIds, ScriptedClock

pytestmark = pytest.mark.anyio

HEADING = "LATEST CONVERSATIONS (how they ended)"


@pytest.fixture
async def memory(database: Path) -> AsyncIterator[Memory]:
    clock = ScriptedClock()
    async with open_memory(database, clock=clock, ids=CountedIds()) as opened:
        for session, pins in (
            ("tuesday", [(Kind.OUTCOME, "Three of the dead letters failed.")]),
            ("friday", [(Kind.OUTCOME, "The label has margins now."), (Kind.OPEN, "The barcode waits for Ana.")]),
        ):
            await talk(
                opened,
                session,
                "Left and right margins of the label, please.",
                f"The label endpoint has margins since {session}.",
            )
            await left(opened, session, pins)
            clock.advance(86_400)
        yield opened


async def left(memory: Memory, session: str, pins: Sequence[tuple[Kind, str]]) -> None:
    """Pins as the memory makes them."""
    for kind, text in pins:
        pin = await memory.create_pin(CreatePinRequest(session, text, scope=Reach.SESSION))
        record = await memory.records.get(pin.id)
        await memory.update_memory(pin.id, {"kind": kind}, expected_revision=record.revision)


async def test_the_latest_conversation_comes_first_and_of_each_what_is_open(memory: Memory) -> None:
    context = await memory.build_context(None)
    assert [(one.text, one.reach) for one in context.known][:1] == [("The barcode waits for Ana.", Reach.SESSION)]
    lines = context.text.splitlines()
    begin = lines.index(HEADING)
    assert lines[begin + 1 : begin + 6] == [
        '2026-03-05, "friday":',
        "- open, noted by the assistant: The barcode waits for Ana.",
        "- noted by the assistant: The label has margins now.",
        '2026-03-04, "tuesday":',
        "- noted by the assistant: Three of the dead letters failed.",
    ]


async def test_who_asks_where_the_work_was_left_gets_what_is_open_and_the_end(memory: Memory) -> None:
    text = (await memory.build_context(None, query="where did I leave off?")).text
    assert "The barcode waits for Ana." in text
    assert "The label endpoint has margins since friday." in text


async def test_what_an_end_says_itself_is_not_said_before_it_unless_it_is_open(memory: Memory) -> None:
    said, asked = "Ana says the barcode is fine.", "The barcode of the second label waits."
    await talk(memory, "saturday", said, "Noted.", asked, "I see.", days_ago=-9)
    await left(memory, "saturday", [(Kind.OUTCOME, said), (Kind.OPEN, asked), (Kind.OUTCOME, "Ana was asked.")])
    context = await memory.build_context(None)
    assert (context.text.count(said), context.text.count(asked), context.text.count("Ana was asked.")) == (1, 2, 1)
    assert said not in [one.text for one in context.known]


async def test_a_session_starts_with_it_and_a_conversation_under_way_does_not_repeat_it(memory: Memory) -> None:
    assert "The barcode waits for Ana." in (await memory.hooks.inject_known()).text
    await talk(memory, "friday", "And the barcode?", "It waits.", "Then tomorrow.")
    assert HEADING not in (await memory.build_context("friday")).text


async def test_what_a_task_names_that_was_completed_since_then_is_not_open(memory: Memory) -> None:
    async def task(text: str) -> str:
        [made] = await memory.remember("task", {"text": text})
        return made.id

    async def is_open() -> bool:
        return "barcode waits" in (await memory.hooks.inject_known()).text

    waiting, other = await task("Get the barcode from Ana"), await task("Print the barcode of the second label")
    for done, still_open in ((other, True), (waiting, False)):
        assert await is_open()
        await memory.update_memory(done, {"status": "completed"}, expected_revision=1)
        assert await is_open() is still_open
    await left(memory, "friday", [(Kind.OPEN, "Ana has a question about the barcode.")])
    assert "Ana has a question" in (await memory.hooks.inject_known()).text, "it was asked after the task was done"


async def test_another_projects_digest_is_not_shown(memory: Memory) -> None:
    shop = await memory.in_project("shop")
    assert "barcode" not in (await shop.build_context(None)).text
    await talk(shop, "shop", "Good morning.", "Good morning!")
    await left(shop, "shop", [(Kind.OPEN, "The parcels wait in Porto.")])
    assert "Porto" in (await shop.build_context(None)).text
    outside = await memory.in_project("personal")
    assert "Porto" not in (await outside.build_context(None)).text
