"""`search_memory`: from a request to a page of hits.

The best candidates (`candidate_generator`) become hits, each with the turns around it; hits that say the same become
one (`collector`). The nearest are shown, with their dates. The reader decides whether they answer.
"""

import math
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import anyio

from kalito_mcp.domain.scope import PERSONAL, Scope
from kalito_mcp.domain.search import Hit, SearchFilters, SearchPage, SearchRequest
from kalito_mcp.domain.spaces import seen_in_spaces
from kalito_mcp.domain.validation import checked_moment
from kalito_mcp.domain.zone import UTC_ZONE, Zone
from kalito_mcp.errors import InvalidInput, ModelError, damage_note
from kalito_mcp.ports.clock import Clock
from kalito_mcp.ports.embedder import Embedder
from kalito_mcp.ports.search import SearchIndex
from kalito_mcp.ports.store import ReadView, Store
from kalito_mcp.retrieval.collector import Collector
from kalito_mcp.retrieval.ended import has_ends, with_ends
from kalito_mcp.retrieval.explanation import NOTHING, explain, why_empty
from kalito_mcp.retrieval.hits import hit_of, merged_hits, of_space, with_room_for_own, with_superseded
from kalito_mcp.retrieval.intent import MODEL
from kalito_mcp.retrieval.known_names import refuse_mistaken, unknown_project
from kalito_mcp.retrieval.latest import latest_ends
from kalito_mcp.retrieval.policy import SearchPolicy
from kalito_mcp.retrieval.question import Question, parse_question
from kalito_mcp.retrieval.scored_candidate import ScoredCandidate
from kalito_mcp.retrieval.turns_beside import with_turns

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kalito_mcp.retrieval.candidate_generator import CandidateGenerator
    from kalito_mcp.retrieval.ranking import Similarities

_NO_WORD: Final = "the query has no word to look for"
_MAX_READ_CHARS: Final = 4_000
"""Of a query. Text after it adds no terms."""

_LONG_CHARS: Final = 1_000
"""Of a query that takes a millisecond to parse."""

_OTHER_EMBEDDER: Final = "searched by words only: the vectors are from another embedder; run kalito-mcp reindex"
_AT_ONCE_S: Final = 0.1
"""How long an urgent search waits for a vector."""

T = TypeVar("T")


class Prepared(NamedTuple):
    """A query, parsed at a moment, its vector if one is compared, and what a page says of that."""

    question: Question
    now_ms: int
    vector: "NDArray[np.float32] | None" = None
    note: str | None = None

    @property
    def is_empty(self) -> bool:
        """Whether it asks for nothing."""
        return not (self.question.terms or self.question.spans or self.question.asks_where_left_off)


