"""`explain`: every part of a score has its reason in words, the largest first."""

from datetime import UTC, datetime

import pytest

from kalito_mcp.domain.records import Role
from kalito_mcp.domain.search import Candidate
from kalito_mcp.retrieval import explanation
from kalito_mcp.retrieval.explanation import explain
from kalito_mcp.retrieval.scored_candidate import ScoredCandidate
from kalito_mcp.retrieval.weights import FEATURES, NEGATIVE
from tests.retrieval.builders import candidate, question, scored_by_hand
from tests.retrieval.builders import scored as ranked


def _ms(year: int, month: int, day: int) -> int:
    return int(datetime(year, month, day, tzinfo=UTC).timestamp() * 1000)


def scored(
    query: str, said: Candidate, parts: dict[str, float], *, near: tuple[str, ...] = (), meant: str | None = None
) -> ScoredCandidate:
    asked = question(query)
    if meant is not None:
        asked = asked.with_corrections({asked.terms[0]: (meant, 0.8)})
    return scored_by_hand(asked, said, parts, near=near)


@pytest.mark.parametrize("feature", FEATURES)
def test_every_feature_has_a_reason_of_its_own(feature: str) -> None:
    said = candidate("my ferry and my puppy", name="Ann", role=Role.ASSISTANT, created_at=_ms(2025, 3, 7))
    value = -0.2 if feature in NEGATIVE else 0.2
    why = explain(scored("Ann's pets on the ferry to Moss in March 2025", said, {feature: value}, near=("moss",)))
    assert why
    others = [
        explain(scored("Ann's pets on the ferry to Moss in March 2025", said, {other: value}, near=("moss",)))
        for other in FEATURES
        if other != feature and (other in NEGATIVE) == (feature in NEGATIVE)
    ]
    assert why not in others
    assert why.startswith("lowered: ") == (feature in NEGATIVE)


def test_there_is_no_reason_without_a_feature() -> None:
    assert set(explanation._REASONS) == set(FEATURES)


def test_the_words_are_those_that_were_said_and_those_near_are_as_they_were_asked() -> None:
    why = explain(
        scored("ferry Mosses", candidate("The FERRIES leave"), {"lexical": 0.3, "neighbours": 0.1}, near=("moss",))
    )
    assert '"ferries"' in why
    assert '"mosses" said just before or after' in why


def test_a_mistyped_word_says_what_it_was_taken_for() -> None:
    why = explain(scored("frery", candidate("The ferries leave"), {"lexical": 0.3}, meant="ferry"))
    assert '"ferries" for "frery"' in why
    assert "for" not in explain(scored("ferry", candidate("The ferries leave"), {"lexical": 0.3}))


def test_an_explanation_names_the_kind_and_its_instance() -> None:
    why = explain(scored("Which pets?", candidate("a puppy, the puppy and kittens"), {"hyponym": 0.3}))
    assert 'pets: "puppy", "kittens"' in why


def test_the_day_and_the_speaker_are_named() -> None:
    said = candidate("ferry", name="Ann", created_at=_ms(2025, 3, 7))
    why = explain(scored("ferry in March 2025", said, {"date": 0.1, "speaker": 0.1}))
    assert "2025-03-07" in why
    assert "said by Ann" in why


def test_what_only_shares_the_year_was_not_said_then() -> None:
    said = candidate("ferry", created_at=_ms(2025, 9, 7))
    assert explain(scored("ferry in March 2025", said, {"date": 0.1, "lexical": 0.3})) == 'says "ferry" (+0.30)'


def test_reasons_come_by_size_with_those_against_last_and_tiny_ones_left_out() -> None:
    parts = {"assistant": -0.3, "lexical": 0.2, "first_person": 0.06, "session": 0.1, "date": 0.02}
    why = explain(scored("ferry Moss", candidate("ferry", role=Role.ASSISTANT), parts, near=("moss",))).split("; ")
    assert [one.split()[0] for one in why] == ["says", "other", "speaks", "lowered:"]


def test_a_context_without_a_term_near_by_says_nothing_empty() -> None:
    assert explain(scored("ferry", candidate("ferry"), {"neighbours": 0.2})) == ""


def test_the_reason_for_a_said_term_includes_its_context_and_its_letters() -> None:
    parts = {"neighbours": 0.2, "lexical": 0.3, "spelling": 0.05, "session": 0.04}
    assert explain(scored("ferry", candidate("ferry"), parts)) == 'says "ferry" (+0.59)'
    said = candidate("At seven", name="Ann")
    assert explain(scored("Ann", said, parts | {"speaker": 0.1})) == "said by Ann, whom the query names (+0.69)"


def test_letters_are_those_of_words_that_are_not_said() -> None:
    why = explain(scored("ferry postgress", candidate("the ferry, postgres"), {"lexical": 0.3, "spelling": 0.1}))
    assert why == 'says "ferry" (+0.30); has some letters of "postgress" (+0.10)'


def test_a_long_query_is_not_repeated_as_a_whole() -> None:
    text = " ".join(f"word{n}x" for n in range(30))
    why = explain(scored(text, candidate(text), {"lexical": 0.3}))
    assert why.endswith(", ... (+0.30)")
    assert why.count('"') == 12


def test_what_a_ranking_finds_can_be_explained() -> None:
    turns = [candidate("I love the ferry?", 1, role=Role.ASSISTANT), candidate("my puppy of 7 weeks", 2, name="Ann")]
    asked = question("When did Ann take how many pets on the ferry in March 2026?")
    for one in ranked(asked, *turns, similarities={1: 0.5, 2: 0.4}):
        assert explain(one)
