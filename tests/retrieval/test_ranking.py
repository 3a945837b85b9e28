"""The order of records: what may be a hit, whose words count, and the sum of a score."""

from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.records import Role
from kalito_mcp.domain.search import Candidate, SearchFilters
from kalito_mcp.domain.time import from_iso
from kalito_mcp.retrieval.ranking import Ranker
from kalito_mcp.retrieval.scored_candidate import ScoredCandidate
from kalito_mcp.retrieval.weights import FEATURES, NEGATIVE, WEIGHTS, FeatureWeights
from tests.retrieval.builders import candidate, hits_of, question, ranker
from tests.retrieval.builders import scored as ranked

NOTHING = FeatureWeights(**dict.fromkeys(FEATURES, 0.0))
SAID = st.lists(st.sampled_from(["ferry", "puppy", "I", "prefer", "filler", "seven", "Monday", "?"]), max_size=8)
TURNS = st.lists(st.tuples(SAID, st.sampled_from(Role), st.sampled_from([None, "Ann", "Bob"])), min_size=1, max_size=6)


def scored(query: str, *candidates: Candidate, weights: FeatureWeights = WEIGHTS) -> list[ScoredCandidate]:
    return ranked(question(query), *candidates, weights=weights)


def keys(ranker: Ranker, *said: Candidate) -> list[int]:
    """The keys of the records, the most promising first."""
    return [said[at].key for at in ranker.order()]


def test_a_record_without_anything_asked_for_is_no_hit_whatever_surrounds_it() -> None:
    turns = [candidate("the ferry to Moss", 1), candidate("at seven", 2), candidate("ferry, Moss", 3)]
    assert hits_of(question("ferry Moss"), *turns) == [1, 3]


def test_an_instance_of_a_kind_makes_a_hit() -> None:
    assert hits_of(question("Which pets?"), candidate("my new puppy", 1), candidate("nothing", 2)) == [1]


def test_what_the_filters_do_not_admit_is_no_hit_and_still_context() -> None:
    turns = [candidate("ferry", 1, role=Role.ASSISTANT), candidate("Moss", 2)]
    asked = question("ferry Moss")
    assert hits_of(asked, *turns, filters=SearchFilters(roles=frozenset({Role.USER}))) == [2]
    [of] = ranker(asked, *turns, places=[1]).rank(np.array([0]), turns[1:])
    [without] = ranked(asked, turns[1])
    assert of.parts["neighbours"] > without.parts["neighbours"]
    assert (of.neighbour_terms, without.neighbour_terms) == (("ferry",), ())


def test_equal_promises_come_newest_first_and_more_of_the_query_before_them() -> None:
    turns = [candidate(text, key) for key, text in enumerate(("ferry", "ferry", "ferry Moss"), 1)]
    weights = replace(NOTHING, lexical=1.0)
    assert keys(ranker(question("ferry Moss"), *turns, weights=weights), *turns) == [3, 2, 1]


@pytest.mark.parametrize(
    ("query", "role", "name", "counts"),
    [
        ("Which pets?", Role.USER, None, True),
        ("Which pets?", Role.ASSISTANT, None, True),
        ("Which pets?", Role.ASSISTANT, "Ann", True),
        ("Which pets?", None, None, True),
        ("Which pets does Ann have?", Role.USER, "Ann", True),
        ("Which pets does ANN have?", Role.ASSISTANT, "Ann", True),
        ("Which pets does Ann have?", Role.USER, "Bob", False),
        ("Which pets does Ann have?", Role.USER, None, False),
        ("Which pets does Eve have?", Role.USER, "Bob", True),
    ],
)
def test_an_instance_counts_only_from_the_named_speaker_if_one_is_named(
    query: str, role: Role | None, name: str | None, counts: bool
) -> None:
    said = candidate("my puppy", 1, role=role, name=name)
    present = [candidate("hello", 2, name="Ann"), candidate("hello", 3, name="Bob")]
    if "Eve" in query:
        present = present[1:]
    found = scored(query, said, *present)[0]
    assert ("hyponym" in found.parts) is counts


