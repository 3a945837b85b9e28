"""The recall benchmark: its data is optional, and it searches a real memory."""

import argparse
from dataclasses import replace
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal

from bench import recall
from kalito_mcp.retrieval.formula import Weights
from kalito_mcp.retrieval.policy import SearchPolicy

TURNS = [
    {"id": "D1:1", "session": "1", "speaker": "Ann", "text": "I adopted a turtle.", "ts": "2023-05-08T13:56:00"},
    {"id": "D1:2", "session": "1", "speaker": "Bob", "text": "What is it called?", "ts": "2023-05-08T13:57:00"},
    {"id": "D2:1", "session": "2", "speaker": "Ann", "text": "Shelly it is.", "ts": "2023-06-01T09:00:00"},
]


def test_without_the_data_it_says_so_and_ends_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(recall.FOLDER_VARIABLE, str(tmp_path))
    monkeypatch.setattr("sys.argv", ["recall"])
    recall.main()
    printed = capsys.readouterr()
    assert recall.FOLDER_VARIABLE in printed.err
    assert str(tmp_path) not in printed.err
    assert printed.out == ""


def test_a_folder_that_is_named_must_have_the_data(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        recall.find_bench_data(argparse.ArgumentParser(), tmp_path)


def test_a_question_finds_its_turn_in_a_memory_that_is_filled_once(tmp_path: Path) -> None:
    with start_blocking_portal() as portal:
        memories = recall.Memories(tmp_path, portal)
        times_s: list[float] = []
        for _ in range(2):
            retriever = recall.Retriever(memories, SearchPolicy(), None, times_s)
            retriever.index(TURNS)
            assert retriever.search("Who has a turtle?", 10)[0] == "D1:1"
            retriever.close()
        assert len(times_s) == 2
        assert len(list(tmp_path.glob("*.db"))) == 1


def test_an_ablation_takes_each_weight_that_is_set_in_turn() -> None:
    some = Weights(meaning=0.2, nearby=0.0, words=0.4, time=0.0, speaker=0.0, assistant=0.0, full=1.0)
    assert list(recall.ablated(some)) == [("meaning", replace(some, meaning=0.0)), ("words", replace(some, words=0.0))]


def test_typing_mistakes_change_the_questions_and_nothing_else() -> None:
    asked = {"name": "one", "conversations": [{"turns": TURNS, "questions": [{"qid": "1", "text": "Whose turtle?"}]}]}
    wrong = recall.mistyped(asked, 1.0)
    assert wrong["conversations"][0]["questions"][0]["text"] != "Whose turtle?"
    assert wrong["conversations"][0]["turns"] == TURNS
    assert asked["conversations"][0]["questions"][0]["text"] == "Whose turtle?"
