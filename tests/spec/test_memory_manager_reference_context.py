"""memory-manager-reference from Private Data Retrieval Methods to Performance Optimization.

The contents of a context, its cost, what is cut if it is too large, and its text.
"""

import math
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from kalito_mcp import CreatePinRequest, CreateSummaryRequest, Memory, MemoryContext, NewMessage, Role
from kalito_mcp.inference.tokens import CalibratedCounter, CharsCounter
from kalito_mcp.records.recorder import Recorder
from kalito_mcp.storage.sqlite import conversations as sql
from tests.spec.talk import SESSION, numbers, say, say_elsewhere, turns

pytestmark = pytest.mark.anyio


async def pin(memory: Memory, content: str, score: float) -> None:
    await memory.create_pin(CreatePinRequest(SESSION, content, importance_score=score))


def scores(context: MemoryContext) -> list[float]:
    return [one.importance_score for one in context.semantic_pins]


async def test_summaries_read_oldest_first(memory: Memory) -> None:
    """memory-manager-reference, getRecentSummaries, Ordering.

    Departure: they are shown in the order of the conversation. If room is short, the newest are kept.
    """
    await say(memory, turns(45))
    context = await memory.build_context(SESSION)
    assert [one.start_seq for one in context.summaries] == [1, 16, 31]
    while len(context.summaries) == 3:
        context = await memory.build_context(SESSION, context.total_tokens - 1)
    assert [one.start_seq for one in context.summaries] == [16, 31]


async def test_the_count_of_a_session_is_right_after_every_write(memory: Memory, elsewhere: Recorder) -> None:
    """memory-manager-reference, getSessionMessageCount. Departure: a stored counter, right in every process."""
    for number in range(1, 6):
        await say_elsewhere(elsewhere, turns(1, first=number))
        assert (await memory.conversations.stats(SESSION)).total_messages == number


async def test_the_messages_since_the_last_summary_are_counted(memory: Memory, elsewhere: Recorder) -> None:
    """memory-manager-reference, Other Helper Methods: getLastSummary, getMessageCountSince,
    getMessagesSinceLastSummary, getAllMessagesForSession."""
    await say_elsewhere(elsewhere, turns(21))
    last = await memory.manager.create_summary(CreateSummaryRequest(SESSION, "1", "4"))
    stats = await memory.conversations.stats(SESSION)
    assert (stats.summarized_messages, stats.total_messages - last.end_seq) == (4, 17)
    made = await memory.conversations.summarize(SESSION)
    assert [(one.start_seq, one.end_seq) for one in made] == [(5, 19), (20, 21)]


@pytest.mark.parametrize(("characters", "tokens"), [(0, 0), (1, 1), (4, 3), (5, 4), (1000, 750), (5900, 4425)])
def test_the_specifications_estimate_is_three_quarters_of_the_characters_rounded_up(
    characters: int, tokens: int
) -> None:
    """memory-manager-reference, estimateTokens, Formula and Example (5000 + 500 + 400 characters: 4425 tokens); and
    Unit Tests, `should estimate tokens correctly` (1000: 750)."""
    assert CharsCounter().count("a" * characters) == tokens


def test_the_default_counter_leaves_more_than_twice_the_room_for_english() -> None:
    """memory-manager-reference, Why 0.75. Departure: 0.75 overcounts English, so the default is a calibrated count."""
    text = "The appointment with the doctor was moved to Thursday, because the clinic is closed on Wednesday. " * 10
    assert CharsCounter().count(text) > 2 * CalibratedCounter().count(text)
    assert CalibratedCounter().count(text) > len(text) / 8


async def test_a_context_counts_everything_that_it_gives_out(counting_chars: Memory) -> None:
    """memory-manager-reference, estimateTokens: messages, pins and summaries.

    Departure: the frame and the headings count too.
    """
    await say(counting_chars, turns(20))
    await pin(counting_chars, "Patient allergic to penicillin", 0.9)
    context = await counting_chars.build_context(SESSION, 10_000)
    assert context.total_tokens == math.ceil(len(context.text) * 0.75)


