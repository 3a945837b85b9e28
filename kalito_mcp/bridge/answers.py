"""The home's last answers, kept for when it is away: a bounded folder that only its owner can read. Standard library
alone.

They are copies, and can be lost at any time. An erasure through this machine deletes all of them at once; what was
erased from another machine goes with its age.
"""

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_MOST_FILES: Final = 256
_MOST_BYTES: Final = 32 * 1024 * 1024
_LONGEST: Final = 1024 * 1024
_OLDEST_S: Final = 30 * 86_400
_TRIM_EVERY: Final = 32


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

    def keep(self, question: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Keep an answer, in place of the earlier one. If it cannot be written, it is not kept."""
        data = json.dumps({"at_ms": time.time_ns() // 1_000_000, "question": question, "result": result}).encode()
        if len(data) > _LONGEST:
            return
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self._folder)  # 0600; not synced: an answer may be lost
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                Path(name).replace(self._file(question))
            except OSError:
                Path(name).unlink(missing_ok=True)
                raise
            if self._kept % _TRIM_EVERY == 0:
                self._trim()
            self._kept += 1

    def find(self, question: Mapping[str, Any]) -> KeptAnswer | None:
        """The last answer to this question; None if there is none, or only one that is too old."""
        try:
            content = json.loads(self._file(question).read_text(encoding="utf-8"))
            at_ms, result = content["at_ms"], content["result"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        age_s = max(0.0, time.time() - at_ms / 1_000)
        return KeptAnswer(result, at_ms, age_s) if age_s <= _OLDEST_S else None

    def count(self) -> int:
        """How many answers are kept."""
        try:
            return sum(1 for _ in self._folder.iterdir())
        except OSError:
            return 0

    def clear(self) -> None:
        """Delete all of them."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _file(self, question: Mapping[str, Any]) -> Path:
        asked = json.dumps(question, sort_keys=True).encode()
        return self._folder / hashlib.blake2b(asked, digest_size=16).hexdigest()

    def _trim(self) -> None:
        """Delete what is too old, and the oldest of what is too much."""
        files = sorted(((file.stat(), file) for file in self._folder.iterdir()), key=lambda pair: -pair[0].st_mtime)
        total, now = 0, time.time()
        for place, (status, file) in enumerate(files):
            total += status.st_size
            if place >= _MOST_FILES or total > _MOST_BYTES or now - status.st_mtime > _OLDEST_S:
                file.unlink(missing_ok=True)
