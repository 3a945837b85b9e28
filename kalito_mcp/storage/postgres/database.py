"""A store on PostgreSQL. Any number of processes may serve it; none of them keeps anything that another one needs."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import anyio
import asyncpg

from kalito_mcp.domain.spaces import space_of
from kalito_mcp.errors import ConfigurationError, StorageBusy, StorageError
from kalito_mcp.ports.storage_policy import StoragePolicy
from kalito_mcp.ports.store import Schema
from kalito_mcp.storage.postgres import statements
from kalito_mcp.storage.postgres.connections import Place, Pool, connect, connect_pool
from kalito_mcp.storage.postgres.failures import OUT_OF_REACH, explained
from kalito_mcp.storage.postgres.leases import LEASE_S, Lease
from kalito_mcp.storage.postgres.maintenance import MaintenanceOfPostgres
from kalito_mcp.storage.postgres.migrating import migrate
from kalito_mcp.storage.postgres.named_sql import positional
from kalito_mcp.storage.postgres.notices import listen
from kalito_mcp.storage.postgres.opening import (
    is_behind_pooler,
    refuse_old_server,
    refuse_other_database,
    refuse_other_schema,
    refuse_unbound_role,
    refuse_unprotected,
)
from kalito_mcp.storage.postgres.schema import migrations
from kalito_mcp.storage.postgres.transactions import Transaction
from kalito_mcp.storage.postgres.views import Caches, ReadViewOfPostgres, WriteTransactionOfPostgres

T = TypeVar("T")
_log = logging.getLogger(__name__)
SELECT_IDENTITY: Final = "SELECT secret FROM identity"
SELECT_APPLIED: Final = "SELECT max(number) FROM migrations"
# Revisions only grow, and the own one with each space that the owner comes into or leaves. So two states never have the
# same number until the spaces of one owner saw 2^32 writes between two looks.
SELECT_REVISION: Final = """
SELECT coalesce((SELECT revision FROM owners WHERE name = :name), 0) << 32 | (
    SELECT coalesce(sum(o.revision), 0)::bigint & 4294967295
    FROM space_members m JOIN owners o ON o.name = 'space:' || m.space WHERE m.member = :name
)
"""

WRITERS: Final = 4
"""Connections for writes, besides those of `StoragePolicy.readers`. Those that wait for the same owner's lock leave the
others to reads."""

_CONNECT_S: Final = 10.0

_STATEMENT_S: Final = 30.0
"""What a statement of a call may take, besides waiting for a lock. Chores and migrations take as long as they take."""


class PostgresStore:
    """`ports.store.Store` on PostgreSQL."""

    is_read_only = False

    def __init__(
        self,
        place: Place,
        pool: Pool,
        policy: StoragePolicy,
        *,
        direct_url: str | None = None,
        listening_url: str | None = None,
        lease_s: float = LEASE_S,
    ) -> None:
        self.place = place
        self._name = str(place)
        self._lease = Lease(lease_s)
        self._listening_url = listening_url
        self.maintenance = MaintenanceOfPostgres(
            lease=self._lease,
            write=self.transaction,
            alone=partial(self._transaction, is_short=True),
            direct=None if direct_url is None else partial(_connected, direct_url),
            place=str(place),
        )
        self._pool = pool
        self._policy = policy
        self._owners: dict[str, int] = {}
        """The keys of owners, which never change."""
        self._caches = Caches()
        self._writers = anyio.CapacityLimiter(WRITERS)

    @classmethod
    async def open(
        cls,
        url: str,
        policy: StoragePolicy | None = None,
        *,
        direct_url: str | None = None,
        lease_s: float = LEASE_S,
        is_target: bool = False,
    ) -> "PostgresStore":
        """Open the database of a URL. With a direct URL, which is of the role that owns the tables and goes through no
        pooler, the schema is brought up to date first. `lease_s`: how long owed work stays with a process that died.
        `is_target`: for a migration into it, which rebuilds what is derived itself.

        Raises:
            ConfigurationError: the URL, the role, the server or the schema cannot be used.
            StorageUnreachable: the server does not answer.
            Conflict: a migration into it was not finished.
        """
        policy, place = policy or StoragePolicy(), Place(url)
        with explained(str(place)):
            if direct_url is not None:
                await _bring_up_to_date(url, direct_url)
            connection = await _connect(url, place)
            try:
                for check in (refuse_old_server, refuse_unbound_role, refuse_other_schema, refuse_unprotected):
                    await check(connection, str(place))
                is_pooled = await is_behind_pooler(connection)
            finally:
                await connection.close()
            most = policy.readers + WRITERS
            pool = await connect_pool(url, most=most, timeout_s=_CONNECT_S, is_pooled=is_pooled)
        if is_pooled and direct_url is None:
            _log.warning(
                "%s is behind a pooler, which passes no notifications on, so that changes of other workers are seen "
                "late; name a direct connection in KALITO_DATABASE_DIRECT",
                place,
            )
        listening_url = direct_url or (None if is_pooled else url)
        store = cls(place, pool, policy, direct_url=direct_url, listening_url=listening_url, lease_s=lease_s)
        if not is_target:
            await store.maintenance.rebuild_derived()
        return store

    async def read(self, work: Callable[[ReadViewOfPostgres], Coroutine[Any, Any, T]], *, is_short: bool = False) -> T:
        """The result of `work` on a consistent view. A short one without an owner needs no transaction."""
        async with self._transaction(is_short=is_short) as transaction:
            return await work(ReadViewOfPostgres(transaction, self._caches, self._policy))

    @asynccontextmanager
    async def view(self) -> AsyncIterator[ReadViewOfPostgres]:
        """A consistent view for a block."""
        async with self._transaction() as transaction:
            yield ReadViewOfPostgres(transaction, self._caches, self._policy)

    async def write(
        self,
        work: Callable[[WriteTransactionOfPostgres], Coroutine[Any, Any, T]],
        *,
        before: Callable[[], Awaitable[None]] | None = None,
    ) -> T:
        """The result of `work` in a write transaction. `before` is awaited first, and takes its locks before
        the transaction takes that of the owner's row."""
        async with self._writers:
            if before is not None:
                await before()
            async with self._transaction(is_write=True) as transaction:
                return await work(WriteTransactionOfPostgres(transaction, self._caches, self._policy))

    async def note(self, work: Callable[[WriteTransactionOfPostgres], Coroutine[Any, Any, T]]) -> T:
        """As `write`, without the lease of the owner's owed work."""
        async with self._writers, self._transaction(is_write=True, is_owing=False) as transaction:
            return await work(WriteTransactionOfPostgres(transaction, self._caches, self._policy))

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[WriteTransactionOfPostgres]:
        """A write transaction for a block, for chores: committed when the block ends, rolled back if it raises."""
        async with self._writers, self._transaction(is_write=True, is_chore=True) as transaction:
            yield WriteTransactionOfPostgres(transaction, self._caches, self._policy)

    async def reindex(self) -> int:
        """Rebuild the text index; the number of records in it."""
        return await self.maintenance.reindex()

    async def revision(self, owner: str) -> int:
        """How many transactions wrote for the owner, and for the spaces that they are in."""
        text, _ = positional(SELECT_REVISION)
        async with self._connection() as connection:
            return int(await connection.fetchval(text, owner, timeout=_STATEMENT_S))

    async def listen(self, owners: Callable[[], Collection[str]], heard: Callable[[], None]) -> None:
        """As the port says, on a connection of its own, which is open meanwhile. A change of any space is heard of."""
        names = dict[int, str]()

        def on_change(key: int) -> None:
            if key not in names:
                names.update({key: owner for owner, key in self._owners.items()})
            owner = names.get(key, "")
            if owner in owners() or space_of(owner) is not None:
                heard()

        if self._listening_url is not None:
            await listen(partial(_connected, self._listening_url), on_change)

    async def secret(self) -> bytes:
        """The database's own 16 random bytes."""
        async with self._connection() as connection:
            return bytes(await connection.fetchval(SELECT_IDENTITY, timeout=_STATEMENT_S))

    async def schema(self) -> Schema:
        """The schema as the database has it now."""
        async with self._connection() as connection:
            applied = await connection.fetchval(SELECT_APPLIED, timeout=_STATEMENT_S)
        return Schema("postgres", int(applied), len(migrations()))

    async def close(self) -> None:
        """Leave owed work to other processes, and close every connection."""
        with anyio.move_on_after(_CONNECT_S, shield=True), suppress(OSError, asyncpg.InterfaceError):
            with suppress(StorageError):
                await self.maintenance.release()
            await self._pool.close()

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[asyncpg.Connection]:
        """A connection of the pool. After a failover, earlier connections are replaced: they lead nowhere, or to a
        server that takes no writes now."""
        with explained(self._name):
            connection = await self._acquired()
            try:
                yield connection
            except (asyncpg.ReadOnlySQLTransactionError, *OUT_OF_REACH):
                with suppress(asyncpg.InterfaceError):  # a rollback without an answer has terminated it
                    connection.terminate()
                await self._pool.expire()
                raise
            finally:
                with anyio.CancelScope(shield=True):
                    await self._pool.release(connection)

    async def _acquired(self) -> asyncpg.Connection:
        try:
            return await self._pool.acquire(timeout_s=self._policy.busy_timeout_s)
        except TimeoutError:
            if self._pool.size < self._pool.most:
                raise
            raise StorageBusy(
                f"all {self._pool.most} connections of this process to {self.place} are in use; try again, "
                "or serve with one process more"
            ) from None

    @asynccontextmanager
    async def _transaction(
        self, *, is_write: bool = False, is_short: bool = False, is_chore: bool = False, is_owing: bool = True
    ) -> AsyncIterator[Transaction]:
        lock_s = self._policy.busy_timeout_s if is_write else 0.0
        async with self._connection() as connection:
            transaction = Transaction(
                connection,
                self._owners,
                self._lease,
                sql=statements,
                is_write=is_write,
                is_owing=is_owing,
                is_short=is_short,
                wait_s=self._policy.busy_timeout_s,
                statement_ms=0 if is_chore else round((lock_s + _STATEMENT_S) * 1000),
            )
            try:
                yield transaction
                await transaction.commit()
                self.maintenance.note_written(transaction.leases)
            except BaseException:
                with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                    await transaction.rollback()
                raise


