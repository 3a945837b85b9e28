"""`Recorder`: a batch is checked, scored and written completely, or not at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.records import NewMessage, Role
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import SessionState
from kalito_mcp.domain.time import NEWEST_MS, OLDEST_MS
from kalito_mcp.domain.validation import LimitsPolicy
from kalito_mcp.errors import ClientKeyReused, InvalidInput, SessionFinalized, TextTooLarge
from kalito_mcp.records.importance import ImportancePolicy
from kalito_mcp.records.recorder import Recorder
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.sqlite.database import SqliteStore
from tests.scripted import START_MS, CharacterCounter, ScriptedClock

pytestmark = pytest.mark.anyio
TRIP = Scope(session="trip")
HELLO = NewMessage(Role.USER, "Hello.")


@pytest.fixture
def recorder(store: SqliteStore, clock: ScriptedClock) -> Recorder:
    limits = LimitsPolicy(max_text_bytes=1_000, max_messages=5)
    return Recorder(store, CharacterCounter(), clock, limits, ImportancePolicy())


async def counted(store: SqliteStore, scope: Scope = TRIP) -> int | None:
    async with store.view() as view:
        session = await view.sessions.get(scope)
    return None if session is None else session.message_count


async def test_a_batch_comes_back_with_its_ids_in_order_and_the_new_total(recorder: Recorder) -> None:
    first = await recorder.record(TRIP, [HELLO, NewMessage(Role.ASSISTANT, "Hi.")])
    assert first.message_ids == [f"msg_{m.id}" for m in first.messages]
    assert [m.seq for m in first.messages] == [1, 2]
    assert (first.new_count, first.total_messages) == (2, 2)
    second = await recorder.record(TRIP, [HELLO])
    assert (second.new_count, second.total_messages, second.messages[0].seq) == (1, 3, 3)


async def test_a_message_is_stored_scored_counted_and_stamped(recorder: Recorder, store: SqliteStore) -> None:
    await recorder.record(TRIP, [NewMessage(Role.USER, "How do I fix this error?", name="Ann", model_id="llama3.2")])
    async with store.view() as view:
        session = await view.sessions.get(TRIP)
        assert session is not None
        [message] = await view.conversations.messages(session, first_seq=1, last_seq=1)
    assert message.importance_score == 0.8
    assert message.tokens == CharacterCounter().count(message.text)
    assert (message.created_at, message.name, message.model_id) == (START_MS, "Ann", "llama3.2")
    assert session.model == "llama3.2"


async def test_a_time_that_the_caller_gives_is_kept(recorder: Recorder, store: SqliteStore) -> None:
    moments = [OLDEST_MS, -1, 0, START_MS, NEWEST_MS]
    await recorder.record(TRIP, [NewMessage(Role.USER, "x", created_at=moment) for moment in moments])
    async with store.view() as view:
        session = await view.sessions.get(TRIP)
        assert session is not None
        messages = await view.conversations.messages(session, first_seq=1, last_seq=9)
    assert [message.created_at for message in messages] == moments
    assert all(message.to_dict() for message in messages)


async def test_a_time_that_has_no_date_could_never_be_shown(recorder: Recorder, store: SqliteStore) -> None:
    for moment in (OLDEST_MS - 1, NEWEST_MS + 1, START_MS * 1_000, 2**63, -(2**70)):
        with pytest.raises(InvalidInput, match=r"messages\[1\]: created_at"):
            await recorder.record(TRIP, [HELLO, NewMessage(Role.USER, "x", created_at=moment)])
    assert await counted(store) is None


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (NewMessage(Role.USER, ""), r"messages\[1\]: text is empty"),
        (NewMessage(Role.USER, "\ud800"), r"messages\[1\]: text has an unpaired surrogate"),
        (NewMessage(Role.USER, "x" * 1_001), r"messages\[1\]: text has 1,001 bytes and the limit is 1,000"),
        (NewMessage(Role.USER, "x", name="a\nb"), r"messages\[1\]: name"),
        (NewMessage(Role.USER, "x", client_key="x" * 201), r"messages\[1\]: client_key"),
        (NewMessage(Role.USER, "x", model_id="\ud800"), r"messages\[1\]: model_id"),
    ],
)
async def test_one_message_that_cannot_be_stored_keeps_the_whole_batch_out(
    recorder: Recorder, store: SqliteStore, message: NewMessage, words: str
) -> None:
    with pytest.raises(InvalidInput, match=words) as refusal:
        await recorder.record(TRIP, [HELLO, message, HELLO])
    assert "nothing of this call was recorded" in str(refusal.value)
    assert await counted(store) is None


async def test_too_long_a_text_keeps_its_own_kind_of_refusal(recorder: Recorder) -> None:
    with pytest.raises(TextTooLarge):
        await recorder.record(TRIP, [NewMessage(Role.USER, "x" * 1_001)])
    await recorder.record(TRIP, [NewMessage(Role.USER, "x" * 1_000)])


async def test_an_empty_batch_and_one_too_many_are_refused(recorder: Recorder, store: SqliteStore) -> None:
    with pytest.raises(InvalidInput, match="at least one"):
        await recorder.record(TRIP, [])
    with pytest.raises(InvalidInput, match="6 messages in one call; the limit is 5"):
        await recorder.record(TRIP, [HELLO] * 6)
    assert await counted(store) is None
    assert (await recorder.record(TRIP, [HELLO] * 5)).new_count == 5


async def test_a_session_needs_a_name(recorder: Recorder) -> None:
    for scope in (Scope(), Scope(session=""), Scope(session="a\x00b")):
        with pytest.raises(InvalidInput, match="session_id"):
            await recorder.record(scope, [HELLO])


async def test_an_agent_may_be_left_out_and_is_then_the_sessions_own(recorder: Recorder, store: SqliteStore) -> None:
    recorded = await recorder.record(Scope(agent="coach", session="gym"), [HELLO])
    assert recorded.session.agent == "coach"
    assert (await recorder.record(Scope(session="gym"), [HELLO])).session.agent == "coach"
    with pytest.raises(InvalidInput, match="coach"):
        await recorder.record(Scope(agent="other", session="gym"), [HELLO])
    with pytest.raises(InvalidInput, match="agent_id"):
        await recorder.record(Scope(agent="", session="new"), [HELLO])
    assert await counted(store, Scope(session="new")) is None


@pytest.mark.parametrize("state", [SessionState.FINALIZING, SessionState.FINALIZED])
async def test_a_session_that_is_no_longer_open_takes_nothing(
    recorder: Recorder, store: SqliteStore, state: SessionState
) -> None:
    await recorder.record(TRIP, [HELLO])
    async with store.transaction() as transaction:
        await transaction.sessions.set_state(
            await ensure_session(transaction.sessions, TRIP, now_ms=0), state, now_ms=0
        )
    with pytest.raises(SessionFinalized, match="new session_id"):
        await recorder.record(TRIP, [HELLO])
    assert await counted(store) == 1


async def test_a_call_that_is_sent_again_records_nothing_twice(recorder: Recorder, store: SqliteStore) -> None:
    batch = [NewMessage(Role.USER, f"m{n}", client_key=f"k{n}") for n in range(3)]
    first = await recorder.record(TRIP, batch)
    again = await recorder.record(TRIP, batch)
    assert again.message_ids == first.message_ids
    assert (again.new_count, again.total_messages) == (0, 3)
    with pytest.raises(ClientKeyReused, match="k1"):
        await recorder.record(TRIP, [HELLO, NewMessage(Role.USER, "another text", client_key="k1")])
    assert await counted(store) == 3


async def test_the_order_is_that_of_the_calls_when_the_clock_goes_back(
    recorder: Recorder, store: SqliteStore, clock: ScriptedClock
) -> None:
    for number in range(4):
        await recorder.record(TRIP, [NewMessage(Role.USER, f"m{number}")])
        clock.wall_ms -= 86_400_000
    async with store.view() as view:
        session = await view.sessions.get(TRIP)
        assert session is not None
        parts = await view.conversations.view(session, tail=9, pins=0)
    assert [message.text for message in parts.tail] == ["m0", "m1", "m2", "m3"]


@given(text=st.text(max_size=300), name=st.none() | st.text(max_size=10))
async def test_any_message_is_stored_as_it_is_or_refused_in_words(
    recorder: Recorder, store: SqliteStore, text: str, name: str | None
) -> None:
    try:
        recorded = await recorder.record(TRIP, [NewMessage(Role.USER, text, name=name)])
    except InvalidInput:
        return
    async with store.view() as view:
        message = await view.conversations.message(TRIP, recorded.messages[0].id)
    assert message is not None
    assert (message.text, message.name) == (text, name)
