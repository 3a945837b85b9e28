"""What a process keeps in memory to search one agent's records: their columns, and which contain the last terms.

Both follow the database: a view first reads what is new since the last one. The columns may be newer than the view that
uses them, never older; then it sees only those records that it has itself.
"""

import json
import sqlite3
from collections import OrderedDict
from collections.abc import Mapping, Sequence, Set
from threading import Lock
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kalito_mcp.domain.records import Origin, RecordType, Role, origin_of_role
from kalito_mcp.ports.search import RecordColumns
from kalito_mcp.storage.intact_rows import intact_rows
from kalito_mcp.storage.sqlite.recent_terms import RecentTerms

# The greatest key of a record that was ever used, and the number of the last change.
SELECT_STATE: Final = """
SELECT coalesce(max(CASE WHEN name = 'records' THEN seq END), 0),
    coalesce(max(CASE WHEN name = 'record_changes' THEN seq END), 0)
FROM sqlite_sequence WHERE name IN ('records', 'record_changes')
"""
SELECT_CHANGES: Final = "SELECT record_key FROM record_changes WHERE number > :number"


def _cases(column: str, codes: Mapping[str, int], otherwise: str) -> str:
    cases = " ".join(f"WHEN '{value}' THEN {code}" for value, code in codes.items())
    return f"CASE {column} {cases} {otherwise} END"


_TYPES: Final = {str(one): code for code, one in enumerate(RecordType)}
_ROLES: Final = {str(one): code for code, one in enumerate(Role)}
_ORIGINS: Final = {str(one): code for code, one in enumerate(Origin)}
_ORIGINS_OF_ROLES: Final = {str(role): _ORIGINS[str(origin_of_role(role))] for role in Role}
_ASSISTANT: Final = _ORIGINS[str(Origin.ASSISTANT)]
# Small columns come packed into one number: a row with few values is read much faster. A type that does not exist, in
# a damaged row, gets a number that no filter asks for.
_PACKED: Final = {
    "types": (3, _cases("r.type", _TYPES, f"ELSE {len(RecordType)}")),
    "roles": (2, _cases("r.role", _ROLES, f"ELSE {len(Role)}")),
    "origins": (
        3,
        f"coalesce({_cases('r.origin', _ORIGINS, '')}, {_cases('r.role', _ORIGINS_OF_ROLES, f'ELSE {_ASSISTANT}')})",
    ),
    "is_internal": (1, "r.is_internal"),
    "is_shown": (1, "(r.deleted_at IS NULL)"),
    "word_counts": (32, "coalesce(s.word_count, 0)"),
}
"""Bits and expression of each, lowest bits first."""


def _packed() -> str:
    shift, parts = 0, []
    for bits, expression in _PACKED.values():
        parts.append(f"({expression} << {shift})")
        shift += bits
    return " + ".join(parts)


_COLUMNS: Final = f"""
SELECT r.key, r.created_at, {_packed()}, r.importance, r.session_key, r.name, r.tags, r.project_key
FROM records r INDEXED BY records_columns LEFT JOIN record_shapes s ON s.record_key = r.key
"""
SELECT_NEW_COLUMNS: Final = f"{_COLUMNS} WHERE r.agent_key = :agent_key AND r.key > :after_key ORDER BY r.key"
SELECT_CHANGED_COLUMNS: Final = f"""
{_COLUMNS} WHERE r.agent_key = :agent_key AND r.key IN (SELECT value FROM json_each(:keys)) ORDER BY r.key
"""
SELECT_SESSION_IDS: Final = "SELECT key, id FROM sessions WHERE key IN (SELECT value FROM json_each(:keys))"
# As one text: numpy parses it faster than rows.
SELECT_KEYS: Final = (
    "SELECT group_concat(rowid) FROM records_text WHERE records_text MATCH :term AND rowid > :after_key"
)
_NONE: Final = -1
_LOST: Final = 0
"""Instead of a key, among the changes: everything may have changed."""

