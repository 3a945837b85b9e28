"""The statements of memory-manager-overview, section by section, through an opened memory."""

import inspect
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from mcp import Client

from kalito_mcp import CreatePinRequest, Memory, MemoryManager, NewMessage, PinType, Role, Settings, open_memory
from kalito_mcp.domain.records import SummaryMethod
from kalito_mcp.errors import BudgetTooSmall, SessionNotFound
from kalito_mcp.records.recorder import Recorder
from kalito_mcp.server.build import build_server
from tests.inference import model_server as scripted
from tests.inference.model_server import ScriptedServer
from tests.scripted import ScriptedClock
from tests.spec.talk import SESSION, numbers, say, say_elsewhere, turns

pytestmark = pytest.mark.anyio

SUMMARY = "They talked about the lake, which was calm, and how they stayed until dark."


async def pinned(memory: Memory, *scores: float, session: str = SESSION) -> None:
    """One pin for each score, with the score as its text."""
    for score in scores:
        await memory.create_pin(CreatePinRequest(session, str(score), importance_score=score))


async def test_a_context_is_recent_messages_pins_and_summaries(memory: Memory) -> None:
    """memory-manager-overview, Core Architecture: the buffer of 8, semantic pins, summaries.

    Departure: what is left of the budget is filled with the messages before those.
    """
    await say(memory, turns(30))
    await pinned(memory, 0.9)
    context = await memory.build_context(SESSION)
    assert numbers(context.recent_messages) == [*range(1, 31)]
    assert [pin.content for pin in context.semantic_pins] == ["0.9"]
    assert [(one.start_seq, one.end_seq) for one in context.summaries] == [(1, 15), (16, 30)]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Settings().context.fallback_messages, 10),
        (Settings().context.token_limit, 3000),
        (Settings().window.threshold, 15),
        (Settings().cache.ttl_s * 1000, 5000),
    ],
    ids=["DEFAULT_CONTEXT_LIMIT", "DEFAULT_TOKEN_LIMIT", "SUMMARY_THRESHOLD", "CACHE_TTL"],
)
def test_each_constant_is_the_default_of_a_setting(value: float, expected: float) -> None:
    """memory-manager-overview, Configuration Constants, all four."""
    assert value == expected


async def test_the_model_of_a_session_is_that_of_its_newest_message_with_one(memory: Memory) -> None:
    """memory-manager-overview, Session-Aware Model Selection (`getSessionModel`); and Agent Service Coordination,
    session awareness across model switches.

    Departure: a session that does not exist is an error, not a null.
    """
    await say(memory, [NewMessage(Role.USER, "Hello.")])
    assert await memory.manager.get_session_model(SESSION) is None
    await say(memory, [NewMessage(Role.ASSISTANT, "Hello.", model_id="llama3.2"), NewMessage(Role.USER, "Again.")])
    assert await memory.manager.get_session_model(SESSION) == "llama3.2"
    await say(memory, [NewMessage(Role.ASSISTANT, "Again.", model_id="gpt-4o-mini")])
    assert await memory.manager.get_session_model(SESSION) == "gpt-4o-mini"
    with pytest.raises(SessionNotFound):
        await memory.manager.get_session_model("nowhere")


@pytest.fixture
async def local_server() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer(scripted.ollama_says(SUMMARY)) as server:
        yield server


async def test_a_session_with_a_local_model_is_summarised_by_it(database: Path, local_server: ScriptedServer) -> None:
    """memory-manager-overview, Session-Aware Model Selection and Summarization Process, steps 1-5."""
    server = {"name": "home", "kind": "ollama", "url": local_server.url, "models": ["llama3.2"]}
    async with open_memory(database, Settings(servers=(server,))) as memory:
        await say(memory, [*turns(14), NewMessage(Role.ASSISTANT, "Turn 15.", model_id="llama3.2")])
        assert memory.manager.is_local_model("llama3.2")
        assert await memory.manager.get_summarization_model(SESSION) == "llama3.2"
        [summary] = (await memory.build_context(SESSION)).summaries
    assert (summary.summary, summary.method, summary.model_id) == (SUMMARY, SummaryMethod.MODEL, "llama3.2")
    assert summary.importance_score == 0.7


