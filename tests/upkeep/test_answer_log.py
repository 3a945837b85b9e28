"""Notes are written together, after the reads, and none is lost if the database cannot be written."""

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest

from kalito_mcp import Memory, SearchRequest, Settings, open_memory
from kalito_mcp.domain.given import KEPT_DAYS, MOST_KEPT, GivenEntry, GivenKind, GivenPart, PartName
from kalito_mcp.domain.memory_records import MemoryRecord
from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import LOCAL_OWNER, NO_LIMITS, Limits, Scope
from kalito_mcp.domain.time import DAY_MS
from kalito_mcp.errors import StorageBusy
from kalito_mcp.ports.store import WriteTransaction
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.upkeep.answer_log import AnswerLog, UsagePolicy
from tests import drafts
from tests.scripted import START_MS, CountedIds, ScriptedClock
from tests.stored import said

pytestmark = pytest.mark.anyio
T = TypeVar("T")

AT_ONCE, LATER = UsagePolicy(write_after_s=0.0), UsagePolicy()
FIRST, SECOND = "task_first", "task_second"


class Refusing:
    """The store, which another process locks for the given number of tries."""

    def __init__(self, store: SqliteStore, times: int) -> None:
        self._store = store
        self.read = store.read
        self.times = times
        self.written = anyio.Event()

    async def note(self, work: Callable[[WriteTransaction], Coroutine[Any, Any, T]]) -> T:
        if self.times:
            self.times -= 1
            raise StorageBusy("locked by another program; close it and try again")
        result = await self._store.note(work)
        self.written.set()
        return result


@pytest.fixture
async def stored(store: SqliteStore) -> SqliteStore:
    """With two tasks, and one of Ben's."""
    async with store.transaction() as transaction:
        tasks = [drafts.record(RecordType.TASK, one.removeprefix("task_")) for one in (FIRST, SECOND)]
        await transaction.records.add_records(Scope(), tasks, now_ms=START_MS)
        await transaction.records.add_records(Scope("ben"), [drafts.record(RecordType.TASK, "bens")], now_ms=START_MS)
    return store


async def read(store: SqliteStore, record_id: str) -> MemoryRecord:
    async with store.view() as view:
        record = await view.records.record(Scope(), record_id)
    assert record is not None
    return record


async def uses(store: SqliteStore) -> Mapping[str, int]:
    return {one: (await read(store, one)).usage_count for one in (FIRST, SECOND)}


def counter(store: object, clock: ScriptedClock, policy: UsagePolicy = AT_ONCE) -> AnswerLog:
    return AnswerLog(store, clock, policy)  # type: ignore[arg-type] - of a store it needs the writing


async def test_uses_are_written_together(stored: SqliteStore, clock: ScriptedClock) -> None:
    usage = counter(stored, clock)
    for used in ([FIRST, SECOND], [FIRST], [], ["task_erased"]):
        usage.used(LOCAL_OWNER, used)
    assert await uses(stored) == {FIRST: 0, SECOND: 0}
    await usage.flush()
    assert await uses(stored) == {FIRST: 2, SECOND: 1}
    await usage.flush()
    assert await uses(stored) == {FIRST: 2, SECOND: 1}


async def test_the_last_use_is_when_it_was_written(stored: SqliteStore, clock: ScriptedClock) -> None:
    usage = counter(stored, clock)
    for seconds in (60, -30):
        clock.advance(seconds)
        usage.used(LOCAL_OWNER, [FIRST])
        await usage.flush()
    record = await read(stored, FIRST)
    assert (record.usage_count, record.last_used) == (2, START_MS + 60_000)


async def test_a_use_is_not_an_edit_and_keeps_the_revision(stored: SqliteStore, clock: ScriptedClock) -> None:
    usage = counter(stored, clock)
    usage.used(LOCAL_OWNER, [FIRST])
    await usage.flush()
    record = await read(stored, FIRST)
    assert record.revision == 1
    async with stored.view() as view:
        assert await view.records.edits(record) == []


async def test_a_failed_write_keeps_its_counts_for_the_next_time(stored: SqliteStore, clock: ScriptedClock) -> None:
    usage = counter(Refusing(stored, 2), clock)
    usage.used(LOCAL_OWNER, [FIRST])
    await usage.flush()
    usage.used(LOCAL_OWNER, [FIRST, SECOND])
    await usage.flush()
    assert await uses(stored) == {FIRST: 0, SECOND: 0}
    await usage.flush()
    assert await uses(stored) == {FIRST: 2, SECOND: 1}


async def given(store: SqliteStore, owner: str = LOCAL_OWNER) -> Sequence[int]:
    """The moments of what was given."""
    found = await store.read(lambda view: view.given.entries(Scope(owner), limit=MOST_KEPT + 1))
    return [one.at for one in found]


