"""The evidence around records before their texts are read, and which texts are read first."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from kalito_mcp.domain.search import CandidateStub, Posting
from kalito_mcp.retrieval.neighbourhood import REACH, Neighbourhood
from kalito_mcp.retrieval.term_masks import MOST_TERMS, TermMasks
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


def of(around: Neighbourhood, values: NDArray[Any], one: CandidateStub) -> float:
    """One stub's value of a feature."""
    return float(values[around.place(one)])


def one_by_one(
    held: Sequence[frozenset[int]], weights: Sequence[float], stubs: Sequence[CandidateStub]
) -> dict[int, tuple[float, float, float]]:
    """The `lexical`, `neighbours` and `session` of each stub, as the words of their docstrings say it."""
    mass = sum(weights)
    turns = {(one.session_key, one.seq): one.key for one in stubs if one.seq is not None}

    def contains(key: int | None, term: int) -> bool:
        return key in held[term]

    def share(one: CandidateStub, term: int) -> float:
        if contains(one.key, term):
            return 1.0
        if one.session_key is None or not any(
            contains(other.key, term) for other in stubs if other.session_key == one.session_key
        ):
            return 0.0
        near = sum(
            part
            for offset, part in {-2: 0.4, -1: 0.5, 1: 0.3, 2: 0.2, 3: 0.1}.items()
            if one.seq is not None and contains(turns.get((one.session_key, one.seq + offset)), term)
        )
        return 0.15 + min(near, 0.85)

    def neighbours(one: CandidateStub) -> float:
        total = sum(weight * share(one, term) for term, weight in enumerate(weights)) / mass
        return total / (1 + one.tokens * 0.75 / 60)

    def session(one: CandidateStub) -> float:
        of_session = [neighbours(other) for other in stubs if other.session_key == one.session_key]
        return 0.0 if one.session_key is None else sum(sorted(of_session)[-3:]) / 3

    def lexical(one: CandidateStub) -> float:
        own = sum(weight for term, weight in enumerate(weights) if contains(one.key, term))
        return own / mass / (1 + 0.3 + 0.04 * one.tokens * 0.75)

    return {one.key: (lexical(one), neighbours(one), session(one)) for one in stubs}


@given(HELD, STANDING, st.lists(st.floats(0.1, 10), min_size=5, max_size=5))
def test_all_at_once_the_features_are_those_computed_one_by_one(
    held: list[frozenset[int]], standing: list[tuple[int, int, int]], weights: list[float]
) -> None:
    stubs = [stub(key, session=s, seq=q, tokens=t) for key, (s, q, t) in enumerate(standing, 1)]
    stubs += [CandidateStub(key, None, None, 8, None, True) for key in (39, 40)]
    weights = weights[: len(held)]
    around = neighbourhood(term_masks(*held, weights=weights), *stubs)
    for one in stubs:
        found = [of(around, values, one) for values in (around.lexical, around.neighbours, around.session)]
        assert found == pytest.approx(one_by_one(held, weights, stubs)[one.key])


def test_the_records_with_the_most_weight_come_first_and_equal_ones_newest_first() -> None:
    held = term_masks({1, 2, 5}, {2, 3, 4}, {9}, weights=[1.0, 1.0, 3.0])
    assert list(held.heaviest(9)) == [9, 2, 5, 4, 3, 1]
    assert [list(held.heaviest(count)) for count in (1, 2, 3, 4)] == [[9], [9, 2], [9, 2, 5], [9, 2, 5, 4]]


@given(HELD, st.lists(st.floats(0.1, 10), min_size=5, max_size=5))
def test_every_record_that_holds_something_comes_once_and_weights_never_rise(
    held: list[frozenset[int]], weights: list[float]
) -> None:
    found = term_masks(*held, weights=weights[: len(held)])
    order = list(found.heaviest(1_000))
    assert sorted(order) == sorted(frozenset().union(*held))
    expected = {key: sum(w for keys, w in zip(held, weights, strict=False) if key in keys) for key in order}
    weight = dict(zip(order, found.weight(found.of(np.array(order, np.int64))).tolist(), strict=True))
    assert weight == pytest.approx(expected)
    assert [(weight[key], key) for key in order] == sorted(((weight[key], key) for key in order), reverse=True)
    for count in range(1, len(order) + 1):
        assert list(found.heaviest(count)) == order[:count]


def test_a_record_without_a_term_has_an_empty_mask() -> None:
    assert term_masks({2, 4}).of(np.array([1, 2, 3, 4, 5])).tolist() == [0, 1, 0, 1, 0]
    assert term_masks(set()).of(np.array([1])).tolist() == [0]


def test_no_postings_hold_nothing() -> None:
    assert list(TermMasks([], []).heaviest(5)) == []
    assert neighbourhood(TermMasks([], []), stub(1)).neighbours_at_length(stub(1), 5) == 0.0


def test_no_records_have_no_features() -> None:
    assert len(neighbourhood(term_masks({1})).neighbours) == 0


def test_terms_beyond_those_of_a_mask_are_left_out() -> None:
    many = [frozenset({key}) for key in range(1, MOST_TERMS + 3)]
    around = neighbourhood(term_masks(*many), stub(1), stub(MOST_TERMS + 1))
    assert around.contains_any.tolist() == [True, False]


