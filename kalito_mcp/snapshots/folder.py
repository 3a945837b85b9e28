"""The folder of checkpoints: which names there are, and where each lies. No name leads out of it."""

import re
import stat
from hashlib import blake2b
from pathlib import Path
from typing import Final
from urllib.parse import quote

from kalito_mcp.domain.finalizing import SnapshotFile
from kalito_mcp.errors import InvalidInput, NotFound

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._%-]{0,99}")
_SUFFIX: Final = ".json"
_UNFINISHED: Final = re.compile(r"\.[A-Za-z0-9][A-Za-z0-9._%-]{0,99}\.json\.[a-z0-9_]{8}")
"""Beside a checkpoint's place, as `graph/files.py` names it."""
_DEVICE: Final = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
"""Windows takes such a name for a device, whatever its folder and suffix."""


class SnapshotFolder:
    """Names to files. The folder need not exist before something is written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, name: str) -> Path:
        """Where a checkpoint of that name lies, or will.

        Raises:
            InvalidInput: a name that is not plain: letters, digits, ".", "_", "%" and "-", at most 100, and no device
            of Windows, such as "nul".
        """
        if not _is_plain(name):
            raise InvalidInput(
                f"snapshot name {name[:120]!r} is not plain; use letters, digits, '.', '_' and '-', at most 100"
            )
        return self.folder / f"{name}{_SUFFIX}"

    def existing(self, name: str) -> Path:
        """The same for one that is there. Raises as `file`."""
        return self.file(name).path

    def file(self, name: str) -> SnapshotFile:
        """One checkpoint as it lies on disk.

        Raises:
            InvalidInput: as `path`. NotFound: there is none of that name; says which there are.
        """
        found = _looked_at(name, self.path(name))
        if found is None:
            known = ", ".join(one.name for one in self.all()[:10]) or "none yet"
            raise NotFound(f"no snapshot {name!r}; there are: {known}")
        return found

    def all(self) -> list[SnapshotFile]:
        """All checkpoints, the newest first, equally old ones by name."""
        if not self.folder.is_dir():
            return []
        paths = {path.name.removesuffix(_SUFFIX): path for path in self.folder.glob(f"*{_SUFFIX}")}
        found = (_looked_at(name, path) for name, path in paths.items() if _is_plain(name))
        return sorted((one for one in found if one is not None), key=lambda one: (-one.written_at, one.name))

    def unfinished(self) -> list[Path]:
        """What checkpoints that were interrupted left behind, or are being written at this moment."""
        return [path for path in self._files() if _UNFINISHED.fullmatch(path.name)]

    def others(self) -> list[Path]:
        """Files of the folder that are neither checkpoints nor left behind by one, by name."""
        known = {file.path for file in self.all()}.union(self.unfinished())
        return [path for path in self._files() if path not in known]

    def _files(self) -> list[Path]:
        return sorted(path for path in self.folder.rglob("*") if not path.is_dir()) if self.folder.is_dir() else []


def default_name(agent_id: str) -> str:
    """The name of an agent's own checkpoint, which each one after it replaces."""
    # quote leaves "~" as it is, and in a plain name there is none.
    quoted = quote(agent_id, safe="", errors="surrogatepass").replace("~", "%7E")
    if _is_plain(quoted):
        return quoted
    digest = blake2b(agent_id.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"agent-{quoted.strip('.-_%')[:60]}-{digest}"


def _is_plain(name: str) -> bool:
    return _NAME.fullmatch(name) is not None and not name.endswith(".") and not _DEVICE.fullmatch(name)


def _looked_at(name: str, path: Path) -> SnapshotFile | None:
    """None where there is no such file, or none any more."""
    try:
        status = path.stat()
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return SnapshotFile(name, path, status.st_size, status.st_mtime_ns // 1_000_000)
