"""Snapshots by name: no name leads out of the folder, and each is found again."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.errors import InvalidInput, NotFound
from kalito_mcp.graph.snapshot_folder import SnapshotFolder, default_name


@pytest.fixture
def folder(tmp_path: Path) -> SnapshotFolder:
    return SnapshotFolder(tmp_path / "memory.db.snapshots")


def write(folder: SnapshotFolder, name: str, *, at_s: int, text: str = "{}") -> None:
    folder.folder.mkdir(exist_ok=True)
    path = folder.path(name)
    path.write_text(text, encoding="utf-8")
    os.utime(path, (at_s, at_s))


@pytest.mark.parametrize("name", ["a", "trip-2", "2026.03.04_end", "a%20b", "x" * 100, "console", "nullable"])
def test_a_plain_name_is_a_file_in_the_folder(folder: SnapshotFolder, name: str) -> None:
    assert folder.path(name) == folder.folder / f"{name}.json"


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../up", "a/b", "a\\b", "/etc/passwd", "C:\\x", "C:x", ".hidden", "-rf", "a.", "a b", "x" * 101,
     "å", "a\0b", "a\n", "nul", "CON", "con.v2", "aux.", "COM1", "lpt9.tar", "~", "%2e%2e/up"],
)  # fmt: skip
def test_any_other_name_is_refused_with_what_to_use(folder: SnapshotFolder, name: str) -> None:
    with pytest.raises(InvalidInput, match="use letters, digits"):
        folder.path(name)
    with pytest.raises(InvalidInput, match="use letters, digits"):
        folder.existing(name)


@given(st.text(max_size=120))
def test_no_name_leads_out_of_the_folder(name: str) -> None:
    folder = SnapshotFolder(Path("/memories/snapshots"))
    try:
        path = folder.path(name)
    except InvalidInput:
        return
    assert Path(os.path.normpath(path)).parent == folder.folder


def test_they_are_listed_newest_first_and_equally_old_ones_by_name(folder: SnapshotFolder) -> None:
    assert folder.all() == []
    write(folder, "b", at_s=100, text="{ }")
    write(folder, "a", at_s=100)
    write(folder, "c", at_s=300)
    assert [one.name for one in folder.all()] == ["c", "a", "b"]
    assert folder.all()[-1].to_dict() == {"name": "b", "bytes": 3, "written_at": "1970-01-01T00:01:40.000Z"}


def test_other_files_are_not_listed(folder: SnapshotFolder) -> None:
    write(folder, "a", at_s=100)
    (folder.folder / "folder.json").mkdir()
    (folder.folder / ".a.json.tmp").touch()
    (folder.folder / "notes.txt").touch()
    (folder.folder / "two words.json").touch()
    (folder.folder / "gone.json").symlink_to(folder.folder / "nowhere")
    assert [one.name for one in folder.all()] == ["a"]
    for name in ("folder", "gone"):
        with pytest.raises(NotFound):
            folder.existing(name)


def test_the_error_for_a_missing_snapshot_lists_those_that_exist(folder: SnapshotFolder) -> None:
    with pytest.raises(NotFound, match="none yet"):
        folder.existing("end")
    write(folder, "trip", at_s=100)
    with pytest.raises(NotFound, match="trip"):
        folder.existing("end")
    assert folder.existing("trip") == folder.path("trip")
    assert folder.file("trip").size_bytes == 2


@given(st.text(min_size=1, max_size=200))
def test_every_agents_own_snapshot_has_a_plain_name(agent_id: str) -> None:
    folder = SnapshotFolder(Path("/memories/snapshots"))
    assert folder.path(default_name(agent_id)).parent == folder.folder


def test_agents_have_names_of_their_own() -> None:
    agents = [
        "default",
        "Åsa",
        "asa",
        "~",
        "a~b",
        "a/b",
        "a_b",
        "a%2Fb",
        "...",
        "",
        "nul",
        "\ud800",
        "x" * 150,
        "x" * 151,
    ]
    names = [default_name(agent) for agent in agents]
    assert len(set(names)) == len(agents)
    assert default_name("default") == "default"
