"""What a process keeps in memory to search one agent's records: their columns, as arrays by place. Runs no SQL.

A store feeds it with rows, and says when a row has changed. Views that are older than the columns use the same arrays,
and see only the records that they have themselves.
"""

import json
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kalito_mcp.domain.records import RecordType
from kalito_mcp.ports.search import RecordColumns
from kalito_mcp.storage.intact_rows import intact_rows
from kalito_mcp.storage.packed_columns import TYPE_CODES, shifts

_NONE: Final = -1
_LEAST_CAPACITY: Final = 256
_SPARSE: Final = 8
"""Keys of the database for one of the agent, from which on no table of places is kept."""

_DTYPES: Final[Mapping[str, Any]] = {
    "keys": np.int64,
    "sessions": np.int32,
    "projects": np.int32,
    "created_at": np.int64,
    "importance": np.float64,
    "names": np.int32,
    "word_counts": np.int32,
    "next_turns": np.int32,
    "previous_turns": np.int32,
    "types": np.uint8,
    "roles": np.uint8,
    "origins": np.uint8,
    "is_internal": np.bool_,
    "is_shown": np.bool_,
}
Row = Sequence[Any]
"""Key, created_at, `packed_columns`, importance, session's key, name, tags as JSON, project's key."""


class ColumnsState(NamedTuple):
    """The columns for one view, and the key of each record. `last_key` is the greatest key that the view may have. What
    is kept of places belongs to these columns only if their `generation` is the same; -1 if the view is older."""

    columns: RecordColumns
    keys: NDArray[np.int64]
    last_key: int
    generation: int


def places_of(keys: NDArray[np.int64], state: ColumnsState, table: NDArray[np.int32] | None) -> NDArray[np.int32]:
    """The places of these keys, in their order. Left out are those that the columns lack: an older view still has
    records that are erased since, and a damaged index makes some up."""
    if table is None:
        places = np.searchsorted(state.keys, keys)
        is_known = places < len(state.keys)
        is_known[is_known] = state.keys[places[is_known]] == keys[is_known]
        return places[is_known].astype(np.int32)
    found = table[keys[(keys > 0) & (keys < len(table))]]
    return found[(found >= 0) & (found < state.columns.count)]


