"""`search_memory`: a question, its lookup, and a page of hits.

What a lookup ranks is aged, near-duplicates are told once, and what was found to be noise (`retrieval.noise`) is left
out: an empty page is an answer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import anyio

from kalito_mcp.domain.analysis import is_spelled_with_spaces
from kalito_mcp.domain.decay import DEFAULT_DECAY, DecayPolicy, decayed, retention
from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import Hit, SearchFilters, SearchPage
from kalito_mcp.domain.validation import checked_moment
from kalito_mcp.errors import InvalidInput, ModelError
from kalito_mcp.ports.clock import Clock
from kalito_mcp.ports.embedder import Embedder
from kalito_mcp.ports.store import ReadView, Store
from kalito_mcp.retrieval.answerability import missing, strength
from kalito_mcp.retrieval.candidate_generator import Lookup
from kalito_mcp.retrieval.explanation import explained
from kalito_mcp.retrieval.policy import SearchPolicy
from kalito_mcp.retrieval.question import Question, read
from kalito_mcp.retrieval.ranking import DECIMALS, Scored
from kalito_mcp.retrieval.weights import WEIGHTS, EvidenceWeights

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_Spoken = tuple[str | None, frozenset[str]]
_DAY_MS: Final = 86_400_000
_READ_CHARS: Final = 4_000
"""Of a longer query, the beginning is read: what follows adds no term that counts."""

_TOLD: Final = frozenset({RecordType.MESSAGE, RecordType.PIN, RecordType.SUMMARY})
_MOST_SAME: Final = 20
"""Ids of records that say the same, in a hit."""

_MOST_MISSING: Final = 6
"""Words of the query that a note names."""

_OTHER_VECTORS: Final = "searched by words alone: the vectors are another embedder's; run kalito-mcp reindex"
_FIRST: Final = 5
"""Hits of which one is alike in meaning where a page is not noise."""

_SAME: Final = 0.9
"""The share of all words of two texts that both must have for the second to say nothing new."""

_COPIES: Final = frozenset({RecordType.PIN, RecordType.SUMMARY})
"""What may say what a message says; then the message is told."""


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What to find. `cursor` continues an earlier search with the same words and filters; `explain` asks for the parts
    and the reasons of each hit. `now_ms` is the moment from which dates in the query and ages count, the clock's
    unless given."""

    query: str
    k: int = 10
    filters: SearchFilters = SearchFilters()
    cursor: str | None = None
    explain: bool = False
    now_ms: int | None = None


