"""A person is erased: nothing of them is in any table or file, others go on, and the report says what still has it."""

import signal
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Final

import asyncpg
import pytest

from kalito_mcp import Memory, open_memory
from kalito_mcp.capture.spool import Spool
from kalito_mcp.config.settings import Settings
from kalito_mcp.domain.findings import Verdict
from kalito_mcp.domain.spaces import Role
from kalito_mcp.errors import InvalidInput, NotFound
from kalito_mcp.runtime.crash_points import VARIABLE
from kalito_mcp.runtime.database_address import DatabaseAddress, LocalFiles, ServerAddress, address_of
from kalito_mcp.storage.sqlite.inspection import inspect
from kalito_mcp.wiring import back_up, backups
from tests.people import fill, holding, rows_of
from tests.postgres import OWNER, SUPERUSER, connected, new_database, shared_server
from tests.scripted import START_MS
from tests.server import prepared
from tests.server.wire import clean_environment

pytestmark = pytest.mark.anyio
CANARY: Final = "zanzibarquokka"
OTHER: Final = "timbuktunumbat"
EVENT: Final = {"host": "claude-code", "payload": {"prompt": f"Where is {CANARY}?"}}

ERASE: Final = """
import sys, anyio
from kalito_mcp import open_memory

async def main():
    async with open_memory(sys.argv[1]) as memory:
        await memory.people.erase("anna")

anyio.run(main)
"""


async def two_people(memory: Memory, canary: str = CANARY) -> None:
    """Anna, who says the canary everywhere, and Ben; both share a note in a space."""
    for name, word in (("anna", canary), ("ben", OTHER)):
        theirs = await fill(memory, name, word)
        if name == "anna":
            await memory.spaces.create("team")
        await memory.spaces.set_member("team", name, Role.CURATOR)
        [note] = await theirs.remember("note", {"text": f"We all like {word}."})
        copy, _ = await theirs.spaces.share(note.id, "team")
        await theirs.update_memory(copy.id, {"text": f"All of us like {word}."}, expected_revision=1)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "data" / "memory.db"


@asynccontextmanager
async def opened(database: Path) -> AsyncIterator[Memory]:
    """A memory whose hooks are Anna's."""
    async with open_memory(settings=Settings(database=address_of(database), owner="anna")) as memory:
        yield memory


def tables_holding(database: Path, word: str) -> set[str]:
    """The tables that have the word in any column, and the text index if it has a term that begins like it."""
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE VIRTUAL TABLE temp.terms USING fts5vocab(main, records_text, row)")
        tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
        rows = {name: connection.execute(f"SELECT * FROM {name}") for [name] in connection.execute(tables).fetchall()}
        found = {name for name, of in rows.items() if any(word in str(value) for row in of for value in row)}
        terms = [term for [term] in connection.execute("SELECT term FROM temp.terms")]
        return found | ({"records_text"} if any(f":{word[:8]}" in term for term in terms) else set())


