"""The similarity search is exact, in any order of insertion."""

import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.sparse_vectors import SparseVector
from kalito_mcp.errors import InvalidInput
from kalito_mcp.graph.hashing import HashingEmbedder
from kalito_mcp.graph.similarity import SimilarityIndex
from tests.campaign import first_of

EMBEDDER = HashingEmbedder()
ZERO = SparseVector.of({})
WORDS = "the cat sat on mat dog ran to oslo in may with red hat 5 6 7 blue ferry leaves at noon".split()

TEXT_VECTORS = st.lists(st.sampled_from(WORDS), max_size=10).map(lambda words: EMBEDDER.embed(" ".join(words)))
ANY_VECTORS = st.dictionaries(st.integers(0, 60), st.floats(-1, 1), max_size=6).map(SparseVector.of)
VECTORS = st.one_of(TEXT_VECTORS, TEXT_VECTORS, ANY_VECTORS)
KEYS = st.integers(0, 40).map("k{}".format)
STEPS = st.lists(st.tuples(KEYS, st.none() | VECTORS), max_size=60)
THRESHOLDS = st.sampled_from([0.05, 0.3, 0.5, 0.75, 0.96, 1.0])


def sentences(count: int, seed: int = 1) -> list[str]:
    """So many of invented words, Zipf-distributed, some of them nearly equal."""
    chance = random.Random(seed)
    vocabulary = ["".join(chance.choices("aeioubdgklmnprst", k=chance.randint(2, 8))) for _ in range(2_000)]
    weights = [1 / (rank + 3) for rank in range(len(vocabulary))]
    found = [" ".join(chance.choices(vocabulary, weights, k=chance.randint(4, 16))) for _ in range(count)]
    for place in range(0, count, 7):
        found[place] = f"{found[place // 2]} {place % 10}"
    return found


def filled(vectors: Sequence[SparseVector]) -> SimilarityIndex:
    index = SimilarityIndex()
    index.add_all((f"n{place}", vector) for place, vector in enumerate(vectors))
    return index


def compared(vectors: Sequence[SparseVector], asked: SparseVector, at_least: float) -> list[tuple[str, float]]:
    """What is near, by comparing one by one."""
    scored = [(f"n{place}", round(vector.dot(asked), 6)) for place, vector in enumerate(vectors)]
    return sorted((pair for pair in scored if pair[1] >= at_least), key=lambda pair: (-pair[1], pair[0]))


def agree(found: list[tuple[str, float]], expected: list[tuple[str, float]]) -> bool:
    """Whether the same is found. The last decimal may differ: the values of a vector are rounded to float32."""
    return dict(found) == pytest.approx(dict(expected), abs=2e-6)


def same(one: SparseVector, other: SparseVector) -> bool:
    is_equal = np.array_equal(one.indices, other.indices) and np.array_equal(one.values, other.values)
    return is_equal and one.values.dtype == np.float32


@pytest.fixture(scope="module")
def many() -> list[SparseVector]:
    return EMBEDDER.embed_all(sentences(4_000))


@given(STEPS, VECTORS, THRESHOLDS)
def test_near_is_every_vector_of_that_cosine_and_no_other(
    steps: list[tuple[str, SparseVector | None]], asked: SparseVector, at_least: float
) -> None:
    index, kept = SimilarityIndex(), dict[str, SparseVector]()
    for key, vector in steps:
        if vector is None:
            index.remove(key)
            kept.pop(key, None)
        else:
            index.add_all([(key, vector)])
            kept[key] = vector
    assert len(index) == len(kept)
    assert all(key in index and same(index.vector(key), vector) for key, vector in kept.items())
    found = dict(index.near(asked, at_least))
    for key, vector in kept.items():
        cosine = vector.dot(asked)
        assert (key in found) == (cosine >= at_least) or abs(cosine - at_least) < 1e-6
        assert key not in found or abs(found[key] - cosine) < 2e-6


@given(st.randoms(use_true_random=False), st.integers(1, 400), st.integers(0, 400), THRESHOLDS)
def test_the_same_is_near_in_any_order_of_insertion(
    chance: random.Random, count: int, removed: int, at_least: float
) -> None:
    vectors = [EMBEDDER.embed(" ".join(chance.choices(WORDS, k=chance.randint(0, 8)))) for _ in range(count)]
    ordered, shuffled = filled(vectors), SimilarityIndex()
    for place in chance.sample(range(count), count):
        shuffled.add_all([(f"n{place}", vectors[place])])
    for index in (ordered, shuffled):
        for place in range(0, min(count, removed), 2):
            index.remove(f"n{place}")
    for asked in vectors[:8]:
        assert ordered.near(asked, at_least) == shuffled.near(asked, at_least)
        assert ordered.nearest(asked, 5) == shuffled.nearest(asked, 5)


@pytest.mark.parametrize("at_least", first_of([0.5, 0.2, 0.75, 0.96, 1.0]))
def test_nothing_near_is_missed_among_thousands(many: list[SparseVector], at_least: float) -> None:
    index = filled(many)
    for asked in many[::1_000] + EMBEDDER.embed_all(sentences(4, seed=2)):
        assert agree(index.near(asked, at_least), compared(many, asked, at_least))


