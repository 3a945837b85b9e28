"""`kalito_mcp.testing`: a memory without a file does what one with a file does."""

import re
import subprocess
import sys
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Final

import pytest

from kalito_mcp import CreatePinRequest, Memory, NewMessage, Role, SearchRequest, open_memory
from kalito_mcp.domain.records import PinType
from kalito_mcp.errors import RevisionConflict
from kalito_mcp.testing import InMemoryStore, open_in_memory
from tests.scripted import CountedIds, ScriptedClock
from tests.stored import content, talk

pytestmark = pytest.mark.anyio
GUIDE: Final = Path(__file__).parents[2] / "docs" / "programs.md"


async def live(opened: AbstractAsyncContextManager[Memory]) -> Mapping[str, Any]:
    """Remember, change, forget and erase much, and say what is left."""
    async with opened as memory:
        await memory.record_messages("trip", talk(12))
        await memory.settled()
        at_sea = await memory.in_project("sea")
        await at_sea.record_messages("sail", [NewMessage(Role.USER, "The boat is called Ingrid.", name="Ann")])
        pin = await memory.create_pin(CreatePinRequest("trip", "Ines is allergic to nuts.", pin_type=PinType.CONCEPT))
        [note] = await memory.remember("note", {"text": "The cat sleeps.", "tags": ["cat"]})
        [task] = await memory.remember("task", {"text": "Feed the cat.", "caused_by": note.id})
        await memory.update_memory(note.id, {"text": "The dog barks."}, expected_revision=1)
        with pytest.raises(RevisionConflict):
            await memory.update_memory(note.id, {"text": "The cow moos."}, expected_revision=1)
        await memory.forget("msg_3")
        await memory.purge(["msg_5", task.id])
        await memory.settled()
        finalized = await memory.finalize_session("trip")
        await memory.settled()
        context = (await memory.build_context("new", 900, query="the boat")).text
        return {
            "context": re.sub(r"kalito-memory \w+", "", context),  # the marker is made of a secret
            "page": await memory.search_memory(SearchRequest("Who is alergic to nuts?", explain=True)),
            "history": await memory.records.history(note.id),
            "records": [await memory.records.get(one) for one in ("msg_4", pin.id, note.id)],
            "sessions": await memory.conversations.recent(),
            "graph": content(await memory.orchestrator().get_session_store("trip")),
            "summaries": finalized.summaries,
        }


async def test_a_memory_without_a_file_does_what_one_with_a_file_does(database: Path) -> None:
    of_file = await live(open_memory(database, clock=ScriptedClock(), ids=CountedIds()))
    in_memory = await live(open_in_memory(clock=ScriptedClock(), ids=CountedIds()))
    assert in_memory == of_file


async def test_each_memory_is_its_own_unless_it_goes_on_with_a_store() -> None:
    store = InMemoryStore()
    async with open_in_memory(store=store) as memory:
        await memory.record_messages("trip", talk(1))
        await memory.finalize_session("trip")
        assert [one.name for one in memory.orchestrator().list_snapshots()] == ["default"]
    async with open_in_memory() as another, open_in_memory(store=store) as again:
        assert [one.id for one in await another.conversations.recent()] == []
        assert [one.id for one in await again.conversations.recent()] == ["trip"]
        assert again.orchestrator().list_snapshots() == []


def test_the_example_of_the_guide_runs() -> None:
    [example] = [one for one in re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL) if "testing" in one]
    subprocess.run([sys.executable, "-c", example], check=True, timeout=60)
