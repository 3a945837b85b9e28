"""`ports.archive`: a memory that is taken out of one store and put into another is the same there."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from kalito_mcp.domain.archive import FIELDS, ArchiveEntry, Selection, completed
from kalito_mcp.domain.graph import FeedbackLabel, GraphChanges, GraphNode, NodeType
from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import Scope
from kalito_mcp.errors import InvalidInput
from kalito_mcp.ports.store import Store
from kalito_mcp.records.digests import digests_of_all
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.wiring import open_memory
from tests.contract.conftest import Backend, PostgresBackend, SqliteBackend
from tests.empty_database import lay_empty_database
from tests.exchange.filled import fill
from tests.scripted import START_MS, CountedIds, ScriptedClock

pytestmark = pytest.mark.anyio
ALL: Final = Selection()
OWNER: Final = "local"
BACKENDS: Final = {"sqlite": SqliteBackend, "postgres": PostgresBackend}
PAIRS: Final = [(source, target) for source in BACKENDS for target in BACKENDS]
PARTS: Final = [
    Selection(session="home"),
    Selection(agent="other"),
    Selection(project="boats"),
    Selection(project="personal"),
    Selection(types=frozenset({RecordType.TASK, RecordType.THOUGHT})),
    Selection(agent="default", since_ms=START_MS, until_ms=START_MS + 60_000),
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Sequence[ArchiveEntry]:
    """A memory with something of every kind."""
    path = lay_empty_database(tmp_path_factory.mktemp("filled") / "memory.db")

    async def make() -> Sequence[ArchiveEntry]:
        async with open_memory(path, clock=ScriptedClock(), ids=CountedIds()) as memory:
            await fill(memory)
        store = await SqliteStore.open(path)
        try:
            return await taken_out(store)
        finally:
            await store.close()

    return anyio.run(make)


@asynccontextmanager
async def opened(name: str, folder: Path) -> AsyncIterator[Store]:
    folder.mkdir(exist_ok=True)
    backend: Backend = BACKENDS[name](folder)
    try:
        yield await backend.open()
    finally:
        await backend.close()


async def taken_out(store: Store, selection: Selection = ALL, owner: str = OWNER) -> Sequence[ArchiveEntry]:
    async with store.view() as view:
        return [entry async for page in view.archive.entries(owner, selection) for entry in page]


async def put_in(store: Store, entries: Sequence[ArchiveEntry], owner: str = OWNER) -> None:
    async with store.transaction() as transaction:
        assert await transaction.archive.is_empty()
        for start in range(0, len(entries), 100):
            await transaction.archive.add(owner, entries[start : start + 100])
        await transaction.archive.finish([owner])


async def passed_on(folder: Path, entries: Sequence[ArchiveEntry], *names: str) -> Sequence[ArchiveEntry]:
    """The entries after they were in each of these stores, one after the other."""
    for number, name in enumerate(names):
        async with opened(name, folder / f"{number}-{name}") as store:
            await put_in(store, entries)
            entries = await taken_out(store)
    return entries


@pytest.mark.parametrize(("source", "target"), PAIRS)
async def test_a_memory_is_the_same_after_it_went_from_one_store_to_another(
    whole: Sequence[ArchiveEntry], tmp_path: Path, source: str, target: str
) -> None:
    found = await passed_on(tmp_path, whole, source, target)
    assert {entry.kind for entry in found} == set(FIELDS)
    assert [[*entry.fields] for entry in found] == [[*FIELDS[entry.kind]] for entry in found]
    assert found == whole


async def digests_after(folder: Path, name: str, entries: Sequence[ArchiveEntry]) -> Mapping[str, str]:
    async with opened(name, folder) as store:
        await put_in(store, entries)
        async with store.view() as view:
            found = await digests_of_all(view)
            return {kind: found[kind].digest for kind in FIELDS}


async def test_equal_memories_have_equal_digests_in_every_store_and_others_differ_in_the_kind_that_does(
    whole: Sequence[ArchiveEntry], tmp_path: Path
) -> None:
    [in_sqlite, in_postgres] = [await digests_after(tmp_path / one, one, whole) for one in ("sqlite", "postgres")]
    assert list(in_sqlite) == list(FIELDS)
    assert in_sqlite == in_postgres
    assert len({*in_sqlite.values()}) == len(FIELDS)
    at = max(number for number, one in enumerate(whole) if one.kind == "records")
    other = [*whole]
    other[at] = whole[at]._replace(fields={**whole[at].fields, "tokens": 999})
    changed = await digests_after(tmp_path / "changed", "postgres", other)
    assert [kind for kind in FIELDS if changed[kind] != in_sqlite[kind]] == ["records"]


@pytest.mark.parametrize("selection", PARTS, ids=range(len(PARTS)))
async def test_a_part_is_the_same_from_every_store_and_in_every_store(
    whole: Sequence[ArchiveEntry], tmp_path: Path, selection: Selection
) -> None:
    parts = {}
    for name in BACKENDS:
        async with opened(name, tmp_path / name) as store:
            await put_in(store, whole)
            parts[name] = await taken_out(store, selection)
    assert 0 < len(parts["sqlite"]) < len(whole)
    assert parts["postgres"] == parts["sqlite"]
    if selection.is_restorable:
        restored = [await passed_on(tmp_path, parts["sqlite"], name) for name in ("sqlite", "postgres")]
        assert restored[0] == restored[1]


async def test_nothing_of_another_owner_is_in_an_archive_and_a_store_with_it_is_not_empty(
    store: Store, whole: Sequence[ArchiveEntry]
) -> None:
    await put_in(store, whole, "ann")
    kinds = {one.kind for one in await taken_out(store, owner="bob")}
    assert kinds <= {"identity", "sqlite_sequence"}
    async with store.transaction() as transaction:
        assert not await transaction.archive.is_empty()
        assert await transaction.sessions.get(Scope("ann", session="home")) is not None


async def test_a_store_in_which_nothing_was_written_is_empty(store: Store) -> None:
    async with store.transaction() as transaction:
        assert await transaction.archive.is_empty()
        await ensure_session(transaction.sessions, Scope("ann", session="s"), now_ms=START_MS)
        assert not await transaction.archive.is_empty()


async def test_what_comes_later_gets_numbers_that_nothing_had(store: Store, whole: Sequence[ArchiveEntry]) -> None:
    await put_in(store, whole)
    async with store.transaction() as transaction:
        earlier = [await transaction.graphs.state(Scope(session=one)) for one in ("home", "build/1")]
        for agent in ("default", "other", "new"):
            scope = Scope(agent=agent, session=f"later of {agent}")
            await ensure_session(transaction.sessions, replace(scope, project=f"of {agent}"), now_ms=START_MS)
            node = GraphNode(id="new", type=NodeType.ENTITY, created_at=START_MS, last_access=START_MS)
            state = await transaction.graphs.save(scope, GraphChanges(nodes=[node]), embedder="test")
            assert state.revision > max(one.revision for one in earlier)
    found = await taken_out(store)
    for kind in ("agents", "projects", "sessions", "graphs", "graph_nodes"):
        keys = [one.fields["key"] for one in found if one.kind == kind]
        assert len(keys) == len(set(keys)) > sum(one.kind == kind for one in whole)


async def test_feedback_that_came_in_is_read_and_counted_on(store: Store, whole: Sequence[ArchiveEntry]) -> None:
    await put_in(store, whole)
    async with store.transaction() as transaction:
        await transaction.graphs.add_feedback(Scope(), 2, FeedbackLabel.UP, at_ms=START_MS)
        await transaction.graphs.add_feedback(Scope("eve"), 2, FeedbackLabel.UP, at_ms=START_MS)
        assert await transaction.graphs.feedback(Scope(), ["msg_2", "pin_1"]) == {"msg_2": {FeedbackLabel.UP: 2}}
        for is_there in (True, True, False):
            assert await transaction.graphs.withdraw_feedback(Scope(), 2, FeedbackLabel.UP) is is_there
            assert not await transaction.graphs.withdraw_feedback(Scope("eve"), 2, FeedbackLabel.UP)


RIGHT: Final = {
    **{"key": 2, "agent_key": 1, "type": "task", "id": "t", "text": "x", "importance": 0.5, "tokens": 1},
    **{"created_at": 1, "attributes": "{}", "hash": bytes(8)},
}


async def refuse(store: Store, wrong: Mapping[str, Any]) -> None:
    given = [
        ArchiveEntry("agents", {"key": 1, "id": "default"}, 2),
        ArchiveEntry("records", {**RIGHT, "key": 1, "id": "first"}, 3),
        ArchiveEntry("records", {**RIGHT, **wrong}, 4),
        ArchiveEntry("records", {**RIGHT, "key": 3, "id": "last"}, 5),
    ]
    with pytest.raises(InvalidInput, match="line 4"):
        await put_in(store, [*map(completed, given)])
    async with store.transaction() as transaction:
        assert await transaction.archive.is_empty()


@pytest.mark.parametrize("wrong", [{"type": "dream"}, {"text": None}, {"agent_key": 7}], ids=repr)
async def test_an_entry_that_cannot_be_stored_is_named_by_its_line_and_nothing_stays(
    store: Store, wrong: Mapping[str, Any]
) -> None:
    await refuse(store, wrong)


@pytest.mark.parametrize(
    "wrong", [{"id": "first"}, {"importance": "much"}, {"text": "\ud800"}, {"seq": 1 << 63}, {"key": 1}], ids=ascii
)
async def test_a_database_names_the_line_of_what_breaks_its_constraints(store: Store, wrong: Mapping[str, Any]) -> None:
    await refuse(store, wrong)


async def test_an_archive_shows_one_moment_while_others_write(backend: Backend, whole: Sequence[ArchiveEntry]) -> None:
    reading, writing = await backend.open(), await backend.open()
    await put_in(writing, whole)
    async with reading.view() as view:
        pages = view.archive.entries(OWNER, ALL)
        found = [*await anext(pages)]
        async with writing.transaction() as transaction:
            await ensure_session(transaction.sessions, Scope(session="too late"), now_ms=START_MS)
        found += [entry async for page in pages for entry in page]
    assert found == whole
