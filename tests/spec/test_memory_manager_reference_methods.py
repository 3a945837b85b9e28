"""memory-manager-reference, Model Selection System and Main Public Methods: their examples, tables and defaults."""

import math
from pathlib import Path

import pytest

from kalito_mcp import (
    CreatePinRequest,
    CreateSummaryRequest,
    Memory,
    NewMessage,
    PinType,
    Role,
    SearchRequest,
    Settings,
    open_memory,
)
from kalito_mcp.domain.records import SummaryMethod
from kalito_mcp.errors import InvalidInput, RecordNotFound, SessionNotFound, SummaryRangeConflict
from kalito_mcp.records.recorder import Recorder
from kalito_mcp.summaries.summarizer import SummaryPolicy
from kalito_mcp.summaries.window import SummaryWindowPolicy
from tests.inference import model_server as scripted
from tests.inference.model_server import ScriptedServer
from tests.scripted import ScriptedClock
from tests.spec.talk import SESSION, numbers, say, say_elsewhere, turns

pytestmark = pytest.mark.anyio

ELDERCARE = (
    "User asked about eldercare medication management. Discussed creating schedule, tracking side effects, and "
    "organizing prescriptions. Reviewed best practices for dementia patients."
)
ELDERCARE_TURN = "Turn {}: eldercare medication management, a schedule, side effects, prescriptions, dementia patients."


def cloud(url: str) -> dict[str, object]:
    return {"name": "cloud", "kind": "openai", "url": f"{url}/v1", "models": ["gpt-*"], "is_local": False}


def home(url: str) -> dict[str, object]:
    return {"name": "home", "kind": "ollama", "url": url, "models": ["llama3.2"]}


async def test_the_cloud_model_is_the_default_of_a_setting(database: Path, memory: Memory) -> None:
    """memory-manager-reference, getSummarizationModel. Departure: `gpt-4.1-mini` is a setting's default."""
    await say(memory, turns(1))
    assert await memory.manager.get_summarization_model(SESSION) == "gpt-4.1-mini"
    settings = Settings(summaries=SummaryPolicy(cloud_model="house-model"))
    async with open_memory(database, settings) as other:
        assert await other.manager.get_summarization_model(SESSION) == "house-model"


async def test_a_local_conversation_never_reaches_the_cloud_model(database: Path) -> None:
    """memory-manager-reference, Why Use Session Model for Local: privacy, also when the local model fails."""
    async with ScriptedServer(scripted.status(500)) as local, ScriptedServer(scripted.openai_says(ELDERCARE)) as remote:
        servers = ({**home(local.url), "max_retries": 0}, cloud(remote.url))
        async with open_memory(database, Settings(servers=servers)) as memory:
            await say(memory, [*turns(14), NewMessage(Role.ASSISTANT, "Turn 15.", model_id="llama3.2")])
            [summary] = (await memory.build_context(SESSION)).summaries
        assert len(local.calls) == 1
        assert remote.calls == []
    assert summary.method is SummaryMethod.EXTRACTIVE


async def test_build_context_as_its_usage_example_calls_it(memory: Memory) -> None:
    """memory-manager-reference, buildContext, Step 1: Default Limits (8, 5, 3), Step 4 and Usage Example; and
    Integration Tests, `should build complete context`."""
    await say(memory, turns(45))
    for number in range(6):
        await memory.create_pin(CreatePinRequest(SESSION, f"Pin {number}"))
    context = await memory.manager.build_context("session_123", 3000)
    assert numbers(context.recent_messages)[-8:] == [38, 39, 40, 41, 42, 43, 44, 45]
    assert len(context.semantic_pins) == 5
    assert len(context.summaries) == 3
    assert 0 < context.total_tokens <= 3000


async def test_build_context_of_an_unknown_session_says_so(memory: Memory) -> None:
    """memory-manager-reference, buildContext, Error Handling.

    Departure: an error that the caller can mend reaches it; the fallback is for a damaged database.
    """
    with pytest.raises(SessionNotFound, match="nowhere"):
        await memory.manager.build_context("nowhere")


async def test_create_summary_as_its_usage_example_calls_it(database: Path, elsewhere: Recorder) -> None:
    """memory-manager-reference, createSummary, Step 1 (the range, in order), Step 2, Step 3 and Usage Example."""
    talk = turns(15, text=ELDERCARE_TURN)
    async with (
        ScriptedServer(scripted.openai_says(ELDERCARE)) as server,
        open_memory(database, Settings(servers=(cloud(server.url),))) as memory,
    ):
        await memory.settled()
        await say_elsewhere(elsewhere, talk)
        summary = await memory.manager.create_summary(
            CreateSummaryRequest(session_id="session_123", start_message_id="1", end_message_id="15", message_count=15)
        )
    [call] = server.calls
    assert call.body["messages"][1]["content"].split("\n")[2:] == [f"{turn.role}: {turn.text}" for turn in talk]
    assert summary.summary == ELDERCARE
    assert (summary.start_message_id, summary.end_message_id, summary.message_count) == ("msg_1", "msg_15", 15)
    assert (summary.model_id, summary.importance_score) == ("gpt-4.1-mini", 0.7)


