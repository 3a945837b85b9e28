"""The default embedder: the same vectors in every process, similar for similar texts."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.errors import InvalidInput
from kalito_mcp.graph.canonical import normalize
from kalito_mcp.graph.hashing import MAX_TEXT_CHARS, HashingEmbedder
from kalito_mcp.graph.sparse_embedder import SparseEmbedder

EMBEDDER = HashingEmbedder()
TEXTS = st.text(max_size=60) | st.text(st.sampled_from("ab 5.\ud800\x00é"), max_size=12)
LONG = (
    "We met at the station in the afternoon, took the slow train along the coast, changed twice, waited for the bus "
    "that never came, walked the last two kilometres and reached the cabin at {} with wet shoes but in a good mood."
)


def cosine(one: str, other: str) -> float:
    return EMBEDDER.embed(one).dot(EMBEDDER.embed(other))


def test_vectors_stay_what_they_are() -> None:
    vector = EMBEDDER.embed("Oslo")
    assert vector.indices.tolist() == [3094, 9318, 10674, 12274, 12522, 12715, 12995, 13804, 16181]
    assert vector.values.tolist() == pytest.approx([1 / 3] * 9)
    assert EMBEDDER.embed("é👍\ud800").indices.tolist() == [778, 2590, 4200, 6443, 8618, 11902]
    assert HashingEmbedder(dim=1_000, min_n=2, max_n=2, seed=7).embed("Oslo").indices.tolist() == [
        199,
        289,
        443,
        629,
        903,
    ]


def test_an_n_gram_that_comes_twice_counts_twice() -> None:
    values = HashingEmbedder(min_n=3, max_n=3).embed("aaaa").values
    assert sorted((values / values.min()).round(4).tolist()) == [1, 1, 2]


def test_vectors_are_the_same_in_another_process() -> None:
    program = (
        "from kalito_mcp.graph.hashing import HashingEmbedder;"
        "print(HashingEmbedder().embed('Wo ist die Straße?').pairs())"
    )
    for seed in ("1", "2"):
        found = subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        )
        assert found.stdout.strip() == str(EMBEDDER.embed("wo ist die Straße").pairs())


@given(st.lists(TEXTS, max_size=8))
def test_many_texts_at_once_are_the_same_as_one_by_one(texts: list[str]) -> None:
    for text, vector in zip(texts, EMBEDDER.embed_all(texts), strict=True):
        alone = EMBEDDER.embed(text)
        assert np.array_equal(alone.indices, vector.indices)
        assert np.array_equal(alone.values, vector.values)
        assert (vector.indices.dtype, vector.values.dtype) == (np.uint32, np.float32)


def test_more_texts_than_a_batch_holds_keep_their_order() -> None:
    texts = [f"message {number} about the ferry" for number in range(5_000)] + ["word " * 2_000] * 20
    for text, vector in list(zip(texts, EMBEDDER.embed_all(texts), strict=True))[::97]:
        assert vector.pairs() == EMBEDDER.embed(text).pairs()


@given(TEXTS)
def test_a_vector_has_unit_length_unless_there_is_nothing_to_read(text: str) -> None:
    vector = EMBEDDER.embed(text)
    assert len(vector) == 0 if not normalize(text) else abs(vector.dot(vector) - 1) < 1e-6
    assert vector.indices.tolist() == sorted(set(vector.indices.tolist()))
    assert all(0 <= index < EMBEDDER.dim for index in vector.indices.tolist())


@given(st.integers(1, 1 << 20), st.integers(1, 16), st.integers(0, 15), st.integers(0, 2**32 - 1), TEXTS)
def test_every_shape_makes_vectors_within_its_dimensions(dim: int, min_n: int, more: int, seed: int, text: str) -> None:
    embedder = HashingEmbedder(dim=dim, min_n=min_n, max_n=min(16, min_n + more), seed=seed)
    vector = embedder.embed(text)
    assert bool(normalize(text)) == bool(len(vector))
    assert all(index < dim for index in vector.indices.tolist())
    assert embedder.embed_all([text, text])[1].pairs() == vector.pairs()


@pytest.mark.parametrize(
    ("one", "other"),
    [("What is the weather?", "  what is\nthe WEATHER "), ("ﬁve ｋｍ", "five km"), ("don’t", "DON'T!")],
)
def test_texts_that_fold_to_the_same_have_the_same_vector(one: str, other: str) -> None:
    assert EMBEDDER.embed(one).pairs() == EMBEDDER.embed(other).pairs()


def test_a_changed_digit_in_a_long_text_is_nearer_than_any_threshold_for_duplicates() -> None:
    assert cosine(LONG.format(7), LONG.format(8)) > 0.96
    assert cosine(LONG.format("half past seven"), LONG.format("half past eight")) > 0.9


def test_texts_in_other_words_are_near_and_unrelated_ones_are_not() -> None:
    assert cosine("How do I reset my password?", "how can I reset the password") > 0.5
    assert cosine("How do I reset my password?", "The ferry to Moss leaves at noon") < 0.2
    assert cosine("东京的天气怎么样", "东京的天气好吗") > 0.3


def test_short_strange_and_huge_texts_have_vectors() -> None:
    for text in ("a", "?", "\x00", "\ud800", "👍", "ab", "x" * 1_000_000, "word, (x) " * 100_000):
        assert 0 < len(EMBEDDER.embed(text)) < 20_000
    assert [len(vector) for vector in EMBEDDER.embed_all(["", " \t\n", "\u200b"])] == [0, 0, 0]
    assert EMBEDDER.embed_all([]) == []


def test_only_the_beginning_of_a_very_long_text_counts() -> None:
    beginning = "word " * (MAX_TEXT_CHARS // 5)
    assert EMBEDDER.embed(beginning + "tail").pairs() == EMBEDDER.embed(beginning).pairs()


def test_half_a_million_n_grams_spread_over_all_buckets() -> None:
    vectors = EMBEDDER.embed_all([f"{number * 7919} {chr(97 + number % 26) * 3}{number}" for number in range(20_000)])
    filled = np.bincount(np.concatenate([vector.indices for vector in vectors]), minlength=EMBEDDER.dim)
    assert np.count_nonzero(filled) > 0.99 * EMBEDDER.dim


def test_the_state_says_what_the_vectors_depend_on() -> None:
    provider = SparseEmbedder(EMBEDDER)
    state = {
        "kind": "char-ngram-hashing",
        "dim": 16_384,
        "min_n": 3,
        "max_n": 5,
        "seed": 0,
        "norm_version": 1,
        "hash_algo": "blake2b-128",
    }
    assert provider.export_state() == state
    provider.import_state(state)
    assert EMBEDDER.fingerprint == "char-ngram-hashing:16384:3-5:0:1:blake2b-128"
    assert HashingEmbedder(seed=1).fingerprint != EMBEDDER.fingerprint


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"dim": 8_192}, "dim is 8192 there and 16384 here"),
        ({"kind": "model"}, "kind is 'model' there"),
        ({"norm_version": None}, "norm_version is None there"),
        ({"model": "e5"}, "model is 'e5' there and None here"),
    ],
)
def test_the_state_of_another_embedder_is_refused(change: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        SparseEmbedder(EMBEDDER).import_state(EMBEDDER.export_state() | change)


@pytest.mark.parametrize(
    "shape", [{"dim": 0}, {"dim": 2**21}, {"min_n": 0}, {"min_n": 6}, {"max_n": 17}, {"seed": -1}, {"seed": 2**32}]
)
def test_a_shape_that_makes_no_vectors_is_refused(shape: dict[str, int]) -> None:
    with pytest.raises(InvalidInput, match="must"):
        HashingEmbedder(**shape)
