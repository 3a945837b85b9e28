"""`ports.search`: what is weighed of the records before their texts are read, and which of them may be shown."""

from collections.abc import Iterable, Sequence

import pytest

from kalito_mcp.domain.memory_records import DELETED_AT, EditType, MemoryRecord
from kalito_mcp.domain.records import Origin, RecordType, Role, message_record_id
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import Candidate, SearchFilters
from kalito_mcp.domain.validation import message_number
from kalito_mcp.ports.conversations import AppendedMessage, MessageDraft, PinDraft, SummaryDraft
from kalito_mcp.ports.search import SearchIndex
from kalito_mcp.ports.store import Store
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.retrieval.turns_around import turns_around
from tests import drafts
from tests.contract.conftest import Backend
from tests.index_reads import all_keys, shown
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio
TRIP = Scope(session="trip")
EVERYTHING = Scope()
NO_FILTERS = SearchFilters()
MESSAGES = SearchFilters(types=frozenset({RecordType.MESSAGE}))


async def append(store: Store, batch: Sequence[MessageDraft], scope: Scope = TRIP) -> Sequence[AppendedMessage]:
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, scope, now_ms=START_MS)
        return await transaction.conversations.append_messages(session, batch, now_ms=START_MS)


async def add(store: Store, *batch: PinDraft | SummaryDraft, scope: Scope = TRIP) -> None:
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, scope, now_ms=START_MS)
        for draft in batch:
            if isinstance(draft, PinDraft):
                await transaction.conversations.add_pins(session, [draft])
            else:
                await transaction.conversations.add_summaries(session, [draft])


async def said(store: Store, *texts: str, scope: Scope = TRIP) -> list[int]:
    """The keys of new messages."""
    return [one.id for one in await append(store, [drafts.message(text) for text in texts], scope)]


async def change(store: Store, key: int, **changes: object) -> MemoryRecord:
    async with store.transaction() as transaction:
        record = await transaction.records.record(Scope(), f"msg_{key}")
        assert record is not None
        edit_type = EditType.DELETE if changes.get(DELETED_AT) else EditType.UPDATE
        return await transaction.records.change(record, drafts.edit(record, changes, edit_type=edit_type))


async def candidates(store: Store, scope: Scope, filters: SearchFilters = NO_FILTERS) -> list[str]:
    """The texts of the records that a search may show."""
    async with store.view() as view:
        return sorted(one.text for one in await shown(view, scope, filters=filters))


async def read(store: Store, scope: Scope, keys: Iterable[int]) -> Sequence[Candidate]:
    """The records with these keys, oldest first."""
    async with store.view() as view:
        found = await view.search.in_index(scope, lambda index: index.candidates(index.places_of_keys(list(keys))))
    return [one for _, one in sorted((found or {}).items())]


async def test_what_may_be_shown_is_what_every_filter_admits(store: Store) -> None:
    await append(store, [drafts.message("old user", created_at=START_MS - 10)])
    await append(store, [drafts.message("assistant", role=Role.ASSISTANT), drafts.message("system", role=Role.SYSTEM)])
    await add(store, drafts.pin("pin", created_at=START_MS + 10), drafts.summary(1, 3, text="summary"))
    for filters, expected in [
        (SearchFilters(), ["assistant", "old user", "pin", "summary", "system"]),
        (SearchFilters(types=frozenset({RecordType.PIN, RecordType.SUMMARY})), ["pin", "summary"]),
        (SearchFilters(roles=frozenset({Role.USER})), ["old user"]),
        (SearchFilters(roles=frozenset({Role.USER, Role.SYSTEM})), ["old user", "system"]),
        (SearchFilters(types=frozenset({RecordType.PIN}), roles=frozenset({Role.USER})), []),
        (SearchFilters(since=START_MS), ["assistant", "pin", "summary", "system"]),
        (SearchFilters(until=START_MS), ["assistant", "old user", "summary", "system"]),
        (SearchFilters(since=START_MS, until=START_MS), ["assistant", "summary", "system"]),
        (SearchFilters(since=START_MS + 1, until=START_MS), []),
    ]:
        assert await candidates(store, TRIP, filters) == expected, filters


