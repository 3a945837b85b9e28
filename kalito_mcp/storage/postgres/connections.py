"""Connections to PostgreSQL, which nothing is left in after a transaction."""

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import asyncpg
from pgvector.asyncpg import register_vector

from kalito_mcp.storage.postgres.nul_text import decoded, encoded

_APPLICATION: Final = "kalito-mcp"


@dataclass(frozen=True, slots=True)
class Place:
    """A database as people may see it: without a password."""

    url: str

    def __str__(self) -> str:
        parts = urlsplit(self.url)
        host = parts.hostname or "localhost"
        return f"the database {parts.path.lstrip('/') or 'of this user'} at {host}"


async def connect(url: str, *, timeout_s: float) -> asyncpg.Connection:
    """One connection of its own. It keeps no statement, because it may lead to a pooler."""
    settings = {"application_name": _APPLICATION}
    return await asyncpg.connect(url, timeout=timeout_s, statement_cache_size=0, server_settings=settings)


async def connect_pool(url: str, *, most: int, timeout_s: float, is_pooled: bool) -> asyncpg.Pool:
    """A pool of at most this many connections. `is_pooled`: a pooler is in between that gives each transaction another
    connection, so that no statement can be kept."""
    return await asyncpg.create_pool(
        url,
        min_size=0,
        max_size=most,
        timeout=timeout_s,
        init=_prepare,
        reset=_keep,
        statement_cache_size=0 if is_pooled else 512,
        max_cached_statement_lifetime=0,
        server_settings={"application_name": _APPLICATION},
    )


async def _prepare(connection: asyncpg.Connection) -> None:
    await register_vector(connection)
    await connection.set_type_codec("text", schema="pg_catalog", encoder=encoded, decoder=decoded, format="binary")


async def _keep(connection: asyncpg.Connection) -> None:
    """Reset nothing: all settings are of one transaction. A round trip less for each use."""
