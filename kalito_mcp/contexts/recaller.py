"""Finds older records that match the user's query, and the messages around them. Reads only."""

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, NamedTuple, TypeVar

from kalito_mcp.contexts.steps import AFTER, ANSWERED_WITHIN, BEFORE
from kalito_mcp.domain.context import Include
from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import Candidate, Hit, SearchFilters, SeenPart
from kalito_mcp.domain.sessions import Session
from kalito_mcp.errors import QueryTooLong
from kalito_mcp.kinds.shared_words import is_hit_withheld
from kalito_mcp.ports.store import ReadView
from kalito_mcp.retrieval.explanation import NOTHING
from kalito_mcp.retrieval.search import Prepared, Searcher

_RELEVANT: Final = frozenset({RecordType.MESSAGE, RecordType.DOCUMENT, RecordType.TASK, RecordType.PIN})
_LEAST_OF_BEST: Final = 0.15
"""The score of a hit, as a share of the best one's, below which it is noise. With 0.45, contexts of 3,000 tokens had
the evidence of 9 in 100 questions of private people less."""

Found = TypeVar("Found", Hit, Candidate)


@dataclass(frozen=True, slots=True)
class Recalled:
    """`hits` are best first. `around` are the messages around them, in no order. `withheld` are the ids of hits left
    out because of their origin, `seen` the ids of hits that the caller sees. `note` says why there are no hits, or what
    could not be searched."""

    hits: Sequence[Hit] = ()
    around: Sequence[Candidate] = ()
    withheld: Sequence[str] = ()
    seen: Sequence[str] = ()
    note: str | None = None


class Query(NamedTuple):
    """A prepared search, and its limits."""

    text: str
    prepared: Prepared
    include: frozenset[Include]
    also: tuple[str, ...] = ()


class Recaller:
    """Finds up to `wanted` hits for a context's query."""

    def __init__(self, searcher: Searcher, *, wanted: int) -> None:
        self._searcher = searcher
        self._wanted = wanted

    async def prepare(
        self, scope: Scope, text: str | None, include: frozenset[Include], also: tuple[str, ...] = ()
    ) -> Query | None:
        """The prepared search, before it reads; None without a query, or if no hits are wanted."""
        request = self._searcher.lenient(text or "", wanted=self._wanted, filters=_filters(include), also=also)
        if request is None:
            return None
        return Query(request.query, await self._searcher.prepare(scope, request), include, request.also)

    async def recall(
        self,
        view: ReadView,
        query: Query,
        scope: Scope,
        session: Session,
        already_shown: Set[str],
        *,
        seen_from: int,
        seen: frozenset[SeenPart] = frozenset(),
    ) -> Recalled:
        """Find the records of the scope that match the query, without those `already_shown`, without the messages of
        the session after `seen_from`, which the caller sees, and without those that are `seen` (`filtering`)."""
        include = query.include
        filters = replace(_filters(include), seen=seen)
        wanted = self._wanted + len(already_shown)
        request = self._searcher.lenient(query.text, wanted=wanted, filters=filters, also=query.also)
        if request is None:
            return Recalled()
        try:
            found = await self._searcher.page(
                view, scope, request, query.prepared, least_share=_LEAST_OF_BEST, has_turns=False
            )
        except QueryTooLong as error:
            return Recalled(note=str(error))

        def is_seen(one: Hit | Candidate) -> bool:
            return one.session_id == session.id and one.seq is not None and one.seq > seen_from

        def is_new(one: Hit | Candidate) -> bool:
            return not is_seen(one) and one.record_id not in already_shown

        unshown = [hit for hit in found.hits if is_new(hit)]
        trusted = [_named(hit, include) for hit in unshown if _is_shown(hit, include)]
        shown = trusted[: self._wanted]
        best = {
            is_own: max((hit.score for hit in shown if (hit.space is None) is is_own), default=0.0)
            for is_own in (True, False)
        }
        hits = [hit for hit in shown if hit.score >= _LEAST_OF_BEST * best[hit.space is None]]
        around = await messages_around(view, scope, hits, filters)
        return Recalled(
            hits=hits,
            around=[_named(one, include) for one in around if is_new(one) and _is_shown(one, include)],
            withheld=[hit.record_id for hit in unshown if not _is_shown(hit, include)],
            seen=[hit.record_id for hit in found.hits if is_seen(hit)],
            note=found.note or (None if found.hits else NOTHING),
        )


async def messages_around(
    view: ReadView, scope: Scope, hits: Sequence[Hit], filters: SearchFilters
) -> Sequence[Candidate]:
    """The messages around the hits that the filters of their search admit, in no order, excluding the hits. Messages of
    the scope's project do not name it."""
    centres = [hit.record_id for hit in hits if hit.seq is not None]
    if not centres:
        return ()
    filters = replace(filters, types=frozenset({RecordType.MESSAGE}))
    from kalito_mcp.retrieval.turns_around import turns_around  # noqa: PLC0415 - numpy loads when first needed

    reach = partial(turns_around, message_ids=centres, filters=filters, before=BEFORE, after=AFTER + ANSWERED_WITHIN)
    found = await view.search.in_index(scope, reach) or ()
    damaged = await view.records.damaged(scope, [one.record_id for one in found])
    return [
        replace(one, project=None) if one.project is not None and one.project == scope.project else one
        for one in found
        if one.record_id not in damaged
    ]


def _filters(include: frozenset[Include]) -> SearchFilters:
    internal = Include.INTERNAL in include
    types = _RELEVANT | {RecordType.THOUGHT} if internal else _RELEVANT
    return SearchFilters(types=types, include_internal=internal)


def _is_shown(one: Hit | Candidate, include: frozenset[Include]) -> bool:
    return Include.UNTRUSTED in include or is_trusted(one)


def _named(one: Found, include: frozenset[Include]) -> Found:
    return one if Include.UNTRUSTED in include else trustily_named(one)


def is_trusted(one: Hit | Candidate) -> bool:
    """Whether its words may be shown to somebody who did not ask for those that are withheld."""
    return not is_hit_withheld(one.origin, one.text, _space_of(one))


def trustily_named(one: Found) -> Found:
    """The same without a name or a title that reads like an instruction."""
    return replace(one, name=None) if one.name and is_hit_withheld(one.origin, one.name, _space_of(one)) else one


def _space_of(one: Hit | Candidate) -> str | None:
    return one.space if isinstance(one, Hit) else None
