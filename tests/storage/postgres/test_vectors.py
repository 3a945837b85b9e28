"""Vectors on PostgreSQL, beyond the port: scores, graphs, who owes, and transactions beside each other."""

from typing import Any, Final

import anyio
import anyio.lowlevel
import asyncpg
import numpy as np
import pytest
from numpy.typing import NDArray

from kalito_mcp.domain.scope import Limits, Scope
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.postgres import vectors as statements
from kalito_mcp.storage.postgres.database import PostgresStore
from kalito_mcp.storage.postgres.vector_graphs import ensure_graph, tidy_graphs
from kalito_mcp.storage.postgres.views import WriteTransactionOfPostgres
from kalito_mcp.storage.vector_rows import packed, ranked
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio
INDEX: Final = "test"
DIMENSION: Final = 32
INSERT_MESSAGES: Final = """
INSERT INTO records (owner_key, agent_key, session_key, type, seq, role, text, importance, tokens, created_at, hash)
SELECT :owner, s.agent_key, s.key, 'message', o.seq, 'user', 'text ' || o.seq, 0.5, 1, 1, ''
FROM sessions s, generate_series(
    1 + (SELECT count(*) FROM records WHERE owner_key = :owner AND session_key = s.key),
    :count::bigint + (SELECT count(*) FROM records WHERE owner_key = :owner AND session_key = s.key)
) AS o (seq)
WHERE s.owner_key = :owner AND s.id = :session RETURNING key
"""
SELECT_DEBTORS: Final = "SELECT d.kind, o.name FROM vector_debtors d JOIN owners o ON o.key = d.owner ORDER BY 1, 2"
SELECT_WAITING: Final = "SELECT count(*) FROM pg_locks WHERE NOT granted"
SELECT_GRAPHS: Final = "SELECT count(*) FROM pg_indexes WHERE indexdef LIKE '%hnsw%'"


async def add(transaction: WriteTransactionOfPostgres, count: int, owner: str = "local") -> list[int]:
    await ensure_session(transaction.sessions, Scope(owner=owner, session="trip"), now_ms=START_MS)
    rows = await transaction.transaction.all(INSERT_MESSAGES, owner=owner, session="trip", count=count)
    return sorted(key for [key] in rows)


async def added(store: PostgresStore, count: int, owner: str = "local") -> list[int]:
    return await store.write(lambda transaction: add(transaction, count, owner))


async def opened(store: PostgresStore) -> None:
    await store.write(lambda transaction: transaction.vectors.open_index(INDEX, DIMENSION))