async def test_nothing_of_a_person_is_left_in_any_table_or_file_and_others_go_on(database: Path) -> None:
    spool = Spool(LocalFiles(database).spool)
    async with opened(database) as memory:
        await two_people(memory)
        spool.put(EVENT, at_ms=START_MS, event_id="one")
        assert {"memory.db", "memory.db.snapshots/owners/anna/kept.json"} <= set(holding(database.parent, CANARY))
        said = tables_holding(database, CANARY)
        assert {"records", "records_text", "memory_edits", "graph_nodes", "sessions", "given", "imports"} <= said
        before = await rows_of(memory.place.store, "ben")
        others = set(holding(database.parent, OTHER))
        report = await memory.people.erase("anna")
        assert holding(database.parent, CANARY) == []
        assert tables_holding(database, CANARY) == set()
        assert tables_holding(database, "anna") == {"audit_log"}
        assert (report.spaces, report.remaining, report.is_owed) == ({"team": 1}, {}, False)
        assert report.rows["records"] > 10
        assert (report.rows["access_tokens"], report.rows["oauth_grants"], report.rows["passphrases"]) == (2, 1, 1)
        assert set(report.files) == {"snapshot kept", "snapshot default", "reports of hooks: 1"}
        assert spool.count() == 0
        assert await rows_of(memory.place.store, "ben") == before
        assert set(holding(database.parent, OTHER)) - {"memory.db-wal"} == others - {"memory.db-wal"}
        ben = memory.of_owner("ben")
        found = await ben.search_memory(f"who likes {OTHER}")
        assert "team" in {one.space for one in found.hits}
        assert [(one.name, one.keys, len(one.memberships)) for one in await memory.people.all()] == [("ben", 2, 1)]
        [entry] = await memory.access.audit(all_owners=True, limit=1)
        assert (entry.said.action, entry.said.owner) == ("erase_person", "anna")
        again = await memory.people.erase("anna")
        assert (again.rows, again.spaces, again.files, again.kept) == ({}, {}, (), report.kept)
        assert [entry] == await memory.access.audit(all_owners=True, limit=1), "nothing more was erased"
        assert (await memory.access.check_audit())[0] is None
    assert holding(database.parent, CANARY) == []
    assert [one for one in inspect(database, is_deep=True) if one.verdict is Verdict.FAILED] == []


async def test_backups_are_named_as_places_that_still_have_the_words(database: Path) -> None:
    settings = Settings(database=address_of(database))
    async with opened(database) as memory:
        await fill(memory, "anna", CANARY)
    backup, _ = back_up(settings, 5)
    async with opened(database) as memory:
        report = await memory.people.erase("anna")
    assert [name for name in report.remaining if backup.path.name in name], report.remaining
    assert holding(database.parent, CANARY) == [f"memory.db.backups/{backup.path.name}"]
    assert len(backups(settings)[1]) == 1


async def test_a_name_that_nobody_has_and_a_space_are_refused_and_change_nothing(database: Path) -> None:
    async with opened(database) as memory:
        await memory.spaces.create("team")
        with pytest.raises(NotFound, match="nobody is called 'carl'"):
            await memory.people.erase("carl")
        with pytest.raises(InvalidInput, match="is a space"):
            await memory.people.erase("space:team")
        assert [one.name for one in await memory.spaces.all()] == ["team"]
        assert [one.said.action for one in await memory.access.audit(all_owners=True)] == ["create_space"]


async def test_a_server_that_runs_beside_goes_on_and_shows_nothing_of_who_was_erased(database: Path) -> None:
    async with opened(database) as serving:
        await two_people(serving)
        anna, ben = serving.of_owner("anna"), serving.of_owner("ben")
        assert (await anna.search_memory(CANARY)).hits
        assert (await anna.orchestrator().graph_overview())["nodes"]
        await anna.build_context(query=CANARY)
        async with opened(database) as memory:
            await memory.people.erase("anna")
        assert (await anna.search_memory(CANARY)).hits == ()
        assert CANARY not in (await anna.build_context(query="boat")).text
        assert not (await anna.orchestrator().graph_overview())["nodes"]
        assert (await ben.search_memory(OTHER)).hits
        await serving.settled(with_vectors=False)  # notes of what it gave her are written now
        assert [one.name for one in await serving.people.all()] == ["ben"]
        [note] = await serving.of_owner("carl").remember("note", {"text": f"Carl says {OTHER}."})
        assert [one.record_id for one in (await serving.of_owner("carl").search_memory(OTHER)).hits] == [note.id]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.parametrize("point", ["person.slice", "person.rows", "person.files", "purge.snapshots", "sweep.merged"])
