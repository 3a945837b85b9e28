"""What a process keeps of the records: it follows every change of every process, and an older view stays right."""

import sqlite3
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, NamedTuple

import anyio
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.memory_records import DELETED_AT, EditType, MemoryRecord
from kalito_mcp.domain.records import Origin, RecordType, Role
from kalito_mcp.domain.scope import Scope
from kalito_mcp.ports.search import SearchIndex
from kalito_mcp.ports.store import ReadView
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.sqlite import recent_terms, search
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.storage.sqlite.record_columns import AgentColumns
from kalito_mcp.storage.sqlite.text_index import COUNT_MARKS
from kalito_mcp.text.analysis import MANY, SEVERAL, index_text
from tests import drafts
from tests.empty_database import lay_empty_database
from tests.index_reads import all_keys, counts_of, keys_with
from tests.retrieval.stored_memories import remember
from tests.scripted import START_MS
from tests.server import prepared
from tests.server.wire import clean_environment
from tests.storage.conftest import ROOT

pytestmark = pytest.mark.anyio
WORDS: Final = ("ferry", "moss", "oslo", "pear", "I")
TERMS: Final = ("ferry", "moss", "oslo", "pear", "i", "ann", "bob")
TRIP: Final = Scope(session="trip")
SCOPES: Final = (TRIP, Scope(session="home"), Scope(agent="coach", session="gym"))
EVERYTHING: Final = Scope()
AGENTS: Final = (EVERYTHING, Scope(agent="coach"))
LOGGED: Final = 1_000
"""Changes that the log of a database keeps."""


class Read(NamedTuple):
    """What an index says: the columns of each record that is shown, and for each term how often a record has it."""

    columns: Mapping[int, tuple[object, ...]]
    counts: Mapping[str, Mapping[int, int]]
    texts: Mapping[int, str]


def read_all(index: SearchIndex) -> Read:
    records = index.records
    shown = [place for place in range(records.count) if records.is_shown[place]]
    keys = {place: int(all_keys(index)[place]) for place in shown}
    is_shown = set(keys.values())
    # The columns may be newer than the view: then a record is not shown that the view's index still has.
    counts = {
        term: {
            key: times
            for times in COUNT_MARKS
            for key in all_keys(index)[index.places([term], times=times)[term]].tolist()
            if key in is_shown
        }
        for term in TERMS
    }
    found = index.candidates(np.array(shown, np.int64))
    texts = {keys[place]: f"{one.name or ''} {one.text}" for place, one in found.items()}
    return Read({key: columns_at(index, place) for place, key in keys.items()}, counts, texts)


def columns_at(index: SearchIndex, place: int) -> tuple[object, ...]:
    """What the columns say of a record, in terms that do not depend on what else was ever read."""
    records = index.records

    def linked(links: Any) -> int | None:
        """The key of the nearest turn that is shown in this direction."""
        at = int(links[place])
        while 0 <= at < records.count and not records.is_shown[at]:
            at = int(links[at])
        return int(all_keys(index)[at]) if 0 <= at < records.count else None

    session_ids = {number: session_id for session_id, number in records.session_numbers.items()}
    return (
        session_ids.get(int(records.sessions[place])),
        int(records.created_at[place]),
        float(records.importance[place]),
        records.name_list[records.names[place]],
        int(records.word_counts[place]),
        tuple(RecordType)[records.types[place]],
        tuple(Role)[records.roles[place]] if records.roles[place] < len(Role) else None,
        tuple(Origin)[records.origins[place]],
        bool(records.is_internal[place]),
        records.tags.get(place),
        linked(records.previous_turns),
        linked(records.next_turns),
    )


async def read_index(view: ReadView, scope: Scope = EVERYTHING) -> Read:
    return await view.search.in_index(scope, read_all) or Read({}, {term: {} for term in TERMS}, {})


async def answer(store: SqliteStore, scope: Scope = EVERYTHING) -> Read:
    async with store.view() as view:
        return await read_index(view, scope)


async def answer_of_a_new_process(database: Path, scope: Scope = EVERYTHING) -> Read:
    store = await SqliteStore.open(database)
    try:
        return await answer(store, scope)
    finally:
        await store.close()


def check(found: Read) -> None:
    """The index says of each record what its text says, and of nothing else."""
    for term in TERMS:
        expected = {}
        for key, text in found.texts.items():
            indexed = index_text(text)
            if term in indexed.terms:
                expected[key] = MANY if term in indexed.many else SEVERAL if term in indexed.several else 1
        assert found.counts[term] == expected, term


