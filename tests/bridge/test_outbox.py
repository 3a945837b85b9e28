"""What waits for the home, on disk."""

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kalito_mcp.bridge.answers import Answers
from kalito_mcp.bridge.outbox import Outbox
from kalito_mcp.errors import StorageError
from tests.server import prepared


def contents(outbox: Outbox) -> list[object]:
    return [entry.content["n"] for entry in outbox.waiting()]


def test_entries_wait_in_the_order_that_they_came_in(tmp_path: Path) -> None:
    outbox, other = Outbox(tmp_path), Outbox(tmp_path)
    for number in range(12):
        (outbox if number % 2 else other).put({"n": number})
    assert contents(outbox) == list(range(12))
    first = next(outbox.waiting())
    outbox.remove(first)
    outbox.put({"n": 12})
    assert contents(other) == list(range(1, 13))


def test_many_processes_lose_no_entry_of_another_and_each_keeps_its_order(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from kalito_mcp.bridge.outbox import Outbox\n"
        "for n in range(25): Outbox(Path(sys.argv[1])).put({'n': n, 'by': sys.argv[2]})"
    )
    running = [prepared.start([sys.executable, "-c", script, str(tmp_path), str(by)]) for by in range(3)]
    assert [one.wait() for one in running] == [0, 0, 0]
    entries = list(Outbox(tmp_path).waiting())
    assert len(entries) == 75
    for by in range(3):
        assert [entry.content["n"] for entry in entries if entry.content["by"] == str(by)] == list(range(25))


def test_only_one_process_delivers(tmp_path: Path) -> None:
    outbox, other = Outbox(tmp_path), Outbox(tmp_path)
    with outbox.delivering() as is_ours, other.delivering() as is_theirs:
        assert is_ours
        assert not is_theirs
    with other.delivering() as is_theirs:
        assert is_theirs


def test_what_is_refused_is_kept_with_the_reason_until_somebody_decides(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path)
    outbox.put({"n": 1})
    outbox.put_aside(next(outbox.waiting()), "conflict: no")
    assert outbox.count() == 0
    [refused] = outbox.refused()
    assert (refused.content, refused.reason) == ({"n": 1}, "conflict: no")
    outbox.send_again(refused)
    assert contents(outbox) == [1]
    assert outbox.refused() == []


def a_folder(place: Path) -> None:
    place.mkdir()
    (place / "in it").touch()


@pytest.mark.parametrize(
    "make",
    [
        a_folder,
        lambda place: place.symlink_to(place),
        lambda place: place.symlink_to("/dev/zero"),
        os.mkfifo,
        lambda place: place.symlink_to("nowhere"),
    ],
    ids=["a folder", "a link to itself", "a link to a device", "a pipe", "a link to nothing"],
)
def test_what_is_no_file_holds_nothing_up_and_can_be_discarded(tmp_path: Path, make: Callable[[Path], object]) -> None:
    outbox = Outbox(tmp_path)
    outbox.put({"n": 1}, 10)
    strange = tmp_path / "outbox" / f"{5:020d}-aa.json"
    make(strange)
    assert [entry.content for entry in outbox.waiting()] == [{"n": 1}]
    assert outbox.count() == 1
    [refused] = outbox.refused()
    assert (refused.id, refused.reason) == ("aa", "its file is damaged")
    make(strange)
    assert len(list(outbox.waiting())) == 1
    assert len(outbox.refused()) == 2
    for one in outbox.refused():
        outbox.remove(one)
    assert outbox.refused() == []


def test_a_damaged_file_holds_nothing_up_and_is_not_thrown_away(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path)
    outbox.put({"n": 1})
    outbox.put({"n": 2})
    next(outbox.waiting()).file.write_bytes(b'{"n": \xff')
    assert contents(outbox) == [2]
    [refused] = outbox.refused()
    assert refused.reason == "its file is damaged"
    assert refused.file.read_bytes() == b'{"n": \xff'
    # Somebody may have mended it, or the disk.
    outbox.send_again(refused)
    assert contents(outbox) == [2]
    [refused] = outbox.refused()
    refused.file.write_bytes(b'{"n": 1}')
    [refused] = outbox.refused()
    outbox.send_again(refused)
    assert contents(outbox) == [2, 1]
    assert outbox.refused() == []


