"""The words of one turn are one record, whichever ways they come and in any order; what is said again is another."""

import itertools
from pathlib import Path
from typing import Any

import pytest

from kalito_mcp.capture.spool import Spool
from kalito_mcp.domain.imports import IMPORTED_BY
from kalito_mcp.domain.records import NewMessage, Role
from kalito_mcp.runtime.database_address import LocalFiles
from kalito_mcp.safety.redaction import usable_handle
from tests.flows.harness import Harness, served
from tests.scripted import START_MS, ScriptedClock

pytestmark = pytest.mark.anyio
SHOP = "/home/ann/shop"
BUCKET = "The invoices go to the bucket acme-invoices."
NOTED = "Noted: acme-invoices."


class Desk:
    """A host with hooks, whose assistant also calls tools, and whose transcripts are imported."""

    def __init__(self, h: Harness, session: str = "s1", host: str = "codex") -> None:
        self.h = h
        self.session = session
        self.host = host
        self._reports = itertools.count()

    async def hook(self, event: str, *, at: int | None = None, **payload: Any) -> None:
        """An event: at once, or `at` a moment, and taken in later."""
        base = {"session_id": self.session, "cwd": SHOP}
        report = {"host": self.host, "event": event, "payload": base | payload, "id": f"r{next(self._reports)}"}
        late = {} if at is None else {"at_ms": at}
        await self.h.server.capture.take(report | late, is_late=at is not None)

    async def prompt(self, text: str, **payload: Any) -> None:
        await self.hook("UserPromptSubmit", prompt=text, **payload)

    async def reply(self, text: str, **payload: Any) -> None:
        await self.hook("Stop", last_assistant_message=text, **payload)

    async def tool(self, *texts: str, **arguments: Any) -> dict[str, Any]:
        """The assistant records a turn, or several."""
        roles = itertools.cycle(("user", "assistant"))
        said = [{"role": role, "text": text} for role, text in zip(roles, texts, strict=False)]
        return await self.h.facts("record_messages", messages=said, **arguments)

    async def imported(self, *texts: str, at: int = START_MS) -> None:
        roles = itertools.cycle((Role.USER, Role.ASSISTANT))
        turns = [
            NewMessage(role, text, created_at=at, client_key=f"codex:{number}")
            for number, (role, text) in enumerate(zip(roles, texts, strict=False))
        ]
        memory = await (await self.h.server.opened.memory()).in_project(SHOP)
        await memory.record_messages(self.session, turns, client=IMPORTED_BY)

    async def said(self) -> list[str]:
        memory = await (await self.h.server.opened.memory()).in_project(None)
        session = await memory.conversations.get(self.session)
        assert session is not None
        return [turn.text async for turns in memory.conversations.turns(session) for turn in turns]


async def test_what_a_tool_records_between_two_hooks_is_stored_once_however_often_it_is_said(
    database: Path, era: str
) -> None:
    async with served(database, era, default_session="s1", project=SHOP) as h:
        desk = Desk(h)
        for _ in range(3):
            await desk.prompt("continue")
            assert (await desk.tool("continue", "Done."))["recorded"] == 1
            await desk.reply("Done.")
        # This time the assistant calls no tool, and says the same.
        await desk.prompt("continue")
        await desk.reply("Done.")
        assert await desk.said() == ["continue", "Done."] * 4


async def test_a_tool_that_records_turns_when_they_are_over_adds_only_what_is_new(database: Path, era: str) -> None:
    async with served(database, era, default_session="s1", project=SHOP) as h:
        desk = Desk(h)
        for asked, answered in ((BUCKET, NOTED), ("continue", "One."), ("continue", "Two.")):
            await desk.prompt(asked)
            await desk.reply(answered)
        await desk.prompt("And  now?")
        recorded = await desk.tool(BUCKET, NOTED, "continue", "One.", "continue", "Two.", "And now?", "That is all.")
        assert (recorded["recorded"], recorded["duplicates"]) == (1, 7)
        assert len(set(recorded["message_ids"])) == 8
        # What was never reported is new, although the prompt was made before.
        await desk.tool("continue", "Three.")
        assert (await desk.said())[-2:] == ["continue", "Three."]


async def test_what_a_tool_records_without_a_session_stays_in_the_conversation_of_the_hooks(
    database: Path, era: str
) -> None:
    async with served(database, era, project=SHOP) as h:
        desk = Desk(h)
        await desk.prompt(BUCKET, turn_id="t1")
        assert (await desk.tool(BUCKET, NOTED))["session_id"] == "s1"
        await desk.reply(NOTED, turn_id="t1")
        assert await desk.said() == [BUCKET, NOTED]
        # Other words are another conversation, and so are the same ones elsewhere.
        assert (await desk.tool("Good morning."))["session_id"] != "s1"
        assert (await desk.tool(BUCKET, project="personal"))["session_id"] != "s1"


