"""`ports.conversations`: messages, pins and summaries, written and read back."""

from collections.abc import Sequence

import pytest

from kalito_mcp.domain.records import PinType, RecordType, Role, SummaryMethod
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import Session
from kalito_mcp.ports.conversations import AppendedMessage, MessageDraft, PinDraft, SummaryDraft
from kalito_mcp.ports.records import AlreadyStored
from kalito_mcp.ports.store import Store
from kalito_mcp.records.sessions import ensure_session
from tests import drafts
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio
TRIP = Scope(session="trip")

ODD_TEXTS = [
    "line\nline\r\nline\r\ttab",
    "a\x00b",
    "\u202eright to left\u202c and \u200bzero width",
    "👩\u200d👩\u200d👧\u200d👦 and 𝔘𝔫𝔦𝔠𝔬𝔡𝔢",
    "cafe\u0301 is not normalised to caf\u00e9",
    "'; DROP TABLE records; --",
    '{"json": ["\\u0000", null]}',
    " leading and trailing ",
    "\ufeffwith a byte order mark",
    "\x1f\x1e separators \x7f",
]


async def session_of(store: Store, scope: Scope = TRIP) -> Session:
    async with store.transaction() as transaction:
        return await ensure_session(transaction.sessions, scope, now_ms=START_MS)


async def append(store: Store, batch: Sequence[MessageDraft], scope: Scope = TRIP) -> Sequence[AppendedMessage]:
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, scope, now_ms=START_MS)
        return await transaction.conversations.append_messages(session, batch, now_ms=START_MS)


async def add_pins(store: Store, batch: Sequence[PinDraft], scope: Scope = TRIP) -> None:
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, scope, now_ms=START_MS)
        await transaction.conversations.add_pins(session, batch)


async def add_summaries(store: Store, *batch: SummaryDraft) -> None:
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
        for draft in batch:
            await transaction.conversations.add_summaries(session, [draft])


async def texts(store: Store, scope: Scope = TRIP, first: int = 1, last: int = 10_000) -> list[str]:
    async with store.view() as view:
        session = await view.sessions.get(scope)
        assert session is not None
        return [m.text for m in await view.conversations.messages(session, first_seq=first, last_seq=last)]


async def test_a_message_comes_back_with_every_field_it_was_written_with(store: Store) -> None:
    draft = drafts.message(
        "We fly to Oslo.",
        role=Role.ASSISTANT,
        name="Ann",
        created_at=START_MS - 10,
        importance=0.65,
        model_id="llama3.2",
        token_usage=17,
        client_key="k1",
    )
    [appended] = await append(store, [draft])
    async with store.view() as view:
        session = await view.sessions.get(TRIP)
        assert session is not None
        [message] = await view.conversations.messages(session, first_seq=1, last_seq=1)
        assert await view.conversations.message(TRIP, appended.id) == message
    assert (message.id, message.seq, message.session_id) == (appended.id, appended.seq, "trip")
    for field in ("role", "text", "name", "created_at", "tokens", "model_id", "token_usage", "client_key"):
        assert getattr(message, field) == getattr(draft, field), field
    assert message.importance_score == draft.importance
    assert isinstance(message.role, Role)


@pytest.mark.parametrize("text", ODD_TEXTS)
async def test_any_text_comes_back_as_it_was_written(store: Store, text: str) -> None:
    await append(store, [drafts.message(text, name="n\u202e'")])
    await add_pins(store, [drafts.pin(text, record_id="pin_1")])
    await add_summaries(store, drafts.summary(1, 1, text=text))
    async with store.view() as view:
        session = await view.sessions.get(TRIP)
        assert session is not None
        parts = await view.conversations.view(session, tail=1, pins=1)
    assert parts.tail[0].text == parts.pins[0].content == parts.summaries[0].summary == text


async def test_messages_get_the_next_seqs_without_gaps_in_the_order_of_the_batch(store: Store) -> None:
    seqs: list[int] = []
    for size in (1, 3, 2):
        seqs += [a.seq for a in await append(store, [drafts.message(f"m{n}") for n in range(size)])]
    assert seqs == [1, 2, 3, 4, 5, 6]


