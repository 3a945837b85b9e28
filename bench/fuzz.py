"""What no client should send, and what every client may: 100,000 of each, to servers in processes of their own.

- `lines`: broken JSON-RPC lines over stdio. Each line whose id can be read is answered under that id;
- `bodies`: broken bodies over HTTP, with a token and without one. Each is answered, none with a status of 500 or more;
- `heads`: broken heads over HTTP: smuggled lengths, endless headers, no HTTP at all. None reaches the server's inside;
- `calls`: calls of all tools with arguments drawn from their schemas, some of them spoilt. None fails inside;
- `slow`: connections that stop in the middle, half-closed and dropped ones. All are given up.

A violation is an answer that is missing or wrong, a traceback in the log, or a process that has ended. The resident
memory grows by 20 MB at most after the first tenth of each part, and no more files are open at its end than then,
except for the connections that read the database, which are opened when they are first needed.
"""

import http.client
import itertools
import json
import queue
import random
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from bench.fuzz_inputs import HEADS, MODERN, call, damaged, message, tool_schemas
from bench.report import ROOT, emit, options, progress
from bench.wire import clean_environment, memory_command

_MOST_GROWN_MB: Final = 20.0
_THREADS: Final = 4
_READERS: Final = 5
_SLOW: Final = 200
_PATIENCE_S: Final = 60.0
_BATCH: Final = 200
_LIMITS: Final = {f"KALITO_HTTP_{name}_PER_MINUTE": "1000000000" for name in ("CALLS", "WRITES", "REFUSALS")}
# Its pages would look like memory that is never given back.
_NO_MODEL: Final = {"KALITO_MODELS_EMBEDDER": "none"}
_ALL_TOOLS: Final = {"KALITO_MEMORY_TOOL": "1", "KALITO_CHATGPT": "1"}
_PATHS: Final = ("/mcp/", "/", "/register", "/token", "/api/memory/pins", "/metrics", "/health/live")
_WELL: Final = (b"HTTP/1.1 4", b"HTTP/1.1 301", b"HTTP/1.1 303", b"HTTP/1.1 307")


@dataclass
class Part:
    """What one part did, and what was wrong with it."""

    sent: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    grown_mb: float = 0.0
    files_left: int = 0
    seconds: float = 0.0

    def wrong(self, what: str) -> None:
        """Note a violation."""
        self.violations.append(what[:300])

    def figures(self) -> dict[str, Any]:
        """As the benchmark reports it."""
        return {
            "sent": self.sent,
            "answers": dict(self.answers.most_common(8)),
            "violations": len(self.violations),
            "grown_mb": self.grown_mb,
            "files_left": self.files_left,
            "seconds": self.seconds,
        }


class Watch:
    """The memory and the files of a process."""

    def __init__(self, pid: int, part: Part) -> None:
        self._pid = pid
        self._part = part
        self._first_mb: float | None = None
        self._files = 0
        self._begun_s = time.monotonic()

    def files(self) -> int:
        """How many files it has open."""
        return sum(1 for _ in Path(f"/proc/{self._pid}/fd").iterdir())

    def mb(self) -> float:
        """Its resident memory."""
        status = Path(f"/proc/{self._pid}/status").read_text(encoding="ascii")
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def warm(self) -> None:
        """From here on it should grow no more."""
        if self._first_mb is None:
            self._first_mb, self._files = self.mb(), self.files()

    def end(self) -> None:
        """Note how it has grown."""
        deadline = time.monotonic() + _PATIENCE_S
        while self.files() > self._files + _READERS and time.monotonic() < deadline:
            time.sleep(0.05)
        part = self._part
        part.files_left = self.files() - self._files
        part.grown_mb = self.mb() - (self._first_mb or 0.0)
        part.seconds = time.monotonic() - self._begun_s
        if part.grown_mb > _MOST_GROWN_MB:
            part.wrong(f"grew by {part.grown_mb:.1f} MB")
        if part.files_left > _READERS:
            part.wrong(f"{part.files_left} files are left open")