async def test_create_summary_takes_the_range_that_is_asked_for(memory: Memory, elsewhere: Recorder) -> None:
    """memory-manager-reference, createSummary, Step 1: `id BETWEEN`, both ends included; ids with or without `msg_`."""
    await say_elsewhere(elsewhere, turns(9))
    request = CreateSummaryRequest(SESSION, start_message_id="1", end_message_id="msg_7", message_count=7)
    summary = await memory.manager.create_summary(request)
    assert (summary.start_seq, summary.end_seq, summary.message_count) == (1, 7, 7)
    assert summary.summary.startswith("Conversation with 7 messages (4 user, 3 assistant)")


@pytest.mark.parametrize("start", [1, 5, 7])
async def test_a_range_that_overlaps_or_skips_is_refused(memory: Memory, elsewhere: Recorder, start: int) -> None:
    """memory-manager-reference, createSummary. Departure: a range begins right after the last summary's end."""
    await say_elsewhere(elsewhere, turns(12))
    await memory.manager.create_summary(CreateSummaryRequest(SESSION, "1", "5"))
    with pytest.raises(SummaryRangeConflict, match="begins at message 6"):
        await memory.manager.create_summary(CreateSummaryRequest(SESSION, str(start), "12"))
    assert (await memory.conversations.stats(SESSION)).summarized_messages == 5


async def test_a_summary_is_stored_and_found(database: Path, memory: Memory, elsewhere: Recorder) -> None:
    """memory-manager-reference, createSummary, Step 4 and Database Storage."""
    await say_elsewhere(elsewhere, turns(3))
    made = await memory.manager.create_summary(CreateSummaryRequest(SESSION, "1", "3", summary="On the zeppelin."))
    async with open_memory(database) as reopened:
        assert (await reopened.build_context(SESSION)).summaries == (made,)
        [hit] = (await reopened.search_memory(SearchRequest("zeppelin", 5))).hits
    assert hit.record_id == made.id


async def test_create_semantic_pin_as_its_usage_example_calls_it(
    database: Path, memory: Memory, clock: ScriptedClock
) -> None:
    """memory-manager-reference, createSemanticPin, Usage Example; Database Storage."""
    await say(memory, turns(45))
    clock.wall_ms = 1_730_131_234_567
    pin = await memory.manager.create_semantic_pin(
        CreatePinRequest(
            session_id="session_123",
            content="Patient allergic to penicillin",
            source_message_id="msg_45",
            importance_score=0.9,
            pin_type=PinType.MANUAL,
        )
    )
    assert pin.id.startswith("pin_1730131234567_")
    assert pin.content == "Patient allergic to penicillin"
    async with open_memory(database) as reopened:
        assert (await reopened.build_context(SESSION)).semantic_pins == (pin,)


async def test_a_pin_of_no_message_of_its_session_is_refused(memory: Memory) -> None:
    """memory-manager-reference, createSemanticPin. Departure: `source_message_id` must be a message of the session."""
    await say(memory, turns(1))
    for message_id, error in (("msg_45", RecordNotFound), ("the last one", InvalidInput)):
        with pytest.raises(error):
            await memory.create_pin(CreatePinRequest(SESSION, "text", source_message_id=message_id))
    assert (await memory.conversations.stats(SESSION)).total_pins == 0


@pytest.mark.parametrize(
    ("given", "stored"), [(None, 0.8), (0.0, 0.0), (0.3, 0.3), (1.0, 1.0), (1.7, 1.0), (-2.0, 0.0)]
)
async def test_only_an_absent_importance_means_the_default(memory: Memory, given: float | None, stored: float) -> None:
    """memory-manager-reference, createSemanticPin, Defaults: 0.8.

    Departure: `importance_score || 0.8` made 0 into 0.8; here 0.0 is 0.0, and what is outside is clamped.
    """
    pin = await memory.create_pin(CreatePinRequest(SESSION, "text", importance_score=given))
    assert pin.importance_score == stored


async def test_an_importance_that_is_no_number_is_refused(memory: Memory) -> None:
    """memory-manager-reference, createSemanticPin. Departure: NaN is refused, and nothing is written."""
    with pytest.raises(InvalidInput, match="NaN"):
        await memory.create_pin(CreatePinRequest(SESSION, "text", importance_score=math.nan))
    with pytest.raises(SessionNotFound):
        await memory.conversations.stats(SESSION)


async def test_the_threshold_is_a_setting(database: Path, elsewhere: Recorder) -> None:
    """memory-manager-reference, needsSummarization, Threshold: configurable."""
    settings = Settings(window=SummaryWindowPolicy(threshold=4, dense_threshold=3))
    async with open_memory(database, settings) as memory:
        await memory.settled()
        await say_elsewhere(elsewhere, turns(3))
        assert not await memory.manager.needs_summarization(SESSION)
        await say_elsewhere(elsewhere, turns(1, first=4))
        assert await memory.manager.needs_summarization(SESSION)


