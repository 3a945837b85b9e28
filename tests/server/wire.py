"""A server on two pipes. Tests write bytes to it that no client library would send."""

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.server.prepared import start

_SETTINGS = str(Path(__file__).parents[1] / "words_only.toml")
PATIENCE_S = 30.0
"""The longest wait for an answer on a busy machine. Only a failure waits that long."""

COVERED = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}
"""For a process that covers code which no other test runs. Then it is no fork, and starts slowly.

A killed process saves no coverage.
"""

MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "wire", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def clean_environment(**variables: str) -> dict[str, str]:
    """The environment with these variables, but without a memory, a session, an embedder or coverage. Days are of UTC,
    and the folder that the tests run in is no project."""
    left_out = ("KALITO_", "CLAUDE", "COVERAGE_")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    return (
        inherited | {"KALITO_CONFIG": _SETTINGS, "KALITO_PROJECT": "personal", "KALITO_MEMORY_ZONE": "UTC"} | variables
    )


def line(message: Any) -> bytes:
    """A message as a line of bytes."""
    return json.dumps(message).encode() + b"\n"


def request(number: int | str, method: str, **params: Any) -> bytes:
    """A request of the 2026 protocol, which needs no handshake."""
    return line({"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, "_meta": MODERN}})


def call(number: int | str, tool: str, **arguments: Any) -> bytes:
    """A tool call."""
    return request(number, "tools/call", name=tool, arguments=arguments)


class Wire:
    """The two ends of one server's pipes, and its output so far."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self.lines: list[bytes] = []
        self._rest = b""

    def send(self, *messages: bytes) -> None:
        """Write all of it in one write."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"".join(messages))
        self.process.stdin.flush()

    def close_stdin(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def answer(self, number: int | str) -> dict[str, Any]:
        """The next answer with this id. Earlier messages stay in `lines`."""
        for message in self._messages():
            if message.get("id") == number:
                return message
        raise AssertionError(f"stdout ended without an answer to {number!r}")

    def rest(self) -> list[dict[str, Any]]:
        """Everything up to the end of stdout."""
        return list(self._messages())

    def parsed(self) -> list[dict[str, Any]]:
        """Everything that was read so far."""
        return [json.loads(one) for one in self.lines]

    def exit_code(self) -> int:
        return self.process.wait(PATIENCE_S)

    def _messages(self) -> Iterator[dict[str, Any]]:
        assert self.process.stdout is not None
        deadline = time.monotonic() + PATIENCE_S
        while True:
            while b"\n" in self._rest:
                one, _, self._rest = self._rest.partition(b"\n")
                self.lines.append(one)
                yield json.loads(one)
            readable, _, _ = select.select([self.process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not readable:
                raise AssertionError(f"no answer in {PATIENCE_S} s; so far: {self.lines[-3:]}")
            chunk = os.read(self.process.stdout.fileno(), 1 << 20)
            if not chunk:
                assert not self._rest, f"stdout ended inside a line: {self._rest[:200]!r}"
                return
            self._rest += chunk


@contextmanager
def served(database: Path, *, code: str = "", is_fresh: bool = False, **environment: str) -> Iterator[Wire]:
    """Start `kalito-mcp serve` on pipes.

    `code` runs before it in the same process. With `is_fresh` it is a Python of its own, which has imported nothing.
    Its stderr goes to a file next to the database.
    """
    serving = "import sys; sys.argv = ['kalito-mcp', 'serve']\nfrom kalito_mcp.cli.main import main\nmain()"
    is_covered = COVERED and COVERED.items() <= environment.items()
    with database.with_suffix(".stderr").open("wb") as stderr:
        process = start(
            [sys.executable, "-c", f"{code}\n{serving}"],
            is_fresh=is_fresh,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=clean_environment(**{"KALITO_DATABASE": str(database), **environment}),
        )
    try:
        yield Wire(process)
    finally:
        if is_covered:
            assert process.stdin is not None
            with suppress(OSError, subprocess.TimeoutExpired):
                process.stdin.close()
                process.wait(PATIENCE_S)
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