class Searcher:
    """Searches one agent's memory, or one session of it. Reads only."""

    def __init__(
        self,
        store: Store,
        policy: SearchPolicy,
        clock: Clock,
        decay: DecayPolicy = DEFAULT_DECAY,
        weights: EvidenceWeights = WEIGHTS,
        embedder: Embedder | None = None,
    ) -> None:
        self._store = store
        self._policy = policy
        self._clock = clock
        self._decay = decay
        self._weights = weights
        self._embedder = embedder

    async def search(self, scope: Scope, request: SearchRequest) -> SearchPage:
        """The best k records, best first; equal ones newest first. `note` says what the hits do not.

        A query without a single word finds nothing.

        Raises:
            InvalidInput: k outside 1 to `max_k`, an empty or overlong query, or a cursor of another search.
        """
        self._check(request)
        fingerprint = _fingerprint(scope, request)
        offset = _offset(request.cursor, fingerprint)
        now_ms = self._clock.now_ms() if request.now_ms is None else request.now_ms
        question = read(request.query[:_READ_CHARS], most_terms=self._policy.max_terms, now_ms=now_ms)
        if not question.terms and not question.spans:
            return SearchPage(hits=(), next_cursor=None)
        vector, note = await self._vector(question.query.words)
        async with self._store.read() as view:
            if vector is not None and not await self._is_served(view, len(vector)):
                vector, note = None, _OTHER_VECTORS
            found = _Found(self._is_noise, wanted=offset + request.k + 1)
            lookup = Lookup(
                view,
                scope,
                request.filters,
                self._policy,
                self._weights,
                fingerprint="" if self._embedder is None else self._embedder.fingerprint,
                vector=vector,
            )
            async for tier in lookup.tiers(question):
                found.take(self._aged(tier, now_ms))
                if found.is_enough or found.weak:
                    break
        note = note or lookup.note
        hits = found.kept[offset : offset + request.k]
        if not hits and (found.weak or not offset):
            is_all = request.filters == SearchFilters() and scope.session is None
            why = _nothing(question, found.weak, lookup, is_all=is_all)
            note = "; ".join(filter(None, (why, note))) or None
        return SearchPage(
            hits=tuple(_hit(scored, found.same(scored), is_explained=request.explain) for scored in hits),
            next_cursor=f"{offset + request.k}-{fingerprint}" if found.is_enough else None,
            note=note,
        )

    async def best(self, scope: Scope, query: str, *, wanted: int, filters: SearchFilters) -> SearchPage:
        """Up to `wanted` hits for whatever is asked: what `search` would refuse is cut to what it takes."""
        asked = query.strip()[: self._policy.max_query_chars]
        k = min(wanted, self._policy.max_k)
        if not asked or k < 1:
            return SearchPage(hits=(), next_cursor=None)
        return await self.search(scope, SearchRequest(query=asked, k=k, filters=filters))

    async def _vector(self, text: str) -> "tuple[NDArray[np.float32] | None, str | None]":
        """The query's vector, where there is an embedder and it answers; what to say where it does not."""
        if self._embedder is None:
            return None, None
        try:
            with anyio.fail_after(self._policy.embedding_timeout_s):
                [vector] = await self._embedder.embed([text], is_query=True)
        except ModelError as error:
            return None, f"searched by words alone: {error}"
        except TimeoutError:
            return None, f"searched by words alone: no vector within {self._policy.embedding_timeout_s:g} s"
        return vector, None

    async def _is_served(self, view: ReadView, dimension: int) -> bool:
        """Whether the vectors that are served are our embedder's, or there are none yet."""
        active = [index for index in await view.vectors.indexes() if index.is_active]
        ours = None if self._embedder is None else (self._embedder.fingerprint, dimension)
        return not active or (active[0].fingerprint, active[0].dimension) == ours

    def _is_noise(self, ranked: Sequence[Scored]) -> bool:
        """Whether the best hits are no answer."""
        if ranked[0].question.asks_time_alone:
            return False
        # Other words may say the same: where a text is alike, those that are missing mean nothing.
        alike = max(scored.parts.get("meaning", 0.0) for scored in ranked[:_FIRST])
        if alike and alike >= self._policy.min_score_by_meaning:
            return False
        return strength(ranked) < self._policy.min_score

    def _aged(self, ranked: Sequence[Scored], now_ms: int) -> Sequence[Scored]:
        """The scores less what age takes, best first."""
        for scored in ranked:
            scored.score = self._left(scored, now_ms)
        return sorted(ranked, key=_best_first)

    def _left(self, scored: Scored, now_ms: int) -> float:
        candidate = scored.candidate
        last_ms = max(candidate.created_at, candidate.last_used or candidate.created_at)
        left = retention(
            importance=candidate.importance,
            usage_count=candidate.usage_count,
            age_days=(now_ms - last_ms) / _DAY_MS,
            is_critical=candidate.is_critical,
            policy=self._decay,
        )
        return round(decayed(scored.score, left, self._decay), DECIMALS)

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


