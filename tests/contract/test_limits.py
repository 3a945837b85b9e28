"""Every read of a port within limits returns, counts and finds only what is within them; every write lands there."""

from itertools import product
from typing import Final

import numpy as np
import pytest

from kalito_mcp.domain.graph import GraphChanges
from kalito_mcp.domain.kinds import Kind
from kalito_mcp.domain.memory_records import DELETED_AT, EditType
from kalito_mcp.domain.records import Reach, RecordType
from kalito_mcp.domain.scope import NO_LIMITS, PERSONAL, Limits, Scope
from kalito_mcp.errors import SessionNotFound
from kalito_mcp.ports.store import Store
from kalito_mcp.records.sessions import ensure_session
from tests import drafts
from tests.contract.test_graphs import node
from tests.contract.test_isolation import HOSTILE
from tests.contract.test_vectors import DIMENSION, HASHED
from tests.index_reads import shown, similar_terms, terms_with_prefixes
from tests.scripted import START_MS
from tests.scripted_embedder import hashed_vector

pytestmark = pytest.mark.anyio
AGENTS: Final = ("coder", "cook")
PROJECTS: Final = (PERSONAL, "shop", "garden")
LIMITS: Final = [
    NO_LIMITS,
    Limits(project="shop"),
    Limits(agent="coder"),
    Limits("coder", "shop"),
    Limits(project="new"),
    Limits(agent="new"),
]


def reaches(limits: Limits, agent: str, project: str) -> bool:
    return limits.agent in (None, agent) and (limits.project is None or project in (PERSONAL, limits.project))


def session_of(agent: str, project: str) -> Scope:
    return Scope(agent=agent, session=f"{agent} {project}", project=project)


async def remember(store: Store, scope: Scope, name: str) -> None:
    """A message, pins of each reach, a note, a document and a task."""
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, scope, now_ms=START_MS)
        said = [drafts.message(f"kettle message {name}", name=f"speaker {name}")]
        await transaction.conversations.append_messages(session, said, now_ms=START_MS)
        pins = [
            drafts.pin(f"kettle {reach} {name}", record_id=f"pin_{reach} {name}", reach=reach, kind=Kind.OPEN)
            for reach in Reach
        ]
        await transaction.conversations.add_pins(session, pins)
        place = Scope(scope.owner, scope.agent, project=scope.project)
        source = f"kettle/{name}"
        document = drafts.record(
            RecordType.DOCUMENT,
            f"kettle document {name}",
            record_id=f"doc_{name}",
            source=source,
            document_id=f"doc_{name}",
            chunk_index=0,
            total_chunks=1,
        )
        task = drafts.record(RecordType.TASK, f"kettle task {name}", record_id=f"task_{name}", status="pending")
        await transaction.records.add_records(place, [document, task], now_ms=START_MS)
        await transaction.graphs.save(scope, GraphChanges(nodes=[node(f"node {name}")]), embedder="x")


async def filled(store: Store) -> Store:
    for agent, project in product(AGENTS, PROJECTS):
        await remember(store, session_of(agent, project), f"{agent} {project}")
    async with store.transaction() as transaction:
        for agent in AGENTS:
            await transaction.graphs.save(Scope(agent=agent), GraphChanges(nodes=[node("of agent")]), embedder="x")
    return store


def within(limits: Limits, agent: str | None = None) -> set[str]:
    """The names of the places that are reached, of one agent or of all."""
    return {
        f"{one} {project}"
        for one, project in product(AGENTS, PROJECTS)
        if reaches(limits, one, project) and agent in (None, one)
    }


@pytest.mark.parametrize("limits", LIMITS, ids=str)
async def test_sessions_are_named_listed_and_counted_within_limits(store: Store, limits: Limits) -> None:
    await filled(store)
    anywhere = Scope(limits=limits)
    reached = within(limits)
    async with store.view() as view:
        named = [session_of(agent, project).session for agent, project in product(AGENTS, PROJECTS)]
        for name in named:
            found = await view.sessions.get(anywhere.of_session(name or ""))
            assert (found is not None) == (name in reached)
            state = await view.graphs.state(anywhere.of_session(name or ""))
            assert bool(state.revision) == (name in reached)
            loaded = await view.graphs.load(anywhere.of_session(name or ""))
            assert {one.id for one in loaded.nodes} == ({f"node {name}"} if name in reached else set())
        assert {one.id for one in await view.sessions.list_recent(anywhere, limit=99)} == reached
        begun = await view.sessions.list_begun(anywhere, before=None, limit=99)
        assert {one.id for one in begun} == reached
        assert (await view.sessions.census(anywhere))[0] == len(reached)
        totals = await view.sessions.totals(anywhere)
        # Of a person's pin, the session counts.
        assert (totals["sessions"], totals["messages"], totals["pins"]) == (
            len(reached),
            len(reached),
            3 * len(reached),
        )
        assert (totals["tasks"], totals["documents"]) == (len(reached), len(reached))
        agents = {one.partition(" ")[0] for one in reached}
        assert set(await view.sessions.agents(anywhere, limit=9)) == agents
        projects = {one.partition(" ")[2] for one in reached} - {PERSONAL}
        counts = {project: sum(one.endswith(project) for one in reached) for project in projects}
        assert dict(await view.sessions.projects(anywhere, limit=9)) == counts
        for agent in AGENTS:
            has_graph = limits.project is None and limits.agent in (None, agent)
            assert bool((await view.graphs.state(Scope(agent=agent, limits=limits))).revision) == has_graph


