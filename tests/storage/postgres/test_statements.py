"""Every named statement: the second fence holds without the first, and no big table is read from end to end."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

import asyncpg
import pytest
from pgvector import HalfVector

from kalito_mcp.domain.transfer import MOVED
from kalito_mcp.storage.postgres.named_sql import positional
from tests.postgres import APP, SUPERUSER, connected, new_database
from tests.storage.postgres.filled import PROTECTED, filled_database
from tests.storage.postgres.statements import statements, value_for, without_owner

pytestmark = pytest.mark.anyio

OF_THE_FIRST: Final[Mapping[str, Any]] = {
    "owner": 1,
    "agent": "default",
    "agent_key": 1,
    "session": "session 2",
    "session_key": 2,
    "project": "project",
    "project_key": 1,
    "limit": 1_000,
    "before_key": 1 << 40,
    "after_key": 0,
    "before": "session 2",
    "said_at": 1 << 40,
    "prefix": "",
    "key": 11,
    "keys": list(range(1, 60)),
    "number": 16,
    "numbers": list(range(1, 60)),
    "type": "pin",
    "types": ["pin", "document"],
    "id": "pin 11",
    "ids": ["pin 11", "session 2"],
    "terms": ["term1", "term2"],
    "source": "source 13",
    "state": "OPEN",
    "query": HalfVector([1, 2, 3, 4]),
    "limit_agent": None,
    "limit_project": None,
    "project_id": None,
}
"""Values that name what the first owner has."""

BIG: Final = frozenset(
    "records memory_edits record_usage graph_nodes graph_edges term_pages record_shapes record_vectors "
    "sessions feedback superseded_records tombstones forgotten_values vector_debts given imports "
    "removed_records fresh_terms space_members shared_copies".split()
)


WHOLE: Final = frozenset(
    ("people.SELECT_NAMES", *(f"transfer.SELECT_MOVED.{name}" for name, table in MOVED.items() if not table.is_owned))
)
"""A list of everybody and a migration read tables of all owners from end to end."""


async def _run(connection: asyncpg.Connection, statement: str) -> list[Any]:
    text, names = positional(statement)
    prepared = await connection.prepare(text)
    kinds = [
        f"{kind.name.removesuffix('[]')}[]" if kind.kind == "array" else kind.name for kind in prepared.get_parameters()
    ]
    values = [value_for(one, kind, OF_THE_FIRST) for one, kind in zip(names, kinds, strict=True)]
    return list(await prepared.fetch(*values))


async def _rows_of_the_first(admin: asyncpg.Connection) -> dict[str, list[Any]]:
    tables = [row[0] for row in await admin.fetch(PROTECTED)]
    return {
        table: [row[0] for row in await admin.fetch(f"SELECT t::text FROM {table} t WHERE owner_key = 1 ORDER BY 1")]
        for table in tables
    }


AS_THE_SECOND: Final = """
BEGIN; SELECT set_config('kalito.owner', '2', true), set_config('kalito.revision', '9', true)
"""


async def test_a_statement_without_its_owner_neither_shows_nor_changes_what_another_owner_has() -> None:
    name = await filled_database(owners=2, records=100)
    tested = {one: text for one, text in statements().items() if without_owner(text) != text}
    assert len(tested) > 100
    leaking: list[str] = []
    async with connected(name, APP) as app, connected(name, SUPERUSER) as admin:
        before = await _rows_of_the_first(admin)
        for one, statement in tested.items():
            await app.execute(AS_THE_SECOND)
            try:
                shown = await _run(app, without_owner(statement))
            except (asyncpg.IntegrityConstraintViolationError, asyncpg.InsufficientPrivilegeError):
                await app.execute("ROLLBACK")  # a policy refuses to write a row of the first, or a key is taken
            else:
                await app.execute("COMMIT")
                assert "owner 1" not in _shown(shown), one
            await admin.execute(AS_THE_SECOND)
            with suppress(asyncpg.PostgresError):
                if "owner 1" in _shown(await _run(admin, without_owner(statement))):
                    leaking.append(one)
            await admin.execute("ROLLBACK")
        assert await _rows_of_the_first(admin) == before
    assert len(leaking) > 10, "without a policy, these would have shown something: the test can fail"


def _shown(rows: list[Any]) -> str:
    return str([tuple(row) for row in rows])


async def test_a_statement_on_a_protected_table_fails_without_the_setting() -> None:
    name = await filled_database(owners=1, records=20)
    async with connected(name, APP) as app, connected(name, SUPERUSER) as admin:
        for [table] in await admin.fetch(PROTECTED):
            for statement in ("SELECT * FROM {}", "DELETE FROM {}", "UPDATE {} SET owner_key = owner_key"):
                for setting in ("", "SELECT set_config('kalito.owner', '1', true)"):
                    # After a transaction that had the setting, it is an empty text and not unknown.
                    await app.execute(f"BEGIN; {setting}; COMMIT")
                    with pytest.raises((asyncpg.UndefinedObjectError, asyncpg.InvalidTextRepresentationError)):
                        await app.execute(statement.format(table))


async def test_an_owner_cannot_write_a_row_for_another() -> None:
    async with connected(await new_database(), APP) as app:
        await app.execute("INSERT INTO owners (name) VALUES ('ann'), ('bob')")
        await app.execute("BEGIN; SELECT set_config('kalito.owner', '1', true)")
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await app.execute("INSERT INTO agents (owner_key, id) VALUES (2, 'hers')")
        await app.execute("ROLLBACK")


def _scans(plan: Mapping[str, Any]) -> Iterator[str]:
    if "Seq Scan" in plan["Node Type"]:
        yield plan["Relation Name"]
    for part in plan.get("Plans", []):
        yield from _scans(part)


async def test_no_statement_reads_a_big_table_from_end_to_end() -> None:
    found: dict[str, set[str]] = {}
    async with connected(await filled_database(owners=60, records=300), APP) as app:
        await app.execute("SET plan_cache_mode = force_generic_plan")
        await app.execute("SELECT set_config('kalito.owner', '1', false), set_config('kalito.revision', '9', false)")
        for one, statement in statements().items():
            text, names = positional(statement)
            if "$" in statement or one in WHOLE:  # "$": of the start, on the smallest tables
                continue
            await app.execute(f"PREPARE looked_at AS {text}")
            values = f"({', '.join(['NULL'] * len(names))})" if names else ""
            [[plan]] = await app.fetch(f"EXPLAIN (FORMAT JSON) EXECUTE looked_at {values}")
            await app.execute("DEALLOCATE looked_at")
            if scanned := set(_scans(json.loads(plan)[0]["Plan"])) & BIG:
                found[one] = scanned
    assert found == {}