async def test_at_least_three_messages_stay(counting_chars: Memory) -> None:
    """memory-manager-reference, truncateContext, Step 2; and Unit Tests, `should always include minimum 3 messages`:
    four messages of 1000 characters in 1000 tokens.

    Departure: the specification's result has 2250 tokens; here long messages are shortened in the middle.
    """
    await say(counting_chars, [NewMessage(Role.USER, letter * 1000) for letter in "abcd"])
    context = await counting_chars.build_context(SESSION, 1000)
    assert [message.text[0] for message in context.recent_messages] == ["b", "c", "d"]
    assert context.total_tokens <= 1000
    assert context.text.count("characters left out") == 3


async def test_a_conversation_of_fewer_than_three_messages_is_kept_whole(counting_chars: Memory) -> None:
    """memory-manager-reference, truncateContext, Step 2: `Math.min(3, messages.length)`."""
    await say(counting_chars, turns(2))
    await pin(counting_chars, "x" * 2000, 0.9)
    context = await counting_chars.build_context(SESSION, 1000)
    assert numbers(context.recent_messages) == [1, 2]
    assert context.left_out == {"semantic_pins": 1}


async def test_the_most_important_pin_comes_first(memory: Memory) -> None:
    """memory-manager-reference, Unit Tests, `should prioritize high importance pins`: 0.3, 0.9, 0.6."""
    for content, score in (("Low", 0.3), ("High", 0.9), ("Medium", 0.6)):
        await pin(memory, content, score)
    assert scores(await memory.build_context(SESSION, 5000)) == [0.9, 0.6, 0.3]


async def test_a_pin_that_does_not_fit_makes_way_for_one_that_does(counting_chars: Memory) -> None:
    """memory-manager-reference, truncateContext, Step 3: Greedy Algorithm."""
    await say(counting_chars, turns(3))
    await pin(counting_chars, "x" * 2000, 0.9)
    await pin(counting_chars, "Appointment Nov 5 at 10am", 0.5)
    assert scores(await counting_chars.build_context(SESSION, 1000)) == [0.5]


async def test_summaries_come_in_where_space_allows(counting_chars: Memory, elsewhere: Recorder) -> None:
    """memory-manager-reference, truncateContext, Step 4: each one that fits."""
    await say_elsewhere(elsewhere, turns(6))
    for end, text in ((2, "The lake was calm."), (4, "x" * 2000), (6, "They stayed until dark.")):
        request = CreateSummaryRequest(SESSION, str(end - 1), str(end), summary=text)
        await counting_chars.create_summary(request)
    context = await counting_chars.build_context(SESSION, 1000)
    assert [one.summary for one in context.summaries] == ["The lake was calm.", "They stayed until dark."]


