"""Answers a host over stdio before the server is loaded. Uses the standard library alone.

A host starts the server, shakes hands and asks for the lists, and often nothing else for minutes. The `Catalogue` has
those answers. The server, which takes most of a second of CPU to import, is loaded in a thread: as soon as a request
needs it, or once the host is quiet. Every line that is not answered here is kept, with its place, and becomes the first
input of the server. So each line is answered once: here or there.
"""

import os
import select
import stat
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kalito_mcp.server.catalogue import HIDDEN_ID, Catalogue, kind_of, load

if TYPE_CHECKING:
    from threading import Thread

HOOKS_VARIABLE: Final = "KALITO_HOOKS"
"""Names the host whose hooks call the tool `hook_event`. Without it the tool is not listed."""
MEMORY_TOOL_VARIABLE: Final = "KALITO_MEMORY_TOOL"
"""Lists Anthropic's memory tool, unless it is empty or says no."""
CHATGPT_VARIABLE: Final = "KALITO_CHATGPT"
"""Lists the tools `search` and `fetch`, as ChatGPT calls them, unless it is empty or says no."""
_NO: Final = ("", "0", "false", "no", "off")
_QUIET_MS: Final = 50
"""How long a host may be silent before the server is loaded. Loading would slow down the answers to its next lists."""
_CHUNK_BYTES: Final = 65_536
_LONGEST_REST: Final = 65_536
"""A line that is still unfinished after this many bytes is left to the server."""
_MOST_KEPT: Final = 1_048_576
"""Bytes kept for the server. Later input stays in the pipe."""
_WITH_VALUE: Final = ("--database", "--config", "--project", "--transport")
_LEVELS: Final = ("", "CRITICAL", "FATAL", "ERROR", "WARN", "WARNING", "INFO", "DEBUG", "NOTSET")


class Begun:
    """A connection that was begun here. The server goes on with it.

    `wire_in` and `wire_out` are the pipes to the host. `kept` is the input read before what is still in the pipe. It
    includes the opening request, whose answer, with the id `hidden`, must not reach the host. `unsent` is output that
    did not fit into the pipe. If `is_over`, the host has left and there is nothing to do.
    """

    def __init__(self, wire_in: int, wire_out: int) -> None:
        self.wire_in, self.wire_out = wire_in, wire_out
        self.kept = b""
        self.unsent = b""
        self.hidden = HIDDEN_ID
        self.is_over = False


def begin(arguments: Sequence[str], environment: Mapping[str, str], imports: Callable[[], object]) -> Begun | None:
    """Answer what can be answered, until the server is needed and `imports` has returned.

    `arguments` are those of the command line. None, and nothing was read or changed, if they do not plainly say to
    serve over stdio, if stdin or stdout is not a pipe, or if the catalogue does not fit what is installed.
    """
    if not _is_plain_stdio(arguments) or environment.get("KALITO_LOG", "").upper() not in _LEVELS:
        return None
    if sys.platform == "win32" or not (is_pipe(0) and is_pipe(1)):
        return None
    catalogue = load(**switches(environment))
    if catalogue is None:
        return None
    connection = _Connection(catalogue, imports)
    connection.run()
    return connection.begun


def switches(environment: Mapping[str, str]) -> dict[str, bool]:
    """Which of the tools are on that are not always listed."""
    return {
        "has_memory_tool": _says_yes(environment, MEMORY_TOOL_VARIABLE),
        "has_hooks": bool(environment.get(HOOKS_VARIABLE)),
        "has_chatgpt": _says_yes(environment, CHATGPT_VARIABLE),
    }


def _says_yes(environment: Mapping[str, str], variable: str) -> bool:
    return environment.get(variable, "").strip().lower() not in _NO


def is_pipe(descriptor: int) -> bool:
    """Whether this is an open pipe or socket."""
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def claim_pipes() -> tuple[int, int]:
    """Stdin and stdout on descriptors of their own. From now on, fd 0 reads nothing and fd 1 writes to stderr."""
    wire_in, wire_out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return wire_in, wire_out


