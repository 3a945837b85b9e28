"""Pairs of statements that seem to disagree."""

from pathlib import Path
from typing import Final

import pytest

from kalito_mcp.pins.disagreements import denied_words, differing, names_in

PAIRS: Final = [
    line.split("\t") for line in Path(__file__).with_name("disagreeing.tsv").read_text(encoding="utf-8").splitlines()
]
"""Written by hand in nine languages: whether a person would have to decide between the two, and the two."""


def test_four_of_five_pairs_found_disagree_and_four_of_five_that_disagree_are_found() -> None:
    found = [disagree for disagree, one, other in PAIRS if differing(one, other) is not None]
    disagreeing = [disagree for disagree, _, _ in PAIRS if disagree == "yes"]
    assert (len(PAIRS), len(disagreeing)) == (96, 48)
    assert found.count("yes") / len(found) >= 0.8
    assert found.count("yes") / len(disagreeing) >= 0.8


@pytest.mark.parametrize(("disagree", "one", "other"), PAIRS)
def test_a_pair_is_the_same_from_both_sides(disagree: str, one: str, other: str) -> None:
    del disagree
    found = differing(one, other)
    assert differing(other, one) == (None if found is None else found[::-1])
    assert differing(one, one) is None


@pytest.mark.parametrize(
    ("one", "other", "values"),
    [
        ("The release is on May 3.", "The release is on June 12.", (("May", "3"), ("June", "12"))),
        ("We use Postgres 15.", "We use Postgres 16.", (("15",), ("16",))),
        ("We never use Windows.", "We use Windows.", ((), ())),
        ("The server is in Oslo.", "The server is in Oslo and Bergen.", None),
        ("The kitchen is red. " * 20 + "Oslo", "The kitchen is red. " * 20 + "Rome", None),
        ("", "", None),
        ("Oslo", "Rome", None),
    ],
)
def test_the_words_are_named_in_which_they_differ(
    one: str, other: str, values: tuple[tuple[str, ...], tuple[str, ...]] | None
) -> None:
    assert differing(one, other) == values


@pytest.mark.parametrize(
    ("text", "denied", "passing"),
    [
        ("actually scrap that, no Redis, an LRU is enough", "redis", "scrap"),
        ("we don’t need Redis any more", "redis", "we"),
        ("Nein, nicht in Redis, sondern im Speicher", "redis", "speicher"),
        ("pas de Redis pour ce service", "redis", "service"),
        ("Redis is fast, and it was never the problem", "problem", "redis"),
    ],
)
def test_the_words_behind_a_negation_are_denied(text: str, denied: str, passing: str) -> None:
    assert denied in denied_words(text)
    assert passing not in denied_words(text)


def test_the_names_in_a_text_are_no_numbers_and_no_first_words() -> None:
    assert names_in("Pages are cached in Redis 7 on Fly.io for 15 minutes.") == {"redis", "fly.io"}
    assert names_in("In Graz I’m at home, and I know Sean O’Hara.") == {"graz", "sean", "o'hara"}
