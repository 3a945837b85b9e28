"""Which lasting pins are shown: each statement once."""

from kalito_mcp.domain.known import KnownRecord
from kalito_mcp.domain.records import Reach, RecordType
from kalito_mcp.pins.repeats import name_the_same, without_repeats


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


def test_a_task_and_an_open_point_name_the_same_work_if_most_words_agree() -> None:
    for task, point, is_same in (
        ("Renew the TLS certificate", "the TLS certificate has to be renewed before 12 December", True),
        ("write the orders migration", "We still need to write the migration for the orders table.", True),
        ("Renew the TLS certificate", "nobody knows who renews the domain", False),
        ("Write a test for the orders page", "We still need to write the migration for the orders table.", False),
        ("Tests", "The tests of the importer are still missing.", False),
        ("Write tests", "We still need to write load tests for the billing API.", False),
        ("Fix login", "Login on Safari must be fixed for the new tenants before Monday.", False),
        ("Fix login", "The login on Safari has to be fixed.", True),
        ("Fix the login of tenants on Safari, which loops after a reload, and tell Ana", "Fix the login", True),
    ):
        assert name_the_same(task, point) is is_same, (task, point)
