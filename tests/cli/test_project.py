"""`kalito-mcp project`, and --project of the commands that keep and find records."""

from pathlib import Path

import anyio
import pytest

from kalito_mcp.domain.records import NewMessage, Role
from kalito_mcp.wiring import open_memory
from tests.cli.conftest import Invoke
from tests.cli.test_records import done, refused


@pytest.fixture
def in_projects(remembered: Path) -> Path:
    """The same database, with a session of the project `kite`."""

    async def record() -> None:
        async with open_memory(remembered) as memory:
            kite = await memory.in_project("kite")
            await kite.record_messages("flying", [NewMessage(Role.USER, "The kite flies in May.")])
            await memory.settled()

    anyio.run(record)
    return remembered


def test_the_list_shows_each_project_with_its_sessions(invoke: Invoke, in_projects: Path, tmp_path: Path) -> None:
    assert done(invoke, in_projects, "project", "list").split() == ["1", "session", "kite"]
    done(invoke, tmp_path / "new.db", "remember", "A note.")
    assert done(invoke, tmp_path / "new.db", "project", "list") == "no projects: everything is personal\n"


def test_a_search_of_a_project_finds_it_and_what_is_personal(invoke: Invoke, in_projects: Path) -> None:
    everything = done(invoke, in_projects, "search", "fly May").splitlines()
    assert any("  of kite  user: The kite flies in May." in line for line in everything)
    assert any("user: We fly on May 3." in line and " of " not in line.partition("user:")[0] for line in everything)
    assert "The kite flies" not in done(invoke, in_projects, "search", "fly May", "--project", "personal")
    both = done(invoke, in_projects, "search", "fly May", "--project", "kite")
    assert "The kite flies" in both
    assert "We fly on" in both
    assert " of kite" not in both


def test_a_note_is_personal_unless_a_project_is_named(
    invoke: Invoke, in_projects: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "repository" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "repository")
    assert " of project" not in done(invoke, in_projects, "remember", "The attic key hangs by the door.")
    told = done(invoke, in_projects, "remember", "The attic port is 8443.", "--project", ".")
    assert told.rstrip().endswith(f" of project {tmp_path.resolve() / 'repository'}")
    assert "8443" not in done(invoke, in_projects, "search", "attic", "--project", "kite")
    assert "8443" in done(invoke, in_projects, "search", "attic", "--project", "repository")


def test_a_session_moves_to_another_project(invoke: Invoke, in_projects: Path) -> None:
    assert done(invoke, in_projects, "project", "move", "flying", "--to", "boat") == "moved session flying to boat\n"
    assert "The kite flies" not in done(invoke, in_projects, "search", "fly May", "--project", "kite")
    assert "The kite flies" in done(invoke, in_projects, "search", "fly May", "--project", "boat")
    assert done(invoke, in_projects, "project", "move", "flying", "--personal") == "moved session flying to personal\n"
    assert "The kite flies" in done(invoke, in_projects, "search", "fly May", "--project", "personal")


def test_a_note_moves_to_another_project_and_its_history_says_so(invoke: Invoke, in_projects: Path) -> None:
    note = done(invoke, in_projects, "remember", "The attic port is 8443.").split()[2]
    assert done(invoke, in_projects, "project", "move", note, "--to", "kite") == f"moved {note} to kite\n"
    assert "project" in done(invoke, in_projects, "history", note)
    assert "kite" in done(invoke, in_projects, "show", note)


def test_a_renamed_project_is_found_by_its_new_name(invoke: Invoke, in_projects: Path, tmp_path: Path) -> None:
    folder = tmp_path.resolve() / "moved"
    folder.mkdir()
    assert done(invoke, in_projects, "project", "rename", "kite", str(folder)) == f"renamed to {folder}\n"
    assert "The kite flies" in done(invoke, in_projects, "search", "fly May", "--project", str(folder))


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["project", "move", "flying"], 2, "give --to PROJECT, or --personal"),
        (["project", "move", "flyng", "--to", "x"], 1, "did you mean 'flying'?"),
        (["project", "move", "msg_1", "--to", "x"], 1, "msg_1 belongs to session 'trip/oslo', and so to its project"),
        (["project", "move", "flying", "--to", "kyte"], 1, "no project 'kyte'; did you mean 'kite'?"),
        (["project", "rename", "kites", "boat"], 1, "no project 'kites'; did you mean 'kite'?"),
        (["project", "rename", "kite", "personal"], 1, "'personal' cannot be a project"),
        (["search", "fly", "--project", "kiet"], 1, "no project 'kiet'; did you mean 'kite'?"),
    ],
)
def test_what_cannot_be_moved_or_named_is_refused_in_words(
    invoke: Invoke, in_projects: Path, arguments: list[str], code: int, words: str
) -> None:
    assert words in refused(invoke, in_projects, *arguments, code=code)
