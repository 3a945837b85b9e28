"""The statements about vectors that are kept outside the database: which were moved, and what is left of them there."""

import json
from collections.abc import Sequence
from typing import Final

from kalito_mcp.ports.vector_points import VectorPoint
from kalito_mcp.storage.sqlite.queries import Queries

SELECT_MOVES: Final = """
SELECT i.key, i.dimension, coalesce(m.moved_key, 0), m.place FROM vector_indexes i
LEFT JOIN vector_moves m ON m.index_key = i.key WHERE i.state <> 'dropped' ORDER BY i.state
"""
# The plus makes SQLite read in the order of keys: the rows to move are at the end.
SELECT_TO_MOVE: Final = """
SELECT v.key, v.vector, v.session_key, r.type, a.owner, a.id FROM record_vectors v
JOIN records r ON r.key = v.record_key JOIN agents a ON a.key = v.agent_key
WHERE v.key > :moved_key AND +v.index_key = :index_key ORDER BY v.key LIMIT :limit
"""
SELECT_MOVED_COUNT: Final = """
SELECT count(*) FROM vector_moves m JOIN record_vectors v ON v.index_key = m.index_key AND v.key <= m.moved_key
"""
SELECT_MOVED: Final = """
SELECT v.key, v.vector FROM vector_moves m JOIN record_vectors v ON v.index_key = m.index_key AND v.key <= m.moved_key
"""
SELECT_NOT_MOVED: Final = """
SELECT v.key, v.vector FROM vector_moves m JOIN record_vectors v ON v.index_key = m.index_key AND v.key > m.moved_key
"""
SELECT_LEFTOVERS: Final = "SELECT point FROM vector_leftovers WHERE place = :place LIMIT :limit"
SELECT_LEFTOVER_COUNTS: Final = """
SELECT place, count(*) FROM vector_leftovers WHERE place IS NOT :place GROUP BY place ORDER BY place
"""
INSERT_MOVE: Final = """
INSERT INTO vector_moves (index_key, place, moved_key)
SELECT key, :place, :moved_key FROM vector_indexes WHERE key = :index_key
ON CONFLICT (index_key) DO UPDATE SET moved_key = max(moved_key, excluded.moved_key)
"""
UPDATE_MOVED_ROW: Final = "UPDATE record_vectors SET vector = :point WHERE key = :row_key AND index_key = :index_key"
# A row that went while its vector was on the way.
INSERT_LEFTOVER: Final = """
INSERT OR IGNORE INTO vector_leftovers (place, point)
SELECT :place, :point WHERE NOT EXISTS (SELECT 1 FROM record_vectors WHERE key = :row_key AND index_key = :index_key)
"""
INSERT_DEBTS_OF_ROWS: Final = """
INSERT OR IGNORE INTO vector_debts (index_key, record_key)
SELECT v.index_key, v.record_key FROM record_vectors v JOIN vector_indexes i ON i.key = v.index_key
WHERE v.key IN (SELECT value FROM json_each(:keys)) AND i.state <> 'dropped'
"""
DELETE_ROWS: Final = "DELETE FROM record_vectors WHERE key IN (SELECT value FROM json_each(:keys))"
DELETE_LEFTOVER: Final = "DELETE FROM vector_leftovers WHERE place = :place AND point = :point"
DELETE_EMPTY_MOVES: Final = """
DELETE FROM vector_moves WHERE NOT EXISTS (
    SELECT 1 FROM record_vectors v WHERE v.index_key = vector_moves.index_key AND v.key <= vector_moves.moved_key
)
"""
UPDATE_PLACE: Final = "UPDATE vector_moves SET place = :place WHERE place <> :place"
# Until a place is known by its new name, leftovers there are noted under the old one.
UPDATE_PLACE_OF_LEFTOVERS: Final = """
UPDATE OR REPLACE vector_leftovers SET place = :place WHERE place IN (SELECT place FROM vector_moves)
"""


class VectorMoveStatements(Queries):
    """Notes of a write transaction about vectors that are elsewhere."""

    async def note_place(self, index_keys: Sequence[int], place: str) -> None:
        """The vectors of these indexes will be moved there."""
        rows = [{"index_key": one, "place": place, "moved_key": 0} for one in index_keys]
        await self._connection.executemany(INSERT_MOVE, rows)

    async def note_moved(self, index_key: int, place: str, points: Sequence[VectorPoint]) -> None:
        """Put the ids of these points, the next of their index, in the place of their vectors."""
        rows = [{"index_key": index_key, "place": place, "row_key": one.row_key, "point": one.id} for one in points]
        await self._connection.executemany(UPDATE_MOVED_ROW, rows)
        await self._connection.executemany(INSERT_LEFTOVER, rows)
        await self._all(INSERT_MOVE, index_key=index_key, place=place, moved_key=points[-1].row_key)

    async def note_removed(self, place: str, ids: Sequence[bytes]) -> None:
        """Forget these leftovers: they are gone there."""
        await self._connection.executemany(DELETE_LEFTOVER, [{"place": place, "point": one} for one in ids])

    async def owe_again(self, row_keys: Sequence[int]) -> None:
        """Owe the records of these rows another vector. Their points elsewhere become leftovers."""
        keys = json.dumps(list(row_keys))
        await self._all(INSERT_DEBTS_OF_ROWS, keys=keys)
        await self._all(DELETE_ROWS, keys=keys)

    async def forget_places(self) -> None:
        """Indexes without moved vectors are in the database."""
        await self._all(DELETE_EMPTY_MOVES)

    async def rename_place(self, place: str, *, has_all: bool) -> None:
        """The moved vectors are in this place now. `has_all`: it is the earlier place under another name, so the
        leftovers there are here."""
        if has_all:
            await self._all(UPDATE_PLACE_OF_LEFTOVERS, place=place)
        await self._all(UPDATE_PLACE, place=place)