def test_who_is_asked_about_is_a_speaker_and_nobody_else() -> None:
    said = [candidate("the ferry", 1, name="Ann"), candidate("the ferry", 2, name="Bob"), candidate("the ferry", 3)]
    found = scored("What did Ann say of the ferry?", *said)
    assert ["speaker" in one.parts for one in found] == [True, False, False]
    assert not any("speaker" in one.parts for one in scored("the ferry", *said))


def test_a_vectors_likeness_counts_for_the_record_and_for_those_around_it() -> None:
    turns = [candidate("ferry", 1), candidate("quince", 2), candidate("far", 3)]
    asked = question("ferry")
    likeness = {1: -0.9, 2: 0.8, 3: -0.9}
    found = ranked(asked, *turns, similarities=likeness)
    assert ["semantic" in one.parts for one in found] == [False, True, False]
    assert found[0].parts["neighbour_semantic"] > 0
    without = ranked(asked, *turns)
    assert not any({"semantic", "neighbour_semantic"} & set(one.parts) for one in without)
    assert [one.topic_score for one in found] == [one.topic_score for one in without]


@pytest.mark.parametrize(
    ("before", "name", "counts"),
    [
        ("When does the ferry leave?", "Bob", True),
        ("フェリーは ferry ？", "Bob", True),
        ("The ferry leaves.", "Bob", False),
        ("When does the ferry leave?", "Ann", False),
    ],
)
def test_what_follows_somebody_elses_question_with_the_words_of_the_query_answers_it(
    before: str, name: str, counts: bool
) -> None:
    turns = [candidate(before, 1, name=name), candidate("At seven from Moss", 2, name="Ann")]
    asked, answer = scored("the ferry to Moss", *turns)
    assert "answers" not in asked.parts
    assert ("answers" in answer.parts) is counts


def test_a_question_that_was_not_read_has_no_answer() -> None:
    turns = [candidate("the ferry?", 1, role=Role.USER), candidate("Moss", 2, role=Role.ASSISTANT)]
    [answer] = ranker(question("ferry Moss"), *turns).rank(np.array([1]), turns[1:])
    assert "answers" not in answer.parts


def test_a_time_counts_less_the_more_else_a_query_names() -> None:
    said = candidate("clover", 1, created_at=from_iso("2026-03-05T12:00:00Z"))
    parts = [
        scored(f"{words} in March 2026", said)[0].parts["date"]
        for words in ("clover", "clover ferry moss quince lamp", "clover ferry moss quince lamp boat oak elm")
    ]
    assert parts[0] == parts[1]
    assert parts[2] == pytest.approx(parts[0] * 6 / 9)  # the year is a term too


@given(TURNS, st.sampled_from(["ferry", "When did Ann prefer the ferry?", "How many pets?", "ferry puppy seven"]))
def test_the_parts_sum_to_the_score_that_is_above_zero_and_at_most_one(
    turns: list[tuple[list[str], Role, str | None]], query: str
) -> None:
    said = [candidate(" ".join(text), key, role=role, name=name) for key, (text, role, name) in enumerate(turns, 1)]
    for one in scored(query, *said):
        assert 0 < one.score <= 1
        assert set(one.parts) <= set(FEATURES)
        assert all(part <= 0 if name in NEGATIVE else part >= 0 for name, part in one.parts.items())
        assert one.score == pytest.approx(min(1.0, max(sum(one.parts.values()), 0.0001)), abs=0.0001)


@pytest.mark.parametrize("feature", FEATURES)
def test_a_feature_without_weight_has_no_part(feature: str) -> None:
    said = [candidate("I prefer the ferry on Monday at 7?", 1, role=Role.ASSISTANT), candidate("my puppy", 2)]
    query = "When and how many ferries and pets in March 2026?"
    with_it = {name for one in scored(query, *said) for name in one.parts}
    without = scored(query, *said, weights=replace(WEIGHTS, **{feature: 0.0}))
    assert with_it - {feature} == {name for one in without for name in one.parts}


