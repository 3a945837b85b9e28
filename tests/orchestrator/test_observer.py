"""Messages enter their session's graph once, as questions and answers, whatever batches they come in."""

from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp import CreatePinRequest, Memory, NewMessage, Role, Settings, open_memory
from kalito_mcp.domain.graph import EdgeType, GraphChanges, GraphPolicy, SessionGraphConfig
from kalito_mcp.domain.records import MessageWithImportance
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import SessionState
from kalito_mcp.domain.validation import LimitsPolicy
from kalito_mcp.graph.store import GraphStore
from kalito_mcp.orchestrator import observer
from kalito_mcp.orchestrator.observer import observe_messages
from kalito_mcp.storage.sqlite.database import SqliteStore
from tests.empty_database import lay_empty_database
from tests.scripted import START_MS, CountedIds, ScriptedClock
from tests.stored import content, said, talk, texts_of

pytestmark = pytest.mark.anyio
TRIP = Scope(session="trip")
ROLES = {"u": Role.USER, "a": Role.ASSISTANT, "s": Role.SYSTEM}


@pytest.fixture
async def memory(database: Path) -> AsyncIterator[Memory]:
    async with open_memory(lay_empty_database(database), clock=ScriptedClock(), ids=CountedIds()) as opened:
        yield opened


async def graph_of(memory: Memory, session_id: str = "trip") -> GraphStore:
    await memory.settled()
    return await memory.orchestrator().get_session_store(session_id)


def answers(graph: GraphStore) -> dict[str, list[str]]:
    """Each query's text, with the texts of its answers."""
    found: dict[str, list[str]] = {text: [] for text in texts_of(graph, "query")}
    for edge in graph.edges():
        if edge.type is EdgeType.RESPONDED_WITH:
            found[graph.node(edge.from_id).text or ""].append(graph.node(edge.to_id).text or "")
    return {text: sorted(those) for text, those in found.items()}


def messages_of(roles: str, texts: Sequence[str] | None = None) -> list[MessageWithImportance]:
    return [
        MessageWithImportance(
            id=place,
            session_id="trip",
            role=ROLES[role],
            text=texts[place - 1] if texts else f"message {place}",
            model_id=None,
            token_usage=None,
            created_at=START_MS + place,
            importance_score=0.5,
            seq=place,
            tokens=3,
        )
        for place, role in enumerate(roles, start=1)
    ]


async def test_a_users_message_is_a_query_and_the_reply_its_answer(memory: Memory) -> None:
    recorded = await memory.record_messages("trip", said("Where does Anna Keller live?", "In Oslo, near the harbour."))
    graph = await graph_of(memory)
    assert answers(graph) == {"Where does Anna Keller live?": ["In Oslo, near the harbour."]}
    query, answer = (graph.node_of_record(message_id) for message_id in recorded.message_ids)
    assert query is not None and answer is not None
    assert graph.node(query).source_record_ids == (recorded.message_ids[0],)
    about = {(edge.from_id, graph.node(edge.to_id).text) for edge in graph.edges() if edge.type == "refers_to_entity"}
    assert about == {(query, "Anna Keller"), (answer, "Oslo")}


@pytest.mark.parametrize(
    ("roles", "expected"),
    [
        ("ua", {"message 1": ["message 2"]}),
        ("uua", {"message 1": [], "message 2": ["message 3"]}),
        ("uaa", {"message 1": ["message 2", "message 3"]}),
        ("au", {"message 2": []}),
        ("sua", {"message 2": ["message 3"]}),
        ("usa", {"message 1": ["message 3"]}),
        ("aaa", {}),
        ("u" + "a" * 9, {"message 1": [f"message {place}" for place in range(2, 10)]}),
        ("uauu", {"message 1": ["message 2"], "message 3": [], "message 4": []}),
    ],
)
def test_an_answer_belongs_to_the_last_question_of_the_eight_messages_before_it(
    roles: str, expected: dict[str, list[str]]
) -> None:
    graph = GraphStore()
    observe_messages(graph, messages_of(roles), 0, GraphPolicy())
    assert answers(graph) == expected


def test_a_blank_message_is_no_question_and_hides_none() -> None:
    graph = GraphStore()
    observe_messages(graph, messages_of("uua", ["Where is Ann?", "  \n", "In Oslo."]), 0, GraphPolicy())
    assert answers(graph) == {"Where is Ann?": ["In Oslo."]}


