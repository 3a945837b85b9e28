"""Chores of a store: what makes later calls cheaper, and what is left of erased records."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class OwedErasures:
    """Erasures, of all owners, of which something may be left in a file, or in a place outside the store. `last` is the
    number of the newest, 0 without erasures. `text_keys` were passed to `RecordWriter.purge` for them.
    `is_left_elsewhere`: vectors of what is gone are still to be removed outside, which `move_vectors` does."""

    last: int = 0
    text_keys: frozenset[str] = frozenset()
    is_left_elsewhere: bool = False

    @property
    def is_owed(self) -> bool:
        """Whether something may be left."""
        return self.last > 0 or self.is_left_elsewhere


class Maintenance(Protocol):
    """The chores. They work in pieces, between which others read and write.

    Where several processes serve one database, the owed work of an owner belongs to one of them for a while, so that
    two do not do the same. That saves work and protects nothing: a process that goes on after its time is stopped by
    what the transaction of its work compares (`pinned_seq`, the range of a summary, the text of a vector).
    """

    @property
    def lease_s(self) -> float:
        """How long owed work stays with a process that does not go on with it. Infinite if none is shared: then all is
        this process's, and the methods below that claim do nothing."""

    def held(self, owners: Collection[str]) -> Collection[str]:
        """Those of the owners whose sessions this process works for. For an owner without owed work, that is the
        process that writes next."""

    async def claim_owed(self) -> Mapping[str, int]:
        """Owners whose sessions may owe work that this process has to look for, with their revisions: those it wrote
        for since the last call, and some whose process has not gone on in time."""

    async def settle_owed(self, looked_at: Mapping[str, int]) -> None:
        """Report that no session of these owners, as `claim_owed` returned them, owed work. Any process may have what
        is owed next. Who was written for meanwhile is claimed again."""

    async def claim_vectors(self, fingerprint: str, *, limit: int) -> None:
        """Claim the vectors of some owners, which `VectorReader.owed` then returns as claimed."""

    async def tidy(self) -> None:
        """Make later calls cheaper, if that is due. For moments when nobody asks anything: takes some hundredths of a
        second.

        Raises:
            StorageBusy, StorageFull: as `Store.write`; a later call goes on.
        """

    async def rebuild_derived(self) -> None:
        """Derive what an archive put off (see `ArchiveWriter.finish`).

        Raises:
            Conflict: a migration into the store was begun and not finished; nothing was derived.
            StorageBusy: another process held the lock too long; the next start goes on.
        """

    async def owed_erasures(self) -> OwedErasures:
        """The erasures that `finish_erasures` has not finished."""

    async def finish_erasures(self, owed: OwedErasures | None = None) -> Mapping[str, str]:
        """Remove what is left of erased records. Returns the files and places that may still have some of it, each with
        the reason. Takes seconds for a large store.

        `owed` ones are then finished, if everything was cleaned. Pass them only if nothing outside the store still
        quotes them. If another call has finished them, nothing is done. None cleans always, and marks no erasure as
        finished.

        Raises:
            StorageFull, StorageBusy: as `Store.write`; the erasures stay owed.
        """

    async def move_vectors(self, *, is_whole: bool = False) -> bool:
        """Move vectors to where they are kept, if that is outside the store, and remove there what is gone here.
        Returns whether some were missing there; those are owed again.

        Counts are compared when the place comes within reach, and at once if `is_whole`. If no place is configured,
        `is_whole` makes vectors that were moved owed again, to be kept in the store.

        Raises:
            VectorsUnreachable: the place does not answer. What was not moved is still in the store, and what was not
                removed is removed by a later call.
        """
