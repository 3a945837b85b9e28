"""Who is signed in on the page: links, cookies, and what neither of them opens."""

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from kalito_mcp.access.page_sessions import COOKIE_S, LINK_S
from kalito_mcp.access.tokens import NewToken
from kalito_mcp.domain.access import HOST, Permission, Principal
from kalito_mcp.domain.scope import Limits
from kalito_mcp.errors import AccessDenied
from kalito_mcp.memory import Memory
from kalito_mcp.wiring import open_memory
from tests.empty_database import lay_empty_database
from tests.scripted import START_MS, ScriptedClock

pytestmark = pytest.mark.anyio
SERVER = ["http://127.0.0.1:8765/mcp"]
HOUR_MS = 3_600_000


@pytest.fixture
def clock() -> ScriptedClock:
    return ScriptedClock()


@pytest.fixture
async def memory(tmp_path: Path, clock: ScriptedClock) -> AsyncIterator[Memory]:
    async with open_memory(lay_empty_database(tmp_path / "memory.db"), clock=clock) as opened:
        yield opened


async def entered(memory: Memory) -> NewToken:
    made = await memory.access.pages.enter(await memory.access.pages.link())
    assert made is not None
    return made


async def test_a_link_lets_one_browser_in_as_the_owner_of_the_memory(memory: Memory) -> None:
    ann = memory.of_owner("ann")
    link = await ann.access.pages.link()
    cookie = await memory.access.pages.enter(link)
    assert cookie is not None
    assert cookie.token.expires_at == START_MS + COOKIE_S * 1_000
    assert await memory.access.pages.principal_of(cookie.text) == Principal(cookie.token.id, "ann", Permission.ADMIN)
    assert await memory.access.pages.enter(link) is None


async def test_of_two_clicks_at_once_one_enters(memory: Memory) -> None:
    link = await memory.access.pages.link()
    cookies: list[NewToken | None] = []

    async def click() -> None:
        cookies.append(await memory.access.pages.enter(link))

    async with anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(click)
    assert sorted(one is None for one in cookies) == [False, True]


async def test_a_link_is_over_after_a_minute(memory: Memory, clock: ScriptedClock) -> None:
    early, late = await memory.access.pages.link(), await memory.access.pages.link()
    clock.wall_ms = START_MS + LINK_S * 1_000 - 1
    assert await memory.access.pages.enter(early) is not None
    clock.wall_ms = START_MS + LINK_S * 1_000
    assert await memory.access.pages.enter(late) is None


async def test_links_and_cookies_are_no_tokens_and_tokens_are_neither(memory: Memory) -> None:
    link, cookie = await memory.access.pages.link(), await entered(memory)
    program = await memory.access.create_token(Permission.ADMIN)
    pages = memory.access.pages
    for text in (link, cookie.text):
        for resources in (SERVER, None):
            assert await memory.access.principal_of(text, resources) is None
            assert await memory.access.why_refused(text, resources) == "this token is for the web page alone"
        assert await pages.enter_with(text, SERVER) is None
    for text in (link, program.text, "", "kal_unknown"):
        assert await pages.principal_of(text) is None
    for text in (cookie.text, program.text, "", "kal_unknown"):
        assert await pages.enter(text) is None
    assert await pages.enter(link) is not None, "nothing of this has used it up"


async def test_a_cookie_from_a_token_has_its_rights_and_ends_with_it(memory: Memory, clock: ScriptedClock) -> None:
    limits = Limits("coder", "shop")
    made = await memory.access.create_token(Permission.READ, owner="ann", limits=limits, lifetime_ms=HOUR_MS)
    cookie = await memory.access.pages.enter_with(made.text, SERVER)
    assert cookie is not None
    assert cookie.token.expires_at == made.token.expires_at
    principal = await memory.access.pages.principal_of(cookie.text)
    assert principal == Principal(made.token.id, "ann", Permission.READ, limits, is_signed_in=True)
    clock.wall_ms = START_MS + HOUR_MS
    assert await memory.access.pages.principal_of(cookie.text) is None
    assert await memory.access.pages.enter_with(made.text, SERVER) is None


async def test_a_cookie_is_revoked_with_the_token_that_it_came_of(memory: Memory) -> None:
    made = await memory.access.create_token(Permission.ADMIN)
    cookie = await memory.access.pages.enter_with(made.text, SERVER)
    assert cookie is not None
    assert set(await memory.access.revoke_token(made.token.id)) == {made.token.id, cookie.token.id}
    assert await memory.access.pages.principal_of(cookie.text) is None


async def test_who_is_recognised_otherwise_stays_for_thirty_days_at_most(memory: Memory) -> None:
    ann = Principal("sign_in", "ann", Permission.WRITE)
    longest = START_MS + COOKIE_S * 1_000
    for asked, given in ((None, longest), (START_MS + HOUR_MS, START_MS + HOUR_MS), (longest + 1, longest)):
        cookie = await memory.access.pages.enter_as(ann, expires_at=asked)
        assert cookie.token.expires_at == given
        principal = await memory.access.pages.principal_of(cookie.text)
        assert principal == Principal(cookie.token.id, "ann", Permission.WRITE)


async def test_who_leaves_is_out_and_the_token_stays(memory: Memory) -> None:
    made = await memory.access.create_token(Permission.ADMIN)
    cookie, other = await memory.access.pages.enter_with(made.text, SERVER), await entered(memory)
    assert cookie is not None
    for text in (cookie.text, cookie.text, made.text, "kal_unknown"):
        await memory.access.pages.leave(text)
    assert await memory.access.pages.principal_of(cookie.text) is None
    assert await memory.access.pages.principal_of(other.text) is not None
    assert await memory.access.principal_of(made.text, SERVER) is not None


async def test_a_new_passphrase_signs_browsers_out_and_keeps_tokens(memory: Memory) -> None:
    made = await memory.access.create_token(Permission.ADMIN)
    by_token, by_link = await memory.access.pages.enter_with(made.text, SERVER), await entered(memory)
    foreign = await memory.access.pages.enter_as(Principal("sign_in", "ben"))
    assert by_token is not None
    await memory.access.sign_in.passphrases.set("local", "five words of my own", sign_out=True)
    for cookie in (by_token, by_link):
        assert await memory.access.pages.principal_of(cookie.text) is None
    assert await memory.access.pages.principal_of(foreign.text) is not None
    assert await memory.access.principal_of(made.text, SERVER) is not None


async def test_who_came_and_left_is_in_the_audit_log(memory: Memory) -> None:
    cookie = await entered(memory)
    await memory.access.pages.leave(cookie.text)
    found = [(one.said.action, one.said.principal) for one in reversed(await memory.access.audit())]
    assert found == [("make_link", HOST.id), ("sign_in", cookie.token.id), ("sign_out", cookie.token.id)]


async def test_expired_ones_are_dropped_a_day_later(memory: Memory, clock: ScriptedClock) -> None:
    await memory.access.pages.link()
    clock.wall_ms = START_MS + 25 * HOUR_MS
    await memory.access.pages.link()
    [left] = await memory.access.tokens()
    assert left.created_at == clock.wall_ms
    assert left.is_for_page


async def test_a_limited_memory_lets_nobody_in(memory: Memory) -> None:
    limited = memory.of_owner("ann", Limits(agent="coder"))
    with pytest.raises(AccessDenied):
        await limited.access.pages.link()
