"""Projects in the store: where sessions and records belong, moving them, and what each project reads."""

import pytest

from kalito_mcp.domain.memory_records import MemoryRecord
from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import PERSONAL, Limits, Scope
from kalito_mcp.domain.sizes import PartSize
from kalito_mcp.ports.records import AlreadyStored
from kalito_mcp.ports.store import Store
from kalito_mcp.records.sessions import ensure_session
from tests import drafts
from tests.contract.test_isolation import HOSTILE
from tests.index_reads import shown
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio


async def said(store: Store, session_id: str, text: str, project: str | None = None) -> None:
    async with store.transaction() as transaction:
        session = await ensure_session(
            transaction.sessions, Scope(session=session_id, project=project), now_ms=START_MS
        )
        await transaction.conversations.append_messages(session, [drafts.message(text)], now_ms=START_MS)


async def noted(store: Store, text: str, project: str | None = None, *, source: str | None = None) -> MemoryRecord:
    fields = {"source": source or f"note:{text} {project}", "document_id": f"doc {text} {project}", "chunk_index": 0}
    async with store.transaction() as transaction:
        draft = drafts.record(RecordType.DOCUMENT, text, record_id=f"doc {text} {project}", **fields)
        [record] = await transaction.records.add_records(Scope(project=project), [draft], now_ms=START_MS)
        return record


async def texts(store: Store, project: str | None) -> set[str]:
    """The texts that a search and a listing of the project read."""
    scope = Scope(agent="default", project=project)
    async with store.view() as view:
        found = {one.text for one in await shown(view, scope)}
        listed = {
            one.text for one in await view.records.list_records(scope, frozenset({RecordType.DOCUMENT}), limit=100)
        }
        assert listed <= found
        return found


async def test_a_project_reads_its_own_and_what_is_personal(store: Store) -> None:
    await said(store, "a", "kite in one", "one")
    await said(store, "b", "kite in two", "two")
    await said(store, "c", "kite of mine")
    await noted(store, "kite note in one", "one")
    await noted(store, "kite note of mine")
    assert await texts(store, "one") == {"kite in one", "kite of mine", "kite note in one", "kite note of mine"}
    assert await texts(store, "two") == {"kite in two", "kite of mine", "kite note of mine"}
    assert await texts(store, PERSONAL) == await texts(store, "three") == {"kite of mine", "kite note of mine"}
    assert len(await texts(store, None)) == 5


async def test_projects_with_hostile_names_never_reach_each_others_records(store: Store) -> None:
    for number, name in enumerate(HOSTILE):
        await said(store, f"session {number}", f"secret {number}", name)
    for number, name in enumerate(HOSTILE):
        assert await texts(store, name) == {f"secret {number}"}


async def test_a_session_belongs_to_the_project_that_it_was_begun_in(store: Store) -> None:
    await said(store, "a", "x", "one")
    await said(store, "a", "y")  # without a project: into that of the session
    assert await texts(store, "one") == {"x", "y"}


async def test_a_session_moves_with_all_that_belongs_to_it(store: Store) -> None:
    await said(store, "a", "kite", "one")
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, Scope(session="a"), now_ms=START_MS)
        await transaction.conversations.add_pins(session, [drafts.pin("kite pin")])
        await transaction.sessions.move(session, "two")
    assert await texts(store, "one") == set()
    assert await texts(store, "two") == {"kite", "kite pin"}
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, Scope(session="a"), now_ms=START_MS)
        assert session.project == "two"
        await transaction.sessions.move(session, None)
    assert await texts(store, "three") == {"kite", "kite pin"}


async def test_a_record_moves_by_an_edit_that_its_history_tells_of(store: Store) -> None:
    note = await noted(store, "kite", "one")
    async with store.transaction() as transaction:
        moved = await transaction.records.change(note, drafts.edit(note, {"project": "two"}))
    assert moved.project == "two"
    assert (await texts(store, "one"), await texts(store, "two")) == (set(), {"kite"})
    async with store.view() as view:
        [told] = await view.records.edits(moved)
    assert told.before == {"project": "one"}


async def test_a_document_does_not_move_where_its_source_is_known(store: Store) -> None:
    await noted(store, "kite", "one", source="a.txt")
    other = await noted(store, "string", "two", source="a.txt")
    with pytest.raises(AlreadyStored):
        async with store.transaction() as transaction:
            await transaction.records.change(other, drafts.edit(other, {"project": "one"}))
    assert await texts(store, "two") == {"string"}