@pytest.mark.parametrize("limits", LIMITS, ids=str)
async def test_records_are_named_listed_and_read_within_limits(store: Store, limits: Limits) -> None:
    await filled(store)
    anywhere = Scope(limits=limits)
    async with store.view() as view:
        records = view.records
        for number, (agent, project) in enumerate(product(AGENTS, PROJECTS)):
            name, is_reached = f"{agent} {project}", reaches(limits, agent, project)
            message = 1 + 6 * number
            assert (await view.conversations.message(anywhere, message) is not None) == is_reached
            for record_id in (f"msg_{message}", f"pin_project {name}", f"doc_{name}", f"task_{name}"):
                found = await records.record(anywhere, record_id)
                if record_id.startswith("pin_") and project == PERSONAL:
                    is_reached = reaches(limits, agent, PERSONAL)
                assert (found is not None) == is_reached, record_id
            # What is the person's is of no project, wherever it was said.
            persons = await records.record(anywhere, f"pin_person {name}")
            assert (persons is not None) == reaches(limits, agent, PERSONAL)
            assert bool(await records.parts(anywhere, f"doc_{name}")) == is_reached
            assert bool(await records.of_source(anywhere, f"kettle/{name}")) == is_reached
            place = Scope(agent=agent, project=project, limits=limits)
            assert bool(await records.document(place, f"kettle/{name}")) == is_reached
            assert bool(await records.sources(place, "kettle/")) == is_reached
            left_open = {one.text for one in await records.left_open(place, limit=99)}
            kinds = ("session", "project") if project == PERSONAL else ("session",)
            expected = {f"kettle {kind} {name}" for kind in kinds} if reaches(limits, agent, project) else set()
            assert left_open == expected
        for agent in AGENTS:
            place = Scope(agent=agent, limits=limits)
            reached = within(limits, agent)
            tasks = await records.list_records(place, frozenset({RecordType.TASK}), limit=99)
            assert {one.text for one in tasks} == {f"kettle task {name}" for name in reached}
            scanned = [one.text for one in await records.scan(place, after=None, limit=99)]
            persons_of_all = {
                f"kettle person {agent} {project}" for project in PROJECTS if reaches(limits, agent, PERSONAL)
            }
            expected = {
                f"kettle {kind} {name}"
                for name in reached
                for kind in ("message", "session", "project", "document", "task")
            }
            assert set(scanned) == expected | persons_of_all
            known = {one.text: one.session_id for one in await records.known(place, limit=99)}
            lasting = {f"kettle project {name}" for name in reached if not name.endswith(PERSONAL)}
            assert known.keys() == persons_of_all | lasting
            assert set(known.values()) <= {None, *reached}, "no id of a session beyond"


@pytest.mark.parametrize("limits", LIMITS, ids=str)
async def test_a_search_finds_counts_and_corrects_within_limits(store: Store, limits: Limits) -> None:
    await filled(store)
    async with store.transaction() as transaction:
        for agent, project in product(AGENTS, PROJECTS):
            session = await ensure_session(transaction.sessions, session_of(agent, project), now_ms=START_MS)
            batch = [drafts.message(f"zebra{project[:3]}")]
            await transaction.conversations.append_messages(session, batch, now_ms=START_MS)
    async with store.view() as view:
        for agent in AGENTS:
            place = Scope(agent=agent, limits=limits)
            found = await shown(view, place, "kettl")
            assert all(reaches(limits, agent, one.project or PERSONAL) for one in found)
            scanned = await view.records.scan(place, after=None, limit=999)
            assert {one.record_id for one in found} == {one.id for one in scanned if "kettle" in one.text}
            assert {one.session_id for one in found} <= {None, *within(limits, agent)}
            read = await view.search.in_index(place, lambda index: index.candidates(np.arange(index.records.count)))
            read = list((read or {}).values())
            assert {one.record_id for one in read} >= {one.record_id for one in found}
            assert all(reaches(limits, agent, one.project or PERSONAL) for one in read)
            columns = await view.search.in_index(place, lambda index: index.records)
            names = set() if columns is None else set(columns.name_list) - {None}
            assert names == {f"speaker {name}" for name in within(limits, agent)}
            similar = (await similar_terms(view, place, "zebrashu")).get("zebrashu", ())
            assert [term for term, _ in similar] == (["zebrasho"] if reaches(limits, agent, "shop") else [])
            terms = (await terms_with_prefixes(view, place, "zebra")).get("zebra", ())
            assert set(terms) == {f"zebra{name.partition(' ')[2][:3]}" for name in within(limits, agent)}
        for agent, project in product(AGENTS, PROJECTS):
            named = session_of(agent, project)
            index = await view.search.in_index(Scope(session=named.session, limits=limits), lambda _: True)
            assert bool(index) == reaches(limits, agent, project)


