"""The folders of snapshots, one an owner: their names and files. No name leads out of them."""

import re
import stat
from hashlib import blake2b
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

from kalito_mcp.domain.finalizing import SnapshotFile
from kalito_mcp.domain.scope import LOCAL_OWNER
from kalito_mcp.errors import InvalidInput, NotFound

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._%-]{0,99}")
_SUFFIX: Final = ".json"
_UNFINISHED: Final = re.compile(r"\.[A-Za-z0-9][A-Za-z0-9._%-]{0,99}\.json\.[a-z0-9_]{8}")
"""A temporary file of `graph/files.py`, next to the snapshot that was being written."""
_DEVICE: Final = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
"""On Windows such a name means a device, whatever its folder and suffix."""


class SnapshotFolder:
    """Maps the names of one owner's snapshots to files. The folder need not exist before something is written.

    `SnapshotFolder(path)` is the local owner's. The others are in its subfolder `owners`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def of(self, owner: str) -> "SnapshotFolder":
        """The folder of another owner; call it on the local owner's."""
        if owner == LOCAL_OWNER:
            return self
        return SnapshotFolder(self._owners / quote(owner, safe="").replace(".", "%2E"))

    def by_owner(self) -> "dict[str, SnapshotFolder]":
        """The folder of every owner that has one, and always the local owner's."""
        folders = sorted(self._owners.iterdir()) if self._owners.is_dir() else []
        return {LOCAL_OWNER: self} | {unquote(one.name): SnapshotFolder(one) for one in folders if one.is_dir()}

    @property
    def _owners(self) -> Path:
        return self.folder / "owners"

    def path(self, name: str) -> Path:
        """The file of a snapshot of that name, whether it exists or not.

        Raises:
            InvalidInput: the name is not plain. A plain name has at most 100 letters, digits, ".", "_", "%" and "-",
            and is not a device of Windows such as "nul".
        """
        if not _is_plain(name):
            raise InvalidInput(
                f"snapshot name {name[:120]!r} is not plain; use letters, digits, '.', '_' and '-', at most 100"
            )
        return self.folder / f"{name}{_SUFFIX}"

    def existing(self, name: str) -> Path:
        """The path of a snapshot that exists. Raises as `file` does."""
        return self.file(name).path

    def file(self, name: str) -> SnapshotFile:
        """The name, path, size and time of one snapshot file.

        Raises:
            InvalidInput: the name is not plain. NotFound: no snapshot has this name; the message lists some that exist.
        """
        found = _file_at(name, self.path(name))
        if found is None:
            known = ", ".join(one.name for one in self.all()[:10]) or "none yet"
            raise NotFound(f"no snapshot {name!r}; there are: {known}")
        return found

    def all(self) -> list[SnapshotFile]:
        """All snapshots, newest first, equally old ones by name."""
        if not self.folder.is_dir():
            return []
        paths = {path.name.removesuffix(_SUFFIX): path for path in self.folder.glob(f"*{_SUFFIX}")}
        found = (_file_at(name, path) for name, path in paths.items() if _is_plain(name))
        return sorted((one for one in found if one is not None), key=lambda one: (-one.written_at, one.name))

    def unfinished(self) -> list[Path]:
        """Temporary files of snapshots that were interrupted or are being written right now."""
        return [path for path in self._files() if _UNFINISHED.fullmatch(path.name)]

    def others(self) -> list[Path]:
        """Files of the folder that are neither snapshots nor their temporary files, by name. Files of other owners are
        skipped."""
        # Another process may be writing a snapshot right now, whose files come and go between two listings.
        files = [path for path in self._files() if not _UNFINISHED.fullmatch(path.name)]
        snapshots = {file.path for file in self.all()}
        return [path for path in files if path not in snapshots]

    def _files(self) -> list[Path]:
        found = self.folder.rglob("*") if self.folder.is_dir() else ()
        return sorted(path for path in found if not path.is_dir() and not path.is_relative_to(self._owners))


def default_name(agent_id: str) -> str:
    """The name of an agent's own snapshot, which each later one replaces."""
    # quote keeps "~", which a plain name must not contain.
    quoted = quote(agent_id, safe="", errors="surrogatepass").replace("~", "%7E")
    if _is_plain(quoted):
        return quoted
    digest = blake2b(agent_id.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"agent-{quoted.strip('.-_%')[:60]}-{digest}"


def _is_plain(name: str) -> bool:
    return _NAME.fullmatch(name) is not None and not name.endswith(".") and not _DEVICE.fullmatch(name)


def _file_at(name: str, path: Path) -> SnapshotFile | None:
    """None if there is no such file, or no longer."""
    try:
        status = path.stat()
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return SnapshotFile(name, path, status.st_size, status.st_mtime_ns // 1_000_000)
