"""Summaries of partly hidden ranges, and rewritten summaries: they never say what is gone or less trusted."""

import random
from dataclasses import replace
from typing import Final

import pytest

from kalito_mcp.domain.memory_records import (
    DELETED_AT,
    SYSTEM_EDITOR,
    EditDraft,
    EditType,
    MemoryRecord,
    with_changes,
)
from kalito_mcp.domain.records import (
    ConversationSummary,
    CreateSummaryRequest,
    MessageWithImportance,
    Origin,
    Role,
    SummaryMethod,
    least_trusted,
)
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import Session
from kalito_mcp.domain.validation import LimitsPolicy
from kalito_mcp.kinds.judge import SentenceJudge
from kalito_mcp.ports.chat import ChatModel, ChatRequest
from kalito_mcp.ports.store import ReadView, WriteTransaction
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.summaries.digester import Digester
from kalito_mcp.summaries.extractive import NOTHING_IN_SIGHT
from kalito_mcp.summaries.keeper import SummaryKeeper
from kalito_mcp.summaries.rewriter import SummaryRewriter
from kalito_mcp.summaries.summarizer import Summarizer
from kalito_mcp.summaries.window import SummaryWindowPolicy
from tests import drafts
from tests.scripted import START_MS, CharacterCounter, CountedIds, ScriptedClock
from tests.summaries.by_words import BY_WORDS, fold_summaries, summarize_messages
from tests.summaries.counting_embedder import CountingEmbedder

pytestmark = pytest.mark.anyio
TRIP: Final = Scope(session="trip")
FACTS: Final = [
    f"The parcel for customer {name} weighs {n + 2} kg and goes to Oslo." for n, name in enumerate("ABCDEF")
]


class Model:
    """Answers with the beginning of the first line that names a parcel, after what happens meanwhile."""

    is_local = True

    def __init__(self) -> None:
        self.asked: list[ChatRequest] = []
        self.meanwhile = self.nothing

    async def nothing(self) -> None:
        """Nothing happens."""

    async def complete(self, request: ChatRequest) -> str:
        self.asked.append(request)
        happening, self.meanwhile = self.meanwhile, self.nothing
        await happening()
        return next(line for line in request.prompt.split("\n") if "parcel" in line).partition(": ")[2][:30]

    def find(self, model_id: str) -> ChatModel | None:
        return self


class NoModels:
    """No server is configured."""

    def find(self, model_id: str) -> ChatModel | None:
        return None


def keeper(
    store: SqliteStore,
    *,
    window: int = 3,
    summaries: int = 3,
    models: Model | None = None,
    digester: Digester = BY_WORDS,
) -> SummaryKeeper:
    return SummaryKeeper(
        store,
        Summarizer(models or NoModels(), digester),
        CharacterCounter(),
        ScriptedClock(),
        CountedIds(),
        max_per_level=summaries,
        window=SummaryWindowPolicy(threshold=window, dense_threshold=window, is_adaptive=False),
        limits=LimitsPolicy(),
    )


async def session_of(view: ReadView | WriteTransaction) -> Session:
    session = await view.sessions.get(TRIP)
    assert session is not None
    return session


async def record(store: SqliteStore, texts: list[str], origins: list[Origin] | None = None) -> None:
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
        messages = [
            replace(
                drafts.message(text, role=Role.USER if n % 2 == 0 else Role.ASSISTANT, created_at=START_MS + n),
                origin=origins[n] if origins else None,
            )
            for n, text in enumerate(texts)
        ]
        await transaction.conversations.append_messages(session, messages, now_ms=START_MS)


async def hide(store: SqliteStore, *seqs: int, deleted_at: int | None = START_MS) -> MemoryRecord:
    """Forget or restore the messages; return the last of them as it was before."""
    async with store.transaction() as transaction:
        session = await session_of(transaction)
        for seq in seqs:
            [message] = await transaction.conversations.messages(session, first_seq=seq, last_seq=seq)
            before = await transaction.records.record(TRIP, message.record_id)
            assert before is not None
            content = with_changes(before.content, {DELETED_AT: deleted_at})
            edit = EditDraft(EditType.UPDATE, SYSTEM_EDITOR, START_MS, content, 1)
            await transaction.records.change(before, edit)
    return before


async def all_summaries(store: SqliteStore) -> dict[int, list[ConversationSummary]]:
    async with store.view() as view:
        session = await session_of(view)
        levels = [list(await view.conversations.summaries(session, level=level, after_seq=0)) for level in range(16)]
    return {level: found for level, found in enumerate(levels) if found}


