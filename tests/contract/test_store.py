"""`ports.store.Store`: consistent views, atomic writes, and a revision that changes with every commit of an owner.

Whether it also changes with commits of other owners is up to the store."""

import anyio
import pytest

from kalito_mcp.domain.access import Permission, Token
from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import LOCAL_OWNER, NO_LIMITS, Scope
from kalito_mcp.domain.search import SearchFilters
from kalito_mcp.ports.store import ReadView, Store, WriteTransaction
from kalito_mcp.records.sessions import ensure_session
from tests import drafts
from tests.contract.conftest import Backend
from tests.index_reads import keys_with, record_count, shown
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio
TRIP = Scope(session="trip")


class Abandoned(Exception):
    """What a test raises inside a transaction."""


async def write_everything(transaction: WriteTransaction, word: str = "abandoned") -> None:
    """One of each kind of write."""
    session = await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
    await transaction.conversations.append_messages(session, [drafts.message(f"{word} message")], now_ms=START_MS)
    session = await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
    await transaction.conversations.add_pins(
        session, [drafts.pin(f"{word} pin", record_id=f"pin_{word}_{session.message_count}")]
    )
    end = session.message_count
    await transaction.conversations.add_summaries(session, [drafts.summary(end, end, text=f"{word} summary")])
    for kind in (RecordType.THOUGHT, RecordType.DOCUMENT, RecordType.TASK):
        text = f"{word} {kind}"
        draft = drafts.record(kind, text, record_id=f"{text} {end}", source=f"{word} {end}")
        [added] = await transaction.records.add_records(TRIP, [draft], now_ms=START_MS)
        await transaction.records.change(added, drafts.edit(added, {"tags": ["edited"]}))
    await transaction.sessions.set_pinned_seq(session, end)
    await transaction.sessions.set_observed_seq(session, end)


async def seen(store: Store, word: str) -> tuple[int, int, int]:
    """How many messages the session has, records the agent, and records the word."""
    async with store.view() as view:
        session = await view.sessions.get(TRIP)
        found = await shown(view, Scope(), word, filters=SearchFilters(include_internal=True))
        return session.message_count if session else 0, await record_count(view, Scope()), len(found)


async def test_what_a_write_committed_is_seen_by_the_next_view(store: Store) -> None:
    async with store.transaction() as transaction:
        await write_everything(transaction)
    assert await seen(store, "abandon") == (1, 6, 6)


async def test_an_error_inside_a_write_leaves_nothing_written_and_nothing_indexed(store: Store) -> None:
    with pytest.raises(Abandoned):
        async with store.transaction() as transaction:
            await write_everything(transaction)
            raise Abandoned
    assert await seen(store, "abandon") == (0, 0, 0)
    async with store.view() as view:
        assert await view.sessions.totals(Scope()) == {
            "sessions": 0,
            "messages": 0,
            "pins": 0,
            "summaries": 0,
            "notes": 0,
            "tasks": 0,
            "documents": 0,
        }


async def test_a_cancellation_inside_a_write_leaves_nothing_written_and_nothing_indexed(store: Store) -> None:
    with anyio.CancelScope() as scope:
        async with store.transaction() as transaction:
            await write_everything(transaction)
            scope.cancel()
            await anyio.lowlevel.checkpoint()
    assert scope.cancelled_caught
    assert await seen(store, "abandon") == (0, 0, 0)


async def test_a_write_cancelled_at_any_moment_is_whole_or_absent_and_the_next_one_succeeds(store: Store) -> None:
    outcomes: list[int] = []
    before = 0
    for steps in range(0, 800, 20):
        async with anyio.create_task_group() as tasks:

            async def write(word: str) -> None:
                async with store.transaction() as transaction:
                    await write_everything(transaction, word)

            tasks.start_soon(write, f"word{steps}")
            for _ in range(steps):
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        messages, records, found = await seen(store, f"word{steps}")
        assert (messages - before, records - 6 * before, found) in {(0, 0, 0), (1, 6, 6)}
        outcomes.append(messages - before)
        before = messages
    with anyio.fail_after(10):
        async with store.transaction() as transaction:
            await write_everything(transaction, "harbour")
    assert (await seen(store, "harbour"))[2] == 6
    assert outcomes[0] == 0


