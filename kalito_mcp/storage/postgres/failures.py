"""Turns errors of PostgreSQL and of its connection into the `StorageError` tree, with messages for people."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import asyncpg

from kalito_mcp.errors import (
    InvalidInput,
    StorageBusy,
    StorageDamaged,
    StorageError,
    StorageFull,
    StorageUnreachable,
)
from kalito_mcp.storage.intact_rows import UnreadableRow

OUT_OF_REACH: Final = (
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
    asyncio.TimeoutError,
)
"""No answer, or no connection. Others of the pool may be dead, too."""


class Unconfirmed(ConnectionError):
    """The connection was lost, or the server did not answer, after COMMIT was sent."""


_MEANINGS: Final[Sequence[tuple[tuple[type[Exception], ...], type[StorageError], str]]] = (
    (
        (asyncpg.TargetServerAttributeNotMatched, asyncpg.ReadOnlySQLTransactionError),
        StorageUnreachable,
        "takes no writes, because only a standby answers; it is asked again at the next call. If it stays like this, "
        "name the primary in KALITO_DATABASE, or all hosts of which one is the primary: host1,host2",
    ),
    (
        (Unconfirmed,),
        StorageUnreachable,
        "did not confirm that this call was stored: it may be stored, or not. Send the same call again, with the same "
        "key if it had one; what has a key is stored once",
    ),
    (OUT_OF_REACH, StorageUnreachable, "cannot be reached; it is asked again at the next call"),
    (
        (
            asyncpg.LockNotAvailableError,
            asyncpg.DeadlockDetectedError,
            asyncpg.SerializationError,
        ),
        StorageBusy,
        "is busy with other writers; try again",
    ),
    (
        (asyncpg.TooManyConnectionsError,),
        StorageBusy,
        "has no connection free: its clients hold as many as it allows; try again. If it stays like this, raise its "
        "max_connections (a server of the memory takes up to 8), or the limit of the role or the database",
    ),
    ((asyncpg.QueryCanceledError,), StorageBusy, "takes longer for a statement than it allows; try again"),
    (
        (asyncpg.DiskFullError, asyncpg.OutOfMemoryError),
        StorageFull,
        "has no room; free some, and try again; nothing of this call was written",
    ),
    ((asyncpg.InsufficientPrivilegeError,), StorageError, "does not let the role do this; run `kalito-mcp doctor`"),
)


@contextmanager
def explained(place: str) -> Iterator[None]:
    """Raise errors of PostgreSQL as a StorageError that says what to do. `place` names the database, without its
    password. A text that PostgreSQL cannot store becomes InvalidInput."""
    try:
        yield
    except (asyncpg.CharacterNotInRepertoireError, asyncpg.UntranslatableCharacterError):
        raise InvalidInput("a text has a NUL character, which PostgreSQL cannot store; send it without") from None
    except UnicodeEncodeError:
        raise InvalidInput("an argument has an unpaired surrogate; send valid Unicode") from None
    except (asyncpg.PostgresError, UnreadableRow, *OUT_OF_REACH) as error:
        # PostgreSQL's own words may quote a row, and remembered text is not for a log.
        raise explain(error, place) from None


def explain(error: Exception, place: str) -> StorageError:
    """The StorageError for an error."""
    if isinstance(error, UnreadableRow):
        return StorageDamaged(f"{place} has a row that cannot be read; run `kalito-mcp doctor --deep`")
    for kinds, make, words in _MEANINGS:
        if isinstance(error, kinds):
            return make(f"{place} {words}")
    if isinstance(error, asyncpg.PostgresError):
        return StorageError(f"{place}: {type(error).__name__} ({error.sqlstate}); run `kalito-mcp doctor`")
    return StorageError(f"{place}: {type(error).__name__}; run `kalito-mcp doctor`")