@asynccontextmanager
async def _connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    place = Place(url)
    with explained(str(place)):
        connection = await _connect(url, place)
        try:
            yield connection
        finally:
            with anyio.CancelScope(shield=True):
                await connection.close()


def _role_of(url: str) -> str:
    role = urlsplit(url).username
    if not role:
        raise ConfigurationError("KALITO_DATABASE names no role; write postgresql://role@host/database")
    return role


async def _bring_up_to_date(url: str, direct_url: str) -> None:
    """Give the database of both URLs the tables of this release, and let the role of the first one use them."""
    place, role = str(Place(url)), _role_of(url)
    async with _connected(direct_url) as owner:
        async with _connected(url) as served:
            await refuse_other_database(owner, str(Place(direct_url)), served, place)
        await refuse_old_server(owner, place)
        await migrate(owner, migrations(), place, role=role)


async def _connect(url: str, place: Place) -> asyncpg.Connection:
    try:
        return await connect(url, timeout_s=_CONNECT_S)
    except (asyncpg.InvalidPasswordError, asyncpg.InvalidAuthorizationSpecificationError):
        raise ConfigurationError(f"{place} does not let this role in; check its name and password") from None
    except asyncpg.InvalidCatalogNameError:
        raise ConfigurationError(f"{place} does not exist; create it, or check the URL") from None
    except (ValueError, asyncpg.ClientConfigurationError) as error:
        raise ConfigurationError(f"the URL of {place} cannot be used: {error}") from None
