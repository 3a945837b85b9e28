"""What the home would certainly refuse is refused while it is away, too, in the same words. Nothing of it is kept."""

import json
from pathlib import Path
from typing import Any

import pytest
from mcp.server.streamable_http_manager import DEFAULT_MAX_REQUEST_BODY_SIZE

from kalito_mcp.bridge.home import MOST_BYTES, Caller
from kalito_mcp.bridge.outbox import Outbox
from kalito_mcp.bridge.passing import ToolCall
from kalito_mcp.bridge.replies import RequestRefused
from tests.bridge.machines import Gate, bridge, gate, home_behind, said, text_of
from tests.bridge.test_delivery import PROMPT, delivering, hooks_of
from tests.bridge.test_passing import GONE, answer, home, passing
from tests.server.wire import Wire, call

__all__ = ["home"]  # the fixture
LONG = "q" * 524_289


def messages(*sent: dict[str, Any]) -> dict[str, Any]:
    return {"session_id": "s", "messages": [{"role": "user", "text": "hello", **one} for one in sent]}


REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "a long message": ("record_messages", messages({}, {"text": LONG})),
    "a message of long characters": ("record_messages", messages({"text": "\u20ac" * 174_763})),
    "too many messages": ("record_messages", messages(*[{}] * 10_001)),
    "a time that cannot be read": ("record_messages", messages({"created_at": "soon"})),
    "an origin above the role": ("record_messages", messages({"role": "tool", "origin": "user"})),
    "a detail that is unknown": ("record_messages", messages({"details": {"colour": "red"}})),
    "a name with a line break": ("record_messages", messages({"name": "Ann\nBen"})),
    "a long pin": ("create_pin", {"session_id": "s", "content": LONG}),
    "a long summary": ("summarize_session", {"session_id": "s", "summary": LONG}),
    "a long list": ("summarize_session", {"session_id": "s", "open": ["No."] * 13}),
    "a long sentence": ("summarize_session", {"session_id": "s", "summary": "We spoke.", "done": ["y" * 401]}),
    "a long task": ("remember", {"type": "task", "text": LONG}),
    "a task without sense": ("remember", {"type": "task", "text": "paint", "fields": {"priority": "soonish"}}),
    "a long call": ("record_messages", messages(*[{"text": "y" * 450_000}] * 12)),
}


def test_what_the_home_would_refuse_is_refused_in_its_words_while_it_is_away(tmp_path: Path) -> None:
    laptop = tmp_path / "laptop"
    with gate() as between, bridge(laptop, between.url) as wire:
        with home_behind(between, tmp_path / "home"):
            there = [_refusal(said_or_error(wire, n, *REFUSED[name])) for n, name in enumerate(REFUSED)]
        away = [_refusal(said_or_error(wire, 100 + n, *REFUSED[name])) for n, name in enumerate(REFUSED)]
        assert away == there
        assert text_of(said(wire, 999, "record_messages", **messages({}))).startswith("Kept in this machine's outbox")
    assert Outbox(laptop / "memory.db.home").count() == 1


def said_or_error(wire: Wire, number: int, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The answer to a call."""
    wire.send(call(number, tool, **arguments))
    answered: dict[str, Any] = wire.answer(number)
    return answered


def _refusal(answered: dict[str, Any]) -> str:
    """The words of a refusal, without its code: one that is too long is an error of JSON-RPC where it is sent."""
    if "error" in answered:
        return str(answered["error"]["message"])
    assert answered["result"]["isError"], answered
    return text_of(answered["result"]).partition(": ")[2]


@pytest.mark.anyio
async def test_what_can_only_be_known_at_the_home_waits(tmp_path: Path, home: Gate) -> None:
    home.answers["*"] = GONE
    for waits in (
        ToolCall("create_pin", {"session_id": "s", "content": "a kite", "source_message_id": "msg_9"}, {}),
        ToolCall("remember", {"type": "note", "text": "a kite", "fields": {"source": "kites.md"}}, {}),
        ToolCall("record_feedback", {"message_id": "msg_9", "is_helpful": True}, {}),
    ):
        async with passing(tmp_path, home) as one:
            assert "outbox" in text_of(await one.call(waits, Caller(), None))


@pytest.mark.anyio
async def test_a_hook_report_with_a_long_text_waits_as_it_would_be_recorded(tmp_path: Path, home: Gate) -> None:
    home.answers["*"] = GONE
    report = {**PROMPT, "payload": {"session_id": "c", "prompt": "long " * 1_000_000}}
    async with delivering(tmp_path, home, in_background=False) as one:
        await hooks_of(one, tmp_path).take(report)
    [entry] = Outbox(tmp_path).waiting()
    prompt = entry.content["meta"]["kalito/report"]["payload"]["prompt"]
    assert len(prompt.encode()) <= 524_288
    assert prompt.endswith("the rest was too long to be kept]")


@pytest.mark.anyio
async def test_a_hook_report_that_is_too_long_for_the_home_does_not_wait(
    tmp_path: Path, home: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    home.answers["*"] = GONE
    report = {**PROMPT, "payload": {"session_id": "c", "prompt": "a kite", "more": ["long " * 1_000_000]}}
    async with delivering(tmp_path, home, in_background=False) as one:
        for _ in range(2):  # before and after it is known that the home is away
            assert await hooks_of(one, tmp_path).take(report) == ""
            await hooks_of(one, tmp_path).take(PROMPT)
    assert caplog.text.count("longer than 4,194,304 bytes") == 2
    assert Outbox(tmp_path).count() == 2


@pytest.mark.anyio
async def test_the_name_of_a_session_cannot_turn_the_text_around(tmp_path: Path, home: Gate) -> None:
    home.answers["*"] = GONE
    async with passing(tmp_path, home) as one:
        turned = ToolCall("record_messages", {**messages({}), "session_id": "a\u202eb"}, {"session_id": "string"})
        result = await one.call(turned, Caller(), None)
    assert "for session a\\u{202e}b, because" in text_of(result)
    assert "\u202e" not in json.dumps(result, ensure_ascii=False)


def test_the_longest_request_is_that_of_the_server() -> None:
    assert MOST_BYTES == DEFAULT_MAX_REQUEST_BODY_SIZE


@pytest.mark.anyio
async def test_a_call_that_is_too_long_is_refused_before_it_is_sent(tmp_path: Path, home: Gate) -> None:
    home.answers["*"] = answer("recorded")
    async with passing(tmp_path, home) as one:
        with pytest.raises(RequestRefused) as refused:
            await one.call(ToolCall(*REFUSED["a long call"], {}), Caller(), None)
    assert "longer than 4,194,304 bytes" in refused.value.message
    assert home.seen == []
