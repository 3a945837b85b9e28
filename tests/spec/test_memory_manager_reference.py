"""memory-manager-reference from its overview to its core data types: architecture, constants, cache, shapes."""

import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from kalito_mcp import (
    CreatePinRequest,
    CreateSummaryRequest,
    Memory,
    MemoryContext,
    NewMessage,
    PinType,
    Role,
    Settings,
    open_memory,
)
from kalito_mcp.contexts.cache import CachePolicy, RevisionCache
from kalito_mcp.records.recorder import Recorder
from tests.scripted import CountedIds, ScriptedClock
from tests.spec.talk import SESSION, numbers, say, say_elsewhere, turns

pytestmark = pytest.mark.anyio

OTHER = "session_456"


async def hundred_messages(memory: Memory) -> MemoryContext:
    """The drawing's conversation: its two pins among six, its hundred messages."""
    await say(memory, turns(100))
    for content, score in (("Patient allergic to penicillin", 0.95), ("Appointment Nov 5 at 10am", 0.9)):
        await memory.create_pin(CreatePinRequest(SESSION, content, importance_score=score))
    for number in range(4):
        await memory.create_pin(CreatePinRequest(SESSION, f"Pin {number}", importance_score=0.5))
    return await memory.build_context(SESSION, 3000)


async def test_a_long_conversation_fits_the_budget_with_its_summaries_pins_and_messages(memory: Memory) -> None:
    """memory-manager-reference, Hybrid Memory System, the drawing: 100 messages; 3 summaries, 5 pins, messages 93-100;
    3000 tokens."""
    context = await hundred_messages(memory)
    assert numbers(context.recent_messages)[-8:] == [93, 94, 95, 96, 97, 98, 99, 100]
    assert len(context.summaries) == 3
    assert [pin.content for pin in context.semantic_pins[:2]] == [
        "Patient allergic to penicillin",
        "Appointment Nov 5 at 10am",
    ]
    assert len(context.semantic_pins) == 5
    assert context.total_tokens <= 3000
    assert context.left_out == {}


async def test_recent_messages_are_kept_word_for_word(memory: Memory) -> None:
    """memory-manager-reference, Hybrid Memory System: full message text preserved."""
    context = await hundred_messages(memory)
    for message, turn in zip(context.recent_messages[-8:], turns(8, first=93), strict=True):
        assert message.text == turn.text
        assert turn.text in context.text


async def test_all_that_is_remembered_is_in_one_table(database: Path, memory: Memory) -> None:
    """memory-manager-reference, Component Dependencies, Database Tables.

    Departure: messages, summaries and pins are types of one table of records; sessions are as promised.
    """
    await say(memory, turns(15))
    await memory.create_pin(CreatePinRequest(SESSION, "text"))
    with closing(sqlite3.connect(database)) as connection:
        counts = dict(connection.execute("SELECT type, count(*) FROM records GROUP BY type"))
        sessions = connection.execute("SELECT id FROM sessions").fetchall()
    assert counts == {"message": 15, "summary": 1, "pin": 1}
    assert sessions == [(SESSION,)]


def test_the_manager_runs_without_any_model_adapter() -> None:
    """memory-manager-reference, Component Dependencies; and memory-manager-overview, Strengths, separation of concerns:
    what it depends on is handed to it."""
    script = (
        "import sys, kalito_mcp.contexts.manager\n"
        "found = [name for name in sys.modules if name.startswith(('kalito_mcp.inference', 'kalito_mcp.storage'))]\n"
        "assert not found, found"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=Path(__file__).parents[2])


def damage(database: Path, index: str) -> None:
    """Overwrite the first page of an index; nothing has the database open."""
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        [[root]] = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (index,))
        [[size]] = connection.execute("PRAGMA page_size")
    with database.open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\xff" * size)