class _Connection:
    """The dialogue with one host, up to the moment when the server takes over."""

    def __init__(self, catalogue: Catalogue, imports: Callable[[], object]) -> None:
        self.begun = Begun(*claim_pipes())
        self._catalogue = catalogue
        self._imports = imports
        self._kept: list[bytes] = []
        self._kept_bytes = 0
        self._loading: Thread | None = None
        self._loaded: int | None = None
        self._is_server_needed = False
        self._poll = select.poll()
        self._poll.register(self.begun.wire_in, select.POLLIN)

    def run(self) -> None:
        """Answer until the server has to take over, or the host has left."""
        os.set_blocking(self.begun.wire_out, False)
        try:
            rest = self._answer_lines()
        except ConnectionError:  # the host has closed stdout
            self.begun.is_over = True
            return
        if self._loading is not None:
            # Two threads that import packages with circles in them wait for each other.
            self._loading.join()
        if self._loaded is not None:
            os.close(self._loaded)
        is_needed = self._is_server_needed or self._loading is not None or bool(rest.strip())
        self.begun.is_over = not is_needed
        if is_needed and self._loading is None:
            self._imports()
        self.begun.kept = b"".join((self._catalogue.opening, *self._kept, rest))

    def _answer_lines(self) -> bytes:
        """Answer until the server has to take over. Returns input that was read but not looked at."""
        rest = b""
        while True:
            if self._is_server_needed and self._loaded is None:
                self._load()
            ready = {descriptor for descriptor, _ in self._poll.poll(_QUIET_MS if self._loaded is None else None)}
            if self._loaded in ready:
                return rest
            if not ready:
                self._load()
                continue
            chunk = os.read(self.begun.wire_in, _CHUNK_BYTES)
            if not chunk:
                return rest
            *lines, rest = (rest + chunk).split(b"\n")
            taken = 0
            while taken < len(lines) and self._takes(lines[taken]):
                taken += 1
            if taken < len(lines) or len(rest) > _LONGEST_REST or self.begun.unsent:
                self._is_server_needed = True
                return b"\n".join((*lines[taken:], rest))

    def _takes(self, line: bytes) -> bool:
        """Answer the line, or keep it. False, and nothing is done, if the server has to go on from here."""
        if self.begun.unsent or self._kept_bytes > _MOST_KEPT:
            return False
        answer = self._catalogue.answer(line)
        if answer is not None:
            self._send(answer + b"\n")
            return True
        kind = kind_of(line) if self._catalogue.opening else None
        if kind is not None:
            self._kept.append(line + b"\n")
            self._kept_bytes += len(line)
            self._is_server_needed = self._is_server_needed or kind == "request"
        return kind is not None or not line.strip()

    def _send(self, line: bytes) -> None:
        """Write as much as the pipe takes. The host may be writing to us instead of reading."""
        try:
            written = os.write(self.begun.wire_out, line)
        except BlockingIOError:
            written = 0
        self.begun.unsent = line[written:]

    def _load(self) -> None:
        """Start to import the server. `_loaded` can be read when that has ended."""
        from threading import Thread  # noqa: PLC0415 - not before it is needed

        self._loaded, writing = os.pipe()
        self._poll.register(self._loaded, select.POLLIN)

        def load_server() -> None:
            try:
                self._imports()
            finally:
                os.close(writing)

        self._loading = Thread(target=load_server, name="load")
        self._loading.start()


def _is_plain_stdio(arguments: Sequence[str]) -> bool:
    """Whether these are `serve` and options of stdio that cannot be wrong."""
    if list(arguments[:1]) != ["serve"] or len(arguments) % 2 == 0:
        return False
    pairs = list(zip(arguments[1::2], arguments[2::2], strict=True))
    return all(
        name in _WITH_VALUE and not value.startswith("-") and (name != "--transport" or value == "stdio")
        for name, value in pairs
    )
