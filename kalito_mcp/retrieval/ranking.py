"""The scores of the candidates: of all by what the index says, then of those that are read by their spelling. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kalito_mcp.domain.records import Role
from kalito_mcp.domain.search import Candidate
from kalito_mcp.ports.search import RecordColumns
from kalito_mcp.retrieval import features
from kalito_mcp.retrieval.filtering import named
from kalito_mcp.retrieval.local_days import local_days
from kalito_mcp.retrieval.matches import Matches
from kalito_mcp.retrieval.neighbourhood import Neighbourhood
from kalito_mcp.retrieval.question import Question, is_question
from kalito_mcp.retrieval.scored_candidate import DECIMALS, ScoredCandidate
from kalito_mcp.retrieval.weights import FeatureWeights
from kalito_mcp.text.analysis import stem, words
from kalito_mcp.text.times.expressions import date_match

_FULL_STYLE_AT: Final = 0.1
"""Share of `FeatureWeights.full` at which the style features count in full. Below it they count proportionally less:
how a thing is said matters only where it is about what is asked."""

_FULL_DATE_TERMS: Final = 6
"""Terms of a query up to which a time that it names counts in full. Among more it is one thing of many, often named by
the way. Right first hits on MemDaily +7 points, R@10 on MADial in Chinese +6 (`python -m bench.elsewhere`)."""

_SHARE_FOR_SEVERAL: Final = 0.7
"""Factor for the `neighbours` and `session` weights where the question asks for several answers: those lie in several
conversations, and most speak for themselves. R@10 +1.1 on LoCoMo's multi-hop questions and on BEAM
(`python -m bench.recall`)."""

_OF_ASSISTANT: Final = 3.0
"""Factor for the `answers` weight where the question asks what the assistant said: then any message of a user asks."""

_ASSISTANT: Final = tuple(Role).index(Role.ASSISTANT)
_UNNAMED: Final = 0
_TOPIC: Final = ("lexical", "neighbours", "hyponym", "semantic")
_STYLE: Final = ("first_person", "assistant")
_MEANING: Final = ("semantic", "neighbour_semantic")
_MIN_SCORE: Final = 0.0001


@lru_cache(maxsize=16_384)
def _words_and_stems(name: str) -> frozenset[str]:
    found = words(name)
    return frozenset(found).union(map(stem, found))


@lru_cache(maxsize=1_024)
def _words(name: str) -> tuple[str, ...]:
    return tuple(words(name))


class Ranker:
    """Scores the candidates at `places`. The similarities to the query's vector are by place."""

    def __init__(
        self,
        records: RecordColumns,
        question: Question,
        matches: Matches,
        places: NDArray[np.int64],
        weights: FeatureWeights,
        similarities: Mapping[int, float],
    ) -> None:
        self._matches = matches
        self._neighbourhood = Neighbourhood(records, matches, places)
        self._records = records
        self._question = question
        self._places = places
        # A corrected form is a stem.
        asked = question.words | question.credit.keys()
        self.speakers: Final = [
            name for name in records.name_list if name is not None and not asked.isdisjoint(_words_and_stems(name))
        ]
        """The names of the speakers whom the question names."""
        share = _SHARE_FOR_SEVERAL if question.asks_several else 1.0
        # What was said at the time comes before what only mentions it.
        date = weights.date * min(1.0, _FULL_DATE_TERMS / max(1, len(question.terms)))
        if question.asks_time_alone:
            date = weights.full
        adapted = replace(weights, neighbours=share * weights.neighbours, session=share * weights.session, date=date)
        self._weights = adapted.per_feature()
        # In a question about a time alone ("what happened in March?") the spelling says nothing.
        self._spelling = 0.0 if question.asks_time_alone else self._weights["spelling"]
        self._full_style = _FULL_STYLE_AT / adapted.full
        self._parts = {
            name: self._weights[name] * values
            for name, values in self._features(similarities).items()
            if self._weights[name]
        }
        self._topic = self._sum(_TOPIC)
        self._style = self._sum(_STYLE)
        self._all_else = self._sum(set(self._parts).difference(_STYLE))
        self._by_words = self._sum(set(self._parts).difference(_STYLE, _MEANING))
        self._parts["answers"] = np.zeros(len(places))

    def order(self) -> NDArray[np.int64]:
        """The candidates by their scores without the spelling, best first; ties newest first."""
        scores = self._scores(np.arange(len(self._places)), 0.0)
        return np.lexsort((-self._places, -scores))

    def rank(self, chosen: NDArray[np.int64], read: Sequence[Candidate]) -> list[ScoredCandidate]:
        """These candidates, each ranked once, with their final scores, in no order. `read` has the record of each."""
        self._add_answers(chosen, read)
        texts = [words(one.text) for one in read]
        names = [_words(one.name) if one.name else () for one in read]
        spelling = np.zeros(len(read))
        if self._spelling:
            spelling = self._spelling * np.array(features.spelling(self._question, texts, names))
        scores, topic_scores = self._scores(chosen, spelling), self._by_words[chosen] + spelling
        return [
            ScoredCandidate(
                question=self._question,
                candidate=candidate,
                text=text,
                scores=self,
                at=int(at),
                score=min(1.0, max(round(float(score), DECIMALS), _MIN_SCORE)),
                topic_score=float(topic_score),
                spelling=float(of_spelling),
            )
            for at, candidate, text, score, topic_score, of_spelling in zip(
                chosen, read, texts, scores, topic_scores, spelling, strict=True
            )
        ]

    def parts(self, at: int, spelling: float) -> dict[str, float]:
        """What each feature adds to the score of a candidate, without those that add nothing."""
        style = self._style_share(self._topic[at] + spelling)
        found = {name: float(values[at] * (style if name in _STYLE else 1.0)) for name, values in self._parts.items()}
        return {name: part for name, part in (found | {"spelling": spelling}).items() if part}

    def terms(self, at: int) -> Sequence[str]:
        """The terms of the question that a candidate contains."""
        return self._matches.terms_in(self._mask(at))

    def neighbour_terms(self, at: int) -> Sequence[str]:
        """The terms that the turns around a candidate contain."""
        return self._matches.terms_in(self._neighbourhood.neighbour_terms(at))

    def has_hyponym(self, at: int) -> bool:
        """Whether a candidate contains a hyponym of a kind that the question names."""
        return self._matches.has_hyponym(self._mask(at))

    def is_alone(self, at: int) -> bool:
        """Whether no other candidate of its session contains a term of the question."""
        return self._neighbourhood.is_alone(at)

    def _mask(self, at: int) -> int:
        return int(self._matches.masks[self._places[at]])

    def _features(self, similarities: Mapping[int, float]) -> dict[str, NDArray[np.float64]]:
        records, places, near = self._records, self._places, self._neighbourhood
        found: dict[str, NDArray[np.float64]] = {
            "lexical": self._matches.lexical[places].astype(float),
            "neighbours": near.neighbours,
            "session": near.session,
            "hyponym": self._matches.hyponym[places].astype(float),
            "first_person": records.is_first_person[places].astype(float),
        }
        if self.speakers:
            is_by_named = np.isin(records.names[places], named(records, {name.casefold() for name in self.speakers}))
            found["speaker"] = is_by_named.astype(float)
            found["hyponym"] = found["hyponym"] * (is_by_named | self._names_speakers())
        if self._question.dates:
            days, of_day = np.unique(local_days(self._question.zone, records.created_at[places]), return_inverse=True)
            dates = self._question.dates
            found["date"] = np.array([date_match(dates, int(day)) for day in days])[of_day]
        if not self._question.asks_assistant:
            is_unnamed_assistant = (records.roles[places] == _ASSISTANT) & (records.names[places] == _UNNAMED)
            found["assistant"] = is_unnamed_assistant.astype(float)
        if similarities:
            found["semantic"], found["neighbour_semantic"] = near.semantic(similarities)
        return found

    def _add_answers(self, chosen: NDArray[np.int64], read: Sequence[Candidate]) -> None:
        """Add the feature of those candidates that follow a question by somebody else which was read with them."""
        records, places = self._records, self._places[chosen]
        of_assistant = self._question.asks_assistant
        asking = {
            place
            for place, one in zip(places.tolist(), read, strict=True)
            if is_question(one.text) or (of_assistant and one.role is Role.USER)
        }
        for at, place, before in zip(chosen, places, records.previous_turns[places].tolist(), strict=True):
            if before in asking and (
                records.names[place] != records.names[before] or records.roles[place] != records.roles[before]
            ):
                part = (
                    self._weights["answers"] * (_OF_ASSISTANT if of_assistant else 1) * float(self._matches.own[before])
                )
                self._parts["answers"][at] = part
                self._all_else[at] += part
                self._by_words[at] += part

    def _names_speakers(self) -> NDArray[np.bool_]:
        """Whether each text names one of the speakers, as far as the question has a term for them."""
        stems = {stem(word) for name in self.speakers for word in words(name)}
        bits = sum(1 << bit for bit, term in enumerate(self._matches.terms) if term in stems)
        found: NDArray[np.bool_] = (self._matches.masks[self._places] & np.uint64(bits)) != 0
        return found

    def _sum(self, names: Sequence[str] | set[str]) -> NDArray[np.float64]:
        # Sorted, because the last bit of a sum depends on the order.
        found = [self._parts[name] for name in sorted(names) if name in self._parts]
        return np.sum(found, axis=0) if found else np.zeros(len(self._places))

    def _style_share(self, topic: "NDArray[np.float64] | float") -> "NDArray[np.float64]":
        return np.minimum(1.0, topic / self._full_style)

    def _scores(self, chosen: NDArray[np.int64], spelling: "NDArray[np.float64] | float") -> NDArray[np.float64]:
        style = self._style[chosen] * self._style_share(self._topic[chosen] + spelling)
        return self._all_else[chosen] + spelling + style
