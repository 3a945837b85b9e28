"""`kalito_mcp.testing`: a memory without a file does what one with a file does."""

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Final

import pytest

from kalito_mcp import CreatePinRequest, Memory, NewMessage, Role, SearchRequest, open_memory
from kalito_mcp.domain.archive import ArchiveEntry, Selection
from kalito_mcp.domain.records import PinType, RecordType
from kalito_mcp.errors import Conflict, InvalidInput, RevisionConflict
from kalito_mcp.exchange.archive import restore_archive, write_archive_file
from kalito_mcp.testing import InMemoryStore, open_in_memory
from tests.exchange.filled import faults, fill
from tests.scripted import START_MS, CountedIds, ScriptedClock
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
            "records": [(await memory.records.get(one)).to_dict() for one in ("msg_4", pin.id, note.id)],
            "sessions": [one.to_dict() for one in await memory.conversations.recent()],
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


NUMBERED = {"agent": "agents", "project": "projects", "session": "sessions", "graph": "graphs"}
NUMBERED |= {"from": "graph_nodes", "to": "graph_nodes"}
OF_A_STORE: Final = {
    **{kind: {"hash"} for kind in ("records", "memory_edits")},
    **{kind: {"hash", "revision", "removed_revision"} for kind in ("graphs", "graph_nodes", "graph_edges")},
}
"""Fields that are a store's own business: hashes of rows, and which step of a graph changed what."""


def said(archive: Path) -> list[tuple[str, str]]:
    """What the entries of an archive say, whichever numbers their store gives them."""
    entries = [(one["table"], one["row"]) for one in map(json.loads, archive.read_bytes().splitlines()[1:-1])]
    kinds: dict[str, list[Any]] = {}
    for kind, row in entries:
        kinds.setdefault(kind, []).append(row.get("key"))

    def plain(kind: str, name: str, value: Any) -> Any:
        if name in ("attributes", "changes") and value is not None:
            return sorted(json.loads(value).items())
        numbered = kind if name == "key" else NUMBERED.get(name.removesuffix("_key"))
        is_number = numbered not in (None, "records") and value is not None
        return kinds[numbered].index(value) if is_number and numbered else value

    return sorted(
        (kind, repr({name: plain(kind, name, row[name]) for name in row.keys() - OF_A_STORE.get(kind, set())}))
        for kind, row in entries
    )


async def test_an_archive_of_a_file_is_restored_into_memory_and_that_of_the_memory_into_a_file(tmp_path: Path) -> None:
    first, second, third = (tmp_path / f"{name}.jsonl" for name in ("first", "second", "third"))
    async with open_memory(tmp_path / "first.db", clock=ScriptedClock(), ids=CountedIds()) as memory:
        await fill(memory)
        [task] = await memory.remember("task", {"text": "Feed the cat."}, client_key="cat")
        await write_archive_file(memory, first, Selection())
        found = await memory.search_memory(SearchRequest("the night ferry"))
    async with open_in_memory(clock=ScriptedClock(), ids=CountedIds()) as memory:
        await restore_archive(memory, first)
        await write_archive_file(memory, second, Selection())
        assert (await memory.search_memory(SearchRequest("the night ferry"))).hits == found.hits
        [again] = await memory.remember("task", {"text": "Feed the cat."}, client_key="cat")
        assert again.to_dict() == task.to_dict()
        with pytest.raises(Conflict, match="not empty"):
            await restore_archive(memory, first)
    async with open_memory(tmp_path / "third.db") as memory:
        await restore_archive(memory, second)
        await write_archive_file(memory, third, Selection())
    assert said(first) == said(second) == said(third)
    assert faults(tmp_path / "third.db") == []


SELECTIONS: Final = [
    Selection(session="home"),
    Selection(agent="other"),
    Selection(project="boats"),
    Selection(project="personal"),
    Selection(types=frozenset({RecordType.TASK, RecordType.THOUGHT})),
    Selection(agent="default", until_ms=START_MS + 60_000),
]


async def test_a_part_of_a_memory_is_the_same_in_memory_as_in_a_file(tmp_path: Path) -> None:
    whole = tmp_path / "whole.jsonl"
    async with open_memory(tmp_path / "memory.db", clock=ScriptedClock(), ids=CountedIds()) as memory:
        await fill(memory)
        await write_archive_file(memory, whole, Selection())
        async with open_in_memory() as copied:
            await restore_archive(copied, whole)
            for selection in SELECTIONS:
                parts = [tmp_path / "file.jsonl", tmp_path / "memory.jsonl"]
                for one, path in zip((memory, copied), parts, strict=True):
                    await write_archive_file(one, path, selection)
                of_file, of_memory = map(said, parts)
                assert of_file
                assert of_memory == of_file


async def test_what_cannot_be_of_an_archive_is_refused_with_its_line_and_nothing_is_restored() -> None:
    async with open_in_memory() as memory:
        for wrong in ({"type": "dream"}, {"text": None}, {"agent_key": 7}):
            row = {"key": 1, "agent_key": 1, "type": "task", "id": "t", "text": "x", "importance": 0.5, "tokens": 1}
            given = [
                ArchiveEntry("agents", {"key": 1, "id": "default"}, 2),
                ArchiveEntry("records", {**row, "created_at": 1, **wrong}, 3),
            ]
            with pytest.raises(InvalidInput, match="line 3"):
                await memory.archive.restore(given)
        assert not any((await memory.conversations.totals()).values())


def test_a_program_that_does_not_test_loads_nothing_of_it() -> None:
    unused = "import sys, kalito_mcp, kalito_mcp.wiring; sys.exit('kalito_mcp.storage.memory' in sys.modules)"
    subprocess.run([sys.executable, "-c", unused], check=True, timeout=60)


def test_the_example_of_the_guide_runs() -> None:
    [example] = [one for one in re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL) if "testing" in one]
    subprocess.run([sys.executable, "-c", example], check=True, timeout=60)
