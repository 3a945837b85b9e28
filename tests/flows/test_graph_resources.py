"""The graphs and snapshots as resources, their completions, and unknown names."""

from pathlib import Path
from urllib.parse import quote

import pytest
from mcp.types import INVALID_PARAMS, ResourceTemplateReference

from tests.flows.graph_steps import AGAIN, CAPITAL, LAPTOP, PRINTER, everything, remember
from tests.flows.harness import served

pytestmark = pytest.mark.anyio

SNAPSHOT = ResourceTemplateReference(type="ref/resource", uri="memory://snapshots/{snapshot_id}")
GRAPH = ResourceTemplateReference(type="ref/resource", uri="memory://sessions/{session_id}/graph")
SIDE_FILES = ("-wal", "-shm", ".lock")
WRONG_NAMES = (
    "../x", "a/b", "/etc/passwd", "x" * 101, "x" * 200, "\0", "a\0b", "..", ".", ".hidden", "end.", "C:\\x", "a b",
    " ", "naïve", "%2e%2e%2fx/",
)  # fmt: skip


async def test_a_sessions_graph_is_its_size_and_what_ranks_highest_in_it(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await remember(h, "trip/oslo", PRINTER, CAPITAL, PRINTER)
        graph = await h.resource("memory://sessions/trip%2Foslo/graph")
        assert (graph["session_id"], graph["agent_id"]) == ("trip/oslo", "default")
        assert graph["nodes"] == sum(graph["nodes_by_type"].values())
        assert graph["edges"] == sum(graph["edges_by_type"].values())
        assert (graph["nodes_by_type"]["query"], graph["nodes_by_type"]["answer"]) == (2, 2)
        assert [(one["text"], one["repeat"]) for one in graph["top_queries"]] == [(PRINTER[0], 2.0), (CAPITAL[0], 1.0)]
        assert "Norway" in [one["text"] for one in graph["top_entities"]]


async def test_the_agents_graph_grows_as_sessions_are_finalized(database: Path, era: str) -> None:
    async with served(database, era) as h:
        empty = await h.resource("memory://agent")
        assert (empty["agent_id"], empty["nodes"], empty["top_queries"]) == ("default", 0, [])
        for name in ("a", "b"):
            await remember(h, name, PRINTER)
            await h.facts("finalize_session", session_id=name)
        agent = await h.resource("memory://agent")
        assert [(one["text"], one["repeat"]) for one in agent["top_queries"]] == [(PRINTER[0], 2.0)]
        assert "session_id" not in agent


async def test_snapshots_are_listed_newest_first_and_each_shows_its_content(database: Path, era: str) -> None:
    async with served(database, era) as h:
        assert await h.resource("memory://snapshots") == {"snapshots": []}
        await remember(h, "a", PRINTER)
        await h.facts("finalize_session", session_id="a", checkpoint_name="one")
        await remember(h, "b", LAPTOP)
        await h.facts("finalize_session", session_id="b")
        listed = (await h.resource("memory://snapshots"))["snapshots"]
        assert [one["name"] for one in listed] == ["default", "one"]
        one = await h.resource("memory://snapshots/one")
        assert one | listed[1] == one
        assert [query["text"] for query in one["top_queries"]] == [PRINTER[0]]
        assert (await h.resource("memory://snapshots/default"))["nodes_by_type"]["query"] == 2


async def test_what_another_process_restores_is_found_at_once(database: Path, era: str) -> None:
    async with served(database, era) as one, served(database, era) as other:
        await remember(one, "a", PRINTER)
        await one.facts("finalize_session", session_id="a", checkpoint_name="monday")
        await remember(one, "b", LAPTOP)
        await one.facts("finalize_session", session_id="b")
        memory = await other.server.opened.memory()
        for name, found in (("monday", {PRINTER[0]}), ("default", {PRINTER[0], LAPTOP[0]})):
            await memory.orchestrator().restore_snapshot(name)
            for h in (one, other):
                agent = (await h.server.opened.memory()).orchestrator()
                assert {hit.text for hit in await agent.search(None, AGAIN)} == found


async def test_an_agents_own_snapshot_is_replaced_and_found_whatever_the_agent_is_called(
    database: Path, era: str
) -> None:
    async with served(database, era) as h:
        for name in ("a", "b"):
            await remember(h, name, PRINTER, agent_id="home/office")
            snapshot = (await h.facts("finalize_session", session_id=name))["snapshot"]
        [listed] = (await h.resource("memory://snapshots"))["snapshots"]
        assert listed["name"] == snapshot
        address = f"memory://snapshots/{quote(snapshot, safe='')}"
        assert (await h.resource(address))["name"] == snapshot
        graph = await h.resource(f"{address}/graph")
        assert set(PRINTER) <= {node.get("text") for node in graph["nodes"]}
        assert {edge["to"] for edge in graph["edges"]} <= {node["id"] for node in graph["nodes"]}
        assert not any("embedding" in node for node in graph["nodes"])


async def test_snapshots_and_sessions_are_completed_from_their_beginning(database: Path, era: str) -> None:
    async with served(database, era) as h:
        for name in ("spring", "summer", "autumn"):
            await remember(h, name, PRINTER)
            await h.facts("finalize_session", session_id=name, checkpoint_name=f"{name}-2026")

        async def completed(reference: ResourceTemplateReference, argument: str, value: str) -> list[str]:
            found = (await h.client.complete(reference, {"name": argument, "value": value})).completion
            assert not found.has_more
            return sorted(found.values)

        assert await completed(SNAPSHOT, "snapshot_id", "s") == ["spring-2026", "summer-2026"]
        assert await completed(SNAPSHOT, "snapshot_id", "") == ["autumn-2026", "spring-2026", "summer-2026"]
        assert await completed(SNAPSHOT, "snapshot_id", "../") == []
        assert await completed(GRAPH, "session_id", "s") == ["spring", "summer"]


async def test_a_snapshot_that_is_not_there_is_a_protocol_error_that_names_those_that_are(
    database: Path, era: str
) -> None:
    async with served(database, era) as h:
        error = await h.resource_error("memory://snapshots/nope")
        assert error.error.message == "no snapshot 'nope'; there are: none yet"
        await remember(h, "s", PRINTER)
        await h.facts("finalize_session", session_id="s", checkpoint_name="kept")
        error = await h.resource_error("memory://snapshots/nope")
        assert error.error.message == "no snapshot 'nope'; there are: kept"
        assert (error.error.code, error.error.data) == (INVALID_PARAMS, {"uri": "memory://snapshots/nope"})


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"graph": 5}', "\udc80" * 3, "[" * 100_000])
async def test_a_damaged_snapshot_is_said_so_with_its_address(database: Path, era: str, content: str) -> None:
    async with served(database, era) as h:
        folder = database.with_name("memory.db.snapshots")
        folder.mkdir()
        (folder / "bad.json").write_bytes(content.encode("utf-8", "surrogateescape"))
        error = await h.resource_error("memory://snapshots/bad")
        assert (error.error.code, error.error.data) == (INVALID_PARAMS, {"uri": "memory://snapshots/bad"})
        assert "inside kalito" not in error.error.message
        assert str(folder) not in error.error.message


