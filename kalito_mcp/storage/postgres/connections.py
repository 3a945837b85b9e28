"""Connections to PostgreSQL, which nothing is left in after a transaction."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import anyio
import asyncpg
from pgvector.asyncpg import register_vector

from kalito_mcp.runtime.database_address import shown_parts
from kalito_mcp.storage.postgres.failures import OUT_OF_REACH
from kalito_mcp.storage.postgres.nul_text import decoded, encoded

_APPLICATION: Final = "kalito-mcp"
_STAYS_S: Final = 300.0
_IDLE_S: Final = 2.0
"""How long connections without use stay open: the first, and the others, which other processes may need."""
_ASKED_AGAIN_AFTER_S: Final = 0.1


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


class Pool:
    """The connections of a process. One stays open; more are opened while calls need them, and closed soon after. If
    the server allows no more, calls wait for the one that stays."""

    def __init__(self, staying: asyncpg.Pool, more: asyncpg.Pool) -> None:
        self._staying = staying
        self._more = more
        self._held: asyncpg.Connection | None = None
        """The one that stays, while a call has it."""
        self._waiting = 0

    async def acquire(self, *, timeout_s: float) -> asyncpg.Connection:
        """A connection. Raises TimeoutError if all of this process are in use until then."""
        if self._held is None and not self._waiting:
            return await self._acquire_staying(timeout_s)
        try:
            return await self._more.acquire(timeout=timeout_s)
        except asyncpg.TooManyConnectionsError as error:
            try:
                return await self._acquire_staying(timeout_s)
            except TimeoutError:
                raise error from None

    async def _acquire_staying(self, timeout_s: float) -> asyncpg.Connection:
        self._waiting += 1
        try:
            self._held = await self._staying.acquire(timeout=timeout_s)
        finally:
            self._waiting -= 1
        return self._held

    async def release(self, connection: asyncpg.Connection) -> None:
        """Give a connection back."""
        if connection is not self._held:
            await self._more.release(connection)
            return
        self._held = None
        await self._staying.release(connection)

    @property
    def size(self) -> int:
        """The number of open connections."""
        return int(self._staying.get_size() + self._more.get_size())

    @property
    def most(self) -> int:
        """The number of connections that there may be."""
        return int(self._staying.get_max_size() + self._more.get_max_size())

    async def expire(self) -> None:
        """Replace all connections, each when it is used next."""
        await self._staying.expire_connections()
        await self._more.expire_connections()

    async def close(self) -> None:
        """Close all connections, when they are given back."""
        await self._more.close()
        await self._staying.close()


async def connect(url: str, *, timeout_s: float) -> asyncpg.Connection:
    """One connection of its own. It keeps no statement, because it may lead to a pooler."""
    options = {"statement_cache_size": 0, "server_settings": {"application_name": _APPLICATION}}
    return await _connect_in_turn(Hosts(url), timeout_s, options)


async def _connect_in_turn(hosts: Hosts, timeout_s: float, options: Mapping[str, Any]) -> asyncpg.Connection:
    """A connection. If the server has none free, it is asked again until the time is over."""
    ends_at = anyio.current_time() + timeout_s
    while True:
        try:
            return await hosts.connect(timeout_s=timeout_s, **options)
        except asyncpg.TooManyConnectionsError:
            if anyio.current_time() >= ends_at:
                raise
        await anyio.sleep(_ASKED_AGAIN_AFTER_S)


async def connect_pool(url: str, *, most: int, timeout_s: float, is_pooled: bool) -> Pool:
    """A pool of at most this many connections. `is_pooled`: a pooler is in between that gives each transaction another
    connection, so that no statement can be kept."""
    hosts = Hosts(url)

    async def connect_first(*_: Any, **options: Any) -> asyncpg.Connection:
        return await _connect_in_turn(hosts, timeout_s, options)

    async def connect_more(*_: Any, **options: Any) -> asyncpg.Connection:
        return await hosts.connect(timeout_s=timeout_s, **options)

    async def pool(connect_one: Callable[..., Awaitable[asyncpg.Connection]], size: int, idle_s: float) -> asyncpg.Pool:
        return await asyncpg.create_pool(
            min_size=0,
            max_size=size,
            max_inactive_connection_lifetime=idle_s,
            connect=connect_one,
            init=prepare,
            reset=_keep,
            statement_cache_size=0 if is_pooled else 512,
            max_cached_statement_lifetime=0,
            server_settings={"application_name": _APPLICATION},
        )

    return Pool(await pool(connect_first, 1, _STAYS_S), await pool(connect_more, most - 1, _IDLE_S))


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
