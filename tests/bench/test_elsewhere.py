"""The benchmark on sets from elsewhere: each format is read as it is published, and the evidence counts."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.elsewhere import Conversation, Question, ask, fill, goodai, madial, memsim
from kalito_mcp.retrieval.policy import SearchPolicy

pytestmark = pytest.mark.anyio
_MEMORIES = [
    {"1": {"time": "2023-12-25", "scene": "Activity", "emotion": "Happy", "event": "Bart danced at a party."}},
    {"3": {"time": "2023-03-07", "scene": "Activity", "emotion": "Sad", "event": "Lisa lost a chess game."}},
    {"4": {"time": "2023-05-15", "scene": "Food", "emotion": "Happy", "event": "The family ate mango ice cream."}},
]
_TALK = {
    "dialogue": [
        "<BOD>\n",
        '<Bart>: "I am going to dance!"\n',
        '<Assistant>: "Great!"\n',
        '<Bart>: "And then some ice cream."\n',
        '<Assistant>: "Do you remember the party?"\n',
        "<EOD>\n",
    ],
    "test-turn": [4],
    "relevant-id": [1, 3],
}


def _write(file: Path, *lines: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(json.dumps(line, ensure_ascii=False) for line in lines), encoding="utf-8")


def test_a_day_of_memdaily_is_a_conversation_with_its_question(tmp_path: Path) -> None:
    said = [
        {"mid": 0, "message": "我的上司就只有高中学历。", "time": "2024年04月01日 周一 08:39"},
        {"mid": 1, "message": "我表妹学历是硕士。", "time": "2024年04月04日 周四 07:08"},
    ]
    asked = {"question": "我的上司是哪个学校毕业的？", "target_step_id": [0], "time": "2024年04月05日 周五 11:59"}
    file = tmp_path / "data_generation/final_dataset/messages_and_QAs/01_simple_roles.json"
    _write(file, [{"message_list": said, "question_list": [asked]}])
    [found] = memsim(tmp_path)
    assert found.texts == [
        ("我的上司就只有高中学历。", "2024-04-01T08:39:00Z"),
        ("我表妹学历是硕士。", "2024-04-04T07:08:00Z"),
    ]
    assert found.questions == [Question("我的上司是哪个学校毕业的？", frozenset({0}), "2024-04-05T11:59:00Z")]


def test_a_child_is_asked_with_all_that_it_said_before_the_assistant_should_remember(tmp_path: Path) -> None:
    _write(tmp_path / "data/en/MADial-Bench-en-memory.json", *_MEMORIES)
    _write(tmp_path / "data/en/MADial-Bench-en-dialogue.json", _TALK)
    bart, lisa = madial(tmp_path, "en", "en")
    assert [text for text, _ in bart.texts] == [
        "Bart danced at a party. (Activity, Happy)",
        "The family ate mango ice cream. (Food, Happy)",
    ]
    [question] = bart.questions
    # What the other child has lived through is no evidence.
    assert question[:2] == ("I am going to dance! And then some ice cream.", frozenset({0}))
    assert next(text for text, _ in lisa.texts) == "Lisa lost a chess game. (Activity, Sad)"
    assert not lisa.questions


def test_all_tests_of_one_goodai_benchmark_are_one_conversation(tmp_path: Path) -> None:
    definitions = tmp_path / "data/tests/Benchmark 1/definitions"
    _write(definitions / "Colours/0.def.json", {"script": ["It is red.", "Which?"], "is_question": [False, True]})
    _write(
        definitions / "Shopping/0.def.json",
        {"script": ["Add soap.", "Add milk.", "What is on it?"], "is_question": [False, False, True]},
    )
    [found] = goodai(tmp_path)
    assert [text for text, _ in found.texts] == ["It is red.", "Add soap.", "Add milk."]
    assert found.questions == [Question("Which?", frozenset({0})), Question("What is on it?", frozenset({1, 2}))]


async def test_each_conversation_is_asked_in_a_memory_of_its_own(tmp_path: Path) -> None:
    turtle, boat = ("We have a turtle called Shelly.", None), ("The boat is at the pier.", None)
    conversations = [
        Conversation([turtle], [Question("What is the turtle called?", frozenset({0}))]),
        Conversation([boat, turtle], [Question("Where is the boat?", frozenset({0, 1}))]),
    ]
    await fill(tmp_path / "memory.db", conversations)
    found = await ask(tmp_path / "memory.db", conversations, SearchPolicy())
    assert (found["questions"], found["R@10"], found["hit@1"], found["silent"]) == (2, 75.0, 100.0, 0.0)
    assert found["fts5"] == 75.0
