"""Reads which indexes of vectors there are, and counts for all owners together; `vectors` does the rest."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from kalito_mcp.ports.vectors import VectorIndex
from kalito_mcp.storage.postgres.named_sql import positional
from kalito_mcp.storage.postgres.queries import Queries

EMBEDDED: Final = "CASE WHEN coalesce(r.name, '') = '' THEN r.text ELSE r.name || ': ' || r.text END"
EMBEDDABLE: Final = "r.deleted_at IS NULL AND r.text <> ''"
_COLUMNS: Final = "key, fingerprint, dimension, state = 'active'"

SELECT_INDEXES: Final = f"SELECT {_COLUMNS} FROM vector_indexes WHERE state <> 'dropped' ORDER BY state"
SELECT_INDEX: Final = f"""
SELECT {_COLUMNS} FROM vector_indexes WHERE fingerprint = :fingerprint AND state <> 'dropped'
"""
# Whoever drops it waits, so that no vector is stored after the last one was cleared.
SELECT_INDEX_TO_FILL: Final = f"{SELECT_INDEX} FOR SHARE"
SELECT_INDEX_TO_ACTIVATE: Final = f"{SELECT_INDEX} FOR UPDATE"
SELECT_NUMBERS: Final = "SELECT owner, number FROM number_of_each_owner(:counting::text, :index_key) WHERE number > 0"

# Of each owner:
COUNT_VECTORS: Final = "SELECT count(*) FROM record_vectors WHERE owner_key = :owner AND index_key = :index_key"
COUNT_DEBTS: Final = "SELECT count(*) FROM vector_debts WHERE owner_key = :owner AND index_key = :index_key"
COUNT_EMBEDDABLE: Final = f"SELECT count(*) FROM records r WHERE r.owner_key = :owner AND {EMBEDDABLE}"
# The order makes the plan use the index: it expects the first row of a table to do.
HAS_VECTORS: Final = """
SELECT count(*) FROM (
    SELECT 1 FROM record_vectors WHERE owner_key = :owner AND index_key = :index_key
    ORDER BY agent_key, session_key LIMIT 1
) one
"""
INSERT_OLDER_DEBTS: Final = f"""
WITH debts AS (
    INSERT INTO vector_debts (owner_key, index_key, record_key, kind)
    SELECT :owner, :index_key, r.key, 2 FROM records r WHERE r.owner_key = :owner AND {EMBEDDABLE}
    RETURNING record_key
), debtor AS (
    INSERT INTO vector_debtors (index_key, kind, owner, newest)
    SELECT :index_key, 2, :owner, max(record_key) FROM debts HAVING count(*) > 0
)
SELECT count(*) FROM debts
"""


class IndexRow(NamedTuple):
    """An index that is active or being built."""

    key: int
    fingerprint: str
    dimension: int
    is_active: bool


class VectorIndexQueries(Queries):
    """The part of `ports.vectors.VectorReader` that is about indexes."""

    async def indexes(self) -> Sequence[VectorIndex]:
        rows = [IndexRow(*row) for row in await self._all(SELECT_INDEXES)]
        return [VectorIndex(row.fingerprint, row.dimension, row.is_active) for row in rows]

    async def count(self, fingerprint: str, owner: str | None = None) -> int:
        index = await self._index(fingerprint)
        if index is None:
            return 0
        if owner is None:
            return sum((await self._numbers(COUNT_VECTORS, index.key)).values())
        [[count]] = await self._all(COUNT_VECTORS, owner=owner, index_key=index.key)
        return int(count)

    async def owed_count(self, fingerprint: str) -> int:
        index = await self._index(fingerprint)
        if index is None:
            return sum((await self._numbers(COUNT_EMBEDDABLE, None)).values())
        return sum((await self._numbers(COUNT_DEBTS, index.key)).values())

    async def _numbers(self, statement: str, index_key: int | None) -> dict[int, int]:
        """What the statement counts of each owner, by the owner's key; owners with 0 are left out."""
        text, names = positional(statement)
        assert names == ("owner", "index_key")[: len(names)]  # noqa: S101 - so the function numbers them
        return dict(await self._all(SELECT_NUMBERS, counting=text, index_key=index_key))

    async def _index(self, fingerprint: str, statement: str = SELECT_INDEX) -> IndexRow | None:
        return next((IndexRow(*row) for row in await self._all(statement, fingerprint=fingerprint)), None)