async def test_hooks_that_come_late_are_recognised_in_what_a_tool_or_an_import_recorded_meanwhile(
    database: Path, era: str
) -> None:
    for way in ("tool", "import"):
        clock = ScriptedClock()
        async with served(database.with_name(f"{way}.db"), era, default_session="s1", project=SHOP, clock=clock) as h:
            desk = Desk(h)
            texts = ["continue", "Done.", "continue", "Done."]
            clock.advance(60)
            await (desk.tool if way == "tool" else desk.imported)(*texts)
            clock.advance(60)
            for number, text in enumerate(texts):
                event = {"prompt": text} if number % 2 == 0 else {"last_assistant_message": text}
                for _ in range(2):  # no server has acknowledged it in time
                    await desk.hook(
                        "Stop" if number % 2 else "UserPromptSubmit",
                        at=START_MS + number * 10_000,
                        turn_id=f"t{number // 2}",
                        **event,
                    )
            assert await desk.said() == texts, way
            # Said again after that.
            await desk.prompt("continue", at=START_MS + 90_000, turn_id="t9")
            await desk.reply("Done.", at=START_MS + 95_000, turn_id="t9")
            assert await desk.said() == [*texts, "continue", "Done."], way


async def test_a_hook_that_a_host_runs_twice_tells_of_one_turn(database: Path, era: str) -> None:
    async with served(database, era, project=SHOP) as h:
        for host, named in (("codex", "turn_id"), ("gemini", "timestamp")):
            desk = Desk(h, session=host, host=host)
            prompt, reply = ("UserPromptSubmit", "Stop") if host == "codex" else ("BeforeAgent", "AfterAgent")
            for turn in ("t1", "t2"):
                for _ in range(2):
                    await desk.hook(prompt, prompt="Run the tests again.", **{named: turn})
                for _ in range(2):
                    said = (
                        {"last_assistant_message": "All green."}
                        if host == "codex"
                        else {"prompt_response": "All green."}
                    )
                    await desk.hook(reply, **said, **{named: f"{turn} "})
            assert await desk.said() == ["Run the tests again.", "All green."] * 2


async def test_a_prompt_with_a_secret_is_the_same_with_and_without_it(database: Path, era: str) -> None:
    async with served(database, era, project=SHOP) as h:
        desk = Desk(h)
        await desk.prompt("My key is ghp_16C7e42F292c6912E7710c838347Ae178B4a.", turn_id="t1")
        [kept] = await desk.said()
        await desk.prompt(kept, at=START_MS, turn_id="t1")
        assert await desk.said() == [kept]


async def test_without_names_for_turns_what_is_said_again_is_another_turn(database: Path, era: str) -> None:
    async with served(database, era, project=SHOP) as h:
        desk = Desk(h)
        for _ in range(3):
            await desk.prompt("continue")
        assert await desk.said() == ["continue"] * 3


@pytest.mark.parametrize("name", ["s" * 201, "a\nb", "s" * 195, "ghp_16C7e42F292c6912E7710c838347Ae178B4a"])
async def test_a_session_name_that_cannot_be_kept_is_hashed_as_an_import_does(
    database: Path, era: str, name: str
) -> None:
    async with served(database, era, project=SHOP) as h:
        desk = Desk(h, session=name)
        await desk.prompt("My zebra is called Otto.")
        await desk.reply("A fine name.")
        memory = await (await h.server.opened.memory()).in_project(None)
        [session] = await memory.conversations.recent()
        assert session.id == usable_handle(name, "codex") != name
        # It goes on under another name when it is over.
        await memory.finalize_session(session.id)
        await desk.prompt("And my lion?")
        assert {one.id for one in await memory.conversations.recent()} == {session.id, f"{session.id}~2"}


async def test_what_is_purged_is_erased_from_events_that_wait(database: Path, era: str) -> None:
    spool = Spool(LocalFiles(database).spool)
    async with served(database, era, project=SHOP) as h:
        desk = Desk(h)
        await desk.prompt("My zebra is called Otto.")
        await desk.reply("A fine name.")
        for prompt in ("My zebra is called Otto.", "Something else."):
            spool.put({"payload": {"prompt": prompt}}, at_ms=1, event_id=str(len(prompt)))
        [record] = (await h.facts("search_memory", query="zebra", session_id="s1"))["hits"]
        memory = await (await h.server.opened.memory()).in_project(None)
        await memory.purge([record["record_id"]])
        assert [one.event["payload"]["prompt"] for one in spool.take()] == ["Something else."]