async def test_seqs_count_for_each_session_alone_and_ids_are_never_shared(store: Store) -> None:
    one = await append(store, [drafts.message("a"), drafts.message("b")], Scope(session="one"))
    two = await append(store, [drafts.message("a")], Scope(session="two"))
    [third] = await append(store, [drafts.message("c")], Scope(session="one"))
    assert [a.seq for a in [*one, *two, third]] == [1, 2, 1, 3]
    assert len({a.id for a in [*one, *two, third]}) == 4


async def test_an_empty_batch_writes_nothing(store: Store) -> None:
    assert list(await append(store, [])) == []
    await add_pins(store, [])
    assert (await session_of(store)).pin_count == 0


async def test_the_order_is_that_of_writing_whatever_the_clocks_said(store: Store) -> None:
    for number, moment in enumerate((START_MS, START_MS - 86_400_000, START_MS + 10**11, -1, 0)):
        await append(store, [drafts.message(f"m{number}", created_at=moment)])
    assert await texts(store) == ["m0", "m1", "m2", "m3", "m4"]
    async with store.view() as view:
        session = await view.sessions.get(TRIP)
        assert session is not None
        parts = await view.conversations.view(session, tail=3, pins=0)
    assert [message.text for message in parts.tail] == ["m2", "m3", "m4"]


async def test_a_range_of_messages_includes_both_ends_and_is_cut_at_the_session(store: Store) -> None:
    await append(store, [drafts.message(f"m{n}") for n in range(1, 6)])
    await append(store, [drafts.message("other")], Scope(session="other"))
    assert await texts(store, first=2, last=4) == ["m2", "m3", "m4"]
    assert await texts(store, first=-3, last=1) == ["m1"]
    assert await texts(store, first=5, last=99) == ["m5"]
    assert await texts(store, first=4, last=3) == []


async def test_a_message_is_found_by_number_within_its_owner_and_session_only(store: Store) -> None:
    [mine] = await append(store, [drafts.message("mine")], Scope(owner="ann", session="trip"))
    async with store.view() as view:
        for scope in (Scope(owner="ann"), Scope(owner="ann", session="trip")):
            found = await view.conversations.message(scope, mine.id)
            assert found is not None
            assert (found.text, found.session_id) == ("mine", "trip")
        for scope in (Scope(owner="bob"), Scope(owner="bob", session="trip"), Scope(owner="ann", session="other")):
            assert await view.conversations.message(scope, mine.id) is None
        assert await view.conversations.message(Scope(owner="ann"), mine.id + 1) is None
        assert await view.conversations.message(Scope(owner="ann"), 10**18 - 1) is None


async def test_the_number_of_a_pin_or_a_summary_is_no_message(store: Store) -> None:
    [message] = await append(store, [drafts.message("one")])
    await add_pins(store, [drafts.pin("a pin")])
    await add_summaries(store, drafts.summary(1, 1))
    async with store.view() as view:
        found = [await view.conversations.message(TRIP, message.id + step) for step in range(4)]
    assert [m is not None for m in found] == [True, False, False, False]


async def test_messages_by_number_are_those_of_the_session_in_order(store: Store) -> None:
    mine = await append(store, [drafts.message(f"m{n}") for n in range(3)])
    [other] = await append(store, [drafts.message("other")], Scope(session="other"))
    session = await session_of(store)
    async with store.view() as view:
        keys = [mine[2].id, other.id, mine[0].id, 999_999, mine[0].id]
        assert [m.text for m in await view.conversations.messages_by_number(session, keys)] == ["m0", "m2"]
        assert list(await view.conversations.messages_by_number(session, [])) == []


