"""`search_memory`: postings to candidates to hits.

The work is bounded whatever is asked: at most `SearchPolicy.postings` index entries are looked at, rare terms being
complete and common ones cut to their newest records, and at most `SearchPolicy.filtered_candidates` texts are read.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from kalito_mcp.domain.analysis import query_terms, terms
from kalito_mcp.domain.decay import DEFAULT_DECAY, DecayPolicy, decayed, retention
from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import Candidate, Hit, Posting, SearchFilters, SearchPage
from kalito_mcp.domain.validation import checked_moment
from kalito_mcp.errors import InvalidInput
from kalito_mcp.ports.clock import Clock
from kalito_mcp.ports.store import ReadView, Store
from kalito_mcp.retrieval.evidence import evidence, inverse_document_frequencies

_DECIMALS: Final = 4
_LEAST_SCORE: Final = 0.0001
_DAY_MS: Final = 86_400_000


@dataclass(frozen=True, slots=True)
class SearchPolicy:
    """Bounds on the work of one search.

    `candidates` texts are compared at a time, and no more where they fill the page; `filtered_candidates` are the
    most that are read for it, because a filter may admit few of them.
    """

    max_k: int = 100
    max_query_chars: int = 4_000
    max_terms: int = 32
    postings: int = 8_000
    candidates: int = 120
    filtered_candidates: int = 4_000
    chunk: int = 400


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What to find. `cursor` continues an earlier search with the same words and filters."""

    query: str
    k: int = 10
    filters: SearchFilters = SearchFilters()
    cursor: str | None = None


class Searcher:
    """Searches one agent's memory, or one session of it."""

    def __init__(self, store: Store, policy: SearchPolicy, clock: Clock, decay: DecayPolicy = DEFAULT_DECAY) -> None:
        self._store = store
        self._policy = policy
        self._clock = clock
        self._decay = decay

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

    async def best(self, scope: Scope, query: str, *, wanted: int, filters: SearchFilters) -> Sequence[Hit]:
        """Up to `wanted` hits for whatever is asked: what `search` would refuse is cut to what it takes."""
        asked = query.strip()[: self._policy.max_query_chars]
        k = min(wanted, self._policy.max_k)
        if not asked or k < 1:
            return ()
        return (await self.search(scope, SearchRequest(query=asked, k=k, filters=filters))).hits

    async def _ranked(
        self, view: ReadView, scope: Scope, asked: Sequence[str], request: SearchRequest, *, wanted: int
    ) -> list[tuple[float, Candidate]]:
        """At least `wanted` hits, best first, or all there are.

        The records with the most weight of distinct terms are compared first, a tier of them after the other, and
        ranked within their tier: so what comes later never moves what an earlier page has shown.
        """
        cap = max(1, self._policy.postings // len(asked))
        postings = await view.text.postings(scope, asked, types=request.filters.types, cap=cap)
        found = [posting for posting in postings if posting.keys]
        if not found:
            return []
        newest_key = max(posting.keys[0] for posting in found)
        # Terms that nothing holds count in the mass: a hit on one word of five is worth a fifth.
        weights = inverse_document_frequencies(postings, await view.text.record_count(scope), newest_key)
        is_filtered = scope.session is not None or request.filters != SearchFilters()
        now_ms = self._clock.now_ms()
        ranked: list[tuple[float, Candidate]] = []
        tier: list[Candidate] = []
        for keys in self._promising(found, weights, is_filtered=is_filtered, wanted=wanted):
            tier += await view.records.candidates(scope, keys, request.filters)
            if len(tier) >= self._policy.candidates or not is_filtered:
                ranked += self._by_evidence(weights, tier, now_ms)
                tier = []
                if len(ranked) >= wanted:
                    break
        return ranked + self._by_evidence(weights, tier, now_ms)

    def _promising(
        self, postings: Sequence[Posting], weights: dict[str, float], *, is_filtered: bool, wanted: int
    ) -> Iterator[Sequence[int]]:
        """The records by the weight of their distinct terms, newest first among equals, in parts to be read at once."""
        promise: defaultdict[int, float] = defaultdict(float)
        for posting in postings:
            weight = weights[posting.term]
            for key in posting.keys:
                promise[key] += weight
        most = max(self._policy.filtered_candidates, self._policy.candidates)
        size = self._policy.chunk if is_filtered else self._policy.candidates
        examined = most if is_filtered else min(most, -(-wanted // size) * size)
        best = _heaviest(promise, examined)
        return (best[start : start + size] for start in range(0, len(best), size))

    def _by_evidence(
        self, weights: dict[str, float], candidates: Sequence[Candidate], now_ms: int
    ) -> list[tuple[float, Candidate]]:
        scored = [(self._score(weights, candidate, now_ms), candidate) for candidate in candidates]
        return sorted(scored, key=lambda pair: (-pair[0], -pair[1].key))

    def _score(self, weights: dict[str, float], candidate: Candidate, now_ms: int) -> float:
        """The share of the evidence, less what age takes. Rounded, and never down to nothing: the index knows that the
        text holds a term."""
        text = f"{candidate.name} {candidate.text}" if candidate.name else candidate.text
        last_ms = max(candidate.created_at, candidate.last_used or candidate.created_at)
        left = retention(
            importance=candidate.importance,
            usage_count=candidate.usage_count,
            age_days=(now_ms - last_ms) / _DAY_MS,
            is_critical=candidate.is_critical,
            policy=self._decay,
        )
        score = decayed(evidence(weights, terms(text)), left, self._decay)
        return max(round(score, _DECIMALS), _LEAST_SCORE)

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
        for field, moment_ms in (("since", since), ("until", until)):
            if moment_ms is not None:
                checked_moment(moment_ms, field)
        if since is not None and until is not None and since > until:
            raise InvalidInput("since is later than until; swap them")


def _heaviest(promise: Mapping[int, float], count: int) -> list[int]:
    """The keys with the most weight, most first; equal ones newest first.

    Sorting the weights alone, and pairs only above the last that counts, takes 1.5 ms for 12,000; a heap took 7.
    """
    least = sorted(promise.values(), reverse=True)[min(count, len(promise)) - 1]
    heaviest = sorted(((weight, key) for key, weight in promise.items() if weight >= least), reverse=True)
    return [key for _, key in heaviest[:count]]


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
        # A pin's key may be one of ours.
        client_key=candidate.client_key if candidate.type is RecordType.MESSAGE else None,
        key=candidate.key,
        origin=candidate.origin,
        revision=candidate.revision,
        status=candidate.status,
        due_date=candidate.due_date,
    )


def _fingerprint(scope: Scope, request: SearchRequest) -> str:
    filters = request.filters
    kinds, roles = sorted(filters.types), sorted(filters.roles)
    asked = repr(
        (
            scope.agent,
            scope.session,
            request.query,
            kinds,
            roles,
            filters.since,
            filters.until,
            filters.include_internal,
        )
    )
    return blake2b(asked.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


def _offset(cursor: str | None, fingerprint: str) -> int:
    if cursor is None:
        return 0
    offset, _, of_search = cursor.partition("-")
    if of_search != fingerprint or not (offset.isascii() and offset.isdigit() and len(offset) < 7):  # noqa: PLR2004
        raise InvalidInput("cursor belongs to another search; repeat the search that returned it, or leave it out")
    return int(offset)
