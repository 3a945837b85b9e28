"""The guard in front of every route: names of hosts and pages, and tokens."""

import pytest
from starlette.types import Message, Receive, Scope, Send

from kalito_mcp.access.policy import HttpPolicy
from kalito_mcp.domain.access import Permission, Principal
from kalito_mcp.web.guard import PRINCIPAL_KEY, Guard

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
    """Pass a request with these headers; the status, the principal that the app saw, and the headers of the answer."""
    passed_on: list[Principal | None] = []
    sent: list[Message] = []

    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        passed_on.append(scope.get(PRINCIPAL_KEY))
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
    return sent[0]["status"], passed_on[0] if passed_on else None, answered


HOST = ("Host", "127.0.0.1:8765")
BEARER = ("Authorization", f"Bearer {TOKEN}")


async def test_the_servers_own_names_pass() -> None:
    named = ["memory.lan", "memory.example.org:443"]
    for host in ("127.0.0.1", "127.0.0.1:8765", "localhost:1", "LOCALHOST", "[::1]:8765", *named):
        assert (await passed(("Host", host), BEARER))[:2] == (200, ANN), host


async def test_another_name_is_refused_on_every_route_whatever_token_comes_along() -> None:
    for hosts in (
        [],
        [""],
        ["evil.example:8765"],
        ["127.0.0.1.evil.example"],
        ["127.0.0.1@evil.example"],
        ["[::1"],
        ["127.0.0.1", "evil.example"],
        ["127.0.0.1", "127.0.0.1"],
        ["0.0.0.0"],  # noqa: S104 - as browsers send it
    ):
        for path in ("/mcp", "/health/live", "/nowhere"):
            status, passed_on, _ = await passed(*(("Host", host) for host in hosts), BEARER, path=path)
            assert (status, passed_on) == (421, None), (hosts, path)


async def test_a_proxy_may_ask_for_the_health_of_a_machine_by_its_address() -> None:
    for host in ("10.0.0.1:8765", "[fd00::7]:8765", "192.0.2.7"):
        for path in ("/health/live", "/health/ready"):
            assert (await passed(("Host", host), path=path))[0] == 200, (host, path)
        assert (await passed(("Host", host), BEARER, path="/mcp"))[0] == 421, host


async def test_pages_of_this_machine_and_named_ones_may_call() -> None:
    for origin in ("http://localhost:3000", "https://127.0.0.1", "https://app.example.org"):
        assert (await passed(HOST, BEARER, ("Origin", origin)))[0] == 200, origin


async def test_scripts_of_other_pages_may_not() -> None:
    strange = ("null", "", "file://", "http://[::1", "chrome-extension://abc", "http://localhost.evil.example")
    for origin in (*strange, "https://app.example.org.evil.example", "http://app.example.org"):
        for path in ("/mcp", "/health/live"):
            status, passed_on, answered = await passed(HOST, BEARER, ("Origin", origin), path=path)
            assert (status, passed_on) == (403, None), origin
            assert "access-control-allow-origin" not in answered


async def test_without_one_valid_token_every_path_but_the_open_ones_is_refused() -> None:
    for authorization in (
        [],
        ["Bearer"],
        ["Bearer "],
        ["Bearer wrong"],
        [f"Basic {TOKEN}"],
        [TOKEN],
        [f"Bearer {TOKEN} x"],
        [f"Bearer {TOKEN}", f"Bearer {TOKEN}"],
        [f"Bearer,{TOKEN}"],
    ):
        for path in ("/mcp", "/sse", "/messages/", "/", "/nowhere", "/health/live/", "/health/../mcp"):
            status, passed_on, answered = await passed(
                HOST, *(("Authorization", one) for one in authorization), path=path
            )
            assert (status, passed_on) == (401, None), (authorization, path)
            challenge = answered["www-authenticate"]
            assert challenge.startswith("Bearer ")
            assert 'resource_metadata="https://memory.example.org/' in challenge
            assert ('error="invalid_token"' in challenge) == bool(authorization)


async def test_the_scheme_is_read_as_the_standard_says() -> None:
    for scheme in ("bearer", "BEARER", "Bearer "):
        assert (await passed(HOST, ("authorization", f"{scheme} {TOKEN}")))[:2] == (200, ANN), scheme


async def test_an_open_path_needs_no_token_and_gets_no_principal() -> None:
    for path in ("/health/live", "/health/ready"):
        assert (await passed(HOST, path=path))[:2] == (200, None), path


async def test_without_login_everybody_is_anyone() -> None:
    assert (await passed(HOST, has_login=False))[:2] == (200, ANYONE)
