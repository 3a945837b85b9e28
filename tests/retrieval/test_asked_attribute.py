"""Which noun or figure a question asks for."""

import pytest

from kalito_mcp.retrieval.asked_attribute import asked_attribute


@pytest.mark.parametrize(
    ("question", "noun"),
    [
        ("What's the number plate of my van?", "plate"),
        ("What is the family name of Odile?", "family"),
        ("What is the name of my nephew?", None),
        ("With which airline do I fly to Oslo?", "airline"),
        ("what colour is the kayak", "colour"),
        ("Who is our dentist?", "dentist"),
        ("who's Ann's piano teacher now?", "teacher"),
        ("When is Noor's graduation?", "graduation"),
        ("How many metres is the boat?", "metres"),
        ("What was the height of the shelf?", "height"),
        ("What kind of boat is it?", None),
        ("What happened to the boat?", None),
        ("Where do we live?", None),
        ("Which is it?", None),
        ("What is my blood type?", "blood"),
        ("What is the full name of the harbour?", None),
        ("What is the seventh step?", None),
        ("What is a mooring?", None),
        ("what my", None),
        ("How many areas are there?", None),
        ("which", None),
        ("When I build a boat in a shed, what tools should I have?", None),
        ("", None),
    ],
)
def test_the_noun_that_a_question_asks_for(question: str, noun: str | None) -> None:
    assert asked_attribute(question) == noun
