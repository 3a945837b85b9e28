"""What one text says for a question, in shares of one."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.search import Candidate
from kalito_mcp.retrieval import features
from kalito_mcp.retrieval.question import Question
from kalito_mcp.text.analysis import stem, words
from tests.retrieval.builders import analyzed_text, candidate, matches, question

WORDS = st.sampled_from(["ferry", "moss", "oslo", "ticket", "ferries", "filler", "other", "Ann's", "東京"])
TEXTS = st.lists(WORDS, max_size=60).map(" ".join)
QUERY = "ferry moss oslo ticket 東京"


def worth(text: str, query: str = QUERY) -> float:
    """The own evidence of a text, every term weighing as much."""
    return float(matches(question(query), candidate(text)).lexical[0])


def spelling(asked: Question, *said: Candidate) -> list[float]:
    return features.spelling(asked, [words(one.text) for one in said], [words(one.name or "") for one in said])


@given(TEXTS, TEXTS)
def test_evidence_lies_in_zero_to_one_and_never_reaches_one(query: str, text: str) -> None:
    assert 0.0 <= worth(text, query) < 1.0


@given(st.lists(WORDS, max_size=30), st.randoms(use_true_random=False))
def test_evidence_ignores_the_order_of_the_text(said: list[str], chance: st.DrawFn) -> None:
    shuffled = list(said)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    assert math.isclose(worth(" ".join(shuffled)), worth(" ".join(said)), abs_tol=1e-6)


@given(st.lists(WORDS, min_size=1, max_size=40), st.data())
def test_a_word_of_the_query_in_the_place_of_another_word_raises_the_evidence(
    said: list[str], data: st.DataObject
) -> None:
    others = [at for at, word in enumerate(said) if word in {"filler", "other", "Ann's"}]
    if not others:
        return
    at = data.draw(st.sampled_from(others))
    added = data.draw(st.sampled_from(["ferry", "moss", "ticket"]))
    before, after = worth(" ".join(said)), worth(" ".join([*said[:at], added, *said[at + 1 :]]))
    # The index knows only whether a text repeats a term several or many times.
    assert after > before if stem(added) not in map(stem, said) else after >= before


@given(TEXTS, st.integers(1, 40))
def test_words_that_were_not_asked_for_never_raise_the_evidence(text: str, fillers: int) -> None:
    assert worth(text + " filler" * fillers) <= worth(text)


@given(TEXTS)
def test_a_text_has_evidence_exactly_where_it_has_a_word_of_the_query(text: str) -> None:
    assert (worth(text, "ferry moss") > 0) == bool({"ferry", "ferries", "moss"} & set(text.split()))


@pytest.mark.parametrize(("times", "estimate"), [(1, 1.0), (2, 2.4), (3, 2.4), (4, 5.0), (50, 5.0)])
def test_the_evidence_is_the_formula_that_the_module_states(times: int, estimate: float) -> None:
    said = [candidate("ferry " * times + "moss filler", 1), candidate("moss", 2)]
    damping = 0.6 + 0.04 * (times + 2)
    rare, common = math.log1p(2 / 1), math.log1p(2 / 2)
    expected = (rare * estimate / (estimate + damping) + common / (1 + damping)) / (rare + common)
    assert math.isclose(matches(question("ferry moss"), *said).lexical[0], expected, rel_tol=1e-6)


def test_a_reading_has_the_words_that_were_said_and_the_instances_of_kinds() -> None:
    read = analyzed_text("Which pets were on the ferry?", "The FERRIES, and a ferry: my kittens", name="Ann")
    assert read.matched_words == {"ferry": "ferries"}
    assert read.hyponym_words == {"pet": ["kittens"]}
    assert (list(read.name), len(read.text)) == (["ann"], 7)


def test_a_corrected_word_counts_as_much_as_it_is_alike() -> None:
    asked = question("frery")
    corrected = asked.with_corrections({"frery": ("ferry", 0.5)})
    [exact], [taken] = matches(asked, candidate("frery")).lexical, matches(corrected, candidate("ferry")).lexical
    assert exact > taken > 0


def test_several_instances_of_a_kind_count_more_and_the_kind_itself_does_not_count() -> None:
    said = [candidate(text, key) for key, text in enumerate(("pets here", "kitten here", "kitten puppy"), 1)]
    found = matches(question("pets"), *said).hyponym.tolist()
    assert found[0] == 0.0
    assert 0 < found[1] < found[2] < 1


SPELLED = st.text("abcdefgh iy", min_size=3, max_size=30).filter(lambda text: bool(question(text).terms))


@given(SPELLED, st.lists(SPELLED, max_size=4))
def test_the_likeness_of_letters_lies_in_zero_to_one(query: str, texts: list[str]) -> None:
    asked = question(query)
    found = spelling(asked, *(candidate(text) for text in (query, *texts)))
    assert all(0.0 <= alike <= 1.0 for alike in found)


@pytest.mark.parametrize("text", ["the ferry leaves for Moss at seven", "painting", "東京に行きました"])
def test_the_text_itself_is_spelled_most_alike_and_nearly_one(text: str) -> None:
    asked = question(text)
    others = text, "something else entirely", text[: len(text) // 2]
    itself, nothing, half = spelling(asked, *map(candidate, others))
    assert itself >= 0.8
    assert itself > half > nothing


def test_a_mistyped_word_is_spelled_more_alike_than_another() -> None:
    asked = question("paintnig")
    close, far = spelling(asked, candidate("her painting"), candidate("her sailing"))
    assert close > far


def test_no_texts_and_no_query_are_like_nothing() -> None:
    assert spelling(question("ferry")) == []
    assert spelling(question("!?"), candidate("ferry")) == [0.0]
