"""Hosts hear of changed sessions, in both eras of the protocol."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from kalito_mcp.server.build import KalitoServer, build_server
from kalito_mcp.server.subscriptions import graph_uri, stats_uri
from kalito_mcp.wiring import open_memory

pytestmark = pytest.mark.anyio
HELLO = {"session_id": "trip/to Oslo", "messages": [{"role": "user", "text": "We fly on May 3."}]}


@pytest.fixture
def server(tmp_path: Path) -> KalitoServer:
    return build_server(lambda: open_memory(tmp_path / "memory.db"))


async def test_a_listening_host_hears_of_the_session_it_asked_for(server: KalitoServer) -> None:
    wanted = [stats_uri("trip/to Oslo")]
    async with Client(server, mode="2026-07-28") as client, client.listen(resource_subscriptions=wanted) as events:
        await client.call_tool("record_messages", HELLO)
        with anyio.fail_after(5):
            event = await anext(aiter(events))
    assert event.uri == "memory://sessions/trip%2Fto%20Oslo/stats"


@pytest.mark.filterwarnings("ignore:resources/.*subscribe is removed")  # what older hosts still do
async def test_a_subscribed_older_host_is_notified_until_it_unsubscribes(server: KalitoServer) -> None:
    told: list[Any] = []
    heard = anyio.Event()

    async def on_message(message: Any) -> None:
        told.append(message)
        heard.set()

    async with Client(server, mode="legacy", message_handler=on_message) as client:
        assert client.server_capabilities.resources is not None
        assert client.server_capabilities.resources.subscribe is True
        await client.session.subscribe_resource("memory://sessions")
        await client.call_tool("record_messages", HELLO)
        with anyio.fail_after(5):
            await heard.wait()
        assert [str(one.params.uri) for one in told] == ["memory://sessions"]
        await client.session.unsubscribe_resource("memory://sessions")
        await client.call_tool("record_messages", HELLO)
        await client.call_tool("build_context", {"session_id": "trip/to Oslo"})
        assert len(told) == 1


async def test_a_listening_host_hears_of_finalizing_and_feedback_but_of_no_dry_run(
    server: KalitoServer,
) -> None:
    graph, agent, snapshots = graph_uri("trip/to Oslo"), "memory://agent", "memory://snapshots"
    wanted = [graph, agent, snapshots]
    async with Client(server, mode="2026-07-28") as client, client.listen(resource_subscriptions=wanted) as events:
        await client.call_tool("record_messages", HELLO)
        await client.call_tool("finalize_session", {"session_id": "trip/to Oslo", "dry_run": True})
        await client.call_tool("finalize_session", {"session_id": "trip/to Oslo"})
        with anyio.fail_after(5):
            assert [(await anext(aiter(events))).uri for _ in wanted] == wanted
        await client.call_tool("record_feedback", {"target_id": "msg_1", "label": "up"})
        with anyio.fail_after(5):
            assert (await anext(aiter(events))).uri == agent
        for uri in wanted:
            assert (await client.read_resource(uri)).contents


async def test_the_address_that_is_announced_can_be_read(server: KalitoServer) -> None:
    async with Client(server) as client:
        await client.call_tool("record_messages", HELLO)
        stats = await client.read_resource(stats_uri("trip/to Oslo"))
    assert '"total_messages":1' in stats.contents[0].text  # type: ignore[union-attr]
