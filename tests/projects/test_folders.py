"""Which project a folder belongs to: repositories, worktrees, folders without git, the home folder, and settings."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from kalito_mcp.domain.scope import PERSONAL
from kalito_mcp.errors import InvalidInput
from kalito_mcp.projects import (
    ProjectPolicy,
    is_ignored,
    is_path,
    project_by_path,
    project_of,
    project_of_host,
    spelled,
)

ANY = ProjectPolicy()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path.resolve() / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
def repository(home: Path) -> Path:
    """A repository with a folder in it, laid out as git does."""
    (home / "code" / "kite" / ".git").mkdir(parents=True)
    (home / "code" / "kite" / "src" / "deep").mkdir(parents=True)
    return home / "code" / "kite"


def worktree_of(repository: Path, folder: Path, *, common: str = "../..") -> Path:
    """A second worktree, laid out as `git worktree add` does."""
    own = repository / ".git" / "worktrees" / folder.name
    own.mkdir(parents=True)
    (own / "commondir").write_text(f"{common}\n")
    folder.mkdir(parents=True)
    (folder / ".git").write_text(f"gitdir: {own}\n")
    return folder


def test_all_folders_of_a_repository_are_one_project(repository: Path) -> None:
    assert project_of(repository, ANY) == project_of(repository / "src" / "deep", ANY) == str(repository)


def test_all_worktrees_of_a_repository_are_one_project(repository: Path, home: Path) -> None:
    other = worktree_of(repository, home / "kite-fix")
    assert project_of(other, ANY) == str(repository)
    absolute = worktree_of(repository, home / "kite-absolute", common=str(repository / ".git"))
    assert project_of(absolute, ANY) == str(repository)


def test_worktrees_of_a_bare_repository_are_one_project(home: Path) -> None:
    bare = home / "kite.git"
    own = bare / "worktrees" / "main"
    own.mkdir(parents=True)
    (own / "commondir").write_text("../..\n")
    (home / "main").mkdir()
    (home / "main" / ".git").write_text(f"gitdir: {own}\n")
    assert project_of(home / "main", ANY) == str(bare)


def test_a_submodule_is_a_project_of_its_own(repository: Path) -> None:
    (repository / ".git" / "modules" / "string").mkdir(parents=True)
    part = repository / "string"
    part.mkdir()
    (part / ".git").write_text("gitdir: ../.git/modules/string\n")
    assert project_of(part, ANY) == str(part)


@pytest.mark.parametrize("content", ["", "no pointer", "gitdir: /nowhere/at/all", "gitdir:", "\x00\xff"])
def test_a_broken_git_file_leaves_its_folder_a_project(home: Path, content: str) -> None:
    folder = home / "odd"
    folder.mkdir()
    (folder / ".git").write_text(content, encoding="latin-1")
    assert project_of(folder, ANY) == str(folder)


def test_a_folder_without_git_is_a_project_of_its_own_also_before_it_exists(home: Path) -> None:
    (home / "notes").mkdir()
    assert project_of(home / "notes", ANY) == str(home / "notes")
    assert project_of("~/notes", ANY) == str(home / "notes")
    assert project_of(home / "not yet" / "there", ANY) == str(home / "not yet" / "there")


def test_links_and_dots_lead_to_the_same_project(repository: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "link").symlink_to(repository / "src")
    assert project_of(home / "link", ANY) == str(repository)
    monkeypatch.chdir(repository / "src")
    assert project_of(".", ANY) == project_of("../src/deep", ANY) == str(repository)


def test_the_home_folder_and_the_root_are_no_projects(home: Path) -> None:
    (home / ".git").mkdir()  # as people have who keep their settings in git
    assert project_of(home, ANY) == project_of("/", ANY) == PERSONAL
    (home / "letters").mkdir()
    assert project_of(home / "letters", ANY) == str(home / "letters")


def test_a_folder_that_may_not_be_read_is_the_project_itself(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read everything, so the refusal is that of the call itself."""
    closed = home / "closed" / "inside"
    closed.mkdir(parents=True)

    def refuse(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_dir", refuse)
    assert project_of(closed, ANY) == str(closed)


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        ({"{home}/code": "/srv/code"}, "/srv/code/kite"),
        ({"{home}/code/": "/srv/code/"}, "/srv/code/kite"),
        ({"~/code": "~/elsewhere"}, "{home}/elsewhere/kite"),
        ({"{home}/code": "/wide", "{home}/code/kite": "/narrow"}, "/narrow"),
        ({"{home}/cod": "/never"}, "{home}/code/kite"),
    ],
)
def test_the_path_map_gives_folders_that_moved_their_name(
    repository: Path, home: Path, paths: Mapping[str, str], expected: str
) -> None:
    policy = ProjectPolicy(paths={before.format(home=home): after for before, after in paths.items()})
    assert project_of(repository / "src", policy) == expected.format(home=home)


