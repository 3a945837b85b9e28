"""`ports.records.known`: what is the person's and what is a project's, across sessions."""

from collections.abc import Sequence

import pytest

from kalito_mcp.domain.kinds import Kind
from kalito_mcp.domain.memory_records import DELETED_AT, EditType
from kalito_mcp.domain.records import Reach, RecordType
from kalito_mcp.domain.scope import PERSONAL, Limits, Scope
from kalito_mcp.ports.conversations import PinDraft
from kalito_mcp.ports.store import Store
from kalito_mcp.records.sessions import ensure_session
from tests import drafts
from tests.contract.conftest import Backend
from tests.index_reads import shown
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio
IN_A, IN_B, ELSEWHERE = Scope(session="a", project="A"), Scope(session="b", project="B"), Scope(session="c")


async def add(store: Store, scope: Scope, *pins: PinDraft) -> None:
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, scope, now_ms=START_MS)
        await transaction.conversations.add_pins(session, pins)


async def known(store: Store, scope: Scope, *, limit: int = 99, include_internal: bool = False) -> list[str]:
    async with store.view() as view:
        found = await view.records.known(scope, limit=limit, include_internal=include_internal)
    return [one.text for one in found]


async def change(store: Store, record_id: str, changes: dict[str, object], **how: EditType) -> None:
    async with store.transaction() as transaction:
        record = await transaction.records.record(Scope(), record_id)
        assert record is not None
        await transaction.records.change(record, drafts.edit(record, changes, **how))


async def filled(store: Store) -> Store:
    """Two projects and a personal session, each with a pin of every reach."""
    for scope in (IN_A, IN_B, ELSEWHERE):
        reaches: Sequence[Reach] = tuple(Reach)
        name = scope.session
        await add(
            store, scope, *(drafts.pin(f"{name} {reach}", record_id=f"{name}{reach}", reach=reach) for reach in reaches)
        )
    return store


async def test_the_persons_pins_are_known_everywhere_and_a_projects_in_it_alone(store: Store) -> None:
    await filled(store)
    persons = {"a person", "b person", "c person"}
    assert set(await known(store, Scope(project="A"))) == persons | {"a project"}
    assert set(await known(store, Scope(project="B"))) == persons | {"b project"}
    assert set(await known(store, Scope(project="C"))) == persons
    assert set(await known(store, Scope(project=PERSONAL))) == persons
    assert set(await known(store, Scope())) == persons | {"a project", "b project"}


async def test_a_pin_for_the_project_of_a_session_without_one_is_the_sessions(store: Store) -> None:
    await add(store, ELSEWHERE, drafts.pin("x", record_id="pin_x", reach=Reach.PROJECT))
    async with store.view() as view:
        record = await view.records.record(Scope(), "pin_x")
        session = await view.sessions.get(ELSEWHERE)
        assert session is not None
        [pin] = (await view.conversations.view(session, tail=1, pins=9)).pins
    assert record is not None
    assert "scope" not in record.content
    assert pin.reach is Reach.SESSION


async def test_nothing_is_known_to_another_owner_or_agent(store: Store) -> None:
    await filled(store)
    await add(store, Scope(owner="ann", session="d"), drafts.pin("ann", record_id="pin_ann", reach=Reach.PERSON))
    await add(store, Scope(agent="work", session="e"), drafts.pin("work", record_id="pin_work", reach=Reach.PERSON))
    assert await known(store, Scope(owner="ann")) == ["ann"]
    assert await known(store, Scope(owner="ann", project="A")) == ["ann"]
    assert await known(store, Scope(agent="work", project="A")) == ["work"]
    assert await known(store, Scope(owner="bob")) == await known(store, Scope(agent="new")) == []
    assert not {"ann", "work"} & set(await known(store, Scope()))