async def test_five_thousand_tokens_are_truncated_to_three_thousand(counting_chars: Memory) -> None:
    """memory-manager-reference, Truncation Example: messages of 3000 tokens, the last three 1200; five pins of 1500;
    three summaries of 500; the limit is 3000. The three messages stay, the top pins, one summary: about 2950.

    Departure: four pins. The example keeps three and gives them the tokens of five, and leaves no room for labels.
    """
    said, pinned, summarised = [360] * 5 + [400] * 3, [300] * 5, [210, 210, 80]
    await say(counting_chars, [NewMessage(Role.USER, "m" * (tokens * 4 // 3)) for tokens in said])
    for place, tokens in enumerate(summarised, 1):
        text = "s" * (tokens * 4 // 3)
        await counting_chars.create_summary(CreateSummaryRequest(SESSION, str(place), str(place), summary=text))
    for score, tokens in zip((0.9, 0.8, 0.7, 0.6, 0.5), pinned, strict=True):
        await pin(counting_chars, f"{score}" + "p" * (tokens * 4 // 3 - 3), score)
    context = await counting_chars.build_context(SESSION, 3000)
    assert numbers(context.recent_messages) == [6, 7, 8]
    assert all(message.text in context.text for message in context.recent_messages)
    assert scores(context) == [0.9, 0.8, 0.7, 0.6]
    assert [one.start_seq for one in context.summaries] == [3]
    assert 2800 < context.total_tokens <= 3000
    assert context.left_out == {"recent_messages": 4, "semantic_pins": 1, "summaries": 2}


async def test_what_is_left_of_the_budget_goes_to_further_messages(counting_chars: Memory) -> None:
    """memory-manager-reference, truncateContext.

    Departure: the specification keeps three messages whatever is left; here more come in, newest first.
    """
    await say(counting_chars, turns(8))
    whole = await counting_chars.build_context(SESSION)
    context = await counting_chars.build_context(SESSION, whole.total_tokens - 1)
    assert numbers(context.recent_messages) == [2, 3, 4, 5, 6, 7, 8]


async def test_the_call_flow_ends_in_a_context_within_its_budget(memory: Memory) -> None:
    """memory-manager-reference, Complete Call Flow: 8 messages, the pins, 2 summaries, no truncation below 3000; and
    Why OFFSET 1: the question is not echoed."""
    await say(memory, turns(31))
    for content in ("Lisinopril 10mg at 8am", "Allergic to penicillin", "Appointment Nov 5 at 10am"):
        await pin(memory, content, 0.8)
    question = "What medications does grandma take?"
    await memory.record_messages(SESSION, [NewMessage(Role.USER, question)])
    context = await memory.build_context(SESSION, 3000, query=question, pending_input=True)
    assert numbers(context.recent_messages)[-8:] == [24, 25, 26, 27, 28, 29, 30, 31]
    assert len(context.semantic_pins) == 3
    assert len(context.summaries) == 2
    assert context.total_tokens < 3000
    assert context.left_out == {}
    assert question not in context.text


async def test_a_context_reads_in_the_order_for_a_model(memory: Memory) -> None:
    """memory-manager-reference, Format for AI consumption, all six lines in their order."""
    await say(memory, [NewMessage(Role.USER, "Grandma takes Lisinopril."), *turns(19, first=2)])
    await pin(memory, "Allergic to penicillin", 0.9)
    context = await memory.build_context(SESSION, 700, query="Which Lisinopril does grandma take?")
    places = [
        context.text.index(line)
        for line in (
            "CRITICAL INSTRUCTION: answer the user's current message.",
            "SUMMARIES (background context)\n- messages 1-15, ",
            "PINS (important facts)\n- ",
            ": Allergic to penicillin",
            "HISTORICAL MESSAGES (condensed)\n",
            ", this session:\n- user: Grandma takes Lisinopril.",
            "--- RECENT CONVERSATION ---\n",
            "assistant (msg_20, ",
        )
    ]
    assert places == sorted(places)


async def test_an_older_message_is_condensed(memory: Memory) -> None:
    """memory-manager-reference, Format for AI consumption: historical messages are condensed."""
    paste = "The zeppelin was late. " * 300
    await say(memory, [NewMessage(Role.USER, paste), *turns(19, first=2)])
    context = await memory.build_context(SESSION, 600, query="zeppelin")
    [line] = [line for line in context.text.splitlines() if line.startswith("- msg_1, ")]
    assert len(line) < len(paste) / 4
    assert line.endswith("…")


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        ("SELECT_VIEW", "records_messages (session_key=?)"),
        ("SELECT_VIEW", "records_pins (session_key=?)"),
        ("SELECT_VIEW", "records_uncovered (session_key=?)"),
        ("SELECT_MESSAGES", "records_messages (session_key=? AND seq>? AND seq<?)"),
        ("SELECT_SUMMARIES", "records_summaries (session_key=? AND level=? AND seq>?)"),
    ],
)
async def test_every_part_of_a_context_is_read_through_an_index(
    database: Path, memory: Memory, statement: str, index: str
) -> None:
    """memory-manager-reference, Database Indexes: messages, pins and summaries by session and their order; and
    memory-manager-overview, Database Indexes: pins by (session, importance DESC, created_at DESC).

    Departure: messages and summaries are ordered by sequence; nothing is ordered by a message's importance, so that
    has no index.
    """
    names = ("session_key", "tail", "include_internal", "pins", "first_seq", "last_seq", "level", "after_seq")
    with closing(sqlite3.connect(database)) as connection:
        plan = connection.execute(f"EXPLAIN QUERY PLAN {getattr(sql, statement)}", dict.fromkeys(names, 1)).fetchall()
    steps = [row[3] for row in plan]
    assert any(step.endswith(index) for step in steps), steps
    assert not any("SCAN r" in step or "TEMP B-TREE" in step for step in steps), steps
