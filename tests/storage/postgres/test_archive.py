"""What an archive leaves in a PostgreSQL database besides its entries."""

import json
from collections.abc import Sequence
from typing import Any, Final

import pytest

from kalito_mcp.domain.archive import ArchiveEntry, Selection, completed
from kalito_mcp.domain.scope import Scope
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.postgres.database import PostgresStore
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio
TASK: Final = {
    "hash": bytes(8),
    "agent_key": 1,
    "type": "task",
    "text": "x",
    "importance": 0.5,
    "tokens": 1,
    "created_at": 1,
}
ALL: Final = Selection()


def tasks(*fields: dict[str, Any]) -> Sequence[ArchiveEntry]:
    """An agent with tasks, whose ids are `task <key>`."""
    agent = ArchiveEntry("agents", {"key": 1, "id": "default"})
    given = [ArchiveEntry("records", {**TASK, "id": f"task {one['key']}", **one}) for one in fields]
    return [*map(completed, [agent, *given])]


async def put_in(store: PostgresStore, entries: Sequence[ArchiveEntry], owner: str = "ann") -> None:
    async with store.transaction() as transaction:
        await transaction.archive.add(owner, entries)
        await transaction.archive.finish([owner])


async def test_what_records_supersede_is_known_again_whatever_else_their_attributes_have(store: PostgresStore) -> None:
    named = {"supersedes": ["task 7", "msg_3", "task 9", "task 8", "no such task"], "details": "a\0b"}
    message = {"session_key": 1, "type": "message", "role": "user", "seq": 1, "id": None}
    agent, *records = tasks(
        {"key": 3, **message},
        {"key": 7, "text": "a\0b"},
        {"key": 8, "deleted_at": 2, "purged_at": 2},
        {"key": 9, "attributes": json.dumps(named)},
        {"key": 10, "attributes": '["supersedes"]'},
        {"key": 11, "attributes": '{"supersedes'},
    )
    session = ArchiveEntry("sessions", {"key": 1, "id": "s", "agent_key": 1, "created_at": 1, "updated_at": 1})
    await put_in(store, [agent, completed(session), *records])
    async with store.view() as view:
        found = await view.transaction.all(
            "SELECT by_key, record_key FROM superseded_records WHERE owner_key = :owner ORDER BY record_key",
            owner="ann",
        )
    assert [tuple(row) for row in found] == [(9, 3), (9, 7)]


async def test_a_cause_that_did_not_come_along_is_forgotten_and_the_agent_counts_its_records(
    store: PostgresStore,
) -> None:
    await put_in(store, tasks({"key": 1, "caused_by": 5}, {"key": 2, "caused_by": 1}, {"key": 3, "deleted_at": 2}))
    async with store.view() as view:
        found = [one async for page in view.archive.entries("ann", ALL) for one in page]
    assert [one.fields["caused_by"] for one in found if one.kind == "records"] == [None, 1, None]
    assert [one.fields["record_count"] for one in found if one.kind == "agents"] == [2]


async def test_whether_the_store_is_empty_is_asked_without_writing_for_anybody(store: PostgresStore) -> None:
    async with store.transaction() as transaction:
        await ensure_session(transaction.sessions, Scope("ann", session="s"), now_ms=START_MS)
    earlier = await store.revision("ann")
    async with store.transaction() as transaction:
        assert not await transaction.archive.is_empty()
        assert await transaction.sessions.get(Scope("bob", session="s")) is None
        assert not await transaction.archive.is_empty()
        assert await transaction.sessions.get(Scope("bob", session="s")) is None
    assert await store.revision("ann") == earlier


async def test_an_archive_of_many_rows_comes_in_pages_of_one_owner(store: PostgresStore) -> None:
    keys = range(1, 1_203)
    await put_in(store, tasks(*({"key": key} for key in keys)), "ann")
    await put_in(store, tasks(*({"key": key, "text": "Bob's"} for key in keys)), "bob")
    async with store.view() as view:
        found = []
        async for page in view.archive.entries("ann", ALL):
            found.append([one.fields for one in page if one.kind == "records"])
            await view.sessions.get(Scope("bob", session="s"))
    sizes = [len(page) for page in found if page]
    assert sizes == [500, 500, 202]
    assert {(one["text"], one["key"]) for page in found for one in page} == {("x", key) for key in keys}


async def test_the_text_index_is_marked_to_be_rebuilt(store: PostgresStore) -> None:
    await put_in(store, tasks({"key": 1}))
    async with store.view() as view:
        [[analysis]] = await view.transaction.all("SELECT analysis FROM identity")
    assert analysis == 0