async def rewrite(store: SqliteStore, seq: int, *, is_erased: bool = False) -> list[str]:
    async with store.transaction() as transaction:
        session = await session_of(transaction)
        [message] = await transaction.conversations.messages(session, first_seq=seq, last_seq=seq)
        found = await transaction.records.record(TRIP, message.record_id)
        assert found is not None
        return await SummaryRewriter(CharacterCounter(), BY_WORDS).rewrite(
            transaction, session, found, editor=SYSTEM_EDITOR, at_ms=START_MS, is_erased=is_erased
        )


@pytest.mark.parametrize("hidden", [(1,), (2,), (3,), (1, 2), (1, 3), (2, 3), (4, 5, 6), (1, 2, 3, 4, 5, 6)])
@pytest.mark.parametrize("has_model", [False, True])
async def test_owed_summaries_tile_a_conversation_with_holes(
    store: SqliteStore, hidden: tuple[int, ...], has_model: bool
) -> None:
    model = Model()
    await record(store, FACTS)
    await hide(store, *hidden)
    keeping = keeper(store, models=model if has_model else None)
    made = await keeping.summarize_all(TRIP)
    assert [(one.start_seq, one.end_seq, one.message_count) for one in made] == [(1, 3, 3), (4, 6, 3)]
    for summary in made:
        range_ = range(summary.start_seq, summary.end_seq + 1)
        assert all(f"customer {'ABCDEF'[seq - 1]}" not in summary.summary for seq in range_ if seq in hidden)
        assert (summary.summary == NOTHING_IN_SIGHT) is all(seq in hidden for seq in range_)
    assert all(f"customer {'ABCDEF'[seq - 1]}" not in one.prompt for seq in hidden for one in model.asked)


async def test_the_callers_own_summary_takes_a_range_with_hidden_ends(store: SqliteStore) -> None:
    await record(store, FACTS)
    await hide(store, 1, 6)
    adopted = await keeper(store).adopt(TRIP, "Parcels.")
    assert adopted is not None
    assert (adopted.start_seq, adopted.end_seq, adopted.summary) == (1, 6, "Parcels.")


async def test_what_is_forgotten_while_the_model_writes_is_not_in_what_it_wrote(store: SqliteStore) -> None:
    model = Model()
    await record(store, FACTS)

    async def forget() -> None:
        await hide(store, 1)

    model.meanwhile = forget
    keeping = keeper(store, models=model)
    made = await keeping.summarize_due(TRIP)
    assert made is not None
    assert "customer A" not in made.summary
    assert len(model.asked) == 2


async def test_a_requested_summary_omits_what_was_forgotten_meanwhile(store: SqliteStore) -> None:
    model = Model()
    await record(store, FACTS)

    async def forget() -> None:
        await hide(store, 1)

    model.meanwhile = forget
    request = CreateSummaryRequest("trip", "msg_1", "msg_6")
    assert "customer A" not in (await keeper(store, models=model).create(TRIP, request)).summary


async def test_a_summary_that_is_forgotten_while_it_is_folded_is_not_in_the_fold(store: SqliteStore) -> None:
    model = Model()
    await record(store, FACTS)
    keeping = keeper(store, window=1, models=model)
    for _ in range(4):
        assert await keeping.summarize_due(TRIP)
    [first, *_] = (await all_summaries(store))[0]

    async def forget() -> None:
        async with store.transaction() as transaction:
            summary = await transaction.records.record(TRIP, first.id)
            assert summary is not None
            content = with_changes(summary.content, {DELETED_AT: START_MS})
            edit = EditDraft(EditType.DELETE, SYSTEM_EDITOR, START_MS, content, 1)
            await transaction.records.change(summary, edit)

    model.meanwhile = forget
    fold = await keeping.fold_due(TRIP)
    assert fold is not None
    assert "customer A" not in fold.summary


async def test_summaries_of_every_level_are_rewritten_without_a_model(store: SqliteStore) -> None:
    await record(store, [*FACTS, *(fact.replace("customer", "buyer") for fact in FACTS)])
    keeping = keeper(store, window=3, summaries=3, models=Model())
    await keeping.summarize_all(TRIP)
    assert (await all_summaries(store)).keys() == {0, 1}
    await hide(store, 1)
    changed = await rewrite(store, 1)
    levels = await all_summaries(store)
    first, fold = levels[0][0], levels[1][0]
    assert changed == [first.id, fold.id]
    for one in (first, fold):
        assert "customer A" not in one.summary
        assert (one.method, one.model_id, one.importance_score) == (SummaryMethod.EXTRACTIVE, None, 0.7)
    assert "customer C" in first.summary
    assert await rewrite(store, 1) == []