async def test_what_was_given_is_written_with_the_uses_for_each_owner(
    stored: SqliteStore, clock: ScriptedClock
) -> None:
    watched = Refusing(stored, 1)
    log = counter(watched, clock)
    now_ms = clock.now_ms()
    for owner, at in ((LOCAL_OWNER, now_ms), ("ben", now_ms), (LOCAL_OWNER, now_ms - KEPT_DAYS * DAY_MS - 1)):
        log.gave(Scope(owner), GivenEntry(GivenKind.SEARCH, at, 0))
    log.used(LOCAL_OWNER, [FIRST])
    await log.flush()
    assert await given(stored) == [], "the database could not be written"
    log.gave(Scope(), GivenEntry(GivenKind.SEARCH, now_ms + 1, 0))
    await log.flush()
    assert await given(stored) == [now_ms + 1, now_ms]
    assert await given(stored, "ben") == [now_ms]
    assert (await uses(stored))[FIRST] == 1
    counter(stored, clock, UsagePolicy(enabled=False)).gave(Scope(), GivenEntry(GivenKind.SEARCH, 1, 0))
    assert log.noted == 4


async def test_what_a_hook_did_not_wait_for_is_neither_given_nor_used(
    stored: SqliteStore, clock: ScriptedClock
) -> None:
    log = counter(stored, clock)
    now_ms = clock.now_ms()
    part = GivenPart(PartName.FOUND, 0, 1, (FIRST,))
    for at, kind, session_id in (
        (1, GivenKind.PROMPT, "trip"),
        (2, GivenKind.SEARCH, "trip"),
        (3, GivenKind.PROMPT, "other"),
    ):
        log.used(LOCAL_OWNER, [FIRST])
        log.gave(Scope(), GivenEntry(kind, now_ms + at, 0, (part,), session_id=session_id))
    log.take_back("ben", ("trip",), {FIRST})
    log.take_back(LOCAL_OWNER, ("trip",), {SECOND})
    assert log.noted == 3
    log.take_back(LOCAL_OWNER, ("trip",), {FIRST, SECOND})
    assert log.noted == 4, "a page that shows it is drawn again"
    await log.flush()
    log.take_back(LOCAL_OWNER, ("other",), {FIRST})
    await log.flush()
    assert await given(stored) == [now_ms + 3, now_ms + 2]
    assert (await uses(stored))[FIRST] == 2


async def test_notes_of_an_owner_that_cannot_be_written_wait_and_the_others_are_written(
    stored: SqliteStore, clock: ScriptedClock
) -> None:
    watched = Refusing(stored, 1)
    log = counter(watched, clock)
    now_ms = clock.now_ms()
    for owner in (LOCAL_OWNER, "ben"):
        log.used(owner, [FIRST])
        log.gave(Scope(owner), GivenEntry(GivenKind.SEARCH, now_ms, 0))
    await log.flush()
    assert (await given(stored), await given(stored, "ben")) == ([], [now_ms])
    assert await uses(stored) == {FIRST: 0, SECOND: 0}, "the first owner was refused, and a task of hers is not Ben's"
    log.used("ben", [SECOND])
    await log.flush()
    assert (await given(stored), await given(stored, "ben")) == ([now_ms], [now_ms])
    assert await uses(stored) == {FIRST: 1, SECOND: 0}


async def test_a_session_beyond_the_limits_or_of_another_agent_is_not_named(
    stored: SqliteStore, clock: ScriptedClock
) -> None:
    async with stored.transaction() as transaction:
        place = Scope(agent="coder", session="trip", project="/p")
        await ensure_session(transaction.sessions, place, now_ms=START_MS)
        await ensure_session(
            transaction.sessions, Scope(agent="cook", session=Limits("cook").own_session("soup")), now_ms=START_MS
        )
    log = counter(stored, clock)
    prompt, search = GivenKind.PROMPT, GivenKind.SEARCH
    for kind, limits, agent, named in (
        (search, NO_LIMITS, None, "trip"),
        (prompt, NO_LIMITS, "cook", "trip"),
        (prompt, NO_LIMITS, None, "new"),
        (search, NO_LIMITS, None, "new"),
        (prompt, Limits("cook"), None, "trip"),
        (search, Limits("cook"), None, "trip"),
        (search, Limits("coder"), None, "trip"),
        (search, Limits("cook"), None, "soup"),
        (search, NO_LIMITS, "cook", None),
    ):
        log.gave(Scope(agent=agent, limits=limits), GivenEntry(kind, clock.now_ms(), 0, session_id=named))
    await log.flush()
    entries = await stored.read(lambda view: view.given.entries(Scope(), limit=9))
    assert [(one.agent, one.session_id) for one in reversed(entries)] == [
        ("coder", "trip"),
        ("cook", None),
        ("default", "new"),
        ("default", None),
        ("cook", Limits("cook").own_session("trip")),
        ("cook", None),
        ("coder", "trip"),
        ("cook", Limits("cook").own_session("soup")),
        ("cook", None),
    ]


