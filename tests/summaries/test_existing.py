"""A summary begins right after the last one of its level."""

import pytest

from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import Session
from kalito_mcp.errors import SummaryRangeConflict
from kalito_mcp.ports.conversations import SummaryDraft
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.summaries.existing import add_next
from tests import drafts
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio
TRIP = Scope(session="trip")


async def session_of(store: SqliteStore) -> Session:
    async with store.transaction() as transaction:
        return await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)


async def append(store: SqliteStore, count: int) -> None:
    session = await session_of(store)
    async with store.transaction() as transaction:
        batch = [drafts.message(f"m{n}") for n in range(count)]
        await transaction.conversations.append_messages(session, batch, now_ms=START_MS)


async def add_summaries(store: SqliteStore, *batch: SummaryDraft) -> None:
    session = await session_of(store)
    async with store.transaction() as transaction:
        for draft in batch:
            await add_next(transaction, session, [draft])


@pytest.mark.parametrize("start", [1, 2, 3, 5, 0, -1])
async def test_a_summary_that_does_not_begin_right_after_the_last_is_refused(store: SqliteStore, start: int) -> None:
    await append(store, 9)
    await add_summaries(store, drafts.summary(1, 3))
    before = await session_of(store)
    with pytest.raises(SummaryRangeConflict, match="4"):
        await add_summaries(store, drafts.summary(start, 8, record_id="other"))
    assert await session_of(store) == before
    await add_summaries(store, drafts.summary(4, 8))
    assert (await session_of(store)).summarized_seq == 8


async def test_the_first_summary_of_a_level_begins_at_the_first_message(store: SqliteStore) -> None:
    await append(store, 4)
    with pytest.raises(SummaryRangeConflict):
        await add_summaries(store, drafts.summary(2, 3))
    await add_summaries(store, drafts.summary(1, 2), drafts.summary(3, 4))
    with pytest.raises(SummaryRangeConflict):
        await add_summaries(store, drafts.summary(3, 4, level=1))
