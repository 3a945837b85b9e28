"""What a process keeps in memory to search one agent's records: their columns, and which contain the last terms.

Both follow the database: a view first reads what is new since the last one. The columns may be newer than the view that
uses them, never older; then it sees only those records that it has itself.
"""

import json
import sqlite3
from threading import Lock
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kalito_mcp.storage.kept_postings import NOTHING_KEPT, Kept, KeptPostings
from kalito_mcp.storage.packed_columns import packed
from kalito_mcp.storage.record_columns import ColumnArrays, ColumnsState, places_of
from kalito_mcp.storage.sqlite.recent_terms import RecentTerms

# The greatest key of a record that was ever used, and the number of the last change.
SELECT_STATE: Final = """
SELECT coalesce(max(CASE WHEN name = 'records' THEN seq END), 0),
    coalesce(max(CASE WHEN name = 'record_changes' THEN seq END), 0)
FROM sqlite_sequence WHERE name IN ('records', 'record_changes')
"""
SELECT_CHANGES: Final = "SELECT record_key FROM record_changes WHERE number > :number"

_PACKED: Final = packed(is_shown="(r.deleted_at IS NULL)", word_count="coalesce(s.word_count, 0)")
_COLUMNS: Final = f"""
SELECT r.key, r.created_at, {_PACKED}, r.importance, r.session_key, r.name, r.tags, r.project_key
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
_LOST: Final = 0
"""Instead of a key, among the changes: everything may have changed."""

_ROWS_AT_ONCE: Final = 20_000
"""A row takes 0.5 KB until it is in the arrays."""


class AgentColumns:
    """The columns of one agent's records. Shared by the threads of a process."""

    def __init__(self, agent_key: int) -> None:
        self._agent_key = agent_key
        self._lock = Lock()
        self._last_change = 0
        self._last_key = 0
        """Greatest key that the columns know of."""
        self._arrays = ColumnArrays()
        self._kept = KeptPostings()
        self._recent = RecentTerms()

    def current(self, connection: sqlite3.Connection) -> ColumnsState:
        """The columns as this view has them, or newer."""
        last_key, last_change = connection.execute(SELECT_STATE).fetchone()
        with self._lock:
            if last_change > self._last_change:
                if self._arrays.count:
                    self._follow(connection, last_change)
                self._last_change = last_change
            if last_key > self._last_key:
                parameters = {"agent_key": self._agent_key, "after_key": self._last_key}
                found = connection.execute(SELECT_NEW_COLUMNS, parameters)
                while rows := found.fetchmany(_ROWS_AT_ONCE):
                    first = self._arrays.count
                    self._arrays.append(rows)
                    self._last_key = rows[-1][0]  # so that nothing is read twice if the next rows cannot be read
                    words = self._arrays.word_count(first)
                    self._recent.add(connection, self._agent_key, [row[0] for row in rows], first, words)
                self._last_key = last_key
            if new := self._arrays.sessions_without_id():
                self._arrays.name_sessions(
                    dict(connection.execute(SELECT_SESSION_IDS, {"keys": json.dumps(new)}).fetchall())
                )
            return self._arrays.state(last_key, is_newest=last_change >= self._last_change)

    def places(self, connection: sqlite3.Connection, marked: str, state: ColumnsState) -> NDArray[np.int32]:
        """The places of the records that the index has under a marked term, ascending."""
        with self._lock:
            before = self._kept.get(marked) if state.generation == self._arrays.generation else NOTHING_KEPT
            recent = None if before is NOTHING_KEPT else self._recent.places(marked, before.last_key)
        if before.last_key >= state.last_key:
            is_newer = before.last_key > state.last_key
            return before.places[: np.searchsorted(before.places, state.columns.count)] if is_newer else before.places
        if recent is None:
            new = self._indexed(connection, marked, before.last_key, state)
        else:
            first = np.searchsorted(state.keys, before.last_key, side="right") if recent else 0
            new = np.array([place for place in recent if first <= place < state.columns.count], np.int32)
        found = np.concatenate([before.places, new]) if len(new) else before.places
        with self._lock:
            if state.generation == self._arrays.generation:  # no other thread has seen a change
                self._kept.keep(marked, before, Kept(found, state.last_key), records=self._arrays.count)
        return found

    def places_of(self, keys: NDArray[np.int64], state: ColumnsState) -> NDArray[np.int32]:
        """The places of these keys, in their order, without those that the columns lack."""
        with self._lock:
            table = self._arrays.place_table(state)
        return places_of(keys, state, table)

    def _indexed(
        self, connection: sqlite3.Connection, marked: str, after_key: int, state: ColumnsState
    ) -> NDArray[np.int32]:
        """The places of the records after this key that the index has under a marked term."""
        [keys] = connection.execute(SELECT_KEYS, {"term": f'"{marked}"', "after_key": after_key}).fetchone()
        return self.places_of(np.fromstring(keys, np.int64, sep=","), state) if keys else NOTHING_KEPT.places

    def _follow(self, connection: sqlite3.Connection, last_change: int) -> None:
        """Read the rows that have changed; all rows, if it is not known which."""
        keys = [key for [key] in connection.execute(SELECT_CHANGES, {"number": self._last_change})]
        if len(keys) != last_change - self._last_change or _LOST in keys:
            self._arrays.clear()
            self._begin_again()
            return
        self._kept.clear()
        self._recent.begin_after(self._last_key)
        older = {key for key in keys if key <= self._last_key}
        parameters = {"agent_key": self._agent_key, "keys": json.dumps(sorted(older))}
        if not self._arrays.change(older, connection.execute(SELECT_CHANGED_COLUMNS, parameters).fetchall()):
            self._begin_again()

    def _begin_again(self) -> None:
        self._last_key = 0
        self._kept.clear()
        self._recent.begin_after(0)
