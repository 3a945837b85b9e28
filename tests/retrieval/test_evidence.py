"""Evidence: a share in [0, 1) of what a query asks for, whatever the order of words."""

import math

from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.search import Posting
from kalito_mcp.retrieval.evidence import evidence, inverse_document_frequencies

WORDS = st.sampled_from(["ferry", "moss", "oslo", "ticket", "ann", "seven", "filler", "other"])
TERMS = st.lists(WORDS, max_size=60)
WEIGHTS = st.dictionaries(
    st.sampled_from(["ferry", "moss", "oslo", "ticket", "ann", "seven"]), st.floats(0.01, 20), max_size=6
)


@given(WEIGHTS, TERMS)
def test_evidence_lies_in_zero_to_one_and_never_reaches_one(weights: dict[str, float], terms: list[str]) -> None:
    assert 0.0 <= evidence(weights, terms) < 1.0


@given(WEIGHTS, TERMS, st.randoms(use_true_random=False))
def test_evidence_ignores_the_order_of_the_text_and_of_the_query(
    weights: dict[str, float], terms: list[str], chance: st.DrawFn
) -> None:
    shuffled, turned = list(terms), list(weights.items())
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    chance.shuffle(turned)  # type: ignore[attr-defined]
    assert math.isclose(evidence(weights, terms), evidence(dict(turned), shuffled), rel_tol=1e-12, abs_tol=1e-12)


@given(WEIGHTS, TERMS.filter(bool), st.data())
def test_a_word_of_the_query_in_the_place_of_another_word_never_lowers_the_evidence(
    weights: dict[str, float], terms: list[str], data: st.DataObject
) -> None:
    others = [place for place, term in enumerate(terms) if term not in weights]
    if not others or not weights:
        return
    place = data.draw(st.sampled_from(others))
    better = [*terms[:place], data.draw(st.sampled_from(sorted(weights))), *terms[place + 1 :]]
    assert evidence(weights, better) > evidence(weights, terms)


@given(WEIGHTS, TERMS, st.lists(st.just("filler"), min_size=1, max_size=40))
def test_words_that_were_not_asked_for_never_raise_the_evidence(
    weights: dict[str, float], terms: list[str], fillers: list[str]
) -> None:
    assert evidence(weights, terms + fillers) <= evidence(weights, terms)


@given(TERMS)
def test_a_text_has_evidence_exactly_where_it_has_a_word_of_the_query(terms: list[str]) -> None:
    weights = {"ferry": 2.0, "moss": 1.0}
    assert (evidence(weights, terms) > 0) == bool({"ferry", "moss"} & set(terms))


def test_no_query_and_no_text_have_no_evidence() -> None:
    assert evidence({}, ["ferry"]) == 0.0
    assert evidence({"ferry": 1.0}, []) == 0.0
    assert evidence({"ferry": 0.0}, ["ferry"]) == 0.0


def test_the_evidence_is_the_formula_that_the_module_states() -> None:
    weights = {"ferry": 3.0, "moss": 1.0}
    terms = ["ferry", "ferry", "filler", "moss"]
    damping = 0.3 + 0.04 * 4
    expected = (3.0 * 2 / (2 + damping) + 1.0 * 1 / (1 + damping)) / 4.0
    assert math.isclose(evidence(weights, terms), expected)


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
