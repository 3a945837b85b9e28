"""The programs of ours that a host should start, by absolute paths that survive an upgrade.

A program that pipx, `uv tool` or a virtual environment installed is. One in the cache of uvx or `pipx run` goes with
that cache; there, two small programs in the user's data directory run the tool again. For a hook, that would take a
second of each prompt (uvx asks the registry), so its program is taken from the cache for as long as it is there.
"""

import json
import os
import shlex
import shutil
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final

from kalito_mcp.errors import ConfigurationError
from kalito_mcp.hosts.facts import Launcher

_SERVER: Final = "kalito-mcp"
_HOOK: Final = "kalito-hook"
_IS_WINDOWS: Final = sys.platform == "win32"
# Parts of the paths of environments that are made for one run.
_CACHES: Final = ("archive-v0", "environments-v2", ".tmp")
_EXECUTABLE: Final = 0o755
_BEGINNINGS: Final = (b"@", b"#!/bin/sh\nexec ", b"#!/bin/sh\n[ -x ")
"""How the small programs begin."""


@dataclass(frozen=True, slots=True)
class Found:
    """The programs, and the files that must be written for them first, by path."""

    launcher: Launcher
    files: dict[Path, str]


def find_launcher(data_folder: Path) -> Found:
    """The programs of this installation. Writes nothing.

    Raises:
        ConfigurationError: they are not installed, only imported.
    """
    programs = {name: _program(name) for name in (_SERVER, _HOOK)}
    server = programs[_SERVER]
    if server is None:
        raise ConfigurationError(
            f"the program {_SERVER} is not installed next to {sys.executable}; "
            "install the package with pipx, uv tool or pip, and run it from there"
        )
    hook = programs[_HOOK]
    if not is_passing(server):
        return Found(Launcher(str(server), str(hook) if hook else None, _IS_WINDOWS), {})
    files = {data_folder / "bin" / _file_name(name): _script(name, hook) for name in (_SERVER, _HOOK)}
    paths = [str(path) for path in files]
    return Found(Launcher(paths[0], paths[1] if hook else None, _IS_WINDOWS), files)


def is_passing(program: Path) -> bool:
    """Whether the program is in a cache, or in a temporary folder, from which it may go at any time."""
    parts = Path(os.path.realpath(program)).parts
    cache = os.environ.get("UV_CACHE_DIR")
    return (
        any(part in _CACHES for part in parts)
        or ("pipx" in parts and ".cache" in parts)
        or (cache is not None and Path(os.path.realpath(program)).is_relative_to(os.path.realpath(cache)))
    )


def write_scripts(found: Found) -> None:
    """Write the small programs, if any are needed. Raises ConfigurationError if they cannot be written."""
    for path, text in found.files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\r\n" if _IS_WINDOWS else "\n")
            path.chmod(_EXECUTABLE)
        except OSError as error:
            raise ConfigurationError(f"cannot write {path}: {error.strerror}; no host was changed") from error


def written_scripts(data_folder: Path) -> list[Path]:
    """The small programs that `write_scripts` has written. Another program of their names is not among them."""
    paths = [data_folder / "bin" / _file_name(name) for name in (_SERVER, _HOOK)]
    return [path for path in paths if path.is_file() and not path.is_symlink() and _is_script(path)]


def _is_script(path: Path) -> bool:
    try:
        return path.read_bytes().startswith(_BEGINNINGS)
    except OSError:
        return False


def _program(name: str) -> Path | None:
    """The program of this installation: as it is on the PATH, which is the stable name, or next to Python."""
    own = Path(sys.executable).with_name(name + (".exe" if _IS_WINDOWS else ""))
    on_path = shutil.which(name)
    if on_path and (not own.exists() or os.path.realpath(on_path) == os.path.realpath(own)):
        return Path(on_path).absolute()
    return own.absolute() if own.exists() else None


def _file_name(name: str) -> str:
    return f"{name}.cmd" if _IS_WINDOWS else name


def _script(name: str, hook: Path | None) -> str:
    """A program that runs the tool again as it was run now. A hook that cannot be run says nothing and succeeds.

    `hook` is the program of the hook in the cache.
    """
    uv = shutil.which("uv") or os.environ.get("UV")
    runner = [uv, "tool", "run", "--from"] if uv else [shutil.which("pipx") or "pipx", "run", "--spec"]
    words = [*runner, _origin(), name]
    is_hook = name == _HOOK
    if _IS_WINDOWS:
        line = " ".join(f'"{word}"' for word in words)
        if not is_hook:
            return f"@{line} %*\n"
        return f'@if exist "{hook}" "{hook}" %* 2>nul && exit /b 0\n@{line} %* 2>nul\n@exit /b 0\n'
    line = shlex.join(str(word) for word in words)
    if not is_hook:
        return f'#!/bin/sh\nexec {line} "$@"\n'
    cached = shlex.quote(str(hook))
    return f'#!/bin/sh\n[ -x {cached} ] && {cached} "$@" 2>/dev/null && exit 0\n{line} "$@" 2>/dev/null\nexit 0\n'


def _origin() -> str:
    """Where this installation came from: its name, or the address or folder that it was installed from (PEP 610)."""
    try:
        direct = metadata.distribution(_SERVER).read_text("direct_url.json")
        said = json.loads(direct) if direct else {}
    except (metadata.PackageNotFoundError, ValueError):
        return _SERVER
    if not isinstance(said, dict) or not isinstance(said.get("url"), str):
        return _SERVER
    source = said.get("vcs_info")
    return f"{source['vcs']}+{said['url']}" if isinstance(source, dict) and "vcs" in source else said["url"]
