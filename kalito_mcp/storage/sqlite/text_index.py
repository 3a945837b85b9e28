"""The text index on FTS5: which records contain a term.

A term carries its agent: `<agent key>:<term>`. One that a record contains several times is there again with a mark, so
that the counts come with the records. FTS5 does not score here; `search_index` reads whole lists of records.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from kalito_mcp.storage.record_rows import Row
from kalito_mcp.storage.sqlite.queries import Transaction
from kalito_mcp.storage.sqlite.record_statements import insert
from kalito_mcp.text.analysis import MANY, SEVERAL, IndexedText, index_text
from kalito_mcp.text.analysis_version import ANALYSIS_VERSION

INSERT_TERMS: Final = "INSERT INTO records_text (rowid, terms) VALUES (:key, :terms)"
DELETE_TERMS: Final = "INSERT INTO records_text (records_text, rowid, terms) VALUES ('delete', :key, :terms)"
INSERT_SHAPE: Final = """
INSERT INTO record_shapes (record_key, word_count, is_first_person) VALUES (:key, :word_count, :is_first_person)
"""
DELETE_SHAPE: Final = "DELETE FROM record_shapes WHERE record_key = :key"
SELECT_FOR_INDEX: Final = """
SELECT r.key, r.agent_key, r.text, r.name
FROM records r WHERE r.key > :after_key AND r.deleted_at IS NULL ORDER BY r.key LIMIT 250
"""
UPDATE_ANALYSIS: Final = "UPDATE identity SET analysis = :version"
DELETE_ALL_TERMS: Final = "INSERT INTO records_text (records_text) VALUES ('delete-all')"
DELETE_ALL_SHAPES: Final = "DELETE FROM record_shapes"
# Segments are merged from two on. This is a setting of the table, which it keeps.
SET_USER_MERGE: Final = "INSERT INTO records_text (records_text, rank) VALUES ('usermerge', 2)"
MERGE: Final = "INSERT INTO records_text (records_text, rank) VALUES ('merge', :pages)"
SELECT_TOTAL_CHANGES: Final = "SELECT total_changes()"
FORGET_CHANGES: Final = "INSERT INTO record_changes (record_key) VALUES (0)"
FORGET_REBUILD: Final = (
    "DROP TABLE IF EXISTS new_records_text",
    "DROP TABLE IF EXISTS new_record_shapes",
    "DELETE FROM text_rebuild",
)
"""See `text_rebuild`."""

COUNT_MARKS: Final = {1: "", SEVERAL: f"x{SEVERAL}:", MANY: f"x{MANY}:"}
"""The prefix of a term in the index, by the least number of times that the record contains it."""


_MERGED_PAGES: Final = 250
"""Pages of 4 KB that a slice of merging writes; it writes a few more to reach the end of a term."""

_FEWEST_CHANGES: Final = 2
"""FTS5 makes fewer if it had nothing to merge (sqlite.org/fts5.html, section 6.8)."""


class IndexEntry(NamedTuple):
    """A record's entry in the index. `terms` is the text that FTS5 gets."""

    key: int
    terms: str
    word_count: int
    is_first_person: int


def index_entry(key: int, agent_key: int, indexed: IndexedText) -> IndexEntry:
    """The entry of a record of the agent."""
    parts = []
    for mark, terms in zip(COUNT_MARKS.values(), (indexed.terms, indexed.several, indexed.many), strict=True):
        if terms:
            prefix = f"{mark}{agent_key}:"
            parts.append(prefix + f" {prefix}".join(terms))  # a quarter of the time of a loop over the terms
    return IndexEntry(key, " ".join(parts), indexed.word_count, int(indexed.is_first_person))


def entry_of_row(row: Sequence[Any]) -> IndexEntry:
    """The entry of a row of SELECT_FOR_INDEX. FTS5 must delete exactly what was inserted, so both use only these
    columns."""
    key, agent_key, text, name = row
    return index_entry(key, agent_key, index_text(text, name))


class TextIndexStatements:
    """Changes the index inside a write transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._connection = transaction.connection

    async def insert(self, owner: str, rows: Sequence[Row], indexed: Sequence[IndexedText]) -> None:
        """Store new records of one agent, which are rows of `record_rows` or `conversation_rows`, with their entries.

        Raises:
            AlreadyStored: a constraint says what is stored once. The transaction can do nothing else after that.
        """
        if rows:
            await insert(self._transaction, owner, rows)
            await self.add(owner, rows[0][1], [(row[0], one) for row, one in zip(rows, indexed, strict=True)])

    async def add(self, owner: str, agent_key: int, records: Sequence[tuple[int, IndexedText]]) -> None:
        """Add records, by key, that are not in the index."""
        del owner  # the agent has one
        await self._add([index_entry(key, agent_key, indexed) for key, indexed in records])

    async def _add(self, entries: Sequence[IndexEntry]) -> None:
        parameters = [entry._asdict() for entry in entries]
        await self._connection.executemany(INSERT_TERMS, parameters)
        await self._connection.executemany(INSERT_SHAPE, parameters)

    async def remove(self, owner: str, agent_key: int, records: Sequence[tuple[int, IndexedText]]) -> None:
        """Take records out of the index. Each text is the one that was added."""
        del owner  # as above
        parameters = [index_entry(key, agent_key, indexed)._asdict() for key, indexed in records]
        await self._connection.executemany(DELETE_TERMS, parameters)
        await self._connection.executemany(DELETE_SHAPE, parameters)

    async def replace_decayed(self, owner: str, agent_key: int, key: int, indexed: IndexedText | None) -> None:
        """Index a record as its row says, which decayed: the index has other terms for it than the row gave."""
        del owner, agent_key, key, indexed  # the whole index is read from the rows
        await self.rebuild()

    async def begin_merging(self) -> bool:
        """Begin to merge all segments into one, without the words of removed entries. Whether more is left to do."""
        await self._connection.execute_fetchall(SET_USER_MERGE)
        # A negative number: all the segments that there are now.
        return await self._merge(-_MERGED_PAGES)

    async def merge_alike(self) -> bool:
        """Merge a slice of segments that are about equally large, so that an entry is rewritten only as often as the
        index doubles. Whether there were any."""
        await self._connection.execute_fetchall(SET_USER_MERGE)
        return await self._merge(_MERGED_PAGES)

    async def go_on_merging(self) -> bool:
        """Merge the next slice. Whether more is left to do."""
        return await self._merge(_MERGED_PAGES)

    async def _merge(self, pages: int) -> bool:
        [[before]] = await self._connection.execute_fetchall(SELECT_TOTAL_CHANGES)
        await self._connection.execute_fetchall(MERGE, {"pages": pages})
        [[after]] = await self._connection.execute_fetchall(SELECT_TOTAL_CHANGES)
        return bool(after - before >= _FEWEST_CHANGES)

    async def rebuild(self) -> int:
        """Rebuild the index from the records that are not forgotten, at once. Returns how many those are."""
        for statement in (DELETE_ALL_TERMS, DELETE_ALL_SHAPES, FORGET_CHANGES, *FORGET_REBUILD):
            await self._connection.execute_fetchall(statement)
        count, after_key = 0, 0
        while True:
            found = list(await self._connection.execute_fetchall(SELECT_FOR_INDEX, {"after_key": after_key}))
            if not found:
                await self._connection.execute_fetchall(UPDATE_ANALYSIS, {"version": ANALYSIS_VERSION})
                return count
            await self._add([entry_of_row(row) for row in found])
            count, after_key = count + len(found), found[-1][0]
