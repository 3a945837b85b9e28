"""What was derived from a message changes with it: its pins, the summaries over it, and its graph nodes."""

from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest

from kalito_mcp import CreatePinRequest, CreateSummaryRequest, Memory, NewMessage, Role, Settings, open_memory
from kalito_mcp.domain.graph import GraphPolicy
from kalito_mcp.domain.memory_records import (
    DELETED_AT,
    SYSTEM_EDITOR,
    EditDraft,
    EditType,
    MemoryRecord,
    with_changes,
)
from kalito_mcp.domain.records import Origin, RecordType
from kalito_mcp.domain.scope import Scope
from kalito_mcp.graph.store import GraphStore
from kalito_mcp.kinds.judge import SentenceJudge
from kalito_mcp.pins.automatic import AutoPinPolicy
from kalito_mcp.pins.collector import PinCollector
from kalito_mcp.ports.store import WriteTransaction
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.summaries.window import SummaryWindowPolicy
from tests import drafts
from tests.empty_database import lay_empty_database
from tests.scripted import START_MS, CharacterCounter, CountedIds, ScriptedClock
from tests.stored import said, tables, texts_of

pytestmark = pytest.mark.anyio
T = TypeVar("T")
ASKED, FACT = "Where does Anna Keller live?", "My sister Anna Keller always lived in Oslo."
ANSWER = "Anna Keller lives in Oslo, you said."
TALK = (FACT, "Noted.", ASKED, ANSWER)
SMALL = Settings(window=SummaryWindowPolicy(threshold=4, dense_threshold=4, is_adaptive=False))


@pytest.fixture
async def memory(database: Path, clock: ScriptedClock) -> AsyncIterator[Memory]:
    async with open_memory(lay_empty_database(database), SMALL, clock=clock, ids=CountedIds()) as opened:
        await opened.record_messages("trip", said(*TALK))
        await opened.settled()
        yield opened


async def listed(memory: Memory, kind: RecordType) -> list[MemoryRecord]:
    """Pins or summaries that are not forgotten, the oldest first."""
    async with memory.place.store.view() as view:
        found = await view.records.list_records(Scope(), frozenset({kind}), limit=100)
    return list(found)[::-1]


async def said_by(memory: Memory, kind: RecordType) -> list[str]:
    return [one.text for one in await listed(memory, kind)]


async def graph_of(memory: Memory, session_id: str | None = "trip") -> GraphStore:
    agent = memory.orchestrator()
    return await agent.get_agent_store() if session_id is None else await agent.get_session_store(session_id)


async def change(memory: Memory, record_id: str, text: str) -> None:
    record = await memory.records.get(record_id)
    await memory.update_memory(record_id, {"text": text}, expected_revision=record.revision)


def answers(graph: GraphStore, question: str) -> list[str]:
    [query] = [node for node in graph.nodes() if node.type == "query" and node.text == question]
    ends = [edge.to_id for edge in graph.edges_of(query.id) if edge.type == "responded_with"]
    return sorted(graph.node(end).text or "" for end in ends)


async def test_forgetting_a_message_hides_its_pins_its_summary_and_its_node(memory: Memory) -> None:
    assert await said_by(memory, RecordType.PIN) == [FACT]
    assert "sister" in (await said_by(memory, RecordType.SUMMARY))[0]
    await memory.forget("msg_1")
    assert await said_by(memory, RecordType.PIN) == []
    assert "sister" not in (await said_by(memory, RecordType.SUMMARY))[0]
    assert texts_of(await graph_of(memory), "query") == [ASKED]


async def test_what_is_restored_is_as_it_was(memory: Memory) -> None:
    summary, pins = (await listed(memory, RecordType.SUMMARY))[0], await said_by(memory, RecordType.PIN)
    graph = await graph_of(memory)
    for record_id in ("msg_1", "msg_3", "msg_4"):
        await memory.forget(record_id)
    for record_id in ("msg_4", "msg_3", "msg_1"):
        await memory.restore(record_id)
    assert await said_by(memory, RecordType.PIN) == pins
    again = (await listed(memory, RecordType.SUMMARY))[0]
    assert (again.text, again.id) == (summary.text, summary.id)
    now = await graph_of(memory)
    assert {kind: texts_of(now, kind) for kind in ("query", "answer", "entity")} == {
        kind: texts_of(graph, kind) for kind in ("query", "answer", "entity")
    }
    assert answers(now, ASKED) == [ANSWER]
    assert [node.weights.repeat for node in now.nodes() if node.type == "query"] == [1.0, 1.0]


