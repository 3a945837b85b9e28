from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from kalito_mcp.errors import ConfigurationError, ModelUnavailable
from kalito_mcp.inference.chat import OpenAIChat
from kalito_mcp.inference.registry import ModelRegistry, ModelServer, ServerKind
from kalito_mcp.safety.addresses import address_flaw
from tests.inference import model_server as scripted
from tests.inference.model_server import ScriptedServer
from tests.inference.test_chat import REQUEST, chat


@dataclass(frozen=True)
class StillClock:
    def now_ms(self) -> int:
        return 0

    def steady_s(self) -> float:
        return 0.0


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
        StillClock(),
    )

    local, cloud = registry.find("llama3.2"), registry.find("gpt-4.1-mini")

    assert local is not None
    assert local.is_local
    assert cloud is not None
    assert not cloud.is_local
    assert registry.find("qwen3:4b") is local
    assert registry.find("llama3.2:latest") is None
    assert registry.find("GPT-4") is None


def test_a_server_has_one_client_whichever_of_its_models_is_asked_for() -> None:
    registry = ModelRegistry([server(models=("a", "b"))], StillClock())

    assert registry.find("a") is registry.find("b")


def test_two_servers_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="two model servers are named 'home'"):
        ModelRegistry([server(), server()], StillClock())


@pytest.mark.parametrize(
    ("url", "kind", "is_local", "expected"),
    [
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
    ],
)
def test_local_is_what_is_said_or_else_what_kind_and_url_say(
    url: str, kind: ServerKind, is_local: bool | None, expected: bool
) -> None:
    assert server(url, kind=kind, is_local=is_local).runs_locally is expected


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest",
        "http://169.254.170.2",
        "http://[fe80::1]:11434",
        "http://[febf::1]",
        "http://0251.0376.0251.0376",
        "http://0xa9fea9fe",
        "http://0xA9.0xFE.0xA9.0xFE",
        "http://2852039166",
        "http://169.16689662",
        "http://[::ffff:169.254.169.254]",
        "http://[::ffff:a9fe:a9fe]",
        "http://[2002:a9fe:a9fe::1]",
        "http://[64:ff9b::a9fe:a9fe]",
        "http://[fd00:ec2::254]",
        "http://100.100.100.200",
        "http://0.0.0.0:11434",
        "http://0",
        "http://[::]:11434",
        "http://224.0.0.1",
    ],
)
def test_metadata_and_link_local_addresses_are_refused_in_every_notation(url: str) -> None:
    with pytest.raises(ConfigurationError, match="use the model server's own address"):
        server(url)


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://127.0.0.1",
        "127.0.0.1:11434",
        "",
        "http://",
        "http:///v1",
        "http://user:hunter2@127.0.0.1",
        "http://hunter2@127.0.0.1",
        "http://127.0.0.1?key=hunter2",
        "http://127.0.0.1/v1#hunter2",
        "http://127.0.0.1\\@example.com",
        "http://127.0.0.1 .example.com",
        "http://127.0.0.1\n",
        "http://①⑥⑨.254.169.254",
        "http://１６９.254.169.254",
        "http://[fe80::1%25eth0]",
        "http://127.0.0.1:0",
        "http://127.0.0.1:65536",
        "http://127.0.0.1:٣",
    ],
)
def test_a_url_that_is_not_a_plain_http_address_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(ConfigurationError, match="url must look like") as refusal:
        server(url)

    assert "hunter2" not in str(refusal.value)


def test_an_unknown_kind_names_the_nearest() -> None:
    with pytest.raises(ConfigurationError, match="kind='olama' is unknown; did you mean 'ollama'"):
        server(kind="olama")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="did you mean 'openai'"):
        server(kind="Open-AI")  # type: ignore[arg-type]


def test_a_key_in_the_place_of_its_variables_name_is_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigurationError, match="the name of an environment variable") as refusal:
        ModelServer("cloud", "openai", "https://api.openai.com/v1", ("gpt-*",), api_key_env="sk-proj-1234")

    assert "1234" not in str(refusal.value)


@pytest.mark.parametrize(
    ("field", "value"),
    [
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
    ],
)
def test_an_impossible_field_is_refused_by_name(field: str, value: object) -> None:
    fields = {"name": "home", "kind": "ollama", "url": "http://127.0.0.1:11434", "models": ("*",), field: value}

    with pytest.raises(ConfigurationError, match=field):
        ModelServer(**fields)  # type: ignore[arg-type]


@pytest.mark.anyio
async def test_a_registry_that_was_never_asked_closes_quietly() -> None:
    await ModelRegistry([server()], StillClock()).aclose()


@pytest.mark.anyio
async def test_a_host_that_does_not_resolve_is_said_in_words() -> None:
    async def no_such_host(host: str, port: int) -> Sequence[str]:
        raise OSError(-2, "Name or service not known")

    model = chat("https://models.example/v1", OpenAIChat, resolve=no_such_host)

    with pytest.raises(ModelUnavailable, match="no such host"):
        await model.complete(REQUEST)
    await model.aclose()


@pytest.mark.anyio
async def test_every_address_of_a_host_is_tried_in_one_call() -> None:
    async def both_families(host: str, port: int) -> Sequence[str]:
        return ("::1", "127.0.0.1")

    async with ScriptedServer(scripted.ollama_says("A greeting.")) as server:
        model = chat(f"http://localhost:{server.port}", resolve=both_families)
        assert await model.complete(REQUEST) == "A greeting."
        await model.aclose()

    assert server.calls[0].headers["host"] == f"localhost:{server.port}"


@pytest.mark.anyio
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


@pytest.mark.anyio
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


def test_addresses_inside_addresses_are_judged_as_what_they_are() -> None:
    for hidden in ("::ffff:169.254.1.1", "2002:a9fe:101::", "64:ff9b::169.254.1.1"):
        assert address_flaw(hidden, allows_loopback=True) == "is a link-local or metadata address"
    for open_address in ("8.8.8.8", "10.0.0.1", "2001:4860:4860::8888", "::ffff:8.8.8.8", "127.0.0.1", "::1"):
        assert address_flaw(open_address, allows_loopback=True) is None
