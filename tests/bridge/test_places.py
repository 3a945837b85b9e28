"""What a bridge calls the projects of its machine."""

import time
from pathlib import Path

import pytest

from kalito_mcp.bridge.places import MachinePlaces, address_of
from kalito_mcp.errors import Conflict
from kalito_mcp.projects import ProjectPolicy, is_elsewhere, project_of
from kalito_mcp.switch import FOR_EVER, Switch, write_switch


def repository(folder: Path, config: str) -> Path:
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "config").write_text(config)
    return folder


def origin(url: str) -> str:
    return f'[core]\n\tbare = false\n[remote "origin"]\n\turl = {url}\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n'


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/ann/app.git",
        "https://github.com/ann/app",
        "https://ann:secret@github.com/ann/app.git",
        "git@github.com:ann/app.git",
        "ssh://git@GitHub.com:22/ann/app.git/",
    ],
)
def test_a_repository_is_called_by_where_it_was_cloned_from(tmp_path: Path, url: str) -> None:
    assert address_of(repository(tmp_path, origin(url))) == "github.com/ann/app"


@pytest.mark.parametrize(
    "config",
    [
        "",
        "not = a [config",
        origin("/srv/git/app.git"),
        origin("../app"),
        origin(r"C:\git\app"),
        origin("file:///srv/git/app"),
        origin("https://[x/app"),
        origin("https://ann:pa[ss@github.com/ann/app"),
        '[remote "a"]\nurl = https://github.com/a/app\n[remote "b"]\nurl = https://github.com/b/app\n',
    ],
)
def test_a_repository_without_one_address_keeps_its_folder(tmp_path: Path, config: str) -> None:
    folder = repository(tmp_path / "app", config)
    assert address_of(folder) is None
    assert MachinePlaces(tmp_path / "switch.json", ProjectPolicy(), str(folder)).project == str(folder)


def test_a_folder_in_a_repository_and_a_worktree_have_its_name(tmp_path: Path) -> None:
    app = repository(tmp_path / "app", origin("git@github.com:ann/app.git"))
    worktree = tmp_path / "other"
    worktree.mkdir()
    (app / ".git" / "worktrees" / "other").mkdir(parents=True)
    (app / ".git" / "worktrees" / "other" / "commondir").write_text("../..\n")
    (worktree / ".git").write_text(f"gitdir: {app / '.git' / 'worktrees' / 'other'}\n")
    (app / "src").mkdir()
    places = MachinePlaces(tmp_path / "switch.json", ProjectPolicy(), project_of(worktree, ProjectPolicy()))
    assert places.project == "github.com/ann/app"
    assert places.named(str(app / "src")) == "github.com/ann/app"
    assert places.named("personal") == "personal"
    assert places.named("*") == "*"
    assert places.named("thesis") == "thesis"


def test_the_setting_of_paths_wins_over_the_address(tmp_path: Path) -> None:
    app = repository(tmp_path / "app", origin("git@github.com:ann/app.git"))
    policy = ProjectPolicy(paths={str(tmp_path): "/home/ann/src"})
    assert MachinePlaces(tmp_path / "switch.json", policy, project_of(app, policy)).project == "/home/ann/src/app"


def test_nothing_is_recorded_where_this_machine_says_so(tmp_path: Path) -> None:
    app, other = tmp_path / "app", tmp_path / "other"
    app.mkdir()
    other.mkdir()
    switch = tmp_path / "switch.json"
    places = MachinePlaces(switch, ProjectPolicy(ignored=(str(other),)), str(app))
    places.check_remembered()
    with pytest.raises(Conflict, match=r"memory\.ignored names it"):
        places.check_remembered(str(other))
    write_switch(switch, Switch(excluded=(str(app),)))
    with pytest.raises(Conflict, match="it is excluded"):
        places.check_remembered()
    places.check_remembered("thesis")
    write_switch(switch, Switch(FOR_EVER))
    with pytest.raises(Conflict, match="the memory is paused"):
        places.check_remembered("thesis")
    assert places.is_paused()
    write_switch(switch, Switch(time.time_ns() // 1_000_000 - 1))
    assert not places.is_paused()


def test_names_that_no_person_types_are_never_taken_for_mistyped() -> None:
    assert is_elsewhere("github.com/ann/app")
    assert is_elsewhere(r"C:\Users\ann\app")
    assert not is_elsewhere("app")
    assert not is_elsewhere("notes/work")
