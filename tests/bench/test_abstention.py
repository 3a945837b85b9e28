"""What a threshold decides, and how well scores tell questions with an answer from those without."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.abstention import best, decided, renamed, roc_area

SCORES = st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.35, 0.5, 0.9]), min_size=1, max_size=12)


def test_a_threshold_between_the_two_decides_without_a_mistake() -> None:
    assert decided(0.5, [0.6, 0.9], [0.1, 0.4]) == {
        "threshold": 0.5,
        "precision": 1.0,
        "recall": 1.0,
        "f1": 1.0,
        "silent": 1.0,
    }


def test_without_a_threshold_all_that_is_found_is_answered() -> None:
    made = decided(0.0, [0.6, 0.9, 0.2, 0.0], [0.1, 0.0])
    assert (made["precision"], made["recall"], made["silent"]) == (0.75, 0.75, 0.5)


@given(SCORES, SCORES)
def test_no_threshold_is_better_than_the_best(answered: list[float], without: list[float]) -> None:
    found = best(answered, without)
    for threshold in (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.9, 1.0):
        assert decided(threshold, answered, without)["f1"] <= found["f1"]


@given(SCORES, SCORES)
def test_the_roc_area_counts_the_pairs_in_the_right_order(answered: list[float], without: list[float]) -> None:
    pairs = [(one > other) + (one == other) / 2 for one in answered for other in without]
    assert roc_area(answered, without) == pytest.approx(sum(pairs) / len(pairs))


def test_names_are_exchanged_as_whole_words() -> None:
    names = {"Ann": "Bob", "Bob": "Ann"}
    assert renamed("Did Ann tell Bob's Anna?", names) == "Did Bob tell Ann's Anna?"
    assert renamed("Did she?", {}) == "Did she?"
