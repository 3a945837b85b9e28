"""Makes the text index of an owner again from the records: after an archive came in, or by a release that finds other
terms."""

from typing import Final

from kalito_mcp.storage.postgres.queries import Queries
from kalito_mcp.storage.postgres.text_index import FOLDED_AT_ONCE, TextIndexStatements
from kalito_mcp.storage.postgres.transactions import Transaction
from kalito_mcp.text.analysis import IndexedText, index_text

DELETE_PAGES: Final = "DELETE FROM term_pages WHERE owner_key = :owner"
DELETE_FRESH: Final = "DELETE FROM fresh_terms WHERE owner_key = :owner"
DELETE_SHAPES: Final = "DELETE FROM record_shapes WHERE owner_key = :owner"
# Who keeps columns in memory reads all of them again, and so needs none of these.
DELETE_REMOVED: Final = "DELETE FROM removed_records WHERE owner_key = :owner"
UPDATE_REINDEXED: Final = "UPDATE owners SET reindexed_revision = revision WHERE key = :owner"
SELECT_FOR_INDEX: Final = """
SELECT key, agent_key, text, name FROM records
WHERE owner_key = :owner AND key > :after_key AND deleted_at IS NULL ORDER BY key LIMIT 250
"""


class TextRebuildStatements(Queries):
    """Rebuilds the index in one transaction: its readers keep the old one until it is committed."""

    async def rebuild_terms(self, owner: str) -> int:
        """Rebuild the index of an owner's records that are not forgotten. How many those are."""
        for statement in (DELETE_PAGES, DELETE_FRESH, DELETE_SHAPES, DELETE_REMOVED, UPDATE_REINDEXED):
            await self._count_changed(statement, owner=owner)
        index = TextIndexStatements(self._transaction)
        count, after_key = 0, 0
        fresh: dict[int, int] = {}
        while found := await self._all(SELECT_FOR_INDEX, owner=owner, after_key=after_key):
            added: dict[int, list[tuple[int, IndexedText]]] = {}
            for key, agent_key, text, name in found:
                added.setdefault(agent_key, []).append((key, index_text(text, name)))
            for agent_key, records in added.items():
                await index.add(owner, agent_key, records)
                fresh[agent_key] = fresh.get(agent_key, 0) + len(records)
                if fresh[agent_key] >= FOLDED_AT_ONCE:
                    fresh[agent_key] -= await index.fold(owner, agent_key)
            count, after_key = count + len(found), found[-1][0]
        for agent_key, left in fresh.items():
            if left:
                await index.fold(owner, agent_key)
        return count


async def rebuild_terms(transaction: Transaction, owner: str) -> int:
    """Rebuild the index of an owner's records, in a write transaction. How many are in it."""
    return await TextRebuildStatements(transaction).rebuild_terms(owner)
