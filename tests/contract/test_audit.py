"""`ports.audit`: a transaction says what it changed, and the log is one chain."""

from collections.abc import Sequence

import anyio
import pytest

from kalito_mcp.domain.access import TokenKind
from kalito_mcp.domain.audit import MOST_IDS, AuditEntry, AuditHead, Change, NewEntry, Outcome
from kalito_mcp.domain.memory_records import DELETED_AT, MemoryRecord
from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import LOCAL_OWNER, Scope
from kalito_mcp.domain.sessions import SessionState
from kalito_mcp.domain.sign_in import Passphrase
from kalito_mcp.domain.zone import DAY_MS
from kalito_mcp.ports.store import Store, WriteTransaction
from tests import drafts, sign_ins
from tests.contract.conftest import Backend
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio


async def note(transaction: WriteTransaction, text: str) -> MemoryRecord:
    draft = drafts.record(RecordType.THOUGHT, text, record_id=text)
    [added] = await transaction.records.add_records(Scope(), [draft], now_ms=START_MS)
    return added


async def test_what_was_done_to_each_record_is_told_apart_and_counts_once(store: Store) -> None:
    async def changed(transaction: WriteTransaction) -> tuple[str, Sequence[Change]]:
        edited, forgotten, restored, erased, _ = [await note(transaction, text) for text in "abcde"]
        restored = await transaction.records.change(restored, drafts.edit(restored, {DELETED_AT: START_MS}))

        async def work() -> str:
            once = await transaction.records.change(edited, drafts.edit(edited, {"text": "Bees."}))
            await transaction.records.change(once, drafts.edit(once, {"text": "Wasps."}))
            await transaction.records.change(forgotten, drafts.edit(forgotten, {DELETED_AT: START_MS}))
            await transaction.records.change(restored, drafts.edit(restored, {DELETED_AT: None}))
            await transaction.records.purge(erased, now_ms=START_MS)
            new = await note(transaction, "new")
            await transaction.records.change(new, drafts.edit(new, {"text": "Newer."}))
            return "done"

        return await transaction.audit.changes_of(work)

    result, changes = await store.write(changed)
    assert result == "done"
    assert {one.what: (one.count, one.ids) for one in changes} == {
        "added": (1, ("new",)),
        "changed": (1, ("a",)),
        "forgotten": (1, ("b",)),
        "restored": (1, ("c",)),
        "erased": (1, ("d",)),
    }


async def test_only_the_changes_of_the_work_are_noticed(store: Store) -> None:
    async def two_notices(transaction: WriteTransaction) -> list[Sequence[Change]]:
        await note(transaction, "before")
        _, first = await transaction.audit.changes_of(lambda: note(transaction, "first"))
        await note(transaction, "between")
        _, second = await transaction.audit.changes_of(lambda: note(transaction, "second"))
        return [first, second]

    async def nothing(transaction: WriteTransaction) -> Sequence[Change]:
        await note(transaction, "alone")
        return (await transaction.audit.changes_of(lambda: transaction.records.has_forgotten_values(LOCAL_OWNER)))[1]

    assert await store.write(two_notices) == [[Change("added", 1, ("first",))], [Change("added", 1, ("second",))]]
    assert await store.write(nothing) == []


