"""Candidate generation: finds and scores the records worth reading. One search on one index.

Three sources: the words of the question and of its other wordings (`bm25f`), the times that it names, and the vectors
if there are any. Nothing is left out for its age. The scores of at most `SearchPolicy.candidates` of each are compared.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.search import Candidate, SearchFilters
from kalito_mcp.ports.embedder import Unrelated
from kalito_mcp.ports.search import SearchIndex
from kalito_mcp.retrieval.bm25f import Bm25F
from kalito_mcp.retrieval.corrections import corrected
from kalito_mcp.retrieval.filtering import in_scope, is_admitted
from kalito_mcp.retrieval.policy import SearchPolicy
from kalito_mcp.retrieval.question import Question
from kalito_mcp.retrieval.ranking import Scores, Similarities
from kalito_mcp.retrieval.scored_candidate import ScoredCandidate, shown_score
from kalito_mcp.retrieval.word_forms import prefixes_of, word_forms
from kalito_mcp.text.languages import ENGLISH, UNKNOWN

_ENGLISH_ALONE: Final = ("the", "and", "of", "with", "our", "are", "was", "my", "you", "this", "that")
_ENGLISH_SHARE: Final = 0.25
_LEAST_SPREAD: Final = 0.02
_MAX_SPANS: Final = 3
_MOST: Final = 0.5
_SAMPLE: Final = 4_096
_SAMPLE_MARGIN: Final = 16
_RETOLD: Final = [tuple(RecordType).index(one) for one in (RecordType.PIN, RecordType.SUMMARY)]
"""Types of records that repeat what was said at another time."""


class CandidateGenerator:
    """Finds the candidates of one search. Built on the thread of the index."""

    def __init__(
        self,
        index: SearchIndex,
        question: Question,
        filters: SearchFilters,
        policy: SearchPolicy,
        *,
        has_vectors: bool = False,
        is_explained: bool = False,
    ) -> None:
        self._index = index
        self._policy = policy
        self._records = index.records
        self._question = self._looked_up(question)
        self._in_scope = in_scope(index, filters)
        shares = _shares(self._question, has_vectors=has_vectors)
        self._bm25f = Bm25F(index, self._in_scope, self._question, shares)
        self._filters = filters
        self._is_explained = is_explained
        self._places = self._best()
        self.read_count = 0
        """How many texts were read."""
        self.excluded_count = 0
        """How many of them contain an excluded word."""
        self.note: str | None = None
        """Which part of the query was given up, in words for the user; None if nothing was."""

    @property
    def admissible_keys(self) -> NDArray[np.int64] | None:
        """The keys of the records that may be hits, ascending; None if these are most of them."""
        places = self._admitted(np.flatnonzero(self._in_scope))
        return self._index.keys(places) if len(places) < _MOST * self._records.count else None

    def add_nearest(self, keys: Sequence[int]) -> None:
        """Add the records with these keys to the candidates, if they may be hits."""
        places = self._index.places_of_keys(keys)
        self._places = np.union1d(self._places, self._admitted(places[self._in_scope[places]]))

    @property
    def compared_keys(self) -> list[int]:
        """The keys of the records whose similarities count: the candidates, and the turns next to them."""
        records, places = self._records, self._places
        beside = np.concatenate([records.previous_turns[places], records.next_turns[places]])
        known = beside[(beside >= 0) & (beside < records.count)]
        found: list[int] = self._index.keys(np.union1d(places, known)).tolist()
        return found

    def similarities(self, cosines: Mapping[int, float], unrelated: Unrelated | None) -> Similarities:
        """The similarities of records, given their cosines by key. If those of unrelated texts are unknown, the
        records' own are used."""
        places = self._index.places_of_keys(list(cosines))
        found = np.fromiter(cosines.values(), np.float32, len(cosines))
        if unrelated is None:
            unrelated = Unrelated(float(found.mean()), max(float(found.std()), _LEAST_SPREAD))
        return Similarities(places, found, unrelated)

    def batches(self, similarities: Similarities | None) -> Iterator[list[ScoredCandidate]]:
        """The scored candidates in batches, best first."""
        if not len(self._places):
            return
        scores = Scores(self._records, self._question, self._bm25f, self._places, similarities)
        order = iter(scores.order().tolist())
        has_phrase = bool(self._question.query.phrases)
        while chosen := list(islice(order, self._policy.phrase_texts if has_phrase else self._policy.read)):
            batch = self._read(chosen)
            if has_phrase:
                matching = [(at, one) for at, one in batch if self._question.query.has_phrases(one.text)]
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
            yield [
                ScoredCandidate(
                    self._question,
                    one,
                    shown_score(float(scores.values[at])),
                    scores.parts(at),
                    self._nearby(at) if self._is_explained else (),
                )
                for at, one in kept
            ]

    def _nearby(self, at: int) -> tuple[str, ...]:
        """The terms that only the turns around a candidate have."""
        place = self._places[at]
        around = [links[place] for links in (self._records.previous_turns, self._records.next_turns)]
        turns = np.array([one for one in around if 0 <= one < self._records.count], np.int64)
        if not len(turns):
            return ()
        return tuple(
            term
            for term in self._question.terms
            if not self._bm25f.has(term, self._places[at : at + 1])[0] and self._bm25f.has(term, turns).any()
        )

    def _read(self, chosen: Sequence[int]) -> list[tuple[int, Candidate]]:
        """The records of these candidates, with their texts."""
        places = self._places[chosen]
        found = self._index.candidates(places)
        self.read_count += len(found)
        return [(at, found[place]) for at, place in zip(chosen, places.tolist(), strict=True) if place in found]

    def _best(self) -> NDArray[np.int64]:
        """The places of the records that match best by words, or are of a named time."""
        found = self._admitted(self._bm25f.places)
        if len(found) > self._policy.candidates:
            found = found[highest(self._bm25f.shares(found), self._policy.candidates)]
        return np.union1d(found, self._of_named_times())

    def _admitted(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The places whose records the filters admit."""
        return places if self._filters == SearchFilters() else places[is_admitted(self._index, places, self._filters)]

    def _of_named_times(self) -> NDArray[np.int64]:
        """The places of the newest records of the times that the query names."""
        created_at, is_first_hand = self._records.created_at, ~np.isin(self._records.types, _RETOLD)
        found = [np.empty(0, np.int64)]
        for span in self._question.spans[:_MAX_SPANS]:
            is_then = (created_at >= span.first) & (created_at <= span.last)
            of_span = self._admitted(np.flatnonzero(is_then & is_first_hand & self._in_scope))
            found.append(of_span[-self._policy.nearest :])
        return np.concatenate(found)

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
        said = self._index.places(_ENGLISH_ALONE).values()
        return len(np.unique(np.concatenate(list(said)))) >= _ENGLISH_SHARE * self._records.count

    def _missing(self, question: Question) -> list[str]:
        """The terms that no record contains in any of their forms."""
        found = self._index.places(frozenset().union(*(question.forms[term] for term in question.terms)))
        return [term for term in question.terms if not any(len(found[form]) for form in question.forms[term])]

    def _with_word_forms(self, question: Question, terms: Sequence[str]) -> Question:
        """The question with the other forms of these terms that the index has."""
        is_known = question.language not in {ENGLISH, UNKNOWN}
        found = self._index.terms_with_prefixes(prefixes_of(terms, is_known=is_known))
        return question.with_word_forms(word_forms(terms, found, is_known=is_known))


def _shares(question: Question, *, has_vectors: bool) -> list[float]:
    """The weight of each wording: the same, but without vectors the query counts as much as all others together."""
    others = len(question.wordings) - 1
    if not others or has_vectors:
        return [1 / (others + 1)] * (others + 1)
    return [0.5, *[0.5 / others] * others]


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