def readable_id(raw: bytes) -> int | str | None:
    """The id under which a line has to be answered; None if it has none, or asks for nothing."""
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("method"), str):
        return None
    known = found.get("id")
    return known if isinstance(known, int | str) and not isinstance(known, bool) else None


@contextmanager
def serving(folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A server, and the file that its log goes to."""
    log = folder / "log"
    with log.open("wb") as stderr:
        server = subprocess.Popen(
            [*memory_command(folder / "memory.db"), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env={**clean_environment(folder), **_LIMITS, **_NO_MODEL, **_ALL_TOOLS},
            cwd=ROOT,
        )
        try:
            yield server, log
        finally:
            server.kill()
            server.wait()
            for pipe in (server.stdin, server.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()


def lines(size: int, schemas: Mapping[str, Any]) -> Part:
    """Broken lines over stdio."""
    part, rng = Part(), random.Random(1)
    numbers = itertools.count(1)
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as (server, log):
        assert server.stdin is not None
        assert server.stdout is not None
        read: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=_read_into, args=(server.stdout, read), daemon=True).start()
        watch: Watch | None = None
        while part.sent < size and server.poll() is None:
            batch = [
                damaged(rng, raw) if rng.random() < 0.8 else raw
                for raw in (json.dumps(message(rng, next(numbers), schemas)).encode() for _ in range(_BATCH))
            ]
            last = f"last-{part.sent}"
            sentinel = {"jsonrpc": "2.0", "id": last, "method": "ping", "params": {"_meta": MODERN}}
            wanted = Counter(map(_as_key, filter(None, map(readable_id, batch))))
            batch.append(json.dumps(sentinel).encode())
            try:
                server.stdin.write(b"".join(line + b"\n" for line in batch))
                server.stdin.flush()
            except BrokenPipeError:
                part.wrong("the server reads no more")
                break
            part.sent += _BATCH
            _take_answers(read, part, wanted, last)
            if part.sent >= size / 10:
                watch = watch or Watch(server.pid, part)
                watch.warm()
        _check(part, server, log)
        if watch is not None and server.poll() is None:
            watch.end()
    return part


def _read_into(stdout: IO[bytes], read: "queue.Queue[bytes]") -> None:
    for line in stdout:
        read.put(line)


def _take_answers(read: "queue.Queue[bytes]", part: Part, wanted: Counter[str], last: str) -> None:
    """Read until all that is wanted is answered, and the sentinel, which may overtake them."""
    wanted[_as_key(last)] += 1
    deadline = time.monotonic() + _PATIENCE_S
    while wanted.total() > 0:
        try:
            line = read.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            part.wrong(f"not answered: {[*wanted][:3]}")
            return
        try:
            answer = json.loads(line)
        except ValueError:
            part.wrong(f"no JSON on stdout: {line[:80]!r}")
            return
        part.answers["error" if "error" in answer else "result"] += 1
        text = str(answer.get("result", {}).get("content", ""))
        if "internal:" in text or answer.get("error", {}).get("code") == -32603:
            part.wrong(f"failed inside: {line[:200]!r}")
        key = _as_key(answer.get("id"))
        if wanted[key] > 1:
            wanted[key] -= 1
        else:
            del wanted[key]


def _as_key(message_id: object) -> str:
    return json.dumps(message_id)


class Client:
    """One connection over HTTP, which is opened again when the server has closed it."""

    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Authorization": f"Bearer {token}",
            "MCP-Protocol-Version": "2026-07-28",
        }
        self._connection = self._open()

    def post(self, body: bytes, path: str = "/mcp", **headers: str) -> tuple[int, Mapping[str, str], bytes]:
        """The status, the headers and the body of an answer."""
        for _ in range(2):
            try:
                self._connection.request("POST", path, body, {**self._headers, **headers})
                answer = self._connection.getresponse()
                found = {name.lower(): value for name, value in answer.getheaders()}
                read = answer.read()
            except (OSError, http.client.HTTPException):
                self._connection.close()
                self._connection = self._open()
            else:
                if found.get("connection") == "close":
                    self._connection.close()
                    self._connection = self._open()
                return answer.status, found, read
        return 0, {}, b""

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _open(self) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=_PATIENCE_S)
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection


def bodies(size: int, port: int, token: str, pid: int, schemas: Mapping[str, Any]) -> Part:
    """Broken bodies over HTTP."""
    numbers = itertools.count(1)

    def send(client: Client, rng: random.Random, part: Part) -> None:
        said = message(rng, next(numbers), schemas)
        raw = json.dumps(said).encode()
        odd: dict[str, str] = {}
        if rng.random() < 0.7:
            params = said["params"] if isinstance(said.get("params"), dict) else {}
            odd = {"Mcp-Method": _header(said.get("method"))}
            odd["Mcp-Name"] = _header(params.get("uri") or params.get("name"))
        if rng.random() < 0.1:
            odd["Authorization"] = rng.choice(("", "Bearer", "Bearer kal_x", "Basic eDp5", f"Bearer {token}x"))
        path = "/mcp" if rng.random() < 0.6 else rng.choice(_PATHS)
        body = damaged(rng, raw) if rng.random() < 0.8 else raw
        status, _, answer = client.post(body, path, **odd)
        part.answers[str(status)] += 1
        if not 200 <= status < 500:
            part.wrong(f"{status} for {body[:80]!r} at {path}: {answer[:80]!r}")

    return _in_threads(size, port, token, pid, send)


def _header(value: object) -> str:
    return value if isinstance(value, str) and value.isascii() and value.isprintable() else "x"


def calls(size: int, port: int, token: str, pid: int, schemas: Mapping[str, Any]) -> Part:
    """Calls of tools."""
    numbers = itertools.count(1)

    def send(client: Client, rng: random.Random, part: Part) -> None:
        tool, arguments = call(rng, schemas)
        number = next(numbers)
        params = {"name": tool, "arguments": arguments, "_meta": MODERN}
        asked = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
        # This era has no sessions: a session keeps its last answers for clients that lose them.
        named = {"Mcp-Method": "tools/call", "Mcp-Name": tool}
        status, _, answer = client.post(json.dumps(asked).encode(), **named)
        found = re.findall(rb"^(?:data: )?(\{.*\})\s*$", answer, re.M)
        told = json.loads(found[-1]) if found else {}
        result = told.get("result", {})
        part.answers["refused" if "error" in told or result.get("isError") else "done"] += 1
        if status != 200 or told.get("id") != number:
            part.wrong(f"{status} for {tool} {arguments!r}: {answer[:100]!r}")
        if "internal:" in str(result.get("content", ""))[:60] or told.get("error", {}).get("code") == -32603:
            part.wrong(f"failed inside: {tool} {arguments!r}: {answer[:200]!r}")

    return _in_threads(size, port, token, pid, send)


def _in_threads(
    size: int,
    port: int,
    token: str,
    pid: int,
    send: Callable[[Client, random.Random, Part], None],
) -> Part:
    part = Part()
    watch = Watch(pid, part)
    lock = threading.Lock()

    def run(seed: int) -> None:
        client, rng = Client(port, token), random.Random(seed)
        for _ in range(size // _THREADS):
            send(client, rng, part)
            with lock:
                part.sent += 1
                if part.sent >= size / 10:
                    watch.warm()
        client.close()

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if part.sent < size // _THREADS * _THREADS:
        part.wrong("a client has failed")
    watch.end()
    return part


def heads(size: int, port: int, pid: int) -> Part:
    """Broken heads."""
    part, rng = Part(), random.Random(3)
    watch = Watch(pid, part)
    while part.sent < size:
        raw = rng.choice(HEADS)
        raw = raw if rng.random() < 0.5 else damaged(rng, raw)
        with socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE_S) as connection:
            with suppress(OSError):
                connection.sendall(raw)
                connection.shutdown(socket.SHUT_WR)
            answer = b""
            with suppress(ConnectionError):
                while chunk := connection.recv(65_536):
                    answer += chunk
        part.sent += 1
        part.answers[answer[9:12].decode("ascii", "replace") or "closed"] += 1
        if answer and not answer.startswith(_WELL):
            part.wrong(f"{answer[:60]!r} for {raw[:80]!r}")
        if part.sent >= size / 10:
            watch.warm()
    watch.end()
    return part


def slow(size: int, port: int, token: str, pid: int) -> Part:
    """Connections that stop in the middle; each is left half-open, half-closed or dropped."""
    part, rng = Part(), random.Random(4)
    watch = Watch(pid, part)
    watch.warm()
    head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\nContent-Length: 100\r\n\r\n"
    whole = head.encode() + b'{"jsonrpc":"2.0",'
    opened = []
    while part.sent < size:
        connection = socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE_S)
        with suppress(OSError):
            connection.sendall(whole[: rng.randrange(1, len(whole) + 1)])
        match rng.randrange(3):
            case 0:
                opened.append(connection)
            case 1:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_WR)
                opened.append(connection)
            case _:
                connection.close()
        part.sent += 1
        if len(opened) >= _SLOW:
            _ask(port, token, part)
            for one in opened:
                one.close()
            opened.clear()
    _ask(port, token, part)
    deadline = time.monotonic() + _PATIENCE_S
    for one in opened:  # those that nobody closes, the server does
        one.settimeout(max(0.1, deadline - time.monotonic()))
        with suppress(ConnectionError):
            try:
                while one.recv(65_536):
                    pass
            except TimeoutError:
                part.wrong("a connection that stopped in the middle is still open")
        one.close()
    watch.end()
    return part


def _ask(port: int, token: str, part: Part) -> None:
    """Somebody else is answered meanwhile."""
    client = Client(port, token)
    status, _, _ = client.post(b"{}")
    part.answers[str(status)] += 1
    if status != 400:
        part.wrong(f"{status} while others are slow")
    client.close()


def _check(part: Part, server: subprocess.Popen[bytes], log: Path) -> None:
    if server.poll() is not None:
        part.wrong(f"the server has ended with {server.returncode}")
    text = log.read_text(encoding="utf-8", errors="replace")
    if "Traceback" in text:
        part.wrong(f"a traceback in the log: {text[text.index('Traceback') :][-300:]}")


def over_http(sizes: Mapping[str, int], schemas: Mapping[str, Any]) -> dict[str, Part]:
    """The parts that are sent to one server over HTTP."""
    parts: dict[str, Part] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Path(folder), "--transport", "http", "--port", "0") as (server, log),
    ):
        port, token = _announced(log)
        for name, send in (
            ("heads", lambda size: heads(size, port, server.pid)),
            ("bodies", lambda size: bodies(size, port, token, server.pid, schemas)),
            ("calls", lambda size: calls(size, port, token, server.pid, schemas)),
            ("slow", lambda size: slow(size, port, token, server.pid)),
        ):
            parts[name] = send(sizes[name])
            _check(parts[name], server, log)
            progress(f"{name}: {parts[name].figures()}")
    return parts


def _announced(log: Path) -> tuple[int, str]:
    """The port and the first token, as the server says them."""
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        text = log.read_text(encoding="utf-8")
        found = re.search(r":(\d+)/mcp[\s\S]*(kal_[\w-]{43})", text)
        if found is not None:
            return int(found[1]), found[2]
        time.sleep(0.05)
    raise RuntimeError(f"the server does not serve: {log.read_text(encoding='utf-8')}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all parts. The exit code says whether anything was violated."""
    given = options(__doc__).parse_args(arguments)
    many, few = (1_000, 200) if given.quick else (100_000, 10_000)
    schemas = tool_schemas()
    parts = {"lines": lines(many, schemas)}
    progress(f"lines: {parts['lines'].figures()}")
    parts |= over_http({"heads": few, "bodies": many, "calls": many, "slow": few // 10}, schemas)
    for name, part in parts.items():
        for what in part.violations[:5]:
            progress(f"{name}: {what}")
    emit("fuzz", {name: part.figures() for name, part in parts.items()})
    return int(any(part.violations for part in parts.values()))


if __name__ == "__main__":
    sys.exit(main())