async def test_needs_summarization_and_auto_summarize_as_the_usage_example_calls_them(
    memory: Memory, elsewhere: Recorder
) -> None:
    """memory-manager-reference, needsSummarization, Usage Example; Best Practices 2; and Integration Tests, `should
    auto-summarize when threshold reached`."""
    await say_elsewhere(elsewhere, turns(15))
    assert await memory.manager.needs_summarization("session_123")
    summary = await memory.manager.auto_summarize_session("session_123")
    assert summary is not None
    assert summary.message_count == 15
    assert not await memory.manager.needs_summarization("session_123")


async def test_nothing_is_summarised_below_the_threshold(memory: Memory, elsewhere: Recorder) -> None:
    """memory-manager-reference, autoSummarizeSession, Steps 1 and 2: null where there are not enough."""
    await say_elsewhere(elsewhere, turns(14))
    assert await memory.manager.auto_summarize_session(SESSION) is None
    await say_elsewhere(elsewhere, turns(15, first=15))
    assert await memory.manager.auto_summarize_session(SESSION) is not None
    assert await memory.manager.auto_summarize_session(SESSION) is None


async def test_the_first_summary_takes_the_first_fifteen(memory: Memory, elsewhere: Recorder) -> None:
    """memory-manager-reference, autoSummarizeSession, Step 1: `slice(0, SUMMARY_THRESHOLD)`."""
    await say_elsewhere(elsewhere, turns(18))
    summary = await memory.manager.auto_summarize_session(SESSION)
    assert summary is not None
    assert (summary.start_message_id, summary.end_message_id, summary.message_count) == ("msg_1", "msg_15", 15)


async def test_summaries_follow_the_timeline(memory: Memory) -> None:
    """memory-manager-reference, Summarization Timeline Example: 1-15, 16-30, and 31, 32 still open."""
    for number in range(1, 33):
        await say(memory, turns(1, first=number))
    context = await memory.build_context(SESSION)
    assert [(one.start_seq, one.end_seq) for one in context.summaries] == [(1, 15), (16, 30)]
    stats = await memory.conversations.stats(SESSION)
    assert stats.total_messages - stats.summarized_messages == 2


async def test_a_backlog_becomes_several_summaries_of_one_window_each(memory: Memory, elsewhere: Recorder) -> None:
    """memory-manager-reference, autoSummarizeSession, Step 2.

    Departure: a later summary takes a window too, not all the rest at once.
    """
    await say_elsewhere(elsewhere, turns(47))
    ranges = []
    while (summary := await memory.manager.auto_summarize_session(SESSION)) is not None:
        ranges.append((summary.start_seq, summary.end_seq))
    assert ranges == [(1, 15), (16, 30), (31, 45)]


async def test_no_message_is_skipped_however_late_a_summary_is_written(
    memory: Memory, elsewhere: Recorder, clock: ScriptedClock
) -> None:
    """memory-manager-reference, getMessageCountSince.

    Departure: by sequence. By `created_at`, messages 16-20, older than the first summary, would never be summarised.
    """
    await say_elsewhere(elsewhere, turns(20))
    clock.advance(3600)
    await memory.manager.auto_summarize_session(SESSION)
    await say_elsewhere(elsewhere, turns(10, first=21))
    summary = await memory.manager.auto_summarize_session(SESSION)
    assert summary is not None
    assert (summary.start_seq, summary.end_seq) == (16, 30)


async def test_messages_of_any_date_stay_in_the_order_in_which_they_came(memory: Memory) -> None:
    """memory-manager-reference, getRecentMessages, outer ORDER BY. Departure: by sequence, never by clock."""
    late_to_early = [NewMessage(Role.USER, f"Turn {number}.", created_at=1_000 - number) for number in range(1, 11)]
    await say(memory, late_to_early)
    context = await memory.build_context(SESSION)
    assert numbers(context.recent_messages) == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]


async def test_a_stored_importance_is_there_tomorrow(database: Path, memory: Memory) -> None:
    """memory-manager-reference, updateMessageImportance: persists the score."""
    await say(memory, turns(2))
    await memory.manager.update_message_importance(2, 0.95)
    async with open_memory(database) as reopened:
        scores = [message.importance_score for message in (await reopened.build_context(SESSION)).recent_messages]
        assert scores == [0.5, 0.95]
        assert (await reopened.conversations.stats(SESSION)).average_importance_score == 0.725


async def test_the_importance_of_no_message_is_an_error(memory: Memory) -> None:
    """memory-manager-reference, updateMessageImportance. Departure: an unknown id is not passed over in silence."""
    with pytest.raises(RecordNotFound, match="msg_45"):
        await memory.manager.update_message_importance(45, 0.5)