async def test_a_summary_that_a_model_wrote_comes_back_word_for_word(memory: Memory) -> None:
    first, last = (await memory.record_messages("other", said(*TALK[:2]))).message_ids
    await memory.create_summary(CreateSummaryRequest("other", first, last, summary="Anna is Oslo's."))
    await memory.forget(first)
    [_, hidden] = await listed(memory, RecordType.SUMMARY)
    assert "Oslo" not in hidden.text
    assert hidden.content["method"] == "extractive"
    await memory.restore(first)
    [_, back] = await listed(memory, RecordType.SUMMARY)
    assert (back.text, back.content["method"]) == ("Anna is Oslo's.", "caller")


async def test_of_two_forgotten_messages_one_comes_back_without_the_words_of_the_other(memory: Memory) -> None:
    """The clock does not move here, so only the cause noted in each edit tells them apart."""
    await memory.forget("msg_1")
    await memory.forget("msg_4")
    await memory.restore("msg_1")
    [summary] = await said_by(memory, RecordType.SUMMARY)
    assert "sister" in summary
    assert ANSWER not in summary


async def test_a_corrected_message_is_what_everything_says(memory: Memory) -> None:
    await change(memory, "msg_1", "My sister Anna Keller always lived in Bergen.")
    await change(memory, "msg_4", "Anna Keller lives in Bergen, you said.")
    assert await said_by(memory, RecordType.PIN) == ["My sister Anna Keller always lived in Bergen."]
    [summary] = await said_by(memory, RecordType.SUMMARY)
    assert "Bergen" in summary
    assert "Oslo" not in summary
    graph = await graph_of(memory)
    assert answers(graph, ASKED) == ["Anna Keller lives in Bergen, you said."]
    assert "Oslo" not in texts_of(graph, "entity")


async def test_a_corrected_question_keeps_its_answer_with_what_was_thought_of_it(memory: Memory) -> None:
    await memory.record_feedback("msg_4", "up")
    await change(memory, "msg_3", "Where does my sister live?")
    graph = await graph_of(memory)
    assert answers(graph, "Where does my sister live?") == [ANSWER]
    answer = graph.node(graph.node_of_record("msg_4") or "")
    assert (answer.weights.repeat, answer.weights.feedback) == (1.0, 1.0)


async def test_an_edit_that_changes_no_words_changes_nothing_else(memory: Memory, database: Path) -> None:
    before = tables(database)
    record = await memory.records.get("msg_1")
    await memory.update_memory("msg_1", {"tags": ["family"]}, expected_revision=record.revision)
    after = tables(database)
    assert [row for row in after["records"] if row["type"] != "message"] == [
        row for row in before["records"] if row["type"] != "message"
    ]
    assert after["graph_nodes"] == before["graph_nodes"]


async def test_a_pin_that_a_person_put_stays_until_the_message_is_erased(memory: Memory) -> None:
    await memory.create_pin(CreatePinRequest("trip", "Anna: Oslo", source_message_id="msg_1"))
    await memory.forget("msg_1")
    assert await said_by(memory, RecordType.PIN) == ["Anna: Oslo"]
    await memory.purge(["msg_1"])
    assert await said_by(memory, RecordType.PIN) == []


async def test_a_pin_that_a_person_corrected_is_not_changed(memory: Memory) -> None:
    [pin] = await listed(memory, RecordType.PIN)
    await change(memory, pin.id, "Anna lives near Oslo.")
    await change(memory, "msg_1", "My sister Anna Keller always lived in Bergen.")
    assert sorted(await said_by(memory, RecordType.PIN)) == [
        "Anna lives near Oslo.",
        "My sister Anna Keller always lived in Bergen.",
    ]


async def test_erased_words_are_in_no_file(memory: Memory, database: Path) -> None:
    await change(memory, "msg_1", "My sister Anna Keller always lived in Zanzibar.")
    await memory.record_feedback("msg_4", "up")
    await memory.finalize_session("trip")
    report = await memory.purge(["msg_1", "msg_4"])
    assert {"msg_1", "msg_4"} < set(report.erased)
    assert not report.remaining
    for path in (path for path in database.parent.rglob("*") if path.is_file()):
        kept = path.read_bytes()
        assert not [words for words in (b"Zanzibar", b"sister", b"you said") if words in kept], path
    for session_id in ("trip", None):
        graph = await graph_of(memory, session_id)
        assert texts_of(graph, "query") == [ASKED]
        assert not {"Oslo", "Zanzibar"} & set(texts_of(graph, "entity"))
    assert not await memory.past_answers(ASKED)


