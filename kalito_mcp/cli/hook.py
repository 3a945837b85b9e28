"""`kalito-hook HOST EVENT`: hands the event on stdin to a server of the memory, and prints what it answers.

Standard library alone, because a host waits for it. It always exits with 0 and never waits long: for a third of a
second at most, whatever the database does. If no server takes the event in that time, it is put into the spool. While
the memory is paused, it does nothing.
"""

import json
import os
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kalito_mcp.capture.fields import folder_of
from kalito_mcp.capture.given import event_in, read_to_end
from kalito_mcp.capture.spool import Spool
from kalito_mcp.runtime.database_address import DatabaseAddress, address_of, default_database
from kalito_mcp.runtime.default_places import default_config
from kalito_mcp.switch import is_off

if TYPE_CHECKING:
    import socket

MOST_WAIT_S: Final = 0.25
"""For a server's answer, from the start of the process. Python begins before that and ends after it, and the host must
not wait longer than 0.3 s for all of it: unless `context.timeout_s` says more, which the server passes on."""
_MOST_WRITING_S: Final = 0.2
_LOOK_S: Final = 0.03
_WITHOUT_REPLY: Final = "copilot"
"""A host that says where its transcript is, but not what the reply was."""
_RUN_IN_THEIR_FOLDER: Final = frozenset({"windsurf"})
"""Hosts that do not say where they work, but run their hooks there."""


def main() -> None:
    """Run the command."""
    # The process's time so far is Python's start.
    started = time.monotonic() - time.process_time()
    try:
        answer = run(sys.argv[1:], read_to_end(sys.stdin.buffer), os.environ, started=started)
        if answer:
            # Hosts read UTF-8, even where the console has another encoding.
            sys.stdout.buffer.write(answer.encode("utf-8", "replace"))
            sys.stdout.flush()
    except Exception as error:
        sys.stderr.write(f"kalito-hook: {type(error).__name__}: {error}\n")
    finally:
        # Anything that delays a normal end is not worth the host's time.
        os._exit(0)


def run(arguments: list[str], given: bytes, environment: Mapping[str, str], *, started: float) -> str:
    """The text to print for the event."""
    if len(arguments) < 2:  # noqa: PLR2004 - host and event
        raise ValueError("usage: kalito-hook HOST EVENT, with the event as JSON on stdin")
    host, name = arguments[0], arguments[1]
    payload = event_in(given)
    if host in _RUN_IN_THEIR_FOLDER:
        with suppress(OSError):  # somebody has deleted it
            payload.setdefault("cwd", str(Path.cwd()))
    files = _database(environment).files
    now_ms = time.time_ns() // 1_000_000
    if is_off(files.switch, folder_of(payload), now_ms):
        return ""
    completed = _with_reply(name, payload, until=started + _MOST_WRITING_S) if host == _WITHOUT_REPLY else payload
    # It tells two events apart where the host names neither the turn nor the moment.
    event_id = os.urandom(8).hex()
    event = {
        "host": host,
        "event": name,
        "payload": payload if completed is None else completed,
        "at_ms": now_ms,
        "id": event_id,
    }
    answer = None
    # A reply that is not written yet is read by the server that takes the event out of the spool.
    if completed is not None:
        answer = _handed_over(files.hooks, event, until=started + MOST_WAIT_S)
    if answer is None:
        Spool(files.spool).put(event, at_ms=now_ms, event_id=event_id)
        return ""
    return answer


def _with_reply(name: str, payload: Mapping[str, Any], *, until: float) -> Mapping[str, Any] | None:
    """As `transcripts.with_reply`, waited for until then: the host may still be writing it."""
    from kalito_mcp.capture.transcripts import with_reply  # noqa: PLC0415 - only one host needs it

    while (completed := with_reply(name, payload)) is None and time.monotonic() < until:
        time.sleep(_LOOK_S)
    return completed


def _database(environment: Mapping[str, str]) -> DatabaseAddress:
    """Where the memory is, as the server reads it."""
    if environment.get("KALITO_DATABASE"):
        return address_of(environment["KALITO_DATABASE"])
    if not environment.get("KALITO_CONFIG") and not default_config().is_file():
        return default_database()
    from kalito_mcp.config.sources import read_sources  # noqa: PLC0415 - a third of the time of all

    return read_sources(environment).checked_database()


def _handed_over(folder: Path, event: Mapping[str, Any], *, until: float) -> str | None:
    """The answer of the first server that takes the event; None if none did in time. Files of servers that are gone are
    removed."""
    try:
        places = sorted(folder.glob("server-*.json"), key=lambda file: -file.stat().st_mtime_ns)
    except OSError:
        return None
    line = json.dumps(event).encode() + b"\n"
    for place in places:
        try:
            server = json.loads(place.read_text(encoding="utf-8"))
            more_s = max(0.0, float(server.get("wait_s", 0)) - MOST_WAIT_S)
            return _asked(server, line, until=until + more_s)
        except (ConnectionRefusedError, _Stranger):
            place.unlink(missing_ok=True)
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return None


class _Stranger(Exception):
    """Another program has the port of a server that is gone."""


def _asked(server: Mapping[str, Any], line: bytes, *, until: float) -> str:
    import socket  # noqa: PLC0415 - not if no server runs

    with socket.create_connection(("127.0.0.1", int(server["port"])), timeout=_left(until)) as connection:
        # Only the server knows what is in its file. Nothing is sent to anybody else.
        if _line_from(connection, until) != str(server["greeting"]).encode():
            raise _Stranger
        connection.sendall(str(server["token"]).encode() + b"\n" + line)
        answer = json.loads(_line_from(connection, until))["answer"]
    if not isinstance(answer, str):
        raise TypeError(answer)
    return answer


def _line_from(connection: "socket.socket", until: float) -> bytes:
    received = b""
    while not received.endswith(b"\n"):
        connection.settimeout(_left(until))
        part = connection.recv(65_536)
        if not part:
            raise ConnectionError
        received += part
    return received[:-1]


def _left(until: float) -> float:
    """The seconds until then. Raises TimeoutError if it has passed."""
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