class Searcher:
    """Searches one agent's memory, or one session of it. Reads only."""

    def __init__(
        self,
        store: Store,
        policy: SearchPolicy,
        clock: Clock,
        embedder: Embedder | None = None,
        zone: Zone = UTC_ZONE,
    ) -> None:
        self._store = store
        self._policy = policy
        self._clock = clock
        self._embedder = embedder
        self._zone = zone

    async def warm_up(self, scope: Scope) -> None:
        """Load the embedder's model and the index. Without an embedder, a first search is not worth the memory."""
        if self._embedder is not None:
            await self.search(scope, SearchRequest("hello"))

    async def search(self, scope: Scope, request: SearchRequest) -> SearchPage:
        """The best k records, best first; ties newest first. `note` says why there are no records, or what was not
        searched.

        A query without a word, a number or an emoji finds nothing.

        Raises:
            InvalidInput: k is outside 1 to `max_k`, the query is empty or too long, the cursor is from another search,
                or the agent is mistyped.
            SessionNotFound: the session is mistyped.
        """
        prepared = await self.prepare(scope, request)
        if prepared.is_empty:
            _offset(request.cursor, _fingerprint(scope, request))
            return SearchPage(hits=(), next_cursor=None, note=_NO_WORD)
        return await self.read(lambda view: self.page(view, scope, request, prepared))

    async def prepare(self, scope: Scope, request: SearchRequest) -> "Prepared":
        """The prepared search, before it reads.

        Raises:
            InvalidInput: k is outside 1 to `max_k`, or the query is empty or too long.
        """
        self._check(request)
        now_ms = self._clock.now_ms() if request.now_ms is None else request.now_ms
        question = await self._parsed(request, now_ms)
        if self._embedder is None or not question.words:
            return Prepared(question, now_ms)
        limit_s = min(_AT_ONCE_S if request.is_urgent else math.inf, self._policy.embedding_timeout_s)
        vectors, note = await self._vectors(self._embedder, scope, question, limit_s)
        if vectors is not None and self._embedder.fingerprint.startswith(MODEL):
            from kalito_mcp.retrieval.intent_head import intent_of  # noqa: PLC0415 - by now, numpy is there

            question = replace(question, intent=intent_of(question.query.words, vectors[0]))
        if question.asks_time_alone or not question.terms:
            return Prepared(question, now_ms)
        # Its product with the vector of a text is the mean of their cosines.
        return Prepared(question, now_ms, None if vectors is None else vectors.mean(axis=0), note)

    async def read(self, work: Callable[[ReadView], Coroutine[Any, Any, T]]) -> T:
        """The result of `work` on one view of the searched records."""
        return await self._store.read(work)

    async def page(
        self,
        view: ReadView,
        scope: Scope,
        request: SearchRequest,
        prepared: "Prepared",
        *,
        least_share: float = 0.0,
        has_turns: bool = True,
    ) -> SearchPage:
        """As `search`, on this view. Hits below this share of the best score may be incomplete. Unless it `has_turns`,
        each turn is a separate hit, hits have no turns around them, and at most half of a first page is what others
        shared, as long as there is more."""
        if prepared.is_empty:
            return SearchPage(hits=(), next_cursor=None, note=_NO_WORD)
        question, _, vector, note = prepared
        fingerprint = _fingerprint(scope, request)
        offset = _offset(request.cursor, fingerprint)
        if question.asks_nothing_else and (ends := await self._latest(view, scope, request, prepared, offset)).hits:
            return ends
        if vector is not None and not await self._is_served(view, len(vector)):
            vector, note = None, _OTHER_EMBEDDER
        spaces = list(seen_in_spaces(scope, await view.spaces.memberships(scope.owner)))
        wanted = offset + request.k
        # With spaces, a page depends on all hits before it.
        span = slice(0 if spaces else offset, wanted)
        found = Collector(wanted=wanted + 1, least_share=least_share, has_turns=has_turns)
        if not await self._find(view, scope, question, request, found, vector):
            await refuse_mistaken(view, scope)
        page, damaged = await _hits(view, scope, found, request, span)
        is_more = found.is_enough
        if spaces:
            lists = [page]
            for member, shared in spaces:
                theirs = Collector(wanted=wanted + 1, least_share=least_share, has_turns=has_turns, has_copies=True)
                await self._find(view, shared, question, request, theirs, vector)
                hits, damaged_there = await _hits(view, shared, theirs, request, span)
                lists.append(await of_space(view, member.space.name, hits))
                damaged += damaged_there
                is_more = is_more or theirs.is_enough
            merged = merged_hits(lists)
            is_more = is_more or len(merged) > wanted
            page = merged[offset:wanted] if has_turns else with_room_for_own(merged, wanted)
        if has_ends(page):
            page = with_ends(page, await view.records.said_in_order(scope, [hit.record_id for hit in page]))
        if view.vectors.outage:
            note = f"searched by words only: {view.vectors.outage}"
        note = note or found.note
        if not page and not damaged and not offset:
            is_all = request.filters == SearchFilters() and scope.session is None
            why = why_empty(question, found, is_all=is_all)
            if (left_out := await _not_searched(view, scope)) is not None:
                why = f"{why or NOTHING}; {left_out}"
            note = "; ".join(filter(None, (why, note))) or None
        if damaged:
            note = "; ".join(filter(None, (f"left out, {damage_note(damaged)}", note)))
        if has_turns:
            page = await with_turns(view, scope, page, request.filters, question)
        more = f"{wanted}-{fingerprint}" if is_more else None
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

    def lenient(
        self, query: str, *, wanted: int, filters: SearchFilters, also: Sequence[str] = ()
    ) -> SearchRequest | None:
        """The request for up to `wanted` hits. A query or other wording that is too long, or a `wanted` that is too
        large, is cut, not refused. None if nothing is asked or wanted."""
        bound, *others = (one.strip()[: self._policy.max_query_chars] for one in (query, *also))
        k = min(wanted, self._policy.max_k)
        return SearchRequest(query=bound, k=k, filters=filters, also=tuple(others)) if bound and k >= 1 else None

    async def _parsed(self, request: SearchRequest, now_ms: int) -> Question:
        """The query as a question. A long one takes milliseconds, so not on the event loop."""
        parse = partial(
            parse_question,
            request.query[:_MAX_READ_CHARS],
            max_terms=self._policy.max_terms,
            now_ms=now_ms,
            zone=request.zone or self._zone,
            also=[one[:_MAX_READ_CHARS] for one in request.other_wordings],
        )
        return await anyio.to_thread.run_sync(parse) if len(request.query) > _LONG_CHARS else parse()

    async def _find(
        self,
        view: ReadView,
        scope: Scope,
        question: Question,
        request: SearchRequest,
        found: Collector,
        vector: "NDArray[np.float32] | None",
    ) -> bool:
        """Collect the hits, on the thread of the view. Whether the scope exists."""

        def generated(index: SearchIndex) -> "CandidateGenerator":
            from kalito_mcp.retrieval.candidate_generator import CandidateGenerator  # noqa: PLC0415 - numpy loads late

            generator = CandidateGenerator(
                *(index, question, request.filters, self._policy),
                has_vectors=vector is not None,
                is_explained=request.explain,
            )
            if vector is None:
                found.collect(generator, None)
            return generator

        generator = await view.search.in_index(scope, generated)
        if generator is not None and vector is not None and self._embedder is not None:
            similarities = await self._compared(view, scope, generator, vector, self._embedder)
            await view.search.in_index(scope, lambda _: found.collect(generator, similarities))
        return generator is not None

    async def _compared(
        self,
        view: ReadView,
        scope: Scope,
        generator: "CandidateGenerator",
        vector: "NDArray[np.float32]",
        embedder: Embedder,
    ) -> "Similarities | None":
        """The similarities of the candidates, to which the nearest records are added; None if none has a vector."""
        fingerprint = embedder.fingerprint
        nearest = await view.vectors.nearest(
            scope, fingerprint, vector, k=self._policy.nearest, among=generator.admissible_keys
        )
        if not nearest:
            return None
        generator.add_nearest([key for key, _ in nearest])
        cosines = await view.vectors.similarities(scope, fingerprint, vector, generator.compared_keys)
        return generator.similarities(cosines, embedder.unrelated) if cosines else None

    async def _vectors(
        self, embedder: Embedder, scope: Scope, question: Question, limit_s: float
    ) -> "tuple[NDArray[np.float32] | None, str | None]":
        """The vectors of all wordings, if the embedder answers in time; else a note on why not."""
        texts = await self._store.read(lambda view: _nameless(view, scope, question.texts))
        try:
            with anyio.fail_after(limit_s):
                return await embedder.embed(texts, is_query=True), None
        except ModelError as error:
            reason = str(error)
        except TimeoutError:
            reason = f"no vector within {self._policy.embedding_timeout_s:g} s; raise search.embedding_timeout_s"
        return None, f"searched by words only: {reason}"

    async def _is_served(self, view: ReadView, dimension: int) -> bool:
        """Whether the active vectors are from our embedder, or there are no vectors yet."""
        active = [index for index in await view.vectors.indexes() if index.is_active]
        ours = None if self._embedder is None else (self._embedder.fingerprint, dimension)
        return not active or (active[0].fingerprint, active[0].dimension) == ours

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