async def test_the_view_holds_the_newest_messages_oldest_first(store: Store) -> None:
    await append(store, [drafts.message(f"m{n}") for n in range(12)])
    await append(store, [drafts.message("other")], Scope(session="other"))
    session = await session_of(store)
    async with store.view() as view:
        tails = [(await view.conversations.view(session, tail=tail, pins=5)).tail for tail in (0, 1, 8, 99)]
    assert [[m.text for m in tail] for tail in tails] == [
        [],
        ["m11"],
        [f"m{n}" for n in range(4, 12)],
        [f"m{n}" for n in range(12)],
    ]


async def test_pins_come_by_importance_then_newest_first_then_last_written_first(store: Store) -> None:
    await add_pins(
        store,
        [
            drafts.pin("low", importance=0.3),
            drafts.pin("high", importance=0.9),
            drafts.pin("medium old", importance=0.6, created_at=START_MS - 1),
            drafts.pin("medium new", importance=0.6, created_at=START_MS + 1),
            drafts.pin("medium first", importance=0.6),
            drafts.pin("medium second", importance=0.6),
            drafts.pin("zero", importance=0.0),
        ],
    )
    session = await session_of(store)
    async with store.view() as view:
        everything = [pin.content for pin in (await view.conversations.view(session, tail=0, pins=99)).pins]
        top = [pin.content for pin in (await view.conversations.view(session, tail=0, pins=2)).pins]
    assert everything == ["high", "medium new", "medium second", "medium first", "medium old", "low", "zero"]
    assert top == everything[:2]


async def test_a_pin_comes_back_with_every_field(store: Store) -> None:
    draft = drafts.pin(
        "Patient allergic to penicillin",
        record_id="pin_1730131234567_abc123xyz",
        source_message_id="msg_45",
        importance=0.9,
        pin_type=PinType.CONCEPT,
        client_key="k",
    )
    await add_pins(store, [draft])
    session = await session_of(store)
    async with store.view() as view:
        [pin] = (await view.conversations.view(session, tail=0, pins=5)).pins
        assert await view.conversations.pin_by_client_key(session, "k") == pin
        assert await view.conversations.pin_by_client_key(session, "K") is None
    assert (pin.id, pin.session_id, pin.content) == (draft.id, "trip", draft.content)
    assert (pin.source_message_id, pin.importance_score, pin.pin_type) == ("msg_45", 0.9, PinType.CONCEPT)
    assert (pin.created_at, pin.tokens) == (draft.created_at, draft.tokens)


async def test_a_pin_and_a_message_may_share_a_client_key(store: Store) -> None:
    [message] = await append(store, [drafts.message("a", client_key="k")])
    await add_pins(store, [drafts.pin("a", client_key="k")])
    async with store.view() as view:
        for kind, record_id in ((RecordType.MESSAGE, f"msg_{message.id}"), (RecordType.PIN, "pin_a")):
            assert [one.id for one in await view.records.of_client_keys(TRIP, kind, {"k"})] == [record_id]


async def test_a_client_key_is_taken_once_in_a_session(store: Store) -> None:
    await append(store, [drafts.message("a", client_key="k")])
    await append(store, [drafts.message("b", client_key="k")], Scope(session="other"))
    for batch in ([drafts.message("c", client_key="k")], [drafts.message("d", client_key="l")] * 2):
        with pytest.raises(AlreadyStored):
            await append(store, batch)
    assert await texts(store) == ["a"]


async def test_client_keys_are_looked_up_letter_by_letter(store: Store) -> None:
    keys = ["k", "k'", 'k"', "k%", "k_", "k\\", "[1]", "💥", "ключ", " k", "K"]
    await append(store, [drafts.message(f"of {key}", client_key=key) for key in keys])
    await append(store, [drafts.message("elsewhere", client_key=key) for key in keys], Scope(session="other"))
    for key in keys:
        async with store.view() as view:
            found = await view.records.of_client_keys(TRIP, RecordType.MESSAGE, {key, "x"})
            assert [one.text for one in found] == [f"of {key}"]
            assert not await view.records.of_client_keys(Scope("eve", session="trip"), RecordType.MESSAGE, {key})
            assert not await view.records.of_client_keys(TRIP, RecordType.PIN, {key})