@pytest.mark.parametrize("index", ["records_pins", "records_uncovered"])
async def test_over_damaged_pins_or_summaries_the_ten_newest_messages_remain(database: Path, index: str) -> None:
    """memory-manager-reference, Why These Values, row 1: DEFAULT_CONTEXT_LIMIT, error recovery; buildContext, Error
    Handling; and memory-manager-overview, Recovery Mechanisms: fallback context when database issues.

    Departure: what is left is counted; the specification gives 0 tokens.
    """
    async with open_memory(database) as memory:
        await say(memory, turns(12))
        await memory.create_pin(CreatePinRequest(SESSION, "text"))
    damage(database, index)
    async with open_memory(database) as memory:
        context = await memory.build_context(SESSION)
        pending = await memory.build_context(SESSION, pending_input=True)
    assert numbers(context.recent_messages) == [3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
    assert numbers(pending.recent_messages)[-1] == 12  # it is the assistant's
    assert (context.semantic_pins, context.summaries) == ((), ())
    assert 0 < context.total_tokens <= 3000


async def test_the_default_budget_leaves_room_in_a_window_of_4096(memory: Memory) -> None:
    """memory-manager-reference, Why These Values, row 2: DEFAULT_TOKEN_LIMIT fits 4K models."""
    await say(memory, turns(14, text="Turn {}. " + "We walked around the lake. " * 100))
    context = await memory.build_context(SESSION)
    assert context.left_out["recent_messages"] > 0
    assert context.max_tokens == 3000
    assert 4096 - context.total_tokens >= 1096


async def test_summaries_cover_all_but_the_last_fourteen_messages(memory: Memory) -> None:
    """memory-manager-reference, Why These Values, row 3: SUMMARY_THRESHOLD, frequency against coverage."""
    await say(memory, turns(44))
    stats = await memory.conversations.stats(SESSION)
    assert (stats.total_summaries, stats.summarized_messages) == (2, 30)
    assert stats.total_messages - stats.summarized_messages == 14


async def test_a_context_is_served_from_the_cache_for_five_seconds(memory: Memory, clock: ScriptedClock) -> None:
    """memory-manager-reference, Why These Values, row 4: CACHE_TTL; Cache Strategy: time-based expiration; and Query
    Caching Benefits: the second call reads nothing.

    Departure: the two caches (count, recent messages) are one, of all that a context is made of.
    """
    await say(memory, turns(1))
    first = await memory.build_context(SESSION)
    clock.advance(4.999)
    second = await memory.build_context(SESSION)
    assert second.recent_messages[0] is first.recent_messages[0]
    clock.advance(0.001)
    third = await memory.build_context(SESSION)
    assert third.recent_messages[0] is not first.recent_messages[0]
    assert third == first


async def test_each_session_has_its_own_cache(memory: Memory) -> None:
    """memory-manager-reference, Cache Architecture, Benefits: session-scoped; and memory-manager-overview, Cache
    Invalidation: session-specific clearing by `invalidateSessionCache`."""
    await say(memory, turns(1))
    await say(memory, turns(1), OTHER)
    one, other = await memory.build_context(SESSION), await memory.build_context(OTHER)
    memory.manager.invalidate_session_cache(SESSION)
    assert (await memory.build_context(SESSION)).recent_messages[0] is not one.recent_messages[0]
    assert (await memory.build_context(OTHER)).recent_messages[0] is other.recent_messages[0]


async def test_forgetting_an_unknown_session_in_the_cache_is_fine(memory: Memory) -> None:
    """memory-manager-reference, Cache Invalidation: `Map.delete` of what is not there."""
    memory.manager.invalidate_session_cache("nowhere")


def test_the_cache_keeps_a_bounded_number_of_sessions() -> None:
    """memory-manager-reference, Cache Cleanup: no memory leaks from expired entries.

    Departure: no periodic cleanup; an expired entry goes when it is asked for, and the least recently used go first.
    """
    cache: RevisionCache[str, int] = RevisionCache(CachePolicy(ttl_s=5.0, max_entries=2))
    for number, session in enumerate(("a", "b", "c")):
        cache.put(session, number, revision=1, now_s=0.0)
    assert len(cache) == 2
    assert cache.get("a", revision=1, now_s=4.9) is None
    assert cache.get("c", revision=1, now_s=4.9) == 2
    assert cache.get("c", revision=1, now_s=5.0) is None
    assert len(cache) == 1


async def test_every_kind_of_write_shows_in_the_next_context(memory: Memory, elsewhere: Recorder) -> None:
    """memory-manager-reference, Cache Invalidation, When to Invalidate: message, summary, pin.

    Departure: writes invalidate by themselves.
    """
    await say_elsewhere(elsewhere, turns(2))
    assert len((await memory.build_context(SESSION)).recent_messages) == 2
    await say_elsewhere(elsewhere, turns(1, first=3))
    assert len((await memory.build_context(SESSION)).recent_messages) == 3
    await memory.create_pin(CreatePinRequest(SESSION, "text"))
    assert len((await memory.build_context(SESSION)).semantic_pins) == 1
    await memory.create_summary(CreateSummaryRequest(SESSION, "1", "3"))
    assert len((await memory.build_context(SESSION)).summaries) == 1


async def test_a_cached_context_never_outlives_a_write(memory: Memory, clock: ScriptedClock) -> None:
    """memory-manager-overview, Recovery Mechanisms: cache rebuilding; nothing waits for the TTL."""
    await say(memory, turns(1))
    await memory.build_context(SESSION)
    [message_id] = await say(memory, turns(1, first=2))
    await memory.manager.update_message_importance(message_id, 0.1)
    assert (await memory.build_context(SESSION)).recent_messages[-1].importance_score == 0.1
    assert clock.steady == 1_000.0


async def test_a_message_has_an_iso_timestamp_and_may_have_no_model(memory: Memory) -> None:
    """memory-manager-reference, MessageWithImportance: `created_at` ISO, `model_id: null`, `token_usage: null`."""
    await say(memory, turns(1))
    [message] = (await memory.build_context(SESSION)).recent_messages
    assert (message.model_id, message.token_usage) == (None, None)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", message.to_dict()["created_at"])


async def test_importance_lies_between_zero_and_one(memory: Memory) -> None:
    """memory-manager-reference, MessageWithImportance: `importance_score` 0.0 - 1.0."""
    [message_id] = await say(memory, turns(1))
    for given, stored in ((7.0, 1.0), (-1.0, 0.0), (0.25, 0.25)):
        await memory.manager.update_message_importance(message_id, given)
        [message] = (await memory.build_context(SESSION)).recent_messages
        assert message.importance_score == stored


async def test_ids_hold_the_time_and_nine_random_characters(database: Path, clock: ScriptedClock) -> None:
    """memory-manager-reference, ConversationSummary and SemanticPin: `summary_<timestamp>_<random>`,
    `pin_<timestamp>_<random>`; and ID Generation."""
    clock.wall_ms = 1_730_131_234_567
    async with open_memory(database, clock=clock) as memory:
        await say(memory, turns(15))
        pins = [await memory.create_pin(CreatePinRequest(SESSION, text)) for text in ("one", "two")]
        [summary] = (await memory.build_context(SESSION)).summaries
    assert re.fullmatch(r"summary_1730131234567_[0-9a-z]{9}", summary.id)
    assert re.fullmatch(r"pin_1730131234567_[0-9a-z]{9}", pins[0].id)
    assert pins[0].id != pins[1].id


async def test_a_summary_covers_its_whole_range_and_has_seven_tenths(memory: Memory) -> None:
    """memory-manager-reference, ConversationSummary: the range, both ends included; importance fixed at 0.7."""
    ids = await say(memory, turns(15))
    [summary] = (await memory.build_context(SESSION)).summaries
    assert (summary.start_message_id, summary.end_message_id) == (ids[0], ids[-1])
    assert (summary.message_count, summary.importance_score) == (15, 0.7)


async def test_a_pin_is_made_by_the_user_or_by_the_system(database: Path, ids: CountedIds) -> None:
    """memory-manager-reference, SemanticPin, Pin Types: `manual` and `auto`.

    The future that the specification speaks of is here: what is worth keeping is pinned by itself, below a manual pin.
    """
    async with open_memory(database, Settings(), ids=ids) as memory:
        await memory.create_pin(CreatePinRequest(SESSION, "Patient allergic to penicillin"))
        await say(memory, [NewMessage(Role.USER, "Grandmother should never wear latex gloves.")])
        pins = (await memory.build_context(SESSION)).semantic_pins
    assert [pin.pin_type for pin in pins] == [PinType.MANUAL, PinType.AUTO]
    assert pins[0].importance_score == 0.8 > pins[1].importance_score
