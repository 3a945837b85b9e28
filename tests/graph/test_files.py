"""Graphs in files: complete or missing, readable only by their owner, and written only after a change."""

import json
import os
import stat
from pathlib import Path

import pytest

from kalito_mcp.errors import InvalidInput, StorageError, StorageFull, StorageReadOnly
from kalito_mcp.graph import files
from kalito_mcp.graph.store import GraphStore
from tests.graph.graphs import graph_of, unchanged
from tests.scripted import ScriptedClock

pytestmark = pytest.mark.anyio


def small_graph(clock: ScriptedClock) -> GraphStore:
    graph = graph_of(clock)
    for text in ("how do I bake bread", "how do I bake breads", "東京 🚆"):
        graph.upsert_query(text)
    return graph


async def test_a_saved_graph_is_loaded_the_same(clock: ScriptedClock, tmp_path: Path) -> None:
    graph, again = small_graph(clock), graph_of(clock)
    assert await graph.save_to_file(tmp_path / "new folder" / "graph.json")
    await GraphStore.load_from_file(str(tmp_path / "new folder" / "graph.json"), again)
    assert again.to_snapshot() == graph.to_snapshot()


@pytest.mark.skipif(os.name == "nt", reason="modes are POSIX")
async def test_only_the_owner_may_read_it(clock: ScriptedClock, tmp_path: Path) -> None:
    path = tmp_path / "folder" / "graph.json"
    await small_graph(clock).save_to_file(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


async def test_nothing_but_the_file_is_left_in_the_folder(clock: ScriptedClock, tmp_path: Path) -> None:
    await small_graph(clock).save_to_file(tmp_path / "graph.json")
    assert [path.name for path in tmp_path.iterdir()] == ["graph.json"]


async def test_only_if_dirty_writes_what_changed_and_nothing_else(clock: ScriptedClock, tmp_path: Path) -> None:
    graph, path = small_graph(clock), tmp_path / "graph.json"
    assert await graph.save_to_file(path, only_if_dirty=True)
    assert not await graph.save_to_file(path, only_if_dirty=True)
    graph.search_similar_queries("bread")
    graph.drain_changes()
    assert not await graph.save_to_file(path, only_if_dirty=True)
    graph.upsert_query("東京 🚆")
    assert await graph.save_to_file(path, only_if_dirty=True)
    assert await graph.save_to_file(path)


async def test_only_if_dirty_writes_another_file_and_one_that_is_gone(clock: ScriptedClock, tmp_path: Path) -> None:
    graph, path = small_graph(clock), tmp_path / "graph.json"
    await graph.save_to_file(path)
    assert await graph.save_to_file(tmp_path / "other.json", only_if_dirty=True)
    assert await graph.save_to_file(path, only_if_dirty=True)
    path.unlink()
    assert await graph.save_to_file(path, only_if_dirty=True)


async def test_a_graph_that_was_loaded_is_not_dirty(clock: ScriptedClock, tmp_path: Path) -> None:
    graph, path = graph_of(clock), tmp_path / "graph.json"
    await small_graph(clock).save_to_file(path)
    await GraphStore.load_from_file(path, graph)
    assert not await graph.save_to_file(path, only_if_dirty=True)
    graph.upsert_query("one more")
    assert await graph.save_to_file(path, only_if_dirty=True)


async def test_a_graph_that_became_another_is_dirty(clock: ScriptedClock, tmp_path: Path) -> None:
    graph, path = small_graph(clock), tmp_path / "graph.json"
    await graph.save_to_file(path)
    graph.from_snapshot(graph_of(clock).to_snapshot())
    assert await graph.save_to_file(path, only_if_dirty=True)
    assert json.loads(path.read_text(encoding="utf-8"))["graph"] == {"nodes": [], "edges": []}


async def test_a_write_that_fails_leaves_the_file_as_it_was(
    clock: ScriptedClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, path = small_graph(clock), tmp_path / "graph.json"
    await graph.save_to_file(path)
    before = path.read_bytes()
    graph.upsert_query("one more")

    def no_space(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", no_space)
    with pytest.raises(StorageFull, match="free some"):
        await graph.save_to_file(path, only_if_dirty=True)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["graph.json"]
    monkeypatch.undo()
    assert await graph.save_to_file(path, only_if_dirty=True)


async def test_a_name_that_the_disk_cannot_have_is_an_error_of_the_storage(
    clock: ScriptedClock, tmp_path: Path
) -> None:
    with pytest.raises(StorageReadOnly, match="cannot write"):
        await small_graph(clock).save_to_file(tmp_path / ("x" * 300))
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write"):
        await small_graph(clock).save_to_file(tmp_path / "file" / "graph.json")


async def test_a_folder_is_no_file(clock: ScriptedClock, tmp_path: Path) -> None:
    graph = small_graph(clock)
    with pytest.raises(InvalidInput, match="is a folder; give the path"):
        await graph.save_to_file(tmp_path)
    with unchanged(graph), pytest.raises(InvalidInput, match="cannot read"):
        await GraphStore.load_from_file(tmp_path, graph)
    assert list(tmp_path.iterdir()) == []


async def test_a_name_with_a_nul_is_refused(clock: ScriptedClock, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="NUL"):
        await small_graph(clock).save_to_file(tmp_path / "a\0b")
    with pytest.raises(InvalidInput):
        await GraphStore.load_from_file(tmp_path / "a\0b", graph_of(clock))


async def test_a_file_that_is_not_there_is_an_error(clock: ScriptedClock, tmp_path: Path) -> None:
    graph = small_graph(clock)
    with unchanged(graph), pytest.raises(InvalidInput, match="No such file"):
        await GraphStore.load_from_file(tmp_path / "graph.json", graph)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.9, 0.9999])
async def test_a_file_that_is_cut_short_is_refused(clock: ScriptedClock, tmp_path: Path, share: float) -> None:
    graph, path = small_graph(clock), tmp_path / "graph.json"
    await graph.save_to_file(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    with unchanged(graph), pytest.raises(InvalidInput, match="cut short"):
        await GraphStore.load_from_file(path, graph)


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"version": NaN}', '{"version": 1e999}', "\ufeff{}", "9" * 5_000, "null", "[]", '"\\ud800"'],
)
async def test_a_file_that_is_no_snapshot_is_refused(clock: ScriptedClock, tmp_path: Path, text: str) -> None:
    graph, path = small_graph(clock), tmp_path / "graph.json"
    path.write_text(text, encoding="utf-8")
    with unchanged(graph), pytest.raises(InvalidInput):
        await GraphStore.load_from_file(path, graph)


async def test_a_file_that_is_no_text_is_refused(clock: ScriptedClock, tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInput, match="not JSON"):
        await GraphStore.load_from_file(path, graph_of(clock))


async def test_a_file_that_is_too_large_is_not_read(
    clock: ScriptedClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "graph.json"
    await small_graph(clock).save_to_file(path)
    monkeypatch.setattr(files, "MAX_FILE_BYTES", 100)
    with pytest.raises(InvalidInput, match="more than 100 bytes"):
        await GraphStore.load_from_file(path, graph_of(clock))


async def test_a_pretty_file_says_the_same(clock: ScriptedClock, tmp_path: Path) -> None:
    snapshot = small_graph(clock).to_snapshot()
    await files.write_json(tmp_path / "pretty.json", snapshot, is_pretty=True)
    await files.write_json(tmp_path / "compact.json", snapshot)
    pretty, compact = ((tmp_path / f"{name}.json").read_text(encoding="utf-8") for name in ("pretty", "compact"))
    assert json.loads(pretty) == json.loads(compact) == await files.read_json(tmp_path / "pretty.json")
    assert "\n  " in pretty
    assert "\n" not in compact
    assert "東京" in compact
