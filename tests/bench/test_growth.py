"""The benchmark of growth: the evidence stands among older and newer messages, and its share among the hits counts."""

from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench.growth import Around, Growing, questions_of
from bench.recall import BenchData
from kalito_mcp.config.settings import Settings
from kalito_mcp.upkeep.answer_log import UsagePolicy
from tests.bench.test_recall import TURNS

pytestmark = pytest.mark.anyio
ASKED = {
    "id": "one",
    "turns": TURNS,
    "questions": [
        {"text": "Who has a turtle?", "evidence": ["D1:1"], "category": "single-hop"},
        {"text": "Where is the lighthouse?", "evidence": ["D2:1"], "category": "single-hop"},
        {"text": "What did nobody say?", "evidence": ["D1:2"], "category": "adversarial"},
        {"text": "What is missing?", "evidence": [], "category": "single-hop"},
    ],
}
OTHERS = [{"turns": [{"text": "The deploy failed again."}, {"text": "Restart the server then."}]}]


async def test_the_evidence_is_asked_for_among_older_and_newer_messages(tmp_path: Path) -> None:
    bench_data = BenchData(tmp_path, SimpleNamespace(NOT_HEADLINE={"adversarial"}))  # type: ignore[arg-type]
    questions = questions_of(bench_data, [ASKED])
    assert [one["evidence"] for one in questions] == [{"one/D1:1": 0.0}, {"one/D2:1": 2 / 3}]
    growing = Growing(tmp_path, Around(OTHERS))
    await growing.add_around(60, started_at=1_000)
    await growing.add_turns([ASKED])
    await growing.add_around(40, started_at=1_700_000_000_000)
    found = await growing.ask(questions, replace(Settings(), usage=UsagePolicy(enabled=False)))
    assert found["messages"] == 103
    assert (found["R@10"], found["fts5"]) == (50.0, 50.0)
    assert found["by_age"] == [100.0, 0.0, 0.0, 0.0]
    assert found["silent"] == 0.5


def test_around_the_evidence_real_turns_come_first_then_made_ones_of_their_words() -> None:
    texts = list(Around(OTHERS).texts(5))
    assert texts[:2] == ["The deploy failed again.", "Restart the server then."]
    words = {word for text in texts[:2] for word in text.split()}
    assert all(set(text.split()) <= words for text in islice(texts, 2, None))
    assert list(Around(OTHERS).texts(5)) == texts
