"""One transaction, of one owner at a time.

It begins with its first statement, in one round trip with what protects it: `kalito.owner`, which the policies of the
tables compare, and for a write the lock of the owner's row. That lock is what makes the writes of one owner one after
the other. Each statement names its owner, so nobody has to say beforehand whose memory a transaction is about.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from time import monotonic
from typing import Any, Final

import anyio
import asyncpg

from kalito_mcp.ports.records import AlreadyStored
from kalito_mcp.storage.postgres.failures import OUT_OF_REACH, Unconfirmed
from kalito_mcp.storage.postgres.leases import Lease
from kalito_mcp.storage.postgres.named_sql import positional
from kalito_mcp.storage.postgres.notices import commit_with_notice
from kalito_mcp.storage.postgres.nul_text import storable

BEGIN_READING: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
BY_INDEX: Final = "SET LOCAL enable_seqscan = off"
"""A connection keeps its plans. One that was made while a table was small would go on reading all of it."""

BEGUN: Final = "SAVEPOINT begun"
UNDO_FAILED: Final = "ROLLBACK TO SAVEPOINT begun"
BEGIN_WRITING: Final = "BEGIN ISOLATION LEVEL READ COMMITTED"
SAVEPOINT: Final = "SAVEPOINT undoable"
UNDO: Final = "ROLLBACK TO SAVEPOINT undoable"
RELEASE: Final = "RELEASE SAVEPOINT undoable"
SELECT_OWNER: Final = "SELECT key FROM owners WHERE name = :name"
INSERT_OWNER: Final = """
INSERT INTO owners (name) VALUES (:name) ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING key
"""
_SPARE_S: Final = 2.0
_COMMIT_S: Final = 30.0
"""How long a COMMIT may take: it waits for the disk, and for a synchronous standby."""

_NOBODY: Final = 0
"""The key of an owner who has nothing yet."""


class Transaction:
    """Runs named statements in one transaction on a connection of the pool. Implements `storage.queries`.

    `owners` has the keys of known owners by name; those that a committed transaction met are added. A read is a
    snapshot. A write takes the `lease` of its owners if it `is_owing`: the background may have work after it. If it
    `is_short`, statements without an owner run on their own, without a transaction. `wait_s`: how long it waits for a
    lock. If it has not begun soon after that, the server does not answer, or a pooler waits for it. A statement of a
    transaction takes at most `statement_ms` milliseconds; 0: as long as it takes.
    """

    def __init__(
        self,
        connection: asyncpg.Connection,
        owners: dict[str, int],
        lease: Lease,
        *,
        sql: Any = None,
        is_write: bool = False,
        is_owing: bool = True,
        is_short: bool = False,
        wait_s: float,
        statement_ms: int = 0,
    ) -> None:
        self.connection = connection
        self.sql = sql
        self.is_write = is_write
        self.lease = lease
        self._is_owing = is_owing
        self._owners = owners
        self._met: dict[str, int] = {}
        self._is_short = is_short
        self.statement_ms = statement_ms
        settings = f"{BY_INDEX}; SET LOCAL statement_timeout = {statement_ms}"
        self._begin = f"{BEGIN_READING}; {settings}; {BEGUN}"
        if is_write:
            self._begin = f"{BEGIN_WRITING}; {settings}; SET LOCAL lock_timeout = {int(wait_s * 1000)}"
        self._begin_s = wait_s + _SPARE_S
        self._is_begun = False
        self._owner: str | None = None
        self._alone: set[str] = set()
        """Those whom a read has begun as and who are in no space."""
        self._locked: set[str] = set()
        self.leases: dict[str, float] = {}
        """Until when this process has the leases of owners of a write, by `time.monotonic`; 0 if another one has it."""

    async def all(self, statement: str, **parameters: Any) -> list[Any]:
        """All rows of the statement. `owner`, if it is a parameter, is the name of one; the statement gets the key."""
        text, names = positional(statement)
        values = await self._prepared(names, parameters)
        timeout_s = None if self._is_begun else self.statement_ms / 1000
        return list(await self.connection.fetch(text, *values, timeout=timeout_s))

    async def pages(self, statement: str, size: int, **parameters: Any) -> AsyncGenerator[list[Any]]:
        """The rows of the statement, at most this many at a time, which the server keeps until they are asked for."""
        text, names = positional(statement)
        values = await self._prepared(names, parameters)
        if not self._is_begun:
            await self._begin_alone()
        cursor = await self.connection.cursor(text, *values)
        while page := await cursor.fetch(size):
            yield page
            if "owner" in names:
                await self.of(parameters["owner"])

    async def count_changed(self, statement: str, **parameters: Any) -> int:
        """Run the statement; how many rows it changed or removed."""
        text, names = positional(statement)
        values = await self._prepared(names, parameters)
        return _rows(await self.connection.execute(text, *values))

    async def many(self, statement: str, rows: Iterable[Mapping[str, Any]], *, owner: str | None) -> None:
        """Run the statement for each row of parameters of one owner, or of none, in few round trips."""
        text, names = positional(statement)
        key = _NOBODY if owner is None else await self.of(owner)
        if not self._is_begun:
            await self._begin_alone()
        values = [[key if name == "owner" else storable(row[name]) for name in names] for row in rows]
        if values:
            await self.connection.executemany(text, values)

    @contextmanager
    def stored_once(self) -> Iterator[None]:
        """Raises AlreadyStored for a constraint that says what is stored once. The transaction ends with that."""
        try:
            yield
        except asyncpg.UniqueViolationError:
            raise AlreadyStored from None  # the error of PostgreSQL quotes the row

    @asynccontextmanager
    async def undoable(self, owner: str) -> AsyncIterator[None]:
        """What the block does for the owner is undone if a statement fails in it. The transaction can go on then."""
        await self.of(owner)
        await self._run(SAVEPOINT)
        try:
            yield
        except (asyncpg.PostgresError, ValueError):
            if not self.connection.is_closed():
                await self._run(UNDO)
            raise
        await self._run(RELEASE)

    async def of(self, owner: str) -> int:
        """Go on as this owner. The owner's key; 0, which nobody has, for one who is not known to a read."""
        if self._owner != owner or not self._is_begun:
            key = self._key_of(owner)
            await (self._write_as(owner, key) if self.is_write else self._read_as(owner, key))
            self._owner = owner
        return self._key_of(owner) or _NOBODY

    async def is_known(self, owner: str) -> bool:
        """Go on as this owner of a write if they have a row already. Whether they have."""
        if self._owner == owner:
            return True
        key = self._key_of(owner)
        if key is not None and await self._lock(owner, key):
            self._owner = owner
            return True
        self.forget(owner)
        self._owner = None  # the setting may be of the one who is gone
        found = await self.all(SELECT_OWNER, name=owner)
        if found:
            [[self._met[owner]]] = found
            await self.of(owner)
        return bool(found)

    def is_in_no_space(self, owner: str) -> bool:
        """Whether this read has begun as this owner, and has seen that they are in no space."""
        return owner in self._alone

    def forget(self, owner: str) -> None:
        """Know nothing of an owner, who is erased: by this transaction, or by another process earlier."""
        self._owners.pop(owner, None)
        self._met.pop(owner, None)
        self._locked.discard(owner)
        self.leases.pop(owner, None)

    async def set(self, settings: str) -> None:
        """Run settings, which have no parameters, in one round trip with what begins the transaction."""
        await self._set(settings)

    async def commit(self) -> None:
        """Make the changes last, and the owners known. Raises Unconfirmed if the server does not say whether it did."""
        if self._is_begun:
            keys = [key for owner in self._locked if (key := self._key_of(owner)) is not None]
            self._is_begun = False  # it has ended even if this fails
            try:
                with anyio.CancelScope(shield=True):
                    await self.connection.execute(commit_with_notice(keys), timeout=_COMMIT_S)
            except asyncpg.ProgramLimitExceededError:
                pass  # by then, it is committed: a queue of notices that is full must not look like a failure
            except OUT_OF_REACH as error:
                raise (Unconfirmed() if self.is_write else error) from error
        self._owners.update(self._met)

    async def undo_failed(self) -> None:
        """Go on after a statement of a read has failed, in the same snapshot. Settings are as if none had run."""
        self._owner = None
        await self._run(UNDO_FAILED)

    async def rollback(self) -> None:
        """End the transaction without changes."""
        if self._is_begun and not self.connection.is_closed():
            self._is_begun = False
            with anyio.move_on_after(_SPARE_S, shield=True) as answering:
                await self.connection.execute("ROLLBACK")
            if answering.cancelled_caught:
                self.connection.terminate()  # the pool makes another one

    async def _prepared(self, names: tuple[str, ...], parameters: Mapping[str, Any]) -> list[Any]:
        """The values of the parameters, after the transaction has begun as their owner."""
        owner_key = _NOBODY
        if "owner" in names:
            owner_key = await self.of(parameters["owner"])
        elif not self._is_begun and not self._is_short:
            await self._begin_alone()
        return [owner_key if name == "owner" else storable(parameters[name]) for name in names]

    async def _read_as(self, owner: str, key: int | None) -> None:
        if key is not None:
            rows = _rows(await self._set(f"SELECT FROM read_as({key})"))
            if rows == 1:
                self._alone.add(owner)
            if rows:
                return
            self.forget(owner)
        if not self._is_begun:
            await self._begin_alone()
        text, _ = positional(SELECT_OWNER)
        key = await self.connection.fetchval(text, owner)
        if key is None:
            key = _NOBODY
        else:
            self._met[owner] = key
        await self._set(f"SELECT set_config('kalito.owner', '{key}', true)")

    async def _write_as(self, owner: str, key: int | None) -> None:
        if key is not None:
            if await self._lock(owner, key):
                return
            self.forget(owner)
        if not self._is_begun:
            await self._begin_alone()
        text, _ = positional(INSERT_OWNER)
        key = self._met[owner] = await self.connection.fetchval(text, owner)
        await self._lock(owner, key)

    async def _lock(self, owner: str, key: int) -> bool:
        """Go on as an owner of a write, whose row it locks unless it has. False if the owner is gone."""
        if owner in self._locked:
            await self._set(f"""
                SELECT set_config('kalito.owner', '{key}', true);
                SELECT set_config('kalito.revision', revision::text, true) FROM owners WHERE key = {key}
            """)
            return True
        began, lease = monotonic(), self.lease
        asked = f"'{lease.holder}', {lease.seconds}" if self._is_owing else "NULL, NULL"
        rows = _rows(await self._set(f"SELECT FROM write_as({key}, {asked})"))
        if not rows:
            return False
        self._locked.add(owner)
        if self._is_owing:
            self.leases[owner] = began + lease.seconds if rows == 1 else 0.0
        return True

    def _key_of(self, owner: str) -> int | None:
        return self._owners.get(owner) or self._met.get(owner)

    async def _begin_alone(self) -> None:
        self._is_begun = True  # a BEGIN that is cancelled is rolled back, too
        await self.connection.execute(self._begin, timeout=self._begin_s)

    async def _set(self, settings: str) -> str:
        """Run settings, which have no parameters but keys, in one round trip, and begin if that is not done. The status
        of the last one."""
        if self._is_begun:
            return await self._run(settings)
        self._is_begun = True
        return str(await self.connection.execute(f"{self._begin}; {settings}", timeout=self._begin_s))

    async def _run(self, statements: str) -> str:
        return str(await self.connection.execute(statements))


def _rows(status: str) -> int:
    """How many rows a statement with this status found or changed."""
    return int(status.rpartition(" ")[2])
