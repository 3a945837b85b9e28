"""The model server is a real one on loopback. It misbehaves in every way that servers do."""

import logging
from typing import Any

import anyio
import pytest

from kalito_mcp.errors import ModelError, ModelReplyInvalid, ModelUnavailable
from kalito_mcp.inference.breaker import CircuitBreaker
from kalito_mcp.inference.chat import OllamaChat, OpenAIChat
from kalito_mcp.inference.http import CallLimits
from kalito_mcp.ports.chat import ChatRequest
from tests.inference import model_server as scripted
from tests.inference.model_server import MIB, Flood, Reply, ScriptedServer
from tests.scripted import ScriptedClock

pytestmark = pytest.mark.anyio

REQUEST = ChatRequest(
    model="llama3.2", system="Be brief.", prompt="user: hi 👋 \ud800", temperature=0.1, max_tokens=100
)
KEY_ENV = "KALITO_TEST_MODEL_KEY"
KEY = "sk-canary-0123456789"
QUICK = CallLimits(total_timeout_s=5.0)
IMPATIENT = CallLimits(total_timeout_s=0.7)


class Waits(list[float]):
    """Replaces the waits between retries and notes them."""

    async def __call__(self, delay: float) -> None:
        self.append(delay)


def chat(url: str, kind: type[OllamaChat] | type[OpenAIChat] = OllamaChat, **options: Any) -> OllamaChat | OpenAIChat:
    defaults: dict[str, Any] = {
        "name": "home",
        "is_local": True,
        "allows_loopback": True,
        "breaker": CircuitBreaker(ScriptedClock()),
        "limits": QUICK,
        "sleep": Waits(),
        "jitter": lambda: 0.0,
    }
    return kind(url=url, **defaults | options)


async def failure_of(
    *replies: Reply, kind: type[OllamaChat] | type[OpenAIChat] = OllamaChat, **options: Any
) -> tuple[ModelError, int]:
    """The error that one completion ends in, and how many calls reached the server."""
    async with ScriptedServer(*replies) as server:
        model = chat(server.url, kind, **options)
        with pytest.raises(ModelError) as caught, anyio.fail_after(10):
            await model.complete(REQUEST)
        await model.aclose()
        assert f"model server 'home' at {server.url}" in str(caught.value)
        assert type(caught.value) in {ModelUnavailable, ModelReplyInvalid}
        return caught.value, len(server.calls)


async def test_ollama_is_asked_in_the_form_of_its_api() -> None:
    async with ScriptedServer(scripted.ollama_says("  A greeting. \n")) as server:
        model = chat(server.url + "/")
        assert await model.complete(REQUEST) == "A greeting."
        await model.aclose()

    [call] = server.calls
    assert call.path == "/api/chat"
    assert call.headers["host"] == f"127.0.0.1:{server.port}"
    assert "authorization" not in call.headers
    assert call.body == {
        "model": "llama3.2",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": REQUEST.prompt}],
        "stream": False,
        "options": {"temperature": 0.1, "num_predict": 100},
    }


async def test_an_openai_compatible_server_gets_requests_of_its_api(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_ENV, f"{KEY}\n")
    async with ScriptedServer(scripted.openai_says("A greeting.")) as server:
        model = chat(f"{server.url}/v1", OpenAIChat, api_key_env=KEY_ENV)
        assert await model.complete(REQUEST) == "A greeting."
        await model.aclose()

    [call] = server.calls
    assert call.path == "/v1/chat/completions"
    assert call.headers["authorization"] == f"Bearer {KEY}"
    assert call.body["max_tokens"] == 100
    assert call.body["temperature"] == 0.1
    assert call.body["stream"] is False
    assert [message["role"] for message in call.body["messages"]] == ["system", "user"]


async def test_what_a_reasoning_model_thought_is_not_part_of_its_answer() -> None:
    async with ScriptedServer(scripted.ollama_says("<think>\nThe user...\n</think>\n\nA greeting.")) as server:
        model = chat(server.url)
        assert await model.complete(REQUEST) == "A greeting."
        await model.aclose()

    failure, _ = await failure_of(scripted.ollama_says("<think>\nThe user says hi, so I"))
    assert isinstance(failure, ModelReplyInvalid)


