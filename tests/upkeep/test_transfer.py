"""A migration: everything is the same in the other store, and what is there beforehand is never mixed with it."""

import shutil
import sqlite3
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from kalito_mcp.domain.archive import FIELDS, Selection
from kalito_mcp.domain.imports import FileRead
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.transfer import MOVED, UNMOVED
from kalito_mcp.errors import Conflict
from kalito_mcp.ports.store import OpenedStore, WriteTransaction
from kalito_mcp.records.digests import TableDigest, digests_of_all
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.postgres.database import PostgresStore
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.upkeep.transfer import transfer
from tests import index_reads
from tests.everything import FINGERPRINT, WITHOUT_VECTOR, lay_everything
from tests.postgres import SUPERUSER, connected, empty_database, new_database, shared_server
from tests.scripted import START_MS
from tests.scripted_embedder import hashed_vector

pytestmark = pytest.mark.anyio
STORES: Final = ("sqlite", "postgres")


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("everything") / "memory.db"
    anyio.run(lay_everything, path)
    return path


@pytest.fixture
async def source(everything: Path, tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(Path(shutil.copy(everything, tmp_path / "source.db")))
    yield store
    await store.close()


@asynccontextmanager
async def empty(kind: str, folder: Path) -> AsyncIterator[OpenedStore]:
    store: OpenedStore
    async with AsyncExitStack() as until_end:
        if kind == "sqlite":
            store = await SqliteStore.open(folder / "target.db", is_target=True)
        else:
            name = await until_end.enter_async_context(empty_database())
            store = await PostgresStore.open(shared_server().url(name), is_target=True)
        yield store
        await store.close()


@pytest.fixture(params=STORES)
async def target(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[OpenedStore]:
    async with empty(request.param, tmp_path) as store:
        yield store


def silent(table: str, count: int) -> None:
    del table, count


async def digests(store: OpenedStore) -> Mapping[str, TableDigest]:
    async with store.view() as view:
        return await digests_of_all(view)


async def found(store: OpenedStore) -> list[Any]:
    """What shows that derived data is there: what words and vectors find, and what is superseded."""
    async with store.view() as view:
        scope = Scope("bob")
        counts = await index_reads.counts_of(view, scope, "boat")
        nearest = await view.vectors.nearest(scope, FINGERPRINT, hashed_vector("The boat is red."), k=3)
        ids = [one.id for one in await view.records.list_records(scope, frozenset(), limit=10)]
        return [counts, nearest, ids, await view.records.superseded(scope, ids)]


async def test_everything_is_the_same_in_postgresql_and_back_in_a_file(source: SqliteStore, tmp_path: Path) -> None:
    wanted = await digests(source)
    assert {kind for kind, table in wanted.items() if not table.rows} == set()
    async with empty("postgres", tmp_path) as server, empty("sqlite", tmp_path) as back:
        for one, other in ((source, server), (server, back)):
            report = await transfer(one, other, silent)
            assert report.tables == wanted == await digests(other)
            assert report.vectors == report.vectors_of_source > 0
            assert await other.secret() == await source.secret()
            async with other.view() as view:
                fault, head = await view.audit.check(None)
                assert (fault, head.count) == (None, 3)
                assert len(await view.vectors.owed(FINGERPRINT, limit=9)) == WITHOUT_VECTOR
            assert await found(other) == await found(source)


async def test_what_comes_later_gets_numbers_that_nothing_had(source: SqliteStore, target: OpenedStore) -> None:
    await transfer(source, target, silent)
    before = await digests(target)

    async def go_on(transaction: WriteTransaction) -> None:
        await ensure_session(transaction.sessions, Scope("bob", session="new"), now_ms=START_MS)
        await transaction.imports.keep(Scope("bob"), FileRead("codex", "/c", 1, 1, 1, "f"), now_ms=START_MS)

    await target.write(go_on)
    after = await digests(target)
    for table, added in (("sessions", 1), ("imports", 1), ("records", 0)):
        assert after[table].rows == before[table].rows + added


async def test_moving_again_changes_nothing(source: SqliteStore, target: OpenedStore) -> None:
    first = await transfer(source, target, silent)
    assert await transfer(source, target, silent) == first


async def write_session(owner: str, transaction: WriteTransaction) -> None:
    await ensure_session(transaction.sessions, Scope(owner, session="own"), now_ms=START_MS)


async def test_a_target_that_has_something_else_is_refused_and_left_alone(
    source: SqliteStore, target: OpenedStore
) -> None:
    await target.write(partial(write_session, "carl"))
    before = await digests(target)
    with pytest.raises(Conflict, match="target has agents"):
        await transfer(source, target, silent)
    assert await digests(target) == before


async def test_a_target_with_the_same_rows_and_another_secret_is_refused(
    source: SqliteStore, target: OpenedStore
) -> None:
    async with source.view() as view:
        entries = [one async for page in view.archive.entries("bob", Selection()) for one in page]

    async def same_agent(transaction: WriteTransaction) -> None:
        await transaction.archive.add("bob", [one for one in entries if one.kind == "agents"])

    await target.write(same_agent)
    with pytest.raises(Conflict, match="not empty"):
        await transfer(source, target, silent)
    assert await target.secret() != await source.secret()


async def test_a_source_that_was_written_since_an_earlier_run_is_refused(
    source: SqliteStore, target: OpenedStore
) -> None:
    await transfer(source, target, silent)
    before = await digests(target)
    await source.write(partial(write_session, "bob"))
    with pytest.raises(Conflict, match=r"the target has records that .* Nothing was written"):
        await transfer(source, target, silent)
    assert await digests(target) == before


async def test_a_write_to_the_source_meanwhile_is_found_at_the_end(source: SqliteStore, target: OpenedStore) -> None:
    other = await SqliteStore.open(source.path)
    rebuild = target.maintenance.rebuild_derived

    async def write_and_rebuild() -> None:
        await other.write(partial(write_session, "bob"))
        await rebuild()

    target.maintenance.rebuild_derived = write_and_rebuild  # type: ignore[method-assign]
    try:
        with pytest.raises(Conflict, match="differ in sessions: somebody wrote"):
            await transfer(source, target, silent)
        with pytest.raises(Conflict, match="was not finished"):
            await rebuild()
    finally:
        await other.close()


async def test_what_a_migration_has_not_finished_is_not_opened(source: SqliteStore, tmp_path: Path) -> None:
    for kind in STORES:
        async with empty(kind, tmp_path) as target:

            def stop(table: str, count: int) -> None:
                if count:
                    raise InterruptedError(table)

            with pytest.raises(InterruptedError):
                await transfer(source, target, stop)
            with pytest.raises(Conflict, match="was not finished"):
                await target.maintenance.rebuild_derived()
    with pytest.raises(Conflict, match="was not finished"):
        await SqliteStore.open(tmp_path / "target.db")
    with pytest.raises(Conflict, match="was not finished"):
        await SqliteStore.open(tmp_path / "target.db", may_write=False)


def decided(tables: Mapping[str, set[str]]) -> Iterator[str]:
    """What of a schema nobody has decided about."""
    for table, columns in tables.items():
        known = {*FIELDS.get(table, ()), *(MOVED[table].columns if table in MOVED else ()), "owner_key"}
        if table in FIELDS or (table in MOVED and MOVED[table].is_owned):
            known.add("owner")  # the entries are read for one owner
        if not (table in UNMOVED or table in FIELDS or table in MOVED):
            yield table
        elif table not in UNMOVED:
            yield from (f"{table}.{one}" for one in columns - known if f"{table}.{one}" not in UNMOVED)


async def test_each_table_and_column_of_both_schemas_is_moved_or_has_a_reason(everything: Path) -> None:
    with closing(sqlite3.connect(everything)) as file:
        names = [row[0] for row in file.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        of_file = {
            name: {row[1] for row in file.execute(f"PRAGMA table_info({name})")}
            for name in names
            if not name.startswith("records_text_")
        }
    async with connected(await new_database(), SUPERUSER) as admin:
        rows = await admin.fetch(
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'"
        )
    of_server: dict[str, set[str]] = {}
    for table, column in rows:
        of_server.setdefault(table, set()).add(column)
    assert [*decided(of_file), *decided(of_server)] == []
    both = {**of_server, **of_file}
    assert [one for one in (*MOVED, *(name.partition(".")[0] for name in UNMOVED)) if one not in both] == []
    assert [*decided({"rooms": set(), "imports": {"colour"}})] == ["rooms", "imports.colour"]