async def test_vectors_within_limits_are_of_what_is_reached(store: Store) -> None:
    await filled(store)
    async with store.transaction() as transaction:
        await transaction.vectors.open_index(HASHED, DIMENSION)
        owed = await transaction.vectors.owed(HASHED, limit=99)
        vectors = np.stack([hashed_vector(one.text, DIMENSION) for one in owed])
        await transaction.vectors.put(HASHED, owed, vectors)
    query = hashed_vector("kettle", DIMENSION)
    async with store.view() as view:
        for limits, agent in product(LIMITS, AGENTS):
            place = Scope(agent=agent, limits=limits)
            near = await view.vectors.nearest(place, HASHED, query, k=99)
            scanned = await view.records.scan(place, after=None, limit=99)
            assert {key for key, _ in near} == {one.cursor for one in scanned}
            for project in PROJECTS:
                of_session = Scope(session=f"{agent} {project}", limits=limits)
                found = await view.vectors.nearest(of_session, HASHED, query, k=99)
                assert bool(found) == reaches(limits, agent, project)


async def test_a_graph_of_a_session_beyond_limits_is_refused(store: Store) -> None:
    await filled(store)
    limits = Limits("coder", "shop")
    async with store.transaction() as transaction:
        with pytest.raises(SessionNotFound):
            await transaction.graphs.save(
                Scope(session="coder garden", limits=limits), GraphChanges(nodes=[node("x")]), embedder="x"
            )


async def test_what_was_erased_beyond_limits_was_never_there(store: Store) -> None:
    await filled(store)
    async with store.transaction() as transaction:
        for record_id in ("msg_1", "msg_7", "msg_13"):
            record = await transaction.records.record(Scope(), record_id)
            assert record is not None
            await transaction.records.purge(record, now_ms=START_MS, texts=[record.text])
    shop, texts = Limits(project="shop"), [f"kettle message coder {project}" for project in PROJECTS]
    async with store.transaction() as transaction:
        stones = [await transaction.records.tombstone(Scope(limits=shop), one) for one in ("msg_1", "msg_7", "msg_13")]
        assert [one is not None for one in stones] == [True, True, False]
        erased = await transaction.records.erased_texts(Scope(limits=shop), RecordType.MESSAGE, texts)
        assert {one.text for one in erased} == set(texts[:2])
        everywhere = await transaction.records.erased_texts(Scope(), RecordType.MESSAGE, texts)
        assert {one.text for one in everywhere} == set(texts)


async def test_what_was_forgotten_beyond_limits_neither_hides_nor_comes_back(store: Store) -> None:
    await filled(store)
    shop = Limits(project="shop")
    async with store.transaction() as transaction:
        records = transaction.records
        for project in PROJECTS:
            await records.forget_values(Scope(agent="coder", project=project), {"boat", project}, now_ms=START_MS)
        asked = {"boat", *PROJECTS}
        # A personal session reads all projects.
        for project in (None, PERSONAL, "shop"):
            place = Scope(agent="coder", project=project, limits=shop)
            assert set(await records.forgotten_values(place, asked)) == {"boat", PERSONAL, "shop"}
        await records.bring_back_values(Scope(agent="coder", limits=shop), asked)
        left = Scope(agent="coder", project="garden")
        assert set(await records.forgotten_values(left, asked)) == {"boat", "garden"}


async def test_hostile_names_of_agents_and_projects_limit_to_themselves(store: Store) -> None:
    for number, name in enumerate(HOSTILE):
        for agent, project in ((name, "p"), ("a0", name)):
            async with store.transaction() as transaction:
                scope = Scope(agent=agent, session=f"{number} {agent} {project}", project=project)
                session = await ensure_session(transaction.sessions, scope, now_ms=START_MS)
                said = [drafts.message(f"secret {number}")]
                await transaction.conversations.append_messages(session, said, now_ms=START_MS)
    async with store.view() as view:
        for number, name in enumerate(HOSTILE):
            for limits, agent in ((Limits(agent=name), name), (Limits(agent="a0", project=name), "a0")):
                found = await shown(view, Scope(agent=agent, limits=limits), "secret")
                assert {one.text for one in found} == {f"secret {number}"}
                listed = await view.sessions.list_recent(Scope(limits=limits), limit=99)
                assert [one.id.partition(" ")[0] for one in listed] == [str(number)]


async def test_a_forgotten_record_is_within_the_limits_that_it_was_in(store: Store) -> None:
    await filled(store)
    async with store.transaction() as transaction:
        record = await transaction.records.record(Scope(), "doc_coder garden")
        assert record is not None
        hidden = drafts.edit(record, {DELETED_AT: START_MS}, edit_type=EditType.DELETE)
        await transaction.records.change(record, hidden)
        for limits, is_reached in ((Limits("coder"), True), (Limits(project="garden"), True), (Limits("cook"), False)):
            found = await transaction.records.record(Scope(limits=limits), record.id)
            assert (found is not None) == is_reached
