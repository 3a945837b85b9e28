"""No URL and no resolver leads a model server's requests to metadata, to this machine or to its network, unless that is
what was configured."""

from collections.abc import Iterator, Sequence
from typing import Final

import httpx2
import pytest

from kalito_mcp.errors import ConfigurationError, ModelError
from kalito_mcp.http_client import HttpClient
from kalito_mcp.inference.chat import OpenAIChat
from kalito_mcp.inference.registry import ModelServer
from tests.inference.test_chat import REQUEST, chat

pytestmark = pytest.mark.anyio

URLS: Final = (
    # Metadata and link-local, in every notation.
    "http://169.254.169.254/latest/meta-data", "http://169.254.170.2/v2/credentials", "http://0251.0376.0251.0376",
    "http://0251.254.169.254", "http://0xa9fea9fe", "http://0xA9.0xFE.0xA9.0xFE", "http://2852039166",
    "http://169.16689662", "http://169.254.43518", "http://[::ffff:169.254.169.254]", "http://[::ffff:a9fe:a9fe]",
    "http://[0:0:0:0:0:ffff:a9fe:a9fe]", "http://[::a9fe:a9fe]", "http://[::169.254.169.254]",
    "http://[2002:a9fe:a9fe::1]", "http://[64:ff9b::a9fe:a9fe]", "http://[2001:0:4136:e378:8000:63bf:5601:5601]",
    "http://[fe80::1]", "http://[fe80::1%25eth0]", "http://[febf::1]", "http://[fd00:ec2::254]",
    "http://[fd20:ce::254]", "http://100.100.100.200", "http://192.0.0.192",
    # Not one machine.
    "http://0.0.0.0:11434", "http://0", "http://0x0", "http://[::]", "http://224.0.0.1", "http://[ff02::1]",
    # Other schemes.
    "file:///etc/passwd", "ftp://127.0.0.1", "gopher://127.0.0.1:6379/_INFO", "dict://127.0.0.1:11211",
    "ldap://127.0.0.1", "unix:///var/run/docker.sock", "jar:http://127.0.0.1!/", "data:text/plain,x",
    "javascript:alert(1)", "//127.0.0.1",
    # Two parsers read them differently.
    "http://models.example@169.254.169.254", "http://169.254.169.254@models.example",
    "http://models.example:80@169.254.169.254", "http://models.example#@169.254.169.254",
    "http://models.example?@169.254.169.254", "http://models.example\\@169.254.169.254",
    "http://169.254.169.254\\.models.example", "http://models.example%2f@169.254.169.254",
    "http://models.example%00.169.254.169.254", "http://169.254.169.254%23.models.example",
    "http://models.example\t@169.254.169.254", "http://models.example\r\nHost: 169.254.169.254",
    "http://\u2460\u2465\u2468.254.169.254", "http://\uff11\uff16\uff19.254.169.254",
    "http://169\u3002254\u3002169\u3002254", "http://models.example:0", "http://models.example:99999",
    "http:models.example", "http:/169.254.169.254", "127.0.0.1:11434", "", "http://", "http://127.0.0.1 .example.com",
    "http://127.0.0.1\n", "http://127.0.0.1:٣", "http:///169.254.169.254",
)  # fmt: skip
NAMES: Final = (
    "127.0.0.1", "127.255.255.254", "::1", "::ffff:127.0.0.1", "2002:7f00:1::", "64:ff9b::7f00:1", "::7f00:1",
    "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "fc00::1", "fd12:3456::1", "fec0::1",
    "::ffff:10.0.0.1", "2002:a00:1::", "64:ff9b::a00:1", "169.254.169.254", "fe80::1%eth0", "0.0.0.0", "::",  # noqa: S104
    "224.0.0.1", "100.100.100.200",
)  # fmt: skip
"""What the name of a remote server must not lead to."""


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The URLs that were connected to."""
    made: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        made.append(str(request.url))
        return httpx2.Response(400)

    monkeypatch.setattr(HttpClient, "_new_client", lambda _: httpx2.AsyncClient(transport=httpx2.MockTransport(answer)))
    return made


def test_a_forbidden_url_is_refused_when_it_is_configured() -> None:
    for url in URLS:
        with pytest.raises(ConfigurationError, match="model server 'home'"):
            ModelServer(name="home", kind="openai", url=url, models=("m",), is_local=True)


async def test_a_remote_name_that_leads_home_is_never_connected_to(connected: list[str]) -> None:
    server = ModelServer(name="cloud", kind="openai", url="https://models.example/v1", models=("m",), max_retries=0)
    for address in NAMES:
        answers = iter([["93.184.216.34"], ["93.184.216.34", address], [address]])

        async def rebinding(_host: str, _port: int, answers: Iterator[list[str]] = answers) -> Sequence[str]:
            return next(answers)

        model = chat(server.url, OpenAIChat, resolve=rebinding, allows_loopback=server.allows_loopback)
        for _ in range(3):
            with pytest.raises(ModelError):
                await model.complete(REQUEST)
        await model.aclose()
        assert [httpx2.URL(one).host for one in connected] == ["93.184.216.34"], address
        connected.clear()


@pytest.mark.parametrize(
    ("url", "kind", "is_local", "address", "may_connect"),
    [
        ("http://127.0.0.1:11434", "ollama", None, "127.0.0.1", True),
        ("http://localhost:11434", "ollama", None, "127.0.0.1", True),
        ("http://gpu.lan:11434", "ollama", None, "192.168.0.7", True),
        ("http://192.168.0.7/v1", "openai", None, "192.168.0.7", True),
        ("http://gpu.lan/v1", "openai", True, "192.168.0.7", True),
        ("http://gpu.lan/v1", "openai", None, "192.168.0.7", False),
        ("http://gpu.lan:11434", "ollama", False, "192.168.0.7", False),
        ("https://models.example/v1", "openai", None, "93.184.216.34", True),
    ],
)
async def test_the_own_network_is_reached_as_configured(
    url: str, kind: str, is_local: bool | None, address: str, may_connect: bool, connected: list[str]
) -> None:
    async def resolve(_host: str, _port: int) -> Sequence[str]:
        return [address]

    server = ModelServer(name="home", kind=kind, url=url, models=("m",), is_local=is_local)  # type: ignore[arg-type]
    model = chat(server.url, OpenAIChat, resolve=resolve, allows_loopback=server.allows_loopback)
    with pytest.raises(ModelError):
        await model.complete(REQUEST)
    await model.aclose()
    assert bool(connected) is may_connect
