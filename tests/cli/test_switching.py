"""When and where nothing is remembered, from the command line."""

import json
from pathlib import Path

import pytest

from kalito_mcp.runtime.database_address import LocalFiles
from kalito_mcp.switch import FOR_EVER, Switch, read_switch
from tests.cli.conftest import Invoke

HOUR_MS = 3_600_000


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


def test_a_pause_lasts_until_it_is_ended(invoke: Invoke, database: Path) -> None:
    outcome = invoke("pause", "--database", str(database))
    assert (outcome.code, outcome.out) == (0, "paused: nothing is remembered; `kalito-mcp resume` ends it\n")
    assert read_switch(LocalFiles(database).switch) == Switch(FOR_EVER)
    assert invoke("resume", "--database", str(database)).out == "remembering again\n"
    assert read_switch(LocalFiles(database).switch) == Switch()
    assert invoke("resume", "--database", str(database)).out == "was not paused\n"


def test_a_pause_for_a_time_ends_by_itself(invoke: Invoke, database: Path) -> None:
    outcome = invoke("pause", "--for", "2h", "--database", str(database))
    assert "until 2" in outcome.out
    until = read_switch(LocalFiles(database).switch).paused_until
    assert until is not None
    assert read_switch(LocalFiles(database).switch).is_paused(until - 1)
    assert read_switch(LocalFiles(database).switch).is_paused(until - 2 * HOUR_MS + 60_000)
    assert not read_switch(LocalFiles(database).switch).is_paused(until)


def test_a_time_that_cannot_be_read_pauses_nothing(invoke: Invoke, database: Path) -> None:
    for wrong in ("soon", "0m", "5", "-3h", "10 weeks"):
        outcome = invoke("pause", f"--for={wrong}", "--database", str(database))
        assert (outcome.code, "such as 30m" in outcome.err) == (2, True)
    assert not LocalFiles(database).switch.exists()


def test_folders_are_excluded_listed_and_remembered_again(invoke: Invoke, database: Path, tmp_path: Path) -> None:
    at = ("--database", str(database))
    assert invoke("exclude", *at).out == "no folder is excluded\n"
    shop, diary = tmp_path / "shop", tmp_path / "diary"
    for folder in (shop, diary):
        folder.mkdir()
    assert invoke("exclude", str(shop), str(diary), str(shop / "."), *at).out == f"{shop}\n{diary}\n"
    switch = read_switch(LocalFiles(database).switch)
    assert [switch.is_excluded(str(one)) for one in (shop, shop / "web", tmp_path / "shopping", tmp_path)] == [
        True,
        True,
        False,
        False,
    ]
    assert invoke("exclude", "--remove", str(shop), *at).out == f"{diary}\n"
    assert invoke("exclude", "c:/Work/shop/", *at).out == f"{diary}\nC:\\Work\\shop\n"
    assert read_switch(LocalFiles(database).switch).is_excluded(r"C:\work\shop\web"), "a folder of Windows, elsewhere"
    unknown = invoke("exclude", "--remove", str(shop), *at)
    assert unknown.code == 2
    assert "is not excluded" in unknown.err


def test_an_excluded_folder_that_is_not_there_is_excluded_and_said(
    invoke: Invoke, database: Path, tmp_path: Path
) -> None:
    listed, note = invoke("exclude", str(tmp_path / "diray"), "--database", str(database)).out.splitlines()
    assert listed == str(tmp_path / "diray")
    assert f"there is no folder {listed} yet" in note
    assert read_switch(LocalFiles(database).switch).is_excluded(listed)


def test_a_pause_keeps_the_excluded_folders(invoke: Invoke, database: Path, tmp_path: Path) -> None:
    at = ("--database", str(database))
    invoke("exclude", str(tmp_path), *at)
    invoke("pause", *at)
    invoke("resume", *at)
    assert read_switch(LocalFiles(database).switch).excluded == (str(tmp_path),)


@pytest.mark.parametrize("content", ["{", "[]", '{"paused_until": "x"}', '{"excluded": "x"}', '{"excluded": [5]}'])
def test_a_damaged_switch_is_told_and_written_anew(invoke: Invoke, database: Path, content: str) -> None:
    LocalFiles(database).switch.parent.mkdir()
    LocalFiles(database).switch.write_text(content, encoding="utf-8")
    refused = invoke("pause", "--database", str(database))
    assert refused.code == 1
    assert "kalito-mcp resume" in refused.err
    outcome = invoke("resume", "--database", str(database))
    assert outcome.out == "the list of excluded folders could not be read and is empty now\nremembering again\n"
    assert json.loads(LocalFiles(database).switch.read_text(encoding="utf-8")) == {"paused_until": None, "excluded": []}


def test_a_folder_that_cannot_be_written_is_told(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "memory.db.hooks").write_text("in the way", encoding="utf-8")
    refused = invoke("pause", "--database", str(tmp_path / "memory.db"))
    assert refused.code == 1
    assert "kalito-mcp:" in refused.err
