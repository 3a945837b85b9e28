"""A candidate with its score. Pure, and without numpy, so that importing it is cheap."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kalito_mcp.domain.search import Candidate, CandidateStub
from kalito_mcp.retrieval.features import AnalyzedText
from kalito_mcp.retrieval.question import Question
from kalito_mcp.text.times.expressions import date_match

if TYPE_CHECKING:
    from kalito_mcp.retrieval.neighbourhood import Neighbourhood

DECIMALS: Final = 4
"""Of a score."""

_NEAR_IN_TIME: Final = 0.2


@dataclass(slots=True)
class ScoredCandidate:
    """A candidate analysed for a question. `parts` are its weighted features, and `score` their sum, which age lowers
    later."""

    question: Question
    analyzed: AnalyzedText
    stub: CandidateStub
    neighbourhood: "Neighbourhood"
    score: float
    parts: Mapping[str, float]

    @property
    def candidate(self) -> Candidate:
        """The candidate itself."""
        return self.analyzed.candidate

    @property
    def is_of_named_time(self) -> bool:
        """Whether it was said in or near the time that the query names. The same year alone is not near."""
        return date_match(self.question.dates, self.candidate.created_at) >= _NEAR_IN_TIME

    @property
    def neighbour_terms(self) -> tuple[str, ...]:
        """The terms of the turns around it that its own text does not contain."""
        terms, around = self.question.terms, self.neighbourhood.neighbour_terms(self.stub)
        own = self.analyzed.counts
        return tuple(term for bit, term in enumerate(terms) if around >> bit & 1 and term not in own)