async def test_a_slow_server_is_cut_off_at_the_total_timeout() -> None:
    for reply in (
        scripted.never_answers,
        scripted.hangs_after_the_head,
        scripted.drips,
    ):
        failure, calls = await failure_of(reply, limits=IMPATIENT)

        assert isinstance(failure, ModelUnavailable)
        assert "within 0.7 s" in str(failure)
        assert calls == 1


async def test_a_passing_failure_is_tried_three_times_in_all() -> None:
    """At most 3 calls a job."""
    for code in (
        429,
        500,
        502,
        503,
        504,
    ):
        waits = Waits()

        failure, calls = await failure_of(scripted.status(code), sleep=waits)

        assert isinstance(failure, ModelUnavailable)
        assert str(code) in str(failure)
        assert calls == 3
        assert waits == [0.25, 0.5]


async def test_the_waits_are_shortened_at_random_by_up_to_a_half() -> None:
    waits = Waits()

    await failure_of(scripted.status(500), sleep=waits, jitter=lambda: 1.0)

    assert waits == [0.125, 0.25]


async def test_a_broken_connection_is_tried_three_times_in_all() -> None:
    for reply in (
        scripted.closes_at_once,
        scripted.closes_mid_body,
        scripted.speaks_no_http,
    ):
        failure, calls = await failure_of(reply)

        assert isinstance(failure, ModelUnavailable)
        assert "the connection failed" in str(failure)
        assert calls == 3


async def test_a_refusal_is_not_tried_again() -> None:
    for code in (
        400,
        401,
        403,
        404,
        413,
        422,
        501,
    ):
        failure, calls = await failure_of(scripted.status(code))

        assert isinstance(failure, ModelUnavailable)
        assert f"answered {code}" in str(failure)
        assert calls == 1


async def test_a_failure_that_passes_is_not_seen() -> None:
    async with ScriptedServer(
        scripted.status(503), scripted.closes_mid_body, scripted.ollama_says("A greeting.")
    ) as server:
        model = chat(server.url)
        assert await model.complete(REQUEST) == "A greeting."
        await model.aclose()


async def test_a_short_retry_after_is_waited_for_and_one_that_is_no_number_leaves_it_to_the_backoff() -> None:
    for given, waited in (("3", [3.0, 3.0]), ("Wed, 21 Oct 2026 07:28:00 GMT", [0.25, 0.5])):
        waits = Waits()
        await failure_of(scripted.status(429, f"Retry-After: {given}"), sleep=waits)
        assert waits == waited


async def test_a_wait_that_is_too_long_is_not_begun() -> None:
    for header, limits in (
        ("Retry-After: 6", CallLimits()),
        ("Retry-After: 4", CallLimits(total_timeout_s=3)),
    ):
        waits = Waits()

        failure, calls = await failure_of(scripted.status(503, header), sleep=waits, limits=limits)

        assert isinstance(failure, ModelUnavailable)
        assert (calls, waits) == (1, [])


async def test_an_answer_of_the_wrong_shape_is_refused_at_once() -> None:
    for reply in (
        scripted.body(b"<html>It works!</html>"),
        scripted.body(b""),
        scripted.body(b"\xff\xfe\x00"),
        scripted.body(b"[" * 100_000),
        scripted.body(b"1" * 10_000),
        scripted.body(b"{}", "Content-Encoding: gzip"),
        scripted.status(204, content=b""),
        scripted.json_body(None),
        scripted.json_body([]),
        scripted.json_body({"message": "hello"}),
        scripted.json_body({"message": {"content": None}}),
        scripted.json_body({"message": {"content": ["hello"]}}),
        scripted.json_body({"message": [{"content": "hello"}]}),
        scripted.openai_says("hello"),
    ):
        failure, calls = await failure_of(reply)

        assert isinstance(failure, ModelReplyInvalid)
        assert calls == 1


async def test_an_openai_answer_of_the_wrong_type_is_refused_at_once() -> None:
    for value in (
        {"choices": []},
        {"choices": {}},
        {"choices": [None]},
        {"choices": [{"message": {"content": 7}}]},
        {"error": "no"},
    ):
        failure, calls = await failure_of(scripted.json_body(value), kind=OpenAIChat)

        assert isinstance(failure, ModelReplyInvalid)
        assert calls == 1


async def test_a_body_of_100_mb_is_cut_off_after_the_first() -> None:
    flood = Flood(100 * MIB)

    failure, calls = await failure_of(flood)

    assert isinstance(failure, ModelReplyInvalid)
    assert "is over 1048576 bytes" in str(failure)
    assert calls == 1
    assert flood.sent < 16 * MIB  # what the sockets' buffers hold on top


