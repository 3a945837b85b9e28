"""Which lasting pins are shown: each statement once."""

from kalito_mcp.domain.known import KnownRecord
from kalito_mcp.domain.records import Reach, RecordType
from kalito_mcp.pins.repeats import without_repeats


def known(*texts: str) -> list[KnownRecord]:
    """Records of these texts, each a day newer than the one before."""
    return [KnownRecord(text, RecordType.PIN, Reach.PERSON, text, 0.8, day, 9) for day, text in enumerate(texts)]


def test_what_says_the_same_is_there_once_and_not_if_it_is_shown_already() -> None:
    said = known("I'm allergic to nuts.", "I am allergic to nuts!", "I am not allergic to nuts.", "I like tea.")
    kept = [one.text for one in without_repeats(said, ["I really like tea"], most=9)]
    assert kept == ["I'm allergic to nuts.", "I am not allergic to nuts."]
    asked = known(
        "We never use inline styles.", "Remember: we never use inline styles.", "Remember the nuts.", "The nuts."
    )
    assert [one.text for one in without_repeats(asked, [], most=9)] == [
        "We never use inline styles.",
        "Remember the nuts.",
    ]
    assert len(without_repeats(said, [], most=2)) == 2
    assert without_repeats(said, [], most=0) == []
    values = known("The user lives in Oslo.", "The user lives in Bergen.")
    assert without_repeats(values, [], most=9) == values


def test_texts_of_any_script_are_compared() -> None:
    said = known("我对海鲜过敏。", "我对海鲜过敏", "我对坚果过敏。", "🦐", "🥜")
    assert [one.text for one in without_repeats(said, [], most=9)] == ["我对海鲜过敏。", "我对坚果过敏。", "🦐", "🥜"]
