"""Erases records for good: from the database, from everything derived from them, and from the files.

The transaction that erases also notes that the files must be swept, and which vectors outside them must go. So an
interrupted purge is finished later: by the next purge, or in the background after the memory is next opened or written
to.
"""

import logging
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

import anyio
import anyio.to_thread

from kalito_mcp.domain.erasing import PurgeReport
from kalito_mcp.domain.memory_records import MemoryRecord, StoredEdit, texts_ever
from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import LOCAL_OWNER, NO_LIMITS, Scope
from kalito_mcp.domain.spaces import SharedCopy, space_of, space_owner
from kalito_mcp.editing.cascade import Cascade, CascadeResult, CascadeTransaction
from kalito_mcp.editing.plans import again_if_overtaken, planned_erasure
from kalito_mcp.editing.snapshot_eraser import SnapshotEraser
from kalito_mcp.editing.writing import erase_record
from kalito_mcp.errors import RecordErased, VectorsUnreachable
from kalito_mcp.ports.clock import Clock
from kalito_mcp.ports.store import ReadView, Store
from kalito_mcp.records.historian import get_record, get_records
from kalito_mcp.runtime.crash_points import crash_point
from kalito_mcp.runtime.long_texts import read_aside

_log: Final = logging.getLogger("kalito.erasing")
_SNAPSHOTS: Final = "the snapshots"
_LOOK_PAUSE_S: Final = 1.0
_MOST_PAUSE_S: Final = 300.0


