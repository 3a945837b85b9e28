"""Candidate generation: the records that may be hits, in batches, scored. One search in one view of the store.

Four sources, each with bounded work: the text index (for the terms, for hyponyms and for corrections of mistyped
words), the times that the query names, the vectors if there are any, and the turns around the best of these.
"""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import CandidateStub, Posting, SearchFilters
from kalito_mcp.ports.store import ReadView
from kalito_mcp.retrieval.features import inverse_document_frequencies
from kalito_mcp.retrieval.hyponyms import is_listed
from kalito_mcp.retrieval.neighbourhood import REACH, Neighbourhood
from kalito_mcp.retrieval.policy import SearchPolicy
from kalito_mcp.retrieval.question import Question
from kalito_mcp.retrieval.ranking import Ranker
from kalito_mcp.retrieval.scored_candidate import ScoredCandidate
from kalito_mcp.retrieval.term_masks import TermMasks
from kalito_mcp.retrieval.weights import FeatureWeights
from kalito_mcp.retrieval.word_forms import prefixes_of, word_forms
from kalito_mcp.text.languages import ENGLISH, UNKNOWN
from kalito_mcp.text.spelling import similarity

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_MAX_BASELINE: Final = 0.95
_MIN_FOR_BASELINE: Final = 10
"""Vectors needed to say how similar any text is to the query."""

_TENTH: Final = 9
"""Its index, from 0."""

_MAX_SPANS: Final = 3
_MIN_CORRECTED_LETTERS: Final = 5
"""A shorter word is one mistake away from too many others: pets from gets."""