async def test_an_erasing_that_was_killed_is_finished_by_the_next_call(database: Path, point: str) -> None:
    async with opened(database) as memory:
        await two_people(memory)
        before = await rows_of(memory.place.store, "ben")
    command = [sys.executable, "-c", ERASE, str(database)]
    killed = prepared.run(command, env=clean_environment(**{VARIABLE: point}), timeout=60, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert holding(database.parent, CANARY), "the files are not swept yet"
    async with opened(database) as memory:
        report = await memory.people.erase("anna")
        assert (report.remaining, report.is_owed) == ({}, False)
        assert holding(database.parent, CANARY) == []
        assert await rows_of(memory.place.store, "ben") == before
        assert [one.name for one in await memory.people.all()] == ["ben"]


async def tables_of(admin: asyncpg.Connection) -> dict[str, str]:
    """All rows of each table of the database, the statistics of PostgreSQL among them."""
    tables = (
        "SELECT c.oid::regclass::text FROM pg_class c WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
    )
    names = [name for [name] in await admin.fetch(tables)]
    return {
        name: str([one for [one] in await admin.fetch(f"SELECT t::text FROM {name} t")])
        for name in [*names, "pg_statistic"]
    }


async def test_nothing_of_a_person_is_left_on_postgresql_but_in_its_log(tmp_path: Path) -> None:
    canary = "xylophagouswombat"
    server, name = shared_server(), await new_database()
    address = DatabaseAddress(tmp_path / "memory", ServerAddress(server.url(name), server.url(name, OWNER)))
    async with (
        open_memory(settings=Settings(database=address, owner="anna")) as memory,
        connected(name, SUPERUSER) as admin,
    ):
        await two_people(memory, canary)
        await admin.execute("ANALYZE; CHECKPOINT")
        said = {table for table, rows in (await tables_of(admin)).items() if canary in rows}
        assert {"records", "term_pages", "fresh_terms", "memory_edits", "graph_nodes", "sessions", "given"} & said
        assert holding(server.data / "base", canary)
        before = await rows_of(memory.place.store, "ben")
        report = await memory.people.erase("anna")
        assert (report.spaces, report.remaining, report.is_owed) == ({"team": 1}, {}, False)
        assert any("write-ahead log" in one for one in report.kept)
        await admin.execute("CHECKPOINT")
        rows = await tables_of(admin)
        assert {table for table, one in rows.items() if canary in one} == set()
        # Of the log's names, PostgreSQL has statistics.
        assert {table for table, one in rows.items() if "anna" in one} == {"audit_log", "pg_statistic"}
        assert await rows_of(memory.place.store, "ben") == before
        assert [one.name for one in await memory.people.all()] == ["ben"]
        # What VACUUM frees is in the files until something is written there.
        async with connected(name, OWNER) as owner:
            await owner.execute("VACUUM FULL")
        await admin.execute("CHECKPOINT")
        assert [one for one in holding(server.data, canary) if not one.startswith("pg_wal/")] == []
        # Tables without any row keep their statistics when they are analysed.
        await admin.execute("ANALYZE")
        schema = "SELECT to_jsonb(i) FROM pg_indexes i WHERE schemaname = 'public' UNION ALL SELECT "
        schema += "to_jsonb(tgname) FROM pg_trigger WHERE NOT tgisinternal UNION ALL SELECT "
        schema += "to_jsonb(c) FROM information_schema.columns c WHERE table_schema = 'public' ORDER BY 1"
        before = await admin.fetch(schema)
        assert OTHER in (await tables_of(admin))["pg_statistic"]
        await memory.spaces.remove("team")
        report = await memory.people.erase("ben")
        assert (report.remaining, report.is_owed) == ({}, False)
        assert {table for table, rows in (await tables_of(admin)).items() if OTHER in rows} == set()
        assert await admin.fetch(schema) == before
        async with connected(name, SUPERUSER) as reader, reader.transaction():
            await reader.execute("LOCK TABLE graph_nodes IN ACCESS SHARE MODE")
            [left] = (await memory.place.store.maintenance.finish_erasures()).values()
            assert "the statistics of graph_nodes may have erased words" in left
    assert holding(tmp_path, canary) == []
