"""The hook's output on stdout, in each host's format. Pure."""

import json
from typing import Any, Final

from kalito_mcp.capture.events import EventKind, HookEvent

_LISTENING: Final = frozenset({EventKind.STARTED, EventKind.PROMPT})
"""Events whose answer a host puts before its model."""

_MOST_CHARS: Final = 9_500
"""Claude Code takes ten thousand."""


def answer_for(event: HookEvent, context: str) -> str:
    """The output with which a hook gives its host some context; empty without context, or if the host takes no
    context."""
    if not context or event.kind not in _LISTENING:
        return ""
    context = _shortened(context)
    answer: dict[str, Any]
    if event.host == "cursor":
        answer = {"continue": True, "additional_context": context}
    elif event.host == "copilot":
        answer = {"additionalContext": context}
    elif event.host in ("claude-code", "codex", "vscode", "gemini", "opencode"):
        answer = {"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": context}}
    else:
        return ""
    return json.dumps(answer, ensure_ascii=False)


def _shortened(context: str) -> str:
    """The context without lines before the last one, which closes it, if it is too long."""
    if len(context) <= _MOST_CHARS:
        return context
    *lines, closing = context.split("\n")
    while lines and sum(map(len, lines)) + len(lines) + len(closing) > _MOST_CHARS:
        lines.pop()
    return "\n".join([*lines, closing])