async def _hits(
    view: ReadView, scope: Scope, found: Collector, request: SearchRequest, span: slice
) -> tuple[list[Hit], list[str]]:
    """A span of the hits, and the ids of those that were left out because their rows are damaged."""
    hits = [
        _hit(scored, found.same_ids(scored), project=scope.project, is_explained=request.explain)
        for scored in found.hits[span]
    ]
    damaged = list(await view.records.damaged(scope, [one.record_id for one in hits]))
    intact = [one for one in hits if one.record_id not in damaged]
    return await with_superseded(view, scope, intact), damaged


async def _not_searched(view: ReadView, scope: Scope) -> str | None:
    """What a search of this scope leaves out, and that its project is not known, in words that do not reveal what is
    beyond the limits."""
    if scope.project is None or scope.session is not None:
        return None
    if scope.project == PERSONAL:
        return "no project was searched"
    return "; ".join(filter(None, (await unknown_project(view, scope), "other projects were not searched")))


async def _nameless(view: ReadView, scope: Scope, texts: Sequence[str]) -> Sequence[str]:
    """The texts without the names of the speakers of this memory."""
    from kalito_mcp.retrieval.ranking import without_names  # noqa: PLC0415 - numpy comes with it

    found = await view.search.in_index(scope, lambda index: [without_names(one, index.records) for one in texts])
    return found or texts


def _hit(scored: ScoredCandidate, same: tuple[str, ...], *, project: str | None, is_explained: bool) -> Hit:
    hit = replace(hit_of(scored.candidate, scored.score, project), same=same)
    return replace(hit, parts=scored.parts, why=explain(scored)) if is_explained else hit


def _fingerprint(scope: Scope, request: SearchRequest) -> str:
    filters = request.filters
    bound = (
        *(scope.owner, scope.limits, scope.agent, scope.session, scope.project, request.query, request.other_wordings),
        *(filters.since, filters.until, filters.include_internal, filters.min_importance),
        *map(sorted, (filters.types, filters.roles, filters.names, filters.tags, filters.origins)),
    )
    return blake2b(repr(bound).encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


def _offset(cursor: str | None, fingerprint: str) -> int:
    if cursor is None:
        return 0
    offset, _, of_search = cursor.partition("-")
    if of_search != fingerprint or not (offset.isascii() and offset.isdigit() and len(offset) < 7):  # noqa: PLR2004
        raise InvalidInput("cursor belongs to another search; repeat the search that returned it, or leave it out")
    return int(offset)
