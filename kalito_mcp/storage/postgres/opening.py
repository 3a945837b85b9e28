"""What has to hold of a database and of the role that serves it. A database that is not like this is refused."""

import secrets
from typing import Final

import asyncpg

from kalito_mcp.errors import ConfigurationError, StorageError
from kalito_mcp.storage.postgres.schema import applied, migrations, missing

OLDEST_SERVER: Final = 16
OLDEST_VECTOR: Final = (0, 8)

SELECT_SERVER: Final = """
SELECT current_setting('server_version_num')::int / 10000, current_user::text, pg_backend_pid(),
    (SELECT extversion FROM pg_extension WHERE extname = 'vector'), current_setting('data_checksums')
"""
# A policy binds neither the owner of a table that does not force it, nor a member of that role. A row that one policy
# shows is shown, whatever others say: each must say that it is the owner's. Restrictive ones only hide more.
SELECT_UNPROTECTED: Final = """
SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p') AND EXISTS (
    SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'owner_key' AND NOT a.attisdropped
) AND NOT (c.relrowsecurity AND c.relforcerowsecurity AND (
    SELECT coalesce(bool_and(is_of_owner), false)
    FROM pg_policy p, LATERAL (
        SELECT '(owner_key = (current_setting(''kalito.owner''::text))::bigint)' AS said
    ) o, LATERAL (
        SELECT coalesce(pg_get_expr(p.polqual, c.oid), o.said) = o.said
            AND coalesce(pg_get_expr(p.polwithcheck, c.oid), o.said) = o.said AS is_of_owner
    ) each
    WHERE p.polrelid = c.oid AND p.polpermissive
))
ORDER BY c.relname
"""
# A superuser is a member of every role.
SELECT_ROLE_FAULTS: Final = """
SELECT CASE WHEN r.rolname <> current_user THEN 'may become ' || r.rolname || ', which ' ELSE '' END || CASE
        WHEN r.rolsuper THEN 'is a superuser' WHEN r.rolbypassrls THEN 'has BYPASSRLS' ELSE 'owns the tables'
    END
FROM pg_roles r
WHERE (r.rolname = current_user OR NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user))
    AND pg_has_role(current_user, r.oid, 'MEMBER') AND (r.rolsuper OR r.rolbypassrls OR EXISTS (
        SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = current_schema() AND c.relname = 'records' AND c.relowner = r.oid
    ))
ORDER BY r.rolname <> current_user, r.rolname
"""


async def refuse_old_server(connection: asyncpg.Connection, place: str) -> None:
    """Raises ConfigurationError if the server or its pgvector is too old or missing."""
    version, _, _, vector, _ = await connection.fetchrow(SELECT_SERVER)
    if version < OLDEST_SERVER:
        raise ConfigurationError(f"{place} is PostgreSQL {version}; {OLDEST_SERVER} or newer is needed")
    if vector is None:
        raise ConfigurationError(
            f"{place} lacks the extension vector; let an administrator run CREATE EXTENSION vector in it"
        )
    if tuple(map(int, vector.split(".")[:2])) < OLDEST_VECTOR:
        raise ConfigurationError(
            f"{place} has vector {vector}; let an administrator run ALTER EXTENSION vector UPDATE (0.8 or newer)"
        )


async def refuse_unbound_role(connection: asyncpg.Connection, place: str) -> None:
    """Raises ConfigurationError if row level security would not bind the role of the connection."""
    _, role, _, _, _ = await connection.fetchrow(SELECT_SERVER)
    if faults := [row[0] for row in await connection.fetch(SELECT_ROLE_FAULTS)]:
        raise ConfigurationError(
            f"the role {role} {' and '.join(faults)}, so that {place} would not keep one person's memory from another; "
            "name an ordinary role in KALITO_DATABASE, and the owner in KALITO_DATABASE_DIRECT"
        )


async def refuse_unprotected(connection: asyncpg.Connection, place: str) -> None:
    """Raises StorageError if a table with an owner has no policy that binds everybody."""
    if unprotected := [row[0] for row in await connection.fetch(SELECT_UNPROTECTED)]:
        raise StorageError(f"{place}: no policy protects {', '.join(unprotected)}; restore the schema")


async def refuse_other_database(owner: asyncpg.Connection, owners: str, served: asyncpg.Connection, place: str) -> None:
    """Raises ConfigurationError if the connection of the role that owns the tables leads to another database than the
    one of the role that serves. Their names may differ all the same, as behind a pooler; a lock is of one database."""
    key = secrets.randbits(63)
    async with owner.transaction():
        await owner.execute("SELECT pg_advisory_xact_lock($1)", key)
        is_other = await served.fetchval("SELECT pg_try_advisory_xact_lock($1)", key)
    if is_other:
        raise ConfigurationError(
            f"KALITO_DATABASE_DIRECT leads to {owners}, which is another database than {place} of KALITO_DATABASE; "
            "name there the role that owns this one, and start again"
        )


async def refuse_other_schema(connection: asyncpg.Connection, place: str) -> None:
    """Raises an error that says what to do if the schema is not this release's."""
    if missing(await applied(connection), migrations(), place):
        raise ConfigurationError(
            f"the schema of {place} is not up to date; name the role that owns it in KALITO_DATABASE_DIRECT and start "
            "again, which brings it up to date"
        )


async def is_behind_pooler(connection: asyncpg.Connection) -> bool:
    """Whether a pooler answers instead of the server: it names other processes than the server's."""
    return bool((await connection.fetchrow(SELECT_SERVER))[2] != connection.get_server_pid())
