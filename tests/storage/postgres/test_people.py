"""What is of a person on PostgreSQL: every table is erased with them or is named with the reason, and a process that
knew them finds out."""

from collections.abc import Mapping
from typing import Final

import pytest

from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.spaces import Membership, Role, Space
from kalito_mcp.ports.store import WriteTransaction
from kalito_mcp.storage.postgres.database import PostgresStore
from kalito_mcp.storage.postgres.people import DELETE_ACCESS, DELETE_SLICES
from kalito_mcp.storage.sqlite import people as sqlite
from tests.postgres import OWNER, connected, new_database, shared_server
from tests.storage.postgres.test_audit import SELECT_TABLES
from tests.storage.postgres.test_workers import append, said
from tests.storage.test_people import KEPT, WITH_ANOTHER

pytestmark = pytest.mark.anyio
BY_OTHER_STATEMENTS: Final = {"owners", "vector_debtors"}
ONLY_HERE: Final[Mapping[str, str]] = {
    "audit_noticed": "empty between transactions",
}


async def test_every_table_is_erased_with_a_person_or_left_for_a_reason() -> None:
    async with connected(await new_database(), OWNER) as connection:
        tables = {name for [name] in await connection.fetch(SELECT_TABLES)}
    erased = DELETE_ACCESS.keys() | DELETE_SLICES.keys() | BY_OTHER_STATEMENTS
    named = erased | WITH_ANOTHER.keys() | KEPT.keys() | ONLY_HERE.keys()
    assert tables - named == set()
    assert not erased & KEPT.keys()


async def test_what_is_erased_on_one_machine_is_erased_on_the_others() -> None:
    assert {*sqlite.DELETE_RECORDS, *sqlite.DELETE_SLICES, *sqlite.DELETE_NAMES} <= DELETE_SLICES.keys()
    assert sqlite.DELETE_ACCESS.keys() == DELETE_ACCESS.keys()


async def test_a_process_that_knew_somebody_goes_on_with_whoever_has_the_name_now() -> None:
    server, name = shared_server(), await new_database()
    first, second = [await PostgresStore.open(server.url(name)) for _ in range(2)]
    try:
        await append(first, "anna", "of the first Anna")
        await append(second, "anna", "of her, too")
        while await first.write(lambda transaction: transaction.people.erase("anna", most=100)):
            pass
        assert await said(second, "anna") == []
        await append(first, "anna", "of the second Anna")
        assert await said(second, "anna") == [(1, "of the second Anna")]
        while await first.write(lambda transaction: transaction.people.erase("anna", most=100)):
            pass
        await append(second, "anna", "of the third Anna")
        assert await said(first, "anna") == await said(second, "anna") == [(1, "of the third Anna")]
        await second.maintenance.tidy()
        assert [one.owner for one in await first.read(lambda view: view.people.owners())] == ["anna"]
        assert (await first.read(lambda view: view.sessions.totals(Scope("anna"))))["messages"] == 1
    finally:
        for store in (first, second):
            await store.close()


async def test_chores_of_another_process_do_not_bring_the_name_back() -> None:
    server, name = shared_server(), await new_database()
    first, second = [await PostgresStore.open(server.url(name)) for _ in range(2)]
    try:
        await append(second, "anna", "She said this.")
        while await first.write(lambda transaction: transaction.people.erase("anna", most=100)):
            pass
        await second.maintenance.tidy()
        assert await first.read(lambda view: view.people.owners()) == []
    finally:
        for store in (first, second):
            await store.close()


async def test_a_process_that_knew_somebody_finds_out_that_they_have_nothing(
    database: str, store: PostgresStore
) -> None:
    other = await PostgresStore.open(shared_server().url(database))
    for name in ("anna", "ben"):
        await append(store, name, "words")
        await append(other, name, "more words")
    while await other.write(lambda transaction: transaction.people.erase("anna", most=100)):
        pass

    async def write(transaction: WriteTransaction) -> int:
        assert await transaction.people.has("ben")
        assert not await transaction.people.has("anna")
        return (await transaction.sessions.totals(Scope("ben")))["messages"]

    assert await store.write(write) == 2, "it is the write of the other owner again"
    assert [one.owner for one in await store.read(lambda view: view.people.owners())] == ["ben"]
    await other.close()


async def test_a_member_whom_a_migration_brought_has_something(database: str, store: PostgresStore) -> None:
    space = Space("bees", None, 0)
    await store.write(lambda transaction: transaction.spaces.add_space(space))
    await store.write(lambda transaction: transaction.spaces.set_member(Membership(space, "rae", Role.READER, 0)))
    async with connected(database, OWNER) as connection:
        await connection.execute("DELETE FROM owners WHERE name = 'rae'")
    assert await store.write(lambda transaction: transaction.people.has("rae"))
    assert not await store.write(lambda transaction: transaction.people.has("dan"))
    async with connected(database, OWNER) as connection:
        assert not await connection.fetch("SELECT FROM owners WHERE name IN ('rae', 'dan')")