async def test_a_summarys_history_does_not_quote_what_was_erased(memory: Memory) -> None:
    [summary] = await listed(memory, RecordType.SUMMARY)
    await memory.forget("msg_1")
    await memory.purge(["msg_1"])
    [only] = await memory.records.history(summary.id)
    assert only["current"]
    assert "sister" not in repr(only)


PROPOSED = "I would meet the harbour master on Friday at noon."
AGREED = "ok, let's go with that, but at nine"
QUOTING = f"let's go with that, but at nine (to: {PROPOSED})"


@pytest.fixture
async def agreement(database: Path, clock: ScriptedClock) -> AsyncIterator[Memory]:
    async with open_memory(lay_empty_database(database), SMALL, clock=clock, ids=CountedIds()) as opened:
        talk = [NewMessage(Role.USER, "When?"), NewMessage(Role.ASSISTANT, PROPOSED), NewMessage(Role.USER, AGREED)]
        await opened.record_messages("trip", talk)
        await opened.settled()
        assert await said_by(opened, RecordType.PIN) == [QUOTING]
        yield opened


async def test_a_pin_that_quotes_a_proposal_is_erased_with_it(agreement: Memory, database: Path) -> None:
    await agreement.purge(["msg_2"])
    await agreement.settled()
    assert await said_by(agreement, RecordType.PIN) == []
    assert all(b"harbour master" not in path.read_bytes() for path in database.parent.iterdir() if path.is_file())


async def test_a_corrected_pin_that_quoted_a_proposal_is_erased_with_it(agreement: Memory, database: Path) -> None:
    [pin] = await listed(agreement, RecordType.PIN)
    await change(agreement, pin.id, "We meet at nine.")
    await agreement.purge(["msg_2"])
    assert all(b"harbour master" not in path.read_bytes() for path in database.parent.iterdir() if path.is_file())


async def test_a_pin_that_quotes_a_proposal_is_forgotten_and_restored_with_it(agreement: Memory) -> None:
    await agreement.forget("msg_2")
    await agreement.settled()
    assert await said_by(agreement, RecordType.PIN) == []
    await agreement.restore("msg_2")
    await agreement.settled()
    assert await said_by(agreement, RecordType.PIN) == [QUOTING]


async def test_a_corrected_proposal_is_what_the_pin_of_its_answer_quotes(agreement: Memory) -> None:
    await change(agreement, "msg_2", PROPOSED.replace("Friday", "Monday"))
    await agreement.settled()
    assert await said_by(agreement, RecordType.PIN) == [QUOTING.replace("Friday", "Monday")]


async def test_the_long_term_graph_follows_a_changed_message(memory: Memory) -> None:
    await memory.finalize_session("trip")
    await memory.forget("msg_3")
    assert ASKED not in texts_of(await graph_of(memory, None), "query")
    await memory.restore("msg_3")
    await change(memory, "msg_4", "In Bergen, since May.")
    for session_id in ("trip", None):
        assert answers(await graph_of(memory, session_id), ASKED) == ["In Bergen, since May."]


async def test_a_graph_that_was_collected_is_not_created_again(
    memory: Memory, database: Path, clock: ScriptedClock
) -> None:
    await memory.finalize_session("trip")
    clock.advance(60)
    assert await memory.orchestrator().gc_sessions(0) == 1
    assert len(tables(database)["graphs"]) == 1
    await change(memory, "msg_3", "Where does my sister live?")
    await memory.forget("msg_3")
    await memory.restore("msg_3")
    assert len(tables(database)["graphs"]) == 1


async def test_graphs_that_are_switched_off_are_cleaned_and_get_nothing_new(memory: Memory, database: Path) -> None:
    await memory._services.finalizer._observer.observe(Scope(session="trip"))
    off = Settings(graph=GraphPolicy(enabled=False), window=SMALL.window)
    async with open_memory(database, off) as other:
        await other.forget("msg_4")
        await other.restore("msg_4")
    assert answers(await graph_of(memory), ASKED) == []
    assert texts_of(await graph_of(memory), "answer") == ["Noted."]


