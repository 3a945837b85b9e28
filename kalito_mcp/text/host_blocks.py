"""What hosts put into a prompt, out of what the user typed: reminders, diagnostics, what is open in an IDE. Pure."""

import re
from typing import Final

_BLOCK: Final = re.compile(
    "<(system-reminder|ide_opened_file|ide_selection|ide_diagnostics|new-diagnostics|user-prompt-submit-hook"
    "|post-tool-use-hook|session-start-hook)>"
)
_CODEX_IDE: Final = "# Context from my IDE setup:"
_CODEX_REQUEST: Final = re.compile(r"^## My request for Codex:[ \t]*$", re.MULTILINE)


def without_blocks(text: str) -> str:
    """The text without the blocks that Claude Code adds to a prompt. One that is not closed stays."""
    kept: list[str] = []
    unclosed: set[str] = set()
    place = 0
    for found in _BLOCK.finditer(text):
        if found.start() < place or found[1] in unclosed:
            continue
        closing = f"</{found[1]}>"
        end = text.find(closing, found.end())
        if end < 0:
            unclosed.add(found[1])
            continue
        kept.append(text[place : found.start()])
        place = end + len(closing)
    return "".join(kept) + text[place:] if kept else text


def without_ide_context(text: str) -> str:
    """The request in a prompt of Codex for an IDE, which tells of open files before it. Any other text as it is."""
    request = _CODEX_REQUEST.search(text) if text.lstrip().startswith(_CODEX_IDE) else None
    return text if request is None else text[request.end() :].lstrip()