async def test_switched_off_it_counts_nothing(stored: SqliteStore, clock: ScriptedClock) -> None:
    usage = counter(stored, clock, UsagePolicy(enabled=False))
    usage.used(LOCAL_OWNER, [FIRST])
    await usage.flush()
    assert await uses(stored) == {FIRST: 0, SECOND: 0}


@pytest.mark.parametrize("failures", [0, 1])
async def test_its_task_writes_a_use_that_follows_a_flush(
    stored: SqliteStore, clock: ScriptedClock, failures: int
) -> None:
    watched = Refusing(stored, 0)
    usage = counter(watched, clock)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(usage.run)
        await anyio.wait_all_tasks_blocked()
        watched.times = failures
        if failures:
            usage.used(LOCAL_OWNER, [FIRST])
        await usage.flush()
        await usage.flush()
        watched.written = anyio.Event()
        usage.used(LOCAL_OWNER, [FIRST])
        with anyio.fail_after(5):
            await watched.written.wait()
        tasks.cancel_scope.cancel()
    await usage.flush()
    assert (await uses(stored))[FIRST] == 1 + failures


async def test_a_write_that_is_cancelled_loses_no_count(stored: SqliteStore, clock: ScriptedClock) -> None:
    usage = counter(stored, clock)
    usage.used(LOCAL_OWNER, [FIRST])
    with anyio.CancelScope() as scope:
        scope.cancel()
        await usage.flush()
    await usage.flush()
    assert (await uses(stored))[FIRST] == 1


@asynccontextmanager
async def opened(database: Path, policy: UsagePolicy = LATER) -> AsyncIterator[Memory]:
    async with open_memory(database, Settings(usage=policy), clock=ScriptedClock(), ids=CountedIds()) as memory:
        await memory.settled()
        yield memory


async def test_reading_writes_nothing_before_the_uses_are_due(database: Path, store: SqliteStore) -> None:
    async with opened(database) as memory:
        await memory.record_messages("trip", said("We fly to Oslo."))
        await memory.settled()
        before = await store.revision(LOCAL_OWNER)
        await memory.search_memory(SearchRequest("Oslo"))
        await memory.build_context("trip", query="Oslo")
        assert await store.revision(LOCAL_OWNER) == before
        assert (await memory.records.get("msg_1")).usage_count == 0
        await memory.settled()
        assert (await memory.records.get("msg_1")).usage_count == 1
    async with opened(database) as memory:
        assert (await memory.records.get("msg_1")).usage_count == 1


async def test_what_is_counted_when_a_memory_is_closed_is_written(database: Path) -> None:
    async with opened(database) as memory:
        await memory.record_messages("trip", said("We fly to Oslo."))
        await memory.search_memory(SearchRequest("Oslo"))
    async with opened(database, UsagePolicy(enabled=False)) as memory:
        await memory.search_memory(SearchRequest("Oslo"))
        await memory.settled()
        assert (await memory.records.get("msg_1")).usage_count == 1


async def test_what_cannot_be_written_is_read_and_not_counted(database: Path) -> None:
    async with opened(database) as memory:
        await memory.record_messages("trip", said("We fly to Oslo."))
    store = await SqliteStore.open(database, may_write=False)
    try:
        usage = counter(store, ScriptedClock())
        usage.used(LOCAL_OWNER, ["msg_1"])
        for at in range(MOST_KEPT + 5):
            usage.gave(Scope(), GivenEntry(GivenKind.SEARCH, at, 0))
        await usage.flush()
        assert (await read(store, "msg_1")).usage_count == 0
        assert await given(store) == []
        assert [entry.at for _, entry in usage._given] == list(range(5, MOST_KEPT + 5)), "not more than are ever kept"
    finally:
        await store.close()


async def test_nothing_is_noted_of_somebody_who_was_erased(stored: SqliteStore, clock: ScriptedClock) -> None:
    log = counter(stored, clock)
    log.gave(Scope("ben"), GivenEntry(GivenKind.SEARCH, clock.now_ms(), 0))
    while await stored.write(lambda transaction: transaction.people.erase("ben", most=100)):
        pass
    await log.flush()
    assert await given(stored, "ben") == []
    assert [one.owner for one in await stored.read(lambda view: view.people.owners())] == [LOCAL_OWNER]