class CandidateGenerator:
    """Finds the candidates of one search in a scope."""

    def __init__(
        self,
        view: ReadView,
        scope: Scope,
        filters: SearchFilters,
        policy: SearchPolicy,
        weights: FeatureWeights,
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
        self.read_count = 0
        """How many texts were read."""
        self.excluded_count = 0
        """How many of them contain an excluded word."""
        self.note: str | None = None
        """Which part of the query was given up, in words for the user; None if nothing was."""

    async def batches(self, question: Question) -> AsyncIterator[Sequence[ScoredCandidate]]:
        """The scored candidates in batches; a later batch never changes the order of an earlier one."""
        if question.language != ENGLISH:
            question = await self._with_word_forms(question, question.terms)
        question, postings = await self._postings(question)
        dated = await self._dated(question)
        extra = [*await self._nearest(), *dated]
        newest_key = max((posting.keys[0] for posting in postings if posting.keys), default=None)
        if newest_key is None and not extra:
            return
        # Terms without a record count in the sum of weights: a hit on one word of five gets a fifth.
        record_count = await self._view.text.record_count(self._scope)
        weights = inverse_document_frequencies(postings[: len(question.terms)], record_count, newest_key or 1)
        postings = await self._with_older(question, postings)
        term_masks = TermMasks(postings, [weights[term] for term in (*question.terms, *question.hyponyms)])
        keys = term_masks.heaviest(max(self._policy.filtered_candidates, self._policy.candidates))
        requires_phrase, is_first = bool(question.query.phrases), True
        while stubs := await self._next_stubs(keys, extra):
            neighbourhood = Neighbourhood(term_masks, len(question.terms), stubs)
            ranker = Ranker(
                question, weights, neighbourhood, self._weights, await self._similarities(stubs), frozenset(dated)
            )
            ordered = ranker.by_first_stage_score()
            ordered_keys = [key for _, key in ordered]
            # Any of them may contain the phrase.
            first = len(ordered) if requires_phrase else self._worth_reading(ordered)
            for chosen in filter(None, (ordered_keys[:first], ordered_keys[first:])):
                candidates = await self._view.search.candidates(self._scope, chosen, self._filters)
                kept = [one for one in candidates if not question.query.is_excluded(one.text)]
                self.read_count += len(candidates)
                self.excluded_count += len(candidates) - len(kept)
                matching = [one for one in kept if question.query.phrase_match(one.text)] if requires_phrase else kept
                # If none of the best texts contains the phrase, it was quoted from memory: then its words count.
                if (
                    requires_phrase
                    and is_first
                    and not any(question.query.phrase_match(one.text) for one in candidates)
                ):
                    requires_phrase = False
                    self.note = "no record contains the quoted phrase; searched for its words instead"
                is_first = False
                yield ranker.rank(matching if requires_phrase else kept)

    def _worth_reading(self, ordered: Sequence[tuple[float, int]]) -> int:
        """How many of these texts to read first: those whose first-stage score comes close to the tenth's."""
        tenth, _ = ordered[min(_TENTH, len(ordered) - 1)] if ordered else (0.0, 0)
        share = self._policy.worth_reading if self._vector is None else self._policy.worth_reading_by_meaning
        close = sum(score >= share * tenth for score, _ in ordered)
        return max(self._policy.read, min(close, self._policy.most_read))

    async def _with_word_forms(self, question: Question, terms: Sequence[str]) -> Question:
        """The question with the other forms of these terms that the index has."""
        is_known = question.language not in {ENGLISH, UNKNOWN}
        found = await self._view.text.terms_with_prefixes(self._scope, prefixes_of(terms, is_known=is_known))
        return question.with_word_forms(word_forms(terms, found, is_known=is_known))

    async def _postings(self, question: Question) -> tuple[Question, Sequence[Posting]]:
        """The question with other forms of terms without a record, and the postings of its terms, then of its kinds.

        The forms are corrections. If the question may be in an unknown language, and nothing is like a term, they are
        the words with its beginning. If there is one, the language is not English.
        """
        question, postings = await self._corrected_postings(question)
        missing = [term for term, posting in zip(question.terms, postings, strict=False) if not posting.keys]
        if not missing or not question.may_be_unknown_language:
            return question, postings
        formed = await self._with_word_forms(question, missing)
        if formed.forms == question.forms:
            return question, postings
        formed = replace(formed, language=UNKNOWN)
        return formed, await self._read_postings(_index_queries(formed))

    async def _corrected_postings(self, question: Question) -> tuple[Question, Sequence[Posting]]:
        postings = list(await self._read_postings(_index_queries(question)))
        unknown = {
            question.surface[term]: term
            for term, posting in zip(question.terms, postings, strict=False)
            if not posting.keys and _may_be_mistyped(question.surface[term])
        }
        if not unknown or not postings:
            return question, postings
        similar = await self._view.text.similar_terms(self._scope, list(unknown), limit=1)
        if not similar:
            return question, postings
        corrections = {unknown[word]: (found[0][0], similarity(word, found[0][0])) for word, found in similar.items()}
        question = question.with_corrections(corrections)
        corrected = await self._read_postings([question.forms[term] for term in corrections])
        for term, posting in zip(corrections, corrected, strict=True):
            postings[question.terms.index(term)] = posting
        return question, postings

    async def _with_older(self, question: Question, postings: Sequence[Posting]) -> Sequence[Posting]:
        """If only older records may be hits, the postings that were cut, extended by the newest records of that
        time."""
        until, cut = self._filters.until, [place for place, one in enumerate(postings) if not one.is_complete]
        if until is None or not cut:
            return postings
        last = await self._view.search.last_key(self._scope, until)
        if last is None:
            return postings
        queries = _index_queries(question)
        older = await self._read_postings([queries[place] for place in cut], up_to=last)
        extended = list(postings)
        for place, one in zip(cut, older, strict=True):
            keys = sorted({*extended[place].keys, *one.keys}, reverse=True)
            extended[place] = replace(extended[place], keys=tuple(keys))
        return extended

    async def _read_postings(
        self, queries: Sequence[tuple[str, ...]], *, up_to: int | None = None
    ) -> Sequence[Posting]:
        cap = max(1, self._policy.postings // max(1, len(queries)))
        return await self._view.text.postings(self._scope, queries, types=self._filters.types, cap=cap, up_to=up_to)

    async def _nearest(self) -> list[int]:
        """The keys of the records with the most similar vectors."""
        if self._vector is None:
            return []
        found = await self._view.vectors.nearest(self._scope, self._fingerprint, self._vector, k=self._policy.nearest)
        return [key for key, _ in found]

    async def _dated(self, question: Question) -> list[int]:
        """The keys of the newest records of the times that the query names."""
        found: list[int] = []
        for span in question.spans[:_MAX_SPANS]:
            found += await self._view.search.dated(self._scope, span, limit=self._policy.nearest)
        return found

    async def _similarities(self, stubs: Sequence[CandidateStub]) -> Mapping[int, float]:
        """The vector similarity of each record to the query, above the mean of the batch."""
        if self._vector is None:
            return {}
        keys = [stub.key for stub in stubs]
        found = await self._view.vectors.similarities(self._fingerprint, self._vector, keys)
        # Unrelated texts have a cosine of 0.1 by one embedder and of 0.8 by another.
        has_baseline = len(found) >= _MIN_FOR_BASELINE
        baseline = min(sum(found.values()) / len(found), _MAX_BASELINE) if has_baseline else 0.0
        return {key: (cosine - baseline) / (1 - baseline) for key, cosine in found.items()}

    async def _next_stubs(self, keys: Iterator[int], extra: list[int]) -> Sequence[CandidateStub]:
        """The next batch of stubs, including the neighbours of the best; empty when there are no more.

        If a filter admits few, more keys are looked at to fill the batch. The first call takes all of `extra`.
        """
        size = self._policy.candidates if self._filters == SearchFilters() else self._policy.chunk
        stubs: list[CandidateStub] = []
        admitted = 0
        while admitted < self._policy.candidates:
            part = list(dict.fromkeys([*islice(keys, size), *extra]))
            if not part:
                break
            centres = [*part[: self._policy.surrounded], *extra[: self._policy.surrounded]]
            extra.clear()
            for stub in await self._view.search.candidate_stubs(
                self._scope, part, centres, reach=REACH, filters=self._filters
            ):
                if stub.key not in self._seen:
                    self._seen.add(stub.key)
                    stubs.append(stub)
                    admitted += stub.is_admitted
        return stubs


def _index_queries(question: Question) -> list[tuple[str, ...]]:
    """What the text index is asked for: the forms of each term, then the hyponyms of each kind."""
    forms = [question.forms[term] for term in question.terms]
    return forms + [tuple(members) for members in question.hyponyms.values()]


def _may_be_mistyped(word: str) -> bool:
    return len(word) >= _MIN_CORRECTED_LETTERS and not is_listed(word)
