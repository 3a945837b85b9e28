"""`search_memory`: from a request to a page of hits.

The candidates are scored by `ranking`, lowered by age, and collapsed where several say the same. If they do not answer
the query (`answerability`) the page is empty, because nothing is better than noise.
"""

import math
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import anyio

from kalito_mcp.domain.decay import DEFAULT_DECAY, DecayPolicy, decayed, retention
from kalito_mcp.domain.scope import PERSONAL, Scope
from kalito_mcp.domain.search import Answer, Candidate, Hit, SearchFilters, SearchPage, SearchRequest
from kalito_mcp.domain.time import DAY_MS
from kalito_mcp.domain.validation import checked_moment
from kalito_mcp.domain.zone import UTC_ZONE, Zone
from kalito_mcp.errors import InvalidInput, ModelError, damage_note
from kalito_mcp.ports.clock import Clock
from kalito_mcp.ports.embedder import Embedder
from kalito_mcp.ports.search import SearchIndex
from kalito_mcp.ports.store import ReadView, Store
from kalito_mcp.retrieval.answerability import confidence
from kalito_mcp.retrieval.collector import Ager, Collector, best_first
from kalito_mcp.retrieval.ended import with_ends
from kalito_mcp.retrieval.explanation import NOTHING, explain, why_empty
from kalito_mcp.retrieval.hits import hit_of, with_superseded
from kalito_mcp.retrieval.known_names import refuse_mistaken
from kalito_mcp.retrieval.latest import latest_ends
from kalito_mcp.retrieval.policy import SearchPolicy
from kalito_mcp.retrieval.question import Question, parse_question
from kalito_mcp.retrieval.scored_candidate import DECIMALS, ScoredCandidate
from kalito_mcp.retrieval.weights import WEIGHTS, FeatureWeights
from kalito_mcp.retrieval.wordings import merged, within

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kalito_mcp.retrieval.candidate_generator import CandidateGenerator

_NO_WORD: Final = "the query has no word to look for"
_MAX_READ_CHARS: Final = 4_000
"""Of a query. What follows adds no term that counts."""

_LONG_CHARS: Final = 1_000
"""Of a query that takes a millisecond to parse."""

_OTHER_EMBEDDER: Final = "searched by words only: the vectors are from another embedder; run kalito-mcp reindex"
_SEMANTIC_TOP: Final = 5
"""How many top hits are checked for semantic similarity before a page is called noise."""

_AT_ONCE_S: Final = 0.1
"""How long an urgent search waits for a vector."""

T = TypeVar("T")


class Prepared(NamedTuple):
    """A query, parsed at a moment, its vector if one is compared, what a page says of that, and its other wordings."""

    question: Question
    now_ms: int
    vector: "NDArray[np.float32] | None" = None
    note: str | None = None
    also: "tuple[Prepared, ...]" = ()

    @property
    def is_empty(self) -> bool:
        """Whether it asks for nothing."""
        return not (self.question.terms or self.question.spans or self.question.asks_where_left_off or self.also)