_ROWS_AT_ONCE: Final = 20_000
"""A row takes 0.5 KB until it is in the arrays."""

_LEAST_CAPACITY: Final = 256
_SPARSE: Final = 8
"""Keys of the database for one of the agent, from which on no table of places is kept."""

_KEPT_BYTES: Final = 48_000_000
_KEPT_BYTES_OF_RECORD: Final = 128
"""The number of places kept for one agent's terms: a minimum, and a number for each of its records."""

_ENTRY_BYTES: Final = 300
"""Of a term without places, about."""

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
_Row = Sequence[Any]


class _Kept(NamedTuple):
    """The records with a term, up to a key."""

    places: NDArray[np.int32]
    last_key: int

    @property
    def size(self) -> int:
        return self.places.nbytes + _ENTRY_BYTES


_NOTHING: Final = _Kept(np.empty(0, np.int32), 0)


class ColumnsState(NamedTuple):
    """The columns for one view, and the key of each record. `last_key` is the greatest key that the view may have. Kept
    places belong to these columns only if their `generation` is the same."""

    columns: RecordColumns
    keys: NDArray[np.int64]
    last_key: int
    generation: int


class AgentColumns:
    """The columns of one agent's records. Shared by the threads of a process."""

    def __init__(self, agent_key: int) -> None:
        self._agent_key = agent_key
        self._lock = Lock()
        self._last_change = 0
        self._generation = 0
        """How often records have changed that are in the columns."""
        self._clear()

    def _clear(self) -> None:
        self._generation += 1
        self._count = 0
        self._last_key = 0
        """Greatest key that the columns know of."""
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
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._kept_bytes = 0
        self._recent = RecentTerms()

    def current(self, connection: sqlite3.Connection) -> ColumnsState:
        """The columns as this view has them, or newer."""
        last_key, last_change = connection.execute(SELECT_STATE).fetchone()
        with self._lock:
            if last_change > self._last_change:
                if self._count:
                    self._follow(connection, last_change)
                self._last_change = last_change
            if last_key > self._last_key:
                parameters = {"agent_key": self._agent_key, "after_key": self._last_key}
                found = connection.execute(SELECT_NEW_COLUMNS, parameters)
                while rows := found.fetchmany(_ROWS_AT_ONCE):
                    first = self._count
                    self._append(rows)
                    self._last_key = rows[-1][0]  # so that nothing is read twice if the next rows cannot be read
                    words = int(self._arrays["word_counts"][first : self._count].sum())
                    self._recent.add(connection, self._agent_key, [row[0] for row in rows], first, words)
                self._last_key = last_key
            self._read_session_ids(connection)
            count = self._count
            if last_key < self._last_key:
                count = int(np.searchsorted(self._arrays["keys"][:count], last_key, side="right"))
            arrays = {name: values[:count] for name, values in self._arrays.items()}
            keys = arrays.pop("keys")
            columns = RecordColumns(
                session_numbers=self._sessions_by_id, name_list=self._name_list, tags=self._tags, **arrays
            )
            generation = _NONE if last_change < self._last_change else self._generation
            return ColumnsState(columns, keys, last_key, generation)

    def _read_session_ids(self, connection: sqlite3.Connection) -> None:
        new = list(self._sessions)[len(self._sessions_by_id) :]
        if new:
            ids = dict(connection.execute(SELECT_SESSION_IDS, {"keys": json.dumps(new)}).fetchall())
            self._sessions_by_id |= {ids.get(key, ""): self._sessions[key] for key in new}

    def places(self, connection: sqlite3.Connection, marked: str, state: ColumnsState) -> NDArray[np.int32]:
        """The places of the records that the index has under a marked term, ascending."""
        with self._lock:
            before = self._kept.get(marked, _NOTHING) if state.generation == self._generation else _NOTHING
            recent = None
            if before is not _NOTHING:
                self._kept.move_to_end(marked)
                recent = self._recent.places(marked, before.last_key)
        if before.last_key >= state.last_key:
            is_newer = before.last_key > state.last_key
            return before.places[: np.searchsorted(before.places, state.columns.count)] if is_newer else before.places
        if recent is None:
            new = self._indexed(connection, marked, before.last_key, state)
        else:
            first = np.searchsorted(state.keys, before.last_key, side="right") if recent else 0
            new = np.array([place for place in recent if first <= place < state.columns.count], np.int32)
        found = np.concatenate([before.places, new]) if len(new) else before.places
        self._keep(marked, before, _Kept(found, state.last_key), state.generation)
        return found

    def _indexed(
        self, connection: sqlite3.Connection, marked: str, after_key: int, state: ColumnsState
    ) -> NDArray[np.int32]:
        """The places of the records after this key that the index has under a marked term."""
        [keys] = connection.execute(SELECT_KEYS, {"term": f'"{marked}"', "after_key": after_key}).fetchone()
        return self.places_of(np.fromstring(keys, np.int64, sep=","), state) if keys else _NOTHING.places

    def _keep(self, marked: str, before: _Kept, now: _Kept, generation: int) -> None:
        with self._lock:
            # Another thread may have been faster, or have seen a change.
            if self._kept.get(marked, _NOTHING) is not before or generation != self._generation:
                return
            self._kept[marked] = now
            self._kept.move_to_end(marked)
            self._kept_bytes += now.size - before.size
            most = max(_KEPT_BYTES, _KEPT_BYTES_OF_RECORD * self._count)
            while self._kept_bytes > most:
                _, dropped = self._kept.popitem(last=False)
                self._kept_bytes -= dropped.size

    def places_of(self, keys: NDArray[np.int64], state: ColumnsState) -> NDArray[np.int32]:
        """The places of these keys, in their order. Left out are those that the columns lack: an older view still has
        records that are erased since, and a damaged index makes some up."""
        with self._lock:
            table = self._place_of if state.generation == self._generation else None
        if table is None:
            places = np.searchsorted(state.keys, keys)
            is_known = places < len(state.keys)
            is_known[is_known] = state.keys[places[is_known]] == keys[is_known]
            return places[is_known].astype(np.int32)
        found = table[keys[(keys > 0) & (keys < len(table))]]
        return found[(found >= 0) & (found < state.columns.count)]

    def _follow(self, connection: sqlite3.Connection, last_change: int) -> None:
        """Read the rows that have changed; all rows, if it is not known which."""
        keys = [key for [key] in connection.execute(SELECT_CHANGES, {"number": self._last_change})]
        if len(keys) != last_change - self._last_change or _LOST in keys:
            self._clear()
            return
        self._generation += 1
        self._kept.clear()
        self._kept_bytes = 0
        self._recent.begin_after(self._last_key)
        older = {key for key in keys if key <= self._last_key}
        rows = connection.execute(
            SELECT_CHANGED_COLUMNS, {"agent_key": self._agent_key, "keys": json.dumps(sorted(older))}
        ).fetchall()
        found = {row[0]: row for row in rows}
        known = self._arrays["keys"][: self._count]
        self._arrays = {name: values.copy() for name, values in self._arrays.items()}
        self._tags = dict(self._tags)
        for key in older:
            place = int(np.searchsorted(known, key))
            if place == self._count or known[place] != key:
                if key in found:  # it was another agent's
                    self._clear()
                    return
                continue
            if key not in found:
                self._arrays["is_shown"][place] = False
                continue
            self._put(place, [found[key]])

    def _append(self, rows: Sequence[_Row]) -> None:
        first, count = self._count, self._count + len(rows)
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
        self._count = count

    def _put(self, first: int, rows: Sequence[_Row]) -> None:
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
            for name, (bits, _) in _PACKED.items():
                values[name] = codes & ((1 << bits) - 1)
                codes = codes >> bits
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
        turns = first + np.flatnonzero(self._arrays["types"][first:end] == _TYPES["message"])
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
