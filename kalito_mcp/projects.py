"""Which project a folder belongs to. A project is named by the path of its repository, or else of its folder; or it has
any other name that a caller chose.
"""

import ntpath
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Final
from urllib.parse import unquote

from kalito_mcp.domain.folders import is_foreign, is_within
from kalito_mcp.domain.scope import PERSONAL
from kalito_mcp.domain.validation import Policy
from kalito_mcp.errors import InvalidInput

_FOLDER_VARIABLES: Final = ("CLAUDE_PROJECT_DIR", "DEVIN_PROJECT_DIR")
"""In which hosts name the folder that they were opened in."""

_GIT_DIR: Final = "gitdir:"
_ADDRESS: Final = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)+(?:/[^/\s]+)+")
_URI: Final = re.compile(r"([a-z][a-z0-9+.-]+)://([^/]+|(?=/.))(/.*)?", re.IGNORECASE)
_ENCODED: Final = re.compile(r"/[a-z]%3a(?:/|$)", re.IGNORECASE)
_DRIVE: Final = re.compile(r"(?:[\\/]{2}[?.])?[\\/]?([A-Za-z]):(?:[\\/]|$)")
_SHARE: Final = re.compile(r"(?:\\\\|//)(?:[?.][\\/]UNC[\\/])?(?=[^\\/?.])", re.IGNORECASE)
_WSL: Final = re.compile(r"\\\\wsl(?:\$|\.localhost)\\([^\\]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ProjectPolicy(Policy):
    """`paths` gives folders that have moved another name: the beginning of a path, and what replaces it. In projects
    that are one of the `ignored` folders, or are in one, nothing is remembered."""

    paths: Mapping[str, str] = field(default_factory=dict[str, str])
    ignored: tuple[str, ...] = ()


def is_path(project: str) -> bool:
    """Whether a project is named by its folder: by an absolute path, or one that begins with `~`, `.` or `..`. Other
    names are what a caller chose."""
    return Path(project).is_absolute() or project.replace(os.sep, "/").split("/", 1)[0] in ("~", ".", "..")


def is_elsewhere(project: str) -> bool:
    """Whether a project is named by a folder of another kind of machine, or by an address: of its folder, or that its
    repository was cloned from, `github.com/ann/app`. No person types these, so one that is like another is not
    mistyped."""
    return (_ADDRESS.fullmatch(project) or _URI.fullmatch(project)) is not None or is_foreign(project)


def is_folder(path: str) -> bool:
    """Whether this is a whole path, or an address, of a folder on this machine or any other."""
    return any(kind(path).is_absolute() for kind in (PurePosixPath, PureWindowsPath)) or bool(_URI.fullmatch(path))


def spelled(folder: str) -> str:
    """The one spelling of a folder that hosts spell in several ways. Pure: nothing is looked up.

    An address `file://...` becomes its path, and so does one of VS Code in WSL, or its path that is still encoded. A
    path of Windows has a capital drive letter, backslashes and no end mark. What can be another folder stays as it is:
    the case of names, `/mnt/c`, other addresses, and paths of POSIX.
    """
    address = _URI.fullmatch(folder)
    if address is not None:
        scheme, host, path = address[1].lower(), unquote(address[2]), unquote(address[3] or "")
        if scheme == "vscode-remote" and host.lower().startswith("wsl+"):
            folder = rf"\\wsl.localhost\{host[len('wsl+') :]}{path}"
        elif scheme == "file":
            folder = path if host in ("", "localhost") else f"\\\\{host}{path}"
        else:
            return folder
    elif _ENCODED.match(folder):
        folder = unquote(folder)
    if (drive := _DRIVE.match(folder)) is not None:
        return ntpath.normpath(f"{drive[1].upper()}:\\{folder[drive.end() :]}")
    if folder.startswith("\\\\") and (share := _SHARE.match(folder)) is not None:
        found = ntpath.normpath(f"\\\\{folder[share.end() :]}").rstrip("\\")
        return _WSL.sub(lambda wsl: rf"\\wsl.localhost\{wsl[1].lower()}", found, count=1)
    return folder


def project_of(folder: str | Path, policy: ProjectPolicy) -> str:
    """The project of a folder: the repository that it is in, the same for all its worktrees, or else the folder itself.
    The home folder and the root are not projects."""
    known = Path(os.path.realpath(_expanded(folder)))
    found = _renamed(str(_repository(known) or known), policy)
    return PERSONAL if _is_no_project(Path(found)) else found


def project_by_path(folder: str, policy: ProjectPolicy) -> str:
    """The project of a folder by its path alone: who names it may be on another machine, and must not learn what is on
    this one, nor make it ask a third.

    Raises:
        InvalidInput: the path is not absolute.
    """
    if not Path(folder).is_absolute():
        raise InvalidInput("over HTTP, name a folder by its whole path, or the project by its name")
    found = _renamed(os.path.normpath(folder), policy)
    return PERSONAL if Path(found) == Path(found).parent else found


def _renamed(found: str, policy: ProjectPolicy) -> str:
    for before, after in sorted(policy.paths.items(), key=lambda pair: -len(pair[0])):
        begin = str(_expanded(before)).rstrip(os.sep)
        if found == begin or found.startswith(begin + os.sep):
            return str(_expanded(after)).rstrip(os.sep) + found[len(begin) :]
    return found


def working_folder() -> Path | None:
    """The folder that this process works in; None if that was deleted."""
    try:
        return Path.cwd()
    except OSError:
        return None


def project_of_host(environment: Mapping[str, str], folder: Path | None, policy: ProjectPolicy) -> str:
    """The project of the host that started this process: of the folder that it names, or else of the repository that it
    started the process in (`folder`). `PERSONAL` if it works in none, or in a folder that was deleted."""
    for variable in _FOLDER_VARIABLES:
        if environment.get(variable):
            return project_of(environment[variable], policy)
    # Many hosts start their servers anywhere: only a repository says that somebody works there.
    if folder is None or _repository(Path(os.path.realpath(folder))) is None:
        return PERSONAL
    return project_of(folder, policy)


def is_ignored(project: str, policy: ProjectPolicy) -> bool:
    """Whether nothing is remembered in this project."""
    ignored = [str(_expanded(one)) if is_path(one) else spelled(one) for one in policy.ignored]
    return any(is_within(project, one) for one in ignored)


def _repository(folder: Path) -> Path | None:
    """The folder of the repository that this folder is in, as git would find it; None if it is in none."""
    for place in (folder, *folder.parents):
        if _is_no_project(place):
            return None
        try:
            git = place / ".git"
            if git.is_dir():
                return place
            if git.is_file():
                return _main_worktree(place, git)
        except OSError:
            continue  # not ours to read
    return None


def _main_worktree(place: Path, git: Path) -> Path:
    """The folder whose repository a worktree shares. A submodule shares none, and is its own."""
    pointer = git.read_text(encoding="utf-8", errors="replace").strip()
    if not pointer.startswith(_GIT_DIR):
        return place
    own = place / pointer.removeprefix(_GIT_DIR).strip()
    common = own / "commondir"
    if not common.is_file():
        return place
    shared = Path(os.path.realpath(own / common.read_text(encoding="utf-8", errors="replace").strip()))
    return shared.parent if shared.name == ".git" else shared


def _is_no_project(folder: Path) -> bool:
    return folder == folder.parent or folder == Path(os.path.realpath(Path.home()))


def _expanded(path: str | Path) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)
