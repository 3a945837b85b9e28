"""`search_memory`: postings to candidates to hits.

The work is bounded whatever is asked: at most `SearchPolicy.postings` index entries are looked at, rare terms being
complete and common ones cut to their newest records, and at most `SearchPolicy.candidates` texts are read.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from kalito_mcp.domain.analysis import query_terms, terms
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import Candidate, Hit, Posting, SearchFilters, SearchPage
from kalito_mcp.errors import InvalidInput
from kalito_mcp.ports.store import ReadView, Store
from kalito_mcp.retrieval.evidence import evidence, inverse_document_frequencies


@dataclass(frozen=True, slots=True)
class SearchPolicy:
    """Bounds on the work of one search.

    `candidates` texts are compared when nothing filters them, `filtered_candidates` when something does.
    """

    max_k: int = 100
    max_query_chars: int = 4_000
    max_terms: int = 32
    postings: int = 12_000
    candidates: int = 200
    filtered_candidates: int = 4_000
    chunk: int = 400


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What to find. `cursor` continues an earlier search with the same words and filters."""

    query: str
    k: int
    filters: SearchFilters = SearchFilters()
    cursor: str | None = None


class Searcher:
    """Searches one agent's memory, or one session of it."""

    def __init__(self, store: Store, policy: SearchPolicy) -> None:
        self._store = store
        self._policy = policy

    async def search(self, scope: Scope, request: SearchRequest) -> SearchPage:
        """The best k records, best first; equal ones newest first.

        A query without a single word finds nothing.

        Raises:
            InvalidInput: k outside 1 to `max_k`, an empty or overlong query, or a cursor of another search.
        """
        self._check(request)
        fingerprint = _fingerprint(scope, request)
        offset = _offset(request.cursor, fingerprint)
        asked = query_terms(request.query)[: self._policy.max_terms]
        if not asked:
            return SearchPage(hits=(), next_cursor=None)
        async with self._store.read() as view:
            ranked = await self._ranked(view, scope, asked, request, wanted=offset + request.k + 1)
        page = ranked[offset : offset + request.k]
        has_more = len(ranked) > offset + request.k
        return SearchPage(
            hits=tuple(_hit(score, candidate) for score, candidate in page),
            next_cursor=f"{offset + request.k}-{fingerprint}" if has_more else None,
        )

    async def _ranked(
        self, view: ReadView, scope: Scope, asked: Sequence[str], request: SearchRequest, *, wanted: int
    ) -> list[tuple[float, Candidate]]:
        cap = max(1, self._policy.postings // len(asked))
        postings = await view.text.postings(scope, asked, types=request.filters.types, cap=cap)
        found = [posting for posting in postings if posting.keys]
        if not found:
            return []
        newest_key = max(posting.keys[0] for posting in found)
        # Terms that nothing holds count in the mass: a hit on one word of five is worth a fifth.
        weights = inverse_document_frequencies(postings, await view.text.record_count(scope), newest_key)
        candidates = await self._candidates(view, scope, found, weights, request, wanted=wanted)
        scored = [
            (round(evidence(weights, terms(f"{c.name} {c.text}" if c.name else c.text)), 4), c) for c in candidates
        ]
        return heapq.nsmallest(wanted, scored, key=lambda pair: (-pair[0], -pair[1].key))

    async def _candidates(
        self,
        view: ReadView,
        scope: Scope,
        postings: Sequence[Posting],
        weights: dict[str, float],
        request: SearchRequest,
        *,
        wanted: int,
    ) -> list[Candidate]:
        """The records with the most weight of distinct terms, as many as may matter."""
        promise: defaultdict[int, float] = defaultdict(float)
        for posting in postings:
            weight = weights[posting.term]
            for key in posting.keys:
                promise[key] += weight
        is_filtered = scope.session is not None or request.filters != SearchFilters()
        examined = self._policy.filtered_candidates if is_filtered else self._policy.candidates
        best = heapq.nsmallest(max(examined, wanted), promise.items(), key=lambda item: (-item[1], -item[0]))
        enough = max(self._policy.candidates, wanted)
        admitted: list[Candidate] = []
        for keys in _chunks([key for key, _ in best], self._policy.chunk):
            admitted += await view.records.candidates(scope, keys, request.filters)
            if len(admitted) >= enough:
                break
        return admitted

    def _check(self, request: SearchRequest) -> None:
        if not 1 <= request.k <= self._policy.max_k:
            raise InvalidInput(f"k={request.k} is outside 1 to {self._policy.max_k}; use next_cursor for more")
        if not request.query.strip():
            raise InvalidInput("query is empty; say in a few words what to look for")
        if len(request.query) > self._policy.max_query_chars:
            raise InvalidInput(
                f"query has {len(request.query):,} characters; the limit is {self._policy.max_query_chars:,}: "
                "ask with the words that matter"
            )
        since, until = request.filters.since, request.filters.until
        if since is not None and until is not None and since > until:
            raise InvalidInput("since is later than until; swap them")


def _chunks(keys: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    return (keys[start : start + size] for start in range(0, len(keys), size))


def _hit(score: float, candidate: Candidate) -> Hit:
    return Hit(
        record_id=candidate.record_id,
        type=candidate.type,
        session_id=candidate.session_id,
        role=candidate.role,
        name=candidate.name,
        text=candidate.text,
        created_at=candidate.created_at,
        score=score,
        client_key=candidate.client_key,
        key=candidate.key,
    )


def _fingerprint(scope: Scope, request: SearchRequest) -> str:
    filters = request.filters
    kinds, roles = sorted(filters.types), sorted(filters.roles)
    asked = repr((scope.agent, scope.session, request.query, kinds, roles, filters.since, filters.until))
    return blake2b(asked.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


def _offset(cursor: str | None, fingerprint: str) -> int:
    if cursor is None:
        return 0
    offset, _, of_search = cursor.partition("-")
    if of_search != fingerprint or not (offset.isascii() and offset.isdigit() and len(offset) < 7):  # noqa: PLR2004
        raise InvalidInput("cursor belongs to another search; repeat the search that returned it, or leave it out")
    return int(offset)
