"""Every interface, field and enumeration of memory-types, through an opened memory."""

import pytest

import kalito_mcp
from kalito_mcp import (
    ConversationSummary,
    CreatePinRequest,
    CreateSummaryRequest,
    Memory,
    MessageWithImportance,
    NewMessage,
    PinType,
    Role,
    SemanticPin,
)
from kalito_mcp.errors import InvalidInput
from kalito_mcp.records.recorder import Recorder
from kalito_mcp.server.tools.conversation import MessageInput
from tests.scripted import START_MS, ScriptedClock
from tests.spec.talk import SESSION, say, say_elsewhere, turns

pytestmark = pytest.mark.anyio

NOW = "2026-03-04T05:06:07.089Z"


async def test_a_conversation_summary_has_every_field(memory: Memory, elsewhere: Recorder) -> None:
    """memory-types, ConversationSummary: all eight fields, as they leave the process."""
    await say_elsewhere(elsewhere, turns(15))
    summary = await memory.create_summary(CreateSummaryRequest(SESSION, "1", "15", 15, summary="They were at a lake."))
    assert isinstance(summary, ConversationSummary)
    assert summary.to_dict() == {
        "id": f"summary_{START_MS}_000000001",
        "session_id": SESSION,
        "summary": "They were at a lake.",
        "message_count": 15,
        "start_message_id": "msg_1",
        "end_message_id": "msg_15",
        "importance_score": 0.7,
        "created_at": NOW,
        # Beyond the specification: its place among the summaries, and who wrote it.
        "level": 0,
        "first_message": 1,
        "last_message": 15,
        "method": "caller",
    }


async def test_a_semantic_pin_has_every_field(memory: Memory) -> None:
    """memory-types, SemanticPin: all seven fields, as they leave the process."""
    await say(memory, turns(1))
    request = CreatePinRequest(SESSION, "Patient allergic to penicillin", "msg_1", 0.9, PinType.CONCEPT)
    pin = await memory.create_pin(request)
    assert isinstance(pin, SemanticPin)
    assert pin.to_dict() == {
        "id": f"pin_{START_MS}_000000001",
        "session_id": SESSION,
        "content": "Patient allergic to penicillin",
        "source_message_id": "msg_1",
        "importance_score": 0.9,
        "scope": "person",
        "pin_type": "concept",
        "created_at": NOW,
    }


async def test_a_pin_need_not_come_from_a_message(memory: Memory) -> None:
    """memory-types, SemanticPin: `source_message_id?` is optional."""
    pin = await memory.create_pin(CreatePinRequest(SESSION, "Appointment Nov 5 at 10am"))
    assert pin.source_message_id is None
    assert "source_message_id" not in pin.to_dict()


@pytest.mark.parametrize("pin_type", ["manual", "auto", "code", "concept", "system"])
async def test_each_pin_type_is_stored_and_comes_back(memory: Memory, pin_type: str) -> None:
    """memory-types, SemanticPin, pin_type: its five values."""
    await memory.create_pin(CreatePinRequest(SESSION, "text", pin_type=PinType(pin_type)))
    context = await memory.build_context(SESSION)
    assert [str(pin.pin_type) for pin in context.semantic_pins] == [pin_type]


def test_there_is_no_sixth_pin_type() -> None:
    """memory-types, SemanticPin, pin_type: a closed list."""
    assert len(PinType) == 5
    with pytest.raises(ValueError, match="semi-automatic"):
        PinType("semi-automatic")


async def test_a_message_has_every_field(memory: Memory) -> None:
    """memory-types, MessageWithImportance: all eight fields, as they leave the process."""
    await say(memory, [NewMessage(Role.ASSISTANT, "At 8am.", model_id="llama3.2", token_usage=5)])
    [message] = (await memory.build_context(SESSION)).recent_messages
    assert isinstance(message, MessageWithImportance)
    assert message.to_dict() == {
        "id": 1,
        "session_id": SESSION,
        "role": "assistant",
        "text": "At 8am.",
        "model_id": "llama3.2",
        "token_usage": 5,
        "created_at": NOW,
        "importance_score": 0.55,
        # Beyond the specification: the id in the form that pins and summaries refer to.
        "record_id": "msg_1",
    }


@pytest.mark.parametrize("role", ["user", "assistant", "system"])
async def test_each_role_is_stored_and_comes_back(memory: Memory, role: str) -> None:
    """memory-types, MessageWithImportance, role: its three values."""
    await say(memory, [NewMessage(Role(role), "text")])
    [message] = (await memory.build_context(SESSION)).recent_messages
    assert message.to_dict()["role"] == role


def test_there_is_no_fourth_role() -> None:
    """memory-types, MessageWithImportance, role: a closed list."""
    assert len(Role) == 3
    with pytest.raises(ValueError, match="tool"):
        Role("tool")


