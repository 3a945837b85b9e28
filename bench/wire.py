"""Server processes on pipes: for the SDK's client, or driven by raw JSON-RPC lines, which measures no client.

The raw protocol is 2025-11-25. Every server supports its handshake.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from bench.report import ROOT

if TYPE_CHECKING:
    from mcp.client import Transport

PROTOCOL: Final = "2025-11-25"
_LAST_WAIT_S: Final = 10.0
_EMPTY_CONFIGURATION: Final = "empty.toml"
_LEFT_OUT: Final = ("KALITO_", "CLAUDE")
_EMBEDDER: Final = "KALITO_MODELS_EMBEDDER"


class ServerGone(Exception):
    """The server closed its pipe before it answered."""


def memory_command(database: Path | str) -> list[str]:
    """The command line of a memory server. The database is a file or a URL."""
    return [sys.executable, "-m", "kalito_mcp", "serve", "--database", str(database)]


def echo_command() -> list[str]:
    """The command line of the plain server that memory servers are compared with."""
    return [sys.executable, "-m", "bench.echo_server"]


def clean_environment(folder: Path) -> dict[str, str]:
    """The environment of this process without the settings of a memory, except for the choice of an embedder. `folder`
    gets an empty configuration."""
    configuration = folder / _EMPTY_CONFIGURATION
    configuration.touch()
    kept = {name: value for name, value in os.environ.items() if name == _EMBEDDER or not name.startswith(_LEFT_OUT)}
    return {**kept, "KALITO_CONFIG": str(configuration)}


@contextmanager
def sdk_transport(command: list[str], environment: Mapping[str, str]) -> Iterator["Transport"]:
    """The transport of the SDK's client: a server of its own, whose stderr is dropped."""
    from mcp import StdioServerParameters  # noqa: PLC0415 - importing mcp takes a second
    from mcp.client.stdio import stdio_client  # noqa: PLC0415

    server = StdioServerParameters(command=command[0], args=command[1:], env=dict(environment), cwd=ROOT)
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        yield stdio_client(server, errlog=nowhere)


class WireServer:
    """One server process, started at once. Entering the block shakes hands; leaving it closes its stdin and waits.

    Its stderr is appended to `log`, or dropped. Make one request at a time, from one thread. Any thread may `kill`.
    """

    def __init__(self, command: list[str], environment: Mapping[str, str], log: Path | None = None) -> None:
        with (log or Path(os.devnull)).open("ab") as errors:
            self._child = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=environment, cwd=ROOT
            )
        self._next_id = 0

    def __enter__(self) -> Self:
        self.shake_hands()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def process_id(self) -> int:
        """The process id of the server."""
        return self._child.pid

    def shake_hands(self) -> None:
        """Initialize, and wait for the answer."""
        client = {"name": "bench", "version": "1"}
        self.request("initialize", {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client})
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The result of one request.

        Raises:
            ServerGone: the server died before it answered.
            RuntimeError: the server answered with an error, which is the message.
        """
        self._next_id += 1
        self._write({"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": params or {}})
        return self._answer(self._next_id)

    def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The result of one tool call.

        Raises:
            ServerGone: the server died before it answered.
            RuntimeError: the server answered with an error, or the tool refused the call.
        """
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            raise RuntimeError(f"{tool}: {result['content'][0]['text']}")
        return result

    def kill(self) -> None:
        """SIGKILL the server. It gets no chance to clean up."""
        self._child.kill()

    def close(self) -> None:
        """Close stdin, which ends a server, and wait for its end. Kills a server that hangs."""
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    continue  # unwritten data for a dead server
        try:
            self._child.wait(_LAST_WAIT_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()

    def _write(self, message: Mapping[str, Any]) -> None:
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(json.dumps(message).encode() + b"\n")
            self._child.stdin.flush()
        except OSError as error:
            raise ServerGone from error

    def _answer(self, request_id: int) -> dict[str, Any]:
        assert self._child.stdout is not None
        while line := self._child.stdout.readline():
            if not line.endswith(b"\n"):
                break  # the server was killed within a line
            message = json.loads(line)
            if message.get("id") != request_id:
                continue
            if "error" in message:
                raise RuntimeError(str(message["error"]))
            return dict(message["result"])
        raise ServerGone
