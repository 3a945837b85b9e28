"""Hosts hear of what changed, in both eras of the protocol, whoever changed it."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

import pytest
from mcp import Client, MCPError

from kalito_mcp.domain.records import CreatePinRequest, NewMessage, Role
from kalito_mcp.memory import Memory
from kalito_mcp.server import watcher
from kalito_mcp.server.addresses import graph_uri, stats_uri, watched_at
from kalito_mcp.server.build import KalitoServer, build_server
from kalito_mcp.server.subscriptions import MOST_RESOURCES
from kalito_mcp.wiring import open_memory
from tests.flows.harness import ERAS, said
from tests.flows.subscribers import subscribed

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore:resources/.*subscribe is removed"),  # what older hosts still do
]
TRIP: Final = "trip/to Oslo"
HELLO: Final = {"session_id": TRIP, "messages": said("We fly on May 3.")}
ASKED: Final = [("user", "Where is the kite?"), ("assistant", "The kite is in the attic.")]


@pytest.fixture
def server(database: Path) -> KalitoServer:
    return build_server(lambda: open_memory(database))


async def test_a_host_hears_of_what_its_own_calls_change(server: KalitoServer, era: str) -> None:
    wanted = [stats_uri(TRIP), graph_uri(TRIP), "memory://sessions", "memory://profile"]
    async with subscribed(server, era, wanted, to_list=True) as (client, heard):
        await client.call_tool("record_messages", HELLO)
        await heard.all_of(stats_uri(TRIP), graph_uri(TRIP), "memory://sessions", "list")
        await client.call_tool("create_pin", {"session_id": TRIP, "content": "Flies kites.", "scope": "person"})
        await heard.all_of(stats_uri(TRIP), "memory://profile")


async def test_a_host_hears_of_finalizing_and_of_feedback(server: KalitoServer, era: str) -> None:
    wanted = [graph_uri(TRIP), "memory://agent", "memory://snapshots", "memory://snapshots/oslo"]
    async with subscribed(server, era, wanted) as (client, heard):
        messages = [{"role": role, "text": text} for role, text in ASKED]
        await client.call_tool("record_messages", {"session_id": TRIP, "messages": messages})
        await client.call_tool("record_feedback", {"target_id": "msg_2", "label": "up"})
        await heard.all_of(graph_uri(TRIP))
        await client.call_tool("finalize_session", {"session_id": TRIP, "checkpoint_name": "oslo"})
        await heard.all_of(*wanted)


async def test_a_host_hears_of_an_edited_and_of_an_erased_record(server: KalitoServer, era: str) -> None:
    wanted = ["memory://records/msg_1", "memory://records/msg_1/history"]
    async with subscribed(server, era, wanted) as (client, heard):
        await client.call_tool("record_messages", HELLO)
        await heard.all_of(*wanted)
        changes = {"text": "We fly on May 4."}
        await client.call_tool("update_memory", {"record_id": "msg_1", "changes": changes, "expected_revision": 1})
        await heard.all_of(*wanted)
        await client.call_tool("forget", {"record_ids": ["msg_1"], "purge": True, "confirmed": True})
        await heard.all_of(*wanted)


async def test_a_call_that_changes_nothing_is_not_notified(server: KalitoServer, era: str) -> None:
    async with subscribed(server, era, [stats_uri(TRIP), "memory://sessions"]) as (client, heard):
        await client.call_tool("record_messages", HELLO)
        await heard.all_of(stats_uri(TRIP), "memory://sessions")
        await (await server.opened.memory()).settled()
        await client.call_tool("record_messages", {**HELLO, "session_id": "other"})
        await heard.all_of("memory://sessions")
        await client.call_tool("finalize_session", {"session_id": TRIP, "dry_run": True})
        await client.call_tool("record_messages", {**HELLO, "session_id": "another"})
        await heard.all_of("memory://sessions")
        assert stats_uri(TRIP) not in heard.uris


async def test_a_host_that_unsubscribes_hears_nothing_more(server: KalitoServer) -> None:
    async with subscribed(server, "legacy", [stats_uri(TRIP), "memory://sessions"]) as (client, heard):
        await client.call_tool("record_messages", HELLO)
        await heard.all_of(stats_uri(TRIP), "memory://sessions")
        await client.session.unsubscribe_resource(stats_uri(TRIP))
        await client.call_tool("record_messages", {**HELLO, "messages": said("More.")})
        await heard.all_of("memory://sessions")
        assert stats_uri(TRIP) not in heard.uris


async def test_an_address_is_notified_as_the_host_wrote_it(server: KalitoServer, era: str) -> None:
    written = "memory://sessions/trip%2fto%20%4fslo/stats"
    async with subscribed(server, era, [written]) as (client, heard):
        await client.call_tool("record_messages", HELLO)
        await heard.all_of(written)


Change = Callable[[Memory], Awaitable[object]]
FOREIGN: Final[Sequence[tuple[str, Change]]] = [
    (stats_uri("s"), lambda memory: memory.record_messages("s", [NewMessage(Role.USER, "More.")])),
    (graph_uri("s"), lambda memory: memory.record_messages("s", [NewMessage(Role.USER, "Where is the string?")])),
    ("memory://sessions", lambda memory: memory.record_messages("s", [NewMessage(Role.USER, "More.")])),
    ("list", lambda memory: memory.record_messages("new", [NewMessage(Role.USER, "More.")])),
    ("memory://profile", lambda memory: memory.create_pin(CreatePinRequest("s", "Flies kites.", scope="person"))),
    ("memory://agent", lambda memory: memory.finalize_session("s")),
    ("memory://snapshots", lambda memory: memory.finalize_session("s")),
    ("memory://snapshots/default", lambda memory: memory.finalize_session("s")),
    ("memory://records/msg_1", lambda memory: memory.forget("msg_1")),
    ("memory://records/msg_1/history", lambda memory: memory.forget("msg_1")),
]


@pytest.mark.parametrize(("uri", "change"), FOREIGN, ids=[uri for uri, _ in FOREIGN])
async def test_a_host_hears_of_what_others_change_through_the_same_file(
    server: KalitoServer, database: Path, era: str, uri: str, change: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "LOOK_S", 0.05)
    async with open_memory(database) as elsewhere:
        await elsewhere.record_messages("s", [NewMessage(Role(role), text) for role, text in ASKED])
        await elsewhere.settled()
        async with subscribed(server, era, [] if uri == "list" else [uri], to_list=uri == "list") as (_, heard):
            await change(elsewhere)
            await heard.all_of(uri)


async def test_a_host_hears_of_others_also_if_one_before_it_asked_for_nothing_that_changes(
    server: KalitoServer, database: Path
) -> None:
    async with (
        subscribed(server, ERAS[-1], ["memory://none"]) as (_, nothing),
        subscribed(server, ERAS[-1], ["memory://sessions"]) as (_, heard),
        open_memory(database) as other,
    ):
        await other.record_messages("s", [NewMessage(Role.USER, "A kite.")])
        await heard.all_of("memory://sessions")
        assert nothing.uris == []


async def test_a_subscription_to_too_many_resources_is_refused_in_words(server: KalitoServer) -> None:
    uris = [f"memory://records/msg_{number}" for number in range(MOST_RESOURCES + 1)]
    async with Client(server, mode="2026-07-28") as client:
        with pytest.raises(MCPError, match="more than 1,000 resources in one subscription; subscribe to fewer"):
            async with client.listen(resource_subscriptions=uris):
                pass


async def test_the_address_that_is_announced_can_be_read(server: KalitoServer) -> None:
    async with Client(server) as client:
        await client.call_tool("record_messages", HELLO)
        stats = await client.read_resource(stats_uri(TRIP))
    assert '"total_messages":1' in stats.contents[0].text  # type: ignore[union-attr]


async def test_every_resource_that_is_listed_can_be_watched(server: KalitoServer) -> None:
    async with Client(server) as client:
        listed = [str(one.uri) for one in (await client.list_resources()).resources]
        listed += [one.uri_template for one in (await client.list_resource_templates()).resource_templates]
    assert len(listed) == 10
    assert [uri for uri in listed if watched_at(uri) is None] == []
