"""Checks a database on PostgreSQL for `kalito-mcp doctor`. Changes nothing."""

from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Final

import anyio
import asyncpg

from kalito_mcp.domain.findings import Finding, Verdict, finding_of
from kalito_mcp.errors import ConfigurationError, StorageError
from kalito_mcp.storage.audit import AuditQueries
from kalito_mcp.storage.postgres.connections import Place, connect, prepare
from kalito_mcp.storage.postgres.deep_inspection import deep_findings, reading
from kalito_mcp.storage.postgres.failures import explained
from kalito_mcp.storage.postgres.opening import (
    SELECT_SERVER,
    is_behind_pooler,
    refuse_old_server,
    refuse_other_database,
    refuse_other_schema,
    refuse_unbound_role,
    refuse_unprotected,
)
from kalito_mcp.text.plurals import plural

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
    yield from anyio.run(_inspect, url, direct_url, is_deep)


async def _inspect(url: str, direct_url: str | None, is_deep: bool) -> list[Finding]:
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
        if direct_url is not None:
            found.append(await _direct(connection, direct_url, place))
        if await is_behind_pooler(connection):
            verdict = Verdict.WARNING if direct_url is None else Verdict.OK
            said = "a pooler is in between" + ("" if direct_url else "; name a direct URL in KALITO_DATABASE_DIRECT")
            found.append(Finding("pooler", verdict, said))
        if all(one.verdict is not Verdict.FAILED for one in found):
            found += await _contents(connection, place, is_deep=is_deep)
    finally:
        await connection.close()
    return found


async def _direct(served: asyncpg.Connection, direct_url: str, place: str) -> Finding:
    """Whether KALITO_DATABASE_DIRECT leads to the database that is served."""
    name, owners = "direct", str(Place(direct_url))
    try:
        with explained(owners):
            owner = await connect(direct_url, timeout_s=_CONNECT_S)
            try:
                await refuse_other_database(owner, owners, served, place)
            finally:
                await owner.close()
    except (ConfigurationError, StorageError, ValueError) as error:
        return Finding(name, Verdict.FAILED, str(error))
    return Finding(name, Verdict.OK, "KALITO_DATABASE_DIRECT leads to the same database")


async def _contents(connection: asyncpg.Connection, place: str, *, is_deep: bool) -> list[Finding]:
    """What is found in a database that can be served."""
    found = [_checksums((await connection.fetchrow(SELECT_SERVER))[4])]
    try:
        with explained(place):
            await prepare(connection)
            async with reading(connection) as transaction:
                fault, head = await AuditQueries(transaction).check(None)
            entries = f"{plural(head.count, 'entry')}, each as it was written"
            remedy = "somebody changed the log, or the disk did; compare it with a backup"
            found.append(finding_of("audit log", [] if fault is None else [fault], entries, remedy))
            if is_deep:
                found += await deep_findings(connection)
    except StorageError as error:
        found.append(Finding("readable", Verdict.FAILED, str(error)))
    return found


def _checksums(setting: str) -> Finding:
    """Whether the server itself finds damaged pages."""
    if setting == "on":
        return Finding("checksums", Verdict.OK, "the server notices a damaged page")
    return Finding("checksums", Verdict.WARNING, "off, so that the server notices no damaged page; see pg_checksums")
