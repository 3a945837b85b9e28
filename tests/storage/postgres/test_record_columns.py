"""What a process keeps of the records: it follows every change of every process, and an older view stays right."""

import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any, Final

import anyio
import asyncpg
import numpy as np
import pytest

from kalito_mcp.domain.scope import Scope
from kalito_mcp.errors import QueryTooLong
from kalito_mcp.ports.search import SearchIndex
from kalito_mcp.ports.storage_policy import StoragePolicy
from kalito_mcp.ports.store import ReadView
from kalito_mcp.storage.postgres import column_rows, search, term_pages
from kalito_mcp.storage.postgres.column_rows import ColumnQueries
from kalito_mcp.storage.postgres.database import PostgresStore
from kalito_mcp.storage.postgres.text_rebuild import rebuild_terms
from tests.campaign import first_of
from tests.index_reads import all_keys, keys_with
from tests.postgres import shared_server
from tests.storage.postgres.laid_records import Writer
from tests.storage.test_record_columns import AGENTS, EVERYTHING, TERMS, WORDS, Read, check, read_all

pytestmark = pytest.mark.anyio
SCOPES: Final = (
    Scope(agent="default", session="trip"),
    Scope(agent="default", session="home"),
    Scope(agent="coach", session="gym"),
)
SELECT_AGENTS: Final = "SELECT key FROM agents WHERE owner_key = :owner ORDER BY key"
DELETE_NEWER: Final = "DELETE FROM records WHERE owner_key = :owner AND key > :key"
UPDATE_KEY: Final = "UPDATE records SET key = :first::bigint WHERE owner_key = :owner AND key = :key"
Opening = Callable[..., Any]


@pytest.fixture
async def opening(database: str) -> AsyncIterator[Opening]:
    """Opens a store on one database, as another process does."""
    opened, url = [], shared_server().url(database)

    async def open_(policy: StoragePolicy | None = None) -> PostgresStore:
        opened.append(await PostgresStore.open(url, policy))
        return opened[-1]

    yield open_
    for store in opened:
        await store.close()


async def read_index(view: ReadView, scope: Scope = EVERYTHING) -> Read:
    return await view.search.in_index(scope, read_all) or Read({}, {term: {} for term in TERMS}, {})


async def answer(store: PostgresStore, scope: Scope = EVERYTHING) -> Read:
    async with store.view() as view:
        return await read_index(view, scope)


class Changes:
    """Changes records at random, through one store."""

    def __init__(self, store: PostgresStore, choose: random.Random) -> None:
        self._store, self._choose = store, choose
        self._texts: dict[int, tuple[str, str | None]] = {}
        self._forgotten: set[int] = set()

    def text(self) -> str:
        return " ".join(self._choose.choices(WORDS, k=self._choose.randrange(1, 9)))

    async def step(self) -> None:
        choose = self._choose
        async with self._store.transaction() as transaction:
            writer = Writer(transaction, "local", self._texts)
            shown = sorted(self._texts.keys() - self._forgotten)
            match choose.randrange(9) if shown else 0:
                case 0 | 1 | 2:
                    texts = [self.text() for _ in range(choose.randrange(1, 4))]
                    await writer.say(*texts, scope=choose.choice(SCOPES), name=choose.choice([None, "Ann", "Bob"]))
                case 3:
                    await writer.say_again(choose.choice(shown), self.text())
                case 4:
                    key = choose.choice(shown)
                    await writer.forget(key)
                    self._forgotten.add(key)
                case 5 if self._forgotten:
                    await writer.restore(self._forgotten.pop())
                case 6:
                    await writer.erase(choose.choice(shown))
                case 7:
                    tags, importance = choose.choice([None, '["trip"]']), choose.randrange(9) / 8
                    key, is_internal = choose.choice(shown), choose.randrange(2)
                    await writer.change(key, importance=importance, tags=tags, is_internal=is_internal)
                case _ if choose.randrange(4):
                    for [agent_key] in await transaction.transaction.all(SELECT_AGENTS, owner="local"):
                        await transaction.text.fold("local", agent_key)
                case _:
                    await rebuild_terms(transaction.transaction, "local")


