"""Behind a real PgBouncer in transaction mode: starts, calls, and what only a direct connection can do."""

import logging

import anyio
import pytest

from kalito_mcp.domain.findings import Verdict
from kalito_mcp.errors import StorageUnreachable
from kalito_mcp.ports.storage_policy import StoragePolicy
from kalito_mcp.storage.postgres.database import PostgresStore
from kalito_mcp.storage.postgres.inspection import inspect
from tests.pgbouncer import Pooler, pgbouncer, shared_pooler
from tests.postgres import OWNER, lay_template, new_database, new_server, shared_server
from tests.storage.postgres.owed_work import append, said

pytestmark = pytest.mark.anyio


async def test_many_processes_start_at_once() -> None:
    pooler, name = shared_pooler(), await new_database()
    opened: list[PostgresStore] = []

    async def start() -> None:
        opened.append(await PostgresStore.open(pooler.url(name), direct_url=shared_server().url(name, OWNER)))

    async with anyio.create_task_group() as tasks:
        for _ in range(12):
            tasks.start_soon(start)
    for store in opened:
        await append(store, "Hello.")
    assert len(await said(opened[0], "ann")) == 12
    for store in opened:
        await store.close()


async def test_a_start_without_a_direct_connection_says_what_it_lacks(caplog: pytest.LogCaptureFixture) -> None:
    server, pooler, name = shared_server(), shared_pooler(), await new_database()
    for url, direct_url, is_lacking in (
        (pooler.url(name), None, True),
        (pooler.url(name), server.url(name, OWNER), False),
        (server.url(name), None, False),
    ):
        caplog.clear()
        store = await PostgresStore.open(url, direct_url=direct_url)
        warned = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
        assert ["KALITO_DATABASE_DIRECT" in one for one in warned] == [True] * is_lacking
        if is_lacking:
            await store.listen(lambda: {"ann"}, lambda: None)  # returns
        await store.close()


@pytest.mark.parametrize(("is_named", "verdict"), [(False, Verdict.WARNING), (True, Verdict.OK)])
def test_doctor_names_the_pooler(is_named: bool, verdict: Verdict) -> None:
    name = anyio.run(new_database)
    direct_url = shared_server().url(name, OWNER) if is_named else None
    found = {one.check: one.verdict for one in inspect(shared_pooler().url(name), direct_url, is_deep=False)}
    assert found.pop("pooler") is verdict
    assert set(found.values()) == {Verdict.OK}


@pytest.mark.campaign
async def test_a_server_that_comes_back_behind_its_pooler_is_used_again() -> None:
    program = pgbouncer()
    server = new_server(fsync="on", synchronous_commit="on", full_page_writes="on")
    lay_template(server)
    pooler, name = Pooler(program, server), await new_database(server)
    store = await PostgresStore.open(
        pooler.url(name), StoragePolicy(busy_timeout_s=1), direct_url=server.url(name, OWNER)
    )
    await append(store, "before")
    server.kill()
    with pytest.raises(StorageUnreachable, match="cannot be reached"):
        await append(store, "meanwhile")
    server.start()
    with anyio.fail_after(60):
        while True:
            try:
                await append(store, "after")
                break
            except StorageUnreachable:
                await anyio.sleep(0.2)
    assert await said(store, "ann") == ["before", "after"]
    await store.close()
    pooler.end()
    server.kill()
