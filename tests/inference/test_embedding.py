"""The embedding server is a real one on loopback. It misbehaves in every way that servers do."""

import logging
from typing import Any

import anyio
import numpy as np
import pytest

from kalito_mcp.errors import ConfigurationError, ModelError, ModelReplyInvalid, ModelUnavailable
from kalito_mcp.inference.breaker import CircuitBreaker
from kalito_mcp.inference.embedding import OllamaEmbedder, OpenAIEmbedder
from kalito_mcp.inference.http import CallLimits
from kalito_mcp.inference.registry import ModelRegistry, ModelServer
from kalito_mcp.ports.embedder import Embedder, VectorPolicy
from tests.inference import model_server as scripted
from tests.inference.model_server import MIB, Flood, Reply, ScriptedServer, json_body
from tests.inference.test_chat import KEY, KEY_ENV, REQUEST, Waits
from tests.scripted import ScriptedClock

pytestmark = pytest.mark.anyio

POLICY = VectorPolicy(embedder="home", model="nomic-embed-text")
TEXTS = ["We fly to Oslo.", "The cat sleeps."]
Kind = type[OllamaEmbedder] | type[OpenAIEmbedder]


def vectors_of(*vectors: Any) -> Reply:
    return json_body({"model": "m", "embeddings": list(vectors)})


def numbered(*vectors: tuple[Any, Any]) -> Reply:
    return json_body({"data": [{"object": "embedding", "index": index, "embedding": row} for index, row in vectors]})


def embedder(
    url: str, kind: Kind = OllamaEmbedder, policy: VectorPolicy = POLICY, **options: Any
) -> OllamaEmbedder | OpenAIEmbedder:
    defaults: dict[str, Any] = {
        "name": "home",
        "is_local": True,
        "allows_loopback": True,
        "breaker": CircuitBreaker(ScriptedClock()),
        "limits": CallLimits(total_timeout_s=5.0),
        "sleep": Waits(),
        "jitter": lambda: 0.0,
    }
    return kind(policy=policy, url=url, **defaults | options)


async def failure_of(*replies: Reply, kind: Kind = OllamaEmbedder, **options: Any) -> tuple[ModelError, int]:
    """The error that embedding two texts ends in, and how many calls reached the server."""
    async with ScriptedServer(*replies) as server:
        model = embedder(server.url, kind, **options)
        with pytest.raises(ModelError) as caught, anyio.fail_after(10):
            await model.embed(TEXTS)
        await model.aclose()
        assert f"model server 'home' at {server.url}" in str(caught.value)
        assert "Oslo" not in str(caught.value)
        return caught.value, len(server.calls)


async def test_ollama_is_asked_in_the_form_of_its_api() -> None:
    async with ScriptedServer(vectors_of([3, 4.0], [0, -2])) as server:
        model = embedder(server.url)
        rows = await model.embed(TEXTS)
        await model.aclose()

    [call] = server.calls
    assert call.path == "/api/embed"
    assert call.body == {"model": "nomic-embed-text", "input": TEXTS}
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0, -1]], rtol=1e-6)


async def test_an_openai_compatible_server_gets_requests_of_its_api(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_ENV, f"{KEY}\n")
    async with ScriptedServer(numbered((1, [0.0, 1.0]), (0, [1.0, 0.0]))) as server:
        model = embedder(f"{server.url}/v1", OpenAIEmbedder, api_key_env=KEY_ENV)
        rows = await model.embed(TEXTS)
        await model.aclose()

    [call] = server.calls
    assert call.path == "/v1/embeddings"
    assert call.headers["authorization"] == f"Bearer {KEY}"
    assert call.body == {"model": "nomic-embed-text", "input": TEXTS, "encoding_format": "float"}
    assert rows.tolist() == [[1, 0], [0, 1]], "the answer's order is not the texts'"


async def test_texts_are_prepared_as_the_policy_says() -> None:
    policy = VectorPolicy("home", "m", query_prefix="query: ", max_chars=4)
    async with ScriptedServer(vectors_of([1.0], [1.0], [1.0])) as server:
        model = embedder(server.url, policy=policy)
        await model.embed(["Oslo in May", "", "\n \t "])
        await model.embed(["Oslo in May", "", "\n"], is_query=True)
        await model.aclose()

    assert [call.body["input"] for call in server.calls] == [
        ["Oslo", " ", " "],
        ["query: Oslo", "query: ", "query: \n"],
    ]