async def test_a_redirect_is_not_followed_and_does_not_get_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """No cross-origin redirect, keys only to their own host."""
    monkeypatch.setenv(KEY_ENV, KEY)
    async with ScriptedServer(scripted.openai_says("mine now")) as thief:
        failure, calls = await failure_of(
            scripted.redirects_to(f"{thief.url}/chat/completions"), kind=OpenAIChat, api_key_env=KEY_ENV
        )

    assert isinstance(failure, ModelUnavailable)
    assert "redirect" in str(failure)
    assert (calls, thief.calls) == (1, [])


async def test_a_proxy_of_the_environment_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async with ScriptedServer(scripted.ollama_says("mine now")) as proxy:
        for variable in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(variable, proxy.url)
        monkeypatch.setenv("NO_PROXY", "")
        monkeypatch.setenv("no_proxy", "")
        async with ScriptedServer(scripted.ollama_says("A greeting.")) as server:
            model = chat(server.url)
            assert await model.complete(REQUEST) == "A greeting."
            await model.aclose()

    assert proxy.calls == []


async def test_nobody_listening_is_said_in_words() -> None:
    async with ScriptedServer(scripted.never_answers) as gone:
        pass
    model = chat(gone.url)

    with pytest.raises(ModelUnavailable, match=r"the connection failed .* check that the server runs"):
        await model.complete(REQUEST)
    await model.aclose()


async def test_a_server_that_speaks_no_tls_is_said_in_words() -> None:
    async with ScriptedServer(scripted.speaks_no_http) as plain:
        model = chat(plain.url.replace("http:", "https:"))
        with pytest.raises(ModelUnavailable, match="the connection failed"):
            await model.complete(REQUEST)
        await model.aclose()


async def test_without_a_usable_key_no_server_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in (
        "",
        "  ",
        "sk-canary\nX-Evil: 1",
        "sk-canary-ключ",
    ):
        monkeypatch.setenv(KEY_ENV, key)

        failure, calls = await failure_of(scripted.openai_says("hello"), kind=OpenAIChat, api_key_env=KEY_ENV)

        assert f"set the environment variable {KEY_ENV}" in str(failure)
        assert "canary" not in str(failure)
        assert calls == 0


async def test_the_key_is_in_no_error_no_repr_and_no_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for reply in (
        scripted.status(401, content=f"Incorrect API key provided: {KEY}".encode()),
        scripted.status(500, content=KEY.encode()),
        scripted.body(KEY.encode()),
        scripted.json_body({KEY: KEY}),
        scripted.redirects_to(f"http://127.0.0.1/{KEY}"),
        scripted.never_answers,
    ):
        monkeypatch.setenv(KEY_ENV, KEY)
        caplog.set_level(logging.INFO)

        failure, _ = await failure_of(reply, kind=OpenAIChat, api_key_env=KEY_ENV, limits=IMPATIENT)

        assert KEY not in str(failure)
        assert KEY not in repr(failure)
        assert KEY not in caplog.text
        assert KEY not in repr(chat("http://127.0.0.1:1", OpenAIChat, api_key_env=KEY_ENV))


async def test_credentials_in_a_url_are_neither_sent_nor_shown() -> None:
    async with ScriptedServer(scripted.status(404)) as server:
        model = chat(f"http://user:hunter2@127.0.0.1:{server.port}")
        with pytest.raises(ModelUnavailable) as caught:
            await model.complete(REQUEST)
        await model.aclose()

    assert "hunter2" not in str(caught.value) + repr(model)
    assert "authorization" not in server.calls[0].headers


async def test_one_client_serves_many_callers_at_once() -> None:
    async with ScriptedServer(scripted.ollama_says("A greeting.")) as server:
        model = chat(server.url)
        async with anyio.create_task_group() as callers:
            for _ in range(8):
                callers.start_soon(model.complete, REQUEST)
        await model.aclose()

    assert len(server.calls) == 8


async def test_a_closed_chat_refuses_in_words_and_closes_twice() -> None:
    async with ScriptedServer(scripted.ollama_says("A greeting.")) as server:
        model = chat(server.url)
        await model.complete(REQUEST)
        await model.aclose()
        await model.aclose()
        with pytest.raises(ModelUnavailable, match="is closed"):
            await model.complete(REQUEST)

    assert len(server.calls) == 1
