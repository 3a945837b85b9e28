"""Names that look the same, and names that only resemble each other."""

import pytest

from kalito_mcp.text.look_alikes import alike


@pytest.mark.parametrize(
    "name",
    [
        "Anna@Example.org",
        " anna@example.org",
        "anna@example.org  ",
        "anna@exam\u200bple.org",
        "anna@example.org\ufe0f",
        "\uff41nna@example.org",
        "\u0430nna@example.org",
    ],
    ids=["case", "before", "after", "zero width", "variation selector", "full width", "Cyrillic"],
)
def test_names_that_look_the_same_are_alike(name: str) -> None:
    assert alike(name, ["ben", "anna@example.org"]) == "anna@example.org"
    assert alike("anna@example.org", ["ben", name]) == name


def test_forms_of_one_character_are_alike_and_other_characters_are_not() -> None:
    assert alike("Andre\u0301", ["Andr\u00e9"]) == "Andr\u00e9"
    assert alike("team  one", ["team one"]) == "team one"
    for other in ("Andre", "Andr\u00e8", "Andr\u00e9s", "team-one", "teamone"):
        assert alike(other, ["Andr\u00e9", "team one"]) is None


def test_a_name_that_is_there_is_itself_even_beside_one_that_looks_the_same() -> None:
    assert alike("anna", ["Anna", "anna"]) is None
    assert alike("anna", []) is None
