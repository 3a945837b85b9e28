"""In every language, questions in other word forms find what was said, and almost none of them finds nothing."""

from dataclasses import replace
from pathlib import Path

import pytest

from bench.languages import SETS, LanguageSet, ask, trigrams
from kalito_mcp.config.settings import Settings
from kalito_mcp.text.analysis import words
from kalito_mcp.text.languages import language_of
from kalito_mcp.upkeep.answer_log import UsagePolicy
from tests.campaign import first_of

pytestmark = pytest.mark.anyio
FILES = sorted(SETS.glob("*.json"), key=lambda path: (path.stem != "en", path.stem))
CODES = [path.stem for path in FILES]


def test_the_languages_that_are_promised_have_a_set() -> None:
    assert set(CODES) >= set("en de fr es pt it nl ru tr ar hi zh ja ko".split())


@pytest.mark.parametrize("path", first_of(FILES), ids=CODES)
async def test_at_least_20_of_25_answers_are_among_five_hits_and_at_most_2_questions_find_nothing(path: Path) -> None:
    asked = LanguageSet.load(path)
    assert len({place for _, place in asked.questions}) == len(asked.questions) == 25
    found = await ask(asked, replace(Settings(), usage=UsagePolicy(enabled=False)))
    assert found["R@5"] >= 20
    assert found["silent"] <= 2


@pytest.mark.usefixtures("meaning_installed")
@pytest.mark.parametrize("code", first_of(["zh", "en"]))
async def test_with_the_model_at_least_23_of_25_are_found(code: str) -> None:
    found = await ask(LanguageSet.load(SETS / f"{code}.json"), replace(Settings(), usage=UsagePolicy(enabled=False)))
    assert found["R@5"] >= 23
    assert found["silent"] <= 1


def test_the_function_words_tell_the_language_of_most_questions() -> None:
    for path in FILES:
        codes = [language_of(words(text)) for text, _ in LanguageSet.load(path).questions]
        assert codes.count(path.stem) >= 20, path.stem


def test_the_trigrams_of_the_benchmark_find_what_they_share() -> None:

    messages = LanguageSet.load(FILES[0]).messages
    assert trigrams(LanguageSet("one", messages, [(messages[7][1], 7)])) == 1
