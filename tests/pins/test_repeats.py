"""Which lasting pins are shown: the newest of a statement, and each once."""

import pytest

from kalito_mcp.domain.known import KnownRecord
from kalito_mcp.domain.records import Reach, RecordType
from kalito_mcp.pins.repeats import superseded, without_repeats


def known(*texts: str, created_at: int | None = None) -> list[KnownRecord]:
    """Records of these texts, each a day newer than the one before, or all of one moment."""
    return [
        KnownRecord(text, RecordType.PIN, Reach.PERSON, text, 0.8, day if created_at is None else created_at, 9)
        for day, text in enumerate(texts)
    ]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The user lives in Oslo.", "The user lives in Bergen with Ines."),
        ("I live in Oslo.", "The user now lives in Bergen."),
        ("I work at Equinor.", "I now work for Statkraft."),
        ("My name is Jon.", "The user's name is Jonas."),
        ("The user's favourite colour is green.", "My favorite colour is blue.".replace("favorite", "favourite")),
        ("Ann: I live in Oslo.", "Ann: I live in Bergen."),
        ("Ines lives in Oslo.", "Ines lives in Bergen."),
        ("The user is 41 years old.", "I am 42 years old."),
    ],
)
def test_a_newer_value_supersedes_the_older_one(older: str, newer: str) -> None:
    assert superseded(known(older, newer)) == {older}
    assert superseded(known(newer, older)) == {newer}
    assert superseded(known(older, newer, created_at=1)) == frozenset()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I have a dog named Rex.", "I have a dog named Max."),
        ("The user likes tea.", "The user likes coffee."),
        ("I am allergic to nuts.", "I am allergic to seafood."),
        ("I live in Oslo.", "Ann: I live in Bergen."),
        ("Ines lives in Oslo.", "Lena lives in Bergen."),
        ("My phone number is 1.", "My work phone number is 2."),
        ("I lived in Oslo.", "I live in Bergen."),
    ],
)
def test_what_may_both_be_true_stays(one: str, other: str) -> None:
    assert superseded(known(one, other)) == frozenset()


def test_what_says_the_same_is_there_once_and_not_if_it_is_shown_already() -> None:
    said = known("The user is allergic to nuts.", "I am allergic to nuts!", "I am not allergic to nuts.", "I like tea.")
    kept = [one.text for one in without_repeats(said, ["The user likes tea"], most=9)]
    assert kept == ["The user is allergic to nuts.", "I am not allergic to nuts."]
    asked = known(
        "We never use inline styles.", "Remember: we never use inline styles.", "Remember the nuts.", "The nuts."
    )
    assert [one.text for one in without_repeats(asked, [], most=9)] == [
        "We never use inline styles.",
        "Remember the nuts.",
    ]
    assert len(without_repeats(said, [], most=2)) == 2
    assert without_repeats(said, [], most=0) == []


def test_texts_of_any_script_are_compared() -> None:
    said = known("我对海鲜过敏。", "我对海鲜过敏", "我对坚果过敏。", "🦐", "🥜")
    assert [one.text for one in without_repeats(said, [], most=9)] == ["我对海鲜过敏。", "我对坚果过敏。", "🦐", "🥜"]
