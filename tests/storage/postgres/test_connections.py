"""Connections to the one of several hosts that takes writes, how many there are, and how long a statement takes."""

import itertools
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import asyncpg
import pytest

from kalito_mcp.domain.scope import Scope
from kalito_mcp.errors import StorageBusy, StorageUnreachable
from kalito_mcp.ports.storage_policy import StoragePolicy
from kalito_mcp.ports.store import WriteTransaction
from kalito_mcp.storage.postgres import database
from kalito_mcp.storage.postgres.database import WRITERS, PostgresStore
from tests.postgres import APP, SUPERUSER, new_database, shared_server
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio
_NUMBERS = itertools.count()


async def create_session(transaction: WriteTransaction) -> None:
    await transaction.sessions.create(Scope("ann", "default", f"talk {next(_NUMBERS)}"), now_ms=START_MS)


@asynccontextmanager
async def taking_no_writes() -> AsyncIterator[None]:
    """The server is as a standby for the block."""
    admin = await asyncpg.connect(shared_server().url("postgres", SUPERUSER))
    try:
        await admin.execute("ALTER SYSTEM SET default_transaction_read_only = on")
        await admin.execute("SELECT pg_reload_conf()")
        yield
    finally:
        await admin.execute("ALTER SYSTEM RESET default_transaction_read_only")
        await admin.execute("SELECT pg_reload_conf()")
        while await admin.fetchval("SHOW default_transaction_read_only") == "on":
            pass
        await admin.close()


@pytest.mark.parametrize("hosts", ["/nowhere-at-all,{folder}", "{folder},/nowhere-at-all"])
async def test_a_host_that_does_not_answer_is_passed_over(hosts: str) -> None:
    name = await new_database()
    hosts = hosts.format(folder=shared_server().folder)
    store = await PostgresStore.open(f"postgresql://{APP}@/{name}?host={hosts}")
    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(store.revision, "ann")
    await store.write(create_session)
    assert await store.revision("ann") > 0
    await store.close()


@pytest.mark.parametrize("hosts", ["127.0.0.1:9,localhost:9", "[::1]:9,127.0.0.1:9"])
async def test_hosts_that_do_not_answer_are_all_named_without_the_password(hosts: str) -> None:
    with pytest.raises(StorageUnreachable, match=re.escape(f"the database memory at {hosts} cannot be reached")):
        await PostgresStore.open(f"postgresql://ann:canary@{hosts}/memory")


async def test_a_server_that_takes_no_writes_is_refused_and_left_and_used_again_when_it_does() -> None:
    url = shared_server().url(await new_database())
    store = await PostgresStore.open(url)
    assert await store.revision("ann") == 0  # over a connection that is kept
    async with taking_no_writes():
        for _ in range(2):
            with pytest.raises(StorageUnreachable, match="takes no writes, because only a standby answers"):
                while True:  # until the server has read its settings
                    await store.write(create_session)
        with pytest.raises(StorageUnreachable, match="name the primary in KALITO_DATABASE"):
            await PostgresStore.open(url)
    await store.write(create_session)
    await store.close()


async def test_a_process_has_no_more_connections_than_it_may_and_says_so_when_they_are_in_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = shared_server().url(await new_database())
    store = await PostgresStore.open(url, StoragePolicy(readers=1))
    are_open = anyio.Semaphore(0)
    ended = anyio.Event()

    async def hold() -> None:
        async with store.view() as view:
            await view.sessions.get(Scope("ann", "default", "talk"))
            are_open.release()
            await ended.wait()

    async with anyio.create_task_group() as tasks:
        for _ in range(1 + WRITERS):
            tasks.start_soon(hold)
        for _ in range(1 + WRITERS):
            await are_open.acquire()
        monkeypatch.setattr(store, "_policy", StoragePolicy(readers=1, busy_timeout_s=0.05))
        with pytest.raises(StorageBusy, match=r"all 5 connections of this process .* are in use; try again, or serve"):
            await store.revision("ann")
        monkeypatch.undo()
        ended.set()
    assert await store.revision("ann") == 0
    await store.close()


async def test_a_process_works_with_one_connection_if_the_server_has_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    name = await new_database()
    admin = await asyncpg.connect(shared_server().url("postgres", SUPERUSER))
    await admin.execute(f"ALTER DATABASE {name} CONNECTION LIMIT 1")
    await admin.close()
    store = await PostgresStore.open(shared_server().url(name))
    async with anyio.create_task_group() as tasks:
        for _ in range(6):
            tasks.start_soon(store.write, create_session)
    assert await store.revision("ann") > 0
    monkeypatch.setattr(database, "_CONNECT_S", 0.3)
    with pytest.raises(StorageBusy, match=r"has no connection free: .* try again. If it stays like this, raise"):
        await PostgresStore.open(shared_server().url(name))
    await store.close()


async def test_each_statement_of_a_call_has_a_time_limit_but_chores_take_as_long_as_they_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limit, sleep = "SELECT current_setting('statement_timeout')", "SELECT pg_sleep(60)"
    store = await PostgresStore.open(shared_server().url(await new_database()), StoragePolicy(busy_timeout_s=20.0))
    assert await store.read(lambda view: view.transaction.all(limit)) == [("30s",)]
    assert await store.write(lambda transaction: transaction.transaction.all(limit)) == [("50s",)]
    async with store.transaction() as transaction:
        assert await transaction.transaction.all(limit) == [("0",)]
    monkeypatch.setattr(database, "_STATEMENT_S", 0.01)
    with pytest.raises(StorageBusy, match="takes longer for a statement than it allows"):
        await store.read(lambda view: view.transaction.all(sleep))
    with pytest.raises(StorageUnreachable):  # the server has no limit for a statement without a transaction
        await store.read(lambda view: view.transaction.all(sleep), is_short=True)
    monkeypatch.undo()
    assert await store.revision("ann") == 0
    await store.close()
