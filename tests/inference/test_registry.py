import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from kalito_mcp.domain.findings import Verdict
from kalito_mcp.errors import ConfigurationError, ModelUnavailable
from kalito_mcp.inference.chat import OpenAIChat
from kalito_mcp.inference.registry import ModelRegistry, ModelServer, ServerKind
from kalito_mcp.ports.embedder import VectorPolicy
from tests.inference import model_server as scripted
from tests.inference.model_server import ScriptedServer
from tests.inference.test_chat import REQUEST, chat
from tests.scripted import ScriptedClock

pytestmark = pytest.mark.anyio


def server(
    url: str = "http://127.0.0.1:11434",
    *,
    name: str = "home",
    kind: ServerKind = "ollama",
    models: tuple[str, ...] = ("llama*",),
    is_local: bool | None = None,
) -> ModelServer:
    return ModelServer(name=name, kind=kind, url=url, models=models, is_local=is_local)


def test_the_first_server_whose_glob_matches_answers_for_a_model() -> None:
    registry = ModelRegistry(
        [
            server(name="small", models=("llama3.2", "qwen*")),
            server("https://api.openai.com/v1", name="cloud", kind="openai", models=("gpt-*", "qwen*")),
        ],
        ScriptedClock(),
    )

    local, cloud = registry.find("llama3.2"), registry.find("gpt-4.1-mini")

    assert local is not None
    assert local.is_local
    assert cloud is not None
    assert not cloud.is_local
    assert registry.find("qwen3:4b") is local
    assert registry.find("llama3.2:latest") is None
    assert registry.find("GPT-4") is None


def test_two_servers_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="two model servers are named 'home'"):
        ModelRegistry([server(), server()], ScriptedClock())


def test_local_is_what_is_said_or_else_what_kind_and_url_say() -> None:
    for url, kind, is_local, expected in (
        ("http://ollama.example:11434", "ollama", None, True),
        ("https://ollama.example", "ollama", False, False),
        ("http://localhost:8000/v1", "openai", None, True),
        ("http://models.localhost/v1", "openai", None, True),
        ("http://127.0.0.2:8000/v1", "openai", None, True),
        ("http://2130706433:8000/v1", "openai", None, True),
        ("http://[::1]:8000/v1", "openai", None, True),
        ("http://[::ffff:127.0.0.1]:8000/v1", "openai", None, True),
        ("http://10.1.2.3/v1", "openai", None, True),
        ("http://172.31.0.1/v1", "openai", None, True),
        ("http://172.32.0.1/v1", "openai", None, False),
        ("http://192.168.0.7/v1", "openai", None, True),
        ("http://[fd12::7]/v1", "openai", None, True),
        ("http://192.168.0.7/v1", "openai", False, False),
        ("https://8.8.8.8/v1", "openai", None, False),
        ("https://api.openai.com/v1", "openai", None, False),
        ("https://localhost.example.com/v1", "openai", None, False),
        ("https://gateway.example/v1", "openai", True, True),
    ):
        assert server(url, kind=kind, is_local=is_local).runs_locally is expected


def test_a_url_with_a_secret_is_refused_and_not_repeated() -> None:
    for rest in ("user:hunter2@127.0.0.1", "hunter2@127.0.0.1", "127.0.0.1?key=hunter2", "127.0.0.1/v1#hunter2"):
        with pytest.raises(ConfigurationError, match="url must look like") as refusal:
            server(f"http://{rest}")
        assert "hunter2" not in str(refusal.value)


def test_an_unknown_kind_names_the_nearest() -> None:
    for kind, nearest in (("olama", "ollama"), ("Open-AI", "openai")):
        with pytest.raises(ConfigurationError, match=f"did you mean '{nearest}'"):
            server(kind=kind)  # type: ignore[arg-type]


def test_a_key_in_the_place_of_its_variables_name_is_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigurationError, match="the name of an environment variable") as refusal:
        ModelServer("cloud", "openai", "https://api.openai.com/v1", ("gpt-*",), api_key_env="sk-proj-1234")

    assert "1234" not in str(refusal.value)


def test_an_impossible_field_is_refused_by_name() -> None:
    for field, value in (
        ("connect_timeout_s", 0),
        ("total_timeout_s", -1),
        ("total_timeout_s", float("nan")),
        ("total_timeout_s", float("inf")),
        ("max_retries", 3),
        ("max_retries", -1),
        ("max_reply_bytes", 0),
        ("models", ()),
        ("models", ("",)),
        ("models", "llama*"),
        ("name", ""),
        ("name", "a\nb"),
    ):
        fields = {"name": "home", "kind": "ollama", "url": "http://127.0.0.1:11434", "models": ("*",), field: value}

        with pytest.raises(ConfigurationError, match=field):
            ModelServer(**fields)  # type: ignore[arg-type]


async def test_a_host_that_does_not_resolve_is_said_in_words() -> None:
    async def no_such_host(host: str, port: int) -> Sequence[str]:
        raise OSError(-2, "Name or service not known")

    model = chat("https://models.example/v1", OpenAIChat, resolve=no_such_host)

    with pytest.raises(ModelUnavailable, match="no such host"):
        await model.complete(REQUEST)
    await model.aclose()


