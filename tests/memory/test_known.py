"""What is known, as a person reads it and puts it right: statements, what was found, and what disagrees."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from kalito_mcp import CreatePinRequest, Memory, NewMessage, Role, open_memory
from kalito_mcp.domain.kinds import Kind
from kalito_mcp.domain.memory_records import Editor, EditorType
from kalito_mcp.domain.records import PIN_IMPORTANCE, Reach
from kalito_mcp.domain.scope import Limits
from kalito_mcp.domain.statements import Standing, Statement, Subject
from kalito_mcp.errors import AccessDenied, Conflict, InvalidInput, RecordNotFound
from tests.scripted import CountedIds, ScriptedClock

pytestmark = pytest.mark.anyio
ANN = Editor(EditorType.HUMAN, "ann")


@pytest.fixture
async def memory(database: Path, clock: ScriptedClock) -> AsyncIterator[Memory]:
    async with open_memory(database, clock=clock, ids=CountedIds()) as opened:
        yield opened


async def pinned(memory: Memory, text: str, *, session: str = "s", reach: Reach = Reach.PERSON) -> str:
    return (await memory.create_pin(CreatePinRequest(session, text, scope=reach))).id


async def found_in(memory: Memory, *texts: str, session: str = "s") -> list[str]:
    """The ids of the automatic pins of messages of the user, newest first."""
    await memory.record_messages(session, [NewMessage(Role.USER, text) for text in texts])
    await memory.settled()
    return [one.id for one in await memory.records.inbox()]


def said(statements: Sequence[Statement]) -> list[tuple[str, Standing]]:
    return [(one.record.text, one.standing) for one in statements]


async def test_the_newest_of_alike_statements_is_first_and_the_others_follow(
    memory: Memory, clock: ScriptedClock
) -> None:
    oslo = await pinned(memory, "My office is in the harbour of Oslo.")
    clock.advance(1_000)
    bergen = await memory.create_pin(
        CreatePinRequest("s", "My office is in the harbour of Bergen.", scope=Reach.PERSON, replaces=(oslo,))
    )
    clock.advance(1_000)
    wrong = await pinned(memory, "My office in the harbour is large.")
    await memory.forget(wrong)
    tea = await pinned(memory, "I drink black tea.")
    first, second = await memory.records.statements()
    assert (first.first.record.id, first.others, first.project) == (tea, (), None)
    assert (second.first.record.id, second.first.standing) == (bergen.id, Standing.CURRENT)
    assert said(second.others) == [
        ("My office in the harbour is large.", Standing.FORGOTTEN),
        ("My office is in the harbour of Oslo.", Standing.SUPERSEDED),
    ]
    assert [one.superseded_by for one in second.others] == [None, bergen.id]


async def test_statements_are_by_person_and_project_and_by_subject(memory: Memory) -> None:
    here = await memory.in_project("boat")
    await here.record_messages("b", [NewMessage(Role.USER, "Hello.")])
    for text, kind in (("The mast is red.", Kind.FACT), ("Always moor at noon.", Kind.RULE)):
        pin = await pinned(here, text, session="b", reach=Reach.PROJECT)
        await here.update_memory(pin, {"kind": str(kind)}, expected_revision=1)
    waits = await pinned(here, "The sail waits for its repair.", session="b", reach=Reach.SESSION)
    await here.update_memory(waits, {"kind": str(Kind.OPEN)}, expected_revision=1)
    await pinned(here, "Only this conversation knows.", session="b", reach=Reach.SESSION)
    await memory.remember("note", {"text": "I am called Ines.", "scope": "person"})
    listed = [(one.project, one.first.subject, one.first.record.text) for one in await memory.records.statements()]
    assert listed == [
        (None, Subject.FACTS, "I am called Ines."),
        ("boat", Subject.RULES, "Always moor at noon."),
        ("boat", Subject.FACTS, "The mast is red."),
        ("boat", Subject.OPEN, "The sail waits for its repair."),
    ]
    elsewhere = await memory.in_project("personal")
    assert [one.project for one in await elsewhere.records.statements()] == [None]


async def test_what_was_found_is_kept_and_that_is_taken_back(memory: Memory) -> None:
    [pin] = await found_in(memory, "I never eat nuts.")
    before = await memory.records.get(pin)
    kept = await memory.records.keep(pin, Reach.PERSON, editor=ANN)
    assert kept.content["importance_score"] == PIN_IMPORTANCE > before.content["importance_score"]
    assert await memory.records.inbox() == []
    assert (await memory.records.keep(pin, editor=ANN)).revision == kept.revision
    back = await memory.records.revert(pin, before.revision, editor=ANN)
    assert (back.content, back.revision) == (before.content, kept.revision + 1)
    assert [one.id for one in await memory.records.inbox()] == [pin]
    edits = await memory.records.history(pin)
    assert [one["editor_type"] for one in edits] == ["system", "human", "human"]


async def test_what_was_kept_outlives_the_words_it_was_found_in(memory: Memory) -> None:
    kept, followed = await found_in(memory, "I never eat nuts.", "I always drink black tea.")
    await memory.records.keep(kept, editor=ANN)
    for pin in (kept, followed):
        source = (await memory.records.get(pin)).content["source_message_id"]
        await memory.update_memory(source, {"text": "Good morning."}, expected_revision=1)
    assert not (await memory.records.get(kept)).is_deleted
    assert (await memory.records.get(followed)).is_deleted


async def test_what_was_found_is_dropped_and_comes_back(memory: Memory) -> None:
    [pin] = await found_in(memory, "I never eat nuts.")
    await memory.forget(pin, editor=ANN)
    assert await memory.records.inbox() == []
    with pytest.raises(Conflict, match="forgotten"):
        await memory.records.keep(pin)
    await memory.restore(pin, editor=ANN)
    assert [one.id for one in await memory.records.inbox()] == [pin]


async def test_whose_it_is_is_decided_and_taken_back(memory: Memory) -> None:
    [pin] = await found_in(memory, "I never eat nuts.")
    before = await memory.records.get(pin)
    assert "scope" not in (await memory.records.keep(pin, Reach.SESSION)).content
    assert (await memory.records.keep(pin, Reach.PERSON)).content["scope"] == "person"
    assert (await memory.records.revert(pin, before.revision)).content == before.content
    with pytest.raises(InvalidInput, match="project"):
        await memory.records.keep(pin, Reach.PROJECT)
    with pytest.raises(InvalidInput, match="planet"):
        await memory.records.keep(pin, "planet")
    with pytest.raises(InvalidInput, match="only pins and short notes"):
        await memory.records.keep("msg_1")
    with pytest.raises(RecordNotFound):
        await memory.records.keep("pin_x")


async def test_a_note_is_made_the_persons_and_goes_back_to_its_project(memory: Memory) -> None:
    here = await memory.in_project("boat")
    [note] = await here.remember("note", {"text": "The mast is red."})
    await here.records.keep(note.id, Reach.PERSON)
    assert [(one.project, one.first.record.id) for one in await memory.records.statements()] == [(None, note.id)]
    back = await here.records.revert(note.id, note.revision)
    assert (back.content, back.project) == (note.content, "boat")


async def test_only_a_person_says_that_something_is_kept(memory: Memory) -> None:
    pin = await pinned(memory, "I drink black tea.")
    for changes in ({"kept_at": 1}, {"holds_with": ["msg_1"]}):
        with pytest.raises(InvalidInput, match="a person"):
            await memory.update_memory(pin, changes, expected_revision=1)


async def test_two_that_disagree_are_shown_until_one_replaces_the_other(memory: Memory, clock: ScriptedClock) -> None:
    oslo = await pinned(memory, "The user lives in Oslo.")
    clock.advance(1_000)
    bergen = await pinned(memory, "The user lives in Bergen.")
    [found] = await memory.records.disagreements()
    assert (found.newer.id, found.older.id) == (bergen, oslo)
    assert (found.newer_values, found.older_values) == (("Bergen",), ("Oslo",))
    for kept, replaced in ((bergen, oslo), (oslo, bergen)):
        before = (await memory.records.get(kept)).revision
        await memory.records.replace(kept, replaced, editor=ANN)
        assert await memory.records.disagreements() == []
        context = (await memory.build_context("s", 900)).text
        assert [(await memory.records.get(one)).text in context for one in (kept, replaced)] == [True, False]
        with pytest.raises(Conflict, match="already"):
            await memory.records.replace(replaced, kept)
        await memory.records.revert(kept, before, editor=ANN)
        assert len(await memory.records.disagreements()) == 1


async def test_two_that_hold_both_are_not_asked_about_again(memory: Memory) -> None:
    norwegian = await pinned(memory, "The user speaks Norwegian.")
    german = await pinned(memory, "The user speaks German.")
    assert len(await memory.records.disagreements()) == 1
    kept = await memory.records.keep_both(norwegian, german, editor=ANN)
    assert kept.content["holds_with"] == [german]
    assert await memory.records.disagreements() == []
    await memory.records.revert(norwegian, 1, editor=ANN)
    assert len(await memory.records.disagreements()) == 1
    await memory.forget(german)
    assert await memory.records.disagreements() == []
    with pytest.raises(InvalidInput, match="twice"):
        await memory.records.keep_both(norwegian, norwegian)
    with pytest.raises(RecordNotFound):
        await memory.records.keep_both(norwegian, "pin_x")
    with pytest.raises(RecordNotFound):
        await memory.records.replace(norwegian, "pin_x")


async def test_what_is_of_two_projects_does_not_disagree(memory: Memory) -> None:
    for name, port in (("a", 8080), ("b", 9090)):
        here = await memory.in_project(name)
        await pinned(here, f"The server listens on port {port}.", session=name, reach=Reach.PROJECT)
    assert await memory.records.disagreements() == []
    [a, b] = (group.first.record.id for group in await memory.records.statements())
    with pytest.raises(RecordNotFound):
        await memory.records.replace(a, b)


async def test_nothing_beyond_the_limits_is_shown_or_decided(memory: Memory) -> None:
    there = await memory.in_project("b")
    await there.record_messages("t", [NewMessage(Role.USER, "We never use inline styles in this project.")])
    await memory.settled()
    [theirs] = await there.records.inbox()
    port = await pinned(there, "The server listens on port 9090.", session="t", reach=Reach.PROJECT)
    await pinned(there, "The server listens on port 8080.", session="t", reach=Reach.PROJECT)
    limited = memory.of_owner(memory.place.owner, Limits(project="a"))
    assert await limited.records.inbox() == []
    assert await limited.records.statements() == []
    assert await limited.records.disagreements() == []
    for refused in (
        limited.records.keep(theirs.id),
        limited.records.replace(port, theirs.id),
        limited.records.keep_both(port, theirs.id),
    ):
        with pytest.raises((RecordNotFound, AccessDenied)):
            await refused
    assert len(await there.records.disagreements()) == 1
