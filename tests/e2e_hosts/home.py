"""An empty home with a host and kalito in it: runs their programs, and reads what is in the memory."""

import fcntl
import json
import os
import pty
import struct
import subprocess
import termios
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_MOST_S: Final = 60.0
_LOOK_S: Final = 0.05
_WIDE: Final = 4_000
"""So many columns that no program wraps its lines."""
_KEPT: Final = ("LANG", "TERM", "TMPDIR")


@dataclass(frozen=True, slots=True)
class Done:
    """How a program ended. `said` is its stdout and stderr."""

    code: int
    said: str


class Home:
    """The home of a user, and a project of theirs. `programs` are the folders on the PATH."""

    def __init__(self, folder: Path, programs: tuple[Path, ...], environment: Mapping[str, str]) -> None:
        self.folder = folder
        self.project = folder / "shop"
        self.project.mkdir(parents=True)
        self.data = folder / ".local" / "share" / "kalito"
        path = os.pathsep.join([*map(str, programs), os.environ.get("PATH", os.defpath)])
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        self._environment = {**kept, "HOME": str(folder), "PATH": path, **environment}

    def run(self, *words: str, typed: str = "", folder: Path | None = None) -> Done:
        """Run a program in a folder, or else in the project, to its end. It reads what is typed, if anything."""
        try:
            done = subprocess.run(
                words,
                cwd=folder or self.project,
                env=self._environment,
                input=typed.encode(),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=_MOST_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            said = (error.stdout or b"").decode(errors="replace")
            return Done(-1, f"did not end in {_MOST_S:.0f} s\n{said}")
        return Done(done.returncode, done.stdout.decode(errors="replace"))

    @contextmanager
    def on_terminal(self, *words: str) -> Iterator[int]:
        """Start a program in the project on a terminal of its own; the other end of the terminal."""
        ours, its = pty.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 50, _WIDE, 0, 0))
        process = subprocess.Popen(words, cwd=self.project, env=self._environment, stdin=its, stdout=its, stderr=its)
        os.close(its)
        try:
            yield ours
        finally:
            process.kill()
            process.wait(_MOST_S)
            os.close(ours)

    def kalito(self, *words: str) -> str:
        """What `kalito-mcp` prints. AssertionError if it fails."""
        done = self.run("kalito-mcp", *words)
        assert done.code == 0, f"kalito-mcp {' '.join(words)}: {done.said}"
        return done.said

    def write(self, files: Mapping[str, str]) -> None:
        """Write files, by path below the home."""
        for path, text in files.items():
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / path).write_text(text, encoding="utf-8")

    def files(self) -> dict[str, bytes]:
        """Every file of the home except the memory, by path."""
        return {
            path.relative_to(self.folder).as_posix(): path.read_bytes()
            for path in self.folder.rglob("*")
            if path.is_file() and not path.is_symlink() and not path.is_relative_to(self.data)
        }

    @contextmanager
    def another_window(self) -> Iterator[None]:
        """A server as another window of a host has it: it listens, and has taken in what was spooled."""
        server = subprocess.Popen(
            ["kalito-mcp", "serve"],
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            self._wait_until_heard(server.pid)
            yield
            self._wait_until_heard(server.pid)
        finally:
            if server.stdin is not None:
                server.stdin.close()
            server.wait(_MOST_S)

    def records(self) -> Counter[tuple[str, str, str]]:
        """How often each text is in the memory, by type, role and text. What is in the spool is taken in first."""
        if not self.data.exists():
            return Counter()
        if not self.is_heard():
            with self.another_window():
                pass
        archive = self.folder / "archive.jsonl"
        self.kalito("export", str(archive))
        lines = [json.loads(line) for line in archive.read_text(encoding="utf-8").splitlines()]
        archive.unlink()
        rows = (line["row"] for line in lines if line.get("table") == "records")
        return Counter((row["type"], row["role"] or "", row["text"]) for row in rows if row["deleted_at"] is None)

    def is_heard(self) -> bool:
        """Whether nothing is in the spool."""
        return not list(self.data.glob("memory.db.hooks/spool/*"))

    def is_written_anywhere(self, words: str) -> bool:
        """Whether any file of the memory holds the words."""
        return any(words.encode() in path.read_bytes() for path in self.data.rglob("*") if path.is_file())

    def _wait_until_heard(self, process: int) -> None:
        until = time.monotonic() + _MOST_S
        while not (self.data / "memory.db.hooks" / f"server-{process}.json").exists() or not self.is_heard():
            assert time.monotonic() < until, "no server took in what is in the spool"
            time.sleep(_LOOK_S)
