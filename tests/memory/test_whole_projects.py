"""How much is where, and whole projects that move, are left out, and come back."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kalito_mcp.domain.imports import FileRead, SourceRead
from kalito_mcp.domain.records import NewMessage, Role
from kalito_mcp.domain.scope import Limits
from kalito_mcp.domain.sizes import PartSize
from kalito_mcp.errors import AccessDenied, Conflict, InvalidInput
from kalito_mcp.memory import Memory
from kalito_mcp.wiring import open_memory
from tests.empty_database import lay_empty_database
from tests.scripted import START_MS, ScriptedClock

pytestmark = pytest.mark.anyio
BOAT, KITE = "/home/ann/code/boat", "/home/ann/code/kite"


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with open_memory(lay_empty_database(tmp_path / "memory.db"), clock=ScriptedClock()) as opened:
        for project, session in ((BOAT, "sail"), (BOAT, "oars"), (KITE, "wind"), (None, "nuts")):
            place = await opened.in_project(project or "personal")
            await place.record_messages(session, [NewMessage(Role.USER, f"We talk of {session}.")])
        yield opened


async def places(memory: Memory) -> dict[str, str | None]:
    """The project of each session."""
    return {one.id: one.project for one in await memory.conversations.recent()}


async def test_sizes_are_of_each_project_and_agent(memory: Memory) -> None:
    await (await memory.in_project(KITE)).remember("note", {"text": "The tail is red."})
    sizes = {one.project: one for one in await memory.projects.sizes()}
    assert sizes[BOAT] == PartSize("default", BOAT, sessions=2, messages=2, newest_at=START_MS)
    assert (sizes[KITE].sessions, sizes[KITE].records) == (1, 1)
    assert sizes[None].sessions == 1
    limited = memory.of_owner("local", Limits(project=BOAT))
    assert {one.project for one in await limited.projects.sizes()} == {BOAT, None}


async def test_imports_are_named_by_program_without_calls_of_connected_machines(memory: Memory) -> None:
    for source in ("codex", "outbox"):
        await memory.imports.keep_file_read(FileRead(source, "/t/a.jsonl", 10, 7, 9, "f"))
    assert await memory.imports.sources() == [SourceRead("codex", files=1, read_bytes=9, read_at=START_MS)]
    assert await memory.records.vectors() is None
    limited = memory.of_owner("local", Limits(agent="coder"))
    for read in (limited.imports.sources, limited.records.vectors):
        with pytest.raises(AccessDenied):
            await read()


async def test_a_project_moves_into_another_and_exactly_that_comes_back(memory: Memory) -> None:
    boat, kite = await memory.in_project(BOAT), await memory.in_project(KITE)
    [note] = await boat.remember("note", {"text": "The boat is blue."})
    await kite.remember("note", {"text": "The tail is red."})
    moved = await memory.projects.move_all(BOAT, KITE)
    assert (set(moved.sessions), moved.records, moved.left) == ({"sail", "oars"}, (note.id,), ())
    assert set((await places(memory)).values()) == {KITE, None}
    await kite.record_messages("later", [NewMessage(Role.USER, "We talk of knots.")])
    back = await memory.projects.move_all(KITE, BOAT, only=moved)
    assert (set(back.sessions), back.records) == ({"sail", "oars"}, (note.id,))
    assert await places(memory) == {"sail": BOAT, "oars": BOAT, "wind": KITE, "later": KITE, "nuts": None}
    assert (await memory.records.get(note.id)).project == BOAT


async def test_a_document_that_the_other_project_has_stays(memory: Memory) -> None:
    for project, text in ((BOAT, "Blue."), (KITE, "Red.")):
        await (await memory.in_project(project)).remember("document", {"text": text, "source": "colours.md"})
    moved = await memory.projects.move_all(BOAT, KITE)
    assert len(moved.sessions) == 2
    assert moved.records == ()
    assert len(moved.left) == 1


async def test_a_project_may_become_personal(memory: Memory) -> None:
    await memory.projects.move_all(KITE, None)
    assert (await places(memory))["wind"] is None


@pytest.mark.parametrize(("old", "new"), [(BOAT, BOAT), ("/home/ann/code/plane", BOAT)])
async def test_what_cannot_be_moved_is_refused(memory: Memory, old: str, new: str) -> None:
    with pytest.raises(InvalidInput):
        await memory.projects.move_all(old, new)
    with pytest.raises(AccessDenied):
        await memory.of_owner("local", Limits(project=BOAT)).projects.move_all(BOAT, KITE)


async def test_a_folder_is_left_out_until_it_is_included_again(memory: Memory) -> None:
    boat = await memory.in_project(BOAT)
    assert await memory.projects.exclude(BOAT)
    assert not await memory.projects.exclude(BOAT)
    assert memory.projects.excluded() == (BOAT,)
    with pytest.raises(Conflict, match="excluded"):
        await boat.record_messages("sail", [NewMessage(Role.USER, "We talk of storms.")])
    assert await memory.projects.include(BOAT)
    assert not await memory.projects.include(BOAT)
    await boat.record_messages("sail", [NewMessage(Role.USER, "We talk of storms.")])
    with pytest.raises(InvalidInput, match="folder"):
        await memory.projects.exclude("github.com/ann/boat")
