"""Checks a database on PostgreSQL for `kalito-mcp doctor`. Changes nothing."""

from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Final

import anyio
import asyncpg

from kalito_mcp.domain.findings import Finding, Verdict
from kalito_mcp.errors import ConfigurationError, StorageError
from kalito_mcp.storage.postgres.connections import Place, connect
from kalito_mcp.storage.postgres.failures import explained
from kalito_mcp.storage.postgres.opening import (
    is_behind_pooler,
    refuse_old_server,
    refuse_other_schema,
    refuse_unbound_role,
    refuse_unprotected,
)

_CONNECT_S: Final = 10.0
_Check = Callable[[asyncpg.Connection, str], Coroutine[Any, Any, None]]
_CHECKS: Final[tuple[tuple[str, _Check, str], ...]] = (
    ("server", refuse_old_server, "PostgreSQL and pgvector are recent enough"),
    ("role", refuse_unbound_role, "is bound by the policies"),
    ("schema", refuse_other_schema, "is this release's"),
    ("isolation", refuse_unprotected, "every table of a person's memory has a policy"),
)


def inspect(url: str, direct_url: str | None, *, is_deep: bool) -> Iterator[Finding]:
    """The findings, one a check."""
    del is_deep
    yield from anyio.run(_inspect, url, direct_url)


async def _inspect(url: str, direct_url: str | None) -> list[Finding]:
    place, found = str(Place(url)), list[Finding]()
    try:
        with explained(place):
            connection = await connect(url, timeout_s=_CONNECT_S)
    except (StorageError, ValueError) as error:
        return [Finding("database", Verdict.FAILED, str(error))]
    try:
        for name, check, words in _CHECKS:
            try:
                with explained(place):
                    await check(connection, place)
                found.append(Finding(name, Verdict.OK, words))
            except (ConfigurationError, StorageError) as error:
                found.append(Finding(name, Verdict.FAILED, str(error)))
        if await is_behind_pooler(connection):
            verdict = Verdict.WARNING if direct_url is None else Verdict.OK
            said = "a pooler is in between" + ("" if direct_url else "; name a direct URL in KALITO_DATABASE_DIRECT")
            found.append(Finding("pooler", verdict, said))
    finally:
        await connection.close()
    return found