async def test_the_most_important_come_first_and_of_these_the_newest(store: Store) -> None:
    pins = (
        drafts.pin("old", importance=0.8, created_at=START_MS - 5, reach=Reach.PERSON),
        drafts.pin("new", importance=0.8, created_at=START_MS, reach=Reach.PERSON),
        drafts.pin("top", importance=0.9, created_at=START_MS - 9, reach=Reach.PERSON),
        drafts.pin("low", importance=0.1, created_at=START_MS + 9, reach=Reach.PERSON),
    )
    await add(store, ELSEWHERE, *pins)
    assert await known(store, Scope()) == ["top", "new", "old", "low"]
    assert await known(store, Scope(), limit=2) == ["top", "new"]


async def test_what_is_forgotten_erased_or_internal_is_not_known(store: Store) -> None:
    await add(store, ELSEWHERE, *(drafts.pin(text, record_id=text, reach=Reach.PERSON) for text in "fpi"))
    await change(store, "f", {DELETED_AT: START_MS}, edit_type=EditType.DELETE)
    await change(store, "i", {"visibility": "internal"})
    async with store.transaction() as transaction:
        record = await transaction.records.record(Scope(), "p")
        assert record is not None
        await transaction.records.purge(record, now_ms=START_MS)
    assert await known(store, Scope()) == []
    assert await known(store, Scope(), include_internal=True) == ["i"]
    await change(store, "f", {DELETED_AT: None}, edit_type=EditType.RESTORE)
    assert await known(store, Scope()) == ["f"]


async def test_a_pins_reach_is_edited_with_a_history_and_its_search_follows(store: Store) -> None:
    await filled(store)

    async def found_in(project: str) -> bool:
        async with store.view() as view:
            return "asession" in {one.record_id for one in await shown(view, Scope(project=project))}

    assert (await found_in("A"), await found_in("B")) == (True, False)
    await change(store, "asession", {"scope": "person"})
    assert (await found_in("A"), await found_in("B")) == (True, True)
    assert "a session" in await known(store, Scope(project="B"))
    await change(store, "asession", {"scope": "project"})
    assert (await found_in("A"), await found_in("B")) == (True, False)
    await change(store, "asession", {"scope": None})
    async with store.view() as view:
        record = await view.records.record(Scope(), "asession")
        assert record is not None
        assert record.project == "A"
        assert [edit.before for edit in await view.records.edits(record)] == [
            {"scope": None},
            {"scope": "person"},
            {"scope": "project"},
        ]


async def test_a_moved_session_takes_its_projects_pins_along_and_not_the_persons(store: Store) -> None:
    await filled(store)
    async with store.transaction() as transaction:
        session = await transaction.sessions.get(Scope(session="a"))
        assert session is not None
        await transaction.sessions.move(session, "B")
    assert {"a project", "b project", "a person"} <= set(await known(store, Scope(project="B")))
    assert "a project" not in await known(store, Scope(project="A"))
    assert "a person" in await known(store, Scope(project="A"))


async def test_a_note_of_the_person_is_of_no_project_wherever_it_is_kept(store: Store) -> None:
    content = {"scope": "person", "source": "note:1", "document_id": "n", "chunk_index": 0, "total_chunks": 1}
    async with store.transaction() as transaction:
        draft = drafts.record(RecordType.DOCUMENT, "I am tall.", record_id="n", **content)
        [note] = await transaction.records.add_records(Scope(project="A"), [draft], now_ms=START_MS)
        assert note.project is None
    assert await known(store, Scope(project="B")) == ["I am tall."]
    await change(store, "n", {"scope": "project", "project": "A"})
    assert await known(store, Scope(project="B")) == []
    assert await known(store, Scope(project="A")) == ["I am tall."]


async def test_another_process_sees_what_became_known(backend: Backend) -> None:
    here, there = await backend.open(), await backend.open()
    await add(here, ELSEWHERE, drafts.pin("x", record_id="pin_x", reach=Reach.PERSON))
    assert await known(there, Scope()) == ["x"]
    await change(there, "pin_x", {"scope": None})
    assert await known(here, Scope()) == []


