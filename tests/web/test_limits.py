"""How often who may call."""

import tracemalloc

import pytest
from starlette.types import Message, Receive, Scope, Send

from kalito_mcp.access.policy import HttpPolicy
from kalito_mcp.domain.access import Permission, Principal
from kalito_mcp.errors import InvalidInput
from kalito_mcp.web.guard import PRINCIPAL_KEY, Guard, RequiredPermissions
from kalito_mcp.web.limits import Buckets, RateLimits

pytestmark = pytest.mark.anyio
POLICY = HttpPolicy(
    calls_per_minute=5, writes_per_minute=3, refusals_per_minute=2, proxies=("10.0.0.0/8", "2001:db8::1")
)
TOKENS = {"ann": Principal("tok_ann", "ann", Permission.WRITE), "ben": Principal("tok_ben", "ben", Permission.WRITE)}


class Clock:
    def __init__(self) -> None:
        self.s = 100.0

    def __call__(self) -> float:
        return self.s


def scope(
    token: str | None = None,
    *,
    path: str = "/mcp",
    method: str = "POST",
    client: str | None = "192.0.2.1",
    forwarded: tuple[str, ...] = (),
) -> Scope:
    headers = [(b"host", b"127.0.0.1"), *((b"x-forwarded-for", one.encode()) for one in forwarded)]
    if token is not None:
        headers.append((b"authorization", f"Bearer {token}".encode()))
    at = None if client is None else (client, 5000)
    return {"type": "http", "method": method, "path": path, "headers": headers, "client": at}


