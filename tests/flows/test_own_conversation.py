"""What an assistant still sees of its own conversation is no hit, and comes back once it was compacted away."""

from pathlib import Path
from typing import Any

import pytest

from kalito_mcp.capture.capturer import Capture
from kalito_mcp.config.settings import Settings
from kalito_mcp.contexts.injector import Injection
from kalito_mcp.memory.hooks import Hooks
from kalito_mcp.projects import ProjectPolicy
from tests.flows.harness import Harness, served

pytestmark = pytest.mark.anyio
STAGING = "The staging database is at db.stage.example, port 6543."
ASKED = "Which port does the staging database have?"
SHOP = "/home/ann/shop"


async def hook(h: Harness, event: str, session: str, host: str = "codex", **payload: Any) -> None:
    report = {"host": host, "event": event, "payload": {"session_id": session, "cwd": SHOP, **payload}}
    await h.server.capture.take(report)


async def turn(h: Harness, session: str, number: int, prompt: str, reply: str | None = None) -> None:
    await hook(h, "UserPromptSubmit", session, prompt=prompt, turn_id=f"{session}-{number}")
    if reply is not None:
        await hook(h, "Stop", session, last_assistant_message=reply, turn_id=f"{session}-{number}")


async def hits(h: Harness, query: str = ASKED, **arguments: Any) -> list[str]:
    return [hit["text"] for hit in (await h.facts("search_memory", query=query, **arguments))["hits"]]


async def test_a_prompt_is_no_hit_of_the_search_that_it_asks_for(database: Path, era: str) -> None:
    async with served(database, era, default_session="now", project=SHOP) as h:
        await turn(h, "before", 1, STAGING, "Noted.")
        await turn(h, "now", 1, ASKED)
        await h.settled()
        assert await hits(h) == [STAGING]
        for named in ({}, {"session_id": "before"}):
            context = await h.call("build_context", query=ASKED, format="structured", **named)
            matching = (context.structured_content or {})["relevant_messages"]
            assert "now" not in {one["session_id"] for one in matching}


@pytest.mark.parametrize("named", [{"default_session": "now"}, {}], ids=["named by its host", "not named"])
async def test_a_search_of_the_own_conversation_finds_all_of_it_except_the_prompt_that_has_no_answer(
    database: Path, era: str, named: dict[str, str]
) -> None:
    async with served(database, era, project=SHOP, **named) as h:
        await turn(h, "now", 1, STAGING, "Noted.")
        await turn(h, "now", 2, ASKED)
        await h.settled()
        assert await hits(h, session_id="now") == [STAGING]
        nothing = await h.facts("search_memory", query="walnut cake", session_id="now")
        assert "send its session_id" not in nothing["note"]
        await turn(h, "now", 2, ASKED, "It has port 6543.")
        await h.settled()
        assert ASKED in await hits(h, session_id="now")


async def test_the_conversation_of_a_host_that_does_not_name_it_is_the_one_that_waits_for_its_answer(
    database: Path, era: str
) -> None:
    async with served(database, era, project=SHOP) as h:
        await turn(h, "before", 1, STAGING, "Noted.")
        await turn(h, "now", 1, "We need the port of the staging database.", "Let us see.")
        await turn(h, "now", 2, ASKED)
        await h.settled()
        assert await hits(h) == [STAGING]
        # Of several that wait, what each was told last.
        await turn(h, "beside", 1, "The port of the staging database, please.")
        await h.settled()
        assert sorted(await hits(h)) == [STAGING, "We need the port of the staging database."]


async def test_what_was_said_earlier_comes_back_after_a_compaction_and_what_came_later_does_not(
    database: Path, era: str, tmp_path: Path
) -> None:
    async with served(database, era, default_session="now", project=SHOP) as h:
        h.server.capture.share_in(tmp_path)
        await turn(h, "now", 1, STAGING, "Noted.")
        await h.settled()
        assert await hits(h) == []
        await hook(h, "PreCompact", "now", trigger="auto")
        await turn(h, "now", 2, ASKED)
        await h.settled()
        assert await hits(h) == [STAGING]
        # A host resumes the compacted conversation, which goes on in another session here.
        await hook(h, "SessionEnd", "now", host="claude-code", reason="other")
        await turn(h, "now", 3, "Back again: which port did the staging database have?")
        h.server.capture.forget()
        await turn(h, "now", 4, ASKED)
        await h.settled()
        assert await hits(h) == [STAGING]


async def test_a_prompt_that_is_said_while_the_end_of_its_conversation_is_taken_in_is_no_hit(
    database: Path, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    inject = Hooks.inject

    async def inject_late(memory: Hooks, *arguments: Any, **named: Any) -> Injection:
        monkeypatch.undo()
        another_server = Capture(h.server.opened.memory)
        for event in ("SessionEnd", "SessionStart"):
            payload = {"session_id": "now", "cwd": SHOP, "reason": "other"}
            report = {"host": "claude-code", "event": event, "payload": payload}
            await another_server.take(report, is_late=True)
        return await inject(memory, *arguments, **named)

    async with served(database, era, default_session="now", project=SHOP) as h:
        await turn(h, "now", 1, STAGING, "Noted.")
        monkeypatch.setattr(Hooks, "inject", inject_late)
        await turn(h, "now", 2, ASKED)
        await h.settled()
        assert [one["session_id"] for one in (await h.resource("memory://sessions"))["sessions"]] == ["now~2", "now"]
        assert await hits(h) == []


async def test_what_was_kept_on_purpose_is_found_in_its_own_conversation(database: Path, era: str) -> None:
    async with served(database, era, default_session="now", project=SHOP) as h:
        await turn(h, "now", 1, "Write down that the staging database has port 6543.")
        await h.facts("remember", type="task", text="Move the staging database to another port.", session_id="now")
        await h.facts("create_pin", content="The staging database: port 6543.", scope="project", session_id="now")
        await h.settled()
        kept = ["Move the staging database to another port.", "The staging database: port 6543."]
        assert sorted(await hits(h)) == kept
        nothing = await h.facts("search_memory", query="write down")
        assert "What you still see of this conversation was left out" in nothing["note"]


async def test_without_hooks_nothing_is_left_out(database: Path, era: str) -> None:
    async with served(database, era, default_session="without", project=SHOP) as h:
        await h.facts("record_messages", messages=[{"role": "user", "text": STAGING}])
        assert await hits(h) == [STAGING]


async def test_the_conversation_is_the_one_of_which_the_host_s_own_hook_told_last(database: Path, era: str) -> None:
    settings = Settings(projects=ProjectPolicy())
    async with served(database, era, default_session="cleared", settings=settings) as h:
        h.server.opened.goes_on_in("now")
        recorded = await h.facts("record_messages", messages=[{"role": "user", "text": STAGING}])
        assert recorded["session_id"] == "now"
