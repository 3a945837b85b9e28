"""A program that stores messages and is killed before it does what they owe: URL LEASE_S COUNT."""

import os
import signal
import sys

import anyio

from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.postgres.database import PostgresStore
from tests import drafts
from tests.scripted import START_MS
from tests.storage.postgres.owed_work import TRIP


async def owe(url: str, lease_s: float, count: int) -> None:
    store = await PostgresStore.open(url, lease_s=lease_s)
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
        batch = [drafts.message(f"Message {number} of the budget.") for number in range(count)]
        await transaction.conversations.append_messages(session, batch, now_ms=START_MS)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    anyio.run(owe, sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
