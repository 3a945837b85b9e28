"""The refusals of wrong calls, and the answer to a fault of the server."""

import logging
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mcp import MCPError
from mcp.types import INTERNAL_ERROR, INVALID_PARAMS

from tests.flows.harness import said, served

pytestmark = pytest.mark.anyio

NOISE = re.compile(r"pydantic|Input should|https?://|validation error|Field required|type=|_\w+Error|Traceback", re.I)
HIDDEN = "SELECT * FROM /home/someone/private"


@dataclass(frozen=True)
class BrokenClock:
    """A clock that fails with words which nobody outside may see."""

    def now_ms(self) -> int:
        raise RuntimeError(HIDDEN)

    def steady_s(self) -> float:
        raise RuntimeError(HIDDEN)


async def test_an_unknown_tool_is_a_protocol_error_that_names_the_nearest(database: Path, era: str) -> None:
    async with served(database, era) as h:
        with pytest.raises(MCPError) as caught:
            await h.client.call_tool("serch_memory", {"query": "x"})
        assert caught.value.error.code == INVALID_PARAMS
        assert caught.value.error.message == "unknown tool 'serch_memory'; did you mean 'search_memory'?"


async def test_a_tool_unlike_any_is_answered_with_those_there_are(database: Path, era: str) -> None:
    async with served(database, era) as h:
        with pytest.raises(MCPError) as caught:
            await h.client.call_tool("quux" * 100_000, {})
        assert "use one of record_messages, build_context, search_memory" in caught.value.error.message
        assert len(caught.value.error.message) < 300


async def test_an_unknown_prompt_is_a_protocol_error_that_names_the_nearest(database: Path, era: str) -> None:
    async with served(database, era) as h:
        with pytest.raises(MCPError) as caught:
            await h.client.get_prompt("resume_sesion", {})
        assert caught.value.error.code == INVALID_PARAMS
        assert caught.value.error.message == "unknown prompt 'resume_sesion'; did you mean 'resume_session'?"


async def test_an_unknown_argument_of_a_prompt_is_a_protocol_error(database: Path, era: str) -> None:
    async with served(database, era) as h:
        with pytest.raises(MCPError) as caught:
            await h.client.get_prompt("resume_session", {"sesion_id": "s"})
        assert caught.value.error.code == INVALID_PARAMS
        assert caught.value.error.message == "unknown argument 'sesion_id'; did you mean 'session_id'?"


@pytest.mark.parametrize(
    ("tool", "arguments", "refusal"),
    [
        ("search_memory", {"qery": "x"}, "unknown argument 'qery'; did you mean 'query'?"),
        ("build_context", {"sessionid": "s"}, "unknown argument 'sessionid'; did you mean 'session_id'?"),
        (
            "record_messages",
            {"messages": [{"role": "user", "text": "x"}, {"role": "user", "txt": "x", "text": "x"}]},
            "unknown key 'txt' in messages[1]; did you mean 'text'?",
        ),
        ("record_messages", {"messages": [{"rol": "user", "text": "x"}]}, "messages[0].role is missing"),
    ],
)
async def test_an_unknown_argument_is_refused_with_the_nearest_name(
    database: Path, era: str, tool: str, arguments: dict[str, Any], refusal: str
) -> None:
    async with served(database, era) as h:
        assert refusal in await h.refusal(tool, **arguments)


