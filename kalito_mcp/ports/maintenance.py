"""Chores of a store: what makes later calls cheaper, and what is left of erased records. A store without chores does
nothing here."""

from collections.abc import Mapping
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
    """The chores. They work in pieces, between which others read and write."""

    async def tidy(self) -> None:
        """Make later calls cheaper, if that is due. For moments when nobody asks anything: takes some hundredths of a
        second.

        Raises:
            StorageBusy, StorageFull: as `Store.write`; a later call goes on.
        """

    async def rebuild_derived(self) -> None:
        """Derive what an archive put off (see `ArchiveWriter.finish`).

        Raises:
            StorageBusy: another process held the lock too long; the next start goes on.
        """

    async def owed_erasures(self) -> OwedErasures:
        """The erasures that `finish_erasures` has not finished."""

    async def finish_erasures(self, owed: OwedErasures | None = None) -> Mapping[str, str]:
        """Remove what is left of erased records. Returns the files and places that may still have some of it, each with
        the reason. Takes seconds for a large store.

        Those in `owed` are finished then, if all could be cleaned. Pass it only if nothing outside the store still
        quotes them. If another call has finished them, nothing is done. None always cleans, and finishes none.

        Raises:
            StorageFull, StorageBusy: as `Store.write`; the erasures stay owed.
        """

    async def move_vectors(self, *, is_whole: bool = False) -> bool:
        """Move vectors to where they are kept, if that is outside the store, and remove there what is gone here.
        Whether some were missing there, so that they are owed again.

        It compares how many there are here and there when the place came within reach, and `is_whole` at once. If no
        place is configured, `is_whole` makes vectors that were moved owed again, to be kept in the store.

        Raises:
            VectorsUnreachable: the place does not answer. What was not moved is still in the store, and what was not
                removed is removed by a later call.
        """
