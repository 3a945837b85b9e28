"""resources/list shows the sessions page by page, and says what may be kept of its answers."""

from pathlib import Path

import pytest
from mcp import MCPError
from mcp.types import INVALID_PARAMS, ResourceTemplateReference

from kalito_mcp.domain.records import CreatePinRequest, NewMessage, Role
from kalito_mcp.domain.watching import Watched, WatchedKind
from tests.flows.harness import Harness, said, served, stats_uri

pytestmark = pytest.mark.anyio


async def pages_of(h: Harness) -> list[list[str]]:
    """The addresses on every page of resources/list."""
    pages, cursor = [], None
    while True:
        page = await h.client.list_resources(cursor=cursor, cache_mode="bypass")
        pages.append([str(one.uri) for one in page.resources])
        cursor = page.next_cursor
        if cursor is None:
            return pages


async def record(h: Harness, *session_ids: str) -> None:
    memory = await h.server.opened.memory()
    for session_id in session_ids:
        await memory.record_messages(session_id, [NewMessage(Role.USER, "x")])


async def test_the_sessions_follow_the_first_page_newest_first(database: Path, era: str) -> None:
    async with served(database, era) as h:
        [always, none] = await pages_of(h)
        assert (len(always), none) == (4, [])
        await record(h, "a", "b/c d", "a")
        assert await pages_of(h) == [always, [stats_uri("b/c d"), stats_uri("a")]]
        assert (await h.resource(stats_uri("b/c d")))["total_messages"] == 1


async def test_a_page_has_a_hundred_sessions_and_a_write_moves_none(database: Path, era: str) -> None:
    async with served(database, era) as h:
        names = [f"s{number}" for number in range(201)]
        await record(h, *names)
        first = await h.client.list_resources(cursor="sessions")
        assert [str(one.uri) for one in first.resources] == [stats_uri(one) for one in names[:100:-1]]
        await record(h, "s0", "new")
        second = await h.client.list_resources(cursor=first.next_cursor)
        third = await h.client.list_resources(cursor=second.next_cursor)
        rest = [str(one.uri) for one in (*second.resources, *third.resources)]
        assert rest == [stats_uri(one) for one in names[100::-1]]
        assert third.next_cursor is None


async def test_a_session_of_which_all_is_forgotten_is_in_no_list_until_it_is_brought_back(
    database: Path, era: str
) -> None:
    async with served(database, era) as h:
        memory = await h.server.opened.memory()
        await record(h, "kept", "forgotten")
        pin = await memory.create_pin(CreatePinRequest("pinned", "We sail on Monday."))
        recorded = await memory.record_messages("pinned", [NewMessage(Role.USER, "Nothing else.")])
        version = await memory.changes.versions([Watched(WatchedKind.SESSION_LIST)])

        async def listed() -> list[list[str]]:
            [_, page] = await pages_of(h)
            found = await h.resource("memory://sessions")
            completed = await h.client.complete(
                ResourceTemplateReference(uri="memory://sessions/{session_id}/stats"),
                {"name": "session_id", "value": ""},
            )
            return [page, [one["session_id"] for one in found["sessions"]], list(completed.completion.values)]

        await memory.forget("msg_2")
        await memory.forget(recorded.message_ids[0])
        names = ["pinned", "kept"]
        assert await listed() == [[stats_uri(one) for one in names], names, names]
        assert await memory.changes.versions([Watched(WatchedKind.SESSION_LIST)]) != version
        await memory.restore("msg_2")
        assert [sorted(one) for one in await listed()][1] == ["forgotten", "kept", "pinned"]
        await memory.forget(pin.id)
        assert [sorted(one) for one in await listed()][2] == ["forgotten", "kept"]


@pytest.mark.parametrize("cursor", ["2", "sessions/", "/s", "session/s", "memory://sessions", "sessions/nobody"])
async def test_a_wrong_cursor_is_refused_in_words(database: Path, era: str, cursor: str) -> None:
    async with served(database, era) as h:
        with pytest.raises(MCPError, match="list again without a cursor") as caught:
            await h.client.list_resources(cursor=cursor)
        assert caught.value.error.code == INVALID_PARAMS


async def test_lists_of_one_page_refuse_any_cursor(database: Path, era: str) -> None:
    async with served(database, era) as h:
        for listed in (h.client.list_tools, h.client.list_prompts, h.client.list_resource_templates):
            with pytest.raises(MCPError, match="has one page and no cursor"):
                await listed(cursor="sessions")


async def test_only_what_depends_on_nobody_may_be_shared(database: Path) -> None:
    async with served(database, "auto") as h:
        await record(h, "s")
        client = h.client
        hour = 3_600_000
        discovered = await client.session.discover()
        assert (discovered.cache_scope, discovered.ttl_ms) == ("public", hour)
        for listed in (client.list_tools, client.list_prompts, client.list_resource_templates, client.list_resources):
            page = await listed()
            assert (page.cache_scope, page.ttl_ms) == ("public", hour)
        for private in (
            await client.list_resources(cursor="sessions"),
            await client.read_resource("memory://sessions"),
        ):
            assert (private.cache_scope, private.ttl_ms) == ("private", 0)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_what_hosts_can_subscribe_to_is_said_at_once(database: Path, mode: str) -> None:
    async with served(database, mode) as h:
        resources = h.client.server_capabilities.resources
        assert resources is not None
        assert (resources.subscribe, resources.list_changed) == (True, True)


async def test_ids_of_records_and_snapshots_are_completed(database: Path, era: str) -> None:
    async with served(database, era) as h:
        noted = await h.facts("remember", type="note", text="The key hangs in the shed.")
        await h.facts("record_messages", session_id="s", messages=said("x"))
        await h.facts("finalize_session", session_id="s", checkpoint_name="oslo")
        for template, name, begun, found in (
            ("memory://records/{record_id}", "record_id", "document_", noted["record_ids"]),
            ("memory://records/{record_id}/history", "record_id", "msg_", []),
            ("memory://snapshots/{snapshot_id}", "snapshot_id", "os", ["oslo"]),
        ):
            reference = ResourceTemplateReference(type="ref/resource", uri=template)
            completed = await h.client.complete(reference, {"name": name, "value": begun})
            assert completed.completion.values == found