async def test_texts_go_out_in_batches_and_come_back_in_order() -> None:
    replies = vectors_of([1, 0], [0, 1]), vectors_of([0, -1], [-1, 0]), vectors_of([1, 1])
    async with ScriptedServer(*replies) as server:
        model = embedder(server.url, policy=VectorPolicy("home", "m", batch=2))
        rows = await model.embed(list("abcde"))
        await model.aclose()

    assert [call.body["input"] for call in server.calls] == [["a", "b"], ["c", "d"], ["e"]]
    np.testing.assert_allclose(rows, [[1, 0], [0, 1], [0, -1], [-1, 0], [0.5**0.5, 0.5**0.5]], rtol=1e-6)


async def test_without_texts_nobody_is_asked() -> None:
    async with ScriptedServer(scripted.never_answers) as server:
        model = embedder(server.url)
        assert len(await model.embed([])) == 0
        await model.aclose()

    assert server.calls == []


async def test_batches_of_different_dimensions_are_refused() -> None:
    failure, _ = await failure_of(vectors_of([1, 0]), vectors_of([1, 0, 0]), policy=VectorPolicy("home", "m", batch=1))

    assert isinstance(failure, ModelReplyInvalid)
    assert "several dimensions" in str(failure)


async def test_an_answer_that_is_not_one_vector_a_text_is_refused_and_not_asked_for_again() -> None:
    for reply, said in (
        (vectors_of([1.0, 0.0]), "2 texts with 1 vectors"),
        (vectors_of([1, 0], [1, 0], [1, 0]), "2 texts with 3 vectors"),
        (vectors_of([1.0, 0.0], [1.0]), "one dimension"),
        (vectors_of([], []), "one dimension"),
        (vectors_of([0.1] * 8193, [0.1] * 8193), "from 1 to 8192"),
        (vectors_of([1.0, float("nan")], [1, 0]), "not finite"),
        (vectors_of([1.0, 0.0], [1, float("-inf")]), "not finite"),
        (scripted.body(b'{"embeddings": [[1e999, 1], [1, 0]]}'), "not finite"),
        (vectors_of([0, 0.0], [1, 0]), "zero"),
        (vectors_of([10**400, 1], [1, 0]), "too large"),
        (vectors_of(["1", "2"], [1, 0]), "not a number"),
        (vectors_of([True, False], [1, 0]), "not a number"),
        (vectors_of([None, 1], [1, 0]), "not a number"),
        (vectors_of([[1], [2]], [1, 0]), "not a number"),
        (vectors_of("ab", "cd"), "not a list of embeddings"),
        (json_body({"embedding": [1.0]}), "not a list of embeddings"),
        (json_body([[1.0], [1.0]]), "not a list of embeddings"),
        (scripted.body(b"<html>"), "not JSON"),
        (scripted.body(b"[" * 100_000), "not JSON"),
        (scripted.ollama_says("hello"), "not a list of embeddings"),
    ):
        failure, calls = await failure_of(reply)

        assert isinstance(failure, ModelReplyInvalid)
        assert said in str(failure)
        assert calls == 1


async def test_vectors_without_distinct_numbers_are_refused() -> None:
    for reply in (
        numbered((0, [1.0]), (0, [1.0])),
        numbered((1, [1.0]), (2, [1.0])),
        numbered((0, [1.0]), ("1", [1.0])),
        numbered((False, [1.0]), (True, [1.0])),
        numbered((0, [1.0]), ([], [1.0])),
        numbered((0, [1.0]), (1, "AACAPw==")),
        json_body({"data": [1, 2]}),
        json_body({"data": {"0": [1.0]}}),
        json_body({"error": "no"}),
    ):
        failure, _ = await failure_of(reply, kind=OpenAIEmbedder)

        assert isinstance(failure, ModelReplyInvalid)


async def test_very_large_and_very_small_numbers_are_scaled_all_the_same() -> None:
    async with ScriptedServer(vectors_of([3e300, 4e300], [3e-310, -4e-310])) as server:
        model = embedder(server.url)
        rows = await model.embed(TEXTS)
        await model.aclose()

    np.testing.assert_allclose(rows, [[0.6, 0.8], [0.6, -0.8]], rtol=1e-6)


async def test_a_batch_of_large_vectors_may_be_larger_than_a_chats_answer() -> None:
    row = [0.123456789] * 8192
    async with ScriptedServer(vectors_of(row, row)) as server:
        model = embedder(server.url, limits=CallLimits(max_reply_bytes=1000))
        assert (await model.embed(TEXTS)).shape == (2, 8192)
        await model.aclose()


async def test_an_answer_without_end_is_cut_off_at_a_size() -> None:
    flood = Flood(64 * MIB)
    failure, calls = await failure_of(flood, policy=VectorPolicy("home", "m", batch=2))

    assert isinstance(failure, ModelReplyInvalid)
    assert "is over" in str(failure)
    assert flood.sent < 16 * MIB
    assert calls == 1