async def test_a_context_has_all_four_parts(memory: Memory) -> None:
    """memory-types, MemoryContext: all four fields.

    Departure: snake_case, and the total counts the rendered text, headings and frame included.
    """
    await say(memory, turns(20))
    await memory.create_pin(CreatePinRequest(SESSION, "They like the lake"))
    context = await memory.build_context(SESSION)
    assert all(isinstance(message, MessageWithImportance) for message in context.recent_messages)
    assert all(isinstance(pin, SemanticPin) for pin in context.semantic_pins)
    assert all(isinstance(summary, ConversationSummary) for summary in context.summaries)
    counts = (len(context.recent_messages), len(context.semantic_pins), len(context.summaries))
    assert counts == (20, 1, 1)
    remembered = [message.tokens for message in context.recent_messages]
    remembered += [pin.tokens for pin in context.semantic_pins] + [one.tokens for one in context.summaries]
    assert context.total_tokens > sum(remembered)
    fields = context.to_dict().keys()
    assert {"recent_messages", "semantic_pins", "summaries", "total_tokens"} <= fields


async def test_a_summary_request_names_the_session_both_ends_and_the_count(memory: Memory, elsewhere: Recorder) -> None:
    """memory-types, CreateSummaryRequest: all four fields.

    Departure: the count may be left out; a wrong one is refused.
    """
    await say_elsewhere(elsewhere, turns(4))
    request = CreateSummaryRequest(session_id=SESSION, start_message_id="1", end_message_id="3", message_count=3)
    summary = await memory.create_summary(request)
    assert (summary.start_message_id, summary.end_message_id, summary.message_count) == ("msg_1", "msg_3", 3)
    with pytest.raises(InvalidInput, match="message_count=5, but the range has 1"):
        await memory.create_summary(CreateSummaryRequest(SESSION, "4", "4", 5))
    assert (await memory.create_summary(CreateSummaryRequest(SESSION, "4", "4"))).message_count == 1


async def test_a_pin_request_needs_only_a_session_and_a_content(memory: Memory) -> None:
    """memory-types, CreatePinRequest: two fields are required, three have defaults."""
    pin = await memory.create_pin(CreatePinRequest(session_id=SESSION, content="text"))
    assert (pin.session_id, pin.content) == (SESSION, "text")
    assert (pin.source_message_id, pin.importance_score, pin.pin_type) == (None, 0.8, PinType.MANUAL)


async def test_a_pin_request_may_set_all_five_fields(memory: Memory) -> None:
    """memory-types, CreatePinRequest: the three optional fields are taken as given."""
    await say(memory, turns(2))
    request = CreatePinRequest(
        session_id=SESSION, content="text", source_message_id="msg_2", importance_score=0.25, pin_type=PinType.SYSTEM
    )
    pin = await memory.create_pin(request)
    assert (pin.source_message_id, pin.importance_score, pin.pin_type) == ("msg_2", 0.25, PinType.SYSTEM)


async def test_the_statistics_of_a_session_have_every_field(memory: Memory, clock: ScriptedClock) -> None:
    """memory-types, MemoryStats: all six fields.

    Departure: snake_case, and the average is over the messages, not over pins and summaries too.
    """
    await say(memory, turns(14, text="Turn {}."))
    clock.advance(60)
    await say(memory, [NewMessage(Role.USER, "How?")])
    await memory.create_pin(CreatePinRequest(SESSION, "text", importance_score=1.0))
    stats = (await memory.conversations.stats(SESSION)).to_dict()
    assert stats["total_messages"] == 15
    assert stats["total_summaries"] == 1
    assert stats["total_pins"] == 1
    assert stats["oldest_message"] == NOW
    assert stats["newest_message"] == "2026-03-04T05:07:07.089Z"
    assert stats["average_importance_score"] == pytest.approx((7 * 0.5 + 7 * 0.55 + 0.7) / 15, abs=1e-4)


async def test_a_session_without_messages_has_no_oldest_and_no_average(memory: Memory) -> None:
    """memory-types, MemoryStats: what the three fields are where there is nothing to tell."""
    await memory.create_pin(CreatePinRequest(SESSION, "text"))
    stats = await memory.conversations.stats(SESSION)
    assert (stats.oldest_message, stats.newest_message, stats.average_importance_score) == (None, None, None)


@pytest.mark.parametrize(
    "name",
    [
        "ConversationSummary",
        "SemanticPin",
        "MessageWithImportance",
        "MemoryContext",
        "CreateSummaryRequest",
        "CreatePinRequest",
        "MemoryStats",
        "MemoryManager",
    ],
)
def test_every_type_is_imported_from_the_face(name: str) -> None:
    """memory-types, Usage in the Codebase: the types are imported by name."""
    assert getattr(kalito_mcp, name).__name__ == name
    assert name in kalito_mcp.__all__


def test_camel_case_is_accepted_where_messages_come_in() -> None:
    """memory-types mixes camelCase and snake_case. Departure: one snake_case shape; camelCase is an input alias."""
    message = MessageInput.model_validate(
        {"role": "assistant", "text": "At 8am.", "modelId": "llama3.2", "tokenUsage": 5, "createdAt": NOW}
    )
    assert (message.model_id, message.token_usage, message.created_at) == ("llama3.2", 5, NOW)
    assert "model_id" in message.model_dump()
