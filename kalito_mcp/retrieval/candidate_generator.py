"""One search in one view of the store: candidates from the indexes, weighed by their places, read, ranked.

Four generators with bounded work: the text index for the terms, for the instances of kinds and for what a mistyped
word may have meant; the times that are named; the vectors, where there are any; and the turns around the best of these,
as their context.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import Place, Posting, SearchFilters
from kalito_mcp.domain.spelling import similarity
from kalito_mcp.ports.store import ReadView
from kalito_mcp.retrieval.features import inverse_document_frequencies
from kalito_mcp.retrieval.hyponyms import is_listed
from kalito_mcp.retrieval.neighbourhood import REACH, Holdings, Surroundings
from kalito_mcp.retrieval.policy import SearchPolicy
from kalito_mcp.retrieval.question import Question
from kalito_mcp.retrieval.ranking import Ranking, Scored
from kalito_mcp.retrieval.weights import EvidenceWeights

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_MOST_COMMON: Final = 0.95
_ENOUGH_TO_COMPARE: Final = 10
"""Vectors whose mean says what any text has in common with the query."""


_TENTH: Final = 9
"""Its place, counted from 0."""

_MOST_SPANS: Final = 3
_SHORTEST_CORRECTED: Final = 5
"""Letters. A shorter word is one mistake away from too many others: pets from gets."""


class Lookup:
    """Finds the records of a scope that speak of a question. For one search."""

    def __init__(
        self,
        view: ReadView,
        scope: Scope,
        filters: SearchFilters,
        policy: SearchPolicy,
        weights: EvidenceWeights,
        *,
        fingerprint: str = "",
        vector: "NDArray[np.float32] | None" = None,
    ) -> None:
        self._view = view
        self._scope = scope
        self._filters = filters
        self._policy = policy
        self._weights = weights
        self._fingerprint = fingerprint
        self._vector = vector
        self._seen: set[int] = set()
        self.candidates = 0
        """How many texts were read, and `left_out`, how many of them have an excluded word."""
        self.left_out = 0
        self.note: str | None = None
        """What was asked for and given up; None where nothing was."""

    async def tiers(self, question: Question) -> AsyncIterator[Sequence[Scored]]:
        """The hits, a tier after the other: what comes later never moves what an earlier one has shown."""
        question, postings = await self._postings(question)
        dated = await self._dated(question)
        nearest = [*await self._nearest(), *dated]
        newest_key = max((posting.keys[0] for posting in postings if posting.keys), default=None)
        if newest_key is None and not nearest:
            return
        # Terms that nothing holds count in the mass: a hit on one word of five is worth a fifth.
        record_count = await self._view.text.record_count(self._scope)
        weights = inverse_document_frequencies(postings[: len(question.terms)], record_count, newest_key or 1)
        postings = await self._reaching_back(question, postings)
        holdings = Holdings(postings, [weights[term] for term in (*question.terms, *question.kinds)])
        keys = islice(holdings.by_weight(), max(self._policy.filtered_candidates, self._policy.candidates))
        asks_phrase, is_first = bool(question.query.phrases), True
        while places := await self._places(keys, nearest):
            surroundings = Surroundings(holdings, len(question.terms), places)
            ranking = Ranking(
                question, weights, surroundings, self._weights, await self._likeness(places), frozenset(dated)
            )
            promising = ranking.by_promise()
            keys_of_it = [key for _, key in promising]
            # A phrase may be in any of them.
            first = len(promising) if asks_phrase else self._worth_reading(promising)
            for chosen in filter(None, (keys_of_it[:first], keys_of_it[first:])):
                candidates = await self._view.records.candidates(self._scope, chosen, self._filters)
                found = [one for one in candidates if not question.query.is_excluded(one.text)]
                self.candidates += len(candidates)
                self.left_out += len(candidates) - len(found)
                having = [one for one in found if question.query.phrase_match(one.text)] if asks_phrase else found
                # A phrase that none of the most promising texts has was quoted from memory: then its words count.
                if asks_phrase and is_first and not any(question.query.phrase_match(one.text) for one in candidates):
                    asks_phrase, self.note = False, "no record has the words in quotes as they stand: searched for each"
                is_first = False
                yield ranking.ranked(having if asks_phrase else found)

    def _worth_reading(self, promising: Sequence[tuple[float, int]]) -> int:
        """How many of these are compared first: those that promise nearly as much as the tenth."""
        tenth, _ = promising[min(_TENTH, len(promising) - 1)] if promising else (0.0, 0)
        share = self._policy.worth_reading if self._vector is None else self._policy.worth_reading_by_meaning
        near = sum(promise >= share * tenth for promise, _ in promising)
        return max(self._policy.read, near)

    async def _postings(self, question: Question) -> tuple[Question, Sequence[Posting]]:
        """The postings of the terms, then those of the kinds; and the question, terms that nothing holds corrected."""
        postings = list(await self._held_by(_looked_up(question)))
        unknown = {
            question.written[term]: term
            for term, posting in zip(question.terms, postings, strict=False)
            if not posting.keys and _may_be_mistyped(question.written[term])
        }
        if not unknown or not postings:
            return question, postings
        similar = await self._view.text.similar_terms(self._scope, list(unknown), limit=1)
        if not similar:
            return question, postings
        meant = {unknown[word]: (found[0][0], similarity(word, found[0][0])) for word, found in similar.items()}
        question = question.corrected(meant)
        for term, posting in zip(
            meant, await self._held_by([question.alternatives[term] for term in meant]), strict=True
        ):
            postings[question.terms.index(term)] = posting
        return question, postings

    async def _reaching_back(self, question: Question, postings: Sequence[Posting]) -> Sequence[Posting]:
        """Where only what is older may be a hit: the postings that were cut, with the newest records of that time."""
        until, cut = self._filters.until, [place for place, one in enumerate(postings) if not one.is_complete]
        if until is None or not cut:
            return postings
        last = await self._view.records.last_key(self._scope, until)
        if last is None:
            return postings
        asked = _looked_up(question)
        older = await self._held_by([asked[place] for place in cut], up_to=last)
        found = list(postings)
        for place, one in zip(cut, older, strict=True):
            keys = sorted({*found[place].keys, *one.keys}, reverse=True)
            found[place] = replace(found[place], keys=tuple(keys))
        return found

    async def _held_by(self, asked: Sequence[tuple[str, ...]], *, up_to: int | None = None) -> Sequence[Posting]:
        cap = max(1, self._policy.postings // max(1, len(asked)))
        return await self._view.text.postings(self._scope, asked, types=self._filters.types, cap=cap, up_to=up_to)

    async def _nearest(self) -> list[int]:
        if self._vector is None:
            return []
        found = await self._view.vectors.nearest(self._scope, self._fingerprint, self._vector, k=self._policy.nearest)
        return [key for key, _ in found]

    async def _dated(self, question: Question) -> list[int]:
        """The newest records of the times that are named."""
        found: list[int] = []
        for span in question.spans[:_MOST_SPANS]:
            found += await self._view.records.dated(self._scope, span, limit=self._policy.nearest)
        return found

    async def _likeness(self, places: Sequence[Place]) -> Mapping[int, float]:
        if self._vector is None:
            return {}
        keys = [place.key for place in places]
        found = await self._view.vectors.similarities(self._fingerprint, self._vector, keys)
        # What most records have in common with any query says nothing: 0.1 by one embedder, 0.8 by another.
        common = min(sum(found.values()) / len(found), _MOST_COMMON) if len(found) >= _ENOUGH_TO_COMPARE else 0.0
        return {key: (cosine - common) / (1 - common) for key, cosine in found.items()}

    async def _places(self, keys: "islice[int]", nearest: list[int]) -> Sequence[Place]:
        """The next places to weigh, those around the best of them included; empty when there are no more.

        Where a filter admits few, more are looked at for as many. `nearest` is used up by the first call.
        """
        size = self._policy.candidates if self._filters == SearchFilters() else self._policy.chunk
        places: list[Place] = []
        admitted = 0
        while admitted < self._policy.candidates:
            part = list(dict.fromkeys([*islice(keys, size), *nearest]))
            if not part:
                break
            centres = [*part[: self._policy.surrounded], *nearest[: self._policy.surrounded]]
            nearest.clear()
            for place in await self._view.records.places(
                self._scope, part, centres, reach=REACH, filters=self._filters
            ):
                if place.key not in self._seen:
                    self._seen.add(place.key)
                    places.append(place)
                    admitted += place.is_admitted
        return places


def _looked_up(question: Question) -> list[tuple[str, ...]]:
    """What the text index is asked for: each term's alternatives, then each kind's instances."""
    terms = [question.alternatives[term] for term in question.terms]
    return terms + [tuple(members) for members in question.kinds.values()]


def _may_be_mistyped(word: str) -> bool:
    return len(word) >= _SHORTEST_CORRECTED and not is_listed(word)
