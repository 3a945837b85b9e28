"""A small memory with an invented example: Nora, her dog Biscuit, a clock that shows the tide, and an allotment."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import anyio

from kalito_mcp import CreatePinRequest, NewMessage, Role
from kalito_mcp.domain.digest import Digest
from kalito_mcp.domain.memory_records import Editor, EditorType
from kalito_mcp.domain.records import Reach
from kalito_mcp.domain.spaces import Role as SpaceRole
from kalito_mcp.memory import Memory
from kalito_mcp.wiring import open_memory
from tests.scripted import ScriptedClock

CLOCK: Final = "/home/nora/code/tide-clock"
ALLOTMENT: Final = "/home/nora/allotment"
_NORA: Final = Editor(EditorType.HUMAN, "page")
_DAY_S: Final = 86_400
_TALKS: Final = (
    # project, session, host, days after the one before, and what was said in turn
    (
        CLOCK,
        "tide-station",
        "claude-code",
        0,
        "The tide clock takes its data from the harbour office, once every six hours.",
        "Then each answer is kept for six hours, and the clock still runs when the office does not answer.",
        "Yes. And always use metres, never feet.",
        "Metres everywhere, in the code and on the dial.",
    ),
    (
        None,
        "biscuit",
        "claude-desktop",
        2,
        "Biscuit is my dog, a beagle of five. He is allergic to chicken.",
        "Noted: no chicken for Biscuit.",
        "His vet is Dr Okafor in Mill Lane. The next vaccination is due in May.",
        "I will remind you of Dr Okafor in May.",
    ),
    (
        ALLOTMENT,
        "beds",
        "cursor",
        3,
        "I planted broad beans in bed 2 and garlic in bed 3 today.",
        "Beans in bed 2, garlic in bed 3. Both want the fleece while the nights are cold.",
        "The fleece is in the shed. I water on Tuesdays and Fridays.",
    ),
    (
        CLOCK,
        "launch",
        "codex",
        3,
        "We launch the tide clock on 14 March, and Ada cuts the ribbon.",
        "Launch on 14 March with Ada. The press text has to be with the harbour office a week before.",
        "I wrote it. It is in docs/press.md.",
    ),
    (
        CLOCK,
        "dial",
        "claude-code",
        4,
        "Make the dial teal, and the hand for high water a little longer.",
        "The dial is teal, #0f766e, and the hand for high water is 4 mm longer.",
        "Good. The numbers can be larger, my mother reads it without glasses.",
        "They are 18 points now.",
    ),
    (None, "walk", "claude-desktop", 2, "What may Biscuit eat on the walk?"),
)


def fill(database: Path) -> Mapping[str, str]:
    """Fill an empty database. What is in it, by the names of parameters and fields."""
    return anyio.run(_fill, database)


async def _fill(database: Path) -> Mapping[str, str]:
    days = sum(talk[3] for talk in _TALKS)
    clock = ScriptedClock(wall_ms=time.time_ns() // 1_000_000 - (days * _DAY_S + 7_200) * 1_000)
    async with open_memory(database, clock=clock) as memory:
        for project, session, host, days_later, *texts in _TALKS:
            clock.advance(days_later * _DAY_S)
            place = await memory.in_project(project)
            for number, text in enumerate(texts):
                said = NewMessage((Role.USER, Role.ASSISTANT)[number % 2], text)
                await place.record_messages(session, [said], client=host)
                clock.advance(90)
            await memory.settled()
        return {**await _known(memory, clock), **await _shared(memory), **await _given(memory, clock)}


async def _known(memory: Memory, clock: ScriptedClock) -> Mapping[str, str]:
    """What is pinned, replaced, in doubt, open, corrected and forgotten."""
    clock_project, allotment = await memory.in_project(CLOCK), await memory.in_project(ALLOTMENT)

    async def pin(place: Memory, text: str, session: str, scope: Reach, *replaces: str) -> str:
        clock.advance(60)
        made = await place.create_pin(
            CreatePinRequest(session, text, scope=scope, is_confirmed=True, replaces=replaces, client="claude-code")
        )
        return made.id

    await pin(memory, "Always write to me in British English.", "biscuit", Reach.PERSON)
    await pin(memory, "Biscuit, my beagle, is allergic to chicken.", "biscuit", Reach.PERSON)
    await pin(clock_project, "Lengths are in metres, never in feet.", "tide-station", Reach.PROJECT)
    before = await pin(clock_project, "The tide clock is launched on 14 March.", "launch", Reach.PROJECT)
    launch = await pin(clock_project, "The tide clock is launched on 21 March.", "dial", Reach.PROJECT, before)
    other = await pin(allotment, "The garlic is in bed 3.", "beds", Reach.PROJECT)
    await pin(allotment, "The garlic is in bed 4.", "beds", Reach.PROJECT)
    kept = await clock_project.keep_digest(
        "dial",
        Digest(
            decided=("The dial is teal, #0f766e.",),
            learned=("Nora's mother reads the clock without glasses.",),
            done=("The numbers of the dial have 18 points.",),
            open=("Ask the harbour office for a key.", "Send the press text a week before the launch."),
        ),
    )
    await allotment.keep_digest("beds", Digest(done=("Beans and garlic are planted.",), open=("Buy more fleece.",)))
    note = (await memory.remember("note", {"text": "Ada's birthday is on 3 June."}))[0]
    clock.advance(300)
    right = await memory.update_memory(
        note.id, {"text": "Ada's birthday is on 4 June."}, expected_revision=note.revision, editor=_NORA
    )
    await memory.remember("task", {"text": "Call Dr Okafor about the vaccination.", "due_date": "2027-05-03"})
    lost = (await memory.remember("note", {"text": "The old shed has the number 1234."}))[0]
    await memory.forget(lost.id, editor=_NORA)
    return {
        "record_id": right.id,
        "forgotten": lost.id,
        "launch": launch,
        "other": other,
        "point": kept.pins[-1],
    }


async def _shared(memory: Memory) -> Mapping[str, str]:
    """A note of Ben, in the space of those who have an allotment."""
    await memory.spaces.create("allotments")
    for user, role in (("local", SpaceRole.CURATOR), ("ben", SpaceRole.WRITER)):
        await memory.spaces.set_member("allotments", user, role)
    ben = memory.of_owner("ben")
    [note] = await ben.remember("note", {"text": "The water is turned off on 1 November."})
    copy, _ = await ben.spaces.share(note.id)
    return {"copy": copy.id}


async def _given(memory: Memory, clock: ScriptedClock) -> Mapping[str, str]:
    """What assistants were given: a context and a search."""
    clock.advance(30)
    await (await memory.in_project(CLOCK)).search_memory("When is the launch?", client="codex")
    clock.advance(30)
    await memory.build_context("walk", 700, query="What may Biscuit eat on the walk?", client="claude-desktop")
    await memory.settled()
    entries = await memory.given.recent()
    _, said = await memory.conversations.messages("biscuit", first_seq=1, last_seq=1)
    return {
        "entry_id": str(entries[0].id),
        "session_id": "dial",
        "message": said[0].record_id,
    }
