"""A candidate with its score. Pure, and without numpy, so that importing it is cheap."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final, Protocol

from kalito_mcp.domain.search import Candidate
from kalito_mcp.retrieval.features import AnalyzedText, analyze
from kalito_mcp.retrieval.question import Question
from kalito_mcp.text.times.expressions import date_match

DECIMALS: Final = 4
"""Of a score."""

_NEAR_IN_TIME: Final = 0.2


class Scores(Protocol):
    """What a ranker knows of its candidates, by their numbers."""

    @property
    def speakers(self) -> Sequence[str]: ...
    def parts(self, at: int, spelling: float) -> Mapping[str, float]: ...
    def terms(self, at: int) -> Sequence[str]: ...
    def neighbour_terms(self, at: int) -> Sequence[str]: ...
    def has_hyponym(self, at: int) -> bool: ...
    def is_alone(self, at: int) -> bool: ...


class ScoredCandidate:
    """A candidate that was read. `text` has its words. `score` is the sum of its parts, which age lowers later.
    `topic_score` is that without the parts for the manner of speaking, which texts about any other subject have too,
    and for the meaning, which has a bar of its own."""

    def __init__(
        self,
        *,
        question: Question,
        candidate: Candidate,
        text: Sequence[str],
        scores: Scores,
        at: int,
        score: float,
        topic_score: float,
        spelling: float,
    ) -> None:
        self.question = question
        self.candidate = candidate
        self.text = text
        self.score = score
        self.topic_score = topic_score
        self._scores = scores
        self._at = at
        self._spelling = spelling

    @cached_property
    def parts(self) -> Mapping[str, float]:
        """What each feature adds to the score."""
        return self._scores.parts(self._at, self._spelling)

    @cached_property
    def terms(self) -> frozenset[str]:
        """The terms of the question that the text or the speaker's name contains."""
        return frozenset(self._scores.terms(self._at))

    @property
    def has_hyponym(self) -> bool:
        """Whether the text contains a hyponym of a kind that the question names."""
        return self._scores.has_hyponym(self._at)

    @cached_property
    def neighbour_terms(self) -> tuple[str, ...]:
        """The terms of the turns around it that its own text does not contain."""
        return tuple(term for term in self._scores.neighbour_terms(self._at) if term not in self.terms)

    @property
    def is_alone(self) -> bool:
        """Whether no other candidate of its session contains a term of the question."""
        return self._scores.is_alone(self._at)

    @property
    def speakers(self) -> Sequence[str]:
        """The names of the speakers whom the question names."""
        return self._scores.speakers

    @cached_property
    def analyzed(self) -> AnalyzedText:
        """Which words of the text match the question, for the reasons of a hit."""
        return analyze(self.question, self.candidate)

    @property
    def is_of_named_time(self) -> bool:
        """Whether it was said in or near the time that the query names. The same year alone is not near."""
        return date_match(self.question.dates, self.question.zone.day(self.candidate.created_at)) >= _NEAR_IN_TIME
