"""The score of a message, row by row of the specification."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.records import Role
from kalito_mcp.records.importance import ImportancePolicy, score_importance

QUESTION_WITH_CODE = (
    "How do I fix this error in my function? Here's the code:\n"
    "```typescript\n"
    "function calculateTotal() {\n"
    "  // error: undefined is not a function\n"
    "  return items.reduce(...)\n"
    "}\n"
    "```\n"
)


@pytest.mark.parametrize("text", ["Good to know.", "", "ok"])
def test_every_message_starts_at_a_half(text: str) -> None:
    """memory-manager-reference, Scoring Breakdown, row 1: base 0.5."""
    assert score_importance(Role.USER, text) == 0.5


def test_a_question_adds_a_fifth() -> None:
    """memory-manager-reference, Scoring Breakdown, row 2: question +0.2."""
    for text in ("Is it?", "What a day", "how to bake", "WHY not", "whatever", "is it? yes"):
        assert score_importance(Role.USER, text) == 0.7


def test_a_question_word_counts_at_the_beginning_only() -> None:
    """memory-manager-reference, Scoring Algorithm: `startsWith`."""
    assert score_importance(Role.USER, "tell me what and how") == 0.5


def test_code_adds_fifteen_hundredths() -> None:
    """memory-manager-reference, Scoring Breakdown, row 3: code/technical +0.15."""
    for text in ("see ```x```", "the FUNCTION", "first class", "malfunction"):
        assert score_importance(Role.USER, text) == 0.65


@pytest.mark.parametrize("text", ["Error occurred", "I have an issue", "no problem"])
def test_a_problem_adds_a_tenth(text: str) -> None:
    """memory-manager-reference, Scoring Breakdown, row 4: error/problem +0.1."""
    assert score_importance(Role.USER, text) == 0.6


@pytest.mark.parametrize(("length", "score"), [(200, 0.5), (201, 0.6)])
def test_more_than_two_hundred_characters_add_a_tenth(length: int, score: float) -> None:
    """memory-manager-reference, Scoring Breakdown, row 5: long message +0.1."""
    assert score_importance(Role.USER, "x" * length) == score


@pytest.mark.parametrize(("role", "score"), [(Role.USER, 0.5), (Role.SYSTEM, 0.5), (Role.ASSISTANT, 0.55)])
def test_an_assistant_adds_a_twentieth(role: Role, score: float) -> None:
    """memory-manager-reference, Scoring Breakdown, row 6: assistant +0.05."""
    assert score_importance(role, "Noted.") == score


def test_the_sum_is_capped_at_one() -> None:
    """memory-manager-reference, Scoring Breakdown, row 7: maximum 1.0."""
    assert score_importance(Role.ASSISTANT, QUESTION_WITH_CODE + "x" * 200) == 1.0


def test_the_examples_have_the_scores_of_the_rules() -> None:
    """memory-manager-reference, Score Examples 1 to 3; Unit Tests, `should score questions/code blocks higher`."""
    for text, score in (
        # Its list of factors adds 0.1 for length, but the text has fewer than 200 characters.
        (QUESTION_WITH_CODE, 0.95),
        # As its factors say, not the 0.65 of its heading.
        ("Can you explain how authentication works?", 0.7),
        ("Thanks!", 0.5),
        ("How do I fix this error?", 0.8),
        # The unit test asks for more by a length that the text does not have.
        ("Here is my function:\n```typescript\nfunction test() {}\n```", 0.65),
    ):
        assert len(text) <= 200
        assert score_importance(Role.USER, text) == score


def test_the_numbers_are_a_policy() -> None:
    policy = ImportancePolicy(base=0.1, question=0.3, long_from=3)
    assert score_importance(Role.USER, "why", policy) == 0.4
    assert score_importance(Role.USER, "why?", policy) == 0.5


@given(role=st.sampled_from(Role), text=st.text(max_size=300))
def test_a_score_lies_between_zero_and_one_and_has_no_float_dust(role: Role, text: str) -> None:
    score = score_importance(role, text)
    assert 0.0 <= score <= 1.0
    assert score == round(score, 2)


@given(text=st.text(max_size=250), sign=st.sampled_from(["?", "```", "function", "class", "error", "problem", "issue"]))
def test_a_sign_more_never_lowers_the_score(text: str, sign: str) -> None:
    assert score_importance(Role.USER, text + sign) >= score_importance(Role.USER, text)
