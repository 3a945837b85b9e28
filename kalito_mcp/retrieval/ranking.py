"""The order of records: by promise before their texts are read, by evidence after. Pure."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Final

from kalito_mcp.domain.analysis import stem, words
from kalito_mcp.domain.search import Candidate, Place
from kalito_mcp.domain.time_words import date_match
from kalito_mcp.retrieval import features
from kalito_mcp.retrieval.features import Reading
from kalito_mcp.retrieval.neighbourhood import Surroundings
from kalito_mcp.retrieval.question import Question
from kalito_mcp.retrieval.weights import EvidenceWeights

DECIMALS: Final = 4
"""Of a score."""

_ENOUGH: Final = 0.1
"""Of the weights' sum: how a thing is said matters only where it is about what is asked, and in full from here."""

_SHARE_FOR_SEVERAL: Final = 0.7
"""Of the weight of what is said around, where several answers are asked for: they lie in several conversations, and
most speak for themselves. What else counts, counts the more by as much. R@10 +1.1 on LoCoMo's multi-hop questions and
on BEAM (own measurements)."""

_NEAR_IN_TIME: Final = 0.2
_LEAST_SCORE: Final = 0.0001


@dataclass(slots=True)
class Scored:
    """A candidate as it was read for a question, with the sum of its evidence and that sum's parts, by feature; age
    then takes some of the sum."""

    question: Question
    reading: Reading
    place: Place
    surroundings: Surroundings
    score: float
    parts: Mapping[str, float]

    @property
    def candidate(self) -> Candidate:
        """The candidate itself."""
        return self.reading.candidate

    @property
    def is_of_the_time(self) -> bool:
        """Whether it was said in or near the time that the query names; only in the same year is neither."""
        return date_match(self.question.dates, self.candidate.created_at) >= _NEAR_IN_TIME

    @property
    def near(self) -> tuple[str, ...]:
        """The terms of the turns around it that it has not itself."""
        terms, around = self.question.terms, self.surroundings.around(self.place)
        held = self.reading.counts
        return tuple(term for bit, term in enumerate(terms) if around >> bit & 1 and term not in held)


class Ranking:
    """Orders the places of one search, and the candidates at them."""

    def __init__(
        self,
        question: Question,
        term_weights: Mapping[str, float],
        surroundings: Surroundings,
        weights: EvidenceWeights,
        likeness: Mapping[int, float],
        dated: Set[int] = frozenset(),
    ) -> None:
        self._question = question
        self._term_weights = term_weights
        self._mass = sum(term_weights[term] for term in question.terms) or 1.0
        self._surroundings = surroundings
        self._places = {place.key: place for place in surroundings.places}
        self._likeness = likeness
        self._dated = dated
        self._promised = weights.worth()
        share = _SHARE_FOR_SEVERAL if question.asks_several else 1.0
        # What was said then comes before what only says a word of it.
        date = weights.own + weights.context if question.asks_time_alone else weights.date
        told = replace(weights, context=share * weights.context, session=share * weights.session, date=date)
        self._worth = told.worth()
        self._enough = _ENOUGH / told.full
        self._speakers = {
            name
            for name in {place.name for place in surroundings.places if place.name}
            if not question.spoken.isdisjoint(words(name))
        }
        self._asked_names = {stem(word) for name in self._speakers for word in words(name)}

    def by_promise(self) -> list[tuple[float, int]]:
        """What the places that may be hits promise, and their keys, the best first; equal ones newest first.

        Without any of what is asked for in it, a record is no hit, whatever is said around it: that would find 0.2
        points more on LoCoMo, and show what nobody understands. By its meaning, or said when the query says, it is one.
        """
        promise = [
            (self._promise(place), place.key)
            for place in self._surroundings.places
            if place.is_admitted and self._is_spoken_of(place)
        ]
        return sorted(promise, reverse=True)

    def ranked(self, candidates: Sequence[Candidate]) -> list[Scored]:
        """The candidates with their evidence, in no order."""
        readings = features.readings(self._question, candidates)
        # The letters of a question about a time alone say nothing: what happened in March?
        is_spelled = self._worth["spelling"] and not self._question.asks_time_alone
        spelled = features.spelling(self._question, readings) if is_spelled else [0.0] * len(readings)
        return [self._scored(read, alike) for read, alike in zip(readings, spelled, strict=True)]

    def _is_spoken_of(self, place: Place) -> bool:
        return self._surroundings.holds(place) or self._meaning(place) > 0 or place.key in self._dated

    def _promise(self, place: Place) -> float:
        look, worth = self._surroundings, self._promised
        return (
            worth["own"] * look.own(place)
            + worth["context"] * look.context(place)
            + worth["session"] * look.session(place)
            + worth["kind"] * look.kind(place) * self._is_from_the_asked(place.name)
            + worth["speaker"] * (place.name in self._speakers)
            + worth["meaning"] * self._meaning(place)
            + worth["gist"] * self._gist(place)
        )

    def _scored(self, read: Reading, alike: float) -> Scored:
        name = read.candidate.name
        place = self._places[read.candidate.key]
        topic = {
            "own": features.own(read, self._term_weights, self._mass),
            "context": self._surroundings.context(place, len(read.words)),
            "spelling": alike,
            "kind": features.kind(read, self._term_weights, self._mass) * self._is_of_the_asked(read),
            "meaning": self._meaning(place),
        }
        parts = self._parts(topic)
        about = min(1.0, sum(parts.values()) / self._enough)
        parts |= self._parts(
            {
                "session": self._surroundings.session(place),
                "gist": self._gist(place),
                "speaker": float(name in self._speakers),
                **features.setting(self._question, read),
            }
        )
        manner = self._parts(features.manner(self._question, read))
        parts |= {feature: part * about for feature, part in manner.items()}
        # Never down to nothing: the index knows that the text, or one beside it, holds a term.
        score = min(1.0, max(round(sum(parts.values()), DECIMALS), _LEAST_SCORE))
        return Scored(self._question, read, place, self._surroundings, score, parts)

    def _parts(self, features: Mapping[str, float]) -> dict[str, float]:
        """What those that are not 0 add to the score."""
        return {name: self._worth[name] * value for name, value in features.items() if value and self._worth[name]}

    def _meaning(self, place: Place) -> float:
        """How alike the vectors of the query and the text are, as far as that says anything."""
        return max(0.0, self._likeness.get(place.key, 0.0))

    def _gist(self, place: Place) -> float:
        """The same of the turn around it that is most alike: an answer stands beside its question."""
        return self._surroundings.most_around(place, self._likeness) if self._likeness else 0.0

    def _is_of_the_asked(self, read: Reading) -> bool:
        """Whether whom the query names says it, or is named in it."""
        return self._is_from_the_asked(read.candidate.name) or not self._asked_names.isdisjoint(read.counts)

    def _is_from_the_asked(self, name: str | None) -> bool:
        """Whether the words are those of the person whom the query names; anybody's where it names nobody."""
        return not self._speakers or name in self._speakers