async def test_filters_admit_by_who_spoke_by_tags_by_trust_and_by_importance(store: Store) -> None:
    tagged = drafts.message("tagged", name="Zoë", details={"tags": ["trip", "ferry"]}, importance=0.8)
    await append(store, [tagged, drafts.message("other", name="Ann", details={"tags": ["Trip"]}, importance=0.2)])
    answer = drafts.message("answer", role=Role.ASSISTANT, importance=0.4)
    copied = drafts.message("copied", origin=Origin.DOCUMENT, importance=0.4)
    await append(store, [answer, copied, drafts.message("told", role=Role.SYSTEM, importance=0.4)])
    await add(store, drafts.pin("pin", importance=1.0), drafts.pin("her pin", origin=Origin.USER))
    for filters, expected in [
        (SearchFilters(names=frozenset({"ZOË"})), ["tagged"]),
        (SearchFilters(names=frozenset({"ann", "zoë"})), ["other", "tagged"]),
        (SearchFilters(names=frozenset({"zo"})), []),
        (SearchFilters(names=frozenset({""})), []),
        (SearchFilters(tags=frozenset({"TRIP"})), ["other", "tagged"]),
        (SearchFilters(tags=frozenset({"ferry", "boat"})), ["tagged"]),
        (SearchFilters(tags=frozenset({"tri"})), []),
        (SearchFilters(origins=frozenset({Origin.USER})), ["her pin", "other", "tagged"]),
        (SearchFilters(origins=frozenset({Origin.ASSISTANT})), ["answer", "pin"]),
        (SearchFilters(origins=frozenset({Origin.TOOL, Origin.DOCUMENT})), ["copied", "told"]),
        (SearchFilters(origins=frozenset({Origin.IMPORT})), []),
        (SearchFilters(min_importance=0.8), ["her pin", "pin", "tagged"]),
        (SearchFilters(min_importance=1.0), ["pin"]),
        (SearchFilters(names=frozenset({"zoë"}), tags=frozenset({"boat"})), []),
        (SearchFilters(names=frozenset({"zoë"}), tags=frozenset({"trip"}), min_importance=0.5), ["tagged"]),
    ]:
        assert await candidates(store, TRIP, filters) == expected, filters


async def test_an_origin_admits_the_records_that_say_they_have_it(store: Store) -> None:
    roles = [drafts.message(role, role=role, origin=origin) for role in Role for origin in (None, *Origin)]
    await append(store, roles)
    async with store.view() as view:
        everything = await shown(view, TRIP)
        for origin in Origin:
            found = await shown(view, TRIP, filters=SearchFilters(origins=frozenset({origin})))
            assert found == [one for one in everything if one.origin is origin]
            assert found


async def test_what_is_internal_is_shown_on_request_and_thoughts_if_their_type_is_asked_for(store: Store) -> None:
    await append(store, [drafts.message("plain"), drafts.message("hidden", details={"visibility": "internal"})])
    async with store.transaction() as transaction:
        thought = drafts.record(RecordType.THOUGHT, "thought", visibility="internal")
        await transaction.records.add_records(TRIP, [thought], now_ms=START_MS)
    for filters, expected in [
        (SearchFilters(), ["plain"]),
        (SearchFilters(include_internal=True), ["hidden", "plain", "thought"]),
        (SearchFilters(types=frozenset({RecordType.THOUGHT})), ["thought"]),
        (SearchFilters(types=frozenset({RecordType.THOUGHT, RecordType.MESSAGE})), ["plain", "thought"]),
        (MESSAGES, ["plain"]),
    ]:
        assert await candidates(store, TRIP, filters) == expected, filters


async def test_a_candidate_carries_what_decides_about_it(store: Store) -> None:
    [appended] = await append(store, [drafts.message("hello", name="Ann", client_key="k")])
    await add(store, drafts.pin("pinned", record_id="pin_1"))
    [message, pin] = await read(store, Scope(), [appended.id, appended.id + 1])
    assert (message.record_id, message.type) == (f"msg_{appended.id}", RecordType.MESSAGE)
    assert (message.role, message.name, message.session_id) == (Role.USER, "Ann", "trip")
    assert (message.text, message.created_at, message.seq, message.client_key) == ("hello", START_MS, 1, "k")
    assert (pin.record_id, pin.type, pin.role, pin.seq) == ("pin_1", RecordType.PIN, None, None)


async def test_what_may_be_shown_is_that_of_the_session_or_of_the_agent_or_of_the_default_agent(store: Store) -> None:
    for owner, agent, name in [
        ("local", None, "home"),
        ("local", None, "trip"),
        ("local", "coach", "gym"),
        ("ann", None, "home"),
        ("ann", "coach", "gym"),
    ]:
        await said(store, f"{owner} {name}", scope=Scope(owner=owner, agent=agent, session=name))
    for scope, expected in [
        (Scope(), ["local home", "local trip"]),
        (Scope(agent="default"), ["local home", "local trip"]),
        (Scope(agent="coach"), ["local gym"]),
        (Scope(session="gym"), ["local gym"]),
        (Scope(agent="coach", session="gym"), ["local gym"]),
        (Scope(agent="default", session="gym"), []),
        (Scope(owner="ann"), ["ann home"]),
        (Scope(owner="ann", session="trip"), []),
        (Scope(owner="bob", agent="coach"), []),
    ]:
        assert await candidates(store, scope) == expected, scope


async def test_no_keys_have_no_candidates_and_a_repeated_key_has_one(store: Store) -> None:
    [one] = await said(store, "a")
    assert await read(store, Scope(), []) == []
    assert len(await read(store, Scope(), [one] * 3)) == 1
    assert await read(store, Scope(), [one + 1, -1, 10**9]) == []


async def test_a_key_of_another_agent_has_no_candidate(store: Store) -> None:
    here = await said(store, "here")
    there = await said(store, "there", scope=Scope(agent="coach", session="gym"))
    assert [one.text for one in await read(store, Scope(), here + there)] == ["here"]
    assert [one.text for one in await read(store, Scope(agent="coach"), here + there)] == ["there"]


