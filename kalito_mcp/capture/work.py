"""What the assistant did between two replies, in a few lines: files that it changed, commands that failed, and those
that worked afterwards. Pure.

Commands that worked at once are not worth remembering. A failed command, its error, and what worked next are.
"""

from collections.abc import Sequence
from typing import Final

from kalito_mcp.capture.events import ToolUse
from kalito_mcp.text.plurals import plural

_MOST_FILES: Final = 20
_MOST_FAILURES: Final = 5
_COMMAND_CHARS: Final = 300
_ERROR_CHARS: Final = 400


def work_note(uses: Sequence[ToolUse]) -> str:
    """The lines, empty if there is nothing to keep."""
    changed = list(dict.fromkeys(file for use in uses if use.error is None for file in use.files))
    lines: list[str] = []
    if changed:
        more = f", and {plural(len(changed) - _MOST_FILES, 'more file')}" if len(changed) > _MOST_FILES else ""
        lines.append(f"Changed {', '.join(changed[:_MOST_FILES])}{more}.")
    failures = [(place, use) for place, use in enumerate(uses) if use.error is not None]
    for place, use in failures[-_MOST_FAILURES:]:
        what = f"`{_short(use.command, _COMMAND_CHARS)}`" if use.command else f"{use.name} {', '.join(use.files)}"
        lines.append(f"{what} failed: {_short(use.error or '', _ERROR_CHARS)}")
        fix = _what_worked(uses[place + 1 :], use)
        if fix:
            lines.append(f"What worked then: {fix}")
    return "\n".join(lines)


def _what_worked(later: Sequence[ToolUse], failed: ToolUse) -> str:
    """The files changed before the same command worked, or the next command of the same program that worked."""
    files: list[str] = []
    for use in later:
        if use.error is not None:
            continue
        files += use.files
        if use.command is None or failed.command is None or _program(use.command) != _program(failed.command):
            continue
        after = f"after changing {', '.join(dict.fromkeys(files[:_MOST_FILES]))}" if files else ""
        if use.command == failed.command:
            return f"the same, {after}" if after else ""
        return f"`{_short(use.command, _COMMAND_CHARS)}`{f', {after}' if after else ''}"
    return ""


def _program(command: str) -> str:
    return command.split(maxsplit=1)[0] if command.split() else ""


def _short(text: str, most: int) -> str:
    """The text on one line, or its end if it is too long: an error usually ends with what is wrong."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"…{line[1 - most :]}"
