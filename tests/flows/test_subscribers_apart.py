"""A subscriber hears of nothing that it cannot read: of no other owner's memory, and of nothing beyond its limits.

Each test waits for a later change that the subscriber does hear of: what it may not hear would have come before.
"""

from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from pathlib import Path
from typing import Final

import anyio
import pytest
from mcp.shared.exceptions import MCPError

from kalito_mcp.domain.access import Permission
from kalito_mcp.domain.records import CreatePinRequest, NewMessage, Role
from kalito_mcp.domain.scope import NO_LIMITS, Limits
from kalito_mcp.domain.watching import Watched, WatchedKind
from kalito_mcp.errors import StorageBusy
from kalito_mcp.memory import Memory
from kalito_mcp.memory.changes import Changes
from kalito_mcp.server import subscriptions, watcher
from kalito_mcp.server.addresses import graph_uri, stats_uri
from kalito_mcp.server.subscriptions import Audience
from kalito_mcp.server.watcher import Watcher
from kalito_mcp.wiring import open_memory
from tests.flows.harness import said
from tests.flows.subscribers import PATIENCE_S, subscribed
from tests.server.web import Web, web
from tests.sign_in.harness import home

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore:resources/.*subscribe is removed"),  # what older hosts still do
]
SHOP: Final = Limits(project="shop")
REDIRECT: Final = "http://localhost:8912/callback"
EVERYTHING: Final = [
    stats_uri("s"),
    graph_uri("s"),
    "memory://sessions",
    "memory://profile",
    "memory://agent",
    "memory://snapshots",
    "memory://records/msg_1",
]


async def say(memory: Memory, session_id: str, *texts: str) -> None:
    await memory.record_messages(session_id, [NewMessage(Role.USER, text) for text in texts])


@pytest.fixture
async def elsewhere(database: Path) -> AsyncIterator[Memory]:
    """The memory as another process has it open."""
    async with open_memory(database) as memory:
        yield memory


@pytest.fixture
def serving(database: Path, elsewhere: Memory) -> Iterator[Web]:
    with web("http", database, login=True) as one:
        yield one


async def token(memory: Memory, owner: str, limits: Limits = NO_LIMITS) -> str:
    return (await memory.access.create_token(Permission.WRITE, owner=owner, limits=limits)).text


async def test_a_subscriber_hears_of_no_other_owner_s_memory(serving: Web, elsewhere: Memory, era: str) -> None:
    ann, ben = elsewhere.of_owner("ann"), elsewhere.of_owner("ben")
    tokens = [await token(elsewhere, owner) for owner in ("ann", "ben")]
    async with (
        subscribed(serving.url, era, EVERYTHING, to_list=True, token=tokens[0]) as (client_of_ann, heard_by_ann),
        subscribed(serving.url, era, EVERYTHING, to_list=True, token=tokens[1]) as (_, heard_by_ben),
    ):
        # From another process, and through this server.
        await say(ann, "s", "Remember: I fly kites.")
        await heard_by_ann.all_of(stats_uri("s"), "memory://sessions", "memory://records/msg_1", "list")
        await client_of_ann.call_tool("record_messages", {"session_id": "t", "messages": said("More.")})
        await heard_by_ann.all_of("memory://sessions", "list")
        await ann.create_pin(CreatePinRequest("s", "Flies kites.", scope="person"))
        await heard_by_ann.all_of("memory://profile")
        await ann.finalize_session("s")
        await heard_by_ann.all_of("memory://snapshots")
        assert heard_by_ben.uris == []
        await say(ben, "s", "Hello.")
        await heard_by_ben.all_of(stats_uri("s"), "memory://sessions", "list")
        assert "memory://records/msg_1" not in heard_by_ben.uris


