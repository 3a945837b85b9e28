"""What a short summary and a summary of summaries keep, and what they drop."""

from collections.abc import Sequence

import pytest

from kalito_mcp.domain.records import ConversationSummary, MessageWithImportance, Role, SummaryMethod
from kalito_mcp.summaries.extractive import fold_summaries, summarize_messages
from kalito_mcp.summaries.summarizer import SummaryPolicy

POLICY = SummaryPolicy()
WEEKS: Sequence[Sequence[str]] = (
    (
        "We move to Kirkegata 7 in Trondheim on May 3!",
        "Wow, that is so great, I am really happy for you two.",
        "The cake comes out of the oven at 10, it smells lovely in here.",
        "Lena is allergic to peanuts, so please no satay sauce.",
        "What a day. The sun is out and the birds are singing, it is just wonderful.",
    ),
    (
        "I signed the contract with Nordkraft, I start on August 1 as a grid engineer.",
        "Congratulations, you really deserve it after all this time!",
        "Nothing much happened, we just hung around and watched some films.",
        "We decided to sell the car, because the tram stops at our door.",
        "That sounds sensible, everybody should do that if they can.",
    ),
    (
        "Lena has swimming lessons with Coach Berg every Tuesday at 16:30.",
        "Oh how sweet, kids grow up so fast these days, don't they?",
        "I became a vegetarian in 2019, and I do not miss the sausages at all.",
        "Can you believe how long this week felt?",
        "Our landlord Mr. Haugen has the number 555-0188.",
    ),
    (
        "The deadline for the grant application is April 15.",
        "Good luck with that, I will keep my fingers crossed for you.",
        "It was raining, so we stayed in and played cards and had some tea.",
        "We still have to find somebody who feeds the cat Miso in July.",
        "Sure, let us talk about that another time.",
    ),
)
FACTS = (
    "Kirkegata 7|Trondheim|May 3|allergic to peanuts|Nordkraft|August 1|sell the car|Coach Berg|Tuesday at 16:30|"
    "vegetarian|Haugen|555-0188|April 15|Miso in July"
).split("|")
TRIVIA = "wow|congratulations|birds|films|fingers crossed|so fast|played cards|another time".split("|")


def _messages(texts: Sequence[str], first: int = 1) -> list[MessageWithImportance]:
    return [
        MessageWithImportance(n, "s", (Role.ASSISTANT, Role.USER)[n % 2], text, None, None, 0, 0.5, n, 0)
        for n, text in enumerate(texts, first)
    ]


def _summary(text: str, number: int = 0, level: int = 0) -> ConversationSummary:
    ends = number * 5 + 1, number * 5 + 5
    ids = f"msg_{ends[0]}", f"msg_{ends[1]}"
    return ConversationSummary(
        f"summary_{number}", "s", text, 5, *ids, 0.7, 0, 0, level, *ends, 0, 0, SummaryMethod.EXTRACTIVE
    )


def test_a_summary_of_summaries_keeps_lasting_facts_and_drops_trivia() -> None:
    parts = [
        _summary(summarize_messages(_messages(texts, 1 + 5 * week), max_chars=400), week)
        for week, texts in enumerate(WEEKS)
    ]
    fold = fold_summaries(parts, max_chars=600)
    assert [fact for fact in FACTS if fact not in fold] == []
    assert [word for word in TRIVIA if word in fold.lower()] == []


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (
            "Yesterday I took Rex to the vet in Hamar, and it was all very exciting for everybody there.",
            "Yesterday (1969-12-31) I took Rex to the vet in Hamar…",
        ),
        ("I booked the flight to Lisbon, it was 240 euros.", "I booked the flight to Lisbon, it was 240 euros."),
        ("I will feed your cat Miso in July, I promise.", "I will feed your cat Miso in July, I promise."),
        ("We moved to Bergen (the rainy one, as they say, you know).", "We moved to Bergen…"),
    ],
)
def test_the_end_of_a_sentence_that_says_little_is_dropped(said: str, kept: str) -> None:
    summary = summarize_messages(_messages([said]), max_chars=300)
    assert kept in summary
    assert summary.endswith(kept)


@pytest.mark.parametrize(("length", "most"), [(100, 240), (2_000, 410), (20_000, 800)])
def test_a_summary_of_messages_is_a_share_of_their_length(length: int, most: int) -> None:
    assert POLICY.extractive_characters(_messages(["x" * length])) == most


@pytest.mark.parametrize(("level", "most"), [(0, 900), (1, 2_000), (2, 3_100)])
def test_a_summary_of_summaries_has_more_room_the_higher_its_level(level: int, most: int) -> None:
    assert POLICY.fold_characters([_summary("x", level=level)]) == most