async def test_a_model_that_the_server_does_not_have_is_named() -> None:
    failure, _ = await failure_of(scripted.status(404))

    assert isinstance(failure, ModelUnavailable)
    assert "has the model 'nomic-embed-text'" in str(failure)


async def test_the_key_is_in_no_error_log_or_fingerprint(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(KEY_ENV, KEY)
    caplog.set_level(logging.DEBUG)
    echo = scripted.status(401, content=f"bad key {KEY}".encode())
    for reply in (echo, scripted.body(f"no vectors for {KEY}".encode()), json_body({"error": KEY})):
        failure, _ = await failure_of(reply, kind=OpenAIEmbedder, api_key_env=KEY_ENV)
        assert KEY not in f"{failure} {failure.__cause__!r} {failure.__context__!r}"
    model = embedder("https://api.example/v1", OpenAIEmbedder, api_key_env=KEY_ENV)

    assert KEY not in caplog.text
    assert KEY not in f"{model!r} {vars(model)}"
    assert model.fingerprint == "openai:nomic-embed-text"


def test_the_fingerprint_says_what_made_the_vectors_and_nothing_else() -> None:
    def of(kind: Kind = OllamaEmbedder, url: str = "http://127.0.0.1:11434", **policy: Any) -> str:
        return embedder(url, kind, VectorPolicy(**{"embedder": "home", "model": "m", **policy})).fingerprint

    assert of() == of(url="http://10.0.0.7:8000/v1") == of(batch=7) == "ollama:m"
    prefixed = [of(query_prefix="ab"), of(passage_prefix="ab"), of(query_prefix="a", passage_prefix="b")]
    assert len({of(), of(OpenAIEmbedder), of(model="n"), *prefixed}) == 6
    assert all("ab" not in fingerprint.split(":")[:2] for fingerprint in prefixed)


@pytest.fixture
def servers() -> ModelRegistry:
    home = ModelServer("home", "ollama", "http://127.0.0.1:11434", ("*",))
    return ModelRegistry(
        [home, ModelServer("cloud", "openai", "https://api.example/v1", ("gpt-*",))],
        ScriptedClock(),
    )


async def test_the_registry_builds_the_embedder_that_is_named(servers: ModelRegistry) -> None:

    assert servers.embedder(VectorPolicy()) is None
    home, cloud = (servers.embedder(VectorPolicy(name, "m")) for name in ("home", "cloud"))
    assert isinstance(home, OllamaEmbedder)
    assert isinstance(cloud, OpenAIEmbedder)
    assert (home.unrelated, cloud.unrelated) == (None, None)
    await servers.aclose()
    with pytest.raises(ModelUnavailable, match="is closed"):
        await home.embed(TEXTS)


async def test_an_embedder_that_cannot_be_is_refused_at_once(servers: ModelRegistry) -> None:
    usable = "'auto', 'none', 'meaning', 'e5', 'home', 'cloud'"
    with pytest.raises(ConfigurationError, match=f"'hoem' is not a model server; use one of {usable}"):
        servers.embedder(VectorPolicy("hoem", "m"))
    with pytest.raises(ConfigurationError, match=r"models\.embedding_model is empty"):
        servers.embedder(VectorPolicy("home"))


async def test_a_configuration_that_names_the_removed_embedder_hears_what_to_do(
    servers: ModelRegistry,
) -> None:
    with pytest.raises(ConfigurationError, match="'minilm' is no longer there: delete the line"):
        servers.embedder(VectorPolicy("minilm"))
    named = ModelServer("minilm", "ollama", "http://127.0.0.1:11434", ("*",))
    registry = ModelRegistry([named], ScriptedClock())
    assert isinstance(registry.embedder(VectorPolicy("minilm", "m")), OllamaEmbedder)
    await registry.aclose()


async def test_a_chat_that_is_down_does_not_stop_the_vectors_of_its_server() -> None:
    async with ScriptedServer(*[scripted.body(b"nonsense")] * 5, vectors_of([1.0])) as server:
        registry = ModelRegistry([ModelServer("home", "ollama", server.url, ("*",))], ScriptedClock())
        chat, vectors = registry.find("m"), registry.embedder(VectorPolicy("home", "m"))
        assert chat is not None
        assert vectors is not None
        for _ in range(6):
            with pytest.raises(ModelError):
                await chat.complete(REQUEST)
        port: Embedder = vectors
        assert (await port.embed(["a"])).tolist() == [[1.0]]
        await registry.aclose()
