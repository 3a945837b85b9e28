"""A program that builds an index of vectors and is killed after some batches: DATABASE BATCHES."""

import os
import pathlib
import signal
import sys
from collections.abc import Sequence

import anyio

from kalito_mcp.ports.embedder import VectorPolicy
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.upkeep.vector_worker import VectorWorker
from tests.scripted_embedder import ScriptedEmbedder


async def rebuild(database: str, batches: int) -> None:
    left = batches

    def before(texts: Sequence[str]) -> None:
        nonlocal left
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1

    store = await SqliteStore.open(pathlib.Path(database))
    embedder = ScriptedEmbedder("second", before=before)
    try:
        await VectorWorker(store, embedder, VectorPolicy(batch=4)).rebuild(lambda done, total: None)
    finally:
        await store.close()


if __name__ == "__main__":
    anyio.run(rebuild, sys.argv[1], int(sys.argv[2]))