async def changes_of_tokens(transaction: WriteTransaction) -> Sequence[Change]:
    """What was noticed of a sign-in from the consent to its end."""
    access, sign_in, grant = transaction.access, transaction.sign_in, sign_ins.grant("grant_1")

    async def begin() -> None:
        await sign_in.put_client(sign_ins.client("cli_1"))
        await sign_in.add_request(b"handle", sign_ins.request())
        await sign_in.put_passphrase("ann", Passphrase(b"salt", b"hash", 2, 1, 1), now_ms=START_MS)
        await sign_in.add_grant(grant, sign_ins.code(grant), b"code")
        await sign_in.take_code(b"code", now_ms=START_MS)
        await access.add_token(
            sign_ins.token("tok_1", grant="grant_1", kind=TokenKind.ACCESS, expires_at=START_MS + 1), b"text"
        )

    async def use() -> None:
        await access.used_token("tok_1", now_ms=START_MS)

    async def again() -> None:
        await sign_in.put_passphrase("ann", Passphrase(b"new", b"new", 2, 1, 1), now_ms=START_MS + 1)
        await access.revoke_tokens("tok_1", owner="ann", now_ms=START_MS)

    async def forget() -> None:
        await sign_in.drop_expired(START_MS + 2 * DAY_MS)

    return [change for work in (begin, use, again, forget) for change in (await transaction.audit.changes_of(work))[1]]


async def test_tokens_consents_and_passphrases_are_noticed_and_their_use_is_not(store: Store) -> None:
    changes = await store.write(changes_of_tokens)
    assert [(one.what, one.count, set(one.ids)) for one in changes] == [
        ("added", 3, {"passphrase of ann", "grant_1", "tok_1"}),
        ("changed", 1, {"passphrase of ann"}),
        ("revoked", 2, {"grant_1", "tok_1"}),
        ("erased", 2, {"grant_1", "tok_1"}),
    ]


async def test_a_session_is_noticed_when_it_is_made_moved_or_ended_and_not_for_a_counter(store: Store) -> None:
    async def changed(transaction: WriteTransaction) -> list[Sequence[Change]]:
        sessions = transaction.sessions
        session, made = await transaction.audit.changes_of(
            lambda: sessions.create(Scope(agent="coder", session="s"), now_ms=START_MS)
        )
        _, counted = await transaction.audit.changes_of(lambda: sessions.set_pinned_seq(session, 3))
        _, ended = await transaction.audit.changes_of(
            lambda: sessions.set_state(session, SessionState.FINALIZING, now_ms=START_MS)
        )
        _, moved = await transaction.audit.changes_of(lambda: sessions.move(session, "shop"))
        return [made, counted, ended, moved]

    made, counted, ended, moved = await store.write(changed)
    assert made == [Change("added", 1, ("s",))]
    assert counted == []
    assert ended == [Change("changed", 1, ("s",))]
    assert [(one.what, one.count) for one in moved] == [("added", 1), ("changed", 1)]
    assert moved[0].ids[0].startswith("project_")
    assert moved[1].ids == ("s",)


async def test_all_changes_are_counted_and_the_first_ids_are_kept_in_order(store: Store) -> None:
    names = [f"tok_{number}" for number in range(MOST_IDS + 2)]

    async def add(transaction: WriteTransaction) -> None:
        for name in names:
            await transaction.access.add_token(sign_ins.token(name), name.encode())

    _, changes = await store.write(lambda transaction: transaction.audit.changes_of(lambda: add(transaction)))
    assert changes == [Change("added", MOST_IDS + 2, tuple(names[:MOST_IDS]))]


async def test_transactions_at_once_notice_each_its_own_and_write_one_chain(backend: Backend) -> None:
    stores = [await backend.open(), await backend.open()]
    owners = [f"owner_{number}" for number in range(12)]

    async def work(transaction: WriteTransaction, owner: str) -> None:
        made = sign_ins.token(f"tok_{owner}", owner=owner)
        _, changes = await transaction.audit.changes_of(lambda: transaction.access.add_token(made, owner.encode()))
        await transaction.audit.add(NewEntry(START_MS, made.id, owner, "create_token", changes=tuple(changes)))

    async with anyio.create_task_group() as tasks:
        for place, owner in enumerate(owners):
            tasks.start_soon(stores[place % 2].write, lambda transaction, owner=owner: work(transaction, owner))
    async with stores[0].view() as view:
        entries = await view.audit.entries(None, limit=99)
        fault, head = await view.audit.check(None)
    assert [one.number for one in entries] == [*range(12, 0, -1)]
    assert sorted(one.said.owner for one in entries) == sorted(owners)
    for one in entries:
        assert one.said.changes == (Change("added", 1, (f"tok_{one.said.owner}",)),)
    assert (fault, head) == (None, AuditHead(12, entries[0].hash))


