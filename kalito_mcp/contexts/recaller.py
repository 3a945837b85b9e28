"""Older records that match what the user asks now, and the turns they were said in. Reads only."""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Final

from kalito_mcp.domain.context import Include
from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import Candidate, Hit, SearchFilters
from kalito_mcp.domain.sessions import Session
from kalito_mcp.ports.store import Store
from kalito_mcp.retrieval.search import Searcher
from kalito_mcp.safety.trust import is_withheld

_RELEVANT: Final = frozenset({RecordType.MESSAGE, RecordType.DOCUMENT, RecordType.TASK, RecordType.PIN})
_NOTHING: Final = "nothing matches this query"


@dataclass(frozen=True, slots=True)
class Recalled:
    """`hits` best first; `neighbours` are the messages right before and after them, in no order. `withheld` is how many
    hits are left out because of where they came from. `note` says why there is nothing, or what could not be asked."""

    hits: Sequence[Hit] = ()
    neighbours: Sequence[Candidate] = ()
    withheld: int = 0
    note: str | None = None


class Recaller:
    """Finds what a context shows for a query, up to `wanted` hits."""

    def __init__(self, store: Store, searcher: Searcher, *, wanted: int) -> None:
        self._store = store
        self._searcher = searcher
        self._wanted = wanted

    async def recall(self, session: Session, query: str, in_sight: Set[str], include: frozenset[Include]) -> Recalled:
        """What of the session's agent matches the query, without what is `in_sight`, which the model gets anyway."""
        if not self._wanted:
            return Recalled()
        scope = Scope(owner=session.owner, agent=session.agent)
        is_internal_asked = Include.INTERNAL in include
        found = await self._searcher.search_leniently(
            scope,
            query,
            wanted=self._wanted + len(in_sight),
            filters=SearchFilters(
                types=_RELEVANT | {RecordType.THOUGHT} if is_internal_asked else _RELEVANT,
                include_internal=is_internal_asked,
            ),
        )
        older = [hit for hit in found.hits if hit.record_id not in in_sight]
        trusted = [hit for hit in older if _is_shown(hit, include)]
        hits = trusted[: self._wanted]
        neighbours = await self._neighbours(scope, hits, is_internal_asked=is_internal_asked)
        return Recalled(
            hits=hits,
            neighbours=[one for one in neighbours if one.record_id not in in_sight and _is_shown(one, include)],
            withheld=len(older) - len(trusted),
            note=found.note or (None if found.hits else _NOTHING),
        )

    async def _neighbours(self, scope: Scope, hits: Sequence[Hit], *, is_internal_asked: bool) -> Sequence[Candidate]:
        """The messages directly before and after the hits, excluding the hits. Two statements for all sessions."""
        centres = [hit.key for hit in hits if hit.seq is not None]
        if not centres:
            return ()
        filters = SearchFilters(types=frozenset({RecordType.MESSAGE}), include_internal=is_internal_asked)
        async with self._store.read() as view:
            stubs = await view.search.candidate_stubs(scope, (), centres, reach=1, filters=filters)
            neighbours = sorted({stub.key for stub in stubs} - set(centres))
            found = await view.search.candidates(scope, neighbours, filters)
            damaged = await view.records.damaged([one.record_id for one in found])
            return [one for one in found if one.record_id not in damaged]


def _is_shown(one: Hit | Candidate, include: frozenset[Include]) -> bool:
    return Include.UNTRUSTED in include or not is_withheld(one.origin, one.text)
