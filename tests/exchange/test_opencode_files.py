"""Sessions that OpenCode kept in files, before it had a database."""

import json
from pathlib import Path
from typing import Any

import pytest

from kalito_mcp.exchange.conversation import Conversation, Home, Reading
from kalito_mcp.exchange.programs import SOURCES
from tests.exchange.files import read

ASKED, ANSWERED = "Where is the ferry?", "At pier 4."
SOURCE = SOURCES["opencode"]


def write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value, indent=2))
    return path


def text(words: str, **others: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **others}


@pytest.fixture
def storage(tmp_path: Path) -> Path:
    """A store with a session, one of a sub-agent, and a torn one."""
    folder = tmp_path / ".local" / "share" / "opencode" / "storage"
    about = {"id": "old name", "directory": "/home/ann/harbour", "time": {"created": 1_772_359_200_000}}
    write(folder / "session" / "p1" / "ses_1.json", about)
    write(folder / "session" / "p1" / "ses_2.json", {**about, "parentID": "ses_1"})
    write(folder / "session" / "p1" / "ses_3.json", '{"id": "ses_3"')
    messages = folder / "message" / "ses_1"
    write(messages / "msg_a.json", {"role": "assistant", "time": {"created": 1_772_359_201_000}, "modelID": "sonnet"})
    write(messages / "msg_b.json", {"role": "user", "time": {"created": 1_772_359_200_000}})
    write(messages / "msg_c.json", '{"role": "us')
    write(messages / "msg_d.json", {"role": "assistant", "time": {"created": 1_772_359_202_000}})
    write(folder / "part" / "msg_a" / "prt_2.json", text(ANSWERED))
    write(folder / "part" / "msg_a" / "prt_1.json", {"type": "tool", "tool": "bash"})
    write(folder / "part" / "msg_b" / "prt_1.json", text(ASKED))
    write(folder / "part" / "msg_b" / "prt_2.json", text("a file", synthetic=True))
    write(folder / "part" / "msg_b" / "prt_3.json", '{"type"')
    write(folder / "part" / "msg_b" / ".oc-prt_4.json.7.tmp", text("being written"))
    return folder


def test_sessions_in_files_are_read_in_the_order_of_time(storage: Path, tmp_path: Path) -> None:
    paths = list(SOURCE.find(Home(tmp_path, {})))
    assert [path.name for path in paths] == ["ses_1.json", "ses_2.json", "ses_3.json"]
    assert list(SOURCE.within(storage)) == paths
    found, reading = read(SOURCE, paths[0])
    assert [(turn.role, turn.key, turn.text, turn.at, turn.model) for turn in found["ses_1"]] == [
        ("user", "msg_b", ASKED, 1_772_359_200_000, None),
        ("assistant", "msg_a", ANSWERED, 1_772_359_201_000, "sonnet"),
    ]
    assert reading.skipped == {
        "file that is not JSON": 1,
        "text of the host": 1,
        "tool call or output": 1,
        "content of an unknown kind": 1,
    }
    [conversation] = SOURCE.read(Reading(paths[0]))
    assert isinstance(conversation, Conversation)
    assert conversation.folder == "/home/ann/harbour"
    assert [read(SOURCE, path)[0] for path in paths[1:]] == [{}, {}]


def test_files_are_read_each_time_until_there_is_a_database(storage: Path) -> None:
    path = storage / "session" / "p1" / "ses_1.json"
    assert not read(SOURCE, path)[1].is_whole
    (storage.parent / "opencode.db").touch()
    assert read(SOURCE, path)[1].is_whole


def test_sessions_of_the_first_releases_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "project" / "home-ann-harbour" / "storage" / "session"
    path = write(folder / "info" / "ses_1.json", {"id": "ses_1", "time": {"created": 1_772_359_200_000}})
    write(folder / "message" / "ses_1" / "msg_1.json", {"role": "user", "time": {"created": 1_772_359_200_000}})
    write(folder / "part" / "ses_1" / "msg_1" / "prt_1.json", text(ASKED))
    metadata = {"time": {"created": 1_772_359_201_000}, "assistant": {"path": {"cwd": "/home/ann/harbour"}}}
    inside = {"role": "assistant", "parts": [text(ANSWERED), {"type": "step-start"}], "metadata": metadata}
    write(folder / "message" / "ses_1" / "msg_2.json", inside)
    assert list(SOURCE.within(tmp_path)) == [path]
    found, reading = read(SOURCE, path)
    assert [(turn.text, turn.at) for turn in found["ses_1"]] == [
        (ASKED, 1_772_359_200_000),
        (ANSWERED, 1_772_359_201_000),
    ]
    assert reading.is_whole
    [conversation] = SOURCE.read(Reading(path))
    assert isinstance(conversation, Conversation)
    assert conversation.folder == "/home/ann/harbour"
