"""The home's last answers, kept for when it is away: a bounded folder that only its owner can read. Standard library
alone.

They are copies, and can be lost at any time. An erasure through this machine deletes all of them at once, for all its
processes; what another machine erased goes when the answer is too old.

A file in the folder has a random token that each erasure renews. An answer is kept with the token that was there when
its question was sent, and shown while the token is still the same. So an answer that was on its way during an erasure
is never shown. While an erasure is on its way, nothing is shown; if its process dies, that counts as an erasure.
"""

import hashlib
import json
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kalito_mcp.errors import StorageError
from kalito_mcp.files import write_whole

_MOST_FILES: Final = 256
_MOST_BYTES: Final = 32 * 1024 * 1024
_LONGEST_BYTES: Final = 1024 * 1024
_OLDEST_S: Final = 30 * 86_400
_TRIM_EVERY: Final = 32
_ERASURE: Final = "erasure"
"""The file with the token of the last erasure. Names of files of running erasures begin with it."""
_LONGEST_ERASURE_S: Final = 900.0


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """A result as the home gave it `age_s` seconds ago, at `at_ms`."""

    result: dict[str, Any]
    at_ms: int
    age_s: float


class Answers:
    """The kept answers of one home, in a folder that need not exist yet."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kept = 0

    def last_erasure(self) -> str:
        """The token of the last erasure; empty without erasures."""
        try:
            return (self._folder / _ERASURE).read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError):
            return ""

    def keep(self, question: Mapping[str, Any], result: Mapping[str, Any], *, last_erasure: str) -> None:
        """Keep an answer, in place of the earlier one. If it cannot be written, it is not kept. `last_erasure` is
        what it was when the question was sent."""
        at_ms = time.time_ns() // 1_000_000
        kept = {"at_ms": at_ms, "last_erasure": last_erasure, "question": question, "result": result}
        data = json.dumps(kept).encode()
        if len(data) > _LONGEST_BYTES or last_erasure != self.last_erasure():
            return
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(self._file(question), data, is_durable=False)
            if last_erasure != self.last_erasure():  # the erasure may have listed the folder before this file was there
                self._file(question).unlink(missing_ok=True)
            if self._kept % _TRIM_EVERY == 0:
                self._trim()
            self._kept += 1

    def find(self, question: Mapping[str, Any]) -> KeptAnswer | None:
        """The last answer to this question; None if it is missing or too old."""
        try:
            content = json.loads(self._file(question).read_text(encoding="utf-8"))
            at_ms, result, last_erasure = content["at_ms"], content["result"], content["last_erasure"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        # An erasure renews the token before it removes its mark, so look for the mark first.
        if self._is_erasing() or last_erasure != self.last_erasure():
            return None
        age_s = max(0.0, time.time() - at_ms / 1_000)
        return KeptAnswer(result, at_ms, age_s) if age_s <= _OLDEST_S else None

    def count(self) -> int:
        """How many answers are kept."""
        return len(self._files())

    def begin_erasure(self) -> Path:
        """Show none of them until `end_erasure` with what this returns."""
        begun = self._folder / f"{_ERASURE}-{secrets.token_hex(8)}"
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            begun.touch(mode=0o600)
        except OSError:  # a full disk, for one: then they are deleted before the erasure
            with suppress(StorageError):
                self.clear()
        return begun

    def end_erasure(self, begun: Path, *, is_done: bool) -> None:
        """Delete them, or show them again if nothing was erased. Raises StorageError as `clear`."""
        if is_done:
            self.clear()
        with suppress(OSError):
            begun.unlink(missing_ok=True)

    def clear(self) -> None:
        """Delete all of them. Answers to questions that were sent before are neither kept nor shown.

        Raises:
            StorageError: some cannot be deleted. Says where they are.
        """
        if not self._folder.parent.is_dir():  # this machine is not connected
            return
        failures: list[OSError] = []
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            write_whole(self._folder / _ERASURE, secrets.token_hex(8).encode())
        except OSError as error:
            failures.append(error)
        for file in self._files():
            try:
                file.unlink(missing_ok=True)
            except OSError as error:
                failures.append(error)
        if failures:
            raise StorageError(
                f"the answers that this machine has kept, in {self._folder}, cannot be deleted: "
                f"{failures[0].strerror}; delete that folder"
            ) from failures[0]

    def _is_erasing(self) -> bool:
        """Whether an erasure is under way. One that was cut off counts as done."""
        begun = [file for file in self._in_folder() if file.name.startswith(f"{_ERASURE}-")]
        for file in begun:
            with suppress(FileNotFoundError, StorageError):  # nothing is shown until it can be deleted
                if time.time() - file.stat().st_mtime > _LONGEST_ERASURE_S:
                    self.end_erasure(file, is_done=True)
        return bool(begun)

    def _files(self) -> list[Path]:
        return [file for file in self._in_folder() if _ERASURE not in file.name]

    def _in_folder(self) -> list[Path]:
        with suppress(OSError):
            return list(self._folder.iterdir())
        return []

    def _file(self, question: Mapping[str, Any]) -> Path:
        key = json.dumps(question, sort_keys=True).encode()
        return self._folder / hashlib.blake2b(key, digest_size=16).hexdigest()

    def _trim(self) -> None:
        """Delete answers that are too old, and the oldest beyond the limit."""
        files = sorted(((file.stat(), file) for file in self._files()), key=lambda pair: -pair[0].st_mtime)
        total, now = 0, time.time()
        for place, (status, file) in enumerate(files):
            total += status.st_size
            if place >= _MOST_FILES or total > _MOST_BYTES or now - status.st_mtime > _OLDEST_S:
                file.unlink(missing_ok=True)
