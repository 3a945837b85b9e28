"""What hosts put into a prompt, out of what the user typed: reminders, diagnostics, what is open in an IDE; and what
the user typed to the host, not to the assistant. Pure."""

import re
from typing import Final

_BLOCK: Final = re.compile(
    "<(system-reminder|ide_opened_file|ide_selection|ide_diagnostics|new-diagnostics|user-prompt-submit-hook"
    "|post-tool-use-hook|session-start-hook)>"
)
_ENVELOPE: Final = re.compile(
    r"\s*<(session_context|environment_context|environment_details|hook_context|user_instructions|system_reminder"
    r"|system-reminder|current_datetime|additional_data|attached_files|open_and_recently_viewed_files|project_layout"
    r"|workspace_info|environment_info|reminderInstructions|editorContext)>"
)
"""Text that hosts write before a prompt, or in a separate message: the date, the system, the files of the folder."""

_COMMAND: Final = re.compile(
    r"\s*/(?:add-dir|agents|approvals|clear|color|compact|compress|config|context|cost|doctor|effort|exit|export|fast|help"
    r"|hooks|ide|init|login|logout|mcp|memory|model|models|new|output-style|permissions|plugin|privacy|quit|rename"
    r"|resume|rewind|settings|stats|status|statusline|tasks|terminal-setup|theme|todos|tools|upgrade|usage|vim)(?:\s|\Z)"
)
"""Commands that hosts carry out themselves. What follows one that a person or a plugin wrote is for the assistant."""

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


def words_of_person(text: str) -> str:
    """A person's words in a message to the assistant, without the host's text before them. Empty if that
    is all, or if it is a command to the host, such as `/model opus`."""
    place = 0
    while opening := _ENVELOPE.match(text, place):
        closing = f"</{opening[1]}>"
        end = text.find(closing, opening.end())
        if end < 0:
            break
        place = end + len(closing)
    words = text[place:].lstrip() if place else text
    return "" if _COMMAND.match(words) else words