def test_what_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "outbox").write_text("a file in its place")
    with pytest.raises(StorageError, match="nothing was kept"):
        Outbox(tmp_path).put({"n": 1})


def test_what_a_killed_process_left_is_swept_after_an_hour(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path)
    outbox.put({"n": 1})
    left, new = tmp_path / "outbox" / ".000000000002-x.json.abc", tmp_path / "outbox" / ".000000000003-x.json.abc"
    for file in (left, new):
        file.write_text("{")
    os.utime(left, (1, 1))
    outbox.sweep()
    assert not left.exists()
    assert new.exists()
    assert contents(outbox) == [1]


def test_kept_answers_are_bounded_and_too_old_ones_are_not_shown(tmp_path: Path) -> None:
    answers = Answers(tmp_path / "answers")
    for number in range(300):
        answers.keep({"n": number}, {"text": "x"}, last_erasure="")
    assert answers.count() <= 256 + 32
    found = answers.find({"n": 299})
    assert found is not None
    assert found.result == {"text": "x"}
    assert answers.find({"n": 300}) is None
    answers.keep({"n": "long"}, {"text": "x" * (1 << 20)}, last_erasure="")
    assert answers.find({"n": "long"}) is None
    [file] = [file for file in (tmp_path / "answers").iterdir() if b'"n": 299' in file.read_bytes()]
    file.write_text(file.read_text().replace('"at_ms": 1', '"at_ms": 0'))
    assert answers.find({"n": 299}) is None
    answers.clear()
    assert answers.count() == 0


def test_no_answer_survives_an_erasure_that_it_was_asked_before(tmp_path: Path) -> None:
    answers, other = Answers(tmp_path / "answers"), Answers(tmp_path / "answers")
    before = answers.last_erasure()
    answers.keep({"n": 1}, {"text": "x"}, last_erasure=before)
    other.clear()
    answers.keep({"n": 2}, {"text": "x"}, last_erasure=before)
    assert answers.count() == 0
    answers.keep({"n": 3}, {"text": "x"}, last_erasure=answers.last_erasure())
    assert answers.find({"n": 3}) is not None
    # A file that comes back, from a backup or because it could not be deleted, is not shown.
    [file] = (one for one in (tmp_path / "answers").iterdir() if b'"n": 3' in one.read_bytes())
    kept = file.read_bytes()
    other.clear()
    file.write_bytes(kept)
    assert answers.find({"n": 3}) is None


def test_an_erasure_that_ends_while_an_answer_is_looked_for_hides_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, other = Answers(tmp_path / "answers"), Answers(tmp_path / "answers")
    answers.keep({"n": 1}, {"text": "x"}, last_erasure="")
    begun, looks = other.begin_erasure(), Answers._in_folder

    def look(self: Answers) -> list[Path]:
        if self is answers:
            other.end_erasure(begun, is_done=True)
        return looks(self)

    monkeypatch.setattr(Answers, "_in_folder", look)
    assert answers.find({"n": 1}) is None


def test_an_erasure_that_was_cut_off_shows_nothing_though_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    answers = Answers(tmp_path / "answers")
    answers.keep({"n": 1}, {"text": "x"}, last_erasure="")
    os.utime(answers.begin_erasure(), (1, 1))
    monkeypatch.setattr("kalito_mcp.bridge.answers.write_whole", full)
    assert answers.find({"n": 1}) is None


def test_answers_that_cannot_be_deleted_are_an_error_that_says_where_they_are(tmp_path: Path) -> None:
    answers = Answers(tmp_path / "answers")
    answers.keep({"n": 1}, {"text": "x"}, last_erasure="")
    [file] = (tmp_path / "answers").iterdir()
    file.unlink()
    file.mkdir()
    with pytest.raises(StorageError, match="answers"):
        answers.clear()


def test_an_answer_that_cannot_be_kept_leaves_nothing_behind(tmp_path: Path) -> None:
    answers = Answers(tmp_path)
    answers.keep({"n": 1}, {"text": "x"}, last_erasure="")
    [file] = tmp_path.iterdir()
    file.unlink()
    file.mkdir()  # in its place
    answers.keep({"n": 1}, {"text": "x"}, last_erasure="")
    assert [*tmp_path.iterdir()] == [file]