async def test_what_answers_a_forgotten_question_is_no_answer_to_the_one_before_it(database: Path) -> None:
    async with open_memory(database) as memory:
        await memory.record_messages("trip", said(ASKED))
        await memory.settled()
        memory._services.owed.nudge = lambda scope: None  # type: ignore[method-assign]  # paid when this says so
        await memory.record_messages("trip", said("How do I bake bread?", "With flour."))
        await memory.forget("msg_2")
        await memory._services.finalizer._observer.observe(Scope(session="trip"))
        assert answers(await graph_of(memory), ASKED) == []
        await memory.restore("msg_2")
        assert answers(await graph_of(memory), "How do I bake bread?") == ["With flour."]


async def test_no_pin_is_made_of_a_tools_words(memory: Memory) -> None:
    tool = NewMessage(Role.USER, "We decided to use PostgreSQL for the orders.", origin=Origin.TOOL)
    await memory.record_messages("trip", [tool])
    await memory.settled()
    assert await said_by(memory, RecordType.PIN) == [FACT]
    await memory.record_messages("trip", [NewMessage(Role.USER, tool.text)])
    await memory.settled()
    pins = await listed(memory, RecordType.PIN)
    assert [(pin.origin, pin.text) for pin in pins] == [(Origin.USER, FACT), (Origin.USER, tool.text)]


async def test_a_message_forgotten_while_it_is_searched_yields_no_pin(store: SqliteStore, clock: ScriptedClock) -> None:
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, Scope(session="trip"), now_ms=START_MS)
        await transaction.conversations.append_messages(
            session, [drafts.message(FACT), drafts.message(FACT + " Hm.")], now_ms=0
        )

    class Meddling:
        """The store, in which the first message is forgotten before anything else is written."""

        read = store.read
        is_done = False

        async def write(self, work: Callable[[WriteTransaction], Coroutine[Any, Any, T]]) -> T:
            if not self.is_done:
                self.is_done = True
                async with store.transaction() as transaction:
                    record = await transaction.records.record(Scope(), "msg_1")
                    assert record is not None
                    content = with_changes(record.content, {DELETED_AT: START_MS})
                    edit = EditDraft(EditType.DELETE, SYSTEM_EDITOR, START_MS, content, 0)
                    await transaction.records.change(record, edit)
            return await store.write(work)

    meddling: Any = Meddling()
    pins = PinCollector(meddling, SentenceJudge(None), CharacterCounter(), clock, CountedIds(), AutoPinPolicy())
    assert await pins.collect(Scope(session="trip")) == 1
    async with store.view() as view:
        found = await view.records.list_records(Scope(), frozenset({RecordType.PIN}), limit=9)
    assert [pin.content["source_message_id"] for pin in found] == ["msg_2"]


async def test_a_forgotten_summary_is_in_no_summary_above_it(database: Path) -> None:
    async with open_memory(database, SMALL, clock=ScriptedClock()) as memory:
        facts = [f"Order {n} of customer {name} costs {n * 7} euros." for n, name in enumerate("ABCDEFGHIJKLMNOP")]
        await memory.record_messages("trip", said(*facts))
        await memory.settled()
        summaries = await listed(memory, RecordType.SUMMARY)
        fold = next(one for one in summaries if one.content["level"] == 1)
        first = next(one for one in summaries if one.content["start_seq"] == 1 and one.content["level"] == 0)
        assert "customer A" in fold.text
        await memory.forget(first.id)
        assert "customer A" not in (await memory.records.get(fold.id)).text
        await memory.restore(first.id)
        assert (await memory.records.get(fold.id)).text == fold.text
        await memory.purge([first.id])
        assert "customer A" not in repr([await memory.records.get(fold.id), await memory.records.history(fold.id)])


async def test_neighbours_that_change_at_the_same_time_have_the_pins_of_both_new_texts(memory: Memory) -> None:
    """Each was searched beside the other's old text before it was written."""
    changes = {"msg_1": "Anna never eats nuts.", "msg_2": "Noted, thanks.", "msg_3": "From now on Anna lives in Moss."}
    async with anyio.create_task_group() as tasks:
        for record_id, text in changes.items():
            tasks.start_soon(partial(memory.update_memory, record_id, {"text": text}, expected_revision=1))
    await memory.settled()
    assert sorted(await said_by(memory, RecordType.PIN)) == [changes["msg_1"], changes["msg_3"]]