async def test_what_was_left_open_is_of_the_latest_sessions_and_of_their_project(store: Store) -> None:
    kinds = {"waits": Kind.OPEN, "done": Kind.OUTCOME, "rule": Kind.RULE}
    for days, scope in enumerate((IN_A, Scope(session="later", project="A"), IN_B, ELSEWHERE)):
        pins = [
            drafts.pin(f"{scope.session} {name}", kind=kind, created_at=START_MS + days) for name, kind in kinds.items()
        ]
        await add(store, scope, *pins, drafts.pin(f"{scope.session} known", kind=Kind.OPEN, reach=Reach.PERSON))
    await change(store, "pin_a done", {DELETED_AT: START_MS}, edit_type=EditType.DELETE)

    async def left(scope: Scope, limit: int = 9) -> list[str]:
        async with store.view() as view:
            return [one.text for one in await view.records.left_open(scope, limit=limit)]

    assert await left(Scope(project="A")) == ["later done", "later waits", "a waits"]
    assert await left(Scope(project="A"), 1) == ["later done"]
    assert await left(Scope(project=PERSONAL)) == await left(Scope()) == ["c done", "c waits"]
    assert await left(Scope(owner="ann", project="A")) == await left(Scope(agent="ann", project="A")) == []


async def test_what_was_left_open_is_of_the_end_of_its_session(store: Store) -> None:
    await add(store, IN_A, drafts.pin("waits", kind=Kind.OPEN, created_at=START_MS))

    async def goes_on(messages: int) -> list[str]:
        async with store.transaction() as transaction:
            session = await ensure_session(transaction.sessions, IN_A, now_ms=START_MS)
            said = [drafts.message(f"Later {number}.", created_at=START_MS + 1) for number in range(messages)]
            await transaction.conversations.append_messages(session, said, now_ms=START_MS)
        async with store.view() as view:
            return [one.text for one in await view.records.left_open(Scope(project="A"), limit=9)]

    assert await goes_on(5) == ["waits"]
    assert await goes_on(1) == []


async def test_statements_are_pins_and_known_notes_whether_they_hold_or_not_the_last_stored_first(store: Store) -> None:
    await filled(store)
    note = {"scope": "person", "source": "note:1", "document_id": "n", "chunk_index": 0, "total_chunks": 1}
    plain = {**note, "scope": None, "source": "note:2", "document_id": "m"}
    async with store.transaction() as transaction:
        added = [
            drafts.record(
                RecordType.DOCUMENT,
                text,
                record_id=name,
                **{key: value for key, value in fields.items() if value is not None},
            )
            for text, name, fields in (("I am tall.", "n", note), ("The sky.", "m", plain))
        ]
        await transaction.records.add_records(Scope(), added, now_ms=START_MS)
    await change(store, "aproject", {"supersedes": ["aperson"]})
    await change(store, "asession", {DELETED_AT: START_MS}, edit_type=EditType.DELETE)

    async def stated(scope: Scope, lasting: int = 9, of_sessions: int = 9, forgotten: int = 9) -> list[str]:
        limits = {"lasting": lasting, "of_sessions": of_sessions, "forgotten": forgotten}
        async with store.view() as view:
            return [one.id for one in await view.records.statements(scope, **limits)]

    persons = ["n", "cperson", "cproject", "csession"]
    assert await stated(Scope()) == [*persons, "bperson", "bproject", "bsession", "aperson", "aproject", "asession"]
    assert await stated(Scope(project="A")) == [*persons, "bperson", "aperson", "aproject", "asession"]
    assert await stated(Scope(project=PERSONAL)) == [*persons, "bperson", "aperson"]
    assert await stated(Scope(), 2, 1, 0) == ["n", "cperson", "cproject"]
    assert await stated(Scope(), 0, 0, 1) == ["asession"]
    assert await stated(Scope(limits=Limits(project="B"))) == [*persons, "bperson", "bproject", "bsession", "aperson"]
    assert await stated(Scope(owner="ann")) == await stated(Scope(agent="new")) == []
    async with store.transaction() as transaction:
        for one in ("asession", "n"):
            record = await transaction.records.record(Scope(), one)
            assert record is not None
            await transaction.records.purge(record, now_ms=START_MS)
    assert not {"asession", "n"} & set(await stated(Scope()))
