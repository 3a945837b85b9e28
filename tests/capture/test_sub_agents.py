"""What hooks report of a sub-agent is not its person's words, and what the person types meanwhile is."""

from pathlib import Path
from typing import Any

import pytest

from kalito_mcp.capture.capturer import Capture
from kalito_mcp.memory import Memory
from kalito_mcp.wiring import open_memory
from tests.empty_database import lay_empty_database

pytestmark = pytest.mark.anyio
Event = tuple[str, dict[str, Any]]
AT_MS = 1_700_000_000_000
SIGNED = {"transcript_path": "/home/ann/t.jsonl"}
START, STOP = ("SubagentStart", {"agent_id": "a1"}), ("SubagentStop", {"agent_id": "a1"})
OTHER_START, OTHER_STOP = ("SubagentStart", {"agent_id": "a2"}), ("SubagentStop", {"agent_id": "a2"})


def asked(text: str, **more: Any) -> Event:
    return "UserPromptSubmit", {"prompt": text, **more}


FIRST, MORE = asked("Count the masts.", **SIGNED), asked("And the sails.", **SIGNED)
TASK = asked("TASK: count.")
PLAIN_FIRST, PLAIN_MORE = asked("Count the masts."), asked("And the sails.")
SAID = [("user", "Count the masts."), ("user", "And the sails.")]
NAMED = ("SubagentStart", {"agent_id": "a1", "task": "TASK: count."})
SAID_AND_TASK = [*SAID, ("system", "TASK: count.")]
IN_DOUBT = [SAID[0], ("system", "TASK: count."), SAID[1]]


@pytest.mark.parametrize(
    ("events", "kept"),
    [
        pytest.param([FIRST, START, TASK, STOP, MORE], SAID, id="one sub-agent"),
        pytest.param([FIRST, START, OTHER_START, TASK, TASK, STOP, TASK, OTHER_STOP, MORE], SAID, id="two at once"),
        pytest.param([FIRST, START, TASK, MORE, STOP], SAID, id="a prompt while it works"),
        pytest.param([FIRST, START, MORE, TASK, STOP], SAID, id="a prompt before its task"),
        pytest.param(
            [FIRST, START, TASK, ("Stop", {"last_assistant_message": "x"}), MORE],
            [*SAID[:1], ("assistant", "x"), SAID[1]],
            id="first reply",
        ),
        pytest.param([PLAIN_FIRST, START, TASK, STOP, PLAIN_MORE], IN_DOUBT, id="no transcript"),
        pytest.param([PLAIN_FIRST, START, TASK, PLAIN_MORE], IN_DOUBT, id="it never ends"),
        pytest.param(
            [PLAIN_FIRST, START, asked("TASK: count.", agent_id="a1"), PLAIN_MORE], SAID, id="it names itself"
        ),
        pytest.param([PLAIN_FIRST, NAMED, PLAIN_MORE, TASK, STOP], SAID_AND_TASK, id="its start names the task"),
        pytest.param([PLAIN_FIRST, START, STOP, PLAIN_MORE], SAID, id="it had no task"),
        pytest.param([PLAIN_FIRST, START, ("SessionStart", {}), PLAIN_MORE], SAID, id="the session starts again"),
        pytest.param([PLAIN_FIRST, STOP, PLAIN_MORE], SAID, id="its start was not reported"),
    ],
)
@pytest.mark.parametrize("is_late", [False, True])
async def test_whose_a_prompt_is_while_a_sub_agent_works(
    tmp_path: Path, events: list[Event], kept: list[tuple[str, str]], is_late: bool
) -> None:
    async with open_memory(lay_empty_database(tmp_path / "memory.db")) as memory:
        await reported(memory, tmp_path, events, is_late=is_late)
        assert await said(memory) == kept


@pytest.mark.parametrize(("first", "more", "kept"), [(FIRST, MORE, SAID), (PLAIN_FIRST, PLAIN_MORE, IN_DOUBT)])
async def test_a_task_that_is_reported_again_after_its_sub_agent_ended_is_still_a_task(
    tmp_path: Path, first: Event, more: Event, kept: list[tuple[str, str]]
) -> None:
    async with open_memory(lay_empty_database(tmp_path / "memory.db")) as memory:
        await reported(memory, tmp_path, [first, START, TASK, STOP, more], again=2)
        assert await said(memory) == kept


async def reported(
    memory: Memory, folder: Path, events: list[Event], *, is_late: bool = False, again: int | None = None
) -> None:
    """Let hooks of VS Code report events, each to another server; the event of number `again` comes late once more."""

    async def opened() -> Memory:
        return memory

    async def report(number: int, *, is_late: bool) -> None:
        name, payload = events[number]
        told = {"event": name, "payload": {"session_id": "s1", **payload}, "id": f"r{number}", "at_ms": AT_MS + number}
        taking = Capture(opened)
        taking.share_in(conversations)
        await taking.take({"host": "vscode", **told}, is_late=is_late)

    conversations = folder / "conversations"
    conversations.mkdir()
    for number in range(len(events)):
        await report(number, is_late=is_late)
    if again is not None:
        await report(again, is_late=True)


async def said(memory: Memory) -> list[tuple[str, str]]:
    session = await memory.conversations.get("s1")
    assert session is not None
    return [(str(turn.role), turn.text) async for turns in memory.conversations.turns(session) for turn in turns]
