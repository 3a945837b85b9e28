"""One HNSW graph for all vectors of an index, by which only agents with very many are searched. Those of the others are
all compared, through the keys of their owner: that is faster, and in a graph of everybody's a small memory is missed.

Only the role that owns the tables can make one, on a connection of its own, outside a transaction.
"""

from typing import Final

import asyncpg

EXACT_UP_TO: Final = 50_000
"""An agent with more is searched by the graph, if there is one. For the 200 nearest of 25,000 of 512 dimensions
it takes as long as to compare all, and finds 95 %; of 60,000 it takes 16 ms instead of 28, and finds 94 %."""

MOST_DIMENSIONS: Final = 4_000
"""More do not fit into a graph of half floats."""

SELECT_IS_VALID: Final = """
SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('record_vectors_near_' || $1::bigint)
"""
SELECT_UNUSED: Final = """
SELECT c.relname FROM pg_class c JOIN pg_index x ON x.indexrelid = c.oid
WHERE x.indrelid = 'record_vectors'::regclass AND starts_with(c.relname, 'record_vectors_near_') AND NOT EXISTS (
    SELECT 1 FROM vector_indexes i WHERE i.state <> 'dropped' AND c.relname = 'record_vectors_near_' || i.key
)
"""


SELECT_INDEXES: Final = "SELECT key, dimension FROM vector_indexes WHERE state <> 'dropped'"
SELECT_MOST: Final = "SELECT max(number) FROM number_of_each_owner($1, $2)"
MOST_OF_AN_AGENT: Final = """
SELECT max(count) FROM (
    SELECT count(*) AS count FROM record_vectors WHERE owner_key = $1 AND index_key = $2 GROUP BY agent_key
) agents
"""


async def tidy_graphs(connection: asyncpg.Connection) -> None:
    """Make the graphs that an agent has too many vectors to do without, and remove those of indexes that are gone."""
    for index_key, dimension in await connection.fetch(SELECT_INDEXES):
        if (await connection.fetchval(SELECT_MOST, MOST_OF_AN_AGENT, index_key) or 0) > EXACT_UP_TO:
            await ensure_graph(connection, index_key, dimension)
    await drop_unused_graphs(connection)


async def ensure_graph(connection: asyncpg.Connection, index_key: int, dimension: int) -> bool:
    """Make the graph of an index if it has none; searches and writes go on meanwhile. Whether it has one now."""
    if dimension > MOST_DIMENSIONS:
        return False
    name = f"record_vectors_near_{index_key:d}"
    is_valid = await connection.fetchval(SELECT_IS_VALID, index_key)
    if is_valid is False:  # left by one that was cut short
        await connection.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
    if not is_valid:
        await connection.execute(
            f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON record_vectors "
            f"USING hnsw ((near::halfvec({dimension:d})) halfvec_ip_ops) WHERE index_key = {index_key:d}"
        )
    return True


async def drop_unused_graphs(connection: asyncpg.Connection) -> None:
    """Remove the graphs of indexes that are dropped or gone."""
    for [name] in await connection.fetch(SELECT_UNUSED):
        await connection.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
