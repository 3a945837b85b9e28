"""`ports.records`: what says exactly the same, and what was said lately and by whom."""

from dataclasses import replace

import pytest

from kalito_mcp.domain.memory_records import DELETED_AT, EditType
from kalito_mcp.domain.records import Origin, Reach, RecordType, Role
from kalito_mcp.domain.scope import PERSONAL, Limits, Scope
from kalito_mcp.ports.store import Store
from kalito_mcp.records.sessions import ensure_session
from tests import drafts
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio
TEXT = "The shed code is heron."
A, IN_A = Scope(project="A"), Scope(session="a", project="A")


async def filled(store: Store) -> Store:
    """A note of the project and a personal one, pins of each reach in a session, and messages of each speaker."""
    async with store.transaction() as transaction:
        for place, name in ((A, "of A"), (Scope(project=PERSONAL), "personal")):
            note = drafts.record(RecordType.DOCUMENT, TEXT, record_id=name, source=f"note:{name}", chunk_index=0)
            await transaction.records.add_records(place, [note], now_ms=START_MS)
        session = await ensure_session(transaction.sessions, IN_A, now_ms=START_MS)
        pins = [drafts.pin(TEXT, record_id=str(reach), reach=reach) for reach in Reach]
        automatic = drafts.pin(f"{TEXT} Truly.", record_id="automatic", reach=Reach.PERSON, client_key="auto:1")
        await transaction.conversations.add_pins(session, [*pins, automatic])
        spoken = [drafts.message(f"{role} {TEXT}", role=role) for role in Role]
        spoken.append(drafts.message("a page", role=Role.USER, origin=Origin.DOCUMENT))
        await transaction.conversations.append_messages(session, spoken, now_ms=START_MS)
    return store


async def same(store: Store, scope: Scope, record_type: RecordType, text: str = TEXT) -> str | None:
    async with store.view() as view:
        found = await view.records.same_words(scope, record_type, text)
    return found and found.id


async def same_known(store: Store, scope: Scope, reach: Reach, text: str = TEXT) -> str | None:
    async with store.view() as view:
        found = await view.records.same_known(scope, reach, text)
    return found and found.id


async def test_the_same_words_are_those_of_one_type_and_place(store: Store) -> None:
    await filled(store)
    assert await same(store, A, RecordType.DOCUMENT) == "of A"
    assert await same(store, Scope(project=PERSONAL), RecordType.DOCUMENT) == "personal"
    assert await same(store, Scope(), RecordType.DOCUMENT) == "personal"
    assert await same(store, Scope(project="B"), RecordType.DOCUMENT) is None
    assert await same(store, A, RecordType.THOUGHT) is None
    assert await same(store, IN_A, RecordType.PIN) == "session"
    assert await same(store, A, RecordType.PIN) is None
    assert await same(store, A, RecordType.DOCUMENT, TEXT.lower()) is None
    assert await same(store, replace(A, agent="cook"), RecordType.DOCUMENT) is None


async def test_what_is_known_is_found_from_any_session(store: Store) -> None:
    await filled(store)
    assert await same_known(store, A, Reach.PROJECT) == "project"
    assert await same_known(store, Scope(project="B"), Reach.PROJECT) is None
    assert await same_known(store, Scope(project="B"), Reach.PERSON) == "person"
    assert await same_known(store, A, Reach.PERSON, f"{TEXT} Truly.") is None


async def test_what_is_forgotten_is_not_found(store: Store) -> None:
    await filled(store)
    async with store.transaction() as transaction:
        for name in ("of A", "person"):
            record = await transaction.records.record(Scope(), name)
            assert record is not None
            deletion = drafts.edit(record, {DELETED_AT: START_MS}, edit_type=EditType.DELETE)
            await transaction.records.change(record, deletion)
    assert await same(store, A, RecordType.DOCUMENT) is None
    assert await same_known(store, A, Reach.PERSON) is None


async def test_what_was_said_lately_is_of_users_and_of_untrusted_origins(store: Store) -> None:
    await filled(store)

    async def lately(scope: Scope, most_chars: int = 99) -> set[tuple[str, Origin]]:
        async with store.view() as view:
            return {(one.text, one.origin) for one in await view.records.recent_words(scope, most_chars=most_chars)}

    said = {(f"user {TEXT}", Origin.USER), (f"system {TEXT}", Origin.TOOL), ("a page", Origin.DOCUMENT)}
    assert await lately(Scope()) == await lately(IN_A) == await lately(Scope(session="new")) == said
    assert await lately(Scope(), most_chars=4) == {
        ("user", Origin.USER),
        ("syst", Origin.TOOL),
        ("a pa", Origin.DOCUMENT),
    }
    assert await lately(Scope(agent="cook")) == set()
    assert await lately(Scope(limits=Limits(project="B"))) == set()
    assert await lately(Scope("ben")) == set()
