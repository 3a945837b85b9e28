"""Keeps which of an agent's records contain the last terms, within a bound of memory. Its users' lock makes it safe for
threads."""

from collections import OrderedDict
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

_KEPT_BYTES: Final = 48_000_000
_KEPT_BYTES_OF_RECORD: Final = 128
"""The number of places kept for one agent's terms: a minimum, and a number for each of its records."""

_ENTRY_BYTES: Final = 300
"""Of a term without places, about."""


class Kept(NamedTuple):
    """The records with a term, up to a key."""

    places: NDArray[np.int32]
    last_key: int

    @property
    def size(self) -> int:
        """In bytes."""
        return self.places.nbytes + _ENTRY_BYTES


NOTHING_KEPT: Final = Kept(np.empty(0, np.int32), 0)


class KeptPostings:
    """The places of the last terms, by marked term (see `text_index`)."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self.nbytes = 0
        """What is kept."""

    def clear(self) -> None:
        """Forget all: a record has changed."""
        self._kept.clear()
        self.nbytes = 0

    def get(self, marked: str) -> Kept:
        """What is kept of a term."""
        found = self._kept.get(marked, NOTHING_KEPT)
        if found is not NOTHING_KEPT:
            self._kept.move_to_end(marked)
        return found

    def keep(self, marked: str, before: Kept, now: Kept, *, records: int) -> None:
        """Keep more of a term, of which `before` was kept; not if another thread was faster. `records` are the
        agent's."""
        if self._kept.get(marked, NOTHING_KEPT) is not before:
            return
        self._kept[marked] = now
        self._kept.move_to_end(marked)
        self.nbytes += now.size - (0 if before is NOTHING_KEPT else before.size)
        most = max(_KEPT_BYTES, _KEPT_BYTES_OF_RECORD * records)
        while self.nbytes > most:
            _, dropped = self._kept.popitem(last=False)
            self.nbytes -= dropped.size
