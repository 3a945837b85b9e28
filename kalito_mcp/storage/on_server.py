"""Stores on a PostgreSQL server, which only an extra can open: nothing of it is loaded without such an address."""

from collections.abc import Callable, Coroutine, Iterator
from importlib.util import find_spec
from typing import Any, Final, TypeVar

from kalito_mcp.domain.findings import Finding
from kalito_mcp.errors import ConfigurationError
from kalito_mcp.ports.storage_policy import StoragePolicy
from kalito_mcp.ports.store import OpenedStore, ReadView
from kalito_mcp.runtime.database_address import ServerAddress

T = TypeVar("T")
COPIES: Final = (
    "free space in PostgreSQL's files has it until rows are written there; `vacuumdb --full` clears it in a quiet hour",
    "the server's write-ahead log has it until PostgreSQL writes over it; a CHECKPOINT hastens that",
    "base backups, archived log and files of pg_dump have it until you drop them",
    "snapshots on other machines that serve this database: run the same command there",
)
"""Where else what was erased from a database on a server may be."""


async def open_on_server(address: ServerAddress, policy: StoragePolicy, *, is_target: bool = False) -> OpenedStore:
    """Open the database at an address; see `PostgresStore.open`."""
    _check_extra()
    from kalito_mcp.storage.postgres.database import PostgresStore  # noqa: PLC0415 - of an extra

    return await PostgresStore.open(address.url, policy, direct_url=address.direct_url, is_target=is_target)


def read_on_server(
    address: ServerAddress, policy: StoragePolicy, work: Callable[[ReadView], Coroutine[Any, Any, T]]
) -> tuple[T, int]:
    """The result of `work` on a view, and the size of the database in bytes, for a program without an event loop."""
    _check_extra()
    from kalito_mcp.storage.postgres.reading_once import read_once  # noqa: PLC0415 - of an extra

    return read_once(address.url, policy, work)


def inspect_server(address: ServerAddress, *, is_deep: bool) -> Iterator[Finding]:
    """The findings of a check of the database at an address. Changes nothing."""
    _check_extra()
    from kalito_mcp.storage.postgres.inspection import inspect  # noqa: PLC0415 - of an extra

    yield from inspect(address.url, address.direct_url, is_deep=is_deep)


def _check_extra() -> None:
    if find_spec("asyncpg") is None or find_spec("pgvector") is None:
        raise ConfigurationError("a database on PostgreSQL needs the extra: pip install 'kalito-mcp[postgres]'")
