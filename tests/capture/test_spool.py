"""Events that wait for a server are taken once."""

import os
from pathlib import Path

import pytest

from kalito_mcp.capture.spool import Spool


def test_events_are_taken_oldest_first_and_once(tmp_path: Path) -> None:
    spool, other = Spool(tmp_path / "spool"), Spool(tmp_path / "spool")
    assert spool.is_empty()
    for at_ms, name in ((2_000, "b"), (1_000, "a"), (10_000, "c")):
        spool.put({"n": name}, at_ms=at_ms, event_id=name)
    assert not spool.is_empty()
    taking = spool.take()
    first, file = next(taking)
    assert first == {"n": "a"}
    assert [event["n"] for event, _ in other.take()] == ["b", "c"]
    assert list(taking) == []
    file.unlink()
    assert spool.is_empty()


def test_what_could_not_be_recorded_is_taken_again(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.put({"n": 1}, at_ms=1, event_id="x")
    [(_, file)] = spool.take()
    assert list(spool.take()) == []
    spool.put_back(file)
    assert [event for event, _ in spool.take()] == [{"n": 1}]


def test_what_a_dead_server_took_is_taken_again(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.put({"n": 1}, at_ms=1, event_id="x")
    [(_, file)] = spool.take()
    spool.reopen()
    assert spool.is_empty(), "this process still has it"
    file.rename(file.with_name(file.name.replace(f"-{os.getpid()}", "-999999999")))
    spool.reopen()
    assert [event for event, _ in spool.take()] == [{"n": 1}]


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
