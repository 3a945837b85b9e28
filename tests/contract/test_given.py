"""`ports.given`: what was given is found by its place, and the oldest goes."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from kalito_mcp.domain.given import GivenEntry, GivenKind, GivenPart, LeftOut, PartName, Why
from kalito_mcp.domain.records import RecordType, message_record_id
from kalito_mcp.domain.scope import PERSONAL, Limits, Scope
from kalito_mcp.ports.store import Store, WriteTransaction
from kalito_mcp.records.sessions import ensure_session
from tests import drafts
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio
OWNER, LATER_MS = Scope(), START_MS + 1_000
OUT = LeftOut(PartName.FOUND, Why.DID_NOT_FIT, 7, ("msg_8", "msg_9"))


def given(*record_ids: str, at: int = START_MS, kind: GivenKind = GivenKind.SEARCH) -> GivenEntry:
    part = GivenPart(PartName.FOUND, 10, len(record_ids), record_ids)
    return GivenEntry(kind, at, 10, (part,), (OUT,), client="codex")


async def add(store: Store, *entries: GivenEntry, owner: str = OWNER.owner, since_ms: int = 0, most: int = 100) -> None:
    async def work(transaction: WriteTransaction) -> None:
        await transaction.given.add(owner, entries, since_ms=since_ms, most=most)

    await store.write(work)


async def read(store: Store, scope: Scope = OWNER, **others: int | str) -> Sequence[GivenEntry]:
    return await store.read(lambda view: view.given.entries(scope, **{"limit": 100, **others}))  # type: ignore[arg-type]


async def in_session(store: Store, session_id: str, project: str | None) -> None:
    async def work(transaction: WriteTransaction) -> None:
        place = Scope(agent="coder", session=session_id, project=project)
        session = await ensure_session(transaction.sessions, place, now_ms=START_MS)
        await transaction.conversations.append_messages(session, [drafts.message("bees")], now_ms=START_MS)

    await store.write(work)


async def test_what_was_given_is_read_as_it_was_written_newest_first(store: Store) -> None:
    context = replace(
        given("pin_1", kind=GivenKind.CONTEXT, at=LATER_MS), budget=3_000, session_id="trip", agent="a", project="/p"
    )
    await add(store, context, given("pin_1"), given())
    third, second, first = (await read(store))[0], (await read(store))[1], (await read(store))[2]
    assert third == replace(context, id=third.id, parts=(replace(context.parts[0], revisions=(None,)),))
    assert (second.record_ids, first.record_ids) == ([], ["pin_1"])
    assert (second.agent, second.project, second.session_id, second.budget) == ("default", None, None, None)
    assert await store.read(lambda view: view.given.entry(OWNER, third.id)) == third
    assert await store.read(lambda view: view.given.entry(Scope("ben"), third.id)) is None
    assert await read(store, before=third.id) == [second, first]
    assert await read(store, before=second.id, limit=1) == [first]
    assert await read(store, before=first.id) == await read(store, before=99) == []
    assert await store.read(lambda view: view.given.tokens(OWNER)) == [
        (START_MS, "search", 10), (START_MS, "search", 10), (LATER_MS, "context", 10),
    ]  # fmt: skip


async def test_it_is_found_by_a_record_that_was_in_it_and_not_by_what_was_left_out(store: Store) -> None:
    await add(store, given("pin_1", "msg_8"), given("pin_12"), given("found"))
    assert [one.record_ids for one in await read(store, record_id="pin_1")] == [["pin_1", "msg_8"]]
    assert [one.record_ids for one in await read(store, record_id="msg_8")] == [["pin_1", "msg_8"]]
    assert [one.record_ids for one in await read(store, record_id="found")] == [["found"]]
    assert await read(store, record_id="msg_9") == await read(store, record_id="1") == []


async def test_a_record_has_the_revision_that_it_had_then(store: Store) -> None:
    async def work(transaction: WriteTransaction) -> tuple[str, str]:
        [task] = await transaction.records.add_records(
            OWNER, [drafts.record(RecordType.TASK, "ferry")], now_ms=START_MS
        )
        for seconds, words in enumerate(("barge", "bridge", "tunnel")):
            edit = replace(drafts.edit(task, {"text": words}), edited_at=START_MS + 1_000 * seconds)
            task = await transaction.records.change(task, edit)
        session = await ensure_session(transaction.sessions, Scope(session="trip"), now_ms=START_MS)
        [said] = await transaction.conversations.append_messages(session, [drafts.message("bees")], now_ms=START_MS)
        return task.id, message_record_id(said.id)

    task, message = await store.write(work)
    await add(store, given(task, message, "pin_gone", at=START_MS + 1_500))
    [entry] = await read(store)
    assert (entry.parts[0].ids, entry.parts[0].revisions) == ((task, message, "pin_gone"), (3, 1, None))


async def test_it_belongs_to_its_agent_and_to_the_project_of_its_session(store: Store) -> None:
    await in_session(store, "trip", "/p")
    in_trip = replace(given(), session_id="trip", project=PERSONAL, agent="coder")
    await add(store, in_trip, replace(given(), session_id="not yet"))
    assert [(one.agent, one.project) for one in await read(store)] == [("default", None), ("coder", "/p")]
    assert [one.session_id for one in await read(store, Scope(agent="coder"))] == ["trip"]
    assert [one.session_id for one in await read(store, OWNER.of_session("not yet"))] == ["not yet"]
    assert [one.session_id for one in await read(store, Scope(project="/p"))] == ["trip"]
    assert await read(store, Scope(project="/q")) == []


async def test_a_project_that_is_renamed_and_a_session_that_moves_take_it_along(store: Store) -> None:
    await in_session(store, "trip", "/p")
    await in_session(store, "else", "/r")
    await add(store, replace(given(), session_id="trip", project="/p"), replace(given(), project="/p"))
    await store.write(lambda transaction: transaction.records.rename_project(OWNER.owner, "/p", "/q"))
    assert {one.project for one in await read(store, Scope(limits=Limits(project="/q")))} == {"/q"}
    await store.write(lambda transaction: transaction.records.rename_project(OWNER.owner, "/q", "/r"))
    assert len(await read(store, Scope(project="/r"))) == 2

    async def move(transaction: WriteTransaction) -> None:
        session = await transaction.sessions.get(OWNER.of_session("trip"))
        assert session is not None
        await transaction.sessions.move(session, None)

    await store.write(move)
    assert [one.project for one in await read(store)] == ["/r", PERSONAL]


async def test_within_limits_there_is_only_what_was_read_within_them(store: Store) -> None:
    await in_session(store, "trip", "/p")
    in_trip = replace(given(), session_id="trip", agent="coder")
    await add(
        store,
        replace(given("all"), project=None),
        replace(given("elsewhere"), project="/q"),
        replace(given("personal"), project=PERSONAL),
        replace(given("here"), project="/p", agent="coder"),
        replace(in_trip, parts=given("trip, of all").parts),
        replace(in_trip, parts=given("trip").parts, project="/p"),
        replace(in_trip, parts=given("trip, of another").parts, project="/q"),
    )
    limited = await read(store, Scope(limits=Limits(project="/p")))
    assert [one.record_ids for one in limited] == [["trip"], ["here"], ["personal"]]
    assert [one.record_ids for one in await read(store, Scope(limits=Limits("coder", "/p")))] == [["trip"], ["here"]]
    assert len(await read(store, Scope(limits=Limits("default")))) == 3
    everything = await read(store)
    for scope in (Scope(limits=Limits(project="/p")), Scope(limits=Limits("coder"))):
        by_id = [await store.read(lambda view, n=one.id, s=scope: view.given.entry(s, n)) for one in everything]  # type: ignore[misc]
        assert [one for one in by_id if one is not None] == await read(store, scope)


async def test_only_the_newest_of_each_owner_are_kept(store: Store) -> None:
    await add(store, given("old"), owner="ben")
    await add(
        store, *(given(f"r{seconds}", at=START_MS + seconds) for seconds in range(6)), since_ms=START_MS + 2, most=3
    )
    assert [one.record_ids for one in await read(store)] == [["r5"], ["r4"], ["r3"]]
    await add(store, given("r6", at=START_MS + 6), since_ms=START_MS + 5, most=3)
    assert [one.record_ids for one in await read(store)] == [["r6"], ["r5"]]
    assert len(await read(store, Scope("ben"))) == 1
