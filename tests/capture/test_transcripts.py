"""The reply that a host's hook leaves out is found in its transcript."""

import json
import os
import sys
from pathlib import Path

import pytest

from kalito_mcp.capture.transcripts import reply_before, with_reply

STOPPED_MS = 1_795_536_526_608


def event(kind: str, content: object, **more: object) -> str:
    return json.dumps({"type": kind, "data": {"content": content, **more}})


def stop(moment: int = STOPPED_MS) -> str:
    return json.dumps({"type": "hook.start", "data": {"hookType": "agentStop", "input": {"timestamp": moment}}})


def written(folder: Path, *lines: str) -> Path:
    transcript = folder / "events.jsonl"
    transcript.write_text("\n".join(lines))
    return transcript


ONE_TURN = (
    event("user.message", "Who is my dentist?"),
    event("assistant.message", "I will look."),
    event("assistant.message", "of a subagent", parentToolCallId="t1"),
    event("assistant.message", ""),
    event("assistant.message", None),
    '["no event"]',
    event("assistant.message", "Dr. Okafor."),
    stop(),
)


def test_the_reply_is_what_was_said_between_the_prompt_and_the_stop(tmp_path: Path) -> None:
    before = (event("user.message", "Before?"), event("assistant.message", "Before."), stop(STOPPED_MS - 9_000))
    after = (event("user.message", "And after?"), event("assistant.message", "After."), '{"type": "assistant.mes')
    transcript = written(tmp_path, *before, *ONE_TURN, *after)
    assert reply_before(transcript, STOPPED_MS) == "I will look.\n\nDr. Okafor."


def test_an_earlier_reply_is_not_taken_for_one_that_is_not_written_yet(tmp_path: Path) -> None:
    transcript = written(tmp_path, *ONE_TURN)
    stopped = {"sessionId": "s1", "transcriptPath": str(transcript), "timestamp": STOPPED_MS + 1_400}
    assert with_reply("agentStop", stopped) is None
    written(
        tmp_path,
        *ONE_TURN,
        event("user.message", "Where?"),
        event("assistant.message", "Here."),
        stop(STOPPED_MS + 1_400),
    )
    assert with_reply("agentStop", stopped) == {**stopped, "text": "Here."}
    assert with_reply("sessionEnd", stopped) is stopped


def test_of_a_long_transcript_the_end_is_read(tmp_path: Path) -> None:
    long = event("tool.execution_complete", "x" * 2_000_000)
    lines = [event("assistant.message", "Out of reach."), long, event("assistant.message", "Hi"), stop()]
    assert reply_before(written(tmp_path, *lines), STOPPED_MS) == "Hi"


def test_without_a_transcript_there_is_no_reply(tmp_path: Path) -> None:
    assert reply_before(tmp_path / "none.jsonl", STOPPED_MS) is None


@pytest.mark.skipif(sys.platform == "win32", reason="no pipe has a path there")
def test_a_transcript_that_is_no_file_is_not_opened(tmp_path: Path) -> None:
    pipe = tmp_path / "events.jsonl"
    os.mkfifo(pipe)
    for place in (pipe, Path(os.devnull), tmp_path):
        assert reply_before(place, STOPPED_MS) is None