class Writer:
    """Changes records of several sessions through one store."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        self.ids: list[str] = []

    async def write(self, scope: Scope, text: str, **details: Any) -> str:
        draft = drafts.message(text, **details)
        [key] = await remember(self.store, draft, scope=scope)
        self.ids.append(f"msg_{key}")
        return self.ids[-1]

    async def pin(self, scope: Scope, text: str) -> str:
        record_id = f"pin_{len(self.ids)}"
        async with self.store.transaction() as transaction:
            session = await ensure_session(transaction.sessions, scope, now_ms=START_MS)
            await transaction.conversations.add_pins(session, [drafts.pin(text, record_id=record_id)])
        self.ids.append(record_id)
        return record_id

    async def edit(self, record_id: str, **changes: Any) -> None:
        record = await self._record(record_id)
        if record is not None:
            async with self.store.transaction() as transaction:
                await transaction.records.change(record, drafts.edit(record, changes))

    async def forget(self, record_id: str, *, is_forgotten: bool = True) -> None:
        record = await self._record(record_id)
        if record is not None and record.is_deleted is not is_forgotten:
            kind = EditType.DELETE if is_forgotten else EditType.RESTORE
            changes = {DELETED_AT: START_MS + 1 if is_forgotten else None}
            async with self.store.transaction() as transaction:
                await transaction.records.change(record, drafts.edit(record, changes, edit_type=kind))

    async def purge(self, record_id: str) -> None:
        record = await self._record(record_id)
        if record is not None:
            async with self.store.transaction() as transaction:
                await transaction.records.purge(record, now_ms=START_MS + 9)

    async def rescore(self, scope: Scope, score: float) -> None:
        async with self.store.transaction() as transaction:
            session = await ensure_session(transaction.sessions, scope, now_ms=START_MS)
            scores = [(int(one[4:]), score) for one in self.ids if one.startswith("msg_")]
            await transaction.conversations.set_importance(session, scores, now_ms=START_MS)

    async def change_often(self, record_id: str, times: int = LOGGED + 1) -> None:
        """Change a record so often that the log forgets what was before."""
        for number in range(times // 20 + 1):
            async with self.store.transaction() as transaction:
                for part in range(20):
                    record = await transaction.records.record(Scope(), record_id)
                    assert record is not None
                    score = (number * 20 + part) % 100 / 100
                    await transaction.records.change(record, drafts.edit(record, {"importance_score": score}))

    async def _record(self, record_id: str) -> MemoryRecord | None:
        async with self.store.view() as view:
            for scope in AGENTS:
                record = await view.records.record(scope, record_id)
                if record is not None:
                    return record
        return None


@asynccontextmanager
async def two_processes(folder: Path) -> AsyncIterator[tuple[SqliteStore, Writer, Path]]:
    """A store that searches, and another that writes to the same database."""
    database = lay_empty_database(folder / "memory.db")
    searching, writing = await SqliteStore.open(database), await SqliteStore.open(database)
    try:
        yield searching, Writer(writing), database
    finally:
        await searching.close()
        await writing.close()


TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map(" ".join)
NUMBERS = st.integers(0, 30)
STEPS = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(SCOPES), TEXTS, st.sampled_from([None, "Ann", "Bob"])),
    st.tuples(st.just("tagged"), st.sampled_from(SCOPES), TEXTS),
    st.tuples(st.just("pin"), st.sampled_from(SCOPES), TEXTS),
    st.tuples(st.just("text"), NUMBERS, TEXTS),
    st.tuples(st.just("name"), NUMBERS, st.sampled_from([None, "Ann", "Bob"])),
    st.tuples(st.just("tags"), NUMBERS, st.sampled_from([None, ["trip"]])),
    st.tuples(st.just("visibility"), NUMBERS, st.sampled_from(["internal", "chat"])),
    st.tuples(st.just("forget"), NUMBERS),
    st.tuples(st.just("restore"), NUMBERS),
    st.tuples(st.just("purge"), NUMBERS),
    st.tuples(st.just("rescore"), st.sampled_from(SCOPES), st.floats(0, 1)),
    st.tuples(st.just("reindex")),
    st.tuples(st.just("hold")),
    st.tuples(st.just("look")),
)


async def take(step: tuple[Any, ...], writer: Writer) -> None:
    match step:
        case "write", scope, text, name:
            await writer.write(scope, text, name=name)
        case "tagged", scope, text:
            await writer.write(scope, text, details={"tags": ["trip"]})
        case "pin", scope, text:
            await writer.pin(scope, text)
        case "rescore", scope, score:
            await writer.rescore(scope, score)
        case "reindex", *_:
            await writer.store.reindex()
        case str(what), int(number), *value if writer.ids:
            record_id = writer.ids[number % len(writer.ids)]
            if what in ("forget", "restore"):
                await writer.forget(record_id, is_forgotten=what == "forget")
            elif what == "purge":
                await writer.purge(record_id)
            else:
                await writer.edit(record_id, **{what: value[0]})


async def run(folder: Path, steps: Sequence[tuple[Any, ...]]) -> None:
    async with two_processes(folder) as (searching, writer, database), AsyncExitStack() as held:
        views: list[tuple[ReadView, list[Read]]] = []
        for step in steps:
            if step[0] == "hold" and len(views) < 2:
                view = await held.enter_async_context(searching.view())
                views.append((view, [await read_index(view, scope) for scope in AGENTS]))
            elif step[0] == "look":
                await check_all(searching, database, views)
            else:
                await take(step, writer)
        await check_all(searching, database, views)


async def check_all(searching: SqliteStore, database: Path, views: Sequence[tuple[ReadView, list[Read]]]) -> None:
    """A new view answers as a new process does, and an older one as it did when it began."""
    for number, scope in enumerate(AGENTS):
        now = await answer(searching, scope)
        assert now == await answer_of_a_new_process(database, scope)
        check(now)
        for view, then in views:
            later = await read_index(view, scope)
            for term in TERMS:
                counts = then[number].counts[term]
                # What was erased since may be out of the columns. What is left is as it was.
                assert later.counts[term].items() <= counts.items()
                assert counts.keys() - later.counts[term].keys() <= counts.keys() - now.texts.keys()
            assert later.texts.items() <= then[number].texts.items()


@given(steps=st.lists(STEPS, max_size=30))
def test_what_another_process_changes_is_seen_as_a_new_process_sees_it(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[Any, ...]]
) -> None:
    anyio.run(run, tmp_path_factory.mktemp("memory"), steps)


async def test_a_process_of_its_own_is_followed(tmp_path: Path) -> None:
    program = """