class _Found:
    """What a search has found so far: what is told, what says the same as something told before, and what is weak."""

    def __init__(self, is_noise: Callable[[Sequence[Scored]], bool], *, wanted: int) -> None:
        self.kept: list[Scored] = []
        self.weak: list[Scored] = []
        self._is_noise = is_noise
        self._wanted = wanted
        self._spoken: list[_Spoken] = []
        self._same: dict[int, list[str]] = {}
        self._words: dict[int, frozenset[str]] = {}

    @property
    def is_enough(self) -> bool:
        """Whether there is one more than the page takes."""
        return len(self.kept) >= self._wanted

    def take(self, tier: Sequence[Scored]) -> None:
        """Add the hits of a tier, best first, until there are enough; nothing at all where the first tier is noise."""
        if not self.kept and tier and self._is_noise(tier):
            self.weak.extend(tier)
            return
        for scored in self._without_copies(tier):
            if self.is_enough:
                return
            candidate = scored.candidate
            # Two tasks or notes that say the same are two: each may be changed or done.
            spoken = candidate.name, self._said(scored) if candidate.type in _TOLD else frozenset[str]()
            told = next((at for at, before in enumerate(self._spoken) if _is_same(spoken, before)), None)
            if told is None:
                self.kept.append(scored)
                self._spoken.append(spoken)
            else:
                same = self._same.setdefault(self.kept[told].candidate.key, [])
                same += [candidate.record_id, *self._same.pop(candidate.key, ())]

    def same(self, scored: Scored) -> tuple[str, ...]:
        """The ids of further records that say what this one does."""
        return tuple(self._same.get(scored.candidate.key, ())[:_MOST_SAME])

    def _without_copies(self, tier: Sequence[Scored]) -> Sequence[Scored]:
        """The tier, with messages in the places of the pins and summaries that say what they say."""
        if not any(scored.candidate.type in _COPIES for scored in tier):
            return tier
        messages = [(scored, self._said(scored)) for scored in tier if scored.candidate.type is RecordType.MESSAGE]
        left: list[Scored] = []
        for scored in tier:
            message = self._message_of(scored, messages) if scored.candidate.type in _COPIES else None
            if message is None:
                left.append(scored)
            else:
                self._same.setdefault(message.candidate.key, []).append(scored.candidate.record_id)
                message.score = max(message.score, scored.score)
        return sorted(left, key=_best_first)

    def _message_of(self, copy: Scored, messages: Sequence[tuple[Scored, frozenset[str]]]) -> Scored | None:
        """The best of the messages that says what a pin or a summary says, with all of it that is asked for: it tells
        by whom and when it was said, and what was said around it."""
        said, asked = self._said(copy), copy.reading.counts.keys()
        for message, words in messages:
            if (
                _are_nearly_equal(said, words)
                and asked <= message.reading.counts.keys()
                and len(message.reading.text) <= 2 * len(copy.reading.text)
            ):
                return message
        return None

    def _said(self, scored: Scored) -> frozenset[str]:
        found = self._words.get(scored.candidate.key)
        if found is None:
            found = self._words[scored.candidate.key] = frozenset(scored.reading.text)
        return found


def _best_first(scored: Scored) -> tuple[float, int]:
    """Equal ones newest first."""
    return -scored.score, -scored.candidate.key


def _is_same(one: _Spoken, other: _Spoken) -> bool:
    """Whether the same speaker says the same."""
    return one[0] == other[0] and _are_nearly_equal(one[1], other[1])


def _are_nearly_equal(said: frozenset[str], other: frozenset[str]) -> bool:
    """Of words; what has none says nothing that could be compared."""
    least, most = sorted((len(said), len(other)))
    return least >= _SAME * most > 0 and len(said & other) >= _SAME * len(said | other)


def _nothing(question: Question, weak: Sequence[Scored], lookup: Lookup, *, is_all: bool) -> str | None:
    """Why there is no hit, as far as it can be said."""
    if lookup.left_out:
        return f"left out for what stands behind a minus: {lookup.left_out}"
    if not is_all or (lookup.candidates and not weak):
        return None
    if question.asks_time_alone:
        return "nothing was said then, and nothing tells of it"
    unsaid = missing(weak) if weak else tuple(question.written[term] for term in question.terms)
    # Of scripts without spaces the terms are no words.
    listed = ", ".join(f'"{word}"' for word in unsaid[:_MOST_MISSING] if is_spelled_with_spaces(word))
    if listed and not weak:
        return f"nothing remembered says {listed}"
    return "nothing remembered speaks of this" + (f"; none says {listed}" if listed else "")


def _hit(scored: Scored, same: tuple[str, ...], *, is_explained: bool) -> Hit:
    candidate = scored.candidate
    return Hit(
        record_id=candidate.record_id,
        type=candidate.type,
        session_id=candidate.session_id,
        role=candidate.role,
        name=candidate.name,
        text=candidate.text,
        created_at=candidate.created_at,
        score=scored.score,
        # A pin's key may be one of ours.
        client_key=candidate.client_key if candidate.type is RecordType.MESSAGE else None,
        key=candidate.key,
        seq=candidate.seq if candidate.type is RecordType.MESSAGE else None,
        origin=candidate.origin,
        revision=candidate.revision,
        status=candidate.status,
        due_date=candidate.due_date,
        same=same,
        parts=scored.parts if is_explained else {},
        why=explained(scored) if is_explained else None,
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
            *map(sorted, (filters.names, filters.tags, filters.origins)),
            filters.min_importance,
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
