"""Resources, their templates and completions, and the prompt, through a client of either era."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from mcp import MCPError
from mcp.types import INTERNAL_ERROR, INVALID_PARAMS, PromptReference, ResourceTemplateReference

from tests.flows.harness import said, served, stats_uri

pytestmark = pytest.mark.anyio

TEMPLATE = ResourceTemplateReference(type="ref/resource", uri="memory://sessions/{session_id}/stats")
UUID = "6513270e-269e-4d37-b2a7-4de452e6b438"
PROMPT = PromptReference(type="ref/prompt", name="resume_session")


async def test_the_sessions_are_listed_by_their_newest_message_with_their_titles(database: Path, era: str) -> None:
    async with served(database, era) as h:
        assert await h.resource("memory://sessions") == {"sessions": [], "shown": 0, "limit": 100}
        for name in ("a", "b", "a"):
            await h.facts("record_messages", session_id=name, messages=[{"role": "user", "text": "x"}])
        listed = await h.resource("memory://sessions")
        assert [(one["session_id"], one["messages"]) for one in listed["sessions"]] == [("a", 2), ("b", 1)]
        old = {"role": "user", "text": "Where is the ferry?", "created_at": "2025-01-02T10:00:00Z"}
        await h.facts("record_messages", session_id=UUID, messages=[old])
        last = (await h.resource("memory://sessions"))["sessions"][-1]
        assert (last["session_id"], last["title"], last["newest_message"][:10]) == (
            UUID,
            "Where is the ferry?",
            "2025-01-02",
        )


async def test_of_many_sessions_a_hundred_are_listed(database: Path, era: str) -> None:
    async with served(database, era) as h:
        for number in range(101):
            await h.facts("record_messages", session_id=f"s{number}", messages=said("x"))
        listed = await h.resource("memory://sessions")
        assert (listed["shown"], listed["limit"], len(listed["sessions"])) == (100, 100, 100)
        assert listed["sessions"][0]["session_id"] == "s100"


STRANGE_IDS = (
    "a/b/c", "with space", "ünï/cøde 🧵", "100%", "a?b#c", "%2F", "..", "../../etc/passwd", "/home/me/project",
    "C:\\project", "a+b&c=d", "{session_id}", "stats", "日本語", "e\u0301", "\u00e9",
)  # fmt: skip


async def test_a_session_is_found_by_any_valid_id(database: Path, era: str) -> None:
    async with served(database, era) as h:
        for session_id in STRANGE_IDS:
            await h.facts("record_messages", session_id=session_id, messages=said("z"))
        for session_id in STRANGE_IDS:
            stats = await h.stats(session_id)
            assert (stats["session_id"], stats["total_messages"], stats["state"]) == (session_id, 1, "OPEN")


async def test_an_unknown_session_is_a_protocol_error_with_its_address(database: Path, era: str) -> None:
    async with served(database, era) as h:
        for session_id in ("nobody", "../../etc/passwd", "\0", "%"):
            error = await h.resource_error(stats_uri(session_id))
            assert error.error.code == INVALID_PARAMS
            assert error.error.message.startswith("no session ")
            assert error.error.data == {"uri": stats_uri(session_id)}


async def test_an_unknown_resource_is_a_protocol_error_with_its_address(database: Path, era: str) -> None:
    async with served(database, era) as h:
        for uri in ("memory://nothing", "memory://sessions/", "memory://sessions/a/b/stats", "file:///x"):
            error = await h.resource_error(uri)
            assert (error.error.code, error.error.data) == (INVALID_PARAMS, {"uri": uri})


async def test_a_session_id_is_completed_from_its_beginning(database: Path, era: str) -> None:
    async with served(database, era) as h:
        for name in ("trip/oslo", "trip/rome", "tax", "100%_"):
            await h.facts("record_messages", session_id=name, messages=said("x"))
        for reference in (TEMPLATE, PROMPT):
            found = (await h.client.complete(reference, {"name": "session_id", "value": "trip/"})).completion
            assert found.values == ["trip/rome", "trip/oslo"]
            assert not found.has_more
        assert (await h.client.complete(TEMPLATE, {"name": "session_id", "value": "1%"})).completion.values == []
        assert (await h.client.complete(TEMPLATE, {"name": "other", "value": "t"})).completion.values == []


async def test_at_most_a_hundred_completions_are_given(database: Path, era: str) -> None:
    async with served(database, era) as h:
        for number in range(101):
            await h.facts("record_messages", session_id=f"s{number}", messages=said("x"))
        found = (await h.client.complete(TEMPLATE, {"name": "session_id", "value": "s"})).completion
        assert (len(found.values), found.has_more) == (100, True)


async def test_the_prompt_shows_where_a_conversation_stopped(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await h.facts("record_messages", session_id="s", messages=said("The tent is in the attic."))
        text = await h.prompt(session_id="s")
        assert "The tent is in the attic." in text
        assert text.endswith("then wait for me.")


async def test_the_prompt_needs_a_session_that_exists(database: Path, era: str) -> None:
    async with served(database, era) as h:
        with pytest.raises(MCPError, match="no session 'nobody'") as caught:
            await h.prompt(session_id="nobody")
        assert caught.value.error.code == INVALID_PARAMS
        with pytest.raises(MCPError, match="session_id is missing"):
            await h.prompt()


async def test_a_database_that_fails_is_said_so_by_resources_completions_and_prompts(database: Path, era: str) -> None:
    async with served(database, era) as h:
        await h.facts("record_messages", session_id="s", messages=said("x"))
        await h.settled()
        with closing(sqlite3.connect(database)) as other:
            other.execute("DROP TABLE sessions")
            other.commit()
        for uri in ("memory://sessions", stats_uri("s")):
            assert (await h.resource_error(uri)).error.code == INTERNAL_ERROR
        with pytest.raises(MCPError) as caught:
            await h.client.complete(TEMPLATE, {"name": "session_id", "value": ""})
        assert caught.value.error.code == INTERNAL_ERROR
        with pytest.raises(MCPError) as caught:
            await h.prompt(session_id="s")
        assert caught.value.error.code == INTERNAL_ERROR
        assert (await h.refusal("build_context", session_id="s")).startswith("storage: ")