async def test_without_any_server_a_session_is_summarised_offline(memory: Memory) -> None:
    """memory-manager-overview, Offline-First Design."""
    await say(memory, turns(15))
    [summary] = (await memory.build_context(SESSION)).summaries
    assert summary.method is SummaryMethod.EXTRACTIVE
    assert summary.summary.startswith("Conversation with 15 messages (8 user, 7 assistant).")


async def test_an_unreachable_server_degrades_to_the_offline_summary(database: Path) -> None:
    """memory-manager-overview, Offline-First Design, Fallback Strategy and Network Failures.

    Departure: the offline summary is the extractive one, not the first and last fifty characters.
    """
    server = {"name": "off", "kind": "ollama", "url": "http://127.0.0.1:9", "models": ["*"], "max_retries": 0}
    async with open_memory(database, Settings(servers=(server,))) as memory:
        await say(memory, turns(15))
        [summary] = (await memory.build_context(SESSION)).summaries
    assert (summary.method, summary.model_id) == (SummaryMethod.EXTRACTIVE, None)
    assert "the lake was calm" in summary.summary


async def test_the_newest_message_is_left_out_only_as_the_users_pending_input(memory: Memory) -> None:
    """memory-manager-overview, Context Building Algorithm, step 1.

    Departure: OFFSET 1 drops it always; here only when the caller says so, and only a user's.
    """
    await say(memory, turns(11))
    assert numbers((await memory.build_context(SESSION)).recent_messages) == [*range(1, 12)]
    pending = await memory.build_context(SESSION, pending_input=True)
    assert numbers(pending.recent_messages) == [*range(1, 11)]
    await say(memory, [NewMessage(Role.ASSISTANT, "Turn 12.")])
    answered = await memory.build_context(SESSION, pending_input=True)
    assert numbers(answered.recent_messages) == [*range(1, 13)]


async def test_the_five_most_important_pins_come_in(memory: Memory) -> None:
    """memory-manager-overview, Context Building Algorithm, step 2; and Context Integration, top 5."""
    await pinned(memory, 0.1, 0.9, 0.5, 0.7, 0.3, 0.8, 0.6)
    context = await memory.build_context(SESSION)
    assert [pin.importance_score for pin in context.semantic_pins] == [0.9, 0.8, 0.7, 0.6, 0.5]


async def test_pins_of_one_importance_come_newest_first(memory: Memory, clock: ScriptedClock) -> None:
    """memory-manager-overview, Context Integration: sorted by importance, then recency."""
    for content, score in (("first", 0.8), ("second", 0.8), ("top", 0.9), ("third", 0.8)):
        clock.advance(1)
        await memory.create_pin(CreatePinRequest(SESSION, content, importance_score=score))
    context = await memory.build_context(SESSION)
    assert [pin.content for pin in context.semantic_pins] == ["top", "third", "second", "first"]


async def test_at_most_three_summaries_of_one_level_come_in(memory: Memory) -> None:
    """memory-manager-overview, Context Building Algorithm, step 3.

    Departure: a fourth does not push the oldest out; the four are folded into one of the next level.
    """
    await say(memory, turns(45))
    ranges = [(one.level, one.start_seq, one.end_seq) for one in (await memory.build_context(SESSION)).summaries]
    assert ranges == [(0, 1, 15), (0, 16, 30), (0, 31, 45)]
    await say(memory, turns(15, first=46))
    ranges = [(one.level, one.start_seq, one.end_seq) for one in (await memory.build_context(SESSION)).summaries]
    assert ranges == [(1, 1, 60)]


