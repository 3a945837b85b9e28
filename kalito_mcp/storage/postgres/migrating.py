"""Applies the steps of the schema that a database lacks. Only one process at a time does."""

from collections.abc import Callable, Sequence
from typing import Final

import asyncpg

from kalito_mcp.storage.postgres.schema import CREATE_MIGRATIONS, INSERT_MIGRATION, Migration, applied, missing

_LOCK: Final = 0x6B61_6C69  # "kali": of this session, so not through a pooler
GRANTS: Final = (
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}",
    "GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA {schema} TO {role}",
    "GRANT EXECUTE ON FUNCTION {schema}.read_as(bigint) TO {role}",
    "REVOKE INSERT, UPDATE, DELETE ON migrations FROM {role}",
)


async def migrate(
    connection: asyncpg.Connection,
    steps: Sequence[Migration],
    place: str,
    *,
    role: str,
    progress: Callable[[str], None] = lambda _: None,
) -> None:
    """Bring a database up to date, on a direct connection of the role that owns it, and let `role` use it.

    Each step is a transaction with its entry in `migrations`, so one that was cut short is begun again.

    Raises:
        SchemaTooNew, SchemaUnknown: see `schema.missing`; nothing was changed.
    """
    await connection.execute("SELECT pg_advisory_lock($1)", _LOCK)
    try:
        await connection.execute(CREATE_MIGRATIONS)
        for step in missing(await applied(connection), steps, place):
            progress(f"schema {step.number} of {len(steps)}: {step.name}")
            async with connection.transaction():
                await connection.execute(step.sql)
                await connection.execute(INSERT_MIGRATION, step.number, step.name, step.checksum)
        schema = await connection.fetchval("SELECT quote_ident(current_schema())")
        name = await connection.fetchval("SELECT quote_ident($1)", role)
        for grant in GRANTS:
            await connection.execute(grant.format(schema=schema, role=name))
    finally:
        await connection.execute("SELECT pg_advisory_unlock($1)", _LOCK)
