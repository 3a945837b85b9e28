"""Prompts that ask where the last work ended or what is open now."""

import pytest

from kalito_mcp.text.languages import ENGLISH, tables
from kalito_mcp.text.recent_work import Row, asks_where_left_off, rows

_ROWS = list(rows())


@pytest.mark.parametrize("row", _ROWS, ids=[f"{row.language}-{number}" for number, row in enumerate(_ROWS)])
def test_each_pattern_has_a_sentence_that_asks_it_and_one_that_does_not(row: Row) -> None:
    assert asks_where_left_off(row.asking)
    assert asks_where_left_off(row.asking.lower().rstrip("?？؟"))
    assert not asks_where_left_off(row.other)


def test_every_language_of_the_search_has_patterns() -> None:
    assert {row.language for row in _ROWS} == {ENGLISH, *tables()}


@pytest.mark.parametrize(
    "text",
    [
        "good morning, where did I leave off and what is open today?",
        "pick up where we left off yesterday",
        "I spent two weeks in Norway. Where did we leave off?",
        "whats next",
        "ou en etais-je",
        "donde lo dejamos ayer",
        "na czym skonczylem w piatek",
        "nerede kalmistik",
        "waar was ik gisteren gebleven",
        "지난주에 내가 뭐 했어",
    ],
)
def test_greetings_times_and_missing_accents_do_not_matter(text: str) -> None:
    assert asks_where_left_off(text)


@pytest.mark.parametrize(
    "text",
    [
        "continue",
        "what should I do?",
        "What is the next step of the deploy script?",
        "The login is fixed. What's next?",
        "where did we leave the docs of the billing API?",
        "继续",
        "",
        "where did I leave off? " * 40,
    ],
)
def test_a_prompt_with_a_subject_or_about_what_is_in_sight_does_not_ask_it(text: str) -> None:
    assert not asks_where_left_off(text)
