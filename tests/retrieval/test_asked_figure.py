"""Which kind of figure a question asks for, and which texts have one."""

import pytest

from kalito_mcp.retrieval.asked_figure import asked_figure


@pytest.mark.parametrize(
    ("question", "telling", "silent"),
    [
        (
            "How much do I pay for the boat?",
            ["940 a month", "two hundred, she said", "$9", "6 quid", "11k"],
            ["at 9:30"],
        ),
        ("How much did the kayak cost?", ["it was free", "900,000"], ["in 2019", "31 times", "5 km", "90 minutes"]),
        ("what's my salary at the shop", ["50 grand"], ["since 12 March", "a lot"]),
        ("How old is Ann?", ["she's 9", "seven today", "turned forty", "born in Moss"], ["she is old"]),
        ("In what year did we meet?", ["in 2019", "back in '94", "ten years ago"], ["on Friday", "at 9"]),
        ("What is Ann's phone number?", ["+47 22 33 44 55", "555-0199 12"], ["room 12", "call her"]),
        ("what is my e-mail address", ["ann@example.org"], ["I wrote you a mail"]),
        ("What is the interest rate?", ["4.9 for two years", "3 %", "two per cent"], ["it is high"]),
        ("Which colour is the boat?", ["the red one"], ["the old one"]),
        ("how tall is Noor", ["180", "forty"], ["one of them", "a party in the city", ""]),
    ],
)
def test_a_text_tells_the_figure_that_is_asked_for_or_not(question: str, telling: list[str], silent: list[str]) -> None:
    has_figure = asked_figure(question)
    assert has_figure is not None
    assert [text for text in telling if not has_figure(text)] == []
    assert [text for text in silent if has_figure(text)] == []


@pytest.mark.parametrize("question", ["How much progress is there?", "How are you?", "Who is Ann?", "old boats", ""])
def test_other_questions_ask_for_no_figure(question: str) -> None:
    assert asked_figure(question) is None
