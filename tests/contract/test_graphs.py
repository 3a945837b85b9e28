"""`ports.graphs`: what is saved is loaded, completely or since a revision, and never another scope's."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import anyio
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.graph import (
    EdgeKey,
    EdgeType,
    GraphChanges,
    GraphContents,
    GraphEdge,
    GraphNode,
    GraphState,
    NodeType,
    NodeWeights,
)
from kalito_mcp.domain.scope import LOCAL_OWNER, Scope
from kalito_mcp.domain.sessions import SessionState
from kalito_mcp.domain.sparse_vectors import SparseVector
from kalito_mcp.errors import InvalidInput, SessionNotFound
from kalito_mcp.ports.store import Store
from kalito_mcp.records.sessions import ensure_session
from tests.contract.conftest import Backend
from tests.drafts import message
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio
AGENT = Scope()
TRIP = Scope(session="trip")
NAMES = "abcdef"
TYPES = list(EdgeType)


def node(node_id: str, *, text: str | None = "Where is Ann?", repeat: float = 1.0) -> GraphNode:
    return GraphNode(
        id=node_id,
        type=NodeType.QUERY,
        created_at=START_MS,
        last_access=START_MS,
        text=text,
        weights=NodeWeights(repeat=repeat),
    )


def edge(
    from_id: str, to_id: str, edge_type: EdgeType = EdgeType.SIMILAR_TO, weight: float = 0.8, *, at: int = START_MS
) -> GraphEdge:
    return GraphEdge(from_id, to_id, edge_type, weight, at, at)


async def save(
    store: Store,
    scope: Scope = AGENT,
    *,
    nodes: Sequence[GraphNode] = (),
    edges: Sequence[GraphEdge] = (),
    removed_nodes: Sequence[str] = (),
    removed_edges: Sequence[EdgeKey] = (),
    embedder: str = "test",
) -> GraphState:
    changes = GraphChanges(nodes=nodes, edges=edges, removed_nodes=removed_nodes, removed_edges=removed_edges)
    async with store.transaction() as transaction:
        if scope.session is not None:
            await ensure_session(transaction.sessions, scope, now_ms=START_MS)
        return await transaction.graphs.save(scope, changes, embedder=embedder)


async def load(store: Store, scope: Scope = AGENT) -> GraphContents:
    async with store.view() as view:
        contents = await view.graphs.load(scope)
        assert contents.state == await view.graphs.state(scope)
    return contents


def shape(contents: GraphContents) -> tuple[list[str], list[str]]:
    return [one.id for one in contents.nodes], [one.id for one in contents.edges]


async def test_where_there_is_no_graph_it_is_empty_at_revision_0(store: Store) -> None:
    for scope in (AGENT, TRIP, Scope(owner="ann", agent="coach")):
        contents = await load(store, scope)
        assert shape(contents) == ([], [])
        assert contents.state == GraphState(revision=0, slept_at=None, embedder=None)


async def test_a_node_comes_back_with_every_field(store: Store) -> None:
    full = GraphNode(
        id="q:1",
        type=NodeType.ANSWER,
        created_at=START_MS - 5,
        last_access=START_MS + 5,
        text="Åsa said “42”, \x00 and 🙂",
        canonical_key="00ff",
        summary="What Åsa said",
        source_node_ids=("q:9", 'q"[1],', ""),
        source_record_ids=("msg_7", "pin_ü"),
        embedding=SparseVector.of({3: 1, 16_383: 2, 9: 1}),
        weights=NodeWeights(repeat=4.5, feedback=-0.1),
        pinned=True,
    )
    bare = GraphNode(id="q:2", type=NodeType.ENTITY, created_at=0, last_access=0)
    await save(store, nodes=[bare, full])
    [first, second] = (await load(store)).nodes
    assert first.embedding is not None
    assert full.embedding is not None
    assert np.array_equal(first.embedding.indices, full.embedding.indices)
    assert np.array_equal(first.embedding.values, full.embedding.values)
    assert replace(first, embedding=None) == replace(full, embedding=None)
    assert second == bare


async def test_an_embedding_of_nothing_is_not_the_same_as_none(store: Store) -> None:
    await save(store, nodes=[replace(node("a"), embedding=SparseVector.of({})), node("b")])
    [empty, none] = (await load(store)).nodes
    assert empty.embedding is not None
    assert len(empty.embedding) == 0
    assert none.embedding is None


async def test_an_edge_comes_back_with_every_field_and_each_type_between_two_nodes_is_its_own(store: Store) -> None:
    edges = [GraphEdge("a", "b", edge_type, 0.1 + 0.2, START_MS - 1, START_MS + 1) for edge_type in TYPES]
    await save(store, nodes=[node("a"), node("b")], edges=[*edges, edge("b", "a", TYPES[0])])
    loaded = (await load(store)).edges
    assert sorted(loaded[:4], key=lambda one: TYPES.index(one.type)) == edges
    assert loaded[4] == edge("b", "a", TYPES[0])


async def test_nodes_come_by_id_and_edges_by_their_ends_whatever_order_they_were_saved_in(store: Store) -> None:
    ids = ["b", "ä", "Z", "a", "10", "9"]
    similar = [edge(one, other) for one, other in pairwise([*reversed(ids), ids[-1]])]
    await save(store, nodes=[node(one) for one in ids], edges=[edge("a", "9", EdgeType.HAS_FEEDBACK), *similar])
    contents = await load(store)
    assert [one.id for one in contents.nodes] == sorted(ids)
    ends = [(one.from_id, one.type, one.to_id) for one in contents.edges]
    assert ends == sorted(ends)
    assert len(ends) == 7


async def test_saving_again_replaces_a_node_and_an_edge_and_keeps_the_others(store: Store) -> None:
    await save(store, nodes=[node("a"), node("b")], edges=[edge("a", "b"), edge("b", "a")])
    await save(store, nodes=[node("a", text="new", repeat=2)], edges=[edge("a", "b", weight=0.9, at=START_MS + 9)])
    contents = await load(store)
    assert [(one.text, one.weights.repeat) for one in contents.nodes] == [("new", 2.0), ("Where is Ann?", 1.0)]
    assert [(one.weight, one.last_access) for one in contents.edges] == [(0.9, START_MS + 9), (0.8, START_MS)]


async def test_saving_nothing_keeps_the_revision_and_makes_no_graph(store: Store) -> None:
    assert await save(store) == GraphState()
    before = await save(store, nodes=[node("a")])
    assert await save(store, embedder="another") == before
    assert (await load(store)).state == before


async def test_every_change_moves_the_revision(store: Store) -> None:
    states = [
        await save(store, nodes=[node("a"), node("b"), node("c")], edges=[edge("a", "b"), edge("b", "c")]),
        await save(store, nodes=[node("a", repeat=2)]),
        await save(store, edges=[edge("a", "c")]),
        await save(store, removed_edges=[("b", EdgeType.SIMILAR_TO, "c")]),
        await save(store, nodes=[node("d")]),
        await save(store, removed_nodes=["d"]),
    ]
    assert all(one.revision < other.revision for one, other in pairwise(states))


async def test_a_removed_node_takes_its_edges_along_in_and_out_listed_or_not(store: Store) -> None:
    edges = [edge("a", "b"), edge("b", "c"), edge("c", "a"), edge("a", "c")]
    await save(store, nodes=[node(one) for one in "abc"], edges=edges)
    await save(store, removed_nodes=["b"], removed_edges=[("a", EdgeType.SIMILAR_TO, "b")])
    assert shape(await load(store)) == (["a", "c"], ["a::similar_to::c", "c::similar_to::a"])


async def test_only_the_named_edge_of_several_between_two_nodes_is_removed(store: Store) -> None:
    await save(
        store,
        nodes=[node("a"), node("b")],
        edges=[edge("a", "b"), edge("b", "a"), edge("a", "b", EdgeType.RESPONDED_WITH)],
    )
    await save(store, removed_edges=[("a", EdgeType.SIMILAR_TO, "b")])
    assert shape(await load(store))[1] == ["a::responded_with::b", "b::similar_to::a"]


async def test_removing_what_is_not_there_is_no_error(store: Store) -> None:
    await save(store, nodes=[node("a")])
    await save(store, removed_nodes=["ghost"], removed_edges=[("a", EdgeType.SIMILAR_TO, "ghost")])
    assert shape(await load(store)) == (["a"], [])


@pytest.mark.parametrize("ends", [("a", "ghost"), ("ghost", "a")])
async def test_an_edge_without_its_ends_is_refused_and_nothing_of_the_save_stays(
    store: Store, ends: tuple[str, str]
) -> None:
    before = await save(store, nodes=[node("a")])
    with pytest.raises(InvalidInput):
        await save(store, nodes=[node("b")], edges=[edge("a", "b"), edge(*ends)])
    contents = await load(store)
    assert shape(contents) == (["a"], [])
    assert contents.state == before
    await save(store, nodes=[node("b")], edges=[edge("a", "b")])


async def test_the_state_keeps_when_it_slept_and_whose_vectors_they_are(store: Store) -> None:
    await save(store, nodes=[node("a")], embedder="one")
    async with store.transaction() as transaction:
        await transaction.graphs.set_slept_at(AGENT, START_MS + 7)
        assert (await transaction.graphs.state(AGENT)).slept_at == START_MS + 7
    last = await save(store, nodes=[node("b")], embedder="two")
    assert (last.slept_at, last.embedder) == (START_MS + 7, "two")
    assert (await load(store)).state == last


async def test_when_an_empty_graph_slept_is_kept_too(store: Store) -> None:
    async with store.transaction() as transaction:
        await transaction.graphs.set_slept_at(AGENT, START_MS)
    assert (await load(store)).state.slept_at == START_MS


async def test_the_graphs_of_owners_agents_and_sessions_never_meet(store: Store) -> None:
    scopes = [
        Scope("ann", "x"),
        Scope("ann", "y"),
        Scope("bob", "x"),
        Scope("ann", "x", "one"),
        Scope("ann", "y", "two"),
        Scope("bob", "x", "one"),
    ]
    for number, scope in enumerate(scopes):
        await save(store, scope, nodes=[node("a", text=f"{number}"), node("b")], edges=[edge("a", "b", weight=number)])
    for number, scope in enumerate(scopes):
        contents = await load(store, scope)
        assert [one.text for one in contents.nodes] == [f"{number}", "Where is Ann?"]
        assert [one.weight for one in contents.edges] == [number]
    await save(store, scopes[0], removed_nodes=["a"])
    async with store.transaction() as transaction:
        assert await transaction.graphs.remove(scopes[3]) == 2
    assert [len((await load(store, scope)).nodes) for scope in scopes] == [1, 2, 2, 0, 2, 2]


async def test_a_session_needs_no_agent_to_be_found_and_another_agents_is_not(store: Store) -> None:
    await save(store, Scope("ann", "coach", "trip"), nodes=[node("a")])
    assert shape(await load(store, Scope("ann", None, "trip"))) == (["a"], [])
    for scope in (Scope("ann", "default", "trip"), Scope("bob", None, "trip"), Scope("ann", None, "trap")):
        assert shape(await load(store, scope)) == ([], [])
        async with store.transaction() as transaction:
            assert await transaction.graphs.remove(scope) == 0
            with pytest.raises(SessionNotFound):
                await transaction.graphs.save(scope, GraphChanges(nodes=[node("b")]), embedder="test")
            with pytest.raises(SessionNotFound):
                await transaction.graphs.set_slept_at(scope, START_MS)


async def test_a_scope_without_agent_and_session_is_the_default_agents(store: Store) -> None:
    await save(store, Scope(), nodes=[node("a")])
    assert shape(await load(store, Scope(agent="default"))) == (["a"], [])


async def test_a_removed_graph_is_gone_and_its_session_is_not(store: Store) -> None:
    await save(store, TRIP, nodes=[node("a"), node("b")], edges=[edge("a", "b")])
    async with store.transaction() as transaction:
        assert await transaction.graphs.remove(TRIP) == 2
        assert await transaction.graphs.remove(TRIP) == 0
    contents = await load(store, TRIP)
    assert shape(contents) == ([], [])
    assert contents.state == GraphState()
    async with store.view() as view:
        assert await view.sessions.get(TRIP) is not None


async def test_a_graph_that_was_removed_and_made_again_has_a_later_revision(store: Store) -> None:
    for number in range(5):
        held = await save(store, nodes=[node(f"old{number}")])
    async with store.transaction() as transaction:
        await transaction.graphs.remove(AGENT)
    new = await save(store, nodes=[node("new")])
    assert new.revision > held.revision
    assert shape(await load(store)) == (["new"], [])


async def test_finalized_sessions_with_a_graph_are_idle_from_a_moment_on_oldest_first(store: Store) -> None:
    for moment, (name, agent, state, has_graph) in enumerate(
        [
            ("open", "coach", SessionState.OPEN, True),
            ("late", "coach", SessionState.FINALIZED, True),
            ("early", "coach", SessionState.FINALIZED, True),
            ("bare", "coach", SessionState.FINALIZED, False),
            ("closing", "coach", SessionState.FINALIZING, True),
            ("other", "default", SessionState.FINALIZED, True),
        ]
    ):
        scope = Scope(agent=agent, session=name)
        await save(store, scope, nodes=[node("a")] if has_graph else [])
        async with store.transaction() as transaction:
            session = await ensure_session(transaction.sessions, scope, now_ms=START_MS)
            at = START_MS + (100 if name == "late" else moment)
            await transaction.sessions.set_state(session, state, now_ms=at)
    await save(store, Scope(agent="coach"), nodes=[node("a")])

    async def idle(scope: Scope, *, before_ms: int = START_MS + 101, limit: int = 9) -> Sequence[str]:
        async with store.view() as view:
            return await view.graphs.idle_sessions(scope, before_ms=before_ms, limit=limit)

    assert await idle(Scope(agent="coach")) == ["early", "late"]
    assert await idle(Scope(agent="coach"), before_ms=START_MS + 100) == ["early"]
    assert await idle(Scope(agent="coach"), limit=1) == ["early"]
    assert await idle(Scope()) == ["other"]
    assert await idle(Scope(owner="ann", agent="coach")) == []


async def test_a_graph_is_due_that_slept_before_a_moment_and_was_written_to_since(store: Store) -> None:
    async def wrote(
        name: str, *, began: int = 0, at: int = 60, said: int = 60, slept: int | None = None, is_open: bool = True
    ) -> Scope:
        scope = Scope(agent="coach", session=name)
        async with store.transaction() as transaction:
            session = await ensure_session(transaction.sessions, scope, now_ms=START_MS + began)
            said_then = message("Where is Ann?", created_at=START_MS + said)
            await transaction.conversations.append_messages(session, [said_then], now_ms=START_MS + at)
            if slept is not None:
                await transaction.graphs.set_slept_at(scope, START_MS + slept)
            if not is_open:
                await transaction.sessions.set_state(session, SessionState.FINALIZED, now_ms=START_MS + at)
        return scope

    never = await wrote("never", at=70)
    before = await wrote("before", slept=30)
    await wrote("young", began=55)
    await wrote("lately", slept=55)
    await wrote("unchanged", at=30, slept=30)
    await wrote("imported", said=5)
    await wrote("closed", is_open=False)

    async def due(owner: str = LOCAL_OWNER, limit: int = 9) -> Sequence[tuple[Scope, int | None]]:
        bounds = {"before_ms": START_MS + 50, "since_ms": START_MS + 10, "limit": limit}
        async with store.view() as view:
            return await view.graphs.due(owner, **bounds)

    of_sessions = [(before, START_MS + 30), (never, None)]
    assert await due() == of_sessions
    assert await due(limit=1) == of_sessions[:1]
    await save(store, Scope(agent="coach"), nodes=[node("a")])
    assert await due() == [*of_sessions, (Scope(agent="coach"), None)]
    async with store.transaction() as transaction:
        await transaction.graphs.set_slept_at(Scope(agent="coach"), START_MS + 70)
    assert await due() == of_sessions
    assert await due("ann") == []


async def test_an_error_inside_a_write_leaves_nothing_of_a_graph(store: Store) -> None:
    before = await save(store, nodes=[node("a"), node("b")], edges=[edge("a", "b")])

    class Abandoned(Exception):
        pass

    for removes in (False, True):
        with pytest.raises(Abandoned):
            async with store.transaction() as transaction:
                await transaction.graphs.save(
                    AGENT, GraphChanges(nodes=[node("c")], removed_nodes=["a"]), embedder="another"
                )
                await transaction.graphs.set_slept_at(AGENT, START_MS)
                if removes:
                    await transaction.graphs.remove(AGENT)
                raise Abandoned
        contents = await load(store)
        assert shape(contents) == (["a", "b"], ["a::similar_to::b"])
        assert contents.state == before


async def test_a_save_cancelled_at_any_moment_is_whole_or_absent(store: Store) -> None:
    outcomes = set()
    for steps in range(0, 400, 10):
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                changes = {"nodes": [node("a"), node("b")], "edges": [edge("a", "b")], "removed_nodes": ["c"]}
                tasks.start_soon(lambda changes=changes: save(store, **changes))
                for _ in range(steps):
                    await anyio.lowlevel.checkpoint()
                scope.cancel()
        outcomes.add(tuple(map(len, shape(await load(store)))))
        await save(store, nodes=[node("c")], removed_nodes=["a", "b"])
    assert outcomes <= {(0, 0), (1, 0), (2, 1)}


async def test_a_write_sees_its_own_changes_and_a_view_nothing_after_its_first_read(backend: Backend) -> None:
    reading, writing = await backend.open(), await backend.open()
    before = await save(writing, nodes=[node("a")])
    async with reading.view() as view:
        assert await view.graphs.state(AGENT) == before
        async with writing.transaction() as transaction:
            state = await transaction.graphs.save(AGENT, GraphChanges(nodes=[node("b")]), embedder="test")
            assert shape(await transaction.graphs.load(AGENT)) == (["a", "b"], [])
            assert await transaction.graphs.state(AGENT) == state
        assert shape(await view.graphs.load(AGENT)) == (["a"], [])
        assert await view.graphs.state(AGENT) == before
    assert shape(await load(reading)) == (["a", "b"], [])


async def test_a_graph_of_many_pages_comes_back_whole(store: Store) -> None:
    ids = [f"n{number:04}" for number in range(2_345)]
    ring = [edge(one, other) for one, other in zip(ids, [*ids[1:], ids[0]], strict=True)]
    await save(store, nodes=[node("first")])
    await save(store, nodes=[node(one) for one in reversed(ids)], edges=ring)
    whole = await load(store)
    assert whole.edges == ring
    assert [one.id for one in whole.nodes] == ["first", *ids]


NODE = st.sampled_from(NAMES)
STEP = st.one_of(
    st.tuples(st.just("node"), NODE, st.floats(0, 9)),
    st.tuples(st.just("edge"), st.tuples(NODE, st.sampled_from(TYPES), NODE), st.floats(0, 1)),
    st.tuples(st.just("remove node"), NODE, st.just(0.0)),
    st.tuples(st.just("remove edge"), st.tuples(NODE, st.sampled_from(TYPES), NODE), st.just(0.0)),
)


@given(batches=st.lists(st.lists(STEP, max_size=6), max_size=6))
async def test_any_saves_store_the_same_graph_as_memory(
    store: Store, batches: list[list[tuple[str, object, float]]]
) -> None:
    async with store.transaction() as transaction:
        await transaction.graphs.remove(AGENT)
    nodes: dict[str, float] = {}
    edges: dict[EdgeKey, float] = {}
    for batch in batches:
        before = dict(nodes), dict(edges)
        for kind, name, value in batch:
            if kind == "node":
                nodes[str(name)] = value
            elif kind == "edge" and name[0] != name[2] and {name[0], name[2]} <= nodes.keys():  # type: ignore[index]
                edges[name] = value  # type: ignore[index]
            elif kind == "remove node":
                nodes.pop(str(name), None)
                edges = {key: weight for key, weight in edges.items() if name not in key}
            elif kind == "remove edge":
                edges.pop(name, None)  # type: ignore[call-overload]
        await save(
            store,
            nodes=[node(one, repeat=repeat) for one, repeat in nodes.items() if before[0].get(one) != repeat],
            edges=[
                edge(key[0], key[2], key[1], weight) for key, weight in edges.items() if before[1].get(key) != weight
            ],
            removed_nodes=[one for one in before[0] if one not in nodes],
            removed_edges=[key for key in before[1] if key not in edges],
        )
        contents = await load(store)
        assert {one.id: one.weights.repeat for one in contents.nodes} == nodes
        assert {(one.from_id, one.type, one.to_id): one.weight for one in contents.edges} == edges
