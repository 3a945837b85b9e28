"""The text index: which records contain a term. New records wait in `fresh_terms` until they are folded into lists."""

from collections.abc import Sequence
from typing import Final

from kalito_mcp.storage.postgres.queries import Queries
from kalito_mcp.text.analysis import MANY, SEVERAL, IndexedText

INSERT_FRESH: Final = """
INSERT INTO fresh_terms (owner_key, agent_key, record_key, terms) VALUES (:owner, :agent_key, :key, :terms)
"""
INSERT_SHAPE: Final = """
INSERT INTO record_shapes (owner_key, record_key, word_count, is_first_person)
VALUES (:owner, :key, :word_count, :is_first_person)
"""
DELETE_FRESH: Final = """
DELETE FROM fresh_terms WHERE owner_key = :owner AND agent_key = :agent_key AND record_key = :key
"""
DELETE_SHAPE: Final = "DELETE FROM record_shapes WHERE owner_key = :owner AND record_key = :key"
# `first` stays, even if that record is taken out.
UPDATE_LISTS_WITHOUT: Final = """
UPDATE term_lists SET offsets = array_remove(offsets, (:key - first)::integer)
WHERE owner_key = :owner AND agent_key = :agent_key AND term = ANY(:terms) AND first <= :key
    AND (:key - first) = ANY(offsets)
"""
DELETE_EMPTY_LISTS: Final = """
DELETE FROM term_lists
WHERE owner_key = :owner AND agent_key = :agent_key AND term = ANY(:terms) AND offsets = '{}'
"""

COUNT_MARKS: Final = {1: "", SEVERAL: f"x{SEVERAL}:", MANY: f"x{MANY}:"}
"""The prefix of a term in the index, by the least number of times that the record contains it."""


def marked_terms(indexed: IndexedText) -> list[str]:
    """The terms of a record as the index has them."""
    counted = zip(COUNT_MARKS.values(), (indexed.terms, indexed.several, indexed.many), strict=True)
    return [f"{mark}{term}" for mark, terms in counted for term in terms]


class TextIndexStatements(Queries):
    """Changes of the index. Those who change records call them in the same transaction."""

    async def add(self, owner: str, agent_key: int, records: Sequence[tuple[int, IndexedText]]) -> None:
        """Add records, by key, that are not in the index."""
        rows = [
            {
                "agent_key": agent_key,
                "key": key,
                "terms": marked_terms(indexed),
                "word_count": indexed.word_count,
                "is_first_person": int(indexed.is_first_person),
            }
            for key, indexed in records
        ]
        await self._many(INSERT_FRESH, rows, owner=owner)
        await self._many(INSERT_SHAPE, rows, owner=owner)

    async def remove(self, owner: str, agent_key: int, records: Sequence[tuple[int, IndexedText]]) -> None:
        """Take records out of the index. Each text is the one that was added."""
        for key, indexed in records:
            names = {"owner": owner, "agent_key": agent_key, "key": key}
            if not await self._count_changed(DELETE_FRESH, **names):
                terms = marked_terms(indexed)
                await self._all(UPDATE_LISTS_WITHOUT, **names, terms=terms)
                await self._all(DELETE_EMPTY_LISTS, owner=owner, agent_key=agent_key, terms=terms)
            await self._all(DELETE_SHAPE, owner=owner, key=key)