def test_the_nearest_among_thousands_are_exact(many: list[SparseVector]) -> None:
    index = filled(many)
    for asked in many[::1_000] + EMBEDDER.embed_all(sentences(4, seed=2)):
        assert index.nearest(asked, 10) == index.near(asked, 1e-6)[:10]


def test_cosines_are_the_same_in_both_directions(many: list[SparseVector]) -> None:
    index = filled(many)
    for place, asked in enumerate(many[:300:10]):
        for key, cosine in index.near(asked, 0.4):
            assert (f"n{place * 10}", cosine) in index.near(index.vector(key), 0.4)


def test_best_come_first_and_ties_go_by_key() -> None:
    index = SimilarityIndex()
    for key in ("c", "a", "b"):
        index.add_all([(key, EMBEDDER.embed("the ferry to Moss"))])
    index.add_all([("0", EMBEDDER.embed("the ferry to Moss leaves"))])
    found = index.near(EMBEDDER.embed("The ferry to Moss."), 0.5)
    assert [key for key, _ in found] == ["a", "b", "c", "0"]
    assert found[:3] == [("a", 1.0), ("b", 1.0), ("c", 1.0)]
    assert index.nearest(EMBEDDER.embed("The ferry to Moss."), 2) == found[:2]


def test_a_zero_vector_is_kept_and_near_nothing() -> None:
    index = filled([ZERO, EMBEDDER.embed("ferry")])
    index.add_all([("zero", ZERO)])
    assert len(index) == 3
    assert "zero" in index
    assert len(index.vector("zero")) == 0
    assert index.near(ZERO, 0.1) == index.nearest(ZERO, 5) == []
    assert [key for key, _ in index.nearest(EMBEDDER.embed("ferry"), 5)] == ["n1"]
    index.remove("zero")
    assert "zero" not in index


def test_what_shares_nothing_or_points_away_is_not_among_the_nearest() -> None:
    index = SimilarityIndex()
    index.add_all([("apart", SparseVector.of({7: 1.0}))])
    index.add_all([("against", SparseVector.of({1: -1.0}))])
    index.add_all([("along", SparseVector.of({1: 0.6, 2: 0.8}))])
    assert index.nearest(SparseVector.of({1: 1.0}), 5) == [("along", 0.6)]


def test_a_key_added_again_has_the_new_vector_only(many: list[SparseVector]) -> None:
    index = filled(many[:1_000])
    index.add_all([("n5", many[2_000])])
    index.add_all([("n6", many[2_001]), ("n7", many[2_002]), ("n6", many[2_003])])
    index.add_all([(f"n{place}", many[place + 1_000]) for place in range(500, 700)])
    assert len(index) == 1_000
    assert same(index.vector("n5"), many[2_000])
    assert same(index.vector("n6"), many[2_003])
    assert same(index.vector("n600"), many[1_600])
    assert ("n600", 1.0) in index.near(many[1_600], 0.99)
    assert "n600" not in dict(index.near(many[600], 0.99))


def test_after_many_additions_and_removals_only_live_rows_take_memory(many: list[SparseVector]) -> None:
    index = filled(many[:1_000])
    for step in range(6_000):
        index.remove(f"n{step}")
        index.add_all([(f"n{step + 1_000}", many[step % 4_000])])
    assert len(index) == 1_000
    assert len(index._keys) == len(index._matrix.lengths.filled) <= 1_257
    assert ("n6999", 1.0) in index.near(many[5_999 % 4_000], 1.0)


def test_an_unknown_key_is_nothing_to_remove_and_has_no_vector() -> None:
    index = SimilarityIndex()
    index.remove("nothing")
    with pytest.raises(KeyError):
        index.vector("nothing")
    assert index.near(EMBEDDER.embed("ferry"), 0.5) == index.nearest(EMBEDDER.embed("ferry"), 5) == []


def test_vectors_of_any_kind_and_width_come_back_bit_for_bit() -> None:
    vectors = [
        SparseVector.of({0: 1.0}),
        SparseVector.of({1: -0.3, 70_000: 0.5}),
        SparseVector.of({5: 300.0, 6: 1.0}),
        SparseVector.of({(1 << 20) - 1: 2.0, 3: 1.0}),
        EMBEDDER.embed("word " * 700),
        EMBEDDER.embed("a" * 4_000),
    ]
    index = filled([*vectors, *EMBEDDER.embed_all(sentences(300))])
    for place, vector in enumerate(vectors):
        assert same(index.vector(f"n{place}"), vector)
        assert index.nearest(vector, 1) == [(f"n{place}", 1.0)]
    assert index.nearest(SparseVector.of({2**32 - 1: 1.0}), 3) == []


def test_too_wide_a_vector_is_refused_and_changes_nothing() -> None:
    index = filled([EMBEDDER.embed("ferry")])
    wide = SparseVector.of({1 << 20: 1.0})
    with pytest.raises(InvalidInput, match="dimensions"):
        index.add_all([("n0", wide)])
    with pytest.raises(InvalidInput, match="dimensions"):
        index.add_all([("n0", ZERO), ("n1", wide)])
    assert len(index) == 1
    assert index.near(EMBEDDER.embed("ferry"), 1.0) == [("n0", 1.0)]
