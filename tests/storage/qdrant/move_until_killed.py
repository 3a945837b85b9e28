"""A program that moves vectors, changes one, and is killed where KALITO_CRASH_POINT says: DATABASE URL."""

import pathlib
import sys

import anyio

from kalito_mcp.ports.embedder import VectorPolicy
from kalito_mcp.storage.qdrant.points import configured_points
from kalito_mcp.storage.sqlite.database import SqliteStore
from tests.contract.test_vectors import append, change, opened, pay


async def move(database: pathlib.Path, url: str) -> None:
    points = configured_points(VectorPolicy(qdrant=url, qdrant_timeout_s=30))
    store = await SqliteStore.open(database, points=points)
    await append(store, "apple", "pear", "plum")
    await pay(store, await opened(store))
    await store.maintenance.move_vectors()
    await change(store, 1, text="ferry")
    await store.maintenance.move_vectors()


if __name__ == "__main__":
    anyio.run(move, pathlib.Path(sys.argv[1]), sys.argv[2])