@given(roles=st.text("uas", min_size=1, max_size=40), data=st.data())
def test_it_does_not_matter_in_how_many_parts_the_messages_come(roles: str, data: st.DataObject) -> None:
    texts = [data.draw(st.sampled_from(["Where is Ann?", "In Oslo.", "Who?", " ", "Bob's."])) for _ in roles]
    messages = messages_of(roles, texts)
    at_once, in_parts = (GraphStore(now_ms=lambda: START_MS) for _ in range(2))
    observe_messages(at_once, messages, 0, GraphPolicy())
    done = 0
    while done < len(messages):
        last = data.draw(st.integers(done + 1, len(messages)))
        observe_messages(in_parts, messages[max(0, done - 8) : last], done, GraphPolicy())
        done = last
    assert content(in_parts) == content(at_once)


def test_what_the_graph_refuses_is_left_out_and_the_rest_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    graph = GraphStore()
    texts = ["x" * 600_000, "Too long, sorry.", "Where is Ann?", "In Oslo."]
    observe_messages(graph, messages_of("uaua", texts), 0, GraphPolicy())
    assert answers(graph) == {"Where is Ann?": ["In Oslo."]}
    assert "missing or incomplete messages in a session's graph: 1" in caplog.text


def test_a_full_graph_of_pinned_nodes_takes_no_more_and_observing_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    graph = GraphStore(SessionGraphConfig(max_nodes=2))
    for text in ("Where is Ann?", "Who is Bob?"):
        graph.pin(graph.upsert_query(text))
    observe_messages(graph, messages_of("uau", ["What is new?", "Nothing.", "Who is Bob?"]), 0, GraphPolicy())
    assert graph.stats().nodes == 2
    known = graph.node_of_record("msg_3")
    assert known is not None and graph.node(known).weights.repeat == 2


async def test_a_message_longer_than_a_node_may_be_blocks_nothing(database: Path) -> None:
    limits = Settings(limits=LimitsPolicy(max_text_bytes=600_000))
    async with open_memory(database, limits) as memory:
        await memory.record_messages("trip", said("word " * 110_000, "That was long.", "Where is Ann?", "In Oslo."))
        assert answers(await graph_of(memory)) == {"Where is Ann?": ["In Oslo."]}
        assert (await memory.finalize_session("trip")).session.state is SessionState.FINALIZED


async def test_named_speakers_ask_and_are_answered(memory: Memory) -> None:
    await memory.record_messages(
        "trip",
        [
            NewMessage(Role.USER, "Where is Ann?", name="bob"),
            NewMessage(Role.USER, "And who drives?", name="cleo"),
            NewMessage(Role.ASSISTANT, "In Oslo; Bob does.", name="bot"),
        ],
    )
    assert answers(await graph_of(memory)) == {"Where is Ann?": [], "And who drives?": ["In Oslo; Bob does."]}


async def test_five_hundred_imported_messages_are_observed_once_each(memory: Memory) -> None:
    await memory.record_messages("trip", talk(250))
    graph = await graph_of(memory)
    assert len(texts_of(graph, "query")) == len(texts_of(graph, "answer")) == 250
    assert all(node.weights.repeat == 1 for node in graph.nodes() if node.type in ("query", "answer"))
    assert all(len(those) == 1 for those in answers(graph).values())


async def test_each_message_is_observed_once_across_restarts(database: Path) -> None:
    for turn in range(4):
        async with open_memory(database) as memory:
            await memory.record_messages("trip", said("Where is Ann?", f"In Oslo, {turn}."))
            if turn % 2:
                await memory.settled()
    async with open_memory(database) as memory:
        graph = await graph_of(memory)
        assert answers(graph) == {"Where is Ann?": [f"In Oslo, {turn}." for turn in range(4)]}
        [query] = [node for node in graph.nodes() if node.type == "query"]
        assert query.weights.repeat == 4


async def test_two_processes_observe_each_message_once(database: Path) -> None:
    async with open_memory(database) as one, open_memory(database) as other:

        async def record(memory: Memory, name: str) -> None:
            for turn in range(15):
                await memory.record_messages("trip", said(f"What did {name} say in turn {turn}?", "Nothing."))
                # Both are notified: each looks, and one of them finds it.
                one._services.owed.nudge(TRIP)
                other._services.owed.nudge(TRIP)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(record, one, "Ann")
            tasks.start_soon(record, other, "Bob")
        await one.settled()
        graph = await graph_of(other)
        queries = [node for node in graph.nodes() if node.type == "query"]
        assert len(queries) == 30
        assert {node.weights.repeat for node in queries} == {1.0}
        [nothing] = [node for node in graph.nodes() if node.type == "answer"]
        assert nothing.weights.repeat == 30


