"""What a process keeps in memory to search one agent's records. It follows the database by what each view reads."""

from collections.abc import Sequence
from threading import Lock
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kalito_mcp.storage.kept_postings import NOTHING_KEPT, Kept, KeptPostings
from kalito_mcp.storage.postgres.column_rows import AgentOfScope, ColumnReading
from kalito_mcp.storage.record_columns import ColumnArrays, ColumnsState

_COLUMNS: Final = 8
"""Columns of a row that go into the arrays."""


class AgentColumns:
    """The columns of one agent's records, up to a revision of their owner. Shared by the threads of a process, none of
    which waits for the database while it holds the lock: each reads first, and another may have read more meanwhile."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._arrays = ColumnArrays()
        self._kept = KeptPostings()
        self._revision: int | None = None
        """Everything of it and before it is in the columns. None: nothing is."""

    @property
    def revision(self) -> int | None:
        """The owner's revision up to which they are read; None if they are not."""
        return self._revision

    @property
    def nbytes(self) -> int:
        """What they take, with the terms that are kept."""
        return self._arrays.nbytes + self._kept.nbytes

    def current(self, agent: AgentOfScope, reading: ColumnReading | None) -> ColumnsState | None:
        """The columns as the view has them that found the agent and has read this, or newer. None if that is not
        enough: everything is to be read."""
        with self._lock:
            known = self._revision
            if known is None or known < agent.revision:
                if reading is None or not self._apply(agent, reading):
                    return None
                self._revision = known = agent.revision
            is_newest = known == agent.revision
            last_key = self._arrays.last_key if is_newest else agent.last_key
            return self._arrays.state(last_key, is_newest=is_newest)

    def place_table(self, state: ColumnsState) -> NDArray[np.int32] | None:
        """For `places_of`."""
        with self._lock:
            return self._arrays.place_table(state)

    def kept(self, marked: Sequence[str], state: ColumnsState) -> list[Kept]:
        """What is kept of the places of terms, for these columns."""
        with self._lock:
            is_same = state.generation == self._arrays.generation
            return [self._kept.get(one) if is_same else NOTHING_KEPT for one in marked]

    def keep(self, marked: str, before: Kept, places: NDArray[np.int32], state: ColumnsState) -> None:
        """Keep all places of a term in these columns, of which `before` was kept."""
        with self._lock:
            if state.generation == self._arrays.generation:  # no other thread has seen a change
                self._kept.keep(marked, before, Kept(places, state.last_key), records=self._arrays.count)

    def _apply(self, agent: AgentOfScope, reading: ColumnReading) -> bool:
        """Add a reading that is newer than the columns. Whether it could be added."""
        arrays, rows, known = self._arrays, reading.rows, self._revision
        if reading.since is None:
            self._revision = None  # in case that a row is damaged
            arrays.clear()
            self._kept.clear()
        elif known is None or known < max(reading.since, agent.reindexed_revision):
            return False
        else:
            last_key = arrays.last_key
            older = [row[:_COLUMNS] for row in rows if row[0] <= last_key and row[-1] > known]
            removed = [key for key, revision in reading.removed if revision > known]
            if older or removed:
                self._kept.clear()
                if not arrays.change([*(row[0] for row in older), *removed], older):
                    self._revision = None
                    return False
            rows = [row for row in rows if row[0] > last_key]
        if rows:
            arrays.append([row[:_COLUMNS] for row in rows])
        arrays.name_sessions({row[4]: row[_COLUMNS] for row in reading.rows if row[_COLUMNS] is not None})
        return True
