"""Which sentences a digest keeps, and how it writes them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from kalito_mcp.kinds.judged import Judged, Kind
from kalito_mcp.summaries.extractive import Draft, Said, write
from kalito_mcp.summaries.selection import Candidate, choose, choose_of_parts, last_words, lines

HEAD = "Conversation with 9 messages."
UNLIKE = 0
SAME = 90
CLOSE = 40


def candidate(
    order: int, text: str, kind: Kind = Kind.FACT, worth: int = 80, *, group: int | None = None, by: str = "user"
) -> Candidate:
    place = order if group is None else group
    return Candidate(order, place, by, text, kind, worth, is_assistant=by == "assistant")


def alike(count: int, percent: int) -> Sequence[Sequence[int]]:
    """All sentences are as much like each other."""
    return [[100 if row == column else percent for column in range(count)] for row in range(count)]


def texts(kept: Sequence[Candidate]) -> list[str]:
    return [one.text for one in kept]


def test_the_headings_stand_in_their_order_and_the_sentences_below_them_in_that_of_time() -> None:
    kept = [
        candidate(0, "Snapshots are not set up yet", Kind.OPEN, by="assistant"),
        candidate(1, "The share is mounted.", Kind.OUTCOME, by="assistant"),
        candidate(2, "The NAS has four disks.", Kind.FACT),
        candidate(3, "We take SHR-1.", Kind.DECISION),
        candidate(4, "Never delete anything unread.", Kind.RULE),
        candidate(5, "It is Ana now, no longer Ben.", Kind.CHANGE),
        candidate(6, "The old one goes on Friday.", Kind.PLAN),
    ]
    assert lines(kept) == [
        "Decided:",
        "user: We take SHR-1. Never delete anything unread. It is Ana now, no longer Ben.",
        "Learned:",
        "user: The NAS has four disks.",
        "Done:",
        "assistant: The share is mounted.",
        "Open:",
        "assistant: Snapshots are not set up yet.",
        "user: The old one goes on Friday.",
    ]


def test_what_is_worth_nothing_stands_first_without_a_heading() -> None:
    kept = [candidate(0, "We decided to move.", Kind.DECISION, 100), candidate(1, "Hm.", worth=0, by="")]
    assert lines(kept) == ["Hm.", "Decided:", "user: We decided to move."]


def test_an_answer_stands_behind_what_was_proposed() -> None:
    answer = replace(
        candidate(1, "agreed, but 4 attempts", Kind.DECISION), proposal="assistant: I would try five times."
    )
    assert lines([candidate(0, "We use pnpm.", Kind.RULE), answer, candidate(2, "Ana decides.", Kind.RULE)]) == [
        "Decided:",
        "user: We use pnpm.",
        "assistant: I would try five times. → user: agreed, but 4 attempts. Ana decides.",
    ]


@pytest.mark.parametrize(
    ("earlier", "later", "percent", "kept"),
    [
        (candidate(0, "The meeting is at 9."), candidate(1, "The meeting is at 10."), SAME, ["The meeting is at 10."]),
        (candidate(0, "I have a dog."), candidate(1, "I have a cat."), CLOSE, ["I have a dog.", "I have a cat."]),
        (candidate(0, "It is at 9."), candidate(1, "So at 9.", by="assistant"), SAME, ["It is at 9."]),
        (candidate(0, "It is at 9."), candidate(1, "Hm, at 9?", worth=35), SAME, ["It is at 9.", "Hm, at 9?"]),
        (candidate(0, "A.", Kind.DECISION), candidate(4, "No, B.", Kind.DECISION), CLOSE, ["No, B."]),
        (candidate(0, "A.", Kind.PLAN), candidate(4, "It is off.", Kind.CHANGE), CLOSE, ["It is off."]),
        (candidate(0, "A.", Kind.DECISION), candidate(4, "No, B.", Kind.DECISION), UNLIKE, ["A.", "No, B."]),
        (candidate(0, "A.", Kind.DECISION), candidate(5, "And B.", Kind.DECISION), CLOSE, ["A.", "And B."]),
        (candidate(0, "A.", Kind.RULE), candidate(1, "And B.", Kind.DECISION), CLOSE, ["A.", "And B."]),
        (
            candidate(0, "A.", by="assistant", kind=Kind.DECISION),
            candidate(1, "B.", Kind.DECISION),
            CLOSE,
            ["A.", "B."],
        ),
        (candidate(0, "At 2.", Kind.OUTCOME), candidate(1, "At 11.", Kind.PLAN, group=0), CLOSE, ["At 11."]),
    ],
)
def test_the_last_word_on_a_matter_takes_the_place_of_the_earlier(
    earlier: Candidate, later: Candidate, percent: int, kept: list[str]
) -> None:
    assert texts(last_words([earlier, later], alike(6, percent), has_decisions=True)) == kept


def test_among_people_only_repetitions_are_left_out() -> None:
    said = [candidate(0, "A.", Kind.DECISION), candidate(1, "No, B.", Kind.DECISION)]
    assert texts(last_words(said, alike(2, CLOSE), has_decisions=False)) == ["A.", "No, B."]
    assert texts(last_words(said, alike(2, SAME), has_decisions=False)) == ["No, B."]


def test_within_a_part_whose_order_is_not_that_of_time_nothing_is_compared() -> None:
    said = [
        candidate(0, "No, B.", Kind.DECISION, group=0),
        candidate(1, "Then A.", Kind.PLAN, group=0),
        candidate(2, "C after all.", Kind.DECISION, group=1),
    ]
    assert texts(last_words(said[:2], alike(2, CLOSE), has_decisions=True, of_parts=True)) == ["No, B.", "Then A."]
    assert texts(last_words(said, alike(3, CLOSE), has_decisions=True, of_parts=True)) == ["C after all."]


def test_an_open_point_is_gone_once_somebody_answers_it() -> None:
    asked = candidate(0, "Which of the two is wrong is open.", Kind.OPEN, by="assistant")
    answered = candidate(1, "It is the second.", Kind.FACT)
    assert texts(last_words([asked, answered], alike(2, CLOSE), has_decisions=True)) == ["It is the second."]
    still = [candidate(0, "The permit is open.", Kind.OPEN), candidate(1, "So is the bill.", Kind.OPEN)]
    assert last_words(still, alike(2, CLOSE), has_decisions=True) == still


def test_without_a_model_the_same_words_are_said_once() -> None:
    said = [candidate(0, "Never on Fridays."), candidate(1, "never on fridays."), candidate(2, "On Mondays.")]
    assert texts(last_words(said, [], has_decisions=True)) == ["never on fridays.", "On Mondays."]


def test_what_is_surely_worth_keeping_comes_before_what_says_much() -> None:
    sure = candidate(0, "never on fridays", Kind.RULE, 75)
    dense = candidate(1, "Ada, Bo and Cy of Delft rent 3 of 12 rooms until 2027.", worth=50)
    assert texts(choose([sure, dense], 60, surest_first=True)) == ["never on fridays"]
    assert texts(choose([sure, dense], 70, surest_first=False)) == [dense.text]


def test_of_two_as_sure_the_later_comes_first() -> None:
    said = [candidate(0, "We deploy on Tuesdays."), candidate(1, "The tests run in CI now.")]
    assert texts(choose(said, 45, surest_first=True)) == ["The tests run in CI now."]


def test_a_word_that_is_said_counts_once() -> None:
    said = [
        candidate(0, "The lighthouse keeper repaired the lantern", worth=50),
        candidate(1, "The keeper repaired the lighthouse lantern", worth=49),
        candidate(2, "The ferry leaves from Ullapool harbour now", worth=48),
    ]
    assert texts(choose(said, 105, surest_first=True)) == [said[0].text, said[2].text]


def test_every_part_gets_its_share() -> None:
    long = [
        candidate(n, f"In {1990 + n} Ada moved to city number {n} of the Alps.", worth=90, group=0) for n in range(4)
    ]
    short = [candidate(9, "we sold the car", worth=45, group=1)]
    assert texts(choose_of_parts([*long, *short], 140, share=70))[-1] == "we sold the car"
    assert len(choose_of_parts([*long, *short], 1_000, share=500)) == 5


def written(said: Sequence[Said], judged: Sequence[Judged], percent: int) -> str:
    """The digest of sentences that are all as much like each other."""
    gram = np.array(alike(len(said), percent)) / 100
    values, vectors = np.linalg.eigh(gram)
    rows = (vectors * np.sqrt(np.maximum(values, 0))).astype(np.float32)
    return write(Draft([HEAD], said), judged, rows, max_chars=500)


def test_a_short_decision_comes_with_what_was_proposed() -> None:
    said = [
        Said("Shall I go on?", "assistant", 0),
        Said("I would try at most five times.", "assistant", 0),
        Said("agreed, but 4 attempts", "user", 1),
        Said("and cap it", "user", 1),
    ]
    judged = [Judged(Kind.OPEN, 0.1, 0), Judged(Kind.PLAN, 0.3, 0), *[Judged(Kind.DECISION, 0.8, 0)] * 2]
    assert written(said, judged, 20).split("\n") == [
        HEAD,
        "Decided:",
        "assistant: I would try at most five times. → user: agreed, but 4 attempts. and cap it.",
    ]
    alone = [one if one.speaker == "user" else replace_text(one) for one in said]
    assert "→" not in written(alone, judged, 20)


def replace_text(said: Said) -> Said:
    """The same, said by the user in the message before."""
    return said._replace(speaker="user")


def test_a_longer_decision_or_another_kind_says_by_itself_what_it_is_about() -> None:
    said = [Said("I would try five times.", "assistant", 0), Said("agreed, but four", "user", 1)]
    for text, kind in (("agreed, " + "but four of them at most " * 5, Kind.DECISION), ("agreed, but four", Kind.FACT)):
        judged = [Judged(Kind.PLAN, 0.6, 0), Judged(kind, 0.8, 0)]
        assert "→" not in written([said[0], said[1]._replace(text=text)], judged, 20)