async def test_a_failed_write_does_not_disturb_the_numbers_of_the_next(store: Store) -> None:
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
        await transaction.conversations.append_messages(session, [drafts.message("one")], now_ms=START_MS)
    with pytest.raises(Abandoned):
        async with store.transaction() as transaction:
            session = await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
            await transaction.conversations.append_messages(session, [drafts.message("lost")], now_ms=START_MS)
            raise Abandoned
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
        [third] = await transaction.conversations.append_messages(session, [drafts.message("two")], now_ms=START_MS)
    assert third.seq == 2


async def test_a_view_sees_nothing_of_what_is_committed_after_its_first_read(backend: Backend) -> None:
    reading, writing = await backend.open(), await backend.open()
    async with writing.transaction() as transaction:
        await write_everything(transaction, "dawn")
    async with reading.view() as view:
        before = await view.sessions.get(TRIP)
        async with writing.transaction() as transaction:
            await write_everything(transaction, "dusk")
        assert before is not None
        assert await view.sessions.get(TRIP) == before
        assert len(await view.conversations.messages(before, first_seq=1, last_seq=99)) == 1
        assert await keys_with(view, Scope(), "dusk") == []
        assert (await view.sessions.totals(Scope()))["messages"] == 1
    assert await seen(reading, "dusk") == (2, 12, 6)


async def test_a_write_sees_its_own_changes_and_others_do_not_until_it_commits(store: Store) -> None:
    async with store.transaction() as transaction:
        await write_everything(transaction)
        mine = await transaction.sessions.get(TRIP)
        assert mine is not None
        assert mine.message_count == 1
        assert await seen(store, "abandon") == (0, 0, 0)


async def test_more_views_than_readers_take_turns(store: Store) -> None:
    counts: list[int] = []
    async with store.transaction() as transaction:
        await write_everything(transaction)

    async def look() -> None:
        counts.append((await seen(store, "abandon"))[2])

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            for _ in range(40):
                tasks.start_soon(look)
    assert counts == [6] * 40


async def test_views_that_are_cancelled_do_not_use_up_the_readers(store: Store) -> None:
    for steps in range(0, 400, 10):
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(seen, store, "word")
                for _ in range(steps):
                    await anyio.lowlevel.checkpoint()
                scope.cancel()
    with anyio.fail_after(10):
        assert await seen(store, "word") == (0, 0, 0)


async def test_writes_of_two_stores_take_turns_and_none_is_lost(backend: Backend) -> None:
    stores = [await backend.open(), await backend.open()]

    async def append(store: Store, name: str) -> None:
        for number in range(25):
            async with store.transaction() as transaction:
                session = await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
                draft = drafts.message(f"{name}{number}")
                await transaction.conversations.append_messages(session, [draft], now_ms=START_MS)

    async with anyio.create_task_group() as tasks:
        for name, store in zip("abcd", stores * 2, strict=True):
            tasks.start_soon(append, store, name)
    async with stores[0].view() as view:
        session = await view.sessions.get(TRIP)
        assert session is not None
        messages = await view.conversations.messages(session, first_seq=1, last_seq=1000)
    assert [message.seq for message in messages] == list(range(1, 101))
    for name in "abcd":
        assert [m.text for m in messages if m.text[0] == name] == [f"{name}{number}" for number in range(25)]


async def test_an_owner_s_revision_changes_with_every_commit_of_this_store_and_of_another(
    backend: Backend,
) -> None:
    one, other = await backend.open(), await backend.open()
    revisions = [await one.revision(LOCAL_OWNER)]
    for store in (one, other, one, other):
        async with store.transaction() as transaction:
            await write_everything(transaction)
        revisions.append(await one.revision(LOCAL_OWNER))
    assert len(set(revisions)) == len(revisions)


async def test_an_owner_s_revision_changes_with_their_tokens(store: Store) -> None:
    made = Token("tok_1", "kal_", "tests", "ann", Permission.READ, NO_LIMITS, created_at=START_MS)
    revisions = [await store.revision("ann")]
    async with store.transaction() as transaction:
        await transaction.access.add_token(made, bytes(32))
    revisions.append(await store.revision("ann"))
    async with store.transaction() as transaction:
        await transaction.access.revoke_tokens("tok_1", owner="ann", now_ms=START_MS)
    revisions.append(await store.revision("ann"))
    assert len(set(revisions)) == 3


async def test_the_revision_stays_while_nothing_is_committed(store: Store) -> None:
    before = await store.revision(LOCAL_OWNER)
    await seen(store, "word")
    with pytest.raises(Abandoned):
        async with store.transaction() as transaction:
            await write_everything(transaction)
            raise Abandoned
    assert await store.revision(LOCAL_OWNER) == before


