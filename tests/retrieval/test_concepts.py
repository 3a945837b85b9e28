"""Everyday words in ten languages: the table is consistent, and forms of a word are recognised by their beginnings."""

from pathlib import Path

import pytest

from kalito_mcp import retrieval
from kalito_mcp.retrieval.concepts import LANGUAGES, in_english, in_language, is_form_of

ROWS = [
    line.split(" | ")
    for line in Path(retrieval.__file__).with_name("concepts.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]


def test_a_concept_has_a_word_in_each_language() -> None:
    assert len(ROWS) > 250
    for cells in ROWS:
        assert len(cells) == len(LANGUAGES), cells
        assert all(cell.strip() for cell in cells), cells


@pytest.mark.parametrize(
    ("term", "language", "meant"),
    [
        ("loyer", "fr", "rent"),
        ("zahle", "de", "pay"),
        ("schwestern", "de", "sister"),
        ("пятницу", "ru", "friday"),
        ("квартиру", "ru", "flat"),
        ("huur", "nl", "rent"),
        ("hermanas", "es", "sister"),
        ("妈妈", "zh", "mother"),
        ("家賃", "ja", "rent"),
    ],
)
def test_a_word_of_another_language_means_a_concept(term: str, language: str, meant: str) -> None:
    assert meant in in_english(term, language)


@pytest.mark.parametrize(("term", "language"), [("xyzzy", "fr"), ("rent", "en"), ("kira", "tr"), ("", "de")])
def test_an_unknown_word_or_language_means_nothing(term: str, language: str) -> None:
    assert in_english(term, language) == frozenset()


def test_the_words_of_a_language_come_in_the_order_of_the_concepts() -> None:
    assert in_language(["rent", "sister"], "fr") == ["loyer", "soeur", "sœur", "frangin"]
    assert in_language(["xyzzy"], "fr") == []


@pytest.mark.parametrize(
    ("term", "word", "is_form"),
    [
        ("wohnt", "wohnen", True),
        ("arzts", "arzt", True),
        ("huis", "huur", False),
        ("casa", "caso", False),
        ("zus", "zusje", False),
        ("arbeitgeber", "arbeit", False),
        ("妈", "妈妈", False),
    ],
)
def test_forms_of_a_word_begin_alike(term: str, word: str, *, is_form: bool) -> None:
    assert is_form_of(term, word) is is_form
