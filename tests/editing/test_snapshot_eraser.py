"""Erased words are removed from the snapshots: by a purge, from one put back later, and from one being written."""

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from anyio import create_task_group, from_thread

from kalito_mcp import Memory, open_memory
from kalito_mcp.domain.erasing import PurgeReport
from kalito_mcp.domain.scope import Scope
from kalito_mcp.editing import snapshot_eraser
from kalito_mcp.editing.snapshot_eraser import SnapshotEraser
from kalito_mcp.graph import top_subgraph
from kalito_mcp.graph.files import read_json
from kalito_mcp.graph.snapshot_folder import SnapshotFolder
from tests.empty_database import lay_empty_database
from tests.scripted import CountedIds, ScriptedClock
from tests.stored import said, texts_of

pytestmark = pytest.mark.anyio
BREAD = ("How do I feed the sourdough?", "With rye flour, once a day.")
TRAM = ("Which tram goes to Quahog harbour?", "Number 12, every ten minutes.")


@pytest.fixture
async def memory(database: Path) -> AsyncIterator[Memory]:
    async with open_memory(lay_empty_database(database), clock=ScriptedClock(), ids=CountedIds()) as opened:
        await opened.record_messages("talk", said(*BREAD, *TRAM))
        await opened.finalize_session("talk")
        yield opened


@pytest.fixture
def folder(database: Path) -> Path:
    return database.with_name("memory.db.snapshots")


async def agents(memory: Memory, kind: str = "query") -> list[str]:
    return list(texts_of(await memory.orchestrator().get_agent_store(), kind))


async def test_a_purge_rewrites_every_snapshot_that_held_it(memory: Memory, folder: Path) -> None:
    await memory.orchestrator().save_snapshot("kept")
    report = await memory.purge(["msg_3"])
    assert {"snapshot default", "snapshot kept"} <= set(report.rewritten)
    assert not report.remaining
    for path in folder.iterdir():
        text = path.read_text(encoding="utf-8")
        assert "Quahog" not in text
        assert BREAD[0] in text
        assert path.stat().st_mode & 0o777 == 0o600
    await memory.orchestrator().restore_snapshot("kept")
    assert await agents(memory) == [BREAD[0]]


async def test_a_snapshot_that_did_not_hold_it_stays_as_it_is(memory: Memory, folder: Path) -> None:
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}
    [number] = (await memory.record_messages("other", said("Hello there."))).message_ids
    assert "snapshot default" not in (await memory.purge([number])).rewritten
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()} == before


async def test_a_file_that_is_not_a_snapshot_is_reported_and_left_alone(memory: Memory, folder: Path) -> None:
    cut = (folder / "default.json").read_text(encoding="utf-8")[:-5]
    (folder / "cut.json").write_text(cut, encoding="utf-8")
    (folder / "default.json.bak").write_text("Quahog", encoding="utf-8")
    report = await memory.purge(["msg_3"])
    cut_json, not_one = f"{folder.name}/cut.json", f"{folder.name}/default.json.bak"
    assert set(report.remaining) == {cut_json, not_one}
    assert report.remaining[not_one].startswith("not a snapshot; delete it if")
    assert report.remaining[cut_json].startswith("it is cut short or not JSON (")
    assert report.remaining[cut_json].endswith("); delete it if it may contain what was erased")
    assert str(folder.parent) not in str(report.to_dict()), "who erases over HTTP does not learn where the server is"
    assert (folder / "cut.json").read_text(encoding="utf-8") == cut


async def test_the_unfinished_file_of_an_interrupted_snapshot_is_removed(memory: Memory, folder: Path) -> None:
    left = folder / ".default.json.ab12cd_x"
    left.write_text("Quahog", encoding="utf-8")
    await memory.purge(["msg_3"])
    assert not left.exists()


async def test_an_older_snapshot_that_is_put_back_does_not_bring_back_what_was_erased(
    memory: Memory, folder: Path, tmp_path: Path
) -> None:
    shutil.copy(folder / "default.json", tmp_path / "old.json")
    await memory.purge(["msg_3", "msg_4"])
    shutil.copy(tmp_path / "old.json", folder / "old.json")
    await memory.orchestrator().restore_snapshot("old")
    assert await agents(memory) == [BREAD[0]]
    assert await agents(memory, "answer") == [BREAD[1]]
    assert not await memory.past_answers(TRAM[0])
    assert (await memory.past_answers(BREAD[0]))[0].record_ids == ("msg_1",)