class ColumnArrays:
    """The columns of one agent's records. Only its users' lock makes it safe for threads; what it returns is."""

    def __init__(self) -> None:
        self.generation = 0
        """How often records have changed that are in the columns."""
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.generation += 1
        self.count = 0
        self._arrays: dict[str, NDArray[Any]] = {name: np.empty(0, dtype) for name, dtype in _DTYPES.items()}
        self._names: dict[str | None, int] = {None: 0}
        self._name_list: list[str | None] = [None]
        self._sessions: dict[int, int] = {}
        """The number of each session, by key."""
        self._sessions_by_id: dict[str, int] = {}
        self._tags: dict[int, Set[str]] = {}
        self._place_of: NDArray[np.int32] | None = np.empty(0, np.int32)
        """The place of each key; None if too few keys are this agent's."""
        self._last_turns: dict[int, int] = {}
        """The place of the last message of each session."""

    def state(self, last_key: int, *, is_newest: bool) -> ColumnsState:
        """The columns for a view that may have records up to this key. `is_newest`: they are not newer than the
        view. The sessions must have their ids."""
        known = self._arrays["keys"][: self.count]
        count = (
            int(np.searchsorted(known, last_key, side="right")) if self.count and known[-1] > last_key else self.count
        )
        arrays = {name: values[:count] for name, values in self._arrays.items()}
        keys = arrays.pop("keys")
        columns = RecordColumns(
            session_numbers=self._sessions_by_id, name_list=self._name_list, tags=self._tags, **arrays
        )
        return ColumnsState(columns, keys, last_key, self.generation if is_newest else _NONE)

    @property
    def nbytes(self) -> int:
        """What the arrays take."""
        return sum(one.nbytes for one in self._arrays.values()) + (
            0 if self._place_of is None else self._place_of.nbytes
        )

    @property
    def last_key(self) -> int:
        """The key of the last record; 0 without records."""
        return int(self._arrays["keys"][self.count - 1]) if self.count else 0

    def word_count(self, first: int) -> int:
        """The words of the records from this place on."""
        return int(self._arrays["word_counts"][first : self.count].sum())

    def sessions_without_id(self) -> list[int]:
        """The keys of the sessions that have no id yet."""
        return list(self._sessions)[len(self._sessions_by_id) :]

    def name_sessions(self, ids: Mapping[int, str]) -> None:
        """Give all sessions without an id theirs, by key."""
        self._sessions_by_id |= {ids.get(key, ""): self._sessions[key] for key in self.sessions_without_id()}

    def place_table(self, state: ColumnsState) -> NDArray[np.int32] | None:
        """For `places_of`: the place of each key, if the columns are those of the state, and enough keys are this
        agent's."""
        return self._place_of if state.generation == self.generation else None

    def change(self, keys: Iterable[int], rows: Iterable[Row]) -> bool:
        """Write the rows of records that have changed. `keys` are theirs, and those of records that the agent no longer
        has. False, and everything is forgotten, if a record between the others is new."""
        self.generation += 1
        found = {row[0]: row for row in rows}
        known = self._arrays["keys"][: self.count]
        self._arrays = {name: values.copy() for name, values in self._arrays.items()}
        self._tags = dict(self._tags)
        for key in keys:
            place = int(np.searchsorted(known, key))
            if place == self.count or known[place] != key:
                if key in found:  # it was another agent's
                    self.clear()
                    return False
                continue
            if key not in found:
                self._arrays["is_shown"][place] = False
                continue
            self._put(place, [found[key]])
        return True

    def append(self, rows: Sequence[Row]) -> None:
        """Add rows after all others, by key."""
        first, count = self.count, self.count + len(rows)
        capacity = len(self._arrays["keys"])
        if count > capacity:
            capacity = max(_LEAST_CAPACITY, 2 * capacity, count)
            for name, values in self._arrays.items():
                grown = np.empty(capacity, values.dtype)
                grown[:first] = values[:first]
                self._arrays[name] = grown
        self._tags = dict(self._tags)  # another thread may be going through them
        self._put(first, rows)
        self._place(first, count)
        # Threads that use the arrays know fewer records. They read a turn after their last one as none.
        self._link(first, count)
        self.count = count

    def _put(self, first: int, rows: Sequence[Row]) -> None:
        """Write the rows from this place on, without the links between turns."""
        end = first + len(rows)
        keys, created_at, packed, importance, sessions, names, tags, projects = zip(*rows, strict=True)
        numbers = self._sessions
        with intact_rows():
            codes = np.array(packed, np.int64)
            values: dict[str, Any] = {
                "keys": keys,
                "created_at": created_at,
                "importance": importance,
                "sessions": [_NONE if key is None else numbers.setdefault(key, len(numbers)) for key in sessions],
                "projects": [_NONE if key is None else key for key in projects],
                "names": [0 if name is None else self._name(name) for name in names],
            }
            for name, shift, mask in shifts():
                values[name] = (codes >> shift) & mask
            for name, of_rows in values.items():
                self._arrays[name][first:end] = of_rows
            for place, listed in enumerate(tags, first):
                if listed is not None:
                    self._tags[place] = frozenset(json.loads(listed))
                elif self._tags:
                    self._tags.pop(place, None)

    def _place(self, first: int, count: int) -> None:
        """Note the places of new keys."""
        keys, places = self._arrays["keys"][first:count], self._place_of
        last = int(keys[-1])
        if places is None or last > _SPARSE * count + _LEAST_CAPACITY:
            self._place_of = None
            return
        if last >= len(places):
            places = np.full(2 * last, _NONE, np.int32)
            places[self._arrays["keys"][:first]] = np.arange(first)
            self._place_of = places
        places[keys] = np.arange(first, count)

    def _name(self, name: str | None) -> int:
        place = self._names.get(name)
        if place is None:
            place = self._names[name] = len(self._name_list)
            self._name_list.append(name)
        return place

    def _link(self, first: int, end: int) -> None:
        """Link the messages to those before and after them. In a session, later messages have greater keys."""
        following, preceding = self._arrays["next_turns"], self._arrays["previous_turns"]
        following[first:end] = preceding[first:end] = _NONE
        turns = first + np.flatnonzero(self._arrays["types"][first:end] == TYPE_CODES[RecordType.MESSAGE])
        turns = turns[np.argsort(self._arrays["sessions"][turns], kind="stable")]
        sessions = self._arrays["sessions"][turns]
        is_same = sessions[1:] == sessions[:-1]
        preceding[turns[1:][is_same]] = turns[:-1][is_same]
        following[turns[:-1][is_same]] = turns[1:][is_same]
        last = self._last_turns
        for at in np.flatnonzero(np.diff(sessions, prepend=-2)).tolist():
            before = last.get(int(sessions[at]))
            if before is not None:
                preceding[turns[at]] = before
                following[before] = turns[at]
        for at in np.flatnonzero(np.diff(sessions, append=-2)).tolist():
            last[int(sessions[at])] = int(turns[at])
