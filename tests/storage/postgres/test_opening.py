"""A database that cannot be served as it is, or a role that nothing binds, is refused in words."""

import asyncpg
import pytest

from kalito_mcp.errors import ConfigurationError, SchemaTooNew, SchemaUnknown, StorageError, StorageUnreachable
from kalito_mcp.storage.postgres.connections import Place
from kalito_mcp.storage.postgres.database import PostgresStore
from tests.postgres import APP, OWNER, SUPERUSER, new_database, shared_server

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(("role", "reason"), [(SUPERUSER, "is a superuser"), (OWNER, "owns the tables")])
async def test_a_role_that_no_policy_binds_is_refused(role: str, reason: str) -> None:
    url = shared_server().url(await new_database(), role)
    with pytest.raises(ConfigurationError, match=f"the role {role} {reason}.*KALITO_DATABASE_DIRECT"):
        await PostgresStore.open(url)


async def test_a_role_that_bypasses_policies_or_may_become_the_owner_is_refused() -> None:
    server = shared_server()
    admin = await asyncpg.connect(server.url("postgres", SUPERUSER))
    await admin.execute("CREATE ROLE exempt LOGIN BYPASSRLS")
    await admin.execute(f"CREATE ROLE deputy LOGIN IN ROLE {OWNER}; CREATE ROLE heir LOGIN IN ROLE exempt")
    try:
        name = await new_database()
        for role, reason in (
            ("exempt", "exempt has BYPASSRLS"),
            ("deputy", f"deputy may become {OWNER}, which owns the tables"),
            ("heir", "heir may become exempt, which has BYPASSRLS"),
        ):
            with pytest.raises(ConfigurationError, match=reason):
                await PostgresStore.open(server.url(name, role))
    finally:
        await admin.execute(f"DROP DATABASE {name} WITH (FORCE)")
        await admin.execute("DROP ROLE heir; DROP ROLE exempt; DROP ROLE deputy")
        await admin.close()


@pytest.mark.parametrize(
    "broken",
    [
        "ALTER TABLE records NO FORCE ROW LEVEL SECURITY",
        "ALTER TABLE sessions DISABLE ROW LEVEL SECURITY",
        "DROP POLICY of_owner ON term_pages",
        "ALTER POLICY of_owner ON records USING (true)",
        "ALTER POLICY of_owner ON records WITH CHECK (owner_key > 0)",
        "CREATE POLICY also ON sessions FOR SELECT USING (owner_key <> 0)",
    ],
)
async def test_a_table_that_is_not_protected_is_refused(broken: str) -> None:
    server, name = shared_server(), await new_database()
    owner = await asyncpg.connect(server.url(name, OWNER))
    await owner.execute(broken)
    await owner.close()
    with pytest.raises(StorageError, match=r"no policy protects (records|sessions|term_pages)"):
        await PostgresStore.open(server.url(name))


async def test_a_database_without_the_schema_or_the_extension_is_refused_and_brought_up_to_date_by_its_owner() -> None:
    server = shared_server()
    admin = await asyncpg.connect(server.url("postgres", SUPERUSER))
    await admin.execute(f"CREATE DATABASE bare OWNER {OWNER}")
    await admin.close()
    with pytest.raises(ConfigurationError, match="lacks the extension vector"):
        await PostgresStore.open(server.url("bare"))
    admin = await asyncpg.connect(server.url("bare", SUPERUSER))
    await admin.execute("CREATE EXTENSION vector")
    await admin.close()
    with pytest.raises(ConfigurationError, match=r"the schema .* is not up to date; .*KALITO_DATABASE_DIRECT"):
        await PostgresStore.open(server.url("bare"))
    for _ in range(2):
        store = await PostgresStore.open(server.url("bare"), direct_url=server.url("bare", OWNER))
        assert await store.revision("ann") == 0
        await store.close()


@pytest.mark.parametrize("is_served_one_ready", [False, True])
async def test_an_owner_of_another_database_is_told_and_nothing_is_changed_there(is_served_one_ready: bool) -> None:
    server, ready = shared_server(), await new_database()
    bare = f"bare_{ready}"
    admin = await asyncpg.connect(server.url("postgres", SUPERUSER))
    await admin.execute(f"CREATE DATABASE {bare} OWNER {OWNER}")
    await admin.close()
    admin = await asyncpg.connect(server.url(bare, SUPERUSER))
    await admin.execute("CREATE EXTENSION vector")
    served, other = (ready, bare) if is_served_one_ready else (bare, ready)
    url, direct_url = server.url(served), server.url(other, OWNER)
    reason = f"KALITO_DATABASE_DIRECT leads to {Place(direct_url)}, which is another database than {Place(url)}"
    with pytest.raises(ConfigurationError, match=reason):
        await PostgresStore.open(url, direct_url=direct_url)
    assert await admin.fetchval("SELECT to_regclass('migrations')") is None
    await admin.close()


async def test_another_schema_is_refused_and_left_as_it_is() -> None:
    server = shared_server()
    for change, error in (
        ("UPDATE migrations SET checksum = 'other' WHERE number = 1", SchemaUnknown),
        ("INSERT INTO migrations (number, name, checksum) VALUES (99, 'later', 'x')", SchemaTooNew),
    ):
        name = await new_database()
        owner = await asyncpg.connect(server.url(name, OWNER))
        await owner.execute(change)
        before = await owner.fetch("SELECT * FROM migrations ORDER BY number")
        for direct_url in (None, server.url(name, OWNER)):
            with pytest.raises(error):
                await PostgresStore.open(server.url(name), direct_url=direct_url)
        assert await owner.fetch("SELECT * FROM migrations ORDER BY number") == before
        await owner.close()


@pytest.mark.parametrize(
    ("url", "error", "reason"),
    [
        (f"postgresql://{APP}:canary@/nowhere?host={{folder}}", ConfigurationError, "nowhere .* does not exist"),
        ("postgresql://{APP}:canary@/x?host={folder}/none", StorageUnreachable, "cannot be reached"),
        ("postgresql://nobody-here:canary@/kalito?host={folder}", ConfigurationError, "does not let this role in"),
        ("postgresql://ann:canary@localhost:port/x", ConfigurationError, "cannot be used"),
        ("postgresql://ann:canary@127.0.0.1:9/x", StorageUnreachable, "cannot be reached"),
    ],
)
async def test_an_address_that_leads_nowhere_is_refused_without_its_password(
    url: str, error: type[Exception], reason: str
) -> None:
    with pytest.raises(error, match=reason) as refused:
        await PostgresStore.open(url.format(folder=shared_server().folder, APP=APP))
    assert "canary" not in str(refused.value)
