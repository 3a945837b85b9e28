"""Forgetting what has expired, on PostgreSQL: it waits for nobody, and nobody waits for it."""

from collections.abc import AsyncIterator

import anyio
import pytest

from kalito_mcp.domain.access import TokenKind
from kalito_mcp.domain.sign_in import Attempts
from kalito_mcp.domain.zone import DAY_MS
from kalito_mcp.storage.postgres.database import PostgresStore
from tests import sign_ins
from tests.postgres import shared_server
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio
NOW_MS = START_MS + 2 * DAY_MS


@pytest.fixture
async def stores(database: str) -> AsyncIterator[list[PostgresStore]]:
    opened = [await PostgresStore.open(shared_server().url(database)) for _ in range(2)]
    yield opened
    for one in opened:
        await one.close()


async def put_expired(store: PostgresStore, owner: str) -> None:
    await sign_ins.consent(store, sign_ins.grant(f"grant_{owner}", owner=owner))
    expired = {"owner": owner, "kind": TokenKind.ACCESS, "grant": f"grant_{owner}", "expires_at": START_MS}
    async with store.transaction() as transaction:
        await transaction.access.add_token(sign_ins.token(f"tok_{owner}", **expired), owner.encode())
        await transaction.sign_in.add_request(owner.encode(), sign_ins.request())
        await transaction.sign_in.put_attempts(owner, Attempts(1, START_MS, START_MS))


async def left(store: PostgresStore) -> tuple[list[str], list[str], int]:
    """Of whom there are tokens and consents, and how many requests there are."""
    async with store.view() as view:
        tokens = [one.owner for one in await view.access.tokens(None, limit=9)]
        grants = [one.owner for one in await view.sign_in.grants(None, now_ms=NOW_MS, limit=9)]
        counted = [await view.sign_in.request(owner) for owner in (b"ann", b"ben")]
    return tokens, grants, sum(one is not None for one in counted)


async def test_what_an_owner_has_who_is_written_for_is_left_to_the_next_time(stores: list[PostgresStore]) -> None:
    for owner in ("ann", "ben"):
        await put_expired(stores[0], owner)
    async with stores[0].transaction() as transaction:
        assert await transaction.sign_in.request(b"ann") is not None
        assert await transaction.sign_in.attempts("ann") is not None
        await transaction.sign_in.put_attempts("ann", Attempts(2, START_MS, START_MS))
        await transaction.access.add_token(sign_ins.token("tok_new"), b"new")
        with anyio.fail_after(3):
            await stores[1].write(lambda other: other.sign_in.drop_expired(NOW_MS))
        assert await left(stores[1]) == (["ann"], ["ann"], 1)
    await stores[1].write(lambda other: other.sign_in.drop_expired(NOW_MS))
    assert await left(stores[1]) == (["ann"], [], 0)


async def test_two_that_forget_do_not_wait_for_one_another_s_owners(stores: list[PostgresStore]) -> None:
    await put_expired(stores[0], "ben")
    async with stores[0].transaction() as first:
        await first.sign_in.drop_expired(NOW_MS)  # has the lock of ben now
        await put_expired(stores[1], "ann")
        async with stores[1].transaction() as second:
            with anyio.fail_after(3):
                await second.sign_in.drop_expired(NOW_MS)
                await first.access.add_token(sign_ins.token("tok_new"), b"new")
    assert await left(stores[1]) == (["ann", "ann"], ["ann"], 1)


async def test_a_use_of_a_token_waits_for_nobody(stores: list[PostgresStore]) -> None:
    async with stores[0].transaction() as transaction:
        await transaction.access.add_token(sign_ins.token("tok_1"), b"one")
    async with stores[0].transaction() as transaction:
        assert await transaction.access.retire_token("tok_1", now_ms=START_MS)
        with anyio.fail_after(3):
            await stores[1].write(lambda other: other.access.used_token("tok_1", now_ms=START_MS))
    [found] = await stores[1].read(lambda view: view.access.tokens("ann", limit=1))
    assert (found.revoked_at, found.last_used_at) == (START_MS, None)
