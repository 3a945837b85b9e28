"""Every tool says the same in text and in structured content, whatever comes of a call.

Hosts show their model one of the two.
"""

import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.types import CallToolResult, ElicitResult

from kalito_mcp.config.settings import Settings
from kalito_mcp.server.build import build_server
from kalito_mcp.summaries.window import SummaryWindowPolicy
from kalito_mcp.wiring import open_memory
from tests.flows.harness import asked, assert_states, said, text_of

pytestmark = pytest.mark.anyio

TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3
LONG = "\n\n".join(f"# Part {number}\n\n" + f"The well of farm {number} is deep. " * 40 for number in range(1, 31))

_FACT = re.compile(r"[^\W_][\w'.:+@-]*[\w]|\w")
"""A word, an id, a number or a moment."""

_OURS = frozenset(
    """Recorded Not Removed Pinned Made The Session Dry Sleep Snapshot Remembered Updated Forgot Erased Rewritten Could
    Nothing Restored More Try So""".split()
)
"""The words with capital letters that are the tools' own, at the beginnings of their sentences."""


@dataclass
class Outcomes:
    """A connected client that checks each result. `seen` has the tools with the outcomes of their calls."""

    client: Client
    person: list[ElicitResult]
    seen: dict[str, list[str]] = field(default_factory=dict)

    async def call(self, outcome: str, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call the tool and compare both channels. Returns the structured content."""
        result = await self.client.call_tool(tool, arguments)
        assert isinstance(result, CallToolResult)
        text, structured = text_of(result), result.structured_content
        self.seen.setdefault(tool, []).append(outcome)
        assert not result.is_error, f"{tool}, {outcome}: {text}"
        if structured is None:
            assert (tool, arguments.get("format", "text")) == ("build_context", "text")
            return {"text": text}
        assert_states(text, structured)
        assert_is_structured(text, structured, f"{tool}, {outcome}")
        return structured

    async def refused(self, tool: str, **arguments: Any) -> None:
        """A refusal is text alone: hosts show it to their model whatever they do with other results."""
        result = await self.client.call_tool(tool, arguments)
        assert isinstance(result, CallToolResult)
        assert (result.is_error, result.structured_content) == (True, None)
        assert text_of(result)


def assert_is_structured(text: str, structured: dict[str, Any], where: str) -> None:
    """Check that every id, number, moment and name of the text is in the structured content, or is the length of one of
    its lists."""
    if text.startswith("{"):
        assert json.loads(text) == structured
        return
    written = " ".join(leaves(structured))
    known = set(_FACT.findall(written)) | {str(length) for length in lengths(structured)}
    facts = {one for one in _FACT.findall(text) if any(letter.isupper() or letter in "_0123456789" for letter in one)}
    missing = {one for one in facts - known - _OURS if one not in written}
    assert not missing, f"{where}: {sorted(missing)} of the text are not in {structured}\n{text}"


def leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, one in value.items():
            yield str(name)
            yield from leaves(one)
    elif isinstance(value, list):
        for one in value:
            yield from leaves(one)
    else:
        yield str(value)


def lengths(value: Any) -> Iterator[int]:
    if isinstance(value, list):
        yield len(value)
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from lengths(one)


@asynccontextmanager
async def outcomes(folder: Path, era: str) -> AsyncIterator[Outcomes]:
    """A server whose user answers what `person` says next."""
    person: list[ElicitResult] = []

    async def answers(_context: Any, _params: Any) -> ElicitResult:
        return person.pop(0)

    settings = Settings(window=SummaryWindowPolicy(threshold=5, is_adaptive=False))
    server = build_server(lambda: open_memory(folder / "memory.db", settings))
    async with Client(server, mode=era, elicitation_callback=answers) as client:
        yield Outcomes(client, person)
        await (await server.opened.memory()).settled()


async def conversations(h: Outcomes, folder: Path) -> None:
    """The outcomes of the tools of conversations."""
    await h.call("new", "record_messages", session_id="s", messages=said("We fly to Oslo on May 3.", "Ann comes too."))
    await h.call("duplicate", "record_messages", session_id="s", messages=said("We fly to Oslo on May 3."))
    await h.call("redacted", "record_messages", session_id="s", messages=said(f"My token is {TOKEN}, keep it."))
    await h.call("new session", "record_messages", messages=said("Hello."))
    project = folder / "Orchard"
    project.mkdir()
    await h.call("project", "record_messages", session_id="p", messages=said("Apples."), project=str(project))
    for number in range(40):
        turn = asked((f"What is the depth of well {number}?", f"{200 + number} centimetres."))
        await h.call("new", "record_messages", session_id="wells", messages=turn)
    await h.call("many", "summarize_session", session_id="wells")
    await h.call("none left", "summarize_session", session_id="wells")
    await h.call("new", "record_messages", session_id="wells", messages=said("One more.", "And another."))
    own = f"Two more lines, and {TOKEN}."
    await h.call("own words", "summarize_session", session_id="wells", summary=own)
    await h.refused("summarize_session", session_id="wells", summary="Nothing is left.")
    await h.call("range", "summarize_session", session_id="s", start_message_id="msg_1", end_message_id="msg_2")
    await h.call("text", "build_context", session_id="s", query="Oslo")
    await h.call("structured", "build_context", session_id="s", query="Oslo", format="structured")


async def graph(h: Outcomes) -> None:
    """The outcomes of feedback and of closing a conversation."""
    ids = []
    for kind in ("boiler", "fridge"):
        for again in ("", " again", " now", " please"):
            turn = asked((f"How do I reset the {kind}{again}?", f"Hold the {kind}'s red button, {len(again)} s."))
            ids += (await h.call("new", "record_messages", session_id="g", messages=turn))["message_ids"]
    await h.call("up", "record_feedback", target_id=ids[1], label="up", note=f"Right. {TOKEN}")
    await h.call("down", "record_feedback", target_id=ids[1].removeprefix("msg_"), label="down")
    await h.refused("record_feedback", target_id="msg_999", label="up")
    await h.call("past answers", "search_memory", query="How do I reset the boiler?")
    await h.call("dry run", "finalize_session", session_id="g", dry_run=True, checkpoint_name="spring")
    await h.call("closed", "finalize_session", session_id="g", checkpoint_name="spring")
    await h.call("closed before", "finalize_session", session_id="g")
    await h.call("without graph", "finalize_session", session_id="s", promote=False, checkpoint=False)
    await h.call("promoted answers", "search_memory", query="How do I reset the boiler?")
    await h.call("goes on", "record_messages", session_id="g", messages=said("Too late."))


async def searches(h: Outcomes) -> None:
    """The outcomes of a search."""
    page = await h.call("a page", "search_memory", query="depth of a well", k=2, explain=True)
    await h.call("next page", "search_memory", query="depth of a well", k=2, explain=True, cursor=page["next_cursor"])
    await h.call("nothing", "search_memory", query="zebra crossing")
    await h.call("nothing with filters", "search_memory", query="well", since="2001", until="2002", tags=["x"])
    await h.call("another project's", "search_memory", query="apples", project="*")
    task = {"status": "pending", "due_date": "2027-01-05", "tags": ["house"]}
    await h.call("task", "remember", type="task", text="Paint the gate.", fields=task)
    await h.call("task", "search_memory", query="paint the gate")
    same = [{"role": "user", "name": "Ben", "text": "The key hangs in the shed."}] * 3
    await h.call("named", "record_messages", session_id="named", messages=same)
    await h.call("said again", "search_memory", query="where does the key hang?", names=["Ben"])
    await h.refused("search_memory", query="well", k=5_000)


async def records(h: Outcomes) -> None:
    """The outcomes of keeping and changing records."""
    await h.call("none", "list_tasks", agent_id="nobody")
    await h.call("some", "list_tasks")
    await h.call("note", "remember", type="note", text=f"The gate code is 4711, not {TOKEN}.")
    await h.call("thought", "remember", type="thought", text="Maybe it rains.")
    long = await h.call("long document", "remember", type="document", text=LONG, fields={"source": "wells.md"})
    assert (long["records"], long["more"]) == (len(long["record_ids"]) + long["more"]["record_ids"], long["more"])
    message = {"session_id": "r", "messages": said("We fly to Bergen on May 4.", "Yes.", "And Ann?", "She comes.")}
    [first, second, *_] = (await h.call("new", "record_messages", **message))["message_ids"]
    await h.call("new", "create_pin", session_id="r", content="Bergen, May 4!", source_message_id=first)
    await h.call("again", "create_pin", session_id="r", content="Ann likes fish.", client_key="fish")
    await h.call("again", "create_pin", session_id="r", content="Ann likes fish.", client_key="fish")
    await h.call("redacted", "create_pin", session_id="r", content=f"A token: {TOKEN}", importance_score=0.25)
    await h.refused("create_pin", session_id="r", content="Ann likes meat.", client_key="fish")
    await h.call("range", "summarize_session", session_id="r")
    revision = {"record_id": first, "expected_revision": 1}
    await h.call("nothing to change", "update_memory", changes={"text": "We fly to Bergen on May 4."}, **revision)
    changed = await h.call("pin and summary", "update_memory", changes={"text": f"To Rome, {TOKEN}."}, **revision)
    assert changed["still_says"][0]["text"] == "Bergen, May 4!"
    assert changed["rewritten"]
    await h.refused("update_memory", changes={"text": "x"}, **revision)
    restored = await h.call("an earlier version", "restore", record_id=first, version=1)
    assert (restored["version"], restored["revision"]) == (1, 3)
    assert "version" not in await h.call("the same version", "restore", record_id=first, version=1)
    assert (await h.call("not forgotten", "restore", record_id=second))["note"] == "Nothing to restore"
    await h.call("plain", "memory_history", record_id=first)
    await h.call("version", "memory_history", record_id=first, version=2)
    await h.call("as of", "memory_history", record_id=first, as_of="2100-01-01")
    twice = await h.call("twice", "forget", record_ids=[first, first])
    assert twice["forgotten"] == [first]
    assert twice["still_says"]
    assert twice["rewritten"]
    await h.call("forgotten", "restore", record_id=first)
    many = await h.call("long document", "forget", record_ids=[long["id"], long["record_ids"][0]])
    assert (len(many["forgotten"]), many["more"]["forgotten"]) == (10, long["records"] - 10)
    await h.call("long document", "restore", record_id=long["id"])
    await h.refused("forget", record_ids=["msg_99999"])


async def purges(h: Outcomes) -> None:
    """The outcomes of a purge."""
    message = {"session_id": "e", "messages": said("The vault is in Leeds.", "Good.", "Where is the vault?")}
    ids = (await h.call("new", "record_messages", **message))["message_ids"]
    await h.call("new", "create_pin", session_id="e", content="Vault: Leeds.", source_message_id=ids[0])
    await h.call("range", "summarize_session", session_id="e")
    for outcome, person in (
        ("declined", ElicitResult(action="decline")),
        ("cancelled", ElicitResult(action="cancel")),
        ("not confirmed", ElicitResult(action="accept", content={"erase": False})),
    ):
        h.person.append(person)
        told = await h.call(outcome, "forget", record_ids=ids[:1], purge=True)
        assert told["note"] == "Nothing was erased: the user did not confirm."
    h.person.append(ElicitResult(action="accept", content={"erase": True}))
    assert (await h.call("purged", "forget", record_ids=[ids[0], ids[0]], purge=True))["erased"][0] == ids[0]
    await h.call("purged before", "forget", record_ids=ids[:1], purge=True)
    again = [*message["messages"][:1], *said("Is it?")]
    told = await h.call("erased before", "record_messages", session_id="e", messages=again)
    assert told["erased_before"] == 1
    document = await h.call("document", "remember", type="document", text=LONG, fields={"source": "deep.md"})
    h.person.append(ElicitResult(action="accept", content={"erase": True}))
    purged = await h.call("long document", "forget", record_ids=[document["id"]], purge=True)
    assert purged["more"]["erased"] > 0
    await h.refused("restore", record_id=ids[0])


async def test_text_and_structured_content_say_the_same_whatever_comes_of_a_call(tmp_path: Path, era: str) -> None:
    async with outcomes(tmp_path, era) as h:
        await conversations(h, tmp_path)
        await graph(h)
        await searches(h)
        await records(h)
        await purges(h)
        listed = {tool.name for tool in (await h.client.list_tools()).tools}
        assert h.seen.keys() == listed
        assert not h.person


async def test_a_purge_that_could_not_reach_everything_says_where_in_both(tmp_path: Path, era: str) -> None:
    async with outcomes(tmp_path, era) as h:
        turn = asked(("Where is the vault?", "It is in Leeds."))
        ids = (await h.call("new", "record_messages", session_id="e", messages=turn))["message_ids"]
        await h.call("closed", "finalize_session", session_id="e", checkpoint_name="kept")
        [snapshot] = (tmp_path / "memory.db.snapshots").rglob("kept*")
        snapshot.write_text("no JSON")
        h.person.append(ElicitResult(action="accept", content={"erase": True}))
        told = await h.call("not reached", "forget", record_ids=ids[:1], purge=True)
        assert told["not_reached"]


@pytest.mark.parametrize(
    ("text", "structured"),
    [
        ("Updated msg_1.", {"record_ids": ["msg_2"]}),
        ("Pinned 3 facts.", {"pin": "fact"}),
        ("It is in Oslo.", {"place": "Rome"}),
        ("On 2026-05-03.", {"day": "2026-05-04"}),
    ],
)
def test_the_comparison_notices_what_only_the_text_says(text: str, structured: dict[str, Any]) -> None:
    with pytest.raises(AssertionError, match="are not in"):
        assert_is_structured(text, structured, "here")