async def test_a_subscriber_with_limits_hears_of_nothing_beyond_them(serving: Web, elsewhere: Memory, era: str) -> None:
    ann = elsewhere.of_owner("ann")
    shop, garden = await ann.in_project("shop"), await ann.in_project("garden")
    limited = await token(elsewhere, "ann", SHOP)
    watched = [*EVERYTHING, stats_uri("garden"), stats_uri("shop")]
    async with subscribed(serving.url, era, watched, to_list=True, token=limited) as (_, heard):
        await say(garden, "garden", "Where are the beans?")
        await garden.create_pin(CreatePinRequest("garden", "The beans grow in the shade.", scope="project"))
        await garden.finalize_session("garden")
        await say(shop, "shop", "We open at nine.")
        await heard.all_of(stats_uri("shop"), "memory://sessions", "list", forget=False)
        assert set(heard.uris) == {stats_uri("shop"), "memory://sessions", "list"}
        # What is the person's is within the limits, whichever project it was said in.
        await say(garden, "garden 2", "Hello.")
        await garden.create_pin(CreatePinRequest("garden 2", "Flies kites.", scope="person"))
        await heard.all_of("memory://profile")


async def test_a_program_that_forgets_its_streams_leaves_the_others_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriptions, "MOST_OF_ONE", 2)
    async with home(tmp_path) as at:
        forgetful, other = [await token(at.memory, "ann") for _ in range(2)]
        async with subscribed(at.url, "2026-07-28", EVERYTHING, token=forgetful):
            async with subscribed(at.url, "2026-07-28", EVERYTHING, token=forgetful) as (client, _):
                with pytest.raises(MCPError, match="2 open subscriptions; close some"):
                    async with client.listen(resource_subscriptions=EVERYTHING):
                        pass
                async with subscribed(at.url, "2026-07-28", EVERYTHING, token=other):
                    pass
            async with subscribed(at.url, "2026-07-28", EVERYTHING, token=forgetful):
                pass


async def test_an_audience_that_cannot_be_read_now_keeps_nothing_from_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, era: str
) -> None:
    sessions, read, failures = ["memory://sessions"], Watcher._as_seen_by, set[str]()

    async def as_seen_by(self: Watcher, audience: Audience, watched: Collection[Watched]) -> Mapping[Watched, int]:
        if audience.owner in failures:
            raise StorageBusy("another program holds the database")
        return await read(self, audience, watched)

    monkeypatch.setattr(Watcher, "_as_seen_by", as_seen_by)
    async with (
        home(tmp_path) as at,
        subscribed(at.url, era, sessions, token=await token(at.memory, "ann")) as (_, heard_by_ann),
        subscribed(at.url, era, sessions, token=await token(at.memory, "ben")) as (_, heard_by_ben),
    ):
        failures.add("ben")
        await say(at.memory.of_owner("ben"), "s", "Hello.")
        await say(at.memory.of_owner("ann"), "s", "Hello.")
        await heard_by_ann.all_of(*sessions)
        assert not heard_by_ben.uris
        failures.clear()
        await heard_by_ben.all_of(*sessions)


async def test_what_changes_while_somebody_subscribes_is_not_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, era: str
) -> None:
    read, asks, goes_on = Changes.revision, anyio.Event(), anyio.Event()
    is_slow = False

    async def revision(memory: Changes) -> int:
        nonlocal is_slow
        if is_slow:
            is_slow = False
            asks.set()
            await goes_on.wait()
        return await read(memory)

    monkeypatch.setattr(Changes, "revision", revision)
    async with (
        home(tmp_path) as at,
        subscribed(at.url, era, ["memory://sessions"], token=await token(at.memory, "ann")),
    ):
        ben, is_slow = at.memory.of_owner("ben"), True
        with anyio.fail_after(PATIENCE_S):
            await asks.wait()
        async with subscribed(at.url, era, ["memory://sessions"], token=await token(at.memory, "ben")) as (_, heard):
            await say(ben, "s", "Hello.")
            await ben.settled()  # so that nothing else changes after it
            goes_on.set()
            await heard.all_of("memory://sessions")


async def test_nobody_hears_of_what_changed_while_nobody_was_subscribed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, era: str
) -> None:
    monkeypatch.setattr(watcher, "LOOK_S", 0.05)
    sessions = ["memory://sessions"]
    async with home(tmp_path) as at:
        ann, of_ann = at.memory.of_owner("ann"), await token(at.memory, "ann")
        async with subscribed(at.url, era, sessions, token=of_ann):
            pass
        await anyio.sleep(0.5)  # it looks, and finds nobody
        await say(ann, "s", "Hello.")
        await ann.settled()
        await anyio.sleep(0.5)
        async with subscribed(at.url, era, sessions, token=of_ann) as (_, heard):
            await anyio.sleep(0.5)
            assert heard.uris == []