def test_a_short_complete_text_scores_above_half_and_zero_weights_are_no_error() -> None:
    [one] = scored("the ferry to Moss", candidate("ferry Moss"))
    assert one.score > 0.5
    [least] = scored("ferry", candidate("ferry"), weights=NOTHING)
    assert 0 < least.score < 0.01
    assert asdict(NOTHING).keys() == set(FEATURES)


def test_how_a_thing_is_said_counts_only_where_it_is_about_what_is_asked() -> None:
    [about] = scored("ferry", candidate("I prefer the ferry, do you?", role=Role.ASSISTANT))
    [beside] = scored("ferry", candidate("I prefer the bus, do you?", role=Role.ASSISTANT))
    for name in ("first_person", "assistant"):
        assert abs(about.parts[name]) > abs(beside.parts.get(name, 0.0))


def test_what_is_said_around_counts_less_where_several_answers_are_asked_for() -> None:
    turns = [candidate("the ferry", 1), candidate("to Moss", 2)]
    [one, _] = scored("Which ferry is to Moss?", *turns)
    [several, _] = scored("Which ferries are to Moss?", *turns)
    assert several.parts["lexical"] > one.parts["lexical"]
    for around in ("neighbours", "session"):
        share = one.parts[around] / one.parts["lexical"]
        assert several.parts[around] / several.parts["lexical"] == pytest.approx(0.7 * share)


def test_where_several_answers_are_asked_for_the_same_places_are_promising() -> None:
    turns = [candidate("the ferry", 1), candidate("to Moss", 2), candidate("at seven", 3), candidate("Moss", 4)]
    one, several = (ranker(question(f"Which {asked} to Moss?"), *turns) for asked in ("ferry is", "ferries are"))
    assert keys(several, *turns) == keys(one, *turns)


def test_a_kind_counts_where_whom_the_query_names_says_it_or_is_named() -> None:
    def kind(text: str, name: str) -> float:
        asked = candidate("hello", 9, name="Ben")
        told = candidate(text, 1, name=name)
        return scored("Which pets does Ben have?", told, asked)[0].parts.get("hyponym", 0.0)

    assert kind("my puppy", "Ben") > 0
    assert kind("how is your puppy, Ben", "Ann") > 0
    assert kind("my puppy", "Ann") == 0


def test_manner_counts_the_same_whether_one_or_several_things_are_asked_for() -> None:
    said = candidate("I took the ferry", 1)
    for query in ("Which ferry was it?", "Which ferries are there?"):
        [found] = scored(query, said, weights=replace(NOTHING, lexical=0.1, first_person=0.1))
        own, manner = found.parts["lexical"], found.parts["first_person"]
        assert manner == pytest.approx(min(1.0, own / (0.1 / 0.1)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("The ferry.", set()), ("I took the ferry.", {"first_person"}), ("Always by ferry, and it is ours.", set())],
)
def test_the_manner_of_a_text_is_whether_the_speaker_talks_about_themselves(text: str, expected: set[str]) -> None:
    [found] = scored("ferry", candidate(text))
    assert found.parts.keys() & {"first_person", "assistant"} == expected


def test_an_assistants_words_count_less_unless_they_are_asked_for_or_it_has_a_name() -> None:
    def is_less(query: str, role: Role | None, name: str | None = None) -> bool:
        [found] = scored(query, candidate("The ferry.", role=role, name=name))
        return found.parts.get("assistant", 0.0) < 0

    assert is_less("ferry", Role.ASSISTANT)
    assert not is_less("ferry", Role.USER)
    assert not is_less("ferry", None)
    assert not is_less("ferry", Role.ASSISTANT, "Ann")
    assert not is_less("Which ferry did you recommend?", Role.ASSISTANT)
