"""`explain`: every part of a score has its reason in words, the largest first."""

import pytest

from kalito_mcp.domain.records import Role
from kalito_mcp.domain.search import Candidate
from kalito_mcp.domain.time import from_iso
from kalito_mcp.retrieval import explanation
from kalito_mcp.retrieval.explanation import explain
from kalito_mcp.retrieval.scored_candidate import ScoredCandidate
from tests.retrieval.builders import candidate, question, scores

EVERY_PART = ("words", "meaning", "nearby", "time", "speaker", "assistant")


def scored(
    query: str, said: Candidate, parts: dict[str, float], *, near: tuple[str, ...] = (), meant: str | None = None
) -> ScoredCandidate:
    asked = question(query)
    if meant is not None:
        asked = asked.with_corrections({asked.terms[0]: (meant, 0.8)})
    return ScoredCandidate(asked, said, 0.5, parts, near)


def test_every_part_of_a_sum_has_a_reason_of_its_own() -> None:
    said = [candidate("the ferry", 1, name="Ann"), candidate("at seven", 2, role=Role.ASSISTANT)]
    found = scores(question("When did Ann take the ferry in March 2026?"), *said, cosines={1: 0.4, 2: 0.2})
    assert set(found.parts(0)) | set(found.parts(1)) == set(EVERY_PART) == set(explanation._REASONS)
    reasons = [explain(scored("ferry in March 2026", said[0], {part: 0.2})) for part in EVERY_PART]
    assert len(set(reasons)) == len(EVERY_PART)


def test_the_words_are_those_that_were_said_and_those_near_are_as_they_were_asked() -> None:
    why = explain(scored("ferry Mosses", candidate("The FERRIES leave"), {"words": 0.3}, near=("moss",)))
    assert why == 'says "ferries"; "mosses" said just before or after (+0.30)'


def test_a_mistyped_word_says_what_it_was_taken_for() -> None:
    why = explain(scored("frery", candidate("The ferries leave"), {"words": 0.3}, meant="ferry"))
    assert '"ferries" for "frery"' in why
    assert "for" not in explain(scored("ferry", candidate("The ferries leave"), {"words": 0.3}))


def test_the_day_and_the_speaker_are_named() -> None:
    said = candidate("ferry", name="Ann", created_at=from_iso("2025-03-07T12:00:00Z"))
    why = explain(scored("ferry in March 2025", said, {"time": 0.1, "speaker": 0.1}))
    assert "2025-03-07" in why
    assert "said by Ann" in why


def test_reasons_come_by_size_with_those_against_last_and_tiny_ones_left_out() -> None:
    parts = {"assistant": -0.3, "words": 0.2, "nearby": 0.1, "time": 0.002}
    why = explain(scored("ferry Moss", candidate("ferry", role=Role.ASSISTANT), parts)).split("; ")
    assert [one.split()[0] for one in why] == ["says", "a", "lowered:"]


@pytest.mark.parametrize("near", [(), ("ferry",)])
def test_a_word_that_only_the_conversation_has_is_not_said_to_be_in_the_text(near: tuple[str, ...]) -> None:
    why = explain(scored("ferries", candidate("At seven."), {"words": 0.1}, near=near))
    assert not why.startswith("says")


def test_a_long_query_is_not_repeated_as_a_whole() -> None:
    text = " ".join(f"word{n}x" for n in range(30))
    why = explain(scored(text, candidate(text), {"words": 0.3}))
    assert why.endswith(", ... (+0.30)")
    assert why.count('"') == 12