class Searcher:
    """Searches one agent's memory, or one session of it. Reads only."""

    def __init__(
        self,
        store: Store,
        policy: SearchPolicy,
        clock: Clock,
        decay: DecayPolicy = DEFAULT_DECAY,
        weights: FeatureWeights = WEIGHTS,
        embedder: Embedder | None = None,
        zone: Zone = UTC_ZONE,
    ) -> None:
        self._store = store
        self._policy = policy
        self._clock = clock
        self._decay = decay
        self._weights = weights
        self._embedder = embedder
        self._zone = zone
        self._has_embedded = False  # until then, its model may have to be loaded

    async def warm_up(self, scope: Scope) -> None:
        """Load the embedder's model and the index. Without an embedder, a first search is not worth the memory."""
        if self._embedder is not None:
            await self.search(scope, SearchRequest("hello", is_urgent=True))
            with suppress(ModelError):
                self._has_embedded = len(await self._embedder.embed(["hello"])) > 0

    async def search(self, scope: Scope, request: SearchRequest) -> SearchPage:
        """The best k records, best first; ties newest first. `note` says why there are none, or what was not searched.

        A query without a word, a number or an emoji finds nothing.

        Raises:
            InvalidInput: k is outside 1 to `max_k`, the query is empty or too long, the cursor is from another search,
                or the agent is mistyped.
            SessionNotFound: the session is mistyped.
        """
        prepared = await self.prepare(request)
        return await self.read(prepared, lambda view: self.page(view, scope, request, prepared))

    async def prepare(self, request: SearchRequest) -> "Prepared":
        """What a search needs before it reads.

        Raises:
            InvalidInput: k is outside 1 to `max_k`, or the query is empty or too long.
        """
        self._check(request)
        asked = await self._prepared(request)
        if asked.question.asks_where_left_off:
            return asked
        others = [await self._prepared(replace(request, query=one)) for one in request.other_wordings]
        others = [one for one in others if one.question.terms or one.question.spans]
        also = tuple(one._replace(question=within(asked.question, one.question)) for one in others)
        return asked._replace(also=also)

    async def _prepared(self, request: SearchRequest) -> "Prepared":
        """The query of the request alone."""
        now_ms = self._clock.now_ms() if request.now_ms is None else request.now_ms
        question = await self._parsed(request.query, now_ms, request.zone or self._zone)
        if question.asks_where_left_off or not (question.terms or question.spans):
            return Prepared(question, now_ms)
        if request.is_urgent and not self._has_embedded:
            return Prepared(question, now_ms)
        limit_s = min(_AT_ONCE_S if request.is_urgent else math.inf, self._policy.embedding_timeout_s)
        return Prepared(question, now_ms, *await self._vector(question.query.words, limit_s))

    async def read(self, prepared: "Prepared", work: Callable[[ReadView], Coroutine[Any, Any, T]]) -> T:
        """The result of `work` on one view: in one trip, unless vectors are compared."""
        if all(one.vector is None for one in (prepared, *prepared.also)):
            return await self._store.trip(work)
        async with self._store.read() as view:
            return await work(view)

    async def page(
        self,
        view: ReadView,
        scope: Scope,
        request: SearchRequest,
        prepared: "Prepared",
        *,
        least_share: float = 0.0,
    ) -> SearchPage:
        """As `search`, on this view. Of hits below this share of the best score, not all are looked for."""
        question, now_ms, vector, note, also = prepared
        fingerprint = _fingerprint(scope, request)
        offset = _offset(request.cursor, fingerprint)
        if prepared.is_empty:
            return SearchPage(hits=(), next_cursor=None, note=_NO_WORD)
        if also:
            alone = replace(request, cursor=None, k=self._policy.max_k)
            each = [prepared._replace(also=()), *also]
            pages = [await self.page(view, scope, alone, one, least_share=least_share) for one in each]
            return merged(pages, offset=offset, k=request.k, fingerprint=fingerprint)
        if question.asks_where_left_off and (ends := await self._latest(view, scope, request, prepared, offset)).hits:
            return ends
        if vector is not None and not await self._is_served(view, len(vector)):
            vector, note = None, _OTHER_EMBEDDER
        found = Collector(self._is_noise, wanted=offset + request.k + 1, least_share=least_share)
        if not await self._find(view, scope, question, request.filters, found, vector, now_ms):
            await refuse_mistaken(view, scope)
        hits = found.hits[offset : offset + request.k]
        answers = await self._answers(view, scope, question, [(one.candidate, *found.equals_of(one)) for one in hits])
        page = [
            _hit(
                scored,
                found.same_ids(scored),
                answers.get(scored.candidate.key),
                project=scope.project,
                is_explained=request.explain,
            )
            for scored in hits
        ]
        page = with_ends(await with_superseded(view, scope, page))
        checked = [one.record_id for one in page] + [one.record_id for one in answers.values()]
        damaged = await view.records.damaged(checked)
        if view.vectors.outage:
            note = f"searched by words only: {view.vectors.outage}"
        note = note or found.note
        if not page and (found.noise or not offset):
            is_all = request.filters == SearchFilters() and scope.session is None
            why = why_empty(question, found, is_all=is_all)
            if (left_out := _not_searched(scope)) is not None:
                why = f"{why or NOTHING}; {left_out}"
            note = "; ".join(filter(None, (why, note))) or None
        if damaged:
            page = [
                replace(one, answer=None if one.answer and one.answer.record_id in damaged else one.answer)
                for one in page
                if one.record_id not in damaged
            ]
            note = "; ".join(filter(None, (f"left out, {damage_note(damaged)}", note)))
        more = f"{offset + len(hits)}-{fingerprint}" if found.is_enough else None
        return SearchPage(hits=tuple(page), next_cursor=more, note=note)

    async def _latest(
        self, view: ReadView, scope: Scope, request: SearchRequest, prepared: "Prepared", offset: int
    ) -> SearchPage:
        """A page of how the latest conversations ended: the last message of each first."""
        wanted = offset + request.k
        ends = await latest_ends(
            view, scope, most=wanted + 1, filters=request.filters, spans=prepared.question.past(prepared.now_ms)
        )
        hits = [hit for end in ends for hit in reversed(end)]
        more = f"{wanted}-{_fingerprint(scope, request)}" if len(hits) > wanted else None
        return SearchPage(hits=tuple(hits[offset:wanted]), next_cursor=more)

    async def _answers(
        self, view: ReadView, scope: Scope, question: Question, hits: Sequence[Sequence[Candidate]]
    ) -> Mapping[int, Answer]:
        """The answers to those of the hits that ask, by the hit's key. Each hit is given with those that say the same:
        if a question got no answer this time, it has that of an earlier time."""
        from kalito_mcp.retrieval.answers import answers_to, asks  # noqa: PLC0415 - numpy comes with it

        of_assistant = question.asks_assistant
        if not any(asks(equals[0], of_assistant=of_assistant) for equals in hits):
            return {}
        said = [one for equals in hits for one in equals]
        found = await view.search.in_index(scope, lambda index: answers_to(index, said, of_assistant=of_assistant))
        answers = found or {}
        of_hits = {equals[0].key: [answers[one.key] for one in equals if one.key in answers] for equals in hits}
        return {key: of_hit[0] for key, of_hit in of_hits.items() if of_hit}

    def lenient(
        self, query: str, *, wanted: int, filters: SearchFilters, also: Sequence[str] = ()
    ) -> SearchRequest | None:
        """The request for up to `wanted` hits. A query or other wording that is too long, or a `wanted` that is too
        large, is cut, not refused. None if nothing is asked or wanted."""
        asked, *others = (one.strip()[: self._policy.max_query_chars] for one in (query, *also))
        k = min(wanted, self._policy.max_k)
        return SearchRequest(query=asked, k=k, filters=filters, also=tuple(others)) if asked and k >= 1 else None

    async def _parsed(self, query: str, now_ms: int, zone: Zone) -> Question:
        """The query as a question. A long one takes milliseconds, so not on the event loop."""
        parse = partial(
            parse_question, query[:_MAX_READ_CHARS], max_terms=self._policy.max_terms, now_ms=now_ms, zone=zone
        )
        return await anyio.to_thread.run_sync(parse) if len(query) > _LONG_CHARS else parse()

    async def _find(
        self,
        view: ReadView,
        scope: Scope,
        question: Question,
        filters: SearchFilters,
        found: Collector,
        vector: "NDArray[np.float32] | None",
        now_ms: int,
    ) -> bool:
        """Collect the hits, on the thread of the view. Whether the scope exists."""

        def by_words(index: SearchIndex) -> bool:
            found.collect(self._generator(index, question, filters), {}, self._ager(now_ms))
            return True

        if vector is None:
            return await view.search.in_index(scope, by_words) or False
        fingerprint = "" if self._embedder is None else self._embedder.fingerprint
        nearest = await view.vectors.nearest(scope, fingerprint, vector, k=self._policy.nearest)
        keys = [key for key, _ in nearest]
        generator = await view.search.in_index(scope, lambda index: self._generator(index, question, filters, keys))
        if generator is not None:
            similarities = await view.vectors.similarities(fingerprint, vector, generator.compared_keys)
            await view.search.in_index(scope, lambda _: found.collect(generator, similarities, self._ager(now_ms)))
        return generator is not None

    def _generator(
        self, index: SearchIndex, question: Question, filters: SearchFilters, nearest: Sequence[int] = ()
    ) -> "CandidateGenerator":
        from kalito_mcp.retrieval.candidate_generator import CandidateGenerator  # noqa: PLC0415 - numpy comes with it

        return CandidateGenerator(index, question, filters, self._policy, self._weights, nearest)

    async def _vector(self, text: str, limit_s: float) -> "tuple[NDArray[np.float32] | None, str | None]":
        """The query's vector if an embedder answers in time; else a note on why not, if one is configured."""
        if self._embedder is None:
            return None, None
        try:
            with anyio.fail_after(limit_s):
                [vector] = await self._embedder.embed([text], is_query=True)
                self._has_embedded = True
                return vector, None
        except ModelError as error:
            reason = str(error)
        except TimeoutError:
            reason = f"no vector within {self._policy.embedding_timeout_s:g} s; raise search.embedding_timeout_s"
        return None, f"searched by words only: {reason}"

    async def _is_served(self, view: ReadView, dimension: int) -> bool:
        """Whether the active vectors are from our embedder, or there are none yet."""
        active = [index for index in await view.vectors.indexes() if index.is_active]
        ours = None if self._embedder is None else (self._embedder.fingerprint, dimension)
        return not active or (active[0].fingerprint, active[0].dimension) == ours

    def _is_noise(self, ranked: Sequence[ScoredCandidate]) -> bool:
        """Whether these hits, best first, do not answer the query."""
        if ranked[0].question.asks_time_alone:
            return False
        # Other words may say the same: with a similar text, unmatched words mean nothing.
        semantic = max(scored.parts.get("semantic", 0.0) for scored in ranked[:_SEMANTIC_TOP])
        if semantic and semantic >= self._policy.min_score_by_meaning:
            return False
        return confidence(ranked) < self._policy.min_score

    def _ager(self, now_ms: int) -> Ager:
        """Lowers the scores of a batch by age; the result is best first."""

        def aged(ranked: Sequence[ScoredCandidate]) -> Sequence[ScoredCandidate]:
            for scored in ranked:
                scored.score = self._decayed(scored, now_ms)
            return sorted(ranked, key=best_first)

        return aged

    def _decayed(self, scored: ScoredCandidate, now_ms: int) -> float:
        candidate = scored.candidate
        last_ms = max(candidate.created_at, candidate.last_used or candidate.created_at)
        retained = retention(
            importance=candidate.importance,
            usage_count=candidate.usage_count,
            age_days=(now_ms - last_ms) / DAY_MS,
            is_critical=candidate.is_critical,
            policy=self._decay,
        )
        return round(decayed(scored.score, retained, self._decay), DECIMALS)

    def _check(self, request: SearchRequest) -> None:
        if not 1 <= request.k <= self._policy.max_k:
            raise InvalidInput(f"k={request.k} is outside 1 to {self._policy.max_k}; for more, tools have next_cursor")
        if not request.query.strip():
            raise InvalidInput("query is empty; say in a few words what to look for")
        for name, text in (("query", request.query), *(("one of also", one) for one in request.other_wordings)):
            if len(text) > self._policy.max_query_chars:
                raise InvalidInput(
                    f"{name} has {len(text):,} characters; the limit is {self._policy.max_query_chars:,}: "
                    "ask with the words that matter"
                )
        since, until = request.filters.since, request.filters.until
        for field, moment_ms in (("since", since), ("until", until)):
            if moment_ms is not None:
                checked_moment(moment_ms, field)
        if since is not None and until is not None and since > until:
            raise InvalidInput("since is later than until; swap them")