async def let_in(memory: Memory, owner: str, url: str) -> tuple[str, str]:
    """Let an OAuth client in to read at the URL. Its access token, and the id of the consent."""
    client = await memory.access.sign_in.clients.register("Kite", [REDIRECT], address="127.0.0.1")
    handle = await memory.access.sign_in.consents.begin(
        client,
        redirect_uri=REDIRECT,
        is_redirect_explicit=True,
        challenge="x" * 43,
        permission=Permission.READ,
        resource=url,
        state=None,
        address="127.0.0.1",
    )
    _, cookie = await memory.access.sign_in.consents.bind(handle, None)
    answer = await memory.access.sign_in.consents.allow(handle, cookie, owner=owner, permission=Permission.READ)
    issued = await memory.access.sign_in.consents.redeem(client.id, answer.code or "")
    assert issued is not None
    assert answer.grant is not None
    return issued.access.text, answer.grant.id


async def test_a_subscription_ends_with_its_token_or_its_consent(serving: Web, elsewhere: Memory, era: str) -> None:
    ann = elsewhere.of_owner("ann")
    made = await elsewhere.access.create_token(Permission.READ, owner="ann")
    consented, consent = await let_in(elsewhere, "ann", serving.url)
    lasting = await token(elsewhere, "ann")
    sessions = ["memory://sessions"]
    async with (
        subscribed(serving.url, era, sessions, token=made.text) as (_, heard),
        subscribed(serving.url, era, sessions, token=consented) as (_, heard_by_client),
        subscribed(serving.url, era, sessions, token=lasting) as (_, heard_by_others),
    ):
        await say(ann, "s", "Hello.")
        for one in (heard, heard_by_client, heard_by_others):
            await one.all_of(*sessions)
        for ended in (made.token.id, consent):
            await elsewhere.access.revoke_token(ended)
        for one in (heard, heard_by_client):
            if era != "legacy":
                await one.all_of("ended")
        await say(ann, "t", "Hello again.")
        await heard_by_others.all_of(*sessions)
        assert heard.uris == heard_by_client.uris == []


async def test_a_subscription_to_nothing_of_the_memory_ends_with_its_token_too(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        made = await at.memory.access.create_token(Permission.READ, owner="ann")
        async with subscribed(at.url, "2026-07-28", [], token=made.text) as (_, heard):
            await at.memory.access.revoke_token(made.token.id)
            await heard.all_of("ended")


async def test_what_lies_beyond_the_limits_has_no_version(elsewhere: Memory) -> None:
    ann = elsewhere.of_owner("ann")
    await say(await ann.in_project("garden"), "garden", "Where are the beans?")
    await say(await ann.in_project("shop"), "shop", "We open at nine.")
    await ann.record_messages("other", [NewMessage(Role.USER, "x")], agent_id="writer")
    await ann.settled()
    kinds = (WatchedKind.SESSION, WatchedKind.SESSION_GRAPH)
    asked = [Watched(kind, name) for kind in kinds for name in ("garden", "shop", "other")]
    asked += [Watched(WatchedKind.RECORD, f"msg_{number}") for number in (1, 2, 3)]

    async def seen(memory: Memory) -> list[str]:
        return [f"{one.kind} {one.id}" for one, version in (await memory.changes.versions(asked)).items() if version]

    assert len(await seen(ann)) == len(asked)
    assert await seen(ann.of_owner("ann", SHOP)) == [
        "session shop", "session other", "session_graph shop", "session_graph other", "record msg_2", "record msg_3",
    ]  # fmt: skip
    assert await seen(ann.of_owner("ann", Limits(agent="writer"))) == [
        "session other", "session_graph other", "record msg_3",
    ]  # fmt: skip
    assert await seen(elsewhere.of_owner("ben")) == []
    limited = ann.of_owner("ann", SHOP)
    assert [one.id for one in await limited.conversations.begun_before(limit=10)] == ["other", "shop"]
    assert await ann.changes.versions([Watched(WatchedKind.SESSION_LIST)]) != await limited.changes.versions(
        [Watched(WatchedKind.SESSION_LIST)]
    )
