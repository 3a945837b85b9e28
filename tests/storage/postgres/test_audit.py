"""The audit log on PostgreSQL: which tables are noticed, that nothing is left of noticing, and how a changed row of the
log is found."""

from collections.abc import Mapping
from typing import Final

import asyncpg
import pytest

from kalito_mcp.domain.audit import AuditHead, NewEntry
from kalito_mcp.errors import StorageDamaged
from kalito_mcp.storage.postgres.audit import NOTICED
from kalito_mcp.storage.postgres.database import PostgresStore
from tests import sign_ins
from tests.access.test_audit import NOT_NOTICED as NOT_NOTICED_ANYWHERE
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio
ONLY_HERE: Final[Mapping[str, str]] = {
    "owners": "names and counters; what they own is noticed",
    "audit_noticed": "what the log is made of",
    "removed_records": "derived",
    "term_lists": "derived",
    "fresh_terms": "derived",
    "vector_debtors": "derived",
}
"""Further tables whose rows the log does not name, and why."""

SELECT_TABLES: Final = (
    "SELECT relname::text FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
)
SELECT_EVENTS: Final = """
SELECT c.relname::text, bit_or(t.tgtype::integer & 28) FROM pg_trigger AS t
JOIN pg_class AS c ON c.oid = t.tgrelid JOIN pg_proc AS p ON p.oid = t.tgfoid
WHERE p.proname IN ('notice_record', 'notice_row') AND pg_get_triggerdef(t.oid) LIKE '%kalito.audited%'
GROUP BY 1
"""
_ALL_EVENTS: Final = 28
"""INSERT, DELETE and UPDATE."""


async def log(store: PostgresStore, count: int) -> list[AuditHead]:
    async with store.transaction() as transaction:
        added = [await transaction.audit.add(NewEntry(START_MS, "host", "ann", "sign_in")) for _ in range(count)]
    return [AuditHead(one.number, one.hash) for one in added]


async def fault(store: PostgresStore) -> str | None:
    return (await store.read(lambda view: view.audit.check(None)))[0]


async def test_every_table_is_noticed_in_all_its_changes_or_left_out_for_a_reason(
    of_tables: asyncpg.Connection,
) -> None:
    tables = {row[0] for row in await of_tables.fetch(SELECT_TABLES)}
    assert tables - NOTICED <= NOT_NOTICED_ANYWHERE.keys() | ONLY_HERE.keys()
    assert {row[0]: row[1] for row in await of_tables.fetch(SELECT_EVENTS)} == dict.fromkeys(NOTICED, _ALL_EVENTS)


async def test_nothing_is_left_of_what_was_noticed_and_nothing_is_noticed_unasked(
    store: PostgresStore, of_tables: asyncpg.Connection
) -> None:
    async with store.transaction() as transaction:
        await transaction.audit.changes_of(lambda: transaction.access.add_token(sign_ins.token("tok_1"), b"one"))
        await transaction.access.add_token(sign_ins.token("tok_2"), b"two")
    with pytest.raises(ZeroDivisionError):
        async with store.transaction() as transaction:
            await transaction.audit.changes_of(lambda: transaction.access.add_token(sign_ins.token("x"), b"x"))
            raise ZeroDivisionError
    async with store.transaction() as transaction:
        await transaction.access.add_token(sign_ins.token("tok_3"), b"three")
    assert await of_tables.fetchval("SELECT count(*) FROM audit_noticed") == 0
    assert len(await store.read(lambda view: view.access.tokens("ann", limit=9))) == 3


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("UPDATE audit_log SET action = 'export' WHERE number = 2", "entry 2 is not as it was written"),
        ("UPDATE audit_log SET client = 'x' WHERE number = 4", "entry 4 is not as it was written"),
        ("DELETE FROM audit_log WHERE number = 3", "entry 3 is missing"),
        ("DELETE FROM audit_log WHERE number > 2", "it ends with entry 2, but 4 were written"),
        ("UPDATE audit_head SET hash = '\\x00'", "its newest entry is not the one that was kept apart"),
        ("DELETE FROM audit_head", "what is kept of its newest entry is missing"),
    ],
)
async def test_a_row_that_is_changed_or_taken_out_is_found(
    store: PostgresStore, of_tables: asyncpg.Connection, statement: str, found: str
) -> None:
    await log(store, 4)
    assert await fault(store) is None
    await of_tables.execute(statement)
    assert await fault(store) == found


async def test_a_log_without_its_head_takes_no_entries(store: PostgresStore, of_tables: asyncpg.Connection) -> None:
    await of_tables.execute("DELETE FROM audit_head")
    with pytest.raises(StorageDamaged):
        await log(store, 1)
    assert await of_tables.fetchval("SELECT count(*) FROM audit_log") == 0
