"""memory-manager-reference from Best Practices to Summary: practices, future work, and figures."""

from dataclasses import replace
from pathlib import Path

import pytest

from kalito_mcp import Memory, NewMessage, Role, Settings, open_memory
from kalito_mcp.domain.records import SummaryMethod
from kalito_mcp.errors import InvalidInput, SessionNotFound
from kalito_mcp.records.recorder import Recorder
from kalito_mcp.summaries.window import SummaryWindowPolicy
from tests.spec.talk import SESSION, numbers, say, say_elsewhere, turns

pytestmark = pytest.mark.anyio

OTHER = "session_456"


async def test_a_context_does_not_grow_with_its_conversation(memory: Memory) -> None:
    """memory-manager-reference, Best Practices 2: without summaries, context grows unbounded; with them it does not."""
    for first in range(1, 500, 100):
        await say(memory, turns(100, first=first))
        context = await memory.build_context(SESSION)
        assert context.total_tokens <= 3000
        assert context.left_out == {}
        levels = [one.level for one in context.summaries]
        assert max(map(levels.count, levels)) <= 3
        assert context.summaries[0].start_seq == 1


async def test_messages_are_scored_when_they_are_recorded(memory: Memory) -> None:
    """memory-manager-reference, Best Practices 4: score messages immediately."""
    await say(memory, [NewMessage(Role.USER, "How do I fix this error?"), NewMessage(Role.ASSISTANT, "Like this.")])
    messages = (await memory.build_context(SESSION)).recent_messages
    assert [message.importance_score for message in messages] == [0.8, 0.55]
    assert [memory.manager.score_message_importance(message) for message in messages] == [0.8, 0.55]


async def test_scoring_a_message_looks_only_at_its_text_and_role(memory: Memory) -> None:
    """memory-manager-reference, scoreMessageImportance: of a message, by content; what is stored does not count."""
    await say(memory, turns(1))
    [message] = (await memory.build_context(SESSION)).recent_messages
    assert memory.manager.score_message_importance(replace(message, importance_score=0.1)) == 0.5
    assert memory.manager.score_message_importance(replace(message, role=Role.ASSISTANT)) == 0.55


async def test_long_messages_are_summarised_by_ten(database: Path, elsewhere: Recorder) -> None:
    """memory-manager-reference, Adaptive Summarization Threshold: `return 10`; a setting brings the fixed 15 back."""
    long = "Turn {}. " + "We walked around the lake. " * 20
    async with open_memory(database) as memory:
        await memory.settled()
        await say_elsewhere(elsewhere, turns(10, text=long))
        assert await memory.manager.needs_summarization(SESSION)
        await say_elsewhere(elsewhere, turns(6, first=11, text=long))
        summary = await memory.manager.auto_summarize_session(SESSION)
    assert summary is not None
    assert summary.message_count == 10
    fixed = Settings(window=SummaryWindowPolicy(is_adaptive=False, dense_threshold=15))
    async with open_memory(database, fixed) as memory:
        await memory.settled()
        await say_elsewhere(elsewhere, turns(10, text=long), OTHER)
        assert not await memory.manager.needs_summarization(OTHER)


async def test_summaries_are_summarised(memory: Memory) -> None:
    """memory-manager-reference, Multi-Level Summaries: 1-15, 16-30, 31-45 and so on into a meta-summary.

    Departure: three stay in view side by side; it is the fourth that folds all four.
    """
    await say(memory, turns(60))
    [meta] = (await memory.build_context(SESSION)).summaries
    assert (meta.level, meta.start_seq, meta.end_seq, meta.message_count) == (1, 1, 60, 60)
    assert meta.summary.startswith("Messages 1-60 (4 summaries)")


async def test_an_old_message_is_found_whatever_came_since(memory: Memory) -> None:
    """memory-manager-reference, Semantic Search Over History: `findRelevantMessages`, regardless of recency.

    Departure: relevance is by words, their stems and how rare they are, not by embeddings.
    """
    await say(memory, [NewMessage(Role.USER, "Grandma flies a zeppelin."), *turns(60, first=2)])
    await say(memory, [NewMessage(Role.USER, "Two zeppelins, and a hangar.")])
    await say(memory, [NewMessage(Role.USER, "A zeppelin elsewhere.")], OTHER)
    found = await memory.manager.find_relevant_messages(SESSION, "grandma's flying zeppelins", 2)
    assert numbers(found) == [1, 62]
    assert numbers(await memory.manager.find_relevant_messages(SESSION, "grandma's flying zeppelins", 1)) == [1]
    assert await memory.manager.find_relevant_messages(SESSION, "submarine", 5) == []


async def test_a_search_that_cannot_be_is_refused(memory: Memory) -> None:
    """memory-manager-reference, Semantic Search Over History: its three parameters."""
    await say(memory, turns(1))
    for session, query, limit, error in (
        ("nowhere", "lake", 5, SessionNotFound),
        (SESSION, " ", 5, InvalidInput),
        (SESSION, "lake", 0, InvalidInput),
    ):
        with pytest.raises(error):
            await memory.manager.find_relevant_messages(session, query, limit)


async def test_fifteen_messages_become_one_summary_of_two_hundred_tokens(memory: Memory) -> None:
    """memory-manager-reference, Hybrid Memory System and Summary: 15:1, and 15 messages to 200 tokens (at four
    characters each)."""
    await say(memory, turns(15, text="On day {} we walked around the lake and paid 12 euros. " + "It was calm. " * 30))
    [summary] = (await memory.build_context(SESSION)).summaries
    assert summary.message_count == 15
    assert len(summary.summary) / 4 <= 200


async def test_a_window_of_45600_characters_is_compressed_57_times(memory: Memory) -> None:
    """memory-manager-reference, Key Innovation and Performance: compression ~57x, as what long messages come to.

    A summary has at most 800 characters, however long its messages are.
    """
    long = "On day {} we walked around the lake and paid 12 euros. " + "Then it rained until dark. " * 170
    talk = turns(10, text=long)
    await say(memory, talk)
    [summary] = (await memory.build_context(SESSION, 100_000)).summaries
    said = sum(len(turn.text) for turn in talk)
    assert said >= 45_600
    assert len(summary.summary) * 57 <= said


async def test_a_summary_never_grows_with_what_it_summarises(memory: Memory, elsewhere: Recorder) -> None:
    """memory-manager-reference, Architecture Overview: summaries keep a long conversation inside its budget."""
    text = "On day {} we paid 12 euros to Ann in Oslo. " + "We saw 7 swans at the lake near Bergen. " * 500
    await say_elsewhere(elsewhere, turns(10, text=text))
    summary = await memory.manager.auto_summarize_session(SESSION)
    assert summary is not None
    assert summary.method is SummaryMethod.EXTRACTIVE
    assert 100 < len(summary.summary) <= 800
