"""Events that wait for a server are taken once."""

import os
import time
from pathlib import Path

import pytest

from kalito_mcp.capture.spool import Spool


def test_events_are_taken_oldest_first_and_once(tmp_path: Path) -> None:
    spool, other = Spool(tmp_path / "spool"), Spool(tmp_path / "spool")
    assert spool.count() == 0
    for at_ms, name in ((2_000, "b"), (1_000, "a"), (10_000, "c")):
        spool.put({"n": name}, at_ms=at_ms, event_id=name)
    assert spool.count() == 3
    taking = spool.take()
    first, file = next(taking)
    assert first == {"n": "a"}
    assert [event["n"] for event, _ in other.take()] == ["b", "c"]
    assert list(taking) == []
    file.unlink()
    assert spool.count() == 0


def test_what_could_not_be_recorded_is_taken_again(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.put({"n": 1}, at_ms=1, event_id="x")
    [(_, file)] = spool.take()
    assert list(spool.take()) == []
    spool.put_back(file)
    assert [event for event, _ in spool.take()] == [{"n": 1}]


@pytest.mark.parametrize("process", [999_999_999, os.getppid()])
def test_what_a_dead_server_took_is_taken_again(tmp_path: Path, process: int) -> None:
    spool = Spool(tmp_path / "spool")
    spool.put({"n": 1}, at_ms=1, event_id="x")
    [(_, file)] = spool.take()
    spool.reopen()
    assert spool.count() == 0, "this process still has it"
    file.rename(file.with_name(file.name.replace(f"-{os.getpid()}", f"-{process}")))
    spool.reopen()
    assert [event for event, _ in spool.take()] == [{"n": 1}]


def test_what_a_server_with_the_same_number_took_is_taken_again_at_the_next_start(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    spool.put({"n": 1}, at_ms=1, event_id="x")
    assert list(spool.take())
    spool.reopen(is_start=True)
    assert [event for event, _ in spool.take()] == [{"n": 1}]


def test_secrets_and_private_parts_are_not_kept_nor_is_anything_for_others_to_read(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "hooks" / "spool")
    said = {
        "session_id": "s1",
        "prompt": "Hi <private>pw 123</private>",
        "tool_input": {"command": "login ghp_16C7e42F292c6912E7710c838347Ae178B4a"},
    }
    spool.put({"event": "Stop", "payload": said}, at_ms=1, event_id="x")
    [file] = (tmp_path / "hooks" / "spool").iterdir()
    kept = file.read_text()
    assert "pw 123" not in kept
    assert "16C7e42F" not in kept
    assert [folder.stat().st_mode & 0o077 for folder in (tmp_path / "hooks", tmp_path / "hooks" / "spool")] == [0, 0]
    [(event, _)] = spool.take()
    assert event["payload"]["session_id"] == "s1"


def test_what_has_been_of_no_use_for_a_week_is_deleted(tmp_path: Path) -> None:
    for name, age_s in (
        ("1-x.broken", 8 * 86_400),
        (".2-x.json.0a1b2c3d", 8 * 86_400),
        ("3-x.broken", 60),
        ("4-x.json", 8 * 86_400),
    ):
        (tmp_path / name).write_text("{}")
        os.utime(tmp_path / name, (time.time() - age_s,) * 2)
    Spool(tmp_path).reopen()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["3-x.broken", "4-x.json"]


def test_what_is_no_event_is_put_aside(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.put({"n": 1}, at_ms=2, event_id="x")
    (tmp_path / "1-torn.json").write_text('{"n": ', encoding="utf-8")
    (tmp_path / "3-list.json").write_text("[1]", encoding="utf-8")
    assert [event for event, _ in spool.take()] == [{"n": 1}]
    assert sorted(file.name for file in tmp_path.glob("*.broken")) == ["1-torn.broken", "3-list.broken"]


def test_what_cannot_be_kept_leaves_no_file(tmp_path: Path) -> None:
    (tmp_path / f"{1:014d}-x.json" / "in the way").mkdir(parents=True)
    with pytest.raises(OSError, match="x"):
        Spool(tmp_path).put({"n": 1}, at_ms=1, event_id="x")
    assert not list(tmp_path.glob("*.tmp"))


def test_events_with_erased_words_are_deleted_whether_they_wait_or_are_put_aside(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    for number, words in enumerate(("My zebra is\n called Otto.", "He said: my zebra is called Otto.", "My zebra.")):
        spool.put({"payload": {"prompt": words}}, at_ms=number, event_id="x")
    [(_, first), *others] = spool.take()
    spool.put_aside(first)
    for _, file in others:
        spool.put_back(file)
    assert (spool.put_aside_count(), spool.count()) == (1, 2)
    spool.erase(["My zebra is called Otto.", ""])
    assert (spool.put_aside_count(), spool.count()) == (0, 2)
    assert [event["payload"]["prompt"] for event, _ in spool.take()][1] == "My zebra."