WRONG_ARGUMENTS: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("search_memory", {}, "query is missing"),
    ("search_memory", {"query": ""}, "query is empty"),
    ("search_memory", {"query": 5}, "query must be a string, not 5"),
    ("search_memory", {"query": "x" * 100_001}, "query has 100,001 characters; the limit is 100,000"),
    ("search_memory", {"query": "x", "k": 0}, "k must be at least 1, not 0"),
    ("search_memory", {"query": "x", "k": 10**9}, "k must be at most 100, not 1000000000"),
    ("search_memory", {"query": "x", "k": 10**4000}, "k must be at most 100, not a very large number"),
    ("search_memory", {"query": "x", "k": "many"}, "k must be a whole number, not 'many'"),
    ("search_memory", {"query": "x", "k": 1.5}, "k must be a whole number, not 1.5"),
    ("search_memory", {"query": "x", "types": 5}, "types must be a list"),
    (
        "search_memory",
        {"query": "x", "types": ["memo"]},
        "types[0] must be 'message', 'thought', 'document', 'task', 'pin', 'summary' or 'note', not 'memo'",
    ),
    ("build_context", {"pending_input": "perhaps"}, "pending_input must be true or false, not 'perhaps'"),
    ("build_context", {"format": "xml"}, "format must be 'text' or 'structured', not 'xml'"),
    ("create_pin", {"content": " \n\t"}, "content contains only white space"),
    ("create_pin", {"content": "x", "importance_score": "high"}, "importance_score must be a number, not 'high'"),
    ("summarize_session", {"summary": "  "}, "summary contains only white space"),
    ("record_messages", {"messages": []}, "messages is empty; send at least 1"),
    ("create_pin", {"content": None}, "content is missing"),
    ("record_messages", {"messages": [5]}, "messages[0] must be an object"),
    ("record_messages", {"messages": "hello"}, "messages[0].role is missing"),
    ("record_messages", {"messages": [{"role": "user", "text": ""}]}, "messages[0].text is empty"),
    (
        "record_messages",
        {"messages": [{"role": "robot", "text": "x"}]},
        "messages[0].role must be 'user', 'assistant' or 'system', not 'robot'",
    ),
    (
        "record_messages",
        {"messages": [{"role": "user", "text": "x"}, {"role": "user", "text": "x", "created_at": "soon"}]},
        "messages[1].created_at='soon' is not a time that can be read",
    ),
)


async def test_a_wrong_argument_is_refused_in_words_that_name_it(database: Path, era: str) -> None:
    async with served(database, era, default_session="s") as h:
        for tool, arguments, refusal in WRONG_ARGUMENTS:
            answer = await h.refusal(tool, **arguments)
            assert answer.startswith(f"invalid_input: {refusal}")
            assert not NOISE.search(answer)


async def test_several_faults_are_reported_together_up_to_a_limit(database: Path, era: str) -> None:
    async with served(database, era) as h:
        answer = await h.refusal("record_messages", messages=[{"role": "robot"}] * 500)
        assert "messages[0].text is missing" in answer
        assert "and 995 more" in answer
        assert len(answer) < 500
        assert not NOISE.search(answer)


async def test_a_failure_of_ours_is_an_incident_without_its_cause(
    database: Path, era: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with served(database, era, clock=BrokenClock()) as h:
        with caplog.at_level(logging.ERROR, logger="kalito.server"):
            answer = await h.refusal("record_messages", session_id="s", messages=said("x"))
        assert HIDDEN not in answer
        incident = re.fullmatch(
            r"internal: record_messages failed inside kalito \(incident ([0-9a-f]{8}), see the server's log\); "
            "try again",
            answer,
        )
        assert incident is not None
        [record] = [record for record in caplog.records if record.name == "kalito.server"]
        assert incident[1] in record.getMessage()
        assert record.exc_info is not None
        assert HIDDEN in str(record.exc_info[1])


async def test_a_failure_of_ours_in_a_prompt_is_an_incident_too(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await h.facts("record_messages", session_id="s", messages=said("x"))
    async with served(database, era, clock=BrokenClock()) as h:
        with pytest.raises(MCPError) as caught:
            await h.client.get_prompt("resume_session", {"session_id": "s"})
        assert caught.value.error.code == INTERNAL_ERROR
        assert "incident" in caught.value.error.message
        assert HIDDEN not in caught.value.error.message


async def test_a_refused_call_leaves_the_server_as_it_was(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await h.facts("record_messages", session_id="s", messages=said("a"))
        before = await h.stats("s")
        mixed = [{"role": "user", "text": "good"}, {"role": "user", "text": "x" * 600_000}]
        assert "messages[1]" in await h.refusal("record_messages", session_id="s", messages=mixed)
        assert await h.stats("s") == before
