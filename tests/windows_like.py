"""Makes this process as much like one on Windows as a process elsewhere can be.

What Windows does not have is taken away: modules and functions of POSIX. Locks of Linux stand in for `msvcrt`: they
belong to a handle, as those of Windows do. sys.platform says win32. What stays as it is: os.name, because pathlib would
make paths of Windows, and what libraries loaded before.

    python -m tests.windows_like serve               runs kalito-mcp
    python -m tests.windows_like --hook HOST EVENT   runs kalito-hook
    python -m tests.windows_like --import            imports every module of the package, and names those it could not
"""

import errno
import fcntl
import importlib
import importlib.util
import os
import pkgutil
import select
import signal
import socket
import struct
import sys
import sysconfig
from types import ModuleType
from typing import Final

POSIX_MODULES: Final = ("fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty")
POSIX_OS: Final = (
    *("chown", "fchmod", "fchown", "fork", "getegid", "geteuid", "getgid", "getpgid", "getuid", "killpg", "mkfifo"),
    *("pread", "pwrite", "setsid", "statvfs", "sysconf", "uname", "O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW"),
)
POSIX_SIGNALS: Final = ("SIGHUP", "SIGKILL", "SIGUSR1", "SIGUSR2", "SIGALRM")
LIBRARIES: Final = (
    *("aiosqlite", "anyio._backends._asyncio", "asyncio", "click", "multiprocessing", "numpy", "socket", "sqlite3"),
    *("subprocess", "tempfile"),
)
LIBRARIES_OF_A_SERVER: Final = (
    *("httpx2", "mcp.server.mcpserver", "mcp.server.stdio", "pydantic", "sse_starlette", "uvicorn", "uvicorn.server"),
    *("uvicorn.protocols.http.h11_impl", "uvicorn.lifespan.on", "uvicorn.loops.asyncio"),
)


class Msvcrt(ModuleType):
    """Locks on ranges of bytes from the current position on. A range need not be in the file."""

    LK_UNLCK, LK_LOCK, LK_NBLCK = 0, 1, 2

    def __init__(self) -> None:
        super().__init__("msvcrt")
        self.locked_from: set[int] = set()

    def locking(self, descriptor: int, mode: int, count: int) -> None:
        """Lock `count` bytes at once, or raise PermissionError."""
        assert mode == self.LK_NBLCK, "only that one does not wait"
        start = os.lseek(descriptor, 0, os.SEEK_CUR)
        self.locked_from.add(start)
        wanted = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, start, count, 0)
        try:
            fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, wanted)
        except BlockingIOError as error:
            raise PermissionError(errno.EACCES, "Permission denied") from error


def mutex_of_windows() -> tuple[ModuleType, Msvcrt]:
    """The module of the write mutex once more, as Windows loads it, and the locks that it uses."""
    locks, platform, files = Msvcrt(), sys.platform, sys.modules.get("kalito_mcp.files")
    sys.platform, sys.modules["msvcrt"] = "win32", locks
    try:
        sys.modules["kalito_mcp.files"] = _loaded_again("kalito_mcp.files")
        module = _loaded_again("kalito_mcp.storage.sqlite.mutex")
    finally:
        sys.platform = platform
        del sys.modules["msvcrt"], sys.modules["kalito_mcp.files"]
        if files is not None:
            sys.modules["kalito_mcp.files"] = files
    return module, locks


def _loaded_again(name: str) -> ModuleType:
    found = importlib.util.find_spec(name)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def become_like_windows(libraries: tuple[str, ...] = LIBRARIES) -> None:
    """Change this process for good. The libraries are loaded before, because they are not what is tested."""
    for name in libraries:
        importlib.import_module(name)
    sysconfig.get_config_vars()  # it reads them from a file that is named by the platform
    sys.platform = "win32"
    sys.modules["msvcrt"] = Msvcrt()
    # Nobody else may listen at our port: what Linux does without being asked. anyio asks for it on Windows.
    socket.SO_EXCLUSIVEADDRUSE = socket.SO_KEEPALIVE
    for name in POSIX_MODULES:
        sys.modules[name] = None  # type: ignore[assignment]  # an import of it fails
    for place, names in ((os, POSIX_OS), (signal, POSIX_SIGNALS), (select, ("poll",))):
        for name in names:
            if hasattr(place, name):
                delattr(place, name)


def import_everything() -> list[str]:
    """The modules that cannot be imported, with the reason."""
    package = importlib.import_module("kalito_mcp")
    failed = []
    for module in pkgutil.walk_packages(package.__path__, "kalito_mcp."):
        if not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except Exception as error:
                failed.append(f"{module.name}: {error!r}")
    return failed


def main() -> None:
    """Run what the arguments say."""
    is_server = sys.argv[1] in ("serve", "--import")
    become_like_windows(LIBRARIES + LIBRARIES_OF_A_SERVER if is_server else LIBRARIES)
    if sys.argv[1] == "--import":
        print("\n".join(import_everything()))
    elif sys.argv[1] == "--hook":
        del sys.argv[1]
        hook = importlib.import_module("kalito_mcp.cli.hook")
        # It may have used up its time by now: the libraries above are none that it loads.
        hook.MOST_WAIT_S = 30.0
        hook.main()
    else:
        importlib.import_module("kalito_mcp.cli.main").main()


if __name__ == "__main__":
    main()
