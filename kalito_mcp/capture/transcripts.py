"""The last reply in a host's own transcript, for hosts whose hooks do not report it. Standard library alone.

Reads only. Source: `session-state/<session>/events.jsonl` of Copilot CLI 1.0.102, which has the reply in it when the
hook `agentStop` runs.
"""

import json
from pathlib import Path
from typing import Final

_MOST_READ: Final = 1_048_576


def last_reply(transcript: Path) -> str:
    """What the assistant said since the last prompt, its messages two lines apart; empty if nothing can be read.

    Only the last megabyte of the file is read.
    """
    said: list[str] = []
    for line in reversed(_last_lines(transcript)):
        try:
            event = json.loads(line)
            kind, message = event["type"], event["data"]
        except (ValueError, KeyError, TypeError):
            continue
        if kind == "user.message":
            break
        if kind == "assistant.message" and isinstance(message, dict) and not message.get("parentToolCallId"):
            content = message.get("content")
            said += [content.strip()] if isinstance(content, str) and content.strip() else []
    return "\n\n".join(reversed(said))


def _last_lines(transcript: Path) -> list[bytes]:
    try:
        with transcript.open("rb") as file:
            file.seek(max(0, transcript.stat().st_size - _MOST_READ))
            return file.read(_MOST_READ).splitlines()
    except OSError:
        return []
