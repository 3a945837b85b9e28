"""Two machines: a home with `kalito-mcp serve --transport http`, and others that are connected to it.

Between them stands a gate, as a reverse proxy does: it asks for the token, can be closed, and can lose an answer.
"""

import http.client
import json
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from kalito_mcp.bridge.connection import connection_to, write_connection
from kalito_mcp.bridge.outbox import Outbox
from kalito_mcp.runtime.database_address import LocalFiles
from tests.server import prepared
from tests.server.web import web
from tests.server.wire import COVERED, PATIENCE_S, Wire, call, clean_environment, served

TOKEN = "kal_" + "x7Gq2" * 6


@dataclass
class Gate:
    """What stands before the home. `home` is the port behind it; None while the home is gone."""

    url: str
    home: int | None = None
    token: str = TOKEN
    loses: list[str] = field(default_factory=list)
    """Tools whose next answer is lost on the way, one each."""
    answers: dict[str, tuple[int, dict[str, str], bytes]] = field(default_factory=dict)
    """What is answered instead, by the tool, by the method of the request or `*`. `"id": 1` becomes the request's."""
    next: list[tuple[int, dict[str, str], bytes] | None] = field(default_factory=list)
    """What the next requests are answered instead, one each; None: as usual."""
    holds: dict[str, threading.Event] = field(default_factory=dict)
    """Tools whose answers wait until the event is set."""
    seen: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    """The requests: JSON-RPC method or name of the tool, and headers."""
    given: list[dict[str, Any]] = field(default_factory=list)
    """The arguments of the tools' calls that got an answer from `answers`."""


@contextmanager
def gate() -> Iterator[Gate]:
    """A gate on a free port of this machine, open until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            asked = json.loads(body)
            name = asked["params"].get("name", asked["method"])
            opened.seen.append((name, {key.lower(): value for key, value in self.headers.items()}))
            if name in opened.holds:
                assert opened.holds[name].wait(PATIENCE_S)
            known = (opened.answers.get(one) for one in (name, asked["method"], "*"))
            instead = opened.next.pop(0) if opened.next else None
            said = instead or next(filter(None, known), None)
            if said is not None:
                status, headers, content = said
                said = status, headers, content.replace(b'"id": 1,', f'"id": {asked["id"]},'.encode())
                if instead is None:
                    opened.given.append(asked["params"].get("arguments", {}))
                self._answer(*said)
            elif self.headers.get("Authorization") != f"Bearer {opened.token}":
                self._answer(401, {"WWW-Authenticate": "Bearer"}, b"no")
            elif opened.home is None:
                self._answer(503, {"Retry-After": "0"}, b"gone")
            else:
                self._forward(body, name)

        def _forward(self, body: bytes, name: str) -> None:
            given = {key: value for key, value in self.headers.items() if key.lower() not in ("host", "content-length")}
            assert opened.home is not None
            behind = http.client.HTTPConnection("127.0.0.1", opened.home, timeout=PATIENCE_S)
            try:
                behind.request("POST", "/mcp", body, given)
                found = behind.getresponse()
                content, kind = found.read(), found.getheader("Content-Type", "")
            except (OSError, http.client.HTTPException):
                self._answer(502, {}, b"gone")
                return
            finally:
                behind.close()
            if name in opened.loses:
                opened.loses.remove(name)
                self.close_connection = True
                return
            self._answer(found.status, {"Content-Type": kind}, content)

        def _answer(self, status: int, headers: dict[str, str], content: bytes) -> None:
            self.send_response(status)
            for key, value in headers.items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as in the library
            del format, args

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """A bridge that was killed or did not wait has left: nothing to tell."""

    server = Server(("127.0.0.1", 0), Handler)
    opened = Gate(f"http://127.0.0.1:{server.server_address[1]}/mcp")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield opened
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def home_behind(opened: Gate, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The home server, reached through the gate until the block ends. The memory stays in the folder."""
    folder.mkdir(exist_ok=True)
    with web("http", folder / "memory.db") as running:
        opened.home = int(running.url.split(":")[2].partition("/")[0])
        try:
            yield running.process
        finally:
            opened.home = None


def connected(folder: Path, url: str, token: str = TOKEN) -> Path:
    """The database of a machine whose memory is at that address."""
    folder.mkdir(exist_ok=True)
    write_connection(LocalFiles(folder / "memory.db").home, connection_to(url), token)
    return folder / "memory.db"


@contextmanager
def bridge(folder: Path, url: str, *, is_covered: bool = False, **environment: str) -> Iterator[Wire]:
    """A host's server on a machine that is connected. With `is_covered` it covers code that no other test runs."""
    if is_covered:
        environment |= COVERED
    with served(connected(folder, url), **environment) as wire:
        yield wire


def outbox_of(folder: Path) -> Outbox:
    return Outbox(folder / "memory.db.home")


def until(is_done: Callable[[], bool], what: str) -> None:
    """Wait for what another process does."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_done():
        assert time.monotonic() < deadline, f"not within {PATIENCE_S} s: {what}"
        time.sleep(0.02)


def delivered(folder: Path) -> None:
    """Wait until nothing waits for the home."""
    until(lambda: outbox_of(folder).count() == 0, "the outbox is empty")


def texts_at(home: Path, kind: str = "message") -> list[str]:
    """What the home has stored, in the order of the sessions and their numbers."""
    with closing(sqlite3.connect(f"file:{home / 'memory.db'}?mode=ro", uri=True)) as found:
        rows = found.execute(
            "SELECT text FROM records WHERE type = ? AND deleted_at IS NULL ORDER BY session_key, seq, rowid", (kind,)
        )
        return [row[0] for row in rows]


def said(wire: Wire, number: int, tool: str, **arguments: Any) -> dict[str, Any]:
    """The result of a tool's call."""
    wire.send(call(number, tool, **arguments))
    answer = wire.answer(number)
    assert "result" in answer, answer
    result: dict[str, Any] = answer["result"]
    return result


def text_of(result: dict[str, Any]) -> str:
    return str(result["content"][0]["text"])


def turn(number: int) -> list[dict[str, str]]:
    """What is said in one turn."""
    return [
        {"role": "user", "text": f"question {number}"},
        {"role": "assistant", "text": f"answer {number}"},
    ]


def turns(numbers: range) -> list[str]:
    """The texts of those turns."""
    return [message["text"] for number in numbers for message in turn(number)]


def named(result: dict[str, Any], name: str = "kalito-mcp") -> dict[str, Any]:
    """A result that names the server that gave it, as every result of the 2026-07-28 protocol does."""
    return {**result, "_meta": {"io.modelcontextprotocol/serverInfo": {"name": name, "version": "1"}}}


def closed_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def hook(folder: Path, host: str, event: str, payload: dict[str, Any]) -> str:
    """What the program of a hook prints on a machine."""
    ended = prepared.run(
        [sys.executable, "-c", "from kalito_mcp.cli.hook import main; main()", host, event],
        input=json.dumps(payload).encode(),
        capture_output=True,
        env=clean_environment(KALITO_DATABASE=str(folder / "memory.db")),
        check=True,
    )
    return str(ended.stdout.decode())


def made_at(home: Path, permission: str) -> str:
    """A token that was made on the home machine."""
    command = [sys.executable, "-m", "kalito_mcp", "token", "create", "laptop", "--permission", permission]
    environment = clean_environment(KALITO_DATABASE=str(home / "memory.db"))
    return str(prepared.run(command, capture_output=True, env=environment, check=True).stdout.decode().strip())
