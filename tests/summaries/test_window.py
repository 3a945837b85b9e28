"""How many messages make one summary."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.records import MessageWithImportance, Role
from kalito_mcp.summaries.window import SummaryWindowPolicy, summary_window, technicality

PROSE = (
    "We went to the lake with the children and stayed until it was dark.",
    "My grandmother likes to read in the garden, when the weather is good.",
    "That sounds lovely, I hope you will have a great time in Lisbon on 12 June, for 240 euros.",
    "She said that she would rather stay at home and/or visit us later.",
)
TECHNICAL = (
    "The deploy fails with ECONNREFUSED on port 5432, see db/pool.py and retry_count.",
    "ValueError in parse_date: use datetime.fromisoformat() or pass --strict=false",
    "```python\ndef parse_date(text):\n    return text\n```",
    "The query takes 350 ms, the index on user_id is missing, /var/log/app.log shows a timeout after 30s.",
)


def _messages(*texts: str) -> list[MessageWithImportance]:
    return [MessageWithImportance(n, "s", Role.USER, text, None, None, 0, 0.5, n, 0) for n, text in enumerate(texts, 1)]


@pytest.mark.parametrize("text", PROSE)
def test_prose_is_hardly_technical(text: str) -> None:
    assert technicality([text]) < 0.2


@pytest.mark.parametrize("text", TECHNICAL)
def test_code_identifiers_errors_and_measures_are_technical(text: str) -> None:
    assert technicality([text]) > 0.7


@pytest.mark.parametrize("text", ["", "   \n", "```"])
def test_a_text_without_words_is_not_technical(text: str) -> None:
    assert technicality([text]) < 0.01


@given(text=st.text(max_size=200))
def test_technicality_lies_between_zero_and_one(text: str) -> None:
    assert 0.0 <= technicality([text]) <= 1.0


@given(text=st.text(alphabet=st.characters(exclude_characters="`"), max_size=200))
def test_a_code_block_more_never_makes_a_text_less_technical(text: str) -> None:
    assert technicality([f"{text}\n```\nx = parse(y)\n```"]) >= technicality([text])


def test_ordinary_messages_are_summarized_by_fifteen() -> None:
    """memory-manager-reference, Adaptive Summarization Threshold: `return 15`."""
    assert summary_window(_messages(*PROSE * 4)) == 15
    assert summary_window([]) == 15


def test_technical_messages_are_summarized_by_ten() -> None:
    """memory-manager-reference, Adaptive Summarization Threshold: technicality above 0.7 gives 10."""
    assert summary_window(_messages(*TECHNICAL * 4)) == 10


@pytest.mark.parametrize(("length", "window"), [(500, 15), (501, 10)])
def test_messages_above_five_hundred_characters_on_average_are_summarized_by_ten(length: int, window: int) -> None:
    """memory-manager-reference, Adaptive Summarization Threshold: `avgMessageLength > 500` gives 10."""
    assert summary_window(_messages(*[("ab " * 200)[:length]] * 15)) == window


def test_only_the_first_messages_of_a_backlog_decide() -> None:
    assert summary_window(_messages(*PROSE * 4, *["long " * 400] * 90)) == 15
    assert summary_window(_messages(*["long " * 400] * 15, *PROSE * 30)) == 10


def test_the_numbers_are_a_policy() -> None:
    long = _messages(*["word " * 200] * 6)
    assert summary_window(long, SummaryWindowPolicy(threshold=6, dense_threshold=4)) == 4
    assert summary_window(long, SummaryWindowPolicy(threshold=6, dense_threshold=4, dense_length=2000)) == 6
    assert summary_window(long, SummaryWindowPolicy(is_adaptive=False)) == 15


def test_a_quarter_of_a_megabyte_is_read_in_linear_time() -> None:
    for unit in ("f(", "a.", "/a", "aB", "--", "_a", "`", "1.", "```\n", "我"):
        assert 0.0 <= technicality([unit * (262_144 // len(unit))]) <= 1.0
