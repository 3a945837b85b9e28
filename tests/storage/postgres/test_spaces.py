"""A read learns with its beginning that its owner is in no space, and never later than it happened."""

from typing import Any

import asyncpg
import pytest

from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.spaces import Membership, Role, Space
from kalito_mcp.storage.postgres.database import PostgresStore
from kalito_mcp.storage.postgres.named_sql import positional
from kalito_mcp.storage.spaces import SELECT_MEMBERSHIPS
from tests.postgres import shared_server
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio
BEES = Space("bees", None, START_MS)


async def memberships(store: PostgresStore, *users: str) -> list[list[str]]:
    async with store.view() as view:
        return [[one.space.name for one in await view.spaces.memberships(user)] for user in users]


async def test_memberships_are_asked_for_only_if_there_are_any(
    database: str, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    fetch = asyncpg.Connection.fetch

    async def noted(connection: Any, query: str, *values: Any, **options: Any) -> Any:
        if query == positional(SELECT_MEMBERSHIPS)[0]:
            asked.append(values[0])
        return await fetch(connection, query, *values, **options)

    async with store.transaction() as writing:
        assert await writing.spaces.add_space(BEES)
        for user in ("ann", "bob"):
            await writing.sessions.create(Scope(user, agent="default", session="trip"), now_ms=START_MS)
    other = await PostgresStore.open(shared_server().url(database))
    monkeypatch.setattr(asyncpg.Connection, "fetch", noted)
    assert await memberships(store, "ann", "bob", "ann") == [[], [], []]
    assert asked == []
    async with other.transaction() as writing:
        assert await writing.spaces.set_member(Membership(BEES, "ann", Role.READER, START_MS))
    assert await memberships(store, "ann", "bob") == [["bees"], []]
    assert asked == ["ann"]
    async with other.transaction() as writing:
        assert [one.space for one in await writing.spaces.memberships("ann")] == [BEES]
        assert await writing.spaces.remove_member("bees", "ann")
        assert await writing.spaces.memberships("ann") == []
    asked.clear()
    assert await memberships(store, "ann") == [[]]
    assert asked == []
    await other.close()


async def test_a_view_keeps_the_spaces_with_which_it_began(database: str, store: PostgresStore) -> None:
    async with store.transaction() as writing:
        assert await writing.spaces.add_space(BEES)
        await writing.sessions.create(Scope("ann", agent="default", session="trip"), now_ms=START_MS)
    async with store.view() as view:
        assert await view.sessions.get(Scope("ann", session="trip")) is not None
        async with store.transaction() as writing:
            assert await writing.spaces.set_member(Membership(BEES, "ann", Role.READER, START_MS))
        assert await view.spaces.memberships("ann") == ()
    assert await memberships(store, "ann") == [["bees"]]