class Server:
    """The guard in front of an app that answers 200, at a time that stands still."""

    def __init__(self, *, has_login: bool = True) -> None:
        self.clock = Clock()
        self.limits = RateLimits(POLICY, now_s=self.clock)

        async def authenticate(token: str) -> Principal | None:
            return TOKENS.get(token)

        self._guard = Guard(
            self._app,
            POLICY,
            authenticate=authenticate if has_login else None,
            anyone=Principal("anyone", permission=Permission.ADMIN),
            limits=self.limits,
            is_write=lambda asked: asked["path"] == "/api/memory/pins",
        )

    async def _app(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def status(self, asked: Scope) -> int:
        return (await self.answer(asked))[0]

    async def answer(self, asked: Scope) -> tuple[int, dict[str, str], bytes]:
        sent: list[Message] = []

        async def receive() -> Message:
            raise AssertionError("nothing is read")

        async def send(message: Message) -> None:
            sent.append(message)

        await self._guard(asked, receive, send)
        headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return sent[0]["status"], headers, b"".join(one.get("body", b"") for one in sent[1:])


async def test_a_token_has_its_calls_a_minute_and_no_other_token_pays_for_it() -> None:
    server = Server()
    assert [await server.status(scope("ann")) for _ in range(6)] == [*[200] * 5, 429]
    assert await server.status(scope("ben")) == 200
    server.clock.s += 12
    assert [await server.status(scope("ann")) for _ in range(2)] == [200, 429]


async def test_a_refusal_says_in_words_and_in_seconds_how_long_to_wait() -> None:
    server = Server()
    for _ in range(5):
        await server.status(scope("ann"))
    status, headers, body = await server.answer(scope("ann"))
    assert (status, headers["retry-after"]) == (429, "12")
    assert b"wait 12 s" in body
    server.clock.s += int(headers["retry-after"])
    assert await server.status(scope("ann")) == 200


async def test_who_has_no_valid_token_is_limited_by_address_and_others_go_on() -> None:
    server = Server()
    assert [await server.status(scope("wrong")) for _ in range(3)] == [401, 401, 429]
    assert await server.status(scope(None)) == 429
    assert await server.status(scope("wrong", client="192.0.2.2")) == 401
    assert await server.status(scope("ann")) == 200  # from the same address


async def test_open_paths_are_limited_by_address() -> None:
    server = Server()
    asked = scope(path="/health/live", method="GET")
    assert [await server.status(asked) for _ in range(6)] == [*[200] * 5, 429]
    assert await server.status(scope(path="/health/live", method="GET", client="192.0.2.9")) == 200


async def test_writes_over_rest_have_a_limit_of_their_own() -> None:
    server = Server()
    asked = [scope("ann", path="/api/memory/pins") for _ in range(4)]
    assert [await server.status(one) for one in asked] == [200, 200, 200, 429]
    assert await server.status(scope("ann", path="/api/records", method="GET")) == 200


async def test_writes_over_mcp_have_a_limit_of_their_own() -> None:
    clock = Clock()
    limits = RateLimits(POLICY, now_s=clock)
    reached: list[bytes] = []

    async def app(_scope: Scope, receive: Receive, _send: Send) -> None:
        reached.append((await receive())["body"])

    needs = RequiredPermissions(app, lambda *_: None, is_write=lambda message: message == "write", limits=limits)
    statuses: list[int] = []
    for body in (b'"write"', b'"write"', b'"read"', b'"write"', b'"write"', b'"read"'):

        async def receive(body: bytes = body) -> Message:
            return {"type": "http.request", "body": body}

        async def send(message: Message) -> None:
            statuses.append(message.get("status", 0))

        await needs({**scope("ann"), PRINCIPAL_KEY: TOKENS["ann"]}, receive, send)
    assert reached == [b'"write"', b'"write"', b'"read"', b'"write"', b'"read"']
    assert statuses[0] == 429


async def test_without_login_nobody_is_limited() -> None:
    server = Server(has_login=False)
    assert {await server.status(scope()) for _ in range(50)} == {200}


def test_the_address_is_the_nearest_that_is_no_proxy_of_ours() -> None:
    for asked, address in (
        (scope(), "192.0.2.1"),
        (scope(forwarded=("203.0.113.7",)), "192.0.2.1"),  # from no proxy of ours
        (scope(client="10.1.2.3", forwarded=("203.0.113.7",)), "203.0.113.7"),
        (scope(client="10.1.2.3", forwarded=("6.6.6.6, 203.0.113.7",)), "203.0.113.7"),
        (scope(client="10.1.2.3", forwarded=("6.6.6.6", "203.0.113.7, 10.9.9.9")), "203.0.113.7"),
        (
            scope(client="10.1.2.3", forwarded=("203.0.113.7:4711",)),
            "203.0.113.7",
        ),  # as some proxies of clouds write it
        (scope(client="10.1.2.3", forwarded=("203.0.113.7:4711, 10.9.9.9:80",)), "203.0.113.7"),
        (scope(client="10.1.2.3", forwarded=("[2001:db8:1:2::3]:4711",)), "2001:db8:1:2::/64"),
        (scope(client="10.1.2.3", forwarded=("203.0.113.7:4711:1",)), "unknown"),
        (scope(client="10.1.2.3"), "unknown"),
        (scope(client="10.1.2.3", forwarded=("words",)), "unknown"),
        (scope(client="10.1.2.3", forwarded=("10.9.9.9",)), "10.1.2.3"),
        (scope(client="2001:db8::1", forwarded=("2001:db8:1:2:3::4",)), "2001:db8:1:2::/64"),
        (scope(client="2001:db8:1:2:ffff::9"), "2001:db8:1:2::/64"),
        (scope(client="::ffff:192.0.2.1"), "192.0.2.1"),
        (scope(client=None), "unknown"),
    ):
        assert RateLimits(POLICY).network(asked) == address


def test_a_proxy_that_is_no_address_is_refused_in_words() -> None:
    for proxy in ("proxy.lan", "10.0.0.0/33", "", "10.0.0.1/8"):
        with pytest.raises(InvalidInput, match="proxies"):
            HttpPolicy(proxies=(proxy,))


@pytest.mark.campaign
def test_a_hundred_thousand_addresses_take_bounded_memory() -> None:
    buckets = Buckets(60)
    tracemalloc.start()
    for number in range(100_000):
        buckets.take(f"{number}")
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(buckets) == 10_000
    assert grown < 5_000_000


def test_a_bucket_is_never_fuller_than_a_minutes_calls_and_a_clock_may_stand_still() -> None:
    clock = Clock()
    buckets = Buckets(3, now_s=clock)
    clock.s += 1e9
    assert [buckets.take("x") > 0 for _ in range(5)] == [False, False, False, True, True]
