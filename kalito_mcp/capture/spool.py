"""Events that no server took: one file each, taken in once by the next server. Without secrets and private parts.

A hook must never wait. So it writes events that it cannot hand over, and the next server that looks takes them: the
file is renamed first, so only one does. A file whose server died is taken again: its event has its own key, so nothing
is recorded twice. The standard library is enough until something is put.
"""

import json
import os
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from kalito_mcp.capture.fields import SESSION
from kalito_mcp.files import write_whole

_KEPT_BROKEN_S: Final = 7 * 86_400
_NEW: Final = ".json"
_TAKEN: Final = ".taken"
_BROKEN: Final = ".broken"
_ASK_ABOUT: Final = 0x1000
"""The least right to a process on Windows: PROCESS_QUERY_LIMITED_INFORMATION."""


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
        """Keep an event, but no secret and nothing private in it. Raises OSError; then nothing is kept."""
        event = cleaned_report(event)
        self.lay()
        name = f"{at_ms:014d}-{event_id}"
        write_whole(self._folder / (name + _NEW), json.dumps(event).encode())

    def count(self) -> int:
        """How many events wait to be taken."""
        return sum(name.endswith(_NEW) for name in self._names())

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
        """Delete all events, also those that a server has taken and not recorded yet; how many they were."""
        names = [name for name in self._names() if name.endswith((_NEW, _BROKEN)) or _TAKEN in name]
        for name in names:
            (self._folder / name).unlink(missing_ok=True)
        return len(names)

    def reopen(self, *, is_start: bool = False) -> None:
        """Release events whose server no longer runs; when this server starts, also those of an earlier one with the
        same process id. Delete files that have been useless for a week."""
        for name in self._names():
            stem, _, process = name.rpartition(_TAKEN + "-")
            with suppress(OSError):
                if stem and ((is_start and process == str(os.getpid())) or not self._is_served_by(process)):
                    (self._folder / name).rename(self._folder / (stem + _NEW))
                elif (name.endswith(_BROKEN) or name.startswith(".")) and self._age_s(name) > _KEPT_BROKEN_S:
                    (self._folder / name).unlink()

    def take(self) -> Iterator[tuple[dict[str, Any], Path]]:
        """The events, oldest first, each with the file to delete when it is recorded. Other files are put aside."""
        for name in sorted(name for name in self._names() if name.endswith(_NEW)):
            taken = self._folder / f"{name.removesuffix(_NEW)}{_TAKEN}-{os.getpid()}"
            try:
                (self._folder / name).rename(taken)
                event = json.loads(taken.read_text(encoding="utf-8"))
            except FileNotFoundError:
                continue  # another server was faster
            except (OSError, ValueError):
                event = None
            if isinstance(event, dict):
                yield event, taken
            else:
                self.put_aside(taken)

    def put_back(self, taken: Path) -> None:
        """Let an event that could not be recorded be taken again."""
        stem = taken.name.rpartition(_TAKEN + "-")[0]
        with suppress(OSError):
            taken.rename(taken.with_name(stem + _NEW))

    def put_aside(self, taken: Path) -> None:
        """Keep an event that can never be recorded, but do not take it again."""
        stem = taken.name.rpartition(_TAKEN + "-")[0]
        with suppress(OSError):
            taken.rename(taken.with_name(stem + _BROKEN))

    def _is_served_by(self, process: str) -> bool:
        """Whether the server with this process id still runs. By now, another program may have the id."""
        is_here = process == str(os.getpid()) or (self._folder.parent / f"server-{process}.json").exists()
        return is_here and _is_alive(process)

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


def _is_alive(process: str) -> bool:
    """Whether a process with this number runs."""
    if not process.isdecimal():
        return False
    if sys.platform == "win32":
        return _is_alive_on_windows(int(process))
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _is_alive_on_windows(process: int) -> bool:
    """The same on Windows, where signal 0 is Ctrl-C and not a test."""
    import ctypes  # noqa: PLC0415 - only there

    kernel = ctypes.windll.kernel32  # type: ignore[attr-defined,unused-ignore]
    handle = kernel.OpenProcess(_ASK_ABOUT, False, process)
    if handle:
        kernel.CloseHandle(handle)
    return bool(handle)