async def test_every_address_of_a_host_is_tried_in_one_call() -> None:
    async def both_families(host: str, port: int) -> Sequence[str]:
        return ("::1", "127.0.0.1")

    async with ScriptedServer(scripted.ollama_says("A greeting.")) as server:
        model = chat(f"http://localhost:{server.port}", resolve=both_families)
        assert await model.complete(REQUEST) == "A greeting."
        await model.aclose()

    assert server.calls[0].headers["host"] == f"localhost:{server.port}"


@pytest.mark.parametrize(
    ("address", "allows_loopback"),
    [
        ("169.254.169.254", True),
        ("fe80::1%eth0", True),
        ("::ffff:169.254.169.254", True),
        ("0.0.0.0", True),  # noqa: S104
        ("127.0.0.1", False),
        ("::1", False),
    ],
)
async def test_a_name_of_a_forbidden_address_is_not_connected_to(address: str, allows_loopback: bool) -> None:
    """Metadata and link-local always, loopback unless configured; one such address among others is enough."""

    async def rebound(host: str, port: int) -> Sequence[str]:
        return ("127.0.0.1", address) if allows_loopback else (address, "127.0.0.1")

    async with ScriptedServer(scripted.ollama_says("hello")) as server:
        model = chat(f"http://models.example:{server.port}", resolve=rebound, allows_loopback=allows_loopback)
        with pytest.raises(ModelUnavailable, match="was not asked because its host's address") as caught:
            await model.complete(REQUEST)
        await model.aclose()

    assert f"address {address} " in str(caught.value)
    assert server.calls == []


async def test_a_resolver_that_changes_its_mind_changes_nothing() -> None:
    """Resolve once and connect to that address."""
    answers = iter([["127.0.0.1"], ["169.254.169.254"]])

    async def rebinding(host: str, port: int) -> Sequence[str]:
        return next(answers)

    async with ScriptedServer(scripted.ollama_says("A greeting.")) as server:
        model = chat(f"http://models.example:{server.port}", resolve=rebinding)
        assert await model.complete(REQUEST) == "A greeting."
        with pytest.raises(ModelUnavailable, match=r"169\.254\.169\.254"):
            await model.complete(REQUEST)
        await model.aclose()

    assert len(server.calls) == 1


OLLAMA_HAS = scripted.json_body({"models": [{"name": "llama3.2:latest"}, {"name": "nomic-embed-text:latest"}]})
OPENAI_HAS = scripted.json_body({"data": [{"id": "gpt-4.1-mini"}]})


@pytest.mark.parametrize(
    ("kind", "reply", "model", "verdict", "said"),
    [
        ("ollama", OLLAMA_HAS, "llama3.2", Verdict.OK, "answers and has llama3.2"),
        ("openai", OPENAI_HAS, "gpt-4.1-mini", Verdict.OK, "answers and has gpt-4.1-mini"),
        ("openai", OPENAI_HAS, "llama3.2", Verdict.OK, "answers"),
        ("openai", OPENAI_HAS, "gpt-5", Verdict.FAILED, "no model 'gpt-5'; load it there, or name one .*gpt-4.1-mini"),
        ("ollama", scripted.json_body({"models": []}), "llama3", Verdict.FAILED, "no model 'llama3'.*it has none yet"),
        ("openai", scripted.status(401), "gpt-5", Verdict.FAILED, "answered 401; check the API key in KALITO_TEST_KEY"),
        ("openai", scripted.status(404), "gpt-5", Verdict.FAILED, "answered 404; check its url"),
        ("openai", scripted.json_body("hello"), "gpt-5", Verdict.WARNING, "not a list of models"),
        (
            "ollama",
            scripted.closes_at_once,
            "llama3",
            Verdict.FAILED,
            "connection failed .* check that the server runs",
        ),
    ],
)
async def test_a_check_says_whether_a_server_answers_and_has_the_models_that_are_named(
    monkeypatch: pytest.MonkeyPatch, kind: ServerKind, reply: scripted.Reply, model: str, verdict: Verdict, said: str
) -> None:
    monkeypatch.setenv("KALITO_TEST_KEY", "sk-canary")
    async with ScriptedServer(reply) as running:
        one = replace(server(running.url, kind=kind, models=("llama*", "gpt*")), api_key_env="KALITO_TEST_KEY")
        if said == "answers":
            one = replace(one, models=("gpt*",))
        [found] = await ModelRegistry([one], ScriptedClock()).findings(VectorPolicy(), model)
    assert (found.check, found.verdict) == ("models", verdict)
    assert re.search(said, found.detail)
    assert "sk-canary" not in found.detail
    assert len(running.calls) == 1


async def test_a_check_names_the_variable_of_a_missing_key_and_the_embedding_model_that_a_server_lacks() -> None:
    async with ScriptedServer(OLLAMA_HAS) as running:
        cloud = replace(server(running.url, name="cloud", kind="openai"), api_key_env="KALITO_NO_SUCH_KEY")
        registry = ModelRegistry([server(running.url), cloud], ScriptedClock())
        at_home, away = await registry.findings(VectorPolicy(embedder="home", model="bge-m3"), "llama3.2")
    assert "no model 'bge-m3'" in at_home.detail
    assert "set the environment variable KALITO_NO_SUCH_KEY" in away.detail
    assert [one.verdict for one in (at_home, away)] == [Verdict.FAILED, Verdict.FAILED]
    assert len(running.calls) == 1
