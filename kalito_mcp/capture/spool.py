"""Events that no server took: one file each, in the order in which they came, without secrets and private parts.

A hook must never wait. So it writes events that it cannot hand over, and the next server that looks takes them. It
locks a file while it records the event, and deletes it then; later events of the same conversation wait for that,
whichever server takes them. The kernel lets go of the lock if the server dies. Then the event is taken again: it has
its own key, so nothing is recorded twice. The standard library is enough until something is put.
"""

import json
import os
import time
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from kalito_mcp.capture.fields import SESSION, first
from kalito_mcp.files import try_lock, write_whole

_KEPT_BROKEN_S: Final = 7 * 86_400
_NEW: Final = ".json"
_BROKEN: Final = ".broken"


class Outcome(StrEnum):
    """What becomes of an event that was taken."""

    WAITS = "waits"
    RECORDED = "recorded"
    BROKEN = "broken"
    """It can never be recorded: it is kept for a while, and not taken again."""


@dataclass(slots=True)
class Taken:
    """An event that one server is recording."""

    file: Path
    event: dict[str, Any]
    outcome: Outcome = Outcome.WAITS


class Spool:
    """The events in one folder, which need not exist yet. The folder above it is the one that hooks and servers share:
    there each server that listens has a file `server-PROCESS.json`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def lay(self) -> None:
        """Make the folder and the one above it, which only their user can read. Raises OSError."""
        for folder in (self._folder.parent, self._folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def put(self, event: Mapping[str, Any], *, at_ms: int, event_id: str) -> None:
        """Keep an event behind all that wait, even if the clock was set back. No secret and nothing private in it is
        kept. Raises OSError; then nothing is kept."""
        event = cleaned_report(event)
        self.lay()
        waiting = self.waiting()
        place = max(at_ms, _place_of(waiting[-1]) + 1 if waiting else 0)
        name = f"{place:014d}-{_mark_of(event)}-{event_id}"
        write_whole(self._folder / (name + _NEW), json.dumps(event).encode())

    def waiting(self, like: Mapping[str, Any] | None = None) -> list[str]:
        """The names of the events that are not recorded yet, oldest first: of the conversation of the event `like`, or
        all."""
        mark = "-" if like is None else f"-{_mark_of(like)}-"
        return sorted(name for name in self._names() if name.endswith(_NEW) and name[0] != "." and mark in name)

    def count(self) -> int:
        """How many events are not recorded yet."""
        return len(self.waiting())

    def put_aside_count(self) -> int:
        """How many events are kept for a while that can never be recorded."""
        return sum(name.endswith(_BROKEN) for name in self._names())

    def erase(self, texts: Collection[str]) -> None:
        """Delete the events that have one of these texts in them, whether they wait or are put aside."""
        words = [" ".join(text.split()) for text in texts]
        for name in self._names():
            if not name.endswith((_NEW, _BROKEN)):
                continue
            with suppress(OSError, ValueError, AttributeError):
                payload = json.loads((self._folder / name).read_text(encoding="utf-8")).get("payload")
                said = [" ".join(one.split()) for one in (payload or {}).values() if isinstance(one, str)]
                if any(one and one in text for one in words for text in said):
                    (self._folder / name).unlink()

    def erase_all(self) -> int:
        """Delete all events; how many they were."""
        names = [name for name in self._names() if name.endswith((_NEW, _BROKEN))]
        for name in names:
            (self._folder / name).unlink(missing_ok=True)
        return len(names)

    def sweep(self) -> None:
        """Delete files that have been useless for a week."""
        for name in self._names():
            with suppress(OSError):
                if (name.endswith(_BROKEN) or name.startswith(".")) and self._age_s(name) > _KEPT_BROKEN_S:
                    (self._folder / name).unlink()

    def take(self, names: Collection[str] | None = None) -> Iterator[Taken]:
        """The events of these names, or all, oldest first. What has become of one counts when the next is asked for.

        Left out is what another server is recording, and what comes after it in the same conversation; also what comes
        after an event that goes on waiting. Files that are not events are put aside.
        """
        held: set[str] = set()
        for name in self.waiting() if names is None else sorted(names):
            conversation, file = name.split("-")[1], self._folder / name
            if conversation in held:
                continue
            outcome = Outcome.BROKEN
            with _locked(file) as content:
                if content is None:
                    held |= {conversation} if file.exists() else set()
                    continue
                with suppress(ValueError, RecursionError):
                    event = json.loads(content)
                    if isinstance(event, dict):
                        taken = Taken(file, event)
                        yield taken
                        outcome = taken.outcome
            with suppress(OSError):
                if outcome is Outcome.RECORDED:
                    file.unlink(missing_ok=True)
                elif outcome is Outcome.BROKEN:
                    file.rename(file.with_suffix(_BROKEN))
                else:
                    held.add(conversation)

    def _age_s(self, name: str) -> float:
        return time.time() - (self._folder / name).stat().st_mtime

    def _names(self) -> list[str]:
        try:
            return [file.name for file in self._folder.iterdir()]
        except FileNotFoundError:
            return []


def cleaned_report(event: Mapping[str, Any]) -> dict[str, Any]:
    """An event without the secrets and private parts of its payload. The name of the session stays."""
    from kalito_mcp.safety.redaction import cleaned  # noqa: PLC0415 - only what no server takes needs it

    payload = event.get("payload")
    if not isinstance(payload, dict):
        return dict(event)
    named = {name: payload[name] for name in SESSION if name in payload}
    return {**event, "payload": {**cleaned(payload)[0], **named}}


@contextmanager
def _locked(file: Path) -> Iterator[bytes | None]:
    """The content of a file, locked during the block; empty if it cannot be read. None if it is gone, or another server
    has locked it."""
    try:
        # Only what is open for writing can be locked everywhere.
        descriptor = os.open(file, os.O_RDWR | getattr(os, "O_BINARY", 0))
    except OSError as error:
        yield None if isinstance(error, FileNotFoundError) else b""
        return
    with os.fdopen(descriptor, "rb") as opened:
        is_ours = try_lock(descriptor)
        yield opened.read() if is_ours and _is_still(file, descriptor) else None


def _is_still(file: Path, descriptor: int) -> bool:
    """Whether the file has not been deleted or replaced since it was opened."""
    try:
        return os.path.samestat(file.stat(), os.fstat(descriptor))
    except OSError:
        return False


def _place_of(name: str) -> int:
    number = name.partition("-")[0]
    return int(number) if number.isdecimal() else 0


def _mark_of(event: Mapping[str, Any]) -> str:
    """The same for all events of a conversation."""
    payload = event.get("payload")
    session = first(payload, SESSION) if isinstance(payload, Mapping) else None
    return f"{zlib.crc32((session or '').encode('utf-8', 'surrogatepass')):08x}"