async def test_a_name_that_no_snapshot_can_have_leads_nowhere(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await remember(h, "s", PRINTER)
        database.with_name("x.json").write_text("{}")
        for name in (*WRONG_NAMES, ""):
            uri = f"memory://snapshots/{quote(name, safe='')}"
            error = await h.resource_error(uri)
            assert (error.error.code, error.error.data) == (INVALID_PARAMS, {"uri": uri}), name


async def test_finalizing_under_a_name_that_leads_out_of_the_folder_changes_nothing(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await remember(h, "s", PRINTER)
        before = await everything(h, "s")
        for name in WRONG_NAMES:
            for dry_run in (True, False):
                refusal = await h.refusal("finalize_session", session_id="s", checkpoint_name=name, dry_run=dry_run)
                assert refusal.startswith("invalid_input: ")
                assert "snapshot name" in refusal or "checkpoint_name is longer than 100" in refusal
        assert await everything(h, "s") == before
        assert {path.name for path in database.parent.iterdir()} <= {f"memory.db{end}" for end in ("", *SIDE_FILES)}


async def test_an_unknown_session_has_no_graph(database: Path, era: str) -> None:
    async with served(database, era) as h:
        for name in ("nobody", "../../etc/passwd", "\0"):
            error = await h.resource_error(f"memory://sessions/{quote(name, safe='')}/graph")
            assert error.error.code == INVALID_PARAMS
            assert error.error.message.startswith("no session ")


WRONG_FEEDBACK = (
    ({}, "invalid_input: target_id is missing"),
    ({"target_id": "msg_2"}, "invalid_input: label is missing"),
    ({"target_id": "msg_2", "label": "maybe"}, "invalid_input: label must be 'up', 'down' or 'retry', not 'maybe'"),
    ({"target_id": "", "label": "up"}, "invalid_input: target_id is empty"),
    ({"target_id": "x" * 201, "label": "up"}, "invalid_input: target_id is longer than 200 characters"),
    ({"target_id": "nothing", "label": "up"}, "record_not_found: 'nothing' is not a question or answer"),
    ({"target_id": "msg_999", "label": "up"}, "record_not_found: 'msg_999' is not a question or answer"),
    ({"target_id": "query_0", "label": "up"}, "record_not_found: 'query_0' is not a question or answer"),
    ({"target_id": "\0", "label": "up"}, "record_not_found: '\\x00' is not a question or answer"),
    ({"target_id": "msg_2", "label": "up", "session_id": "nobody"}, "session_not_found: no session 'nobody'"),
    ({"target_id": "msg_2", "label": "up", "note": " "}, "invalid_input: note contains only white space"),
    ({"target_id": "msg_2", "label": "up", "note": "x" * 4001}, "invalid_input: note is longer than 4000"),
    ({"target_id": "msg_2", "lable": "up"}, "invalid_input: unknown argument 'lable'; did you mean 'label'?"),
)


async def test_feedback_that_cannot_be_is_refused_and_nothing_is_written(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await remember(h, "s", PRINTER)
        before = await everything(h, "s")
        for arguments, refusal in WRONG_FEEDBACK:
            answer = await h.refusal("record_feedback", **arguments)
            assert answer.startswith(refusal)
        assert await everything(h, "s") == before
