"""What is known of the person and of the project, for every context. Reads only."""

import logging
from collections.abc import Sequence
from typing import Final, NamedTuple

from kalito_mcp.contexts.cache import CachePolicy, RevisionCache
from kalito_mcp.domain.context import Include
from kalito_mcp.domain.known import KnownRecord
from kalito_mcp.domain.records import SemanticPin
from kalito_mcp.domain.scope import PERSONAL, Scope
from kalito_mcp.domain.search import Hit
from kalito_mcp.domain.sessions import Session
from kalito_mcp.errors import StorageDamaged
from kalito_mcp.pins.known import known_records
from kalito_mcp.pins.repeats import superseded, without_repeats
from kalito_mcp.ports.clock import Clock
from kalito_mcp.ports.store import Store
from kalito_mcp.safety.trust import is_withheld

_log: Final = logging.getLogger("kalito.known")
_MOST_READ: Final = 200
"""The most important ones. Others are found by a search, like any record."""

_SURE_FROM: Final = 0.75
"""The importance of what does most harm when it is forgotten: what somebody asked to pin, health, names."""


class Known(NamedTuple):
    """What a context may show, most important first, and the ids of what must not be shown: `superseded` by a newer
    statement, or `withheld` because of their origin."""

    records: Sequence[KnownRecord] = ()
    superseded: frozenset[str] = frozenset()
    withheld: frozenset[str] = frozenset()


class Chosen(NamedTuple):
    """What a context shows of it, the first `sure` of them before further matches, and the hits that are left."""

    records: Sequence[KnownRecord]
    sure: int
    hits: Sequence[Hit]


class KnownReader:
    """Reads what is known, and keeps it until a process writes."""

    def __init__(self, store: Store, clock: Clock, cache: CachePolicy) -> None:
        self._store = store
        self._clock = clock
        self._cache: RevisionCache[tuple[Scope, frozenset[Include]], Known] = RevisionCache(cache)

    async def read(self, session: Session, project: str | None, include: frozenset[Include]) -> Known:
        """What is known to the session's agent, in this project, or else in that of the session."""
        scope = Scope(session.owner, session.agent, project=project or session.project or PERSONAL)
        revision, now_s = await self._store.revision(), self._clock.steady_s()
        found = self._cache.get((scope, include), revision=revision, now_s=now_s)
        if found is None:
            found = await self._read(scope, include)
            self._cache.put((scope, include), found, revision=revision, now_s=now_s)
        return found

    async def _read(self, scope: Scope, include: frozenset[Include]) -> Known:
        try:
            async with self._store.read() as view:
                records = await known_records(
                    view, scope, limit=_MOST_READ, include_internal=Include.INTERNAL in include
                )
        except StorageDamaged:
            # A damaged page must not stop a conversation; `doctor --deep` names it.
            _log.exception("what is known of the person and the project could not be read")
            return Known()
        older = superseded(records)
        withheld = frozenset(
            one.record_id for one in records if Include.UNTRUSTED not in include and is_withheld(one.origin, one.text)
        )
        shown = [one for one in records if one.record_id not in older and one.record_id not in withheld]
        return Known(shown, older, withheld)


def choose(known: Known, hits: Sequence[Hit], pins: Sequence[SemanticPin], *, most: int) -> Chosen:
    """Choose what to show: at most so many that match the query, best first, then as many of the most important.

    Left out is what the session's pins show already, and what repeats another, also among the hits.
    """
    by_id = {one.record_id: one for one in known.records}
    matching = [by_id[hit.record_id] for hit in hits if hit.record_id in by_id]
    shown = [pin.content for pin in pins]
    best = without_repeats(matching, shown, most=most)
    others = [one for one in known.records if one not in matching[:most]]
    more = without_repeats(others, [*shown, *(one.text for one in best)], most=most)
    records = [*best, *more]
    unshown = without_repeats(matching, [*shown, *(one.text for one in records)], most=len(matching))
    repeated = {one.record_id for one in matching} - {one.record_id for one in unshown}
    is_sure = [place < len(best) or one.importance >= _SURE_FROM for place, one in enumerate(records)]
    return Chosen(records, [*is_sure, False].index(False), [hit for hit in hits if hit.record_id not in repeated])
