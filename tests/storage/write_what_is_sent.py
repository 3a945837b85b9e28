"""A program that has a database open and writes each line that it is sent: DATABASE MESSAGES."""

import sys
from pathlib import Path

import anyio

from kalito_mcp.domain.scope import Scope
from kalito_mcp.errors import StorageReplaced
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.sqlite.database import SqliteStore
from tests import drafts
from tests.scripted import START_MS

TRIP = Scope(session="trip")


async def append(store: SqliteStore, *texts: str) -> None:
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
        await transaction.conversations.append_messages(
            session, [drafts.message(text) for text in texts], now_ms=START_MS
        )


async def fill(store: SqliteStore, messages: int) -> None:
    """With 1 message nothing but the first page is in the file itself; with 60 all but the last one's is."""
    if messages > 1:
        await append(store, *(f"{number} of the served one" for number in range(1, messages)))
        async with store._on_opened_files():
            assert store._writer is not None
            await store._writer.execute_fetchall("PRAGMA wal_checkpoint(PASSIVE)")
    await append(store, "0 of the served one")


async def main() -> None:
    store = await SqliteStore.open(Path(sys.argv[1]))
    await fill(store, int(sys.argv[2]))
    print("filled", flush=True)
    for line in sys.stdin:
        try:
            await append(store, line.strip())
        except StorageReplaced:
            print("refused", flush=True)
        else:
            print("stored", flush=True)
    await store.close()


if __name__ == "__main__":
    anyio.run(main)
