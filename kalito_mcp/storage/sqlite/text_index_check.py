"""The part of `inspection` about the text index: whether a rebuild is owed, and how it differs from a rebuilt one."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final

from kalito_mcp.storage.sqlite.index_version import REBUILD_STEP, SELECT_ANALYSIS
from kalito_mcp.storage.sqlite.text_index import (
    INSERT_SHAPE,
    INSERT_TERMS,
    SELECT_FOR_INDEX,
    IndexEntry,
    entry_of_row,
)
from kalito_mcp.storage.sqlite.text_rebuild import SELECT_REBUILD
from kalito_mcp.text.analysis_version import ANALYSIS_VERSION

_CREATE_TERMS_OF: Final = "CREATE VIRTUAL TABLE temp.terms_of USING fts5vocab('main', 'records_text', 'instance')"
_CREATE_TERMS: Final = "CREATE VIRTUAL TABLE temp.terms USING fts5vocab('main', 'records_text', 'row')"
# FTS5 keeps a tree over its pages. Its integrity-check does not notice a term that is missing there; a query does.
_SELECT_LOST_TERMS: Final = """
SELECT count(*) FROM temp.terms AS t
WHERE t.doc <> (SELECT count(*) FROM records_text WHERE records_text MATCH '"' || t.term || '"')
"""
_SELECT_TERMS: Final = "SELECT term, doc FROM temp.terms_of ORDER BY term, doc"
_CREATE_SHAPES: Final = "CREATE TABLE record_shapes (record_key, word_count, is_first_person)"
_SELECT_SHAPES: Final = "SELECT record_key, word_count, is_first_person FROM record_shapes ORDER BY record_key"
_SELECT_INDEX_DEFINITION: Final = "SELECT sql FROM sqlite_schema WHERE name = 'records_text'"
_SELECT_VERSION: Final = "PRAGMA user_version"
_ANALYSIS_SINCE: Final = 5


def owed_rebuild(connection: sqlite3.Connection) -> str | None:
    """Why the index must be rebuilt, and how far that has come. None if no rebuild is owed."""
    [version] = connection.execute(_SELECT_VERSION).fetchone()
    is_old = version < _ANALYSIS_SINCE or connection.execute(SELECT_ANALYSIS).fetchone()[0] != ANALYSIS_VERSION
    rebuild = connection.execute(SELECT_REBUILD).fetchone() if version >= REBUILD_STEP else None
    if rebuild is not None and rebuild[0] == ANALYSIS_VERSION and rebuild[1] >= 0:
        _, _, done, total = rebuild
        state = "made by an older release" if is_old else "complete"
        return (
            f"{state}; a new one has {done:,} of {total:,} records and is not in use yet: `kalito-mcp serve` "
            "completes it at its start"
        )
    return "made by an older release; `kalito-mcp serve` rebuilds it at its start" if is_old else None


def differences(connection: sqlite3.Connection) -> int:
    """How many (term, record) pairs and shapes are in only one of the stored index and a rebuilt one, and how many
    terms a search would not find, or not with all their records."""
    return _differing_index_entries(connection) + _lost_terms(connection)


def _differing_index_entries(connection: sqlite3.Connection) -> int:
    """How many (term, record) pairs are in only one of two indexes: the stored one and a rebuilt one."""
    connection.execute(_CREATE_TERMS_OF)
    [definition] = connection.execute(_SELECT_INDEX_DEFINITION).fetchone()
    with closing(sqlite3.connect("")) as rebuilt:  # a private temporary file, removed by SQLite
        rebuilt.execute(definition)
        rebuilt.execute(_CREATE_SHAPES)
        for entry in _index_entries(connection):
            rebuilt.execute(INSERT_TERMS, entry._asdict())
            rebuilt.execute(INSERT_SHAPE, entry._asdict())
        rebuilt.execute(_CREATE_TERMS_OF)
        return sum(
            _count_differences(iter(connection.execute(statement)), iter(rebuilt.execute(statement)))
            for statement in (_SELECT_TERMS, _SELECT_SHAPES)
        )


def _lost_terms(connection: sqlite3.Connection) -> int:
    """How many terms of the index a search would not find, or not with all their records."""
    connection.execute(_CREATE_TERMS)
    [lost] = connection.execute(_SELECT_LOST_TERMS).fetchone()
    return int(lost)


def _index_entries(connection: sqlite3.Connection) -> Iterator[IndexEntry]:
    after_key = 0
    while rows := connection.execute(SELECT_FOR_INDEX, {"after_key": after_key}).fetchall():
        yield from map(entry_of_row, rows)
        after_key = rows[-1][0]


def _count_differences(left: Iterator[tuple[Any, ...]], right: Iterator[tuple[Any, ...]]) -> int:
    """The size of the symmetric difference of two sorted streams."""
    differences = 0
    one, other = next(left, None), next(right, None)
    while one is not None or other is not None:
        if one == other:
            one, other = next(left, None), next(right, None)
            continue
        differences += 1
        if other is None or (one is not None and one < other):
            one = next(left, None)
        else:
            other = next(right, None)
    return differences
