"""The reply in a host's own transcript, for hosts whose hooks do not report it. Standard library alone.

Reads only. Source: `session-state/<session>/events.jsonl` of Copilot CLI 1.0.102. It may not be written yet when the
hook `agentStop` runs. Then it ends with an earlier reply, in a conversation that goes on.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

_MOST_READ: Final = 1_048_576
_STOPPED: Final = "agentStop"


def with_reply(name: str, payload: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The payload of an event of Copilot CLI, with the reply as its `text` if the event ends one; None if the
    transcript does not have that yet. Other payloads are returned unchanged."""
    transcript, stopped_ms = payload.get("transcriptPath"), payload.get("timestamp")
    if name != _STOPPED or "text" in payload or not isinstance(transcript, str) or not isinstance(stopped_ms, int):
        return payload
    reply = reply_before(Path(transcript), stopped_ms)
    return None if reply is None else {**payload, "text": reply}


def reply_before(transcript: Path, stopped_ms: int) -> str | None:
    """What the assistant said between a prompt and the moment that it stopped, its messages two lines apart. None if
    the transcript has no such moment, or cannot be read.

    Only the last megabyte of the file is read.
    """
    said: list[str] | None = None
    for line in reversed(_last_lines(transcript)):
        try:
            event = json.loads(line)
            kind, fields = event["type"], event["data"]
            if kind == "hook.start" and fields["hookType"] == _STOPPED and fields["input"]["timestamp"] == stopped_ms:
                said = []
            elif kind == "user.message" and said is not None:
                break
            elif kind == "assistant.message" and said is not None and not fields.get("parentToolCallId"):
                said.append(fields["content"].strip())
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
    return None if said is None else "\n\n".join(filter(None, reversed(said)))


def _last_lines(transcript: Path) -> list[bytes]:
    try:
        if not transcript.is_file():
            return []  # to open a pipe or a device may take for ever
        with transcript.open("rb") as file:
            file.seek(max(0, transcript.stat().st_size - _MOST_READ))
            return file.read(_MOST_READ).splitlines()
    except OSError:
        return []
