"""What one process commits, subscribers at another hear of; also after the server was away."""

import math
from pathlib import Path

import anyio
import pytest

from kalito_mcp import Settings
from kalito_mcp.errors import StorageUnreachable
from kalito_mcp.runtime.database_address import address_of
from kalito_mcp.server import watcher
from kalito_mcp.server.build import build_server
from kalito_mcp.storage.postgres.database import PostgresStore
from kalito_mcp.wiring import memory_over
from tests.flows.harness import ERAS
from tests.flows.subscribers import subscribed
from tests.postgres import (
    APP,
    OWNER,
    SUPERUSER,
    Server,
    connected,
    lay_template,
    new_database,
    new_server,
    shared_server,
)
from tests.storage.postgres.owed_work import append

pytestmark = pytest.mark.anyio
LISTENERS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"


async def until_listeners(database: str, count: int, server: Server | None = None) -> None:
    """Wait until this many connections listen."""
    async with connected(database, SUPERUSER, server) as admin:
        with anyio.fail_after(30):
            while await admin.fetchval(LISTENERS) != count:  # noqa: ASYNC110 - the server knows
                await anyio.sleep(0.02)


async def test_a_subscriber_hears_of_what_another_worker_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "LOOK_S", math.inf)  # it hears, or finds nothing
    name = await new_database()
    url = shared_server().url(name)
    here, elsewhere = await PostgresStore.open(url), await PostgresStore.open(url)
    await append(elsewhere, "Hello.", owner="local")
    settings = Settings(database=address_of(tmp_path / "files.db"))
    await until_listeners(name, 0)
    async with subscribed(build_server(lambda: memory_over(here, settings)), ERAS[1], ["memory://sessions"]) as (
        _,
        heard,
    ):
        await until_listeners(name, 1)
        await append(elsewhere, "Hello again.", owner="local")
        await heard.all_of("memory://sessions")
    await until_listeners(name, 0)
    for store in (here, elsewhere):
        await store.close()


async def test_only_changes_of_the_owners_meant_are_heard_of_and_a_commit_without_an_owner_is_silent() -> None:
    name = await new_database()
    url = shared_server().url(name)
    here, elsewhere = await PostgresStore.open(url), await PostgresStore.open(url)
    for owner in ("ann", "ben"):
        await append(here, "Hello.", owner=owner)
    heard: list[int] = []
    any_heard = anyio.Event()

    def on_change() -> None:
        heard.append(1)
        any_heard.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(here.listen, lambda: {"ann", "nobody"}, on_change)
        await until_listeners(name, 1)
        async with connected(name, APP) as stranger:
            await stranger.execute("NOTIFY kalito_changes, 'nonsense'")
        await append(elsewhere, "Hello.", owner="ben")
        await append(elsewhere, "Hello.", owner="ann")
        with anyio.fail_after(20):
            await any_heard.wait()
        tasks.cancel_scope.cancel()
    assert heard == [1]
    for store in (here, elsewhere):
        await store.close()


async def test_a_server_that_comes_back_is_heard_again() -> None:
    shared_server()  # skips where there is no PostgreSQL
    server = new_server(fsync="on", synchronous_commit="on", full_page_writes="on")
    lay_template(server)
    name = await new_database(server)
    store = await PostgresStore.open(server.url(name), direct_url=server.url(name, OWNER))
    await append(store, "before", owner="ann")
    heard = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.listen, lambda: {"ann"}, heard.set)
        await until_listeners(name, 1, server)
        server.kill()
        server.start()
        with anyio.fail_after(30):
            while not heard.is_set():
                try:
                    await append(store, "after", owner="ann")
                except StorageUnreachable:
                    continue  # connections from before are found out one by one
                await anyio.sleep(0.1)
        tasks.cancel_scope.cancel()
    await store.close()
    server.kill()