@pytest.mark.parametrize("seed", first_of(range(8), 2))
async def test_what_another_process_changes_is_seen_as_a_new_process_sees_it(
    opening: Opening, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(term_pages, "PAGE_BYTES", 24)
    choose = random.Random(seed)
    searching, changes = await opening(), Changes(await opening(), choose)
    views: list[tuple[ReadView, list[Read]]] = []
    async with AsyncExitStack() as held:
        for _ in range(12):
            for _ in range(choose.randrange(1, 6)):
                await changes.step()
            if len(views) < 2 and choose.randrange(2):
                view = await held.enter_async_context(searching.view())
                views.append((view, [await read_index(view, scope) for scope in AGENTS]))
            await check_all(searching, opening, views)


async def check_all(searching: PostgresStore, opening: Opening, views: Sequence[tuple[ReadView, list[Read]]]) -> None:
    """A new view answers as a new process does, and an older one as it did when it began."""
    new = await opening(StoragePolicy(readers=1))
    for number, scope in enumerate(AGENTS):
        now = await answer(searching, scope)
        assert now == await answer(new, scope)
        check(now)
        for view, then in views:
            later = await read_index(view, scope)
            for term in TERMS:
                counts = then[number].counts[term]
                # What was erased since may be out of the columns. What is left is as it was.
                assert later.counts[term].items() <= counts.items()
                assert counts.keys() - later.counts[term].keys() <= counts.keys() - now.texts.keys()
            assert later.texts.items() <= then[number].texts.items()
    await new.close()


async def test_an_older_view_does_not_see_what_a_newer_one_has_read(opening: Opening) -> None:
    searching, writing = await opening(), await opening()
    async with writing.transaction() as transaction:
        [first] = await Writer(transaction, "local", {}).say("ferry")
    async with searching.view() as view:
        await view.sessions.get(SCOPES[0])
        async with writing.transaction() as transaction:
            await Writer(transaction, "local", {}).say("ferry", "moss")
        assert len((await answer(searching)).texts) == 3
        assert await keys_with(view, Scope(), "ferry", "moss") == [first]
        assert await view.search.in_index(Scope(session="trip"), lambda index: index.records.count) == 1
    assert len((await answer(searching)).texts) == 3


@pytest.mark.parametrize("is_changed", [False, True])
async def test_what_one_view_kept_of_a_term_is_right_for_an_older_and_for_a_newer_one(
    opening: Opening, *, is_changed: bool
) -> None:
    store, texts = await opening(), dict[int, tuple[str, str | None]]()
    async with store.transaction() as transaction:
        first, second = await Writer(transaction, "local", texts).say("ferry", "moss")
    async with store.view() as view:
        assert await view.search.in_index(Scope(), lambda index: index.records.count) == 2
        async with store.transaction() as transaction:
            writer = Writer(transaction, "local", texts)
            [third] = await writer.say("ferry")
            if is_changed:
                await writer.say_again(second, "ferry")
        newer = [third, second, first] if is_changed else [third, first]
        for _ in range(2):
            async with store.view() as new:
                assert await keys_with(new, Scope(), "ferry") == newer
        assert await keys_with(view, Scope(), "ferry") == [first]
    async with store.transaction() as transaction:
        for [agent_key] in await transaction.transaction.all(SELECT_AGENTS, owner="local"):
            await transaction.text.fold("local", agent_key)
        [fourth] = await Writer(transaction, "local", texts).say("ferry")
    async with store.view() as view:
        assert await keys_with(view, Scope(), "ferry") == [fourth, *newer]


async def test_a_new_record_is_found_that_was_folded_with_an_older_one_that_had_come_back(
    opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(term_pages, "PAGE_BYTES", 24)
    store, texts = await opening(), dict[int, tuple[str, str | None]]()

    async def fold() -> None:
        async with store.transaction() as transaction:
            [[agent_key]] = await transaction.transaction.all(SELECT_AGENTS, owner="local")
            await transaction.text.fold("local", agent_key)

    async with store.transaction() as transaction:
        keys = await Writer(transaction, "local", texts).say("ferry", "ferry", "ferry")
    await fold()
    async with store.transaction() as transaction:
        await Writer(transaction, "local", texts).forget(keys[1])
    async with store.transaction() as transaction:
        await Writer(transaction, "local", texts).restore(keys[1])
    async with store.view() as view:
        assert await keys_with(view, Scope(), "ferry") == keys[::-1]
    async with store.transaction() as transaction:
        keys += await Writer(transaction, "local", texts).say("ferry")
    await fold()
    async with store.view() as view:
        assert await keys_with(view, Scope(), "ferry") == keys[::-1]


class Trips:
    """Counts what the database is asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[str] = []
        for name in ("fetch", "fetchval", "execute"):
            self._count(monkeypatch, name)

    def _count(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        asked = getattr(asyncpg.Connection, name)

        async def counted(connection: Any, query: str, *values: Any, **options: Any) -> Any:
            self.asked.append(query)
            return await asked(connection, query, *values, **options)

        monkeypatch.setattr(asyncpg.Connection, name, counted)


def searched(index: SearchIndex) -> int:
    """What a search of a few words does."""
    index.places(["ferry", "moss"])
    found = index.places(["moss", "ferry"], times=2)["ferry"]
    return len(index.candidates(found.astype("int64")))


async def test_a_search_takes_four_round_trips_five_after_a_write_and_the_first_one_of_an_agent_six(
    opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await opening()
    trips = Trips(monkeypatch)

    async def say(*texts: str) -> None:
        async with store.transaction() as transaction:
            await Writer(transaction, "local", {}).say(*texts)

    async def taken(scope: Scope, found: int) -> int:
        trips.asked.clear()
        async with store.view() as view:
            assert await view.search.in_index(scope, searched) == found
        return len(trips.asked)

    await say("ferry ferry", "moss ferry ferry")
    assert [await taken(scope, 2) for scope in (Scope(), Scope(), SCOPES[0], Scope(session="trip"))] == [6, 4, 4, 4]
    await say("ferry ferry again")
    assert [await taken(Scope(), 3) for _ in range(2)] == [5, 4]


async def test_what_was_read_in_a_view_is_not_read_again_nor_are_the_turns_beside_it(
    opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await opening()
    async with store.transaction() as transaction:
        await Writer(transaction, "local", {}).say("oslo", "ferry ferry", "moss ferry ferry", "pear")

    def read(index: SearchIndex) -> tuple[list[str], list[int]]:
        [place] = np.setdiff1d(index.places(["ferry"])["ferry"], index.places(["moss"])["moss"]).astype("int64")
        texts, counts = list[str](), [len(trips.asked)]
        for places in ([place], [place - 1, place, place + 1], [place + 2]):
            texts += [one.text for one in index.candidates(np.array(places)).values()]
            counts.append(len(trips.asked))
        return texts, np.diff(counts).tolist()

    trips = Trips(monkeypatch)
    async with store.view() as view:
        found = await view.search.in_index(Scope(), read)
    assert found == (["ferry ferry", "oslo", "ferry ferry", "moss ferry ferry", "pear"], [1, 0, 1])


async def test_more_changes_than_are_read_as_such_are_all_seen(
    opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole: list[int] = []
    everything = ColumnQueries.everything

    async def counted(queries: ColumnQueries, *values: Any, **options: Any) -> Any:
        whole.append(1)
        return await everything(queries, *values, **options)

    monkeypatch.setattr(ColumnQueries, "everything", counted)
    monkeypatch.setattr(column_rows, "_MOST_CHANGES", 3)
    searching, writing = await opening(), await opening()
    for count, is_whole in ((1, True), (2, False), (3, True), (2, False)):
        async with writing.transaction() as transaction:
            await Writer(transaction, "local", {}).say(*["ferry"] * count)
        whole.clear()
        found = await answer(searching)
        assert bool(whole) is is_whole
        assert found == await answer(await opening())


async def test_an_agent_that_was_dropped_from_the_caches_is_read_again(
    opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_LEAST_AGENTS", 1)
    monkeypatch.setattr(search, "_MOST_BYTES", 0)
    searching, writing = await opening(), await opening()
    for _ in range(2):
        for scope in SCOPES:
            async with writing.transaction() as transaction:
                await Writer(transaction, "local", {}).say("ferry moss", scope=scope)
        for scope in AGENTS:
            assert await answer(searching, scope) == await answer(await opening(), scope)


async def test_agents_stay_in_the_caches_as_long_as_there_is_memory_for_them(
    opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, read = await opening(), list[str]()
    everything = ColumnQueries.everything

    async def noted(queries: ColumnQueries, owner: str, agent: Any, **options: Any) -> Any:
        read.append(owner)
        return await everything(queries, owner, agent, **options)

    monkeypatch.setattr(ColumnQueries, "everything", noted)
    monkeypatch.setattr(search, "_LEAST_AGENTS", 2)
    owners = [f"owner {number}" for number in range(5)]
    for owner in owners:
        async with store.transaction() as transaction:
            await Writer(transaction, owner, {}).say("ferry moss", scope=replace(SCOPES[0], owner=owner))

    async def search_all() -> None:
        read.clear()
        for owner in owners:
            async with store.view() as view:
                assert await view.search.in_index(Scope(owner), searched) == 0

    await search_all()
    assert read == owners
    await search_all()
    assert read == []
    monkeypatch.setattr(search, "_MOST_BYTES", 1)
    await search_all()
    assert read == owners[1:], "the first search drops all but its own and the last"


async def test_a_record_with_a_key_between_those_that_are_known_is_seen(opening: Opening) -> None:
    searching, writing = await opening(), await opening()
    texts: dict[int, tuple[str, str | None]] = {}
    async with writing.transaction() as transaction:
        first, *_ = await Writer(transaction, "local", texts).say("ferry", "moss")
        await Writer(transaction, "local", texts).say("pear", scope=SCOPES[2])
    await answer(searching)
    async with writing.transaction() as transaction:
        writer = Writer(transaction, "local", texts)
        [last] = await writer.say("oslo")
        await writer.erase(first)
        names = {"owner": "local", "key": last, "first": first}
        await transaction.transaction.all(UPDATE_KEY, **names)
    found = await answer(searching)
    assert found.texts == (await answer(await opening())).texts
    assert {key: text.strip() for key, text in found.texts.items()} == {first: "oslo", first + 1: "moss"}


async def test_many_searches_at_once_see_whole_states_while_another_process_writes(opening: Opening) -> None:
    searching, changes = await opening(), Changes(await opening(), random.Random(5))
    for _ in range(20):
        await changes.step()
    is_written = anyio.Event()

    async def look() -> None:
        while not is_written.is_set():
            check(await answer(searching))

    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(look)
        for _ in range(60):
            await changes.step()
        is_written.set()
    for scope in AGENTS:
        assert await answer(searching, scope) == await answer(await opening(), scope)


async def test_a_statement_of_a_search_that_takes_too_long_is_ended_and_the_view_goes_on(opening: Opening) -> None:
    store = await opening(StoragePolicy(query_s=0.05))
    async with store.transaction() as transaction:
        [key] = await Writer(transaction, "local", {}).say("ferry")
    for _ in range(2):
        async with store.view() as view:
            await keys_with(view, Scope(), "ferry")  # the columns are read, which may take as long as it takes
            with pytest.raises(QueryTooLong, match=r"ended after 0\.05 s"):
                await view.search.in_index(
                    Scope(), lambda index: anyio.from_thread.run(view.transaction.all, "SELECT pg_sleep(9)")
                )
            async with store.transaction() as transaction:
                await Writer(transaction, "local", {}).say("ferry")
            assert await keys_with(view, Scope(), "ferry") == [key]
            assert await view.sessions.get(SCOPES[0]) is not None
        async with store.view() as view:
            await view.transaction.all("SELECT pg_sleep(0.1)")
        async with store.transaction() as transaction:
            await transaction.transaction.all(DELETE_NEWER, owner="local", key=key)


async def test_all_columns_of_many_records_are_read_by_one_statement(
    opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await opening()
    async with store.transaction() as transaction:
        writer = Writer(transaction, "local", {})
        keys = [key for scope in SCOPES[:2] * 2 for key in await writer.say(*["ferry"] * 300, scope=scope)]
    trips = Trips(monkeypatch)
    async with store.view() as view:
        found = await view.search.in_index(Scope(), lambda index: (all_keys(index).tolist(), index.records))
    assert found is not None
    assert found[0] == keys
    assert list(found[1].session_numbers) == ["trip", "home"]
    assert len(trips.asked) == 4


async def test_a_search_that_is_cancelled_ends_at_once_and_leaves_nothing_behind(opening: Opening) -> None:
    store = await opening(StoragePolicy(readers=1, query_s=60))
    async with store.transaction() as transaction:
        [key] = await Writer(transaction, "local", {}).say("ferry")
    for _ in range(12):  # more than there are connections
        with anyio.move_on_after(0.05) as scope:
            async with store.view() as view:
                await view.search.in_index(
                    Scope(), lambda index: anyio.from_thread.run(view.transaction.all, "SELECT pg_sleep(60)")
                )
        assert scope.cancelled_caught
    with anyio.fail_after(5):
        async with store.view() as view:
            assert await keys_with(view, Scope(), "ferry") == [key]