def alone(held: TermMasks, offset: int) -> float:
    """The context of turn 10 where the only term is held by one turn so far from it."""
    at, beside = stub(10), stub(10 + offset)
    return neighbourhood(held, at, beside).neighbours_at_length(at, 0)


def test_nearer_turns_count_more_and_earlier_ones_more_than_later_ones() -> None:
    shares = {offset: alone(term_masks({10 + offset}), offset) for offset in (-4, -3, -2, -1, 1, 2, 3, 4)}
    assert shares[-1] > shares[-2] > shares[-3]
    assert shares[1] > shares[2] > shares[3] > shares[4]
    assert shares[-1] > shares[1]
    assert shares[-4] == shares[4] == shares[-3] > 0  # these have the share of the session alone


def test_what_is_said_elsewhere_is_no_context() -> None:
    at, elsewhere = stub(10), stub(11, session=2, seq=11)
    around = neighbourhood(term_masks({11}), at, elsewhere)
    assert (around.neighbours_at_length(at, 0), around.neighbour_terms(at), of(around, around.session, at)) == (
        0.0,
        0,
        0.0,
    )


def test_a_record_without_a_session_has_its_own_words_alone() -> None:
    lone, other = CandidateStub(1, None, None, 8, None, True), CandidateStub(2, None, None, 8, None, True)
    around = neighbourhood(term_masks({1}, {2}), lone, other)
    assert around.neighbours_at_length(lone, 0) == around.neighbours_at_length(other, 0) == 0.5
    assert (of(around, around.session, lone), around.neighbour_terms(lone)) == (0.0, 0)


def test_a_term_counts_once_however_many_turns_around_hold_it() -> None:
    turns = [stub(key) for key in range(1, 20)]
    everywhere = neighbourhood(term_masks(set(range(1, 20)) - {10}), *turns)
    assert everywhere.neighbours_at_length(turns[9], 0) == 1.0
    assert everywhere.neighbours_at_length(turns[8], 0) == 1.0


def test_the_longer_a_text_is_the_less_its_surroundings_say() -> None:
    around = neighbourhood(term_masks({1}), stub(1))
    found = [around.neighbours_at_length(stub(1), length) for length in (0, 10, 60, 1_000, 100_000)]
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
        assert 0.0 <= of(around, around.lexical, one) < 1.0
        assert of(around, around.lexical, one) <= around.neighbours_at_length(one, 0) <= 1.0 + 1e-9
        assert bare.neighbours_at_length(one, length) <= around.neighbours_at_length(one, length)
        assert 0.0 <= of(around, around.session, one) <= 1.0 + 1e-9
        assert (of(around, around.lexical, one) > 0) == of(around, around.contains_any, one)


def test_instances_of_a_kind_are_no_terms_and_no_context() -> None:
    dog, other = stub(1), stub(2)
    around = neighbourhood(term_masks(set(), {1}), dog, other, term_count=1)
    assert of(around, around.contains_any, dog)
    assert of(around, around.hyponym, dog) > 0 == of(around, around.hyponym, other)
    assert around.neighbour_terms(dog) == around.neighbour_terms(other) == 0
    assert (
        of(around, around.lexical, dog)
        == around.neighbours_at_length(dog, 0)
        == around.neighbours_at_length(other, 0)
        == 0.0
    )


def test_the_terms_around_are_those_of_the_turns_in_reach_and_not_its_own() -> None:
    turns = [stub(key) for key in range(1, 9)]
    around = neighbourhood(term_masks({5}, {4}, {8}, {1}), *turns)
    assert around.neighbour_terms(turns[4]) == 0b0110
    assert of(around, around.lexical, turns[4]) > 0
    assert turns[7].seq is not None
    assert turns[7].seq - 5 == REACH


def test_a_session_is_worth_the_mean_of_its_three_best() -> None:
    turns = [stub(1, tokens=0), stub(2, session=2, seq=1, tokens=0)]
    around = neighbourhood(term_masks({1, 2}), *turns)
    assert of(around, around.session, turns[0]) == pytest.approx(1 / 3)
    four = [stub(key, seq=key * 10, tokens=0) for key in (1, 2, 3, 4)]
    around = neighbourhood(term_masks({1, 2, 3}), *four)
    assert of(around, around.session, four[3]) == pytest.approx(1.0)


def test_of_what_is_around_the_nearer_counts_the_more_and_the_record_itself_not() -> None:
    turns = [stub(key) for key in range(1, 9)]
    around = neighbourhood(term_masks({1}), *turns)
    found = [of(around, around.neighbour_semantic({key: 0.5}), turns[3]) for key in range(1, 9)]
    assert found == pytest.approx([0.15, 0.3, 0.5, 0.0, 0.5, 0.3, 0.15, 0.0])
    assert of(around, around.neighbour_semantic({3: 0.2, 2: 0.9}), turns[3]) == pytest.approx(0.54)
    assert not around.neighbour_semantic({3: -0.5}).any()
    assert not around.neighbour_semantic({}).any()


@given(st.dictionaries(st.integers(1, 9), st.floats(-1, 1)))
def test_what_is_around_never_exceeds_the_greatest_value_and_is_never_negative(values: dict[int, float]) -> None:
    turns = [stub(key) for key in range(1, 10)]
    around = neighbourhood(term_masks({1}), *turns)
    for value in around.neighbour_semantic(values):
        assert 0.0 <= value <= max([0.0, *values.values()])