async def test_a_context_over_its_limit_is_truncated_by_priority(memory: Memory) -> None:
    """memory-manager-overview, Context Building Algorithm, step 5, Smart Truncation Priority and Smart Truncation
    Logic, 1-4: three messages, then pins, then summaries, and a conversation without gaps.

    Departure: what is left goes to further recent messages, so those are the first to go.
    """
    await say(memory, turns(44))
    await pinned(memory, 0.9, 0.2)
    whole = await memory.build_context(SESSION)
    given_up = []
    for budget in range(whole.total_tokens, 0, -10):
        try:
            context = await memory.build_context(SESSION, budget)
        except BudgetTooSmall:
            break
        assert context.total_tokens <= budget
        assert numbers(context.recent_messages) == list(range(45 - len(context.recent_messages), 45))
        assert [pin.importance_score for pin in context.semantic_pins] in ([0.9, 0.2], [0.9], [])
        kept = (len(context.recent_messages), len(context.summaries), len(context.semantic_pins))
        losses = (kept[0] < 8, kept[1] < 2, kept[2] < 2, kept[0] < 3)
        given_up += [place for place, is_lost in enumerate(losses) if is_lost and place not in given_up]
    assert whole.left_out == {}
    assert given_up == [0, 1, 2, 3]


async def test_recent_messages_stay_by_recency_and_not_by_importance(memory: Memory) -> None:
    """memory-manager-overview, Importance Scoring System, Usage: messages prioritized during truncation.

    Departure: a gap in the conversation would mislead. An important message that is left out is found by search.
    """
    ids = await say(memory, turns(8))
    await memory.manager.update_message_importance(ids[0], 1.0)
    whole = await memory.build_context(SESSION)
    context = await memory.build_context(SESSION, whole.total_tokens - 1)
    assert numbers(context.recent_messages) == [2, 3, 4, 5, 6, 7, 8]


async def test_the_first_summary_is_due_at_fifteen_messages(memory: Memory, elsewhere: Recorder) -> None:
    """memory-manager-overview, Trigger Conditions: first time."""
    await say_elsewhere(elsewhere, turns(14))
    assert not await memory.manager.needs_summarization(SESSION)
    await say_elsewhere(elsewhere, turns(1, first=15))
    assert await memory.manager.needs_summarization(SESSION)


async def test_the_next_summary_is_due_fifteen_messages_later(memory: Memory, elsewhere: Recorder) -> None:
    """memory-manager-overview, Trigger Conditions: subsequent."""
    await say_elsewhere(elsewhere, turns(29))
    assert await memory.manager.auto_summarize_session(SESSION) is not None
    assert not await memory.manager.needs_summarization(SESSION)
    await say_elsewhere(elsewhere, turns(1, first=30))
    assert await memory.manager.needs_summarization(SESSION)


async def test_summaries_come_by_themselves(memory: Memory) -> None:
    """memory-manager-overview, Automatic Summarization and section 6: auto-triggers when enough accumulate."""
    await say(memory, turns(14))
    assert (await memory.conversations.stats(SESSION)).total_summaries == 0
    await say(memory, turns(1, first=15))
    assert (await memory.conversations.stats(SESSION)).total_summaries == 1


async def test_a_pin_is_manual_and_has_importance_eight_tenths_by_default(memory: Memory) -> None:
    """memory-manager-overview, Pin Creation Methods, manual pins: `createSemanticPin`, 0.8, 'manual'."""
    pin = await memory.manager.create_semantic_pin(CreatePinRequest(SESSION, "text"))
    assert (pin.importance_score, pin.pin_type) == (0.8, PinType.MANUAL)


async def test_pins_are_dropped_where_the_limit_is_exceeded(memory: Memory) -> None:
    """memory-manager-overview, Context Integration: automatically truncated, the least important first."""
    await say(memory, turns(3))
    await pinned(memory, 0.9, 0.5, 0.1)
    whole = await memory.build_context(SESSION)
    context = await memory.build_context(SESSION, whole.total_tokens - 1)
    assert [pin.importance_score for pin in context.semantic_pins] == [0.9, 0.5]
    assert context.left_out == {"semantic_pins": 1}


