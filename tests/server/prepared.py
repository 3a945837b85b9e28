"""Processes of a server that start at once.

Nearly all of the second that a server takes to start goes to imports. One process for each process of pytest does them
once, and every server is a fork of it, with an environment, files and threads of its own. Who tests how a server starts
uses `subprocess`.
"""

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from threading import Lock
from typing import IO, Final

_MOST_BYTES: Final = 1 << 17
_IMPORTED: Final = """
import kalito_mcp.cli.commands, kalito_mcp.cli.serve, kalito_mcp.exchange.archive, kalito_mcp.server.build
import kalito_mcp.server.http, kalito_mcp.server.web_app, kalito_mcp.wiring
"""


class PreparedProcess:
    """One fork, as far as it is like `subprocess.Popen`."""

    def __init__(self, source: "_Source", pid: int) -> None:
        self.pid = pid
        self.stdin: IO[bytes] | None = None
        self.stdout: IO[bytes] | None = None
        self.returncode: int | None = None
        self._source = source
        self._ended = os.pidfd_open(pid)

    def poll(self) -> int | None:
        """The exit code, or minus the signal; None while it runs."""
        return self._look(0)

    def wait(self, timeout: float | None = None) -> int:
        """As `poll`, at its end. Raises TimeoutExpired."""
        code = self._look(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(["kalito-mcp"], timeout or 0.0)
        return code

    def send_signal(self, sent: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, sent)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)

    def _look(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._ended], [], [], timeout)[0]:
            self.returncode = self._source.exit_code(self.pid)
            os.close(self._ended)
        return self.returncode


class _Source:
    """The process that has imported everything."""

    def __init__(self) -> None:
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = Lock()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", f"{_IMPORTED}\nfrom tests.server.prepared import fork\nfork({theirs.fileno()})"],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env={name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")},
            )
        atexit.register(self._end)

    def start(self, arguments: Sequence[str], environment: Mapping[str, str], files: Sequence[int]) -> PreparedProcess:
        told = json.dumps({"arguments": arguments, "environment": dict(environment), "folder": str(Path.cwd())})
        with self._lock:
            socket.send_fds(self._line, [told.encode()], files)
            return PreparedProcess(self, json.loads(self._line.recv(_MOST_BYTES)))

    def exit_code(self, pid: int) -> int:
        with self._lock:
            self._line.send(str(pid).encode())
            return int(json.loads(self._line.recv(_MOST_BYTES)))

    def _end(self) -> None:
        self._line.close()
        self._process.wait()


@cache
def _source() -> _Source:
    return _Source()


def start_prepared(
    arguments: Sequence[str], environment: Mapping[str, str], *, stdin: int, stdout: int, stderr: int
) -> PreparedProcess:
    """Start `kalito-mcp` with these arguments, this environment and these descriptors."""
    return _source().start(arguments, environment, [stdin, stdout, stderr])


def start_on_pipes(arguments: Sequence[str], environment: Mapping[str, str], *, stderr: int) -> PreparedProcess:
    """Start `kalito-mcp` with these arguments and this environment on two pipes, which are its `stdin` and `stdout`."""
    (reads, writing), (reading, writes) = os.pipe(), os.pipe()
    process = start_prepared(arguments, environment, stdin=reads, stdout=writes, stderr=stderr)
    os.close(reads)
    os.close(writes)
    process.stdin, process.stdout = os.fdopen(writing, "wb"), os.fdopen(reading, "rb")
    return process


def fork(descriptor: int) -> None:
    """Fork for each thing asked, until nobody asks any more. Runs in the process that has imported everything."""
    line = socket.socket(fileno=descriptor)
    while True:
        asked, files, _, _ = socket.recv_fds(line, _MOST_BYTES, 3)
        if not asked:
            return
        told = json.loads(asked)
        if isinstance(told, int):
            _, status = os.waitpid(told, 0)
            line.send(json.dumps(os.waitstatus_to_exitcode(status)).encode())
            continue
        pid = os.fork()
        if pid == 0:
            line.close()
            _become(told["arguments"], told["environment"], told["folder"], files)
        line.send(json.dumps(pid).encode())
        for file in files:
            os.close(file)


def _become(arguments: Sequence[str], environment: Mapping[str, str], folder: str, files: Sequence[int]) -> None:
    """Be the command, from its start to its end."""
    code = 1
    try:
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        sys.argv = ["kalito-mcp", *arguments]
        from kalito_mcp.cli.main import main  # noqa: PLC0415 - in the fork

        try:
            main()
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]  # there is one
    finally:
        os._exit(code)
