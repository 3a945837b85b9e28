"""The evidence around records before their texts are read, and which texts are read first."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.search import CandidateStub, Posting
from kalito_mcp.retrieval.neighbourhood import REACH, Neighbourhood
from kalito_mcp.retrieval.term_masks import TermMasks
from tests.retrieval.builders import stub

HELD = st.lists(st.frozensets(st.integers(1, 40), max_size=20), min_size=1, max_size=5)
STANDING = st.lists(
    st.tuples(st.integers(1, 3), st.integers(1, 12), st.integers(0, 400)),
    min_size=1,
    max_size=20,
    unique_by=lambda p: p[:2],
)


def term_masks(*held: frozenset[int] | set[int], weights: list[float] | None = None) -> TermMasks:
    """Each set of keys is the posting of one term."""
    postings = [Posting(f"t{n}", tuple(sorted(keys, reverse=True)), is_complete=True) for n, keys in enumerate(held)]
    return TermMasks(postings, weights or [1.0] * len(held))


def neighbourhood(held: TermMasks, *places: CandidateStub, term_count: int | None = None) -> Neighbourhood:
    return Neighbourhood(held, len(held.weights) if term_count is None else term_count, places)


def test_the_records_with_the_most_weight_come_first_and_equal_ones_newest_first() -> None:
    held = term_masks({1, 2, 5}, {2, 3, 4}, {9}, weights=[1.0, 1.0, 3.0])
    assert list(held.by_weight()) == [9, 2, 5, 4, 3, 1]


@given(HELD, st.lists(st.floats(0.1, 10), min_size=5, max_size=5))
def test_every_record_that_holds_something_comes_once_and_weights_never_rise(
    held: list[frozenset[int]], weights: list[float]
) -> None:
    found = term_masks(*held, weights=weights[: len(held)])
    order = list(found.by_weight())
    assert sorted(order) == sorted(frozenset().union(*held))
    expected = {key: sum(w for keys, w in zip(held, weights, strict=False) if key in keys) for key in order}
    assert all(math.isclose(found.weight(found.masks[key]), expected[key]) for key in order)
    ranks = [(found.weight(found.masks[key]), key) for key in order]
    assert ranks == sorted(ranks, reverse=True)


def test_no_postings_hold_nothing() -> None:
    assert list(TermMasks([], []).by_weight()) == []
    assert neighbourhood(TermMasks([], []), stub(1)).neighbours(stub(1), 5) == 0.0


def alone(held: TermMasks, offset: int) -> float:
    """The context of turn 10 where the only term is held by one turn so far from it."""
    at, beside = stub(10), stub(10 + offset)
    return neighbourhood(held, at, beside).neighbours(at, 0)


def test_nearer_turns_count_more_and_earlier_ones_more_than_later_ones() -> None:
    shares = {offset: alone(term_masks({10 + offset}), offset) for offset in (-4, -3, -2, -1, 1, 2, 3, 4)}
    assert shares[-1] > shares[-2] > shares[-3]
    assert shares[1] > shares[2] > shares[3] > shares[4]
    assert shares[-1] > shares[1]
    assert shares[-4] == shares[4] == shares[-3] > 0  # these have the share of the session alone


def test_what_is_said_elsewhere_is_no_context() -> None:
    at, elsewhere = stub(10), stub(11, session=2, seq=11)
    around = neighbourhood(term_masks({11}), at, elsewhere)
    assert (around.neighbours(at, 0), around.neighbour_terms(at), around.session(at)) == (0.0, 0, 0.0)


def test_a_record_without_a_session_has_its_own_words_alone() -> None:
    lone, other = CandidateStub(1, None, None, 8, None, True), CandidateStub(2, None, None, 8, None, True)
    around = neighbourhood(term_masks({1}, {2}), lone, other)
    assert around.neighbours(lone, 0) == around.neighbours(other, 0) == 0.5
    assert (around.session(lone), around.neighbour_terms(lone)) == (0.0, 0)


def test_a_term_counts_once_however_many_turns_around_hold_it() -> None:
    turns = [stub(key) for key in range(1, 20)]
    everywhere = neighbourhood(term_masks(set(range(1, 20)) - {10}), *turns)
    assert everywhere.neighbours(turns[9], 0) == 1.0
    assert everywhere.neighbours(turns[8], 0) == 1.0


def test_the_longer_a_text_is_the_less_its_surroundings_say() -> None:
    around = neighbourhood(term_masks({1}), stub(1))
    found = [around.neighbours(stub(1), length) for length in (0, 10, 60, 1_000, 100_000)]
    assert found == sorted(found, reverse=True)
    assert (found[0], found[2]) == (1.0, 0.5)
    assert found[-1] > 0


@given(HELD, STANDING, st.integers(0, 300))
def test_context_scores_are_in_zero_to_one_and_never_below_the_own_terms(
    held: list[frozenset[int]], standing: list[tuple[int, int, int]], length: int
) -> None:
    found = term_masks(*held)
    places = [stub(key, session=s, seq=q, tokens=t) for key, (s, q, t) in enumerate(standing, 1)]
    around = neighbourhood(found, *places)
    bare = neighbourhood(found, *(one._replace(session_key=None, seq=None) for one in places))
    for one in places:
        assert 0.0 <= around.lexical(one) < 1.0
        assert around.lexical(one) <= around.neighbours(one, 0) <= 1.0 + 1e-9
        assert bare.neighbours(one, length) <= around.neighbours(one, length)
        assert 0.0 <= around.session(one) <= 1.0 + 1e-9
        assert (around.lexical(one) > 0) == around.contains_any(one)


def test_instances_of_a_kind_are_no_terms_and_no_context() -> None:
    dog, other = stub(1), stub(2)
    around = neighbourhood(term_masks(set(), {1}), dog, other, term_count=1)
    assert around.contains_any(dog)
    assert around.hyponym(dog) > 0 == around.hyponym(other)
    assert around.neighbour_terms(dog) == around.neighbour_terms(other) == 0
    assert around.lexical(dog) == around.neighbours(dog, 0) == around.neighbours(other, 0) == 0.0


def test_the_terms_around_are_those_of_the_turns_in_reach_and_not_its_own() -> None:
    turns = [stub(key) for key in range(1, 9)]
    around = neighbourhood(term_masks({5}, {4}, {8}, {1}), *turns)
    assert around.neighbour_terms(turns[4]) == 0b0110
    assert around.lexical(turns[4]) > 0
    assert turns[7].seq is not None
    assert turns[7].seq - 5 == REACH


def test_a_session_is_worth_the_mean_of_its_three_best() -> None:
    turns = [stub(1, tokens=0), stub(2, session=2, seq=1, tokens=0)]
    around = neighbourhood(term_masks({1, 2}), *turns)
    assert around.session(turns[0]) == pytest.approx(1 / 3)
    four = [stub(key, seq=key * 10, tokens=0) for key in (1, 2, 3, 4)]
    assert neighbourhood(term_masks({1, 2, 3}), *four).session(four[3]) == pytest.approx(1.0)


def test_of_what_is_around_the_nearer_counts_the_more_and_the_record_itself_not() -> None:
    turns = [stub(key) for key in range(1, 9)]
    around = neighbourhood(term_masks({1}), *turns)
    found = [around.neighbour_semantic(turns[3], {key: 0.5}) for key in range(1, 9)]
    assert found == pytest.approx([0.15, 0.3, 0.5, 0.0, 0.5, 0.3, 0.15, 0.0])
    assert around.neighbour_semantic(turns[3], {3: 0.2, 2: 0.9}) == pytest.approx(0.54)
    assert around.neighbour_semantic(turns[3], {3: -0.5}) == around.neighbour_semantic(turns[3], {}) == 0.0


@given(st.dictionaries(st.integers(1, 9), st.floats(-1, 1)))
def test_what_is_around_never_exceeds_the_greatest_value_and_is_never_negative(values: dict[int, float]) -> None:
    turns = [stub(key) for key in range(1, 10)]
    around = neighbourhood(term_masks({1}), *turns)
    for one in turns:
        assert 0.0 <= around.neighbour_semantic(one, values) <= max([0.0, *values.values()])
