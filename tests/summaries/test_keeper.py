"""`SummaryKeeper`: summaries cover the conversation, level above level, whoever writes them and however many do."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import anyio
import pytest

from kalito_mcp.domain.records import ConversationSummary, CreateSummaryRequest, NewMessage, Role, SummaryMethod
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import SessionState
from kalito_mcp.domain.validation import LimitsPolicy
from kalito_mcp.errors import (
    InvalidInput,
    ModelUnavailable,
    RecordNotFound,
    SessionFinalized,
    SessionNotFound,
    SummaryRangeConflict,
    TextTooLarge,
)
from kalito_mcp.ports.chat import ChatModel, ChatRequest
from kalito_mcp.records.importance import ImportancePolicy
from kalito_mcp.records.recorder import Recorder
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.summaries.keeper import SummaryKeeper
from kalito_mcp.summaries.summarizer import Summarizer
from kalito_mcp.summaries.window import SummaryWindowPolicy
from tests.scripted import CharacterCounter, CountedIds, ScriptedClock
from tests.summaries.by_words import BY_WORDS

pytestmark = pytest.mark.anyio
TRIP = Scope(session="trip")


class NoModels:
    """No server is configured."""

    def find(self, model_id: str) -> ChatModel | None:
        return None


@dataclass
class SlowModel:
    """A model that lets others go first. Its answer repeats its prompt, so that it passes as a summary."""

    is_local: bool = True
    asked: list[ChatRequest] = field(default_factory=list[ChatRequest])

    async def complete(self, request: ChatRequest) -> str:
        self.asked.append(request)
        await anyio.lowlevel.checkpoint()
        return "The ferry was discussed at length."

    def find(self, model_id: str) -> ChatModel | None:
        return self


def keeper(
    store: SqliteStore,
    *,
    first_id: int = 0,
    window: SummaryWindowPolicy | None = None,
    models: SlowModel | NoModels | None = None,
    max_text_bytes: int = 10_000,
) -> SummaryKeeper:
    return SummaryKeeper(
        store,
        Summarizer(models or NoModels(), BY_WORDS),
        CharacterCounter(),
        ScriptedClock(),
        CountedIds(first_id),
        max_per_level=3,
        window=window or SummaryWindowPolicy(is_adaptive=False),
        limits=LimitsPolicy(max_text_bytes=max_text_bytes),
    )


async def record(
    store: SqliteStore, count: int, scope: Scope = TRIP, *, text: str = "The ferry leaves at"
) -> list[str]:
    recorder = Recorder(store, CharacterCounter(), ScriptedClock(), LimitsPolicy(), ImportancePolicy())
    messages = [NewMessage(Role.USER if n % 2 else Role.ASSISTANT, f"{text} {n}.") for n in range(count)]
    return (await recorder.record(scope, messages)).message_ids


async def all_summaries(store: SqliteStore, scope: Scope = TRIP) -> dict[int, list[ConversationSummary]]:
    """By level, in order."""
    found: dict[int, list[ConversationSummary]] = {}
    async with store.view() as view:
        session = await view.sessions.get(scope)
        assert session is not None
        for level in range(12):
            summaries = list(await view.conversations.summaries(session, level=level, after_seq=0))
            if summaries:
                found[level] = summaries
    return found


async def uncovered(store: SqliteStore) -> Sequence[ConversationSummary]:
    async with store.view() as view:
        session = await view.sessions.get(TRIP)
        assert session is not None
        return await view.conversations.uncovered_summaries(session)


def assert_tiled(summaries: Sequence[ConversationSummary], last_seq: int | None = None) -> None:
    """From message 1 on, without gap or overlap, to the last one."""
    next_seq = 1
    for summary in summaries:
        assert summary.start_seq == next_seq
        assert summary.message_count == summary.end_seq - summary.start_seq + 1 > 0
        next_seq = summary.end_seq + 1
    assert last_seq is None or next_seq == last_seq + 1


@pytest.mark.parametrize("batches", [[1], [14], [15], [16, 1, 13], [100], [7] * 9, [210, 3], [1] * 33, [300]])
@pytest.mark.parametrize("is_one_by_one", [True, False])
async def test_summaries_tile_the_conversation_however_it_came_in(
    store: SqliteStore, batches: list[int], *, is_one_by_one: bool
) -> None:
    keeping = keeper(store)
    for size in batches:
        await record(store, size)
        while is_one_by_one and await keeping.summarize_due(TRIP):
            pass
        while is_one_by_one and await keeping.fold_due(TRIP):
            pass
        await keeping.catch_up(TRIP)
    levels = await all_summaries(store)
    total = sum(batches)
    assert_tiled(levels.get(0, []), total - total % 15)
    assert all(summary.message_count == 15 for summary in levels.get(0, []))
    await keeping.summarize_all(TRIP)
    levels = await all_summaries(store)
    assert_tiled(levels[0], total)
    for level, summaries in levels.items():
        assert_tiled(summaries)
        ends = {summary.end_seq for summary in levels.get(level - 1, summaries)}
        assert {summary.end_seq for summary in summaries} <= ends
    assert await keeping.summarize_all(TRIP) == []


async def test_what_is_in_view_grows_with_the_logarithm_of_the_conversation(store: SqliteStore) -> None:
    keeping = keeper(store, window=SummaryWindowPolicy(threshold=2, dense_threshold=2, is_adaptive=False))
    sizes = {0: 0}
    for total in (4, 16, 64, 256):
        await record(store, total - max(sizes))
        await keeping.summarize_all(TRIP)
        in_view = await uncovered(store)
        sizes[total] = len(in_view)
        assert_tiled(in_view, total)
        levels = [summary.level for summary in in_view]
        assert levels == sorted(levels, reverse=True)
        assert max(levels.count(level) for level in levels) <= 3
    assert sizes[256] <= 3 * 4
    assert sizes[256] - sizes[64] <= 3


async def test_a_dense_conversation_is_summarised_in_windows_of_ten(store: SqliteStore) -> None:
    await record(store, 25, text="word " * 130)
    made = await keeper(store, window=SummaryWindowPolicy()).summarize_all(TRIP)
    assert [summary.message_count for summary in made] == [10, 10, 5]


async def test_a_summary_is_due_from_a_whole_window_on(store: SqliteStore) -> None:
    keeping = keeper(store)
    await record(store, 14)
    assert not await keeping.is_due(TRIP)
    assert await keeping.summarize_due(TRIP) is None
    await record(store, 1)
    assert await keeping.is_due(TRIP)
    summary = await keeping.summarize_due(TRIP)
    assert summary is not None
    assert (summary.start_seq, summary.end_seq, summary.method) == (1, 15, SummaryMethod.EXTRACTIVE)
    assert not await keeping.is_due(TRIP)


async def test_the_callers_text_is_stored_as_it_is(store: SqliteStore) -> None:
    ids = await record(store, 4)
    request = CreateSummaryRequest("trip", ids[0], ids[2], message_count=3, summary="  They meet at the pier. \n")
    summary = await keeper(store).create(TRIP, request)
    assert (summary.summary, summary.method, summary.model_id) == ("They meet at the pier.", SummaryMethod.CALLER, None)
    assert (summary.start_message_id, summary.end_message_id, summary.message_count) == (ids[0], ids[2], 3)
    assert (await all_summaries(store))[0] == [summary]


async def test_ids_may_be_given_with_or_without_their_prefix(store: SqliteStore) -> None:
    ids = [one.removeprefix("msg_") for one in await record(store, 2)]
    summary = await keeper(store).create(TRIP, CreateSummaryRequest("trip", ids[0], ids[1]))
    assert summary.message_count == 2


async def test_ranges_that_cannot_be_are_refused_and_nothing_is_written(store: SqliteStore) -> None:
    ids = await record(store, 10)
    [other] = await record(store, 1, Scope(session="home"))
    keeping = keeper(store)
    await keeping.create(TRIP, CreateSummaryRequest("trip", ids[0], ids[2]))
    before = await all_summaries(store)
    for request, error in [
        (CreateSummaryRequest("trip", ids[5], ids[3]), InvalidInput),
        (CreateSummaryRequest("trip", ids[3], ids[5], message_count=2), InvalidInput),
        (CreateSummaryRequest("trip", ids[3], ids[5], message_count=0), InvalidInput),
        (CreateSummaryRequest("trip", ids[3], other), RecordNotFound),
        (CreateSummaryRequest("trip", other, ids[3]), RecordNotFound),
        (CreateSummaryRequest("trip", ids[3], "msg_999999"), RecordNotFound),
        (CreateSummaryRequest("trip", ids[3], "the last"), InvalidInput),
        (CreateSummaryRequest("trip", ids[2], ids[5]), SummaryRangeConflict),
        (CreateSummaryRequest("trip", ids[0], ids[9]), SummaryRangeConflict),
        (CreateSummaryRequest("trip", ids[4], ids[5]), SummaryRangeConflict),
        (CreateSummaryRequest("trip", ids[3], ids[5], summary=""), InvalidInput),
        (CreateSummaryRequest("trip", ids[3], ids[5], summary=" \n "), InvalidInput),
        (CreateSummaryRequest("trip", ids[3], ids[5], summary="\ud800"), InvalidInput),
        (CreateSummaryRequest("trip", ids[3], ids[5], summary="x" * 10_001), TextTooLarge),
    ]:
        with pytest.raises(error):
            await keeping.create(TRIP, request)
    assert await all_summaries(store) == before
    with pytest.raises(SummaryRangeConflict, match="begins at message 4"):
        await keeping.create(TRIP, CreateSummaryRequest("trip", ids[4], ids[5]))


async def test_an_unknown_session_is_said_to_be_unknown(store: SqliteStore) -> None:
    keeping = keeper(store)
    for asked in (keeping.is_due, keeping.summarize_due, keeping.summarize_all, keeping.fold_due):
        with pytest.raises(SessionNotFound):
            await asked(Scope(session="nowhere"))


async def test_adopting_takes_every_message_that_has_no_summary(store: SqliteStore) -> None:
    ids = await record(store, 5)
    keeping = keeper(store)
    first = await keeping.adopt(TRIP, "One to five.")
    assert first is not None
    assert (first.start_message_id, first.end_message_id) == (ids[0], ids[4])
    assert await keeping.adopt(TRIP, "Nothing is left.") is None
    await record(store, 1)
    second = await keeping.adopt(TRIP, "Six.")
    assert second is not None
    assert (second.start_seq, second.end_seq) == (6, 6)
    with pytest.raises(InvalidInput):
        await record(store, 1)
        await keeping.adopt(TRIP, "  ")


async def test_a_finalized_session_takes_no_summary_of_the_caller(store: SqliteStore) -> None:
    ids = await record(store, 2)
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, TRIP, now_ms=0)
        await transaction.sessions.set_state(session, SessionState.FINALIZED, now_ms=0)
    keeping = keeper(store)
    with pytest.raises(SessionFinalized):
        await keeping.create(TRIP, CreateSummaryRequest("trip", ids[0], ids[1], summary="Late."))
    assert await keeping.summarize_due(TRIP, is_partial_due=True) is None
    assert await all_summaries(store) == {}


@pytest.mark.parametrize("round_", range(4))
async def test_keepers_that_race_on_one_database_store_every_summary_once(store: SqliteStore, round_: int) -> None:
    await record(store, 130)
    other = await SqliteStore.open(store.path)
    made: list[ConversationSummary] = []
    racing = [
        keeper(one, first_id=number * 1_000_000, models=SlowModel() if number % 2 else None)
        for number, one in enumerate([store, other, store, other])
    ]

    async def race(keeping: SummaryKeeper, delay: int) -> None:
        for _ in range(delay):
            await anyio.lowlevel.checkpoint()
        made.extend(await keeping.summarize_all(TRIP))

    async with anyio.create_task_group() as tasks:
        for number, keeping in enumerate(racing):
            tasks.start_soon(race, keeping, number * round_ * 40)
    await racing[0].summarize_all(TRIP)
    await other.close()
    levels = await all_summaries(store)
    assert_tiled(levels[0], 130)
    assert_tiled(levels[1])
    stored = [summary.id for summaries in levels.values() for summary in summaries]
    assert len(stored) == len(set(stored))
    assert {summary.id for summary in made} <= set(stored)
    async with store.view() as view:
        session = await view.sessions.get(TRIP)
    assert session is not None
    assert (session.summary_count, session.summarized_seq) == (len(stored), 130)


async def test_messages_that_come_while_a_model_writes_wait_for_the_next_summary(store: SqliteStore) -> None:
    await record(store, 15)

    class Meanwhile(SlowModel):
        async def complete(self, request: ChatRequest) -> str:
            await record(store, 20)
            return await super().complete(request)

    summary = await keeper(store, models=Meanwhile()).summarize_due(TRIP)
    assert summary is not None
    assert (summary.start_seq, summary.end_seq, summary.method) == (1, 15, SummaryMethod.MODEL)
    assert_tiled((await all_summaries(store))[0], 15)


async def test_no_transaction_is_open_while_a_model_writes(store: SqliteStore) -> None:
    await record(store, 15)
    wrote: list[str] = []

    class Writing(SlowModel):
        async def complete(self, request: ChatRequest) -> str:
            with anyio.fail_after(5):
                async with store.transaction() as transaction:
                    session = await ensure_session(transaction.sessions, Scope(session="other"), now_ms=0)
                    wrote.append(session.id)
            return await super().complete(request)

    assert await keeper(store, models=Writing()).summarize_due(TRIP) is not None
    assert len(wrote) == 1


async def test_a_range_that_the_background_has_summarised_is_answered_with_that_summary(store: SqliteStore) -> None:
    ids = await record(store, 3)
    keeping = keeper(store)
    [made] = await keeping.summarize_all(TRIP)
    assert await keeping.create(TRIP, CreateSummaryRequest("trip", ids[0], ids[2], message_count=3)) == made
    with pytest.raises(SummaryRangeConflict):
        await keeping.create(TRIP, CreateSummaryRequest("trip", ids[0], ids[1]))
    with pytest.raises(SummaryRangeConflict):
        await keeping.create(TRIP, CreateSummaryRequest("trip", ids[0], ids[2], summary="In my own words."))


@dataclass
class AwayModel(SlowModel):
    """A model whose server is switched off."""

    async def complete(self, request: ChatRequest) -> str:
        raise ModelUnavailable("nobody listens there")


async def test_a_summary_made_because_the_model_was_away_says_so_to_its_caller(store: SqliteStore) -> None:
    ids = await record(store, 2)
    summary = await keeper(store, models=AwayModel()).create(TRIP, CreateSummaryRequest("trip", ids[0], ids[1]))
    assert summary.method is SummaryMethod.EXTRACTIVE
    assert "made without it" in summary.to_dict()["note"]
    assert "note" not in (await all_summaries(store))[0][0].to_dict()