import anyio, pathlib, sys
from tests.storage.test_record_columns import TRIP, SqliteStore, Writer

async def main():
    store = await SqliteStore.open(pathlib.Path(sys.argv[1]))
    writer = Writer(store)
    await writer.edit("msg_1", text="moss moss", name="Ann")
    await writer.forget("msg_2")
    await writer.purge("msg_3")
    await writer.write(TRIP, "pear")
    await store.close()

anyio.run(main)
"""
    async with two_processes(tmp_path) as (searching, writer, database):
        for text in ("ferry", "ferry moss", "ferry oslo"):
            await writer.write(TRIP, text)
        before = await answer(searching)
        prepared.run([sys.executable, "-c", program, str(database)], cwd=ROOT, env=clean_environment(), check=True)
        found = await answer(searching)
        assert before.texts.keys() == {1, 2, 3}
        assert found.texts == {1: "Ann moss moss", 4: " pear"}
        assert found == await answer_of_a_new_process(database)
        check(found)


async def test_more_changes_than_the_log_keeps_are_all_seen(tmp_path: Path) -> None:
    async with two_processes(tmp_path) as (searching, writer, database):
        first = await writer.write(TRIP, "ferry")
        second = await writer.write(TRIP, "ferry ferry")
        await answer(searching)
        await writer.edit(first, text="moss")
        await writer.forget(second)
        await writer.change_often(first)
        found = await answer(searching)
        assert found == await answer_of_a_new_process(database)
        assert [dict(found.counts[term]) for term in ("ferry", "moss")] == [{}, {int(first[4:]): 1}]


async def test_the_log_of_changes_stays_bounded(tmp_path: Path) -> None:
    async with two_processes(tmp_path) as (_, writer, database):
        await writer.change_often(await writer.write(TRIP, "ferry"), LOGGED + 200)
    with closing(sqlite3.connect(database)) as connection:
        [[count, first, last]] = connection.execute("SELECT count(*), min(number), max(number) FROM record_changes")
    assert (count, last - first) == (LOGGED, LOGGED - 1)


@pytest.mark.parametrize("is_reloaded", [False, True], ids=["followed", "reloaded"])
async def test_a_view_from_before_an_erasure_still_finds_what_it_found(tmp_path: Path, *, is_reloaded: bool) -> None:
    async with two_processes(tmp_path) as (searching, writer, _):
        erased = await writer.pin(TRIP, "ferry pin")
        kept = [int((await writer.write(TRIP, text))[4:]) for text in ("moss", "ferry", "ferry ferry")]
        last = await writer.pin(TRIP, "ferry moss")
        await answer(searching)
        async with searching.view() as view:
            await view.sessions.get(TRIP)
            await writer.purge(erased)
            await writer.purge(last)
            if is_reloaded:
                await writer.store.reindex()
            await answer(searching)
            found = await read_index(view)
            assert {key: count for key, count in found.counts["ferry"].items() if key in kept} == {
                kept[1]: 1,
                kept[2]: SEVERAL,
            }
            assert {key: text.split() for key, text in found.texts.items() if key in kept} == {
                kept[0]: ["moss"],
                kept[1]: ["ferry"],
                kept[2]: ["ferry", "ferry"],
            }
        assert (await answer(searching)).counts["ferry"] == {kept[1]: 1, kept[2]: SEVERAL}


async def test_a_view_from_before_a_change_leaves_no_stale_postings_behind(tmp_path: Path) -> None:
    async with two_processes(tmp_path) as (searching, writer, _):
        first = await writer.write(TRIP, "ferry")
        async with searching.view() as view:
            await view.sessions.get(TRIP)
            await writer.edit(first, text="moss")
            async with searching.view() as newer:
                assert await keys_with(newer, Scope(), "ferry") == []
            assert await keys_with(view, Scope(), "ferry") == [int(first[4:])]
            assert await keys_with(view, Scope(), "moss") == []
        async with searching.view() as newest:
            assert await keys_with(newest, Scope(), "ferry") == []
            assert await keys_with(newest, Scope(), "moss") == [int(first[4:])]


async def test_a_view_does_not_see_records_that_a_newer_one_has_read(tmp_path: Path) -> None:
    async with two_processes(tmp_path) as (searching, writer, _):
        first = await writer.write(TRIP, "ferry")
        async with searching.view() as view:
            before = await read_index(view)
            await writer.write(TRIP, "ferry")
            assert len((await answer(searching)).counts["ferry"]) == 2
            assert await read_index(view) == before
            assert await keys_with(view, Scope(), "ferry", "moss") == [int(first[4:])]


async def test_the_columns_of_a_view_stay_as_they_are_while_newer_ones_are_read(tmp_path: Path) -> None:
    async with two_processes(tmp_path) as (searching, writer, _):
        for number in range(3):
            await writer.write(TRIP, "ferry", details={"tags": [f"tag{number}"]}, name=f"name{number}")
        async with searching.view() as view:
            records = await view.search.in_index(Scope(), lambda index: index.records)
        assert records is not None
        tags, names = dict(records.tags), list(records.name_list)
        arrays = {one.name: getattr(records, one.name) for one in fields(records)}
        arrays = {name: values.copy() for name, values in arrays.items() if isinstance(values, np.ndarray)}
        await writer.write(TRIP, "moss", details={"tags": ["other"]}, name="other")
        await answer(searching)
        await writer.edit(writer.ids[0], tags=["new"], name="new", text="moss")
        await writer.purge(writer.ids[1])
        await answer(searching)
        assert dict(records.tags) == tags
        assert list(records.name_list[: len(names)]) == names
        for name, values in arrays.items():
            found = getattr(records, name)
            if name == "next_turns":  # the last turn has got a next one, which these columns do not have
                found = np.where(found < records.count, found, -1)
            assert (found == values).all(), name


@pytest.mark.campaign
async def test_readers_at_once_see_whole_states_while_another_process_writes(tmp_path: Path) -> None:
    async with two_processes(tmp_path) as (searching, writer, database):
        for number in range(60):
            await writer.write(SCOPES[number % 2], f"{WORDS[number % 5]} {WORDS[number % 3]}", name="Ann")
        is_written = anyio.Event()

        async def look() -> None:
            while not is_written.is_set():
                check(await answer(searching))

        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(look)
            for number in range(10):
                record_id = writer.ids[number * 7 % len(writer.ids)]
                await writer.edit(record_id, text=f"{WORDS[(number + 1) % 5]} " * (number % 5 + 1))
                await writer.write(SCOPES[number % 2], "ferry moss", details={"tags": ["trip"]})
                await writer.pin(TRIP, "pear ferry")
                await writer.purge(writer.ids[-1 - number % 2])
            is_written.set()
        assert await answer(searching) == await answer_of_a_new_process(database)


async def test_an_erased_record_is_in_no_postings(tmp_path: Path) -> None:
    async with two_processes(tmp_path) as (searching, writer, _):
        ids = [
            await writer.write(TRIP, "ferry moss"),
            await writer.pin(TRIP, "ferry"),
            await writer.write(TRIP, "moss"),
        ]
        assert len((await answer(searching)).counts["ferry"]) == 2
        for record_id in ids[:2]:
            await writer.purge(record_id)
        found = await answer(searching)
        assert (dict(found.counts["ferry"]), list(found.counts["moss"])) == ({}, [int(ids[2][4:])])


async def test_a_record_that_is_given_to_another_agent_leaves_the_first_and_reaches_the_other(tmp_path: Path) -> None:
    async with two_processes(tmp_path) as (searching, writer, database):
        moved = await writer.write(TRIP, "ferry")
        await writer.write(SCOPES[2], "moss")
        for scope in AGENTS:
            await answer(searching, scope)
        with closing(sqlite3.connect(database)) as connection, connection:
            row = "(SELECT agent_key, key FROM sessions WHERE id = 'gym')"
            connection.execute(
                f"UPDATE records SET (agent_key, session_key) = {row}, seq = 9, text = text WHERE key = ?", [moved[4:]]
            )
        await writer.store.reindex()
        for scope, count in zip(AGENTS, (0, 1), strict=True):
            found = await answer(searching, scope)
            assert found == await answer_of_a_new_process(database, scope)
            assert len(found.counts["ferry"]) == count


async def test_an_agent_that_was_dropped_from_the_caches_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_MOST_AGENTS", 1)
    async with two_processes(tmp_path) as (searching, writer, database):
        for scope in SCOPES:
            await writer.write(scope, "ferry moss")
        for _ in range(2):
            for scope in AGENTS:
                assert await answer(searching, scope) == await answer_of_a_new_process(database, scope)
                await writer.edit(writer.ids[0], text="pear")


async def test_postings_that_do_not_fit_are_read_from_the_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kalito_mcp.storage.kept_postings._KEPT_BYTES", 20)
    async with two_processes(tmp_path) as (searching, writer, database):
        for number in range(12):
            await writer.write(TRIP, f"ferry {WORDS[number % 4]}")
            assert await answer(searching) == await answer_of_a_new_process(database)


@pytest.mark.parametrize(
    ("limit", "most", "is_asked_again"),
    [("_MOST_RECORDS", 3, True), ("_MOST_WORDS", 3, True), ("_MOST_RECORDS", 100, False)],
)
async def test_the_newest_texts_are_read_instead_of_the_index_as_long_as_they_are_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, most: int, *, is_asked_again: bool
) -> None:
    """Beyond the limits the index is asked again. The answers are the same."""
    monkeypatch.setattr(recent_terms, limit, most)
    asked: list[int] = []
    indexed = AgentColumns._indexed

    def counted(columns: AgentColumns, connection: sqlite3.Connection, marked: str, after_key: int, *rest: Any) -> Any:
        asked.append(after_key)
        return indexed(columns, connection, marked, after_key, *rest)

    monkeypatch.setattr(AgentColumns, "_indexed", counted)
    async with two_processes(tmp_path) as (searching, writer, database):
        await answer(searching)
        for number in range(8):
            await writer.write(TRIP, " ".join([WORDS[number % 4]] * (1 + number)), name=(None, "Ann")[number % 2])
            assert await answer(searching) == await answer_of_a_new_process(database)
    assert any(asked) is is_asked_again


async def test_counts_are_followed_when_a_text_changes(tmp_path: Path) -> None:
    async with two_processes(tmp_path) as (searching, writer, _):
        record_id = await writer.write(TRIP, "ferry")
        for times, count in ((1, 1), (2, SEVERAL), (5, MANY), (3, SEVERAL), (1, 1)):
            await writer.edit(record_id, text="ferry " * times)
            async with searching.view() as view:
                assert await counts_of(view, Scope(), "ferry") == [(int(record_id[4:]), count)]