async def test_a_new_message_is_in_the_next_context(memory: Memory, elsewhere: Recorder) -> None:
    """memory-manager-overview, Cache Invalidation and section 8: automatic when new messages are added.

    Departure: also when another process adds them.
    """
    await say(memory, turns(1))
    assert numbers((await memory.build_context(SESSION)).recent_messages) == [1]
    await say(memory, turns(1, first=2))
    assert numbers((await memory.build_context(SESSION)).recent_messages) == [1, 2]
    await say_elsewhere(elsewhere, turns(1, first=3))
    assert numbers((await memory.build_context(SESSION)).recent_messages) == [1, 2, 3]


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        ("build_context", ["session_id", "max_tokens"]),
        ("create_semantic_pin", ["request"]),
        ("needs_summarization", ["session_id"]),
        ("auto_summarize_session", ["session_id"]),
        ("score_message_importance", ["message"]),
        ("invalidate_session_cache", ["session_id"]),
        ("create_summary", ["request"]),
        ("update_message_importance", ["message_id", "importance_score"]),
    ],
)
def test_the_manager_has_each_core_method(method: str, parameters: list[str]) -> None:
    """memory-manager-overview, Core Methods, all six; and the other two public ones of memory-manager-reference."""
    signature = inspect.signature(getattr(MemoryManager, method))
    assert list(signature.parameters)[1 : len(parameters) + 1] == parameters


async def test_the_database_refuses_what_no_record_may_be(database: Path, memory: Memory) -> None:
    """memory-manager-overview, Data Validation: database constraint enforcement."""
    await say(memory, turns(1))
    connection = sqlite3.connect(database)
    for broken in ("importance = 1.5", "role = 'tool'", "type = 'note'", "text = NULL", "seq = NULL"):
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute(f"UPDATE records SET {broken}")
    connection.close()


async def test_the_smallest_context_is_named_and_still_holds_the_newest_message(memory: Memory) -> None:
    """memory-manager-overview, Recovery Mechanisms: minimum viable context guarantee."""
    await say(memory, turns(20, text="Turn {}. " + "We walked around the lake. " * 40))
    with pytest.raises(BudgetTooSmall) as refused:
        await memory.build_context(SESSION, 5)
    context = await memory.build_context(SESSION, refused.value.minimum)
    assert numbers(context.recent_messages)[-1] == 20
    assert context.total_tokens <= refused.value.minimum


async def test_messages_are_scored_again_on_request(memory: Memory) -> None:
    """memory-manager-overview, Memory Router Integration: `score-messages`."""
    [first, second] = await say(memory, [NewMessage(Role.USER, "How?"), NewMessage(Role.USER, "So.")])
    await memory.manager.update_message_importance(first, 0.1)
    await memory.manager.update_message_importance(second, 0.5)
    assert await memory.manager.score_session_messages(SESSION) == 1
    context = await memory.build_context(SESSION)
    assert [message.importance_score for message in context.recent_messages] == [0.7, 0.5]


async def test_what_the_router_and_the_frontend_did_the_server_offers(database: Path) -> None:
    """memory-manager-overview, Memory Router Integration and Frontend Connectivity.

    The endpoints are tested in `web/rest`. Departure: a tool and a prompt of an MCP server, not a button.
    """
    async with Client(build_server(lambda: open_memory(database), default_session=SESSION)) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        prompts = {prompt.name for prompt in (await client.list_prompts()).prompts}
    assert {"summarize_session", "create_pin", "record_messages", "build_context"} <= tools
    assert "resume_session" in prompts


async def test_a_summary_that_the_calling_model_wrote_is_taken(memory: Memory) -> None:
    """memory-manager-overview, Agent Service Coordination: receives conversation summaries from AI models."""
    await say(memory, turns(4))
    adopted = await memory.conversations.adopt_summary(SESSION, SUMMARY)
    assert adopted is not None
    assert (adopted.summary, adopted.method, adopted.message_count) == (SUMMARY, SummaryMethod.CALLER, 4)
    assert SUMMARY in (await memory.build_context(SESSION)).text


async def test_a_conversation_goes_on_where_an_earlier_process_left_it(database: Path) -> None:
    """memory-manager-overview, Why It's Critical: continuity across sessions of the program."""
    async with open_memory(database) as memory:
        await say(memory, turns(20))
        before = await memory.build_context(SESSION)
    async with open_memory(database) as memory:
        assert await memory.build_context(SESSION) == before