async def pay(store: PostgresStore) -> dict[int, NDArray[np.float32]]:
    """Give each record that is owed one a random vector."""
    chance, given = np.random.default_rng(7), dict[int, NDArray[np.float32]]()
    while owed := await store.read(lambda view: view.vectors.owed(INDEX, limit=500)):
        vectors = chance.standard_normal((len(owed), DIMENSION)).astype(np.float32)
        vectors[: len(vectors) // 4] = vectors[0]
        given |= dict(zip([one.record_key for one in owed], vectors, strict=True))
        async with store.transaction() as transaction:
            await transaction.vectors.put(INDEX, owed, vectors)
    return given


async def nearest(store: PostgresStore, query: NDArray[np.float32], k: int, **scope: Any) -> list[tuple[int, float]]:
    place = Scope(**scope)
    return list(await store.read(lambda view: view.vectors.nearest(place, INDEX, query, k=k)))


async def debtors(store: PostgresStore) -> list[tuple[int, str]]:
    async with store.view() as view:
        return [tuple(row) for row in await view.transaction.all(SELECT_DEBTORS)]


async def test_scores_and_order_are_those_of_the_stored_bytes_also_of_equal_vectors(store: PostgresStore) -> None:
    await added(store, 1_500)
    await opened(store)
    given = await pay(store)
    chance = np.random.default_rng(3)
    rows = list(zip(given, packed(np.stack(list(given.values()))), strict=True))
    queries = [*chance.standard_normal((20, DIMENSION)).astype(np.float32) * 1e6, next(iter(given.values()))]
    for query in queries:
        for k in (1, 10, 200):
            assert await nearest(store, query, k) == ranked(rows, DIMENSION, query, k)
            among = np.array(sorted(given)[::2], np.int64)
            async with store.view() as view:
                for some in (among, np.array(sorted(given)[:1_100], np.int64)):
                    found = await view.vectors.nearest(Scope(session="trip"), INDEX, query, k=k, among=some)
                    chosen = set(some.tolist())
                    assert found == ranked([row for row in rows if row[0] in chosen], DIMENSION, query, k)


async def test_who_owes_is_known_until_the_last_vector_is_stored(store: PostgresStore) -> None:
    await added(store, 3, "ann")
    await opened(store)
    [key] = await added(store, 1, "bob")
    await added(store, 2, "ann")
    assert await debtors(store) == [(0, "ann"), (0, "bob"), (2, "ann")]
    owed = await store.read(lambda view: view.vectors.owed(INDEX, limit=9))
    assert [one.owner for one in owed] == ["ann", "ann", "bob", "ann", "ann", "ann"]
    statement = "UPDATE records SET deleted_at = 1 WHERE owner_key = :owner AND key = :key"
    await store.write(lambda transaction: transaction.transaction.all(statement, owner="bob", key=key))
    assert await debtors(store) == [(0, "ann"), (2, "ann")]
    await pay(store)
    assert await debtors(store) == []
    statement = "UPDATE records SET text = 'other' WHERE owner_key = :owner"
    await store.write(lambda transaction: transaction.transaction.all(statement, owner="ann"))
    assert await debtors(store) == [(1, "ann")]
    statement = "DELETE FROM records WHERE owner_key = :owner"
    await store.write(lambda transaction: transaction.transaction.all(statement, owner="ann"))
    assert await debtors(store) == []


async def test_a_count_over_all_owners_leaves_the_transaction_with_its_own(store: PostgresStore) -> None:
    await added(store, 3, "ann")
    await added(store, 4, "bob")
    await opened(store)
    async with store.view() as view:
        assert await view.sessions.get(Scope(owner="ann", session="trip")) is not None
        assert await view.vectors.owed_count(INDEX) == 7
        assert await view.sessions.get(Scope(owner="ann", session="trip")) is not None


async def test_a_record_that_is_stored_while_an_index_is_opened_is_owed_a_vector(store: PostgresStore) -> None:
    async with anyio.create_task_group() as tasks, store.transaction() as transaction:
        keys = await add(transaction, 2, "new")
        tasks.start_soon(opened, store)
        while not (await transaction.transaction.all(SELECT_WAITING))[0][0]:
            await anyio.lowlevel.checkpoint()
    owed = await store.read(lambda view: view.vectors.owed(INDEX, limit=9))
    assert sorted(one.record_key for one in owed) == keys


async def test_an_agent_with_very_many_vectors_is_searched_by_a_graph(
    store: PostgresStore, of_tables: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await added(store, 2_000)
    await added(store, 30, "ann")
    await opened(store)
    given = await pay(store)
    query = next(iter(given.values()))
    exact = await nearest(store, query, 100)
    await tidy_graphs(of_tables)
    assert await of_tables.fetchval(SELECT_GRAPHS) == 0
    monkeypatch.setattr("kalito_mcp.storage.postgres.vector_graphs.EXACT_UP_TO", 1_000)
    monkeypatch.setattr("kalito_mcp.storage.postgres.vectors.EXACT_UP_TO", 1_000)
    await tidy_graphs(of_tables)
    await tidy_graphs(of_tables)
    assert await of_tables.fetchval(SELECT_GRAPHS) == 1
    await of_tables.execute("ANALYZE record_vectors")
    statement = "UPDATE agents SET record_count = 2000 WHERE owner_key = :owner"
    await store.write(lambda transaction: transaction.transaction.all(statement, owner="local"))
    asked: list[object] = []
    by_graph = statements._by_graph

    def noted(active: Any) -> str:
        asked.append(active)
        return by_graph(active)

    monkeypatch.setattr(statements, "_by_graph", noted)
    assert len(set(await nearest(store, query, 100)) & set(exact)) >= 90
    assert len(await nearest(store, query, 100, owner="ann")) == 30
    assert len(asked) == 1
    assert await nearest(store, query, 3, limits=Limits(project="p")) == exact[:3]
    await store.write(lambda transaction: transaction.vectors.drop(INDEX))
    await tidy_graphs(of_tables)
    assert await of_tables.fetchval(SELECT_GRAPHS) == 0


async def test_no_graph_is_made_of_vectors_that_do_not_fit(of_tables: asyncpg.Connection) -> None:
    assert not await ensure_graph(of_tables, 1, 4_096)
    assert await of_tables.fetchval(SELECT_GRAPHS) == 0


async def test_vectors_of_many_dimensions_are_stored_and_compared(store: PostgresStore) -> None:
    keys = await added(store, 3)
    await store.write(lambda transaction: transaction.vectors.open_index(INDEX, 4_096))
    owed = await store.read(lambda view: view.vectors.owed(INDEX, limit=9))
    vectors = np.random.default_rng(1).standard_normal((3, 4_096)).astype(np.float32)
    await store.write(lambda transaction: transaction.vectors.put(INDEX, owed, vectors))
    assert (await nearest(store, vectors[0], 3))[0][0] == keys[-1]


async def test_each_search_reads_only_the_keys_of_its_owner(store: PostgresStore) -> None:
    for number in range(30):
        await added(store, 100, f"owner {number}")
    await opened(store)
    await pay(store)
    parameters = {"owner": "owner 7", "index_key": 1, "agent_key": 1, "session_key": 1, "limit": 10, "keys": [1, 2]}
    parameters |= {"near": np.ones(DIMENSION, np.float32), "limit_agent": None, "limit_project": None, "kind": 0}
    async with store.view() as view:
        for statement in (
            statements.SELECT_NEAREST_OF_AGENT,
            statements.SELECT_NEAREST_OF_SESSION,
            statements.SELECT_NEAREST_AMONG,
            statements.SELECT_ALL_AMONG,
            statements.SELECT_DEBTS,
        ):
            plan = await view.transaction.all(f"EXPLAIN {statement}", **parameters)
            text = "\n".join(line for [line] in plan)
            assert "Index Cond: ((owner_key = " in text, text
            assert "Seq Scan on record" not in text, text
