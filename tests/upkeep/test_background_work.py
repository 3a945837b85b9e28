"""Finalizing and the owed work, through an opened memory."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from kalito_mcp import CreatePinRequest, NewMessage, PinType, Role, Settings, open_memory
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import SessionState
from kalito_mcp.errors import ClientKeyReused, SessionFinalized, SessionNotFound
from kalito_mcp.kinds.judge import Reading, SentenceJudge
from kalito_mcp.kinds.judged import Sentence
from kalito_mcp.pins.automatic import AutoPinPolicy
from kalito_mcp.runtime.database_address import address_of
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.summaries.window import SummaryWindowPolicy
from kalito_mcp.upkeep.store_layers import Reporting
from tests.scripted import CountedIds, ScriptedClock
from tests.stored import texts_of

pytestmark = pytest.mark.anyio


def conversation(count: int) -> list[NewMessage]:
    roles = (Role.USER, Role.ASSISTANT)
    return [NewMessage(roles[i % 2], f"Turn {i}: the budget for May is {i * 10} euro.") for i in range(count)]


async def test_finalizing_summarises_every_message_and_closes_the_session(tmp_path: Path) -> None:
    async with open_memory(tmp_path / "memory.db") as memory:
        await memory.record_messages("trip", conversation(37))
        finalized = await memory.finalize_session("trip")
        assert finalized.session.state is SessionState.FINALIZED
        assert finalized.session.summarized_seq == 37
        with pytest.raises(SessionFinalized, match="new session_id"):
            await memory.record_messages("trip", conversation(1))


async def test_finalizing_again_changes_nothing(tmp_path: Path) -> None:
    async with open_memory(tmp_path / "memory.db") as memory:
        await memory.record_messages("trip", conversation(20))
        first = await memory.finalize_session("trip")
        again = await memory.finalize_session("trip")
        assert again.summaries == []
        assert again.session == first.session


async def test_finalizing_resumes_where_a_crash_left_it(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    async with open_memory(path) as memory:
        await memory.record_messages("trip", conversation(20))
    store = await SqliteStore.open(path)
    async with store.transaction() as transaction:
        session = await transaction.sessions.get(Scope(session="trip"))
        assert session is not None
        await transaction.sessions.set_state(session, SessionState.FINALIZING, now_ms=1)
    await store.close()
    async with open_memory(path) as memory:
        with pytest.raises(SessionFinalized):
            await memory.record_messages("trip", conversation(1))
        finalized = await memory.finalize_session("trip")
        assert finalized.session.state is SessionState.FINALIZED
        assert finalized.session.summarized_seq == 20


async def test_finalizing_an_unknown_session_says_so(tmp_path: Path) -> None:
    async with open_memory(tmp_path / "memory.db") as memory:
        with pytest.raises(SessionNotFound, match="nowhere"):
            await memory.finalize_session("nowhere")


async def test_a_backlog_is_paid_by_the_next_process(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    store = await SqliteStore.open(path)
    await store.close()
    async with open_memory(path) as memory:
        memory._services.owed.nudge = lambda scope: None  # type: ignore[method-assign]  # as if killed before it was paid
        await memory.record_messages("trip", conversation(60))
    async with open_memory(path) as memory:
        await memory.settled()
        stats = await memory.conversations.stats("trip")
        assert stats.summarized_messages == 60
        assert stats.total_summaries == 5


async def test_what_somebody_asks_to_remember_is_pinned_once(tmp_path: Path) -> None:
    fact = NewMessage(Role.USER, "Please remember: I'm allergic to penicillin.")
    async with open_memory(tmp_path / "memory.db") as memory:
        await memory.record_messages("care", [fact, *conversation(2), fact])
        await memory.settled()
        context = await memory.build_context("care")
        [pin] = [pin for pin in context.semantic_pins if "penicillin" in pin.content]
        assert (pin.content, pin.pin_type) == ("I'm allergic to penicillin.", PinType.MANUAL)
        assert pin.importance_score == 0.8


async def test_what_one_message_owes_is_done_in_one_transaction(tmp_path: Path) -> None:
    commits: list[int] = []
    async with open_memory(tmp_path / "memory.db") as memory:
        await memory.record_messages("care", conversation(2))
        await memory.settled()
        assert isinstance(memory.place.store, Reporting)
        memory.place.store.watch(lambda: commits.append(1))
        await memory.record_messages("care", [NewMessage(Role.USER, "Please remember: I'm allergic to penicillin.")])
        await memory.settled()
        assert len(commits) == 2  # the message, and all that it owes
        assert (await memory.conversations.stats("care")).total_pins == 1
        graph = await memory.orchestrator().get_session_store("care")
        assert "Please remember: I'm allergic to penicillin." in texts_of(graph, "query")


async def test_messages_that_are_paid_one_by_one_owe_the_same_as_together(tmp_path: Path) -> None:
    said = [*conversation(12), NewMessage(Role.USER, "I never eat nuts. " + "So no cake. " * 400), *conversation(9)]
    found = []
    for name, size in (("together.db", len(said)), ("alone.db", 1)):
        async with open_memory(tmp_path / name, clock=ScriptedClock(), ids=CountedIds()) as memory:
            for first in range(0, len(said), size):
                await memory.record_messages("care", said[first : first + size])
                await memory.settled()
            context = await memory.build_context("care", 8_000)
            graph = await memory.orchestrator().get_session_store("care")
            stats = await memory.conversations.stats("care")
            pins = [pin.content for pin in context.semantic_pins]
            found.append((pins, stats.summarized_messages, list(texts_of(graph, "query")), len(list(graph.edges()))))
    assert found[0] == found[1]
    assert found[0][0] and found[0][1] and found[0][3]


@pytest.mark.parametrize("count", [3, 40])
async def test_each_sentence_is_judged_a_few_times_however_many_messages_arrive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    judged: list[Sentence] = []
    read = SentenceJudge.read

    async def counting(self: SentenceJudge, sentences: Sequence[Sentence]) -> Reading:
        judged.extend(sentences)
        return await read(self, sentences)

    monkeypatch.setattr(SentenceJudge, "read", counting)
    without_summaries = Settings(window=SummaryWindowPolicy(threshold=100, dense_threshold=100, is_adaptive=False))
    async with open_memory(tmp_path / "memory.db", without_summaries) as memory:
        await memory.record_messages("care", conversation(count))
        await memory.settled()
    assert len(judged) <= 3 * count, "whose words it and its label are, and then what it is"


async def test_a_damaged_graph_keeps_no_pins_and_no_summaries_from_being_made(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    async with open_memory(path) as memory:
        await memory.record_messages("care", conversation(14))
        await memory.settled()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE graph_nodes SET source_record_ids = 'no list'")
    async with open_memory(path) as memory:
        await memory.record_messages("care", [NewMessage(Role.USER, "Please remember: I'm allergic to penicillin.")])
        await memory.settled()
        stats = await memory.conversations.stats("care")
        assert (stats.total_pins, stats.summarized_messages) == (1, 15)


async def test_automatic_pins_can_be_switched_off(tmp_path: Path) -> None:
    settings = Settings(database=address_of(tmp_path / "memory.db"), pins=AutoPinPolicy(enabled=False))
    async with open_memory(settings=settings) as memory:
        await memory.record_messages("care", [NewMessage(Role.USER, "I never take penicillin.")])
        await memory.settled()
        assert (await memory.conversations.stats("care")).total_pins == 0


async def test_a_callers_summary_stands_for_what_owed_work_left(tmp_path: Path) -> None:
    async with open_memory(tmp_path / "memory.db") as memory:
        for start in range(12):
            session = f"trip {start}"
            await memory.record_messages(session, conversation(16))
            adopted = await memory.conversations.adopt_summary(session, "They planned the budget for May.")
            assert adopted is not None
            assert adopted.end_seq == 16
            assert (await memory.conversations.stats(session)).summarized_messages == 16


async def test_a_pins_client_key_gives_its_pin_back_and_refuses_another_text(tmp_path: Path) -> None:
    async with open_memory(tmp_path / "memory.db") as memory:
        first = await memory.create_pin(CreatePinRequest("care", "Nana takes no sugar.", client_key="sugar"))
        again = await memory.create_pin(CreatePinRequest("care", "Nana takes no sugar.", client_key="sugar"))
        assert again == first
        with pytest.raises(ClientKeyReused, match="new client_key"):
            await memory.create_pin(CreatePinRequest("care", "Nana takes two sugars.", client_key="sugar"))
        assert (await memory.conversations.stats("care")).total_pins == 1
