"""Messages that a session has already, or that were erased: a call can be sent again, and nothing comes back."""

import random

import pytest

from kalito_mcp.domain.records import NewMessage, Role
from kalito_mcp.domain.scope import Limits, Scope
from kalito_mcp.domain.sessions import Session
from kalito_mcp.domain.validation import LimitsPolicy
from kalito_mcp.errors import ClientKeyReused
from kalito_mcp.ports.conversations import AppendedMessage
from kalito_mcp.records.importance import ImportancePolicy
from kalito_mcp.records.recorder import Recorder
from kalito_mcp.storage.sqlite.database import SqliteStore
from tests.scripted import START_MS, CharacterCounter, ScriptedClock

pytestmark = pytest.mark.anyio
TRIP = Scope(session="trip")


@pytest.fixture
def recorder(store: SqliteStore, clock: ScriptedClock) -> Recorder:
    return Recorder(store, CharacterCounter(), clock, LimitsPolicy(), ImportancePolicy())


def said(text: str, role: Role = Role.USER, *, client_key: str | None = None, created_at: int = START_MS) -> NewMessage:
    return NewMessage(role, text, client_key=client_key, created_at=created_at)


async def append(recorder: Recorder, batch: list[NewMessage], scope: Scope = TRIP) -> tuple[AppendedMessage, ...]:
    return (await recorder.record(scope, batch)).messages


async def session_of(store: SqliteStore) -> Session | None:
    async with store.view() as view:
        return await view.sessions.get(TRIP)


async def count(store: SqliteStore) -> int:
    session = await session_of(store)
    return 0 if session is None else session.message_count


async def texts(store: SqliteStore) -> list[str]:
    async with store.view() as view:
        session = await view.sessions.get(TRIP)
        assert session is not None
        return [m.text for m in await view.conversations.messages(session, first_seq=1, last_seq=10_000)]


async def purge(store: SqliteStore, message: AppendedMessage, *texts: str) -> None:
    async with store.transaction() as transaction:
        record = await transaction.records.record(Scope(), f"msg_{message.id}")
        assert record is not None
        await transaction.records.purge(record, now_ms=START_MS + 9, texts=texts)


async def test_a_known_client_key_is_answered_with_where_its_message_is(recorder: Recorder, store: SqliteStore) -> None:
    [first, _] = await append(recorder, [said("a", client_key="k"), said("b")])
    again = await append(recorder, [said("c"), said("a", client_key="k")])
    assert again[1] == AppendedMessage(id=first.id, seq=first.seq, is_new=False)
    assert again[0].is_new
    assert await texts(store) == ["a", "b", "c"]


async def test_a_client_key_that_comes_twice_in_one_batch_is_one_message(
    recorder: Recorder, store: SqliteStore
) -> None:
    same = [said("a", client_key="k"), said("b"), said("a", client_key="k")]
    appended = await append(recorder, same)
    assert [a.seq for a in appended] == [1, 2, 1]
    assert [a.is_new for a in appended] == [True, True, False]
    assert appended[0].id == appended[2].id
    assert await texts(store) == ["a", "b"]


async def test_a_whole_batch_sent_again_changes_nothing(recorder: Recorder, store: SqliteStore) -> None:
    batch = [said(f"m{n}", client_key=f"k{n}") for n in range(5)]
    first = await append(recorder, batch)
    before = await session_of(store)
    again = await append(recorder, batch)
    assert [(a.id, a.seq) for a in again] == [(a.id, a.seq) for a in first]
    assert not any(a.is_new for a in again)
    assert await session_of(store) == before


async def test_client_keys_count_for_each_session_alone(recorder: Recorder, store: SqliteStore) -> None:
    [one] = await append(recorder, [said("a", client_key="k")], Scope(session="one"))
    [two] = await append(recorder, [said("b", client_key="k")], Scope(session="two"))
    assert two.is_new
    assert one.id != two.id


@pytest.mark.parametrize(
    "second",
    [said("other", client_key="k"), said("a", Role.ASSISTANT, client_key="k")],
    ids=["text", "role"],
)
@pytest.mark.parametrize("is_one_batch", [True, False])
async def test_a_client_key_with_another_text_or_role_is_refused_and_nothing_is_written(
    recorder: Recorder, store: SqliteStore, second: NewMessage, is_one_batch: bool
) -> None:
    first = said("a", client_key="k")
    if not is_one_batch:
        await append(recorder, [first])
    before = await count(store)
    with pytest.raises(ClientKeyReused):
        await append(recorder, [said("before"), *([first] if is_one_batch else []), second])
    assert await count(store) == before


@pytest.mark.parametrize("key", ["k'", 'k"', "k%", "k_", "k\\", "[1]", "💥", "ключ", " k", "K"])
async def test_client_keys_are_compared_letter_by_letter(recorder: Recorder, store: SqliteStore, key: str) -> None:
    await append(recorder, [said("plain", client_key="k")])
    [odd] = await append(recorder, [said("odd", client_key=key)])
    [again] = await append(recorder, [said("odd", client_key=key)])
    assert (odd.is_new, again.is_new) == (True, False)


async def test_random_batches_with_retries_keep_seqs_dense_and_every_key_once(
    recorder: Recorder, store: SqliteStore
) -> None:
    chance = random.Random(7)
    expected: list[str] = []
    for _ in range(30):
        numbers = [chance.randrange(40) for _ in range(chance.randrange(1, 6))]
        await append(recorder, [said(f"text {n}", client_key=f"k{n}") for n in numbers])
        expected += [f"text {n}" for n in dict.fromkeys(numbers) if f"text {n}" not in expected]
    assert await texts(store) == expected
    assert await count(store) == len(expected)


async def test_an_erased_message_that_comes_again_is_answered_with_its_place_and_not_stored(
    recorder: Recorder, store: SqliteStore
) -> None:
    first = said("secret", client_key="k", created_at=START_MS - 5)
    [one] = await append(recorder, [first])
    await purge(store, one, "edited", "secret")
    again = AppendedMessage(id=one.id, seq=one.seq, is_new=False, is_erased=True)
    for scope in (TRIP, Scope(session="imported")):
        same_key = said("secret", client_key="k")
        same_moment = said("secret", created_at=START_MS - 5)
        same_edited = said("edited", created_at=START_MS - 5)
        assert await append(recorder, [same_key, same_moment, same_edited], scope) == (again,) * 3
    others = [said("secret", created_at=START_MS + 1), said("other", client_key="k", created_at=START_MS - 5)]
    assert [a.is_new for a in await append(recorder, others)] == [True, True]
    theirs = await append(recorder, [first], Scope("eve", session="s"))
    assert [a.is_new for a in theirs] == [True]
    assert await count(store) == 3


async def test_what_was_erased_beyond_the_limits_was_never_there(recorder: Recorder, store: SqliteStore) -> None:
    for project in ("shop", "garden"):
        [one] = await append(recorder, [said(project)], Scope(session=project, project=project))
        await purge(store, one, project)
    limited = Scope(session="shop", project="shop", limits=Limits(project="shop"))
    again = await append(recorder, [said("shop"), said("garden")], limited)
    assert [one.is_erased for one in again] == [True, False]