@pytest.mark.parametrize(
    "text", [None, "The parcel for customer A weighs 90 kg and goes to Bergen. Ines signs for it."]
)
async def test_what_a_rewrite_needs_is_judged_before_its_transaction(
    store: SqliteStore, model: CountingEmbedder, text: str | None
) -> None:
    await record(store, FACTS)
    await keeper(store, digester=Digester(SentenceJudge(model))).summarize_all(TRIP)
    digester = Digester(SentenceJudge(model))
    rewriter = SummaryRewriter(CharacterCounter(), digester)
    async with store.view() as view:
        before = await view.records.record(TRIP, "msg_1")
    assert before is not None
    await rewriter.prepare(store, TRIP, before, text)
    judged = model.embedded
    async with store.transaction() as transaction:
        content = with_changes(before.content, {DELETED_AT: START_MS} if text is None else {"text": text})
        await transaction.records.change(before, EditDraft(EditType.UPDATE, SYSTEM_EDITOR, START_MS, content, 1))
        changed = await rewriter.rewrite(
            transaction, await session_of(transaction), before, editor=SYSTEM_EDITOR, at_ms=START_MS
        )
    assert len(changed) == 1
    assert model.embedded == judged


async def test_a_range_in_which_nothing_is_left_says_so_at_every_level(store: SqliteStore) -> None:
    await record(store, [*FACTS, *FACTS])
    await keeper(store).summarize_all(TRIP)
    for seq in range(1, 13):
        await hide(store, seq)
        await rewrite(store, seq)
    levels = await all_summaries(store)
    assert {one.summary for found in levels.values() for one in found} == {NOTHING_IN_SIGHT}


async def test_an_erased_message_counts_as_gone_before_it_is(store: SqliteStore) -> None:
    await record(store, FACTS)
    await keeper(store).summarize_all(TRIP)
    await hide(store, 2)
    await rewrite(store, 2)
    await rewrite(store, 1, is_erased=True)
    [first, _] = (await all_summaries(store))[0]
    assert "customer A" not in first.summary
    async with store.view() as view:
        summary = await view.records.record(TRIP, first.id)
        assert summary is not None
        assert await view.records.edits(summary) == []


async def test_no_summary_is_trusted_more_than_its_least_trusted_part(store: SqliteStore) -> None:
    """Of messages of any origin, and of every summary above them: 3 x 10^2 trees."""
    draw = random.Random(20_260_304)
    weights = [30, 30, 1, 1, 1]
    origins = [draw.choices(list(Origin), weights)[0] for _ in range(320)]
    await record(store, [f"Fact {n}." for n in range(320)], origins)
    await keeper(store, window=2, summaries=1).summarize_all(TRIP)
    levels = await all_summaries(store)
    assert sum(map(len, levels.values())) > 300
    for level, summaries in levels.items():
        for one in summaries:
            assert one.origin is least_trusted(origins[one.start_seq - 1 : one.end_seq]), (level, one)


async def test_a_summary_does_not_take_in_what_is_trusted_less_than_itself(store: SqliteStore) -> None:
    """Like a record from before origins were stored."""
    await record(store, FACTS[:3], [Origin.USER, Origin.TOOL, Origin.USER])
    async with store.transaction() as transaction:
        session = await session_of(transaction)
        await transaction.conversations.add_summaries(session, [drafts.summary(1, 3, text="Three parcels.")])
    await rewrite(store, 1)
    [[summary]] = (await all_summaries(store)).values()
    assert summary.origin is Origin.ASSISTANT
    assert "customer A" in summary.summary
    assert "customer B" not in summary.summary


async def test_the_callers_words_are_the_assistants_at_most(store: SqliteStore) -> None:
    await record(store, FACTS[:1])
    made = await keeper(store).adopt(TRIP, "A parcel.")
    assert made is not None
    assert made.origin is Origin.ASSISTANT


async def test_extractive_summaries_count_only_what_is_shown(store: SqliteStore) -> None:
    await record(store, FACTS)
    await hide(store, 1, 2)
    async with store.view() as view:
        messages: list[MessageWithImportance] = list(
            await view.conversations.messages(await session_of(view), first_seq=1, last_seq=6)
        )
    assert summarize_messages(messages, max_chars=500).startswith("Conversation with 4 messages (2 user, 2 assistant)")
    await keeper(store).summarize_all(TRIP)
    parts = (await all_summaries(store))[0]
    hidden = [replace(parts[0], summary=""), parts[1]]
    assert fold_summaries(hidden, max_chars=500).startswith("Messages 1-6 (1 summary)")
    assert fold_summaries([replace(one, summary="") for one in parts], max_chars=500) == NOTHING_IN_SIGHT