async def test_client_keys_are_found_by_their_beginning(store: Store) -> None:
    keys = ["a:1", "a:2", "a", "a;1", "b:1"]
    await append(store, [drafts.message(key, client_key=key) for key in keys])
    async with store.view() as view:
        assert sorted(await view.records.client_keys(TRIP, RecordType.MESSAGE, "a:")) == ["a:1", "a:2"]
        assert not await view.records.client_keys(TRIP, RecordType.PIN, "a:")
        assert not await view.records.client_keys(Scope(), RecordType.MESSAGE, "a:")


async def test_a_summary_comes_back_with_every_field(store: Store) -> None:
    [first, last] = await append(store, [drafts.message("one"), drafts.message("two")])
    draft = drafts.summary(1, 2, text="One and two.", model_id="llama3.2")
    await add_summaries(store, draft)
    session = await session_of(store)
    async with store.view() as view:
        [summary] = await view.conversations.summaries(session, level=0, after_seq=0)
        assert await view.conversations.uncovered_summaries(session) == [summary]
    assert (summary.id, summary.session_id, summary.summary) == (draft.id, "trip", "One and two.")
    assert (summary.level, summary.start_seq, summary.end_seq, summary.message_count) == (0, 1, 2, 2)
    assert (summary.start_message_id, summary.end_message_id) == (f"msg_{first.seq}", f"msg_{last.seq}")
    assert (summary.method, summary.model_id) == (SummaryMethod.MODEL, "llama3.2")
    assert (summary.importance_score, summary.tokens) == (0.7, draft.tokens)
    assert (summary.started_at, summary.ended_at, summary.created_at) == (START_MS, START_MS, START_MS)


async def test_a_level_covers_the_one_below_in_its_range_and_only_that(store: Store) -> None:
    await append(store, [drafts.message(f"m{n}") for n in range(8)])
    await add_summaries(store, *(drafts.summary(seq, seq + 1) for seq in (1, 3, 5, 7)))
    await add_summaries(store, drafts.summary(1, 4, level=1))
    session = await session_of(store)
    async with store.view() as view:
        assert [await view.conversations.summarized_to(session, level) for level in range(3)] == [8, 4, 0]
        uncovered = [(s.level, s.start_seq, s.end_seq) for s in await view.conversations.uncovered_summaries(session)]
        in_view = [(s.level, s.start_seq) for s in (await view.conversations.view(session, tail=0, pins=0)).summaries]
        of_level_0 = [s.start_seq for s in await view.conversations.summaries(session, level=0, after_seq=0)]
        later = [s.start_seq for s in await view.conversations.summaries(session, level=0, after_seq=3)]
    assert uncovered == [(1, 1, 4), (0, 5, 6), (0, 7, 8)]
    assert in_view == [(1, 1), (0, 5), (0, 7)]
    assert of_level_0 == [1, 3, 5, 7]
    assert later == [5, 7]
    assert session.summarized_seq == 8


async def test_importance_is_replaced_for_the_messages_of_the_session_and_nothing_else(store: Store) -> None:
    [mine, kept] = await append(store, [drafts.message("a"), drafts.message("b")])
    [other] = await append(store, [drafts.message("c")], Scope(session="other"))
    await add_pins(store, [drafts.pin("pin", importance=0.8)])
    session = await session_of(store)
    async with store.transaction() as transaction:
        scores = [(mine.id, 1.0), (other.id, 1.0), (other.id + 1, 0.1), (other.id + 99, 1.0)]
        await transaction.conversations.set_importance(session, scores, now_ms=START_MS)
    async with store.view() as view:
        found = {m: await view.conversations.message(Scope(), m) for m in (mine.id, kept.id, other.id)}
        session = await view.sessions.get(TRIP) or session
        [pin] = (await view.conversations.view(session, tail=0, pins=1)).pins
    assert [m and m.importance_score for m in found.values()] == [1.0, 0.5, 0.5]
    assert pin.importance_score == 0.8
    assert session.importance_sum == pytest.approx(1.5)