async def test_an_older_snapshot_brings_back_a_forgotten_record_only_once_it_is_restored(memory: Memory) -> None:
    await memory.orchestrator().save_snapshot("old")
    await memory.forget("msg_3")
    await memory.orchestrator().restore_snapshot("old")
    assert await agents(memory) == [BREAD[0]]
    await memory.restore("msg_3")
    assert await agents(memory) == sorted([BREAD[0], TRAM[0]])


async def test_an_erasure_that_was_interrupted_is_finished_by_the_next(
    memory: Memory, folder: Path, tmp_path: Path
) -> None:
    shutil.copy(folder / "default.json", tmp_path / "old.json")
    await memory.purge(["msg_3"])
    shutil.copy(tmp_path / "old.json", folder / "default.json")
    eraser = SnapshotEraser(memory.orchestrator()._snapshots, memory.place.store)
    assert (await eraser.erase())["local"].rewritten == ("snapshot default",)
    assert "Quahog" not in (folder / "default.json").read_text(encoding="utf-8")
    assert (await eraser.erase())["local"].rewritten == ()


@pytest.mark.parametrize(("module", "name"), [(top_subgraph, "top_subgraph"), (os, "fsync")])
async def test_a_checkpoint_that_was_being_written_is_written_again(
    memory: Memory, folder: Path, monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str
) -> None:
    undisturbed = getattr(module, name)
    purged: list[str] = []

    def purging(*arguments: Any) -> Any:
        done = undisturbed(*arguments)
        if not purged:
            purged.append("msg_3")
            assert from_thread.run(memory.purge, purged).remaining == {}
        return done

    monkeypatch.setattr(module, name, purging)
    await memory.orchestrator().save_snapshot("late")
    assert "Quahog" not in (folder / "late.json").read_text(encoding="utf-8")
    assert BREAD[0] in (folder / "late.json").read_text(encoding="utf-8")


async def test_purges_of_two_processes_at_once_leave_nothing_unclean(
    memory: Memory, database: Path, folder: Path
) -> None:
    for number in range(5):
        await memory.orchestrator().save_snapshot(f"kept{number}")
    reports: list[PurgeReport] = []

    async def purge(purging: Memory, record_id: str) -> None:
        reports.append(await purging.purge([record_id]))

    async with open_memory(database) as other, create_task_group() as tasks:
        tasks.start_soon(purge, memory, "msg_3")
        tasks.start_soon(purge, other, "msg_4")
    assert [report.remaining for report in reports] == [{}, {}]
    for path in folder.iterdir():
        assert all(text not in path.read_text(encoding="utf-8") for text in TRAM)


async def test_a_snapshot_that_names_nothing_erased_is_not_read_as_a_graph(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    [number] = (await memory.record_messages("other", said("Hello there."))).message_ids
    read: list[Path] = []

    async def counted(path: Path) -> Any:
        read.append(path)
        return await read_json(path)

    monkeypatch.setattr(snapshot_eraser, "read_json", counted)
    assert (await memory.purge([number])).remaining == {}
    assert read == []
    await memory.purge(["msg_3"])
    assert [path.name for path in read] == ["default.json"]


async def test_snapshots_belong_to_their_owner(memory: Memory, folder: Path) -> None:
    ann = memory._services.orchestrators.of(Scope(owner="ann/../x"))
    await ann.save_snapshot("mine")
    assert [one.name for one in ann.list_snapshots()] == ["mine"]
    assert [one.name for one in memory.orchestrator().list_snapshots()] == ["default"]
    assert {path.parent.name for path in folder.rglob("mine.json")} == {"ann%2F%2E%2E%2Fx"}


async def test_a_purge_cleans_the_snapshots_of_every_owner(memory: Memory, folder: Path) -> None:
    of_ann = SnapshotFolder(folder).of("ann").folder
    of_ann.mkdir(parents=True)
    shutil.copy(folder / "default.json", of_ann / "mine.json")
    (of_ann / "notes.txt").write_text("Quahog", encoding="utf-8")
    report = await memory.purge(["msg_3"])
    assert "Quahog" not in (of_ann / "mine.json").read_text(encoding="utf-8")
    assert set(report.remaining) == {f"{folder.name}/owners/ann/notes.txt"}