class Eraser:
    """The only way to erase records."""

    def __init__(
        self,
        store: Store,
        cascade: Cascade,
        snapshots: SnapshotEraser,
        clock: Clock,
        *,
        erase_events: Callable[[Collection[str]], None] = lambda _: None,
        forget_judged: Callable[[], None] = lambda: None,
        elsewhere: Sequence[str] = (),
    ) -> None:
        self._store = store
        self._cascade = cascade
        self._snapshots = snapshots
        self._clock = clock
        self._erase_events = erase_events
        """Deletes unrecorded reports of hooks that contain one of these texts."""
        self._forget_judged = forget_judged
        """Drops the vectors of sentences that are kept in memory."""
        self.elsewhere = tuple(elsewhere)
        """Where else what was erased may be, in words."""
        self._sweeping = anyio.Lock()
        self._next_look_s = -math.inf
        self._pause_s = _LOOK_PAUSE_S
        """After a sweep that left something owed."""

    async def purge(
        self, scope: Scope, record_ids: Sequence[str], in_spaces: Iterable[tuple[Scope, Sequence[str]]] = ()
    ) -> PurgeReport:
        """Erase the records of these ids, everything derived from them, and their copies in spaces; and `in_spaces`
        records there. A document's id erases all its parts; an erased record's id is accepted.

        Each record is erased in its own transaction; the files are swept once, at the end. An interrupted purge may
        have erased only some of the records; its sweep is finished later.

        Raises:
            RecordNotFound: an id is unknown; nothing was erased.
            StorageFull, StorageBusy: the records are erased, but the files are not swept yet.
        """
        erased: list[str] = []
        rewritten: list[str] = []
        texts: list[str] = []
        looked_up = [(where, *await self._look_up(where, ids)) for where, ids in ((scope, record_ids), *in_spaces)]
        for where, found, erased_before in looked_up:
            gone = [*erased_before]
            # Copies go first: if this is interrupted, the record is still there to be erased again.
            named = [one for target in found for one in await self._with_derived(target)]
            copies = await self.purge_copies(where.owner, named)
            for target in found:
                if target.id in gone:
                    continue
                gone.append(target.id)
                texts.append(target.text)
                # It is erased already as a copy of one before, or by somebody else. Within limits that is not known.
                with suppress(RecordErased):
                    derived = await self._purge_one(Scope(where.owner), target.id)
                    gone += derived.erased
                    named += derived.rewritten
                    rewritten += [one for one in derived.rewritten if one not in rewritten]
            # Once more, because somebody may have shared it meanwhile, or an earlier call was interrupted.
            copies = [*copies, *await self.purge_copies(where.owner, [*gone, *named])]
            erased += [*gone, *(copy.record_id for copy in copies)]
        crash_point("purge.erased")
        await anyio.to_thread.run_sync(self._erase_events, texts)
        swept = await self.sweep(scope)
        return PurgeReport(
            erased=tuple(dict.fromkeys(erased)),
            rewritten=(*rewritten, *swept.rewritten),
            remaining=swept.remaining,
            is_owed=swept.is_owed,
            elsewhere=self.elsewhere,
        )

    async def _look_up(self, scope: Scope, record_ids: Sequence[str]) -> tuple[list[MemoryRecord], list[str]]:
        """The records of these ids, and the ids of those that were erased before."""

        async def look(view: ReadView) -> tuple[list[MemoryRecord], list[str]]:
            found: list[MemoryRecord] = []
            erased: list[str] = []
            for record_id in record_ids:
                try:
                    found += await get_records(view.records, scope, record_id)
                except RecordErased as error:
                    erased.append(error.record_id)
            return found, erased

        return await self._store.read(look)

    async def _with_derived(self, record: MemoryRecord) -> list[str]:
        """The ids of a record, of the pins that are erased with it, and of the summaries that may tell of it."""
        if record.type not in (RecordType.MESSAGE, RecordType.SUMMARY):
            return [record.id]

        async def look(view: ReadView) -> list[MemoryRecord]:
            pins = await view.records.pins_of(record) if record.type is RecordType.MESSAGE else ()
            return [*pins, *await view.records.summaries_over(record)]

        return [record.id, *(one.id for one in await self._store.read(look))]

    async def purge_copies(self, user: str, record_ids: Sequence[str] | None = None) -> Sequence[SharedCopy]:
        """Erase the copies of these records in spaces, or of all of a user's. The files are not swept."""
        copies = await self._store.read(lambda view: view.spaces.copies(user, record_ids))
        for copy in copies:
            with suppress(RecordErased):
                await self._purge_one(Scope(space_owner(copy.space)), copy.record_id)
        return copies

    @again_if_overtaken
    async def _purge_one(self, scope: Scope, record_id: str) -> CascadeResult:
        async def look(view: ReadView) -> tuple[MemoryRecord, Sequence[StoredEdit]]:
            seen = await get_record(view.records, scope, record_id)
            return seen, await view.records.edits(seen)

        seen, edits = await self._store.read(look)
        chars = sum(map(len, texts_ever(seen, edits)))
        texts = await read_aside(chars, lambda: planned_erasure(seen, edits))
        plan = await self._cascade.prepare_erasing(scope, seen, texts.canonical_keys)

        async def purge(transaction: CascadeTransaction, record: MemoryRecord) -> CascadeResult:
            derived = await self._cascade.apply(transaction, before=record, after=None)
            await erase_record(
                transaction.records,
                scope.owner,
                record,
                texts,
                now_ms=self._clock.now_ms(),
                text_keys=derived.erased_keys or texts.canonical_keys,
            )
            if (space := space_of(scope.owner)) is not None:
                await transaction.transaction.spaces.remove_copies(space, [record.id])
            return derived

        return await self._cascade.change(plan, purge)

    async def sweep(self, scope: Scope | None = None) -> PurgeReport:
        """Clean the snapshots and the database file of everything erased so far. The report names the snapshots that
        the scope reaches."""
        async with self._sweeping:
            chores = self._store.maintenance
            owed = await chores.owed_erasures()
            by_owner = await self._snapshots.erase(owed.text_keys)
            crash_point("purge.snapshots")
            self._forget_judged()
            left = await chores.finish_erasures(None if any(one.is_owed for one in by_owner.values()) else owed)
            snapshots = _visible_to(by_owner, scope or Scope())
            is_owed = (await chores.owed_erasures()).is_owed
            return PurgeReport((), snapshots.rewritten, {**snapshots.remaining, **left}, is_owed=is_owed)

    async def finish(self) -> float:
        """Sweep if a purge was interrupted. Looks at most once a second. After a sweep that left something owed, such
        as what was erased meanwhile, it looks again after two seconds, then after four, and so on up to five minutes.

        Returns the seconds after which to call it again even if nothing is written; infinity if nothing is owed.

        Raises:
            StorageError: the files could not be cleaned; the sweep is still owed.
        """
        now_s = self._clock.steady_s()
        if now_s < self._next_look_s:
            return self._next_look_s - now_s
        self._next_look_s = now_s + _LOOK_PAUSE_S
        chores = self._store.maintenance
        if self._sweeping.locked() or not (owed := await chores.owed_erasures()).is_owed:
            return math.inf
        self._pause_s = min(2 * self._pause_s, _MOST_PAUSE_S)
        try:
            if owed.last:
                await self.sweep()
            else:
                await chores.move_vectors()
        except VectorsUnreachable:
            # A place that could not be reached is in the log.
            _log.debug("vectors of erased or changed records remain to be removed", exc_info=True)
        finally:
            self._next_look_s = self._clock.steady_s() + self._pause_s
        if (await chores.owed_erasures()).is_owed:
            return self._pause_s
        self._pause_s = _LOOK_PAUSE_S
        return math.inf


def _visible_to(by_owner: Mapping[str, PurgeReport], scope: Scope) -> PurgeReport:
    """The part of the report about snapshots that a caller may see: its own, or all for the machine's owner. A caller
    with limits only sees whether all could be cleaned, because snapshots cover all projects."""
    visible = [one for owner, one in by_owner.items() if scope.owner in (owner, LOCAL_OWNER)]
    remaining = {place: why for one in visible for place, why in one.remaining.items()}
    if scope.limits != NO_LIMITS:
        some = {_SNAPSHOTS: "some could not be cleaned; a token without limits names them"}
        return PurgeReport((), (), some if remaining else {})
    return PurgeReport((), tuple(name for one in visible for name in one.rewritten), remaining)
