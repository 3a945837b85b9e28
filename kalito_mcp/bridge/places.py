"""A bridge's view of this machine: its project, by the home's name, and whether anything is recorded here.

A project is named by the folder of its repository on the machine that it is on. Another machine has it in another
folder. So a bridge names a repository by the address that it was cloned from, without scheme, user and `.git`:
`github.com/ann/app`. A folder without one keeps its path; the setting `memory.moved` gives it another name.
"""

import configparser
import time
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from kalito_mcp.domain.folders import is_foreign
from kalito_mcp.domain.scope import PERSONAL
from kalito_mcp.errors import ConfigurationError, Conflict
from kalito_mcp.projects import ProjectPolicy, is_ignored, is_path, project_of
from kalito_mcp.switch import read_switch

_ALL: Final = "*"
_SCP_PARTS: Final = 2


class MachinePlaces:
    """The places of one host on this machine, whose switch is in the file `switch`. `folder` is the project that it
    works in, or `PERSONAL`."""

    def __init__(self, switch: Path, policy: ProjectPolicy, folder: str) -> None:
        self._switch = switch
        self._policy = policy
        self._folder = folder

    @property
    def project(self) -> str | None:
        """The home's name of the host's project; None if the host works outside of projects."""
        return None if self._folder == PERSONAL else self.named(self._folder)

    def named(self, project: str) -> str:
        """The home's name of a project that a host names, by its folder or otherwise."""
        if project in (_ALL, PERSONAL) or not is_path(project):
            return project
        found = project_of(project, self._policy)
        if found == PERSONAL or not is_path(found) or found != project_of(project, ProjectPolicy()):
            return found  # the setting says what it is called
        return address_of(Path(found)) or found

    def check_remembered(self, project: str | None = None, *, is_pause_over: bool = False) -> None:
        """Raise Conflict while nothing is recorded on this machine, or not in this project or else the host's."""
        switch = read_switch(self._switch)
        if not is_pause_over:
            switch.check_not_paused(time.time_ns() // 1_000_000)
        place = project_of(project, self._policy) if project and is_path(project) else project or self._folder
        if (is_path(place) or is_foreign(place)) and switch.is_excluded(place):
            raise Conflict(f"nothing is remembered in {place}: it is excluded; `kalito-mcp exclude --remove` ends that")
        if is_ignored(place, self._policy):
            raise Conflict(f"nothing is remembered in {place}: the setting memory.ignored names it; go on without")

    def is_paused(self) -> bool:
        """Whether this machine's memory is paused, or whether that cannot be read."""
        try:
            return read_switch(self._switch).is_paused(time.time_ns() // 1_000_000)
        except ConfigurationError:
            return True


def address_of(repository: Path) -> str | None:
    """The address that a repository was cloned from, `host/path`; None if it is missing, or only a path on a
    machine."""
    remotes = _remotes(repository / ".git" / "config")
    url = remotes.get("origin") or (next(iter(remotes.values())) if len(remotes) == 1 else None)
    return None if url is None else _plain_address(url)


def _remotes(config: Path) -> dict[str, str]:
    """The addresses in git's own file, by the name of the remote. `git` itself may not be installed."""
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True, delimiters=("=",))
    try:
        text = config.read_text(encoding="utf-8", errors="replace")
        parser.read_string("\n".join(line.strip() for line in text.splitlines()))
    except (OSError, configparser.Error):
        return {}
    found = {}
    for section in parser.sections():
        kind, _, name = section.partition(" ")
        url = parser.get(section, "url", fallback=None)
        if kind == "remote" and url:
            found[name.strip('"')] = url.strip()
    return found


def _plain_address(url: str) -> str | None:
    """`host/path` of an address, the same for ssh and https, without a user or a password."""
    if "://" in url:
        try:
            parts = urlsplit(url)
        except ValueError:  # an address that git itself could not use
            return None
        host, path = (parts.hostname, parts.path) if parts.scheme in ("https", "http", "ssh", "git") else (None, "")
    else:
        # user@host:path, as ssh has it. One letter before the colon is a drive.
        before, colon, path = url.partition(":")
        host = before.rpartition("@")[2] if colon and "/" not in before and len(before) >= _SCP_PARTS else None
    path = path.strip("/").removesuffix(".git").strip("/")
    return f"{host.lower()}/{path}" if host and path else None
