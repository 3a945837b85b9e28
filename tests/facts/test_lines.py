"""Which of two statements stands."""

import pytest

from kalito_mcp.domain.facts import ANY, Polarity, Relation
from kalito_mcp.facts.lines import is_same_value, relation

IS, NOT, WAS = Polarity.IS, Polarity.NOT, Polarity.WAS
SUPERSEDES, CONFLICT, SAME, UNRELATED = Relation


@pytest.mark.parametrize(
    ("attribute", "older", "newer", "is_change", "meant"),
    [
        ("home", ("rome", IS), ("oslo", IS), False, SUPERSEDES),
        ("home", ("rome", IS), ("rome", IS), True, SAME),
        ("home", ("rome", IS), ("rome trastevere", IS), True, SAME),
        ("employer", ("acme", IS), ("initech", IS), False, CONFLICT),
        ("employer", ("acme", IS), ("initech", IS), True, SUPERSEDES),
        ("employer", ("acme", IS), ("acme", NOT), False, SUPERSEDES),
        ("employer", ("acme", IS), ("initech", NOT), True, UNRELATED),
        ("employer", ("acme", IS), (ANY, NOT), True, SUPERSEDES),
        ("employer", ("acme", NOT), ("acme", IS), False, SUPERSEDES),
        ("employer", ("acme", NOT), ("initech", IS), True, UNRELATED),
        ("employer", ("acme", WAS), ("initech", IS), False, SUPERSEDES),
        ("employer", ("acme", IS), ("initech", WAS), True, UNRELATED),
        ("employer", ("acme", IS), ("acme", WAS), True, SUPERSEDES),
        ("drink coffee", ("yes", IS), ("no", IS), False, SUPERSEDES),
        ("drink coffee", ("no", IS), ("yes", IS), False, SUPERSEDES),
        ("version", ("2.1", IS), ("2.10", IS), False, SUPERSEDES),
        ("favorite color", ("teal", IS), ("blue", IS), False, SUPERSEDES),
    ],
)
def test_what_a_newer_statement_means_for_an_older_one(
    attribute: str, older: tuple[str, Polarity], newer: tuple[str, Polarity], is_change: bool, meant: Relation
) -> None:
    assert relation(attribute, older, newer, is_change=is_change) is meant


def test_values_with_digits_are_the_same_only_if_they_are_equal() -> None:
    assert is_same_value("acme labs", "acme")
    assert not is_same_value("12 elm street", "elm street")
    assert not is_same_value("", "acme")
