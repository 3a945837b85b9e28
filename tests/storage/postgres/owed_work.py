"""What tests of owed work share: a session, and what the server knows of leases."""

from typing import Final

import anyio

from kalito_mcp.domain.scope import Scope
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.postgres.database import PostgresStore
from tests import drafts
from tests.postgres import SUPERUSER, connected
from tests.scripted import START_MS

TRIP: Final = Scope("ann", session="trip")


async def append(store: PostgresStore, *texts: str, owner: str = "ann") -> None:
    """Store messages in the owner's session."""
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, Scope(owner, session="trip"), now_ms=START_MS)
        await transaction.conversations.append_messages(
            session, [drafts.message(text) for text in texts], now_ms=START_MS
        )


async def said(store: PostgresStore, owner: str) -> list[str]:
    """The texts of the owner's session."""
    async with store.view() as view:
        session = await view.sessions.get(Scope(owner, session="trip"))
        assert session is not None
        return [one.text for one in await view.conversations.messages(session, first_seq=1, last_seq=1_000)]


async def let_leases_end(database: str) -> None:
    """As if the time of every lease were over."""
    async with connected(database, SUPERUSER) as admin:
        await admin.execute("UPDATE owners SET leased_until = now(); UPDATE vector_debtors SET leased_until = now()")


async def until_nothing_is_owed(database: str) -> None:
    """Wait until no owner owes work."""
    async with connected(database, SUPERUSER) as admin:
        with anyio.fail_after(60):
            while await admin.fetchval("SELECT count(*) FROM owners WHERE owes"):  # noqa: ASYNC110 - by other processes
                await anyio.sleep(0.05)
