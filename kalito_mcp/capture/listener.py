"""Where hooks that are commands find a server: a socket on this machine, and the spool.

A server listens on a free port of the loopback address, and leaves the port, a greeting and a token, both random, in a
file that only its user can read. It greets each connection, so that a hook knows it. The hook sends the token and one
event, a line each, and gets one line back. Events that no server took in time are in the spool, which each server reads
when it starts, every second, and before it takes a later event of the same conversation; but not during a pause.
"""

import itertools
import json
import logging
import os
import secrets
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import anyio
from anyio.abc import SocketAttribute, SocketStream, TaskGroup

from kalito_mcp.capture.capturer import Capture
from kalito_mcp.capture.fields import folder_of
from kalito_mcp.capture.spool import Outcome, Spool
from kalito_mcp.errors import KalitoError, StorageError
from kalito_mcp.files import write_whole
from kalito_mcp.runtime.database_address import LocalFiles
from kalito_mcp.switch import is_off

if TYPE_CHECKING:
    from kalito_mcp.memory import Memory

_log: Final = logging.getLogger("kalito.capture")
_MOST_BYTES: Final = 8_388_608
_ARRIVAL_S: Final = 2.0
_LOOK_EVERY_S: Final = 1.0
_SWEEP_EVERY: Final = 3_600
"""Looks into the spool, after which useless files are deleted."""
_POLL_S: Final = 0.01
_LATER: Final = frozenset({"SessionEnd", "sessionEnd"})
"""Events that may take seconds: they are put into the spool, so that they are done even if this server ends."""


class _Taker(Protocol):
    def __call__(self, report: Mapping[str, Any], *, is_late: bool = False) -> Awaitable[str]: ...


class Listener:
    """Listens for one server of a memory."""

    def __init__(self, files: LocalFiles, take: _Taker) -> None:
        self._switch = files.switch
        self._folder = files.hooks
        self._spool = Spool(files.spool)
        self._take = take
        self._greeting, self._token = secrets.token_hex(16), secrets.token_hex(16)
        self._has_warned = False
        self.wait_s = 0.25
        """How long hooks shall wait for an answer."""
        self.opened: Callable[[TaskGroup], object] = lambda _: None
        """Called with the tasks of this listener, once it listens."""

    async def run(self) -> None:
        """Listen until cancelled. Returns at once if the folder cannot be written."""
        try:
            self._spool.lay()
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
            level = logging.DEBUG if self._has_warned else logging.WARNING
            self._has_warned = True
            _log.log(level, "hooks find no server in %s: %s", self._folder, error.strerror)

    def _tell_where(self, port: int) -> Path:
        place = self._folder / f"server-{os.getpid()}.json"
        place_of_server = {"port": port, "greeting": self._greeting, "token": self._token, "wait_s": self.wait_s}
        write_whole(place, json.dumps(place_of_server).encode(), is_durable=False)
        return place

    async def _answered(self, stream: SocketStream) -> None:
        """One event of one hook."""
        async with stream:
            try:
                with anyio.fail_after(_ARRIVAL_S):
                    await stream.send(self._greeting.encode() + b"\n")
                    report = await self._arrived(stream)
                if report is not None:
                    await stream.send(json.dumps({"answer": await self._taken(report)}).encode() + b"\n")
            except (OSError, anyio.EndOfStream, anyio.BrokenResourceError, ValueError, KalitoError) as error:
                _log.debug("a hook was not answered: %s", error)
            except Exception:
                # Nothing that a hook sends may end the server.
                _log.exception("a hook was not answered")

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
        """Put a report into the spool, unless nothing is remembered now. Raises OSError."""
        payload, at_ms = report.get("payload"), report.get("at_ms")
        folder = folder_of(payload) if isinstance(payload, Mapping) else None
        now_ms = time.time_ns() // 1_000_000
        if not is_off(self._switch, folder, now_ms):
            at_ms = at_ms if isinstance(at_ms, int) else now_ms
            self._spool.put(report, at_ms=at_ms, event_id=secrets.token_hex(8))

    async def catch_up(self, report: Mapping[str, Any]) -> None:
        """Wait until what waits of the same conversation is recorded, by this server or another. Not during a pause."""
        try:
            names = self._spool.waiting(report)
            while names and not is_off(self._switch, None, time.time_ns() // 1_000_000):
                await take_spooled(self._spool, self._take, names)
                if names := sorted({*names}.intersection(self._spool.waiting(report))):
                    await anyio.sleep(_POLL_S)
        except OSError as error:
            _log.warning("events wait in %s: %s", self._folder, error.strerror)

    async def _look_into_spool(self) -> None:
        for look in itertools.count():
            if look % _SWEEP_EVERY == 0:
                with suppress(OSError):
                    self._spool.sweep()
            # Messages from before a pause wait for its end.
            if not is_off(self._switch, None, time.time_ns() // 1_000_000):
                try:
                    await take_spooled(self._spool, self._take)
                except OSError as error:
                    _log.warning("events wait in %s: %s", self._folder, error.strerror)
            await anyio.sleep(_LOOK_EVERY_S)


async def take_spooled(spool: Spool, take: _Taker, names: Collection[str] | None = None) -> None:
    """Record the events of these names in the spool, or all, oldest first. Events that cannot be recorded yet go on
    waiting."""
    for taken in spool.take(names):
        try:
            await take(taken.event, is_late=True)
        except StorageError as error:
            _log.warning("an event is kept for later: %s", error)
            break
        except Exception:
            # It would fail again, and keep all later ones waiting.
            _log.exception("an event cannot be recorded; it is put aside: %s", taken.file)
            taken.outcome = Outcome.BROKEN
        else:
            taken.outcome = Outcome.RECORDED


async def take_waiting(files: LocalFiles, memory: "Memory") -> None:
    """Take in what hooks have put into the spool while no server ran, unless nothing is remembered now."""
    if is_off(files.switch, None, time.time_ns() // 1_000_000):
        return

    async def opened() -> "Memory":
        return memory

    capture, spool = Capture(opened), Spool(files.spool)
    capture.share_in(files.conversations)
    await take_spooled(spool, capture.take)
