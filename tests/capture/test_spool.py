"""Events that wait for a server are taken once."""

import os
import time
from pathlib import Path

import pytest

from kalito_mcp.capture.spool import Outcome, Spool


def put(spool: Spool, *names: str, session: str = "s") -> None:
    for name in names:
        spool.put({"n": name, "payload": {"session_id": session}}, at_ms=1_000, event_id=name)


def taken(spool: Spool, outcome: Outcome = Outcome.RECORDED) -> list[str]:
    found = []
    for one in spool.take():
        found.append(one.event["n"])
        one.outcome = outcome
    return found


def test_events_are_taken_once_and_in_the_order_in_which_they_came_even_if_the_clock_was_set_back(
    tmp_path: Path,
) -> None:
    spool = Spool(tmp_path / "spool")
    assert spool.count() == 0
    for at_ms, name in ((2_000, "b"), (1_000, "a"), (10_000, "c")):
        spool.put({"n": name}, at_ms=at_ms, event_id=name)
    assert spool.count() == 3
    assert taken(spool) == ["b", "a", "c"]
    assert spool.count() == 0


def test_a_conversation_waits_for_the_server_that_records_its_oldest_event_and_others_do_not(tmp_path: Path) -> None:
    spool, other = Spool(tmp_path / "spool"), Spool(tmp_path / "spool")
    put(spool, "1", "2", session="slow")
    put(spool, "3", session="quick")
    taking = spool.take()
    assert next(taking).event["n"] == "1"
    assert taken(other) == ["3"]
    taking.close()  # as if the first server had died
    assert taken(other) == ["1", "2"]


def test_what_could_not_be_recorded_is_taken_again_before_what_follows_it(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    put(spool, "1", "2")
    assert taken(spool, Outcome.WAITS) == ["1"]
    assert taken(spool) == ["1", "2"]


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
    [one] = spool.take()
    assert one.event["payload"]["session_id"] == "s1"


def test_what_has_been_of_no_use_for_a_week_is_deleted(tmp_path: Path) -> None:
    for name, age_s in (
        ("1-x.broken", 8 * 86_400),
        (".2-x.json.0a1b2c3d", 8 * 86_400),
        ("3-x.broken", 60),
        ("4-x.json", 8 * 86_400),
    ):
        (tmp_path / name).write_text("{}")
        os.utime(tmp_path / name, (time.time() - age_s,) * 2)
    Spool(tmp_path).sweep()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["3-x.broken", "4-x.json"]


def test_what_is_no_event_is_put_aside(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.put({"n": 1}, at_ms=2, event_id="x")
    (tmp_path / "1-torn.json").write_text('{"n": ', encoding="utf-8")
    (tmp_path / "3-list.json").write_text("[1]", encoding="utf-8")
    assert taken(spool) == [1]
    assert sorted(file.name for file in tmp_path.glob("*.broken")) == ["1-torn.broken", "3-list.broken"]


def test_an_event_that_cannot_be_kept_raises(tmp_path: Path) -> None:
    (tmp_path / "spool").write_text("in the way")
    with pytest.raises(OSError, match="spool"):
        put(Spool(tmp_path / "spool"), "x")


def test_events_with_erased_words_are_deleted_whether_they_wait_or_are_put_aside(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    for number, words in enumerate(("My zebra is\n called Otto.", "He said: my zebra is called Otto.", "My zebra.")):
        spool.put({"payload": {"prompt": words}}, at_ms=number, event_id="x")
    for number, one in enumerate(spool.take()):
        one.outcome = Outcome.WAITS if number else Outcome.BROKEN
    assert (spool.put_aside_count(), spool.count()) == (1, 2)
    spool.erase(["My zebra is called Otto.", ""])
    assert (spool.put_aside_count(), spool.count()) == (0, 2)
    for one in spool.take():
        one.outcome = Outcome.RECORDED
    assert one.event["payload"]["prompt"] == "My zebra."
