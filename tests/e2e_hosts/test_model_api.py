"""The stand-in answers each API in its own format, and keeps what it was asked."""

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests.e2e_hosts.model_api import Request, ToolCall, model_api, scripted

SCRIPT = (("dentist", "Dr. Okafor."), ("weather", "Sunny."))
ASKED = "Who is my dentist?"
MESSAGES = {"stream": True, "messages": [{"role": "user", "content": [{"type": "text", "text": ASKED}]}]}
CONTENTS = {"contents": [{"role": "user", "parts": [{"text": ASKED}]}]}


def asked(url: str, body: dict[str, Any]) -> str:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})  # noqa: S310 - loopback
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - loopback
        return str(answer.read().decode())


def events(stream: str) -> list[Any]:
    said = [line.removeprefix("data: ") for line in stream.splitlines() if line.startswith("data: ")]
    return [json.loads(one) for one in said if one != "[DONE]"]


@pytest.mark.parametrize(
    ("path", "body", "reply_in"),
    [
        ("/v1/messages", MESSAGES, lambda said: said[2]["delta"]["text"]),
        ("/v1/chat/completions", MESSAGES, lambda said: said[0]["choices"][0]["delta"]["content"]),
        ("/v1/responses", {"stream": True, "input": ASKED}, lambda said: said[2]["delta"]),
        (
            "/v1beta/models/one:streamGenerateContent?alt=sse",
            CONTENTS,
            lambda said: said[0]["candidates"][0]["content"]["parts"][0]["text"],
        ),
    ],
)
def test_each_api_streams_the_reply_of_the_script(path: str, body: dict[str, Any], reply_in: Any) -> None:
    with model_api(scripted(SCRIPT)) as api:
        assert reply_in(events(asked(api.url + path, body))) == "Dr. Okafor."
        [request] = api.requests
    assert (request.newest, api.unknown) == (ASKED, [])


def test_what_was_said_before_the_model_spoke_is_not_the_newest() -> None:
    turns = [("user", "How is the weather?"), ("assistant", "Sunny."), ("user", ASKED), ("system", "Be brief.")]
    with model_api(scripted(SCRIPT)) as api:
        body = {"messages": [{"role": role, "content": text} for role, text in turns]}
        message = json.loads(asked(f"{api.url}/v1/messages", body))
        assert message["content"] == [{"type": "text", "text": "Dr. Okafor."}]
        assert api.requests[0].newest == ASKED


def test_a_path_that_it_does_not_know_is_named() -> None:
    with model_api(scripted(())) as api:
        with pytest.raises(urllib.error.HTTPError, match="404"):
            asked(f"{api.url}/v1/embeddings", {})
        assert api.unknown == ["POST /v1/embeddings"]


def test_a_call_of_a_tool_is_streamed_with_its_arguments() -> None:
    call = ToolCall("search_memory", {"query": ASKED}, "mcp__kalito")

    def speaks(_: Request) -> ToolCall:
        return call

    with model_api(speaks) as api:
        of_messages = events(asked(f"{api.url}/v1/messages", MESSAGES))
        of_responses = events(asked(f"{api.url}/v1/responses", {"stream": True, "input": ASKED}))
    assert of_messages[1]["content_block"]["name"] == "search_memory"
    assert json.loads(of_messages[2]["delta"]["partial_json"]) == call.arguments
    assert of_messages[4]["delta"]["stop_reason"] == "tool_use"
    [item] = of_responses[-1]["response"]["output"]
    assert (item["namespace"], item["name"], json.loads(item["arguments"])) == (
        "mcp__kalito",
        "search_memory",
        call.arguments,
    )
