"""Writes the files of other programs, as they write them, for the tests of imports."""

import json
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from kalito_mcp.domain.records import Role
from kalito_mcp.exchange.conversation import Conversation, Note, Reading, Source, Turn
from kalito_mcp.text.host_blocks import heard

needs_zstandard = pytest.mark.skipif(
    sys.version_info < (3, 14) and find_spec("backports") is None,
    reason="the package of the extra `zed` is not installed; `make .venv/.dev` does",
)
SESSION = "0b9f7a52-3c1e-4d44-9a52-7f3a1c2b4d55"
OTHER_SESSION = "1c9f7a52-3c1e-4d44-9a52-7f3a1c2b4d66"


def lines(path: Path, records: Iterable[Any], *, end: str = "\n") -> Path:
    """A file with one JSON value a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(json.dumps(record) for record in records) + end, encoding="utf-8")
    return path


class Transcript:
    """The records of a transcript of Claude Code, each after the one before it."""

    def __init__(self, session: str = SESSION, cwd: str = "/home/ann/harbour") -> None:
        self.session = session
        self.cwd = cwd
        self.records: list[dict[str, Any]] = []
        self.last: str | None = None

    def add(self, kind: str, content: Any, *, message_id: str | None = None, **others: Any) -> str:
        """Add a record, and return its uuid."""
        number = len(self.records)
        uuid = f"{number:08d}-0000-4000-8000-{self.session[-12:]}"
        message = {"role": kind, "content": content, **({"id": message_id} if message_id else {})}
        record = {
            "type": kind,
            "uuid": uuid,
            "parentUuid": self.last,
            "sessionId": self.session,
            "cwd": self.cwd,
            "timestamp": f"2026-03-0{1 + number // 1000 % 9}T10:{number // 60 % 60:02d}:{number % 60:02d}.000Z",
            "isSidechain": False,
            "message": message,
            **others,
        }
        self.records.append(record)
        self.last = uuid
        return uuid

    def user(self, text: Any, **others: Any) -> str:
        return self.add("user", text, **others)

    def assistant(self, text: str, **others: Any) -> str:
        return self.add("assistant", [{"type": "text", "text": text}], **others)

    def write(self, folder: Path, *, end: str = "\n") -> Path:
        return lines(folder / f"{self.session}.jsonl", self.records, end=end)


def read(source: Source, path: Path, start: int = 0) -> tuple[dict[str, list[Turn]], Reading]:
    """The turns of a file by session, and the reading."""
    reading = Reading(path, start)
    found: dict[str, list[Turn]] = {}
    for one in source.read(reading):
        assert isinstance(one, Conversation)
        found.setdefault(one.session_id, []).extend(one.turns)
    return found, reading


def notes(source: Source, path: Path) -> list[Note]:
    """The notes of a file."""
    return [one for one in source.read(Reading(path)) if isinstance(one, Note)]


def said(source: Source, path: Path) -> list[tuple[str, str]]:
    """Who said what in a file with one conversation, without what may be a host's."""
    found, _ = read(source, path)
    [turns] = found.values()
    of_user = {turn.key: heard(turn.text, is_typed=turn.is_typed).words for turn in turns if turn.role is Role.USER}
    return [(str(turn.role), of_user.get(turn.key, turn.text)) for turn in turns]


def packed(raw: bytes) -> bytes:
    """A frame of Zstandard with one block that is not compressed: RFC 8878, 3.1.1."""
    block = (len(raw) << 3 | 1).to_bytes(3, "little") + raw
    return b"\x28\xb5\x2f\xfd\xa0" + len(raw).to_bytes(4, "little") + block
