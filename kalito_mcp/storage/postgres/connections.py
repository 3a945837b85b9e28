"""Connections to PostgreSQL, which nothing is left in after a transaction."""

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import asyncpg
from pgvector.asyncpg import register_vector

from kalito_mcp.runtime.database_address import shown_parts
from kalito_mcp.storage.postgres.failures import OUT_OF_REACH
from kalito_mcp.storage.postgres.nul_text import decoded, encoded

_APPLICATION: Final = "kalito-mcp"


@dataclass(frozen=True, slots=True)
class Place:
    """A database as people may see it: without a password."""

    url: str

    def __str__(self) -> str:
        hosts, name = shown_parts(self.url)
        return f"the database {name or 'of this user'} at {hosts}"


class Hosts:
    """The hosts that a URL names, of which one takes writes. After a failover that is another one."""

    def __init__(self, url: str) -> None:
        self._urls = _one_host_each(url)

    async def connect(self, *, timeout_s: float, **options: Any) -> asyncpg.Connection:
        """A connection to the host that takes writes. The one that was connected last is tried first.

        asyncpg also takes several hosts, but gives them one timeout: one that does not answer would use it up. And it
        gives up at one that is starting.
        """
        errors: list[Exception] = []
        for url in tuple(self._urls):
            try:
                connection = await asyncpg.connect(
                    url, timeout=timeout_s / len(self._urls), target_session_attrs="read-write", **options
                )
            except OUT_OF_REACH as error:
                errors.append(error)
            else:
                self._urls.remove(url)
                self._urls.insert(0, url)
                return connection
        raise next((one for one in errors if isinstance(one, asyncpg.TargetServerAttributeNotMatched)), errors[-1])


async def connect(url: str, *, timeout_s: float) -> asyncpg.Connection:
    """One connection of its own. It keeps no statement, because it may lead to a pooler."""
    settings = {"application_name": _APPLICATION}
    return await Hosts(url).connect(timeout_s=timeout_s, statement_cache_size=0, server_settings=settings)


async def connect_pool(url: str, *, most: int, timeout_s: float, is_pooled: bool) -> asyncpg.Pool:
    """A pool of at most this many connections. `is_pooled`: a pooler is in between that gives each transaction another
    connection, so that no statement can be kept."""
    hosts = Hosts(url)

    async def connect_one(*_: Any, **options: Any) -> asyncpg.Connection:
        return await hosts.connect(timeout_s=timeout_s, **options)

    return await asyncpg.create_pool(
        min_size=0,
        max_size=most,
        connect=connect_one,
        init=prepare,
        reset=_keep,
        statement_cache_size=0 if is_pooled else 512,
        max_cached_statement_lifetime=0,
        server_settings={"application_name": _APPLICATION},
    )


def _one_host_each(url: str) -> list[str]:
    """The URL for each of its hosts. Raises ValueError if there are not as many ports as hosts."""
    parts = urlsplit(url)
    role, at, hosts = parts.netloc.rpartition("@")
    if hosts:
        return [urlunsplit(parts._replace(netloc=f"{role}{at}{host}")) for host in hosts.split(",")]
    named = dict(parse_qsl(parts.query))
    listed, ports = named.get("host", "").split(","), named.get("port", "").split(",")
    if len(listed) == 1:
        return [url]
    if len(ports) == 1:
        ports *= len(listed)
    return [
        urlunsplit(parts._replace(query=urlencode(named | {"host": host} | ({"port": port} if port else {}))))
        for host, port in zip(listed, ports, strict=True)
    ]


async def prepare(connection: asyncpg.Connection) -> None:
    """Let a connection take and give the values of the store."""
    await register_vector(connection)
    await connection.set_type_codec("text", schema="pg_catalog", encoder=encoded, decoder=decoded, format="binary")


async def _keep(connection: asyncpg.Connection) -> None:
    """Reset nothing: all settings are of one transaction. A round trip less for each use."""
