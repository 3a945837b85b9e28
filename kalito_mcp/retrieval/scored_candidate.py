"""A candidate that was read, with its score. Pure, and without numpy, so that importing it is cheap."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from kalito_mcp.domain.search import Candidate
from kalito_mcp.retrieval.question import Question, match_words
from kalito_mcp.text.analysis import indexed_words, words

DECIMALS: Final = 4
"""Of a score."""

_LEAST: Final = 10**-DECIMALS


@dataclass
class ScoredCandidate:
    """A record that may be a hit. `score`, in (0, 1], is the sum of its `parts`."""

    question: Question
    candidate: Candidate
    score: float
    parts: Mapping[str, float]
    nearby: tuple[str, ...] = ()
    """The terms of the question that only the turns around it have, if hits are explained."""

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of the text."""
        return frozenset(words(self.candidate.text))

    @cached_property
    def matched_words(self) -> Mapping[str, str]:
        """For each term of the question that the text has, the first word that says it."""
        said = indexed_words(self.candidate.text)
        matches = match_words(self.question, set(said))
        found: dict[str, str] = {}
        for word in said:
            if word in matches:
                found.setdefault(matches[word], word)
        return found

    @property
    def terms(self) -> frozenset[str]:
        """The terms of the question that the text has."""
        return frozenset(self.matched_words)


def shown_score(score: float) -> float:
    """The score as it is shown."""
    return min(1.0, max(round(score, DECIMALS), _LEAST))
