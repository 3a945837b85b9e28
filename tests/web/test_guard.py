"""The guard in front of every route: names of hosts and pages, and tokens."""

import pytest
from starlette.types import Message, Receive, Scope, Send

from kalito_mcp.access.policy import HttpPolicy
from kalito_mcp.domain.access import Permission, Principal
from kalito_mcp.web.guard import OPEN, PRINCIPAL_KEY, Guard

pytestmark = pytest.mark.anyio
ANN = Principal("tok_1", "ann")
ANYONE = Principal("anyone", "local", Permission.ADMIN)
TOKEN = "kal_secret"
POLICY = HttpPolicy(
    hosts=("memory.lan",), origins=("https://app.example.org",), public_url="https://memory.example.org/"
)


async def passed(
    *headers: tuple[str, str], path: str = "/mcp", has_login: bool = True, method: str = "POST"
) -> tuple[int, Principal | None, dict[str, str]]:
    """What a request with these headers gets: the status, whom the app was told, and the headers of the answer."""
    told: list[Principal | None] = []
    sent: list[Message] = []

    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        told.append(scope.get(PRINCIPAL_KEY))
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def authenticate(token: str) -> Principal | None:
        return ANN if token == TOKEN else None

    async def receive() -> Message:
        raise AssertionError("the guard reads no body")

    async def send(message: Message) -> None:
        sent.append(message)

    guard = Guard(
        app,
        POLICY,
        authenticate=authenticate if has_login else None,
        anyone=ANYONE,
        metadata_url=lambda _host: "https://memory.example.org/.well-known/oauth-protected-resource",
    )
    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
    scope = {"type": "http", "method": method, "path": path, "headers": raw, "client": ("192.0.2.1", 50_000)}
    await guard(scope, receive, send)
    answered = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], told[0] if told else None, answered


HOST = ("Host", "127.0.0.1:8765")
BEARER = ("Authorization", f"Bearer {TOKEN}")


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.0.0.1:8765", "localhost:1", "LOCALHOST", "[::1]:8765", "memory.lan", "memory.example.org:443"],
)
async def test_the_servers_own_names_pass(host: str) -> None:
    assert (await passed(("Host", host), BEARER))[:2] == (200, ANN)


@pytest.mark.parametrize(
    "hosts",
    [
        [],
        [""],
        ["evil.example"],
        ["127.0.0.1.evil.example"],
        ["127.0.0.1@evil.example"],
        ["evil.example:8765"],
        ["localhost.evil.example:80"],
        ["[::1"],
        ["127.0.0.1", "evil.example"],
        ["127.0.0.1", "127.0.0.1"],
        ["0.0.0.0"],  # noqa: S104 - as browsers send it
    ],
)
@pytest.mark.parametrize("path", ["/mcp", "/health/live", "/nowhere"])
async def test_another_name_is_refused_on_every_route_whatever_token_comes_along(hosts: list[str], path: str) -> None:
    status, told, _ = await passed(*(("Host", host) for host in hosts), BEARER, path=path)
    assert (status, told) == (421, None)


@pytest.mark.parametrize("origin", ["http://localhost:3000", "https://127.0.0.1", "https://app.example.org"])
async def test_pages_of_this_machine_and_named_ones_may_call(origin: str) -> None:
    assert (await passed(HOST, BEARER, ("Origin", origin)))[0] == 200


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "",
        "file://",
        "https://app.example.org.evil.example",
        "http://app.example.org",
        "http://localhost.evil.example",
        "http://[::1",
        "chrome-extension://abc",
    ],
)
@pytest.mark.parametrize("path", ["/mcp", "/health/live"])
async def test_scripts_of_other_pages_may_not(origin: str, path: str) -> None:
    status, told, answered = await passed(HOST, BEARER, ("Origin", origin), path=path)
    assert (status, told) == (403, None)
    assert "access-control-allow-origin" not in answered


@pytest.mark.parametrize(
    "authorization",
    [
        [],
        ["Bearer"],
        ["Bearer "],
        ["Bearer wrong"],
        [f"Basic {TOKEN}"],
        [TOKEN],
        [f"Bearer {TOKEN} x"],
        [f"Bearer {TOKEN}", f"Bearer {TOKEN}"],
        [f"Bearer {TOKEN}", "Bearer wrong"],
        [f"Bearer,{TOKEN}"],
    ],
)
@pytest.mark.parametrize("path", ["/mcp", "/sse", "/messages/", "/", "/nowhere", "/health/live/", "/health/../mcp"])
async def test_without_one_valid_token_every_path_but_the_open_ones_is_refused(
    authorization: list[str], path: str
) -> None:
    status, told, answered = await passed(HOST, *(("Authorization", one) for one in authorization), path=path)
    assert (status, told) == (401, None)
    challenge = answered["www-authenticate"]
    assert challenge.startswith("Bearer ")
    assert 'resource_metadata="https://memory.example.org/' in challenge
    assert ('error="invalid_token"' in challenge) == bool(authorization)


@pytest.mark.parametrize("scheme", ["bearer", "BEARER", "Bearer "])
async def test_the_scheme_is_read_as_the_standard_says(scheme: str) -> None:
    assert (await passed(HOST, ("authorization", f"{scheme} {TOKEN}")))[:2] == (200, ANN)


@pytest.mark.parametrize("path", sorted(OPEN))
async def test_an_open_path_needs_no_token_and_gets_no_principal(path: str) -> None:
    assert (await passed(HOST, path=path))[:2] == (200, None)


async def test_without_login_everybody_is_anyone() -> None:
    assert (await passed(HOST, has_login=False))[:2] == (200, ANYONE)
