"""The order of records: by the first-stage score before their texts are read, by all features after. Pure."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kalito_mcp.domain.search import Candidate, CandidateStub
from kalito_mcp.retrieval import features
from kalito_mcp.retrieval.features import AnalyzedText
from kalito_mcp.retrieval.neighbourhood import Neighbourhood
from kalito_mcp.retrieval.question import Question
from kalito_mcp.retrieval.scored_candidate import DECIMALS, ScoredCandidate
from kalito_mcp.retrieval.weights import FeatureWeights
from kalito_mcp.text.analysis import stem, words
from kalito_mcp.text.times.expressions import date_match

_FULL_STYLE_AT: Final = 0.1
"""Share of `FeatureWeights.full` at which the style features count in full. Below it they count proportionally less:
how a thing is said matters only where it is about what is asked."""

_SHARE_FOR_SEVERAL: Final = 0.7
"""Factor for the `neighbours` and `session` weights where the question asks for several answers: those lie in several
conversations, and most speak for themselves. R@10 +1.1 on LoCoMo's multi-hop questions and on BEAM
(`python -m bench.recall`)."""

_MIN_SCORE: Final = 0.0001


class Ranker:
    """Scores the stubs of one batch, then the candidates read for them."""

    def __init__(
        self,
        question: Question,
        term_weights: Mapping[str, float],
        neighbourhood: Neighbourhood,
        weights: FeatureWeights,
        similarities: Mapping[int, float],
        dated: Set[int] = frozenset(),
    ) -> None:
        self._question = question
        self._term_weights = term_weights
        self._mass = sum(term_weights[term] for term in question.terms) or 1.0
        self._neighbourhood = neighbourhood
        self._stubs = {stub.key: stub for stub in neighbourhood.stubs}
        self._similarities = similarities
        self._dated = dated
        self._first_stage_weights = weights.per_feature()
        share = _SHARE_FOR_SEVERAL if question.asks_several else 1.0
        # What was said at the time comes before what only mentions it.
        date = weights.lexical + weights.neighbours if question.asks_time_alone else weights.date
        adapted = replace(weights, neighbours=share * weights.neighbours, session=share * weights.session, date=date)
        self._weights = adapted.per_feature()
        self._full_style = _FULL_STYLE_AT / adapted.full
        self._speakers = {
            name
            for name in {stub.name for stub in neighbourhood.stubs if stub.name}
            if not question.words.isdisjoint(words(name))
        }
        self._named_terms = {stem(word) for name in self._speakers for word in words(name)}

    def by_first_stage_score(self) -> list[tuple[float, int]]:
        """The first-stage score and key of each stub that may be a hit, best first; ties newest first.

        A record that contains nothing of the query is no hit, whatever its neighbours say: such hits would gain 0.2
        points on LoCoMo, and nobody would understand them. A semantic match, or a record said at the time that the
        query names, is a hit.
        """
        near, weights, stubs = self._neighbourhood, self._first_stage_weights, self._neighbourhood.stubs
        is_by_speaker = np.array([stub.name in self._speakers for stub in stubs] if self._speakers else False)
        semantic = np.array([self._semantic(stub) for stub in stubs] if self._similarities else 0.0)
        scores = (
            weights["lexical"] * near.lexical
            + weights["neighbours"] * near.neighbours
            + weights["session"] * near.session
            + weights["hyponym"] * near.hyponym * (is_by_speaker if self._speakers else 1.0)
            + weights["speaker"] * is_by_speaker
            + weights["semantic"] * semantic
            + weights["neighbour_semantic"] * self._neighbour_semantic
        )
        is_dated = np.array([stub.key in self._dated for stub in stubs] if self._dated else False)
        is_admitted = np.array([stub.is_admitted for stub in stubs], bool)
        may_be_hit = np.flatnonzero(is_admitted & (near.contains_any | (semantic > 0) | is_dated))
        return sorted(((float(scores[place]), stubs[place].key) for place in may_be_hit), reverse=True)

    def rank(self, candidates: Sequence[Candidate]) -> list[ScoredCandidate]:
        """The candidates with their scores, in no order."""
        analyzed = features.analyze(self._question, candidates)
        # In a question about a time alone ("what happened in March?") the spelling says nothing.
        uses_spelling = self._weights["spelling"] and not self._question.asks_time_alone
        spelled = features.spelling(self._question, analyzed) if uses_spelling else [0.0] * len(analyzed)
        return [self._score(one, spelling) for one, spelling in zip(analyzed, spelled, strict=True)]

    def _score(self, analyzed: AnalyzedText, spelling: float) -> ScoredCandidate:
        name = analyzed.candidate.name
        stub = self._stubs[analyzed.candidate.key]
        place = self._neighbourhood.place(stub)
        topic = {
            "lexical": features.lexical(analyzed, self._term_weights, self._mass),
            "neighbours": self._neighbourhood.neighbours_at_length(stub, len(analyzed.words)),
            "spelling": spelling,
            "hyponym": features.hyponym(analyzed, self._term_weights, self._mass) * self._is_about_named(analyzed),
            "semantic": self._semantic(stub),
        }
        parts = self._weighted(topic)
        style_share = min(1.0, sum(parts.values()) / self._full_style)
        parts |= self._weighted(
            {
                "session": float(self._neighbourhood.session[place]),
                "neighbour_semantic": float(self._neighbour_semantic[place]),
                "speaker": float(name in self._speakers),
                "date": date_match(self._question.dates, analyzed.candidate.created_at),
            }
        )
        style = self._weighted(features.style(self._question, analyzed))
        parts |= {feature: part * style_share for feature, part in style.items()}
        # Never 0: the index found a term in the text or in a neighbour.
        score = min(1.0, max(round(sum(parts.values()), DECIMALS), _MIN_SCORE))
        return ScoredCandidate(self._question, analyzed, stub, self._neighbourhood, score, parts)

    def _weighted(self, values: Mapping[str, float]) -> dict[str, float]:
        """What the features that are not 0 add to the score."""
        return {name: self._weights[name] * value for name, value in values.items() if value and self._weights[name]}

    def _semantic(self, stub: CandidateStub) -> float:
        """The similarity of the vectors of query and text, not below 0."""
        return max(0.0, self._similarities.get(stub.key, 0.0))

    @cached_property
    def _neighbour_semantic(self) -> NDArray[np.float64]:
        """The same of each stub's most similar neighbour: an answer stands beside its question."""
        if not self._similarities:
            return np.zeros(len(self._neighbourhood.stubs))
        return self._neighbourhood.neighbour_semantic(self._similarities)

    def _is_about_named(self, analyzed: AnalyzedText) -> bool:
        """Whether a person whom the query names says it, or is named in it."""
        return self._is_by_named(analyzed.candidate.name) or not self._named_terms.isdisjoint(analyzed.counts)

    def _is_by_named(self, name: str | None) -> bool:
        """Whether a person whom the query names says it; True for everybody where it names nobody."""
        return not self._speakers or name in self._speakers