async def test_many_may_ask_for_the_revision_at_once(store: Store) -> None:
    answers: list[int] = []

    async def ask() -> None:
        answers.append(await store.revision(LOCAL_OWNER))

    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(ask)
    assert len(set(answers)) == 1


async def test_the_secret_is_sixteen_bytes_and_stays_the_same_in_every_store(backend: Backend) -> None:
    one, other = await backend.open(), await backend.open()
    assert len(await one.secret()) == 16
    assert await one.secret() == await other.secret()


async def test_the_schema_is_this_releases_in_every_store(backend: Backend) -> None:
    schema = await (await backend.open()).schema()
    assert schema.applied == schema.known


async def test_a_store_opened_later_finds_everything(backend: Backend) -> None:
    first = await backend.open()
    async with first.transaction() as transaction:
        await write_everything(transaction)
    assert await seen(await backend.open(), "abandon") == (1, 6, 6)


async def test_records_of_every_type_are_in_the_text_index_under_their_type(store: Store) -> None:
    async with store.transaction() as transaction:
        await write_everything(transaction)
    async with store.view() as view:
        found = await shown(view, Scope(), "abandon", filters=SearchFilters(include_internal=True))
    assert {candidate.type for candidate in found} == set(RecordType)


async def test_a_reading_has_one_consistent_view(backend: Backend) -> None:
    store, other = await backend.open(), await backend.open()
    async with store.transaction() as transaction:
        await write_everything(transaction)

    async def counted_twice(view: ReadView) -> tuple[int, int, int]:
        session = await view.sessions.get(TRIP)
        hits = await shown(view, Scope(), "abandon", filters=SearchFilters(include_internal=True))
        return session.message_count if session else 0, await record_count(view, Scope()), len(hits)

    assert await store.read(counted_twice) == await other.read(counted_twice) == (1, 6, 6)
    async with other.transaction() as transaction:
        await write_everything(transaction, "another")
    assert await store.read(counted_twice) == (2, 12, 6)


async def test_an_error_ends_a_reading_and_the_next_one_works(store: Store) -> None:
    async def refused(view: ReadView) -> None:
        await view.sessions.get(TRIP)
        raise Abandoned

    async def totals(view: ReadView) -> int:
        return (await view.sessions.totals(Scope()))["sessions"]

    for _ in range(10):
        with pytest.raises(Abandoned):
            await store.read(refused)
    assert await store.read(totals) == 0
    async with store.transaction() as transaction:
        await write_everything(transaction)
    assert await store.read(totals) == 1


async def test_readings_of_many_tasks_do_not_mix(store: Store) -> None:
    async with store.transaction() as transaction:
        for number in range(8):
            await ensure_session(transaction.sessions, Scope(session=f"s{number}"), now_ms=START_MS)
    found: dict[int, str] = {}

    async def look(number: int) -> None:
        async def work(view: ReadView) -> str:
            session = await view.sessions.get(Scope(session=f"s{number}"))
            return session.id if session else ""

        found[number] = await store.read(work)

    async with anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(look, number)
    assert found == {number: f"s{number}" for number in range(8)}


async def test_a_cancelled_reading_leaves_the_store_usable(store: Store) -> None:
    async def slow(view: ReadView) -> int:
        for _ in range(200):
            await view.sessions.totals(Scope())
        return 1

    with anyio.move_on_after(0.001):
        await store.read(slow)
    assert await store.read(slow) == 1


async def test_a_write_is_stored_when_it_returns(backend: Backend) -> None:
    store, other = await backend.open(), await backend.open()

    async def writes(transaction: WriteTransaction) -> str:
        await write_everything(transaction)
        return "stored"

    assert await store.write(writes) == "stored"
    assert await seen(other, "abandon") == (1, 6, 6)


async def test_an_error_takes_back_a_write(store: Store) -> None:
    async def refused(transaction: WriteTransaction) -> None:
        await write_everything(transaction)
        raise Abandoned

    for _ in range(10):
        with pytest.raises(Abandoned):
            await store.write(refused)
    assert await seen(store, "abandon") == (0, 0, 0)


async def test_a_write_that_is_cancelled_is_whole_or_nothing(store: Store) -> None:
    async def writes(transaction: WriteTransaction) -> None:
        await write_everything(transaction)

    for _ in range(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(store.write, writes)
            await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        if (found := await seen(store, "abandon")) != (0, 0, 0):
            break
    assert found in ((0, 0, 0), (1, 6, 6))