async def test_a_source_is_looked_up_in_one_project_or_among_the_personal(store: Store) -> None:
    for text, project in (("mine", None), ("of one", "one")):
        await noted(store, text, project, source="dir/a.txt")
    for project, text in ((None, "mine"), (PERSONAL, "mine"), ("one", "of one"), ("new", None)):
        found = [] if text is None else [text]
        async with store.view() as view:
            scope = Scope(project=project)
            assert [one.text for one in await view.records.document(scope, "dir/a.txt")] == found
            sizes = [("dir/a.txt", len(one)) for one in found]
            assert await view.records.sources(scope, "dir/") == sizes
            of_source = [one.text for one in await view.records.of_source(scope, "dir/a.txt")]
            assert of_source == (["mine", "of one"] if project is None else found)


async def test_the_sources_below_a_prefix_have_their_sizes_and_are_in_order(store: Store) -> None:
    for source in ("dir/ü.txt", "dir/a/b.txt", "dir.txt", "dir0.txt", "dirs/a.txt", "DIR/a.txt"):
        await noted(store, f"{source} 日本", source=source)
    hidden = await noted(store, "hidden", source="dir/hidden.txt")
    async with store.transaction() as transaction:
        await transaction.records.change(hidden, drafts.edit(hidden, {"deleted_at": START_MS}))
    async with store.view() as view:
        assert await view.records.sources(Scope(), "dir/") == [("dir/a/b.txt", 18), ("dir/ü.txt", 17)]
        assert await view.records.sources(Scope("another"), "dir/") == []


async def test_a_new_project_has_none_of_the_personal_documents(store: Store) -> None:
    await noted(store, "mine", source="a.txt")
    async with store.view() as view:
        assert await view.records.document(Scope(project="new"), "a.txt") == []
        assert [one.text for one in await view.records.document(Scope(project=PERSONAL), "a.txt")] == ["mine"]


async def test_the_sizes_of_projects_and_agents_are_counted_within_limits(store: Store) -> None:
    for session_id, text, project in (("a", "one", "/one"), ("b", "two", "/one"), ("c", "three", None)):
        await said(store, session_id, text, project)
    await noted(store, "note", "/two")
    forgotten = await noted(store, "forgotten", "/two")
    async with store.transaction() as transaction:
        await transaction.records.change(forgotten, drafts.edit(forgotten, {"deleted_at": START_MS}))
    one = PartSize("default", "/one", sessions=2, messages=2, newest_at=START_MS)
    two = PartSize("default", "/two", records=1)
    personal = PartSize("default", None, sessions=1, messages=1, newest_at=START_MS)
    async with store.view() as view:
        assert set(await view.sessions.sizes(Scope())) == {one, two, personal}
        assert set(await view.sessions.sizes(Scope(limits=Limits(project="/two")))) == {two, personal}
        assert await view.sessions.sizes(Scope(limits=Limits(agent="other"))) == []
        assert await view.sessions.sizes(Scope("somebody else")) == []


async def test_a_renamed_project_keeps_everything(store: Store) -> None:
    await said(store, "a", "kite", "/old")
    await noted(store, "kite note", "/old")
    async with store.transaction() as transaction:
        await transaction.records.rename_project("local", "/old", "/new")
    assert await texts(store, "/new") == {"kite", "kite note"}
    assert await texts(store, "/old") == set()
    async with store.view() as view:
        assert await view.sessions.projects(Scope(), limit=9) == [("/new", 1)]


async def test_two_projects_become_one(store: Store) -> None:
    await said(store, "a", "old kite", "/old")
    await noted(store, "old note", "/old")
    await said(store, "b", "new kite", "/new")
    await noted(store, "new note", "/new")
    async with store.transaction() as transaction:
        await transaction.records.rename_project("local", "/old", "/new")
    assert await texts(store, "/new") == {"old kite", "old note", "new kite", "new note"}
    async with store.view() as view:
        assert await view.sessions.projects(Scope(), limit=9) == [("/new", 2)]
        assert not await view.records.damaged(Scope(), ["doc old note /old"])


async def test_two_projects_with_a_document_of_one_source_stay_two(store: Store) -> None:
    await said(store, "a", "kite", "/old")
    await noted(store, "old", "/old", source="a.txt")
    await noted(store, "new", "/new", source="a.txt")
    with pytest.raises(AlreadyStored):
        async with store.transaction() as transaction:
            await transaction.records.rename_project("local", "/old", "/new")
    assert await texts(store, "/old") == {"kite", "old"}
    assert await texts(store, "/new") == {"new"}
