"""What can be read of an event is kept, however long it is and in whatever bytes it comes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kalito_mcp.capture.given import event_in
from kalito_mcp.runtime.database_address import LocalFiles

_SAID = {"session_id": "s1", "prompt": "Die Tür klemmt"}
_PLAIN = json.dumps(_SAID, ensure_ascii=False)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_any_encoding_of_unicode_is_read(encoding: str) -> None:
    assert event_in(f"{_PLAIN}\r\n".encode(encoding)) == _SAID


@pytest.mark.parametrize("encoding", ["cp1252", "cp437"])
def test_a_letter_in_another_encoding_is_replaced(encoding: str) -> None:
    assert event_in(_PLAIN.encode(encoding)) == {**_SAID, "prompt": "Die T\ufffdr klemmt"}


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("", {}),
        ("\0\r\n", {}),
        ('{"a": 1, "prompt": "to be or n', {"a": 1, "prompt": "to be or n"}),
        (r'{"a": "C:\\", "prompt": "half \u00', {"a": "C:\\", "prompt": r"half \u00"}),
        ('{"a": [1, {"b": "c", "d', {"a": [1, {"b": "c"}]}),
        ('{"a": "b", "c": 12.', {"a": "b"}),
        ('{"a": "b", "c": ', {"a": "b"}),
        ('{"a": "b", c: "d"}', {"a": "b"}),
        (r'{"cwd": "C:\work\user", "a": "two\nlines"}', {"cwd": r"C:\work\user", "a": "two\nlines"}),
        ('{"a": "two\nlines\0"}\0\0', {"a": "two\nlines\0"}),
        (r'{"a": "half \ud83d"}', {"a": "half \ud83d"}),
        ('shell: warning\n{"a": "b"}', {"a": "b"}),
    ],
)
def test_of_a_torn_or_mangled_event_its_whole_fields_and_the_beginning_of_the_last_are_kept(
    given: str, read: dict[str, object]
) -> None:
    assert event_in(given.encode()) == read


def test_lists_in_lists_without_end_do_not_lose_the_fields_before_them() -> None:
    assert event_in(b'{"a": "b", "c": ' + b"[" * 100_000)["a"] == "b"


@pytest.mark.parametrize("given", ["[]", "null", "words", "{", "{a"])
def test_an_event_without_fields_is_empty_or_refused(given: str) -> None:
    try:
        assert event_in(given.encode()) == {}
    except TypeError as error:
        assert "JSON object" in str(error)


@pytest.mark.parametrize("letter", ["x", "漢", '\\"'])
def test_of_long_texts_the_longest_beginning_that_a_message_may_have_is_kept_and_the_end(letter: str) -> None:
    long = {"prompt": letter * 1_500_000, "tool_response": {"stdout": "y" * 3_000_000 + "out of disk"}}
    found = event_in(json.dumps({**long, "files": ["f"] * 400_000, "session_id": "s1"}, ensure_ascii=False).encode())
    assert len(json.dumps(found)) < 2_200_000
    assert found["session_id"] == "s1"
    assert found["prompt"].startswith(letter * 60_000)
    assert "too long" in found["prompt"]
    assert found["tool_response"]["stdout"].endswith("out of disk")


def test_the_host_can_write_an_event_of_any_length(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    given = json.dumps({"prompt": "Why? " + "x" * 17_000_000, "session_id": "s1"}).encode()
    command = [sys.executable, "-c", "from kalito_mcp.cli.hook import main; main()", "codex", "UserPromptSubmit"]
    environment = {**os.environ, "KALITO_DATABASE": str(database)}
    done = subprocess.run(command, input=given, env=environment, capture_output=True, check=True)
    assert done.stderr == b""
    [file] = LocalFiles(database).spool.glob("*.json")
    payload = json.loads(file.read_text(encoding="utf-8"))["payload"]
    assert payload["session_id"] == "s1"
    assert payload["prompt"].startswith("Why? xxx")