async def test_switched_off_nothing_is_observed_until_it_is_on(database: Path) -> None:
    async with open_memory(database, Settings(graph=GraphPolicy(enabled=False))) as memory:
        await memory.record_messages("trip", said("Where is Ann?", "In Oslo."))
        assert await memory._services.finalizer._observer.observe(TRIP) == 0
        assert answers(await graph_of(memory)) == {}
    async with open_memory(database) as memory:
        assert answers(await graph_of(memory)) == {"Where is Ann?": ["In Oslo."]}


async def test_a_graph_that_is_only_looked_at_is_not_stored(memory: Memory) -> None:
    await memory.record_messages("trip", said("Where is Ann?", "In Oslo."))
    assert answers(await graph_of(memory)) == {"Where is Ann?": ["In Oslo."]}
    [session] = await memory.conversations.recent()
    assert session.observed_seq == 0
    assert await memory._services.finalizer._observer.observe(TRIP) == 2
    assert answers(await graph_of(memory)) == {"Where is Ann?": ["In Oslo."]}


@pytest.mark.parametrize(
    ("texts", "writes"),
    [
        ([f"What is {place}?" for place in range(140)], [64, 128, 140]),
        ([f"{place} {'long ' * 1_500}" for place in range(5)], [5]),
    ],
)
async def test_a_write_takes_few_messages_into_the_graph(memory: Memory, texts: list[str], writes: list[int]) -> None:
    await memory.settled()
    memory._services.owed.nudge = lambda scope=None: None  # type: ignore[method-assign]  # the test pays
    await memory.record_messages("trip", [NewMessage(Role.USER, text) for text in texts])
    store, observed = memory._services.finalizer._observer._store, list[int]()
    original = GraphStore.drain_changes

    def counting(graph: GraphStore) -> GraphChanges:
        observed.append(sum(node.type == "query" for node in graph.nodes()))
        return original(graph)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GraphStore, "drain_changes", counting)
        assert await memory._services.finalizer._observer.observe(TRIP) == len(texts)
    assert observed == writes
    async with store.view() as view:
        session = await view.sessions.get(TRIP)
    assert session is not None and session.observed_seq == len(texts)


async def test_a_message_that_changes_while_it_is_added_is_added_as_it_then_is(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    [asked] = (await memory.record_messages("trip", said("Where is Ann?"))).message_ids
    amend = partial(memory.update_memory, asked, {"text": "Where is Bob?"}, expected_revision=1)
    amended = []

    def observe_and_amend(*given: Any) -> None:
        if not amended:
            amended.append(anyio.from_thread.run(amend))
        observe_messages(*given)

    monkeypatch.setattr(observer, "observe_messages", observe_and_amend)
    assert await memory._services.finalizer._observer.observe(TRIP) == 1
    assert list(texts_of(await graph_of(memory), "query")) == ["Where is Bob?"]


async def test_a_finalized_session_is_not_observed(database: Path, store: SqliteStore) -> None:
    async with open_memory(database) as memory:
        memory._services.owed.nudge = lambda scope: None  # type: ignore[method-assign]  # as if killed before it was paid
        await memory.record_messages("trip", talk(3))
    async with store.transaction() as transaction:
        session = await transaction.sessions.get(TRIP)
        assert session is not None
        await transaction.sessions.set_state(session, SessionState.FINALIZED, now_ms=START_MS)
    async with open_memory(database) as memory:
        assert await memory._services.finalizer._observer.observe(TRIP) == 0
        assert (await graph_of(memory)).stats().nodes == 0


async def test_a_pins_message_is_pinned_in_the_graph_when_the_session_closes(memory: Memory) -> None:
    recorded = await memory.record_messages("trip", said("Which flight is it?", "SK 4711 to Oslo."))
    await memory.create_pin(
        CreatePinRequest("trip", "Anna Keller flies SK 4711.", source_message_id=recorded.message_ids[0])
    )
    await memory.finalize_session("trip")
    graph = await graph_of(memory)
    query = graph.node(graph.node_of_record(recorded.message_ids[0]) or "")
    assert query.pinned
    assert "Anna Keller" in [graph.node(edge.to_id).text for edge in graph.edges_of(query.id)]