async def test_the_columns_say_of_a_record_what_was_written(store: Store) -> None:
    [message] = await append(store, [drafts.message("I said hello there", name="Ann", role=Role.ASSISTANT)])
    await add(store, drafts.pin("pinned"), drafts.summary(1, 1, text="what was said"))

    def columns(index: SearchIndex) -> list[tuple[object, ...]]:
        records = index.records
        return list(
            zip(
                all_keys(index).tolist(),
                [tuple(RecordType)[one] for one in records.types],
                [tuple(Role)[one] if one < len(Role) else None for one in records.roles],
                [records.name_list[one] for one in records.names],
                records.word_counts.tolist(),
                records.created_at.tolist(),
                records.is_shown.tolist(),
                strict=True,
            )
        )

    async with store.view() as view:
        found = await view.search.in_index(TRIP, columns)
    assert found == [
        (message.id, RecordType.MESSAGE, Role.ASSISTANT, "Ann", 5, START_MS, True),
        (message.id + 1, RecordType.PIN, None, None, 1, START_MS, True),
        (message.id + 2, RecordType.SUMMARY, None, None, 3, START_MS, True),
    ]


async def around(store: Store, *keys: int, scope: Scope = EVERYTHING, filters: SearchFilters = NO_FILTERS) -> set[int]:
    """The messages next to these."""
    async with store.view() as view:
        ids = [message_record_id(key) for key in keys]
        found = await view.search.in_index(scope, lambda index: turns_around(index, ids, filters))
    return {message_number(one.record_id) for one in found or ()}


async def test_the_turns_around_a_message_are_the_nearest_of_its_session_whoever_writes_between(store: Store) -> None:
    mine = await said(store, "m0", "m1", "m2")
    theirs = await said(store, *(f"x{n}" for n in range(5)), scope=Scope(session="other"))
    mine += await said(store, *(f"m{n}" for n in range(3, 9)))
    await add(store, drafts.pin("pin"))
    assert await around(store, mine[3]) == {mine[2], mine[4]}
    assert await around(store, mine[0], scope=TRIP) == {mine[1]}
    assert await around(store, mine[8]) == {mine[7]}
    assert await around(store, mine[0], mine[1]) == {mine[2]}
    assert await around(store, theirs[4], mine[2]) == {theirs[3], mine[1], mine[3]}


async def test_around_a_pin_or_a_summary_there_is_nothing(store: Store) -> None:
    [first, second] = await said(store, "one", "two")
    await add(store, drafts.pin("pin"), drafts.summary(1, 2))
    assert await around(store, second + 1, second + 2) == set()
    assert await around(store) == set()
    assert await around(store, second) == {first}


async def test_only_what_the_filters_admit_is_around(store: Store) -> None:
    keys = [one.id for one in await append(store, [drafts.message("a"), drafts.message("b", role=Role.ASSISTANT)])]
    assert await around(store, keys[0], filters=SearchFilters(roles=frozenset({Role.ASSISTANT}))) == {keys[1]}
    assert await around(store, keys[0], filters=SearchFilters(roles=frozenset({Role.USER}))) == set()
    assert await around(store, keys[0], scope=Scope(session="none")) == set()


async def test_a_forgotten_or_erased_message_is_not_around_and_keeps_its_neighbours_apart(store: Store) -> None:
    ids = await said(store, "one", "two", "three", "four")
    forgotten = await change(store, ids[1], **{DELETED_AT: START_MS + 1})
    assert await around(store, ids[0]) == set()
    assert await around(store, ids[2]) == {ids[3]}
    async with store.transaction() as transaction:
        await transaction.records.purge(forgotten, now_ms=START_MS + 9)
    assert await around(store, ids[0]) == set()
    assert await around(store, ids[2]) == {ids[3]}
    assert [message_number(one.record_id) for one in await read(store, TRIP, ids)] == [ids[0], *ids[2:4]]


async def test_what_is_edited_is_filtered_by_its_new_fields(store: Store) -> None:
    [key] = await said(store, "hello")
    assert await candidates(store, TRIP, SearchFilters(names=frozenset({"ann"}))) == []
    await change(store, key, name="Ann", tags=["trip"], importance_score=0.9)
    for filters in (
        SearchFilters(names=frozenset({"ann"})),
        SearchFilters(tags=frozenset({"trip"})),
        SearchFilters(min_importance=0.9),
    ):
        assert await candidates(store, TRIP, filters) == ["hello"], filters
    await change(store, key, visibility="internal")
    assert await candidates(store, TRIP) == []


async def test_around_a_record_that_is_erased_or_unknown_there_is_nothing(backend: Backend) -> None:
    store = await backend.open()
    [first] = await said(store, "one")
    await add(store, drafts.pin("pin", record_id="pin_1"))
    last = await said(store, "two", "three")
    async with store.transaction() as transaction:
        record = await transaction.records.record(TRIP, "pin_1")
        assert record is not None
        await transaction.records.purge(record, now_ms=START_MS + 9)
    for opened in (store, await backend.open()):
        assert await around(opened, first + 1) == set()
        assert await around(opened, 10**9, last[1]) == {last[0]}
        assert await around(opened, -1) == set()