def _not_searched(scope: Scope) -> str | None:
    """What a search of this scope leaves out, in words that do not tell whether there is anything."""
    if scope.project is None or scope.session is not None:
        return None
    return f"{'no project was' if scope.project == PERSONAL else 'other projects were not'} searched"


def _hit(
    scored: ScoredCandidate, same: tuple[str, ...], answer: Answer | None, *, project: str | None, is_explained: bool
) -> Hit:
    hit = hit_of(scored.candidate, scored.score, project)
    if same or answer is not None:
        hit = replace(hit, same=same, answer=answer)
    return replace(hit, parts=scored.parts, why=explain(scored)) if is_explained else hit


def _fingerprint(scope: Scope, request: SearchRequest) -> str:
    filters = request.filters
    asked = (
        *(scope.owner, scope.limits, scope.agent, scope.session, scope.project, request.query, request.other_wordings),
        *(filters.since, filters.until, filters.include_internal, filters.min_importance),
        *map(sorted, (filters.types, filters.roles, filters.names, filters.tags, filters.origins)),
    )
    return blake2b(repr(asked).encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


def _offset(cursor: str | None, fingerprint: str) -> int:
    if cursor is None:
        return 0
    offset, _, of_search = cursor.partition("-")
    if of_search != fingerprint or not (offset.isascii() and offset.isdigit() and len(offset) < 7):  # noqa: PLR2004
        raise InvalidInput("cursor belongs to another search; repeat the search that returned it, or leave it out")
    return int(offset)
