"""`ports.vectors`: owed vectors, stored vectors and the nearest ones. Empty without an embedder."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import anyio
import anyio.lowlevel
import numpy as np
import pytest

from kalito_mcp.domain.memory_records import DELETED_AT, MemoryRecord
from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import Scope
from kalito_mcp.errors import Conflict, InvalidInput
from kalito_mcp.ports.store import Store, WriteTransaction
from kalito_mcp.ports.vectors import OwedVector, VectorIndex
from kalito_mcp.records.sessions import ensure_session
from tests import drafts
from tests.contract.conftest import Backend
from tests.qdrant import needs_qdrant
from tests.scripted import START_MS
from tests.scripted_embedder import hashed_vector

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize(
        "backend", ["sqlite", "postgres", pytest.param("qdrant", marks=needs_qdrant)], indirect=True
    ),
]
TRIP: Final = Scope(session="trip")
HASHED: Final = "hashed"
DIMENSION: Final = 64


async def append(store: Store, *texts: str, scope: Scope = TRIP, **fields: Any) -> list[int]:
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, scope, now_ms=START_MS)
        batch = [drafts.message(text, **fields) for text in texts]
        appended = await transaction.conversations.append_messages(session, batch, now_ms=START_MS)
        return [one.id for one in appended]


async def record(store: Store, key: int) -> MemoryRecord:
    async with store.view() as view:
        found = await view.records.record(Scope(), f"msg_{key}")
    assert found is not None
    return found


async def change(store: Store, key: int, **changes: Any) -> None:
    before = await record(store, key)
    async with store.transaction() as transaction:
        await transaction.records.change(before, drafts.edit(before, changes))


async def purge(store: Store, key: int) -> None:
    before = await record(store, key)
    async with store.transaction() as transaction:
        await transaction.records.purge(before, now_ms=START_MS)


async def opened(store: Store, fingerprint: str = HASHED, dimension: int = DIMENSION) -> str:
    async with store.transaction() as transaction:
        await transaction.vectors.open_index(fingerprint, dimension)
    return fingerprint


async def indexes(store: Store) -> list[VectorIndex]:
    async with store.view() as view:
        return list(await view.vectors.indexes())


async def owed(store: Store, index: str, *, limit: int = 1_000) -> Sequence[OwedVector]:
    async with store.view() as view:
        return await view.vectors.owed(index, limit=limit)


async def owed_keys(store: Store, index: str) -> list[int]:
    found = [one.record_key for one in await owed(store, index)]
    async with store.view() as view:
        assert await view.vectors.owed_count(index) == len(found)
    return found


async def put(store: Store, index: str, texts: Sequence[OwedVector]) -> None:
    vectors = np.array([hashed_vector(one.text) for one in texts], np.float32)
    async with store.transaction() as transaction:
        await transaction.vectors.put(index, texts, vectors.reshape(-1, DIMENSION))


async def pay(store: Store, index: str, *, limit: int = 7) -> None:
    while batch := await owed(store, index, limit=limit):
        await put(store, index, batch)


async def nearest(
    store: Store, query: str, *, scope: Scope = TRIP, k: int = 10, fingerprint: str = HASHED
) -> list[int]:
    async with store.view() as view:
        found = await view.vectors.nearest(scope, fingerprint, hashed_vector(query), k=k)
        same = await view.vectors.similarities(scope, fingerprint, hashed_vector(query), [key for key, _ in found])
    scores = [score for _, score in found]
    assert scores == sorted(scores, reverse=True)
    assert same == pytest.approx(dict(found), abs=1e-6)
    return [key for key, _ in found]


async def test_without_an_index_every_question_has_an_empty_answer(store: Store) -> None:
    keys = await append(store, "apple", "pear")
    assert await nearest(store, "apple") == []
    async with store.view() as view:
        assert list(await view.vectors.indexes()) == []
        assert await view.vectors.similarities(TRIP, HASHED, hashed_vector("apple"), keys) == {}
    async with store.transaction() as transaction:
        assert await transaction.vectors.clear(limit=9) == 0


async def test_before_an_index_is_opened_every_record_is_owed_newest_first(store: Store) -> None:
    keys = await append(store, "one", "two", "three")
    assert await owed_keys(store, HASHED) == keys[::-1]
    assert [one.text for one in await owed(store, HASHED, limit=2)] == ["three", "two"]


async def test_the_first_index_is_active_at_once_and_serves_what_it_has(store: Store) -> None:
    keys = await append(store, "green apples", "the ferry to Moss", "apple pie")
    index = await opened(store)
    assert await indexes(store) == [VectorIndex(HASHED, DIMENSION, is_active=True)]
    await put(store, index, await owed(store, index, limit=1))
    assert await nearest(store, "green apples") == keys[2:]
    await pay(store, index)
    assert (await nearest(store, "green apples"))[0] == keys[0]
    async with store.view() as view:
        assert await view.vectors.count(index) == 3
        assert await view.vectors.owed_count(index) == 0


async def test_what_is_new_comes_before_what_is_old(store: Store) -> None:
    old = await append(store, "a", "b", "c")
    index = await opened(store)
    new = await append(store, "d", "e")
    assert await owed_keys(store, index) == [*new[::-1], *old[::-1]]
    await put(store, index, await owed(store, index, limit=3))
    newest = await append(store, "f")
    assert await owed_keys(store, index) == [*newest, *old[1::-1]]


async def test_the_name_comes_before_the_text(store: Store) -> None:
    await append(store, "hello", name="Zoë")
    await append(store, "hello", name="")
    assert [one.text for one in await owed(store, None)] == ["hello", "Zoë: hello"]


async def test_records_of_every_type_have_vectors_also_internal_ones(store: Store) -> None:
    await append(store, "said")
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
        await transaction.conversations.add_pins(session, [drafts.pin("pinned")])
        await transaction.conversations.add_summary(session, drafts.summary(1, 1, text="summed"))
        own = [
            drafts.record(RecordType.THOUGHT, "thought", visibility="internal"),
            drafts.record(RecordType.DOCUMENT, "written", title="Notes", source="a.md", chunk_index=0, document_id="d"),
            drafts.record(RecordType.TASK, "to do"),
        ]
        await transaction.records.add_records(TRIP, own, now_ms=START_MS)
    texts = {one.text for one in await owed(store, None)}
    assert texts == {"said", "pinned", "summed", "thought", "Notes: written", "to do"}
    index = await opened(store)
    await pay(store, index)
    assert len(await nearest(store, "anything")) == 6


async def test_nearest_is_exact_and_breaks_ties_by_the_newer(store: Store) -> None:
    chance = random.Random(3)
    words = ["apple", "ferry", "ticket", "Oslo", "harbour", "red", "blue", "seven", "window", "train"]
    texts = [" ".join(chance.choices(words, k=3)) for _ in range(300)]
    keys = await append(store, *texts)
    index = await opened(store)
    await pay(store, index, limit=100)
    rows = np.stack([hashed_vector(text) for text in texts])
    for query in ("red apple", "ferry to Oslo", "seven"):
        exact = dict(zip(keys, (rows @ hashed_vector(query)).tolist(), strict=True))
        async with store.view() as view:
            found = await view.vectors.nearest(TRIP, HASHED, hashed_vector(query), k=20)
        assert [score for _, score in found] == pytest.approx(sorted(exact.values(), reverse=True)[:20], abs=0.01)
        assert all(score == pytest.approx(exact[key], abs=0.01) for key, score in found)
        assert list(found) == sorted(found, key=lambda one: (-one[1], -one[0]))
        assert await nearest(store, query, k=0) == []
        assert len(await nearest(store, query, k=1_000)) == 300


async def test_a_query_that_is_the_mean_of_wordings_gives_the_mean_of_their_cosines(store: Store) -> None:
    texts = ["the ferry to Moss", "a boat to Moss", "an apple pie", "ferry tickets"]
    keys = await append(store, *texts)
    await pay(store, await opened(store))
    wordings = np.stack([hashed_vector(text) for text in ("ferry Moss", "boat over the fjord", "pie")])
    mean = wordings.mean(axis=0)
    assert np.linalg.norm(mean) < 0.9
    exact = {key: float((wordings @ hashed_vector(text)).mean()) for key, text in zip(keys, texts, strict=True)}
    async with store.view() as view:
        found = dict(await view.vectors.nearest(TRIP, HASHED, mean, k=9))
        assert await view.vectors.similarities(TRIP, HASHED, mean, keys) == pytest.approx(found, abs=1e-6)
        assert found == pytest.approx(exact, abs=0.01)
        nothing = np.zeros(DIMENSION, np.float32)
        assert await view.vectors.nearest(TRIP, HASHED, nothing, k=2) == [(keys[3], 0.0), (keys[2], 0.0)]


async def test_the_nearest_are_found_among_the_records_that_may_be_found(store: Store) -> None:
    keys = await append(store, *(f"apple {n}" for n in range(60)))
    other = await append(store, "apple 7", scope=Scope(session="home"))
    await pay(store, await opened(store), limit=100)
    rare = keys[50:55]
    everything = [*keys, *other, 10**9]
    query = hashed_vector("apple 7")
    async with store.view() as view:

        async def found(scope: Scope, k: int, among: Sequence[int]) -> list[int]:
            admissible = np.array(among, np.int64)
            return [key for key, _ in await view.vectors.nearest(scope, HASHED, query, k=k, among=admissible)]

        every = [key for key, _ in await view.vectors.nearest(TRIP, HASHED, query, k=60)]
        assert await found(TRIP, 60, everything) == every
        assert await found(TRIP, 60, rare) == [key for key in every if key in rare]
        assert await found(TRIP, 3, rare) == [key for key in every if key in rare][:3]
        assert await found(TRIP, 9, other) == await found(TRIP, 9, []) == []
        assert await found(Scope(), 9, other) == other
        assert await found(Scope(owner="ann"), 9, keys) == []


async def test_neither_agents_nor_sessions_nor_owners_see_each_others_vectors(store: Store) -> None:
    home = await append(store, "apple", scope=Scope(session="home"))
    trip = await append(store, "apple tree", scope=TRIP)
    gym = await append(store, "apple", scope=Scope(agent="coach", session="gym"))
    ann = await append(store, "apple", scope=Scope(owner="ann", session="home"))
    await pay(store, await opened(store))
    for scope, expected in [
        (Scope(), home + trip),
        (Scope(session="home"), home),
        (TRIP, trip),
        (Scope(agent="coach"), gym),
        (Scope(agent="coach", session="gym"), gym),
        (Scope(agent="coach", session="home"), []),
        (Scope(owner="ann"), ann),
        (Scope(owner="bob"), []),
        (Scope(session="none"), []),
    ]:
        assert await nearest(store, "apple", scope=scope) == expected, scope


async def test_a_record_of_no_session_belongs_to_its_agent_alone(store: Store) -> None:
    await append(store, "pear")
    async with store.transaction() as transaction:
        await transaction.records.add_records(Scope(), [drafts.record(RecordType.THOUGHT, "apple")], now_ms=START_MS)
    [thought] = [one.record_key for one in await owed(store, HASHED) if one.text == "apple"]
    await pay(store, await opened(store))
    assert (await nearest(store, "apple", scope=Scope()))[0] == thought
    assert thought not in await nearest(store, "apple")


async def test_a_changed_text_or_name_loses_its_vector_at_once_and_is_owed_another(store: Store) -> None:
    keys = await append(store, "apple", "pear", "plum")
    index = await opened(store)
    await pay(store, index)
    await change(store, keys[0], text="ferry")
    await change(store, keys[1], name="Ann")
    await change(store, keys[2], tags=["x"], importance_score=0.9)
    assert await nearest(store, "apple") == [keys[2]]
    assert await owed_keys(store, index) == [keys[1], keys[0]]
    await pay(store, index)
    assert (await nearest(store, "ferry"))[0] == keys[0]


async def test_what_is_forgotten_is_not_near_to_anything_until_it_is_restored(store: Store) -> None:
    keys = await append(store, "apple", "pear")
    index = await opened(store)
    await pay(store, index)
    await change(store, keys[0], **{DELETED_AT: START_MS})
    assert await nearest(store, "apple") == [keys[1]]
    assert await owed_keys(store, index) == []
    await change(store, keys[0], text="ferry")
    assert await owed_keys(store, index) == []
    await change(store, keys[0], **{DELETED_AT: None})
    assert await owed_keys(store, index) == [keys[0]]
    await pay(store, index)
    assert (await nearest(store, "ferry"))[0] == keys[0]


async def test_what_is_erased_leaves_no_vector_and_no_debt(store: Store) -> None:
    keys = await append(store, "apple", "pear", "plum")
    async with store.transaction() as transaction:
        [task] = await transaction.records.add_records(TRIP, [drafts.record(RecordType.TASK, "apple")], now_ms=START_MS)
    index = await opened(store)
    await pay(store, index)
    await change(store, keys[1], text="quince")
    await purge(store, keys[0])
    await purge(store, keys[1])
    async with store.transaction() as transaction:
        await transaction.records.purge(task, now_ms=START_MS)
    assert await nearest(store, "apple") == [keys[2]]
    assert await owed_keys(store, index) == []
    async with store.view() as view:
        assert await view.vectors.count(index) == 1


@pytest.mark.parametrize("what", ["text", "name", "forgotten", "erased"])
async def test_an_edit_between_reading_and_writing_leaves_no_stale_vector(store: Store, what: str) -> None:
    keys = await append(store, "apple", "pear")
    index = await opened(store)
    batch = await owed(store, index)
    if what == "erased":
        await purge(store, keys[0])
    else:
        changes = {"text": {"text": "ferry"}, "name": {"name": "Ann"}, "forgotten": {DELETED_AT: START_MS}}[what]
        await change(store, keys[0], **changes)
    await put(store, index, batch)
    assert await nearest(store, "apple") == [keys[1]]
    assert await owed_keys(store, index) == ([keys[0]] if what in ("text", "name") else [])


async def test_what_was_passed_over_and_is_restored_before_the_others_are_written_is_owed(store: Store) -> None:
    keys = await append(store, "a", "b", "c")
    await change(store, keys[1], **{DELETED_AT: START_MS})
    index = await opened(store)
    new = await append(store, "d", "e", "f")
    await change(store, new[1], **{DELETED_AT: START_MS})
    batch = await owed(store, index)
    assert {one.record_key for one in batch} == {keys[0], keys[2], new[0], new[2]}
    for key in (keys[1], new[1]):
        await change(store, key, **{DELETED_AT: None})
    await put(store, index, batch)
    assert await owed_keys(store, index) == [new[1], keys[1]]


async def test_records_older_than_all_that_is_embedded_are_owed_again_when_they_are_restored(store: Store) -> None:
    keys = await append(store, "a", "b", "c")
    await change(store, keys[0], **{DELETED_AT: START_MS})
    index = await opened(store)
    await pay(store, index)
    await change(store, keys[0], **{DELETED_AT: None})
    assert await owed_keys(store, index) == [keys[0]]


async def test_a_second_index_is_built_while_the_first_serves_until_it_is_activated(store: Store) -> None:
    keys = await append(store, "apple", "pear")
    first = await opened(store)
    await pay(store, first)
    second = await opened(store, "other")
    await pay(store, second)
    assert [(one.fingerprint, one.is_active) for one in await indexes(store)] == [(HASHED, True), ("other", False)]
    assert (await nearest(store, "apple"))[0] == keys[0]
    assert await nearest(store, "apple", fingerprint="other") == []
    async with store.transaction() as transaction:
        await transaction.vectors.activate(second)
    assert await nearest(store, "apple") == []
    assert await nearest(store, "apple", fingerprint="other") == keys
    assert await indexes(store) == [VectorIndex("other", DIMENSION, is_active=True)]


async def test_both_indexes_follow_an_edit(store: Store) -> None:
    keys = await append(store, "apple", "pear")
    both = [await opened(store), await opened(store, "other")]
    for index in both:
        await pay(store, index)
    await change(store, keys[0], text="ferry")
    assert [await owed_keys(store, index) for index in both] == [[keys[0]], [keys[0]]]
    await pay(store, both[0])
    assert await owed_keys(store, both[1]) == [keys[0]]
    await purge(store, keys[0])
    assert await owed_keys(store, both[1]) == []


async def test_a_dropped_index_takes_no_vectors_and_is_cleared_step_by_step(store: Store) -> None:
    keys = await append(store, *(f"text {n}" for n in range(5)))
    index = await opened(store)
    batch = await owed(store, index)
    await put(store, index, batch)
    async with store.transaction() as transaction:
        await transaction.vectors.drop(index)
    with pytest.raises(Conflict, match="reindex"):
        await put(store, index, batch)
    with pytest.raises(Conflict, match="reindex"):
        async with store.transaction() as transaction:
            await transaction.vectors.activate(index)
    assert await nearest(store, "text") == []
    await change(store, keys[0], text="ferry")
    await purge(store, keys[1])
    async with store.transaction() as transaction:
        assert [await transaction.vectors.clear(limit=2) for _ in range(3)] == [2, 1, 0]
    await opened(store)
    assert await indexes(store) == [VectorIndex(HASHED, DIMENSION, is_active=True)]
    assert len(await owed_keys(store, index)) == 4


async def test_opening_an_index_again_keeps_it_and_drops_what_another_began(store: Store) -> None:
    await append(store, "apple")
    for fingerprint in (HASHED, "second"):
        await pay(store, await opened(store, fingerprint))
        assert await owed_keys(store, await opened(store, fingerprint)) == []
    await opened(store, "third")
    assert [one.fingerprint for one in await indexes(store)] == [HASHED, "third"]


async def test_one_fingerprint_has_one_dimension(store: Store) -> None:
    await opened(store)
    with pytest.raises(Conflict, match="64 dimensions"):
        await opened(store, HASHED, 32)
    assert await indexes(store) == [VectorIndex(HASHED, DIMENSION, is_active=True)]


async def test_vectors_of_a_wrong_shape_or_without_a_number_are_refused(store: Store) -> None:
    await append(store, "apple")
    index = await opened(store)
    batch = await owed(store, index)
    wrong = [np.ones((1, 32)), np.ones((2, DIMENSION)), np.ones(DIMENSION), np.full((1, DIMENSION), np.nan)]
    for vectors in wrong:
        with pytest.raises(InvalidInput):
            async with store.transaction() as transaction:
                await transaction.vectors.put(index, batch, vectors.astype(np.float32))
    async with store.view() as view:
        with pytest.raises(InvalidInput, match="shape"):
            await view.vectors.nearest(TRIP, HASHED, np.ones(32, np.float32), k=1)
        assert await view.vectors.count(index) == 0


async def test_a_vector_of_zeros_is_near_to_nothing(store: Store) -> None:
    [key] = await append(store, "apple")
    index = await opened(store)
    async with store.transaction() as transaction:
        await transaction.vectors.put(index, await owed(store, index), np.zeros((1, DIMENSION), np.float32))
    async with store.view() as view:
        assert await view.vectors.nearest(TRIP, HASHED, hashed_vector("apple"), k=5) == [(key, 0.0)]


async def test_another_process_sees_what_was_put_and_what_was_taken_since_it_looked(backend: Backend) -> None:
    mine, theirs = await backend.open(), await backend.open()
    keys = await append(mine, *(f"apple {n}" for n in range(30)))
    index = await opened(mine)
    await pay(mine, index)
    assert set(await nearest(theirs, "apple", k=100)) == set(keys)
    new = await append(mine, "apple 30")
    await pay(mine, index)
    assert set(await nearest(theirs, "apple", k=100)) == {*keys, *new}
    for key in keys[:25]:
        await change(mine, key, **{DELETED_AT: START_MS})
    assert set(await nearest(theirs, "apple", k=3)) <= {*keys[25:], *new}
    assert set(await nearest(theirs, "apple", k=100)) == {*keys[25:], *new}


async def test_a_view_sees_no_vector_that_was_put_after_it_began(backend: Backend) -> None:
    store = await backend.open()
    keys = await append(store, "apple")
    index = await opened(store)
    await pay(store, index)
    async with store.view() as view:
        assert len(await view.vectors.nearest(TRIP, HASHED, hashed_vector("apple"), k=9)) == 1
        new = await append(store, "apple")
        await pay(store, index)
        assert await nearest(store, "apple") == [*new, *keys]
        [(found, _)] = await view.vectors.nearest(TRIP, HASHED, hashed_vector("apple"), k=9)
        assert found == keys[0]
    assert await nearest(store, "apple") == [*new, *keys]


async def test_vectors_of_a_transaction_that_fails_are_never_found(store: Store) -> None:
    keys = await append(store, "apple", "pear")
    index = await opened(store)

    async def put_in(transaction: WriteTransaction, key: int) -> None:
        batch = [one for one in await transaction.vectors.owed(index, limit=9) if one.record_key == key]
        await transaction.vectors.put(index, batch, np.stack([hashed_vector(one.text) for one in batch]))
        found = await transaction.vectors.nearest(TRIP, HASHED, hashed_vector("apple"), k=9)
        assert key in dict(found)

    with pytest.raises(RuntimeError, match="in between"):
        async with store.transaction() as transaction:
            await put_in(transaction, keys[0])
            raise RuntimeError("in between")
    assert await nearest(store, "apple") == []
    async with store.transaction() as transaction:
        await put_in(transaction, keys[1])
    assert await nearest(store, "apple") == [keys[1]]


@pytest.mark.parametrize("seed", range(6))
async def test_whatever_happens_in_whatever_order_each_record_has_its_vector_or_is_owed_it(
    store: Store, seed: int
) -> None:
    chance = random.Random(seed)
    texts: dict[int, str] = {}
    hidden: set[int] = set()
    erased: set[int] = set()
    await append(store, "zero")
    index = await opened(store)
    batch: Sequence[OwedVector] = []
    for step in range(60):
        alive = sorted(texts.keys() - erased)
        match chance.randrange(6):
            case 0 | 1 if alive:
                key = chance.choice(alive)
                texts[key] = f"text {chance.randrange(9)} at {step}"
                await change(store, key, text=texts[key])
            case 2 if alive:
                key = chance.choice(alive)
                await change(store, key, **{DELETED_AT: None if key in hidden else START_MS})
                hidden ^= {key}
            case 3 if alive:
                key = chance.choice(alive)
                await purge(store, key)
                erased |= {key}
            case 4:
                await put(store, index, batch)
                batch = await owed(store, index, limit=chance.randrange(1, 5))
            case _:
                new = [f"text {chance.randrange(9)}" for _ in range(chance.randrange(1, 4))]
                texts |= dict(zip(await append(store, *new), new, strict=True))
    vectors = set(await nearest(store, "text", k=1_000))
    debts = set(await owed_keys(store, index))
    assert not vectors & debts
    assert (vectors | debts) - {1} == texts.keys() - hidden - erased
    await pay(store, index)
    async with store.view() as view:
        for key, text in texts.items():
            found = await view.vectors.similarities(TRIP, HASHED, hashed_vector(text), [key])
            assert found == ({} if key in hidden | erased else {key: pytest.approx(1, abs=0.01)})


async def test_what_is_owed_says_whose_record_it_is_and_only_that_owner_compares_it(store: Store) -> None:
    eve = Scope("eve", session="trip")
    [mine], [theirs] = await append(store, "apple"), await append(store, "apple", scope=eve)
    of_owner = {mine: "local", theirs: "eve"}
    assert {one.record_key: one.owner for one in await owed(store, "unknown")} == of_owner
    index = await opened(store)
    found = await owed(store, index)
    assert {one.record_key: one.owner for one in found} == of_owner
    await put(store, index, [replace(one, owner="mallory") for one in found])
    assert set(await owed_keys(store, index)) == {mine, theirs}, "nobody has such a record"
    await pay(store, index)
    async with store.view() as view:
        for scope, key in ((TRIP, mine), (eve, theirs), (Scope("mallory"), None)):
            same = await view.vectors.similarities(scope, HASHED, hashed_vector("apple"), [mine, theirs])
            assert list(same) == ([] if key is None else [key])


async def test_many_questions_at_once_load_the_vectors_once_and_agree(store: Store) -> None:
    keys = await append(store, *(f"apple {n}" for n in range(200)))
    await pay(store, await opened(store), limit=200)
    answers: list[list[int]] = []

    async def ask() -> None:
        answers.append(await nearest(store, "apple 7", k=50))

    async with anyio.create_task_group() as tasks:
        for _ in range(12):
            tasks.start_soon(ask)
    assert all(answer == answers[0] for answer in answers)
    assert set(await nearest(store, "apple", k=1_000)) == set(keys)


async def test_a_question_that_is_cancelled_at_any_moment_spoils_nothing(store: Store) -> None:
    keys = await append(store, *(f"apple {n}" for n in range(50)))
    index = await opened(store)
    await pay(store, index, limit=50)
    for turns in range(25):
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(nearest, store, "apple")
                for _ in range(turns):
                    await anyio.lowlevel.checkpoint()
                scope.cancel()
        keys += await append(store, f"pear {turns}")
        await pay(store, index)
    found = await nearest(store, "apple", k=1_000)
    assert sorted(found) == keys


@pytest.mark.parametrize(
    "text", ["a\0b", "\0", "  ", "é", "e\u0301", "日本語", "𝒶", "x" * 100_000, "'\"%;--", "1", "NULL"]
)
@pytest.mark.parametrize("name", [None, "Zoë\0", " ", "1"])
async def test_whatever_a_text_is_made_of_its_vector_is_taken(store: Store, text: str, name: str | None) -> None:
    keys = await append(store, text, name=name)
    index = await opened(store)
    await put(store, index, await owed(store, index))
    assert await owed_keys(store, index) == []
    async with store.view() as view:
        assert await view.vectors.similarities(TRIP, HASHED, hashed_vector(text), keys)
