"""Features of a text that was read: its evidence for the question, in shares of one."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.records import Role
from kalito_mcp.domain.search import Posting
from kalito_mcp.retrieval.features import (
    analyze,
    hyponym,
    inverse_document_frequencies,
    lexical,
    spelling,
    style,
)
from tests.retrieval.builders import analyzed, analyzed_text, candidate, question

WORDS = st.sampled_from(["ferry", "moss", "oslo", "ticket", "ferries", "filler", "other", "Ann's", "東京"])
TEXTS = st.lists(WORDS, max_size=60).map(" ".join)
QUERY = "ferry moss oslo ticket 東京"


def worth(text: str, query: str = QUERY) -> float:
    """The own evidence of a text, every term weighing as much."""
    weights = dict.fromkeys(question(query).terms, 1.0)
    return lexical(analyzed_text(query, text), weights, sum(weights.values()) or 1.0)


@given(TEXTS, TEXTS)
def test_evidence_lies_in_zero_to_one_and_never_reaches_one(query: str, text: str) -> None:
    assert 0.0 <= worth(text, query) < 1.0


@given(st.lists(WORDS, max_size=30), st.randoms(use_true_random=False))
def test_evidence_ignores_the_order_of_the_text(said: list[str], chance: st.DrawFn) -> None:
    shuffled = list(said)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    assert math.isclose(worth(" ".join(shuffled)), worth(" ".join(said)), abs_tol=1e-12)


@given(st.lists(WORDS, min_size=1, max_size=40), st.data())
def test_a_word_of_the_query_in_the_place_of_another_word_raises_the_evidence(
    said: list[str], data: st.DataObject
) -> None:
    others = [at for at, word in enumerate(said) if word in {"filler", "other", "Ann's"}]
    if not others:
        return
    at = data.draw(st.sampled_from(others))
    better = [*said[:at], data.draw(st.sampled_from(["ferry", "moss", "ticket"])), *said[at + 1 :]]
    assert worth(" ".join(better)) > worth(" ".join(said))


@given(TEXTS, st.integers(1, 40))
def test_words_that_were_not_asked_for_never_raise_the_evidence(text: str, fillers: int) -> None:
    assert worth(text + " filler" * fillers) <= worth(text)


@given(TEXTS)
def test_a_text_has_evidence_exactly_where_it_has_a_word_of_the_query(text: str) -> None:
    assert (worth(text, "ferry moss") > 0) == bool({"ferry", "ferries", "moss"} & set(text.split()))


def test_the_evidence_is_the_formula_that_the_module_states() -> None:
    read = analyzed_text("ferry moss", "Ferries, ferry: filler moss")
    damping = 0.3 + 0.04 * 4
    expected = (3.0 * 2 / (2 + damping) + 1.0 * 1 / (1 + damping)) / 4.0
    assert math.isclose(lexical(read, {"ferry": 3.0, "moss": 1.0}, 4.0), expected)


def test_a_reading_has_the_counts_the_words_that_were_said_and_the_instances_of_kinds() -> None:
    read = analyzed_text("Which pets were on the ferry?", "The FERRIES, and a ferry: my kittens", name="Ann")
    assert read.counts == {"ferry": 2}
    assert read.matched_words == {"ferry": "ferries"}
    assert read.hyponym_words == {"pet": ["kittens"]}
    assert read.spoken == " ann the ferries and a ferry my kittens "
    assert read.hyponyms == {"pet": 1}
    assert (len(read.words), len(read.text)) == (8, 7)


def test_a_corrected_word_counts_as_much_as_it_is_alike() -> None:
    asked = question("frery").with_corrections({"frery": ("ferry", 0.5)})
    exact, taken = analyzed(asked, candidate("frery")), analyzed(asked, candidate("ferry"))
    assert (exact.counts, taken.counts) == ({"frery": 1.0}, {"frery": 0.5})
    assert lexical(exact, {"frery": 1.0}, 1.0) > lexical(taken, {"frery": 1.0}, 1.0) > 0


def test_what_is_read_together_is_read_as_it_is_alone() -> None:
    asked = question("Which pets were on the ferry?")
    said = [candidate(text, key) for key, text in enumerate(("ferries", "my puppy", "", "a ferry and a kitten"), 1)]
    together = [(read.counts, read.hyponyms, read.matched_words, read.hyponym_words) for read in analyze(asked, said)]
    apart = [analyzed(asked, one) for one in said]
    assert together == [(read.counts, read.hyponyms, read.matched_words, read.hyponym_words) for read in apart]


def test_more_instances_of_a_kind_count_more_and_the_kind_itself_does_not_count() -> None:
    weights = {"pet": 1.0}
    found = [
        hyponym(analyzed_text("pets", text), weights, 1.0) for text in ("pets here", "kitten here", "kitten puppy")
    ]
    assert found[0] == 0.0
    assert 0 < found[1] < found[2] < 1


SPELLED = st.text("abcdefgh iy", min_size=3, max_size=30).filter(lambda text: bool(question(text).terms))


@given(SPELLED, st.lists(SPELLED, max_size=4))
def test_the_likeness_of_letters_lies_in_zero_to_one(query: str, texts: list[str]) -> None:
    asked = question(query)
    found = spelling(asked, analyze(asked, [candidate(text) for text in (query, *texts)]))
    assert all(0.0 <= alike <= 1.0 for alike in found)


@pytest.mark.parametrize("text", ["the ferry leaves for Moss at seven", "painting", "東京に行きました"])
def test_the_text_itself_is_spelled_most_alike_and_nearly_one(text: str) -> None:
    asked = question(text)
    others = text, "something else entirely", text[: len(text) // 2]
    itself, nothing, half = spelling(asked, analyze(asked, [candidate(other) for other in others]))
    assert itself >= 0.8
    assert itself > half > nothing


def test_a_mistyped_word_is_spelled_more_alike_than_another() -> None:
    asked = question("paintnig")
    close, far = spelling(asked, analyze(asked, [candidate(text) for text in ("her painting", "her sailing")]))
    assert close > far


def test_no_texts_and_no_query_are_like_nothing() -> None:
    assert spelling(question("ferry"), []) == []
    assert spelling(question("!?"), [analyzed_text("!?", "ferry")]) == [0.0]


@pytest.mark.parametrize(
    ("query", "text", "expected"),
    [
        ("ferry", "The ferry.", set()),
        ("ferry", "I took the ferry.", {"first_person"}),
        ("ferry", "Always by ferry, and it is ours.", set()),
    ],
)
def test_the_manner_of_a_text_is_what_matters_to_the_question(query: str, text: str, expected: set[str]) -> None:
    assert set(style(question(query), analyzed_text(query, text))) == expected


def test_an_assistants_words_count_less_unless_they_are_asked_for_or_it_has_a_name() -> None:
    def is_less(query: str, role: Role | None, name: str | None = None) -> bool:
        return "assistant" in style(question(query), analyzed_text(query, "The ferry.", role=role, name=name))

    assert is_less("ferry", Role.ASSISTANT)
    assert not is_less("ferry", Role.USER)
    assert not is_less("ferry", None)
    assert not is_less("ferry", Role.ASSISTANT, "Ann")
    assert not is_less("Which ferry did you recommend?", Role.ASSISTANT)


def posting(term: str, keys: range, *, is_complete: bool = True) -> Posting:
    return Posting(term=term, keys=tuple(reversed(keys)), is_complete=is_complete)


def test_a_rarer_term_weighs_more_and_a_term_that_nothing_holds_weighs_most() -> None:
    found = [posting("common", range(1, 900)), posting("rare", range(1, 3)), posting("none", range(0))]
    weights = inverse_document_frequencies(found, 1_000, 1_000)
    assert weights["none"] == math.log1p(1_000)
    assert weights["none"] > weights["rare"] > weights["common"] > 0
    assert weights["rare"] == math.log1p(1_000 / 2)


def test_a_cut_posting_is_weighed_by_how_densely_its_part_lies() -> None:
    dense = posting("every", range(9_901, 10_001), is_complete=False)
    sparse = Posting("tenth", tuple(range(10_000, 9_000, -10)), is_complete=False)
    weights = inverse_document_frequencies([dense, sparse], 10_000, 10_000)
    assert math.isclose(weights["every"], math.log1p(1), rel_tol=0.02)
    assert math.isclose(weights["tenth"], math.log1p(10), rel_tol=0.02)


@given(
    st.lists(st.integers(1, 5_000), min_size=1, max_size=50, unique=True),
    st.booleans(),
    st.integers(0, 100_000),
    st.integers(5_000, 10**9),
)
def test_weights_are_positive_numbers_whatever_the_index_says(
    keys: list[int], is_complete: bool, record_count: int, newest_key: int
) -> None:
    held = Posting("term", tuple(sorted(keys, reverse=True)), is_complete)
    [weight] = inverse_document_frequencies([held], record_count, newest_key).values()
    assert weight >= 0
    assert math.isfinite(weight)
    assert weight > 0 or record_count == 0