ENTRIES = (
    NewEntry(START_MS, "host", "ann", "create_token"),
    NewEntry(
        START_MS + 1,
        "tok_\u00e5",
        "\u00e5nn",
        "PATCH /api/records/{id}",
        "https://app.example.org",
        Outcome.REFUSED,
        7,
        (Change("added", 60, ("msg_1", "pin_\u00e5")), Change("erased", 1, ())),
    ),
    NewEntry(START_MS + 1, "host", "ann", "sign_in"),
    NewEntry(START_MS + 2, "host", "ann", "sign_out"),
)


async def log(store: Store) -> list[AuditEntry]:
    async with store.transaction() as transaction:
        return [await transaction.audit.add(one) for one in ENTRIES]


async def test_entries_come_back_as_they_were_added_and_in_pages(store: Store) -> None:
    assert await store.read(lambda view: view.audit.head()) == AuditHead()
    assert await store.read(lambda view: view.audit.check(None)) == (None, AuditHead())
    added = await log(store)
    assert [(one.number, one.said) for one in added] == [*enumerate(ENTRIES, 1)]
    async with store.view() as view:
        assert [*await view.audit.entries(None, limit=9)] == added[::-1]
        for numbers, found in (
            ([4, 3, 1], await view.audit.entries("ann", limit=9)),
            ([4, 3], await view.audit.entries("ann", limit=2)),
            ([1], await view.audit.entries("ann", before=3, limit=2)),
            ([4, 3], await view.audit.entries("ann", since_ms=START_MS + 1, limit=9)),
            ([3, 2], await view.audit.entries(None, since_ms=START_MS + 1, before=4, limit=9)),
            ([], await view.audit.entries("nobody", limit=9)),
        ):
            assert [one.number for one in found] == numbers
        assert await view.audit.head() == AuditHead(4, added[-1].hash)
        assert await view.audit.check(None) == (None, AuditHead(4, added[-1].hash))


async def test_a_log_of_many_pages_goes_through_a_head_that_was_noted(store: Store) -> None:
    async def fill(transaction: WriteTransaction) -> list[AuditHead]:
        added = [await transaction.audit.add(ENTRIES[0]) for _ in range(2_001)]
        return [AuditHead(one.number, one.hash) for one in added]

    heads = await store.write(fill)
    async with store.view() as view:
        for noted in (None, AuditHead(), heads[0], heads[1_000], heads[-1]):
            assert await view.audit.check(noted) == (None, heads[-1])
        fault, _ = await view.audit.check(AuditHead(1_000, heads[0].hash))
    assert fault == "entry 1000 is not the one that was noted, or is missing"


async def test_an_entry_is_rolled_back_with_what_it_is_about(store: Store) -> None:
    await log(store)
    with pytest.raises(ZeroDivisionError):
        async with store.transaction() as transaction:
            await transaction.audit.add(ENTRIES[0])
            raise ZeroDivisionError
    assert (await store.read(lambda view: view.audit.head())).count == 4
    await log(store)
    assert (await store.read(lambda view: view.audit.check(None)))[0] is None


async def test_entries_are_counted_by_owner_and_moment(store: Store) -> None:
    for number, owner in enumerate(("anna", "ben", "anna")):
        entry = NewEntry(START_MS + number, "tok_1", owner, "forget")
        await store.write(lambda transaction, said=entry: transaction.audit.add(said))
    async with store.view() as view:
        assert await view.audit.count(None) == 3
        assert await view.audit.count("anna") == 2
        assert await view.audit.count(None, since_ms=START_MS + 1) == 2
        assert await view.audit.count("anna", since_ms=START_MS + 3) == 0
