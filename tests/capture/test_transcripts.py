"""The reply that a host's hook leaves out is found in its transcript."""

import json
from pathlib import Path

from kalito_mcp.capture.transcripts import last_reply


def event(kind: str, content: object, **more: object) -> str:
    return json.dumps({"type": kind, "data": {"content": content, **more}})


def test_the_reply_is_what_was_said_since_the_last_prompt(tmp_path: Path) -> None:
    transcript = tmp_path / "events.jsonl"
    lines = [
        event("user.message", "Before?"),
        event("assistant.message", "Before."),
        event("user.message", "Who is my dentist?"),
        event("assistant.message", "I will look."),
        event("assistant.message", "of a subagent", parentToolCallId="t1"),
        event("assistant.message", ""),
        '["no event"]',
        event("assistant.message", "Dr. Okafor."),
        '{"type": "assistant.message", "data": {"cont',
    ]
    transcript.write_text("\n".join(lines))
    assert last_reply(transcript) == "I will look.\n\nDr. Okafor."


def test_of_a_long_transcript_the_end_is_read(tmp_path: Path) -> None:
    transcript = tmp_path / "events.jsonl"
    long = event("tool.execution_complete", "x" * 2_000_000)
    lines = [event("assistant.message", "Out of reach."), long, event("assistant.message", "Hi")]
    transcript.write_text("\n".join(lines))
    assert last_reply(transcript) == "Hi"


def test_without_a_transcript_there_is_no_reply(tmp_path: Path) -> None:
    assert last_reply(tmp_path / "none.jsonl") == ""
