"""Candidate generation: the records that may be hits, scored, the best read first. One search on one index.

Four sources: the text index (for the terms, for hyponyms and for corrections of mistyped words), the times that the
query names, and the vectors if there are any. Nothing is left out for its age. The scores of at most
`SearchPolicy.candidates` are compared: of those records that match best by their own words.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.search import Candidate, SearchFilters
from kalito_mcp.ports.search import SearchIndex
from kalito_mcp.retrieval.corrections import corrected
from kalito_mcp.retrieval.filtering import in_scope, is_admitted
from kalito_mcp.retrieval.matches import Matches
from kalito_mcp.retrieval.neighbourhood import HALVING_WORDS
from kalito_mcp.retrieval.policy import SearchPolicy
from kalito_mcp.retrieval.question import Question
from kalito_mcp.retrieval.ranking import Ranker
from kalito_mcp.retrieval.scored_candidate import ScoredCandidate
from kalito_mcp.retrieval.translations import translated
from kalito_mcp.retrieval.weights import FeatureWeights
from kalito_mcp.retrieval.word_forms import prefixes_of, word_forms
from kalito_mcp.text.languages import ENGLISH, UNKNOWN

_MAX_BASELINE: Final = 0.95
_MIN_FOR_BASELINE: Final = 10
"""Vectors needed to say how similar any text is to the query."""

_ENGLISH_ALONE: Final = ("the", "and", "of", "with", "our", "are", "was", "my", "you", "this", "that")
_ENGLISH_SHARE: Final = 0.25
_MAX_SPANS: Final = 3
_SAMPLE: Final = 4_096
_SAMPLE_MARGIN: Final = 16
_RETOLD: Final = [tuple(RecordType).index(one) for one in (RecordType.PIN, RecordType.SUMMARY)]
"""Types of records that repeat what was said at another time."""


class CandidateGenerator:
    """Finds the candidates of one search. Built on the thread of the index; `nearest` are the keys of the records with
    the most similar vectors."""

    def __init__(
        self,
        index: SearchIndex,
        question: Question,
        filters: SearchFilters,
        policy: SearchPolicy,
        weights: FeatureWeights,
        nearest: Sequence[int] = (),
    ) -> None:
        self._index = index
        self._policy = policy
        self._weights = weights
        self._records = index.records
        self._question = translated(self._looked_up(question), index)
        self._in_scope = in_scope(index, filters)
        self._matches = Matches(index, self._in_scope, self._question)
        self._filters = filters
        self._dated = self._of_named_times()
        self._places = self._best(self._known(nearest))
        self.read_count = 0
        """How many texts were read."""
        self.excluded_count = 0
        """How many of them contain an excluded word."""
        self.note: str | None = None
        """Which part of the query was given up, in words for the user; None if nothing was."""

    @property
    def compared_keys(self) -> list[int]:
        """The keys of the records whose similarities count: the candidates, and the turns next to them."""
        records, places = self._records, self._places
        beside = np.concatenate([records.previous_turns[places], records.next_turns[places]])
        known = beside[(beside >= 0) & (beside < records.count)]
        found: list[int] = records.keys[np.union1d(places, known)].tolist()
        return found

    def batches(self, similarities: Mapping[int, float]) -> Iterator[list[ScoredCandidate]]:
        """The scored candidates in batches; a later batch never changes the order of an earlier one. `similarities` are
        the cosines of the query's vector with those of `compared_keys`, by key."""
        by_place = self._by_place(similarities)
        places = self._places[self._may_be_hit(by_place)]
        if not len(places):
            return
        ranker = Ranker(self._records, self._question, self._matches, places, self._weights, by_place)
        order = iter(ranker.order().tolist())
        has_phrase = bool(self._question.query.phrases)
        while chosen := list(islice(order, self._policy.phrase_texts if has_phrase else self._policy.read)):
            batch = self._read(chosen, places)
            if has_phrase:
                matching = [(at, one) for at, one in batch if self._question.query.phrase_match(one.text)]
                # If no text contains the phrase, it was quoted from memory: then its words count.
                has_phrase = bool(matching)
                if has_phrase:
                    batch = matching
                else:
                    self.note = "no record contains the quoted phrase; searched for its words instead"
                    order = chain(chosen[self._policy.read :], order)
                    first = frozenset(chosen[: self._policy.read])
                    batch = [(at, one) for at, one in batch if at in first]
            kept = [(at, one) for at, one in batch if not self._question.query.is_excluded(one.text)]
            self.excluded_count += len(batch) - len(kept)
            yield ranker.rank(np.array([at for at, _ in kept], np.int64), [one for _, one in kept])

    def _may_be_hit(self, similarities: Mapping[int, float]) -> NDArray[np.bool_]:
        """Which candidates contain something of the question, were said at its time, or are similar to it.

        A record that contains nothing of the query is no hit, whatever its neighbours say: such hits would gain 0.2
        points on LoCoMo, and nobody would understand them.
        """
        is_similar = [similarities.get(place, 0.0) > 0 for place in self._places.tolist()] if similarities else False
        found: NDArray[np.bool_] = (
            (self._matches.masks[self._places] != 0) | np.isin(self._places, self._dated) | is_similar
        )
        return found

    def _read(self, chosen: Sequence[int], places: NDArray[np.int64]) -> list[tuple[int, Candidate]]:
        """The records of these candidates, with their texts."""
        keys = self._records.keys[places[chosen]].tolist()
        found = {one.key: one for one in self._index.candidates(keys)}
        self.read_count += len(found)
        return [(at, found[key]) for at, key in zip(chosen, keys, strict=True) if key in found]

    def _best(self, nearest: NDArray[np.int64]) -> NDArray[np.int64]:
        """The places of the candidates: those that match best by their own words, of a named time, or nearest."""
        found = self._admitted(self._matches.places)
        if len(found) > self._policy.candidates:
            found = found[highest(self._promise(found), self._policy.candidates)]
        return np.union1d(found, np.concatenate([self._dated, self._admitted(nearest)]))

    def _promise(self, places: NDArray[np.int64]) -> NDArray[np.float32]:
        """The score of each of these records by its own words, without its session and the turns around it."""
        matches, weights = self._matches, self._weights
        found = np.float32(weights.lexical) * matches.lexical[places]
        found += np.float32(weights.hyponym) * matches.hyponym[places]
        damped = self._records.word_counts[places].astype(np.float32)
        damped *= np.float32(1 / HALVING_WORDS)
        damped += np.float32(1)
        found += np.float32(weights.neighbours) * matches.own[places] / damped
        return found

    def _admitted(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of the places whose records the filters admit."""
        return places if self._filters == SearchFilters() else places[is_admitted(self._records, places, self._filters)]

    def _known(self, keys: Sequence[int]) -> NDArray[np.int64]:
        """The places in scope of the records with these keys."""
        wanted = np.array(keys, np.int64)
        places = np.searchsorted(self._records.keys, wanted)
        places, wanted = places[places < self._records.count], wanted[places < self._records.count]
        known: NDArray[np.int64] = places[(self._records.keys[places] == wanted) & self._in_scope[places]]
        return known

    def _of_named_times(self) -> NDArray[np.int64]:
        """The places of the newest records of the times that the query names."""
        created_at, is_first_hand = self._records.created_at, ~np.isin(self._records.types, _RETOLD)
        found = [np.empty(0, np.int64)]
        for span in self._question.spans[:_MAX_SPANS]:
            is_then = (created_at >= span.first) & (created_at <= span.last)
            of_span = self._admitted(np.flatnonzero(is_then & is_first_hand & self._in_scope))
            found.append(of_span[-self._policy.nearest :])
        return np.concatenate(found)

    def _by_place(self, similarities: Mapping[int, float]) -> dict[int, float]:
        """The similarity of each record to the query above the mean of all, by place."""
        if not similarities:
            return {}
        # Unrelated texts have a cosine of 0.1 by one embedder and of 0.8 by another.
        has_baseline = len(similarities) >= _MIN_FOR_BASELINE
        baseline = min(sum(similarities.values()) / len(similarities), _MAX_BASELINE) if has_baseline else 0.0
        places = np.searchsorted(self._records.keys, list(similarities)).tolist()
        return {
            place: (cosine - baseline) / (1 - baseline)
            for place, cosine in zip(places, similarities.values(), strict=True)
        }

    def _looked_up(self, question: Question) -> Question:
        """The question with the forms that its terms are looked up as.

        A name of several words that no record has is looked up by its words. In another language than English the forms
        are the words with the same beginning. A term without a record gets its correction. If the question may be in an
        unknown language and the memory is not in English, such a term gets the words with its beginning too. If there
        is one, the language is not English.
        """
        if question.divided:
            question = question.with_divided(self._missing(question))
        if question.language != ENGLISH:
            question = self._with_word_forms(question, question.terms)
        question = corrected(question, self._missing(question), self._index)
        missing = self._missing(question)
        if missing and question.may_be_unknown_language and not self._is_in_english(question):
            formed = self._with_word_forms(question, missing)
            if formed.forms != question.forms:
                return replace(formed, language=UNKNOWN)
        return question

    def _is_in_english(self, question: Question) -> bool:
        """Whether a word of English alone is in a quarter of the records, and the query may be English."""
        if not question.query.words.isascii():
            return False
        said = [self._index.places(word) for word in _ENGLISH_ALONE]
        return len(np.unique(np.concatenate(said))) >= _ENGLISH_SHARE * self._records.count

    def _missing(self, question: Question) -> list[str]:
        """The terms that no record contains in any of their forms."""
        return [
            term for term in question.terms if not any(len(self._index.places(form)) for form in question.forms[term])
        ]

    def _with_word_forms(self, question: Question, terms: Sequence[str]) -> Question:
        """The question with the other forms of these terms that the index has."""
        is_known = question.language not in {ENGLISH, UNKNOWN}
        found = self._index.terms_with_prefixes(prefixes_of(terms, is_known=is_known))
        return question.with_word_forms(word_forms(terms, found, is_known=is_known))


def highest(values: NDArray[np.float32], count: int) -> NDArray[np.int64]:
    """The positions of the `count` highest values, in no order; of equal ones (to 1e-9) the last."""
    likely = np.arange(len(values))
    if (step := len(values) // _SAMPLE) > 1:
        # Most values are too low. A sample says how low a value may be, so that few are left to compare.
        sample = np.sort(values[::step])
        enough = np.flatnonzero(values >= sample[max(0, len(sample) - 2 * count // step - _SAMPLE_MARGIN)])
        likely = enough if len(enough) >= count else likely
    compared = values[likely].astype(float) + np.arange(len(likely)) * 1e-15
    found: NDArray[np.int64] = likely[np.argpartition(compared, -count)[-count:]]
    return found
