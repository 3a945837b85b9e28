"""Processes of Python that start at once.

Nearly all of the second that a process of ours takes to start goes to imports. One process for each process of pytest
does them once; what `start` and `run` start is a fork of it, with an environment, a folder, files and threads of its
own. To test how a command starts, use `subprocess`.
"""

import atexit
import gc
import json
import os
import runpy
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from tests.meaning_package import MEANING, hide

ROOT: Final = Path(__file__).parents[2]
_MOST_BYTES: Final = 1 << 17
_IMPORTED: Final = """
import anyio._backends._asyncio, concurrent.futures.thread, numpy, rich.logging, tomllib
import kalito_mcp.cli.commands, kalito_mcp.cli.main, kalito_mcp.cli.serve, kalito_mcp.exchange.archive
import kalito_mcp.server.build, kalito_mcp.server.http_server, kalito_mcp.server.stdio, kalito_mcp.server.telemetry
import kalito_mcp.server.web_app, kalito_mcp.capture.listener, kalito_mcp.wiring
for row in kalito_mcp.server.build.TOOLS:
    row.as_sdk_tool()
"""


class _Source:
    """The process that has imported everything."""

    def __init__(self) -> None:
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", f"{_IMPORTED}\nfrom tests.server.prepared import fork\nfork({theirs.fileno()})"],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env={name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")},
            )
        atexit.register(self._end)

    def start(self, arguments: Sequence[str], environment: Mapping[str, str], folder: str, files: Sequence[int]) -> int:
        """The id of a process that was started."""
        asked = json.dumps({"arguments": arguments, "environment": dict(environment), "folder": folder})
        with self._lock:
            socket.send_fds(self._line, [asked.encode()], files)
            return int(json.loads(self._line.recv(_MOST_BYTES)))

    def exit_code(self, pid: int) -> int:
        """Of a process that has ended."""
        with self._lock:
            self._line.send(str(pid).encode())
            return int(json.loads(self._line.recv(_MOST_BYTES)))

    def _end(self) -> None:
        self._line.close()
        self._process.wait()


@cache
def _source() -> _Source:
    return _Source()


class _Fork(subprocess.Popen[Any]):
    """`subprocess.Popen`, except that the child is the source's."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._ended = -1
        self._looking = threading.Lock()
        super().__init__(*args, **options)

    def _execute_child(self, args: Sequence[str], *rest: Any) -> None:
        _executable, _before, _close_fds, _pass_fds, cwd, env, _info, _flags, _shell, *pipes = rest[:15]
        mine = (pipes[0], pipes[3], pipes[5])
        files = [descriptor if descriptor != -1 else number for number, descriptor in enumerate(mine)]
        folder = str(cwd or Path.cwd())
        self.pid = _source().start(args[1:], os.environ if env is None else env, folder, files)
        self._child_created = True
        self._ended = os.pidfd_open(self.pid)
        self._close_pipe_fds(*pipes[:6])

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        return self._look(0)

    def _wait(self, timeout: float | None) -> int:
        code = self._look(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return code

    def _look(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._ended], [], [], timeout)[0]:
            with self._looking:  # a thread may wait while another one asks
                if self.returncode is None:
                    self.returncode = _source().exit_code(self.pid)
        return self.returncode

    def __exit__(self, *raised: Any) -> None:
        super().__exit__(*raised)
        self._close_ended()

    def __del__(self, *rest: Any, **more: Any) -> None:
        super().__del__(*rest, **more)
        self._close_ended()

    def _close_ended(self) -> None:
        if self.returncode is not None and self._ended >= 0:
            os.close(self._ended)
            self._ended = -1


def start(command: Sequence[str], *, is_fresh: bool = False, **options: Any) -> "subprocess.Popen[Any]":
    """As `subprocess.Popen`, for a command that is `sys.executable` with `-m` and a module, `-c` and code, or a file.

    With `is_fresh`, or with coverage in its environment, it is a Python of its own, which has imported nothing.
    """
    environment = options.get("env") or os.environ
    is_fresh = is_fresh or sys.platform != "linux" or any(name.startswith("COVERAGE_") for name in environment)
    return (subprocess.Popen if is_fresh else _Fork)(list(command), **options)


def run(
    command: Sequence[str],
    *,
    input: Any = None,  # noqa: A002 - as in the library
    capture_output: bool = False,
    timeout: float | None = None,
    check: bool = False,
    **options: Any,
) -> "subprocess.CompletedProcess[Any]":
    """As `subprocess.run`, for the commands of `start`."""
    if input is not None:
        options["stdin"] = subprocess.PIPE
    if capture_output:
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with start(command, **options) as process:
        try:
            out, err = process.communicate(input, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    ended = subprocess.CompletedProcess(command, process.returncode, out, err)
    if check:
        ended.check_returncode()
    return ended


def fork(descriptor: int) -> None:
    """Fork for each request, until the line is closed. Runs in the process that has imported everything."""
    line = socket.socket(fileno=descriptor)
    gc.collect()
    gc.freeze()  # or each collection of a fork would copy all that it shares
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


def _run(first: str, *rest: str) -> None:
    """What Python does with these arguments."""
    if first == "-m":
        sys.argv = list(rest)
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.argv = ["-c", *rest[1:]]
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})  # noqa: S102 - it was asked for
    else:
        sys.argv = [first, *rest]
        runpy.run_path(first, run_name="__main__")


def _become(arguments: Sequence[str], environment: Mapping[str, str], folder: str, files: Sequence[int]) -> None:
    """Be that process, from its start to its end."""
    code = 1
    try:
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        os.environ.clear()
        os.environ.update(environment)
        if not MEANING.items() <= environment.items():
            hide()
        time.tzset()
        os.chdir(folder)
        try:
            _run(*arguments)
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        threading._shutdown()  # type: ignore[attr-defined]  # as at the end of Python, but without its last second
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]  # there is one
    finally:
        os._exit(code)
