"""Where hooks that are commands find a server: a socket on this machine, and the spool.

A server listens on a free port of the loopback address, and leaves the port and a random token in a file that only its
user can read. A hook sends the token and one event, a line each, and gets one line back. What no server took in time is
in the spool, which each server looks through when it starts and every second.
"""

import json
import logging
import os
import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol

import anyio
from anyio.abc import SocketAttribute, SocketStream, TaskGroup

from kalito_mcp.capture.spool import Spool
from kalito_mcp.errors import KalitoError, StorageError

_log: Final = logging.getLogger("kalito.capture")
_MOST_BYTES: Final = 8_388_608
_ARRIVAL_S: Final = 2.0
_LOOK_EVERY_S: Final = 1.0
_LATER: Final = frozenset({"SessionEnd", "sessionEnd"})
"""Events that may take seconds: they are put into the spool, so that they are done even if this server ends."""


class _Taker(Protocol):
    def __call__(self, report: Mapping[str, Any], *, is_late: bool = False) -> Awaitable[str]: ...


class Listener:
    """Listens for one server. `folder` is the one beside the database that hooks look into."""

    def __init__(self, folder: Path, take: _Taker) -> None:
        self._folder = folder
        self._spool = Spool(folder / "spool")
        self._take = take
        self._token = secrets.token_hex(16)
        self.opened: Callable[[TaskGroup], object] = lambda _: None
        """Called with the tasks of this listener, once it listens."""

    async def run(self) -> None:
        """Listen until cancelled. Returns at once if the folder cannot be written."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            async with await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0) as listener:
                place = self._tell_where(listener.listeners[0].extra(SocketAttribute.local_port))  # noqa: S610 - no SQL
                try:
                    async with anyio.create_task_group() as tasks:
                        self.opened(tasks)
                        tasks.start_soon(listener.serve, self._answered)
                        await self._look_into_spool()
                finally:
                    place.unlink(missing_ok=True)
        except OSError as error:
            _log.warning("hooks find no server in %s: %s", self._folder, error.strerror)

    def _tell_where(self, port: int) -> Path:
        place = self._folder / f"server-{os.getpid()}.json"
        new = place.with_suffix(".new")
        new.touch(mode=0o600)
        new.write_text(json.dumps({"port": port, "token": self._token}), encoding="utf-8")
        new.replace(place)
        return place

    async def _answered(self, stream: SocketStream) -> None:
        """One event of one hook."""
        async with stream:
            with suppress(OSError, anyio.EndOfStream, anyio.BrokenResourceError, ValueError, KalitoError, TimeoutError):
                with anyio.fail_after(_ARRIVAL_S):
                    report = await self._arrived(stream)
                if report is not None:
                    await stream.send(json.dumps({"answer": await self._taken(report)}).encode() + b"\n")

    async def _arrived(self, stream: SocketStream) -> dict[str, Any] | None:
        """The event, once it is all there; None if it comes without the token, or is too long."""
        received = b""
        while received.count(b"\n") < 2:  # noqa: PLR2004 - the token, and the event
            received += await stream.receive()
            if len(received) > _MOST_BYTES:
                return None
        token, line, _ = received.split(b"\n", 2)
        if not secrets.compare_digest(token, self._token.encode()):
            return None
        report = json.loads(line)
        return report if isinstance(report, dict) else None

    async def _taken(self, report: dict[str, Any]) -> str:
        if report.get("event") in _LATER:
            self.keep(report)
            return ""
        return await self._take(report)

    def keep(self, report: Mapping[str, Any]) -> None:
        """Put a report into the spool. Raises OSError."""
        at_ms = report.get("at_ms")
        self._spool.put(report, at_ms=at_ms if isinstance(at_ms, int) else 0, event_id=secrets.token_hex(8))

    async def _look_into_spool(self) -> None:
        self._spool.reopen()
        while True:
            for report, file in self._spool.take():
                try:
                    await self._take(report, is_late=True)
                except StorageError as error:
                    _log.warning("an event is kept for later: %s", error)
                    self._spool.put_back(file)
                    break
                except Exception:
                    # It would fail again, and keep all later ones waiting.
                    _log.exception("an event cannot be recorded; it is put aside in %s", self._folder)
                    self._spool.put_aside(file)
                    continue
                file.unlink(missing_ok=True)
            await anyio.sleep(_LOOK_EVERY_S)
