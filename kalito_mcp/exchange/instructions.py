"""Files of text that assistants are given: CLAUDE.md, AGENTS.md and their like, Claude Code's own notes, and
the notes of basic-memory. Each becomes a document of its project."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from kalito_mcp.domain.records import Origin
from kalito_mcp.exchange.conversation import Home, Note, Reading, moment
from kalito_mcp.exchange.json_files import json_lines
from kalito_mcp.exchange.texts import words_of

_NAMES: Final = (
    "CLAUDE.md",
    "CLAUDE.local.md",
    "AGENTS.md",
    "GEMINI.md",
    "MEMORY.md",
    ".cursorrules",
    ".windsurfrules",
)
_PATTERNS: Final = (".github/copilot-instructions.md", ".cursor/rules/*.mdc", "memory-bank/*.md", ".clinerules/*.md")
_MOST_BYTES: Final = 1_000_000
_FRONT: Final = re.compile(r"\A---\r?\n((?:(?!---).*\r?\n){0,40})")
_DATES: Final = ("modified", "updated", "created", "date")
"""Fields of the lines before a text, the date of its last change first."""


class Instructions:
    """`conversation.Source`: the person's, and, for a named folder, the project's."""

    name: Final = "instructions"
    title: Final = "instructions and notes of assistants"
    is_appended: Final = False

    def find(self, home: Home) -> Iterable[Path]:
        noted = home.of("CLAUDE_CONFIG_DIR", ".claude").glob("projects/*/memory/*.md")
        return [*(path for path in _of_person(home) if path.is_file()), *sorted(noted)]

    def within(self, folder: Path) -> Iterable[Path]:
        named = (folder / name for name in _NAMES)
        return [
            *(path for path in named if path.is_file()),
            *(p for one in _PATTERNS for p in sorted(folder.glob(one))),
        ]

    def read(self, reading: Reading) -> Iterator[Note]:
        yield from _note(reading, _folder_of(reading.path), Origin.DOCUMENT)


class BasicMemory:
    """`conversation.Source`: the Markdown files of basic-memory."""

    name: Final = "basic-memory"
    title: Final = "basic-memory"
    is_appended: Final = False

    def find(self, home: Home) -> Iterable[Path]:
        return self.within(home.of("BASIC_MEMORY_HOME", "basic-memory"))

    def within(self, folder: Path) -> Iterable[Path]:
        return (path for path in sorted(folder.rglob("*.md")) if not _is_hidden(path.relative_to(folder)))

    def read(self, reading: Reading) -> Iterator[Note]:
        yield from _note(reading, None, Origin.IMPORT)


def _of_person(home: Home) -> tuple[Path, ...]:
    """The files that assistants are given in each project."""
    return (
        home.of("CLAUDE_CONFIG_DIR", ".claude") / "CLAUDE.md",
        home.of("CODEX_HOME", ".codex") / "AGENTS.md",
        home.folder / ".gemini" / "GEMINI.md",
    )


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _note(reading: Reading, folder: str | None, origin: Origin) -> Iterator[Note]:
    with reading.path.open("rb") as file:
        raw = file.read(_MOST_BYTES + 1)
    if len(raw) > _MOST_BYTES or b"\0" in raw:
        reading.skipped["file that is too long, or no text"] += 1
        return
    text = words_of(raw.decode("utf-8", "replace").lstrip("\ufeff"))
    fields = _fields(text)
    title = fields.get("title", "")[:200] or reading.path.name
    at = next((at for name in _DATES if (at := moment(fields.get(name))) is not None), None)
    if text:
        # As `kalito-mcp remember --file` names it.
        yield Note(str(reading.path.resolve()), title, text, folder, at, origin)


def _fields(text: str) -> dict[str, str]:
    """The fields between two lines of dashes at the beginning of a text."""
    front = _FRONT.match(text)
    lines = (line.partition(":") for line in front[1].splitlines()) if front else ()
    return {name: value.strip().strip("'\"") for name, _, value in lines}


def _folder_of(path: Path) -> str | None:
    """The folder of the project that a file is about; None if it is about the person. Claude Code's own notes lie
    beside transcripts that say it."""
    if path.resolve() in (one.resolve() for one in _of_person(Home.current())):
        return None
    if path.parent.name != "memory" or path.parent.parent.parent.name != "projects":
        return str(path.parent.absolute())
    for transcript in sorted(path.parent.parent.glob("*.jsonl")):
        for line in json_lines(Reading(transcript)):
            if isinstance(line.value.get("cwd"), str):
                return str(line.value["cwd"])
    return None