def test_of_a_folder_on_another_machine_only_the_path_counts(repository: Path, home: Path) -> None:
    (home / "link").symlink_to(repository)
    assert project_of(home / "link" / "src", ANY) == str(repository)
    assert project_by_path(f"{home}/link/x/../src/", ANY) == f"{home}/link/src"
    assert project_by_path(f"{home}/link/src", ProjectPolicy(paths={f"{home}/link": "/srv/kite"})) == "/srv/kite/src"
    assert project_by_path("/", ANY) == PERSONAL
    for relative in ("~/kite", ".", "../kite"):
        with pytest.raises(InvalidInput, match="by its whole path"):
            project_by_path(relative, ANY)


@pytest.mark.parametrize(
    ("spellings", "expected"),
    [
        (
            [
                r"C:\code\kite",
                "c:/code/kite/",
                "/c:/code/kite",
                "file:///c%3A/code/kite",
                "/c%3A/code/kite",
                r"\\?\C:\code\x\..\kite",
            ],
            r"C:\code\kite",
        ),
        (
            [
                r"\\wsl$\Ubuntu\home\ann\kite",
                r"\\wsl.localhost\ubuntu\home\ann\kite",
                "vscode-remote://wsl+Ubuntu/home/ann/kite",
                "vscode-remote://wsl%2Bubuntu/home/ann/kite",
            ],
            r"\\wsl.localhost\ubuntu\home\ann\kite",
        ),
        ([r"\\nas\share\kite", r"\\?\UNC\nas\share\kite\ ".strip(), "file://nas/share/kite"], r"\\nas\share\kite"),
        (["/home/ann/the kite", "file:///home/ann/the%20kite"], "/home/ann/the kite"),
        (["/mnt/c/code/kite"], "/mnt/c/code/kite"),
        (["vscode-remote://ssh-remote+box/home/ann/kite"], "vscode-remote://ssh-remote+box/home/ann/kite"),
        (["kite"], "kite"),
    ],
)
def test_a_folder_of_any_system_has_one_spelling(spellings: list[str], expected: str) -> None:
    assert {spelled(one) for one in [*spellings, expected]} == {expected}


def test_the_host_works_in_the_folder_that_it_names(repository: Path, home: Path) -> None:
    (home / "notes").mkdir()
    for name in ("CLAUDE_PROJECT_DIR", "DEVIN_PROJECT_DIR"):
        assert project_of_host({name: str(home / "notes")}, repository, ANY) == str(home / "notes")


def test_a_host_that_names_no_folder_works_in_the_repository_that_it_starts_us_in(repository: Path, home: Path) -> None:
    (home / "notes").mkdir()
    assert project_of_host({}, repository / "src", ANY) == str(repository)
    assert project_of_host({"CLAUDE_PROJECT_DIR": ""}, repository, ANY) == str(repository)
    assert project_of_host({}, home / "notes", ANY) == PERSONAL
    assert project_of_host({}, home, ANY) == PERSONAL


def test_nothing_is_remembered_in_ignored_folders_and_names(home: Path) -> None:
    policy = ProjectPolicy(ignored=("~/secret/", "client", "c:/code/secret/"))
    assert is_ignored(f"{home}/secret", policy)
    assert is_ignored(f"{home}/secret/plans", policy)
    assert is_ignored("client", policy)
    assert is_ignored(r"C:\Code\secret\plans", policy)
    assert not is_ignored(r"C:\code\secrets", policy)
    assert not is_ignored(f"{home}/secrets", policy)
    assert not is_ignored("clients", policy)
    assert not is_ignored(PERSONAL, policy)


@pytest.mark.parametrize("given", ["/a", "~", "~/a", ".", "..", "./a", "../a"])
def test_a_path_is_told_from_a_name(given: str) -> None:
    assert is_path(given)


@pytest.mark.parametrize("given", ["kite", "a/b", ".hidden", "..x", "personal"])
def test_a_name_is_told_from_a_path(given: str) -> None:
    assert not is_path(given)
