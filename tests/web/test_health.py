"""What a balancer hears: whether the process runs, and whether its database answers."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import asyncpg
import pytest
from starlette.requests import Request

from kalito_mcp.memory import Memory
from kalito_mcp.storage.postgres import schema as of_postgres
from kalito_mcp.storage.sqlite import schema as of_sqlite
from kalito_mcp.web.health import health_routes
from kalito_mcp.wiring import open_memory
from tests.postgres import SUPERUSER, connected, new_database, shared_server

pytestmark = pytest.mark.anyio


async def asked(path: str, memory: Callable[[], Awaitable[Memory]]) -> tuple[int, str]:
    [route] = [one for one in health_routes(memory, lambda: False) if one.path == path]
    response = await route.endpoint(Request({"type": "http"}))
    return response.status_code, bytes(response.body).decode()


async def unreachable() -> Memory:
    async with open_memory("postgresql://ann:canary@127.0.0.1:9/memory") as memory:
        return memory


async def test_a_server_without_its_database_lives_and_is_not_ready_and_says_so_in_a_word() -> None:
    assert await asked("/health/live", unreachable) == (200, "live\n")
    status, text = await asked("/health/ready", unreachable)
    assert (status, json.loads(text)) == (503, {"status": "storage_unreachable"})


async def test_ready_names_the_store_and_how_far_its_schema_is(tmp_path: Path) -> None:
    postgres = shared_server().url(await new_database())
    stores = ("sqlite", tmp_path / "memory.db", of_sqlite), ("postgres", postgres, of_postgres)
    for store, database, schema in stores:
        async with open_memory(database) as memory:

            async def opened(memory: Memory = memory) -> Memory:
                return memory

            status, text = await asked("/health/ready", opened)
        newest = len(schema.migrations())
        assert (status, json.loads(text)) == (
            200,
            {"status": "ready", "store": store, "migration": newest, "known_migration": newest, "owed_s": 0.0},
        )


async def test_a_worker_is_ready_on_a_schema_that_a_newer_release_has_expanded_and_not_without_its_database() -> None:
    server, name = shared_server(), await new_database()
    async with open_memory(server.url(name)) as memory:

        async def opened() -> Memory:
            return memory

        async with connected(name, SUPERUSER) as admin:
            await admin.execute("INSERT INTO migrations (number, name, checksum) VALUES (99, 'later', 'x')")
        status, text = await asked("/health/ready", opened)
        assert (status, json.loads(text)["migration"]) == (200, 99)
        admin = await asyncpg.connect(server.url("postgres", SUPERUSER))
        await admin.execute(f"DROP DATABASE {name} WITH (FORCE)")
        await admin.close()
        status, text = await asked("/health/ready", opened)
        assert status == 503
        assert name not in text
