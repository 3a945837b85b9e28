"""The order of candidates: each term of the sum, and what it is worth beside the others."""

import numpy as np
import pytest

from kalito_mcp.domain.records import Role
from kalito_mcp.domain.search import SearchFilters
from kalito_mcp.domain.time import from_iso
from kalito_mcp.retrieval.ranking import named_speaker, without_names
from tests.retrieval.builders import candidate, columns, hits_of, question, ranked, scores


def test_a_record_without_a_word_of_the_question_is_no_hit_by_words_whatever_surrounds_it() -> None:
    turns = [candidate("the ferry to Moss", 1), candidate("at seven", 2), candidate("ferry, Moss", 3)]
    assert hits_of(question("ferry Moss"), *turns) == [1, 3]


def test_what_the_filters_do_not_admit_is_no_hit_and_still_lends_its_words() -> None:
    turns = [candidate("ferry", 1, role=Role.ASSISTANT), candidate("Moss", 2)]
    asked = question("ferry Moss")
    assert hits_of(asked, *turns, filters=SearchFilters(roles=frozenset({Role.USER}))) == [2]
    beside, alone = scores(asked, *turns).values[1], scores(asked, turns[1]).values[0]
    assert beside > alone


def test_equal_ones_come_newest_first_and_more_of_the_question_before_them() -> None:
    said = [candidate(text, key, session=None) for key, text in enumerate(("ferry", "ferry", "ferry Moss"), 1)]
    assert ranked(question("ferry Moss"), *said) == [3, 2, 1]


def test_a_text_that_is_more_similar_comes_before_one_that_has_the_words() -> None:
    said = [candidate("the boat leaves at seven", 1, session=None), candidate("ferry", 2, session=None)]
    assert ranked(question("When does the ferry go?"), *said) == [2, 1]
    assert ranked(question("When does the ferry go?"), *said, cosines={1: 0.8, 2: 0.1}) == [1, 2]


def test_the_turn_beside_a_similar_one_comes_before_others() -> None:
    said = [candidate("when?", 1), candidate("at seven", 2), candidate("at eight", 3, session="home")]
    assert ranked(question("ferry"), *said, cosines={1: 0.7, 2: 0.2, 3: 0.2}) == [1, 2, 3]


def test_a_record_without_a_vector_counts_as_unrelated() -> None:
    said = [candidate("a", 1, session=None), candidate("b", 2, session=None), candidate("c", 3, session=None)]
    assert ranked(question("ferry"), *said, cosines={1: 0.3, 3: -0.3}) == [1, 2, 3]


def test_where_a_vector_is_still_missing_the_words_stand_in_for_it() -> None:
    texts = ("the ferry to Moss", "the boat to Moss", "at seven from Moss")
    said = [candidate(text, key, session=None) for key, text in enumerate(texts, 1)]
    asked = question("ferry to Moss")
    assert ranked(asked, *said, cosines={1: 0.0, 2: 0.7, 3: 0.0}) == [2, 1, 3]
    assert ranked(asked, *said, cosines={2: 0.7}) == [1, 2, 3]


def test_the_one_speaker_who_is_named_comes_first() -> None:
    said = [candidate("the ferry", 1, name="Ann", session=None), candidate("the ferry", 2, name="Bob", session=None)]
    assert ranked(question("What did Ann say of the ferry?"), *said) == [1, 2]
    assert "speaker" not in scores(question("What did Ann tell Bob of the ferry?"), *said).parts(0)
    assert named_speaker(columns(*said), question("Ann's ferry")) == "Ann"
    assert named_speaker(columns(*said), question("the ferry of Ann and Bob")) is None


def test_the_names_of_speakers_are_cut_out_unless_nothing_is_left() -> None:
    for text, left in (
        ("What did Ann say of the ferry?", "What did say of the ferry?"),
        ("Ann's ferry, and Bob Lee’s", "ferry, and"),
        ("ANN", "ANN"),
        ("the annual ferry", "the annual ferry"),
    ):
        assert without_names(text, columns(candidate("a", 1, name="Ann"), candidate("b", 2, name="Bob Lee"))) == left


def test_what_was_said_at_a_named_time_comes_first() -> None:
    said = [
        candidate("the ferry", 1, created_at=from_iso("2025-03-07T12:00:00Z"), session=None),
        candidate("the ferry", 2, created_at=from_iso("2025-09-07T12:00:00Z"), session=None),
    ]
    asked = question("the ferry in March 2025")
    assert ranked(asked, *said) == [1, 2]
    assert scores(asked, *said).parts(0)["time"] > scores(asked, *said).parts(1).get("time", 0)


def test_an_answer_of_the_assistant_counts_a_little_less_unless_it_is_somebody_with_a_name() -> None:
    said = [
        candidate("the ferry", 1, role=Role.USER, session=None),
        candidate("the ferry", 2, role=Role.ASSISTANT, session=None),
        candidate("the ferry", 3, role=Role.ASSISTANT, name="Bob", session=None),
    ]
    found = scores(question("the ferry"), *said)
    assert ranked(question("the ferry"), *said)[0] == 1
    assert [found.parts(at).get("assistant", 0) < 0 for at in range(3)] == [False, True, False]


def test_who_asks_what_you_said_asks_for_the_assistants_words() -> None:
    said = [
        candidate("the ferry", 1, role=Role.USER, session=None),
        candidate("the ferry", 2, role=Role.ASSISTANT, session=None),
    ]
    asked = question("Which ferry did you suggest?")
    assert ranked(asked, *said) == [2, 1]
    assert [set(scores(asked, *said).parts(at)) for at in range(2)] == [{"words"}, {"words", "speaker"}]


@pytest.mark.parametrize("cosines", [None, {1: 0.4, 2: 0.2}])
def test_a_score_is_the_sum_of_its_parts(cosines: dict[int, float] | None) -> None:
    said = [candidate("the ferry to Moss", 1, name="Ann"), candidate("At seven.", 2, role=Role.ASSISTANT)]
    found = scores(question("When did Ann take the ferry in March 2026?"), *said, cosines=cosines)
    sums = [sum(found.parts(at).values()) for at in range(len(said))]
    assert found.values == pytest.approx(np.array(sums), abs=1e-6)
