"""What the editor and the eraser refuse, that the error says what to do, and that nothing is written then."""

import shutil
import sqlite3
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from kalito_mcp import KalitoError, Memory, NewMessage, Role, Settings, open_memory
from kalito_mcp.domain.memory_records import Editor, EditorType
from kalito_mcp.domain.records import Origin, RecordType, Visibility
from kalito_mcp.domain.scope import LOCAL_OWNER, Scope
from kalito_mcp.domain.validation import LimitsPolicy
from kalito_mcp.errors import (
    Conflict,
    InvalidInput,
    RecordNotFound,
    RevisionConflict,
    SessionFinalized,
    TextTooLarge,
)
from kalito_mcp.storage.sqlite.database import SqliteStore
from tests import drafts
from tests.scripted import START_MS, CountedIds, ScriptedClock

pytestmark = pytest.mark.anyio

ANN: Final = Editor(EditorType.HUMAN, "ann")
MALLORY: Final = Scope(owner="mallory")
INDEX: Final = "records_text_data"
"""The segments of the text index; sweeping merges them."""
TABLES: Final = (
    "agents", "sessions", "records", "memory_edits", "record_usage", "tombstones", "graphs", "graph_nodes",
    "graph_edges", INDEX,
)  # fmt: skip
LIMITS: Final = LimitsPolicy(max_text_bytes=1_000, max_document_bytes=10_000)
NOTE, TASK, FORGOTTEN, ERASED, THOUGHT = (
    f"{kind}_{START_MS}_00000000{place}"
    for kind, place in (("document", 2), ("task", 3), ("task", 4), ("task", 5), ("thought", 6))
)
CHAPTERS: Final = "".join(f"# Chapter {place}\n\n" + f"Of chapter {place}. " * 100 + "\n\n" for place in range(3))


def stored(database: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table."""
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
        return {name: connection.execute(f"SELECT * FROM {name} ORDER BY 1, 2").fetchall() for name in TABLES}


SETTINGS: Final = replace(Settings(), limits=LIMITS)


async def remember_some(database: Path) -> int:
    """Store a note, a task, a forgotten and an erased record, a thought, an open and a closed session. Returns how many
    ids were used."""
    ids = CountedIds()
    async with open_memory(database, SETTINGS, clock=ScriptedClock(), ids=ids) as opened:
        for session in ("trip", "closed"):
            await opened.record_messages(session, [NewMessage(Role.USER, "Hello.")])
        await opened.remember("note", {"text": "The keys are in the blue box."})
        for text in ("Book the hut.", "Call Mr Weber.", "Burn the letter."):
            await opened.remember("task", {"text": text})
        await opened.remember("thought", {"text": "They like lakes."})
        await opened.update_memory(NOTE, {"text": "The keys are in the red box."}, expected_revision=1)
        await opened.forget(FORGOTTEN)
        await opened.purge([ERASED])
        await opened.finalize_session("closed")
        await opened.settled()
    return ids.first


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """A folder with such a memory, and how many ids it used."""
    folder = tmp_path_factory.mktemp("prepared")
    return folder, anyio.run(remember_some, folder / "memory.db")


@pytest.fixture
async def memory(prepared: tuple[Path, int], database: Path, clock: ScriptedClock) -> AsyncIterator[Memory]:
    """A copy of it, opened."""
    folder, taken = prepared
    shutil.copytree(folder, database.parent, dirs_exist_ok=True)
    async with open_memory(database, SETTINGS, clock=clock, ids=CountedIds(taken)) as opened:
        await opened.settled()
        yield opened


Call = Callable[[Memory], Awaitable[object]]


def of_id(record_id: str) -> list[Call]:
    """Every call that takes an id."""
    return [
        lambda memory: memory.records.get(record_id),
        lambda memory: memory.records.get_all(record_id),
        lambda memory: memory.records.history(record_id),
        lambda memory: memory.records.version(record_id, 1),
        lambda memory: memory.records.as_of(record_id, START_MS),
        lambda memory: memory.records.diff(record_id, 1, 1),
        lambda memory: memory.update_memory(record_id, {"text": "x"}, expected_revision=1),
        lambda memory: memory.forget(record_id),
        lambda memory: memory.restore(record_id),
        lambda memory: memory.records.revert(record_id, 1),
        lambda memory: memory.remember("task", {"text": "x", "caused_by": record_id}),
        lambda memory: memory.update_memory(NOTE, {"caused_by": record_id}, expected_revision=2),
        lambda memory: memory.purge([NOTE, record_id]),
    ]


@pytest.mark.parametrize(
    "record_id",
    [
        " ", "msg_", "msg_0", "msg_-1", "msg_01", "msg_99999999999999999999", "0", "-1", "٤٥", "9" * 100_000,
        "x" * 100_000, "msg_1\x00", "\x00", "\ud800", "task_" + "é" * 1_000, "../../etc/passwd", "' OR 1=1 --",
        "msg_404", "404", f"{NOTE}.1", f"{NOTE}@1",
    ],
    ids=lambda value: ascii(value)[:24],
)  # fmt: skip
async def test_an_unknown_id_is_not_found_anywhere(memory: Memory, database: Path, record_id: str) -> None:
    before = stored(database)
    for call in of_id(record_id):
        with pytest.raises((RecordNotFound, InvalidInput)) as refused:
            await call(memory)
        assert len(str(refused.value)) < 400
    assert stored(database) == before


async def test_an_erased_id_says_that_it_was_erased(memory: Memory, database: Path) -> None:
    before = stored(database)
    for call in of_id(ERASED)[:-3]:
        with pytest.raises(RecordNotFound, match=f"{ERASED} was erased for good on 2026-03-04"):
            await call(memory)
    assert stored(database) == before


def remember(kind: str, fields: Mapping[str, Any], **where: str) -> Call:
    return lambda memory: memory.remember(kind, {"text": "x", **fields}, **where)


def update(record_id: str, changes: Mapping[str, Any], revision: int = 1) -> Call:
    return lambda memory: memory.update_memory(record_id, changes, expected_revision=revision)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (update(NOTE, {"text": "x"}), RevisionConflict, "at revision 2, not 1: .* Read it again"),
        (update(NOTE, {}), RevisionConflict, "expected_revision=2"),
        (update(NOTE, {"text": "x"}, 0), RevisionConflict, "expected_revision=2"),
        (update(NOTE, {"text": "x"}, 3), RevisionConflict, "expected_revision=2"),
        (update(NOTE, {"text": "x"}, -(10**30)), InvalidInput, "at most 18 digits"),
        (update(NOTE, {"text": None}, 2), InvalidInput, "text is missing; it is required"),
        (update(NOTE, {"text": ""}, 2), InvalidInput, "text is empty; send the text"),
        (update(NOTE, {"text": "é" * 501}, 2), TextTooLarge, "1,002 bytes and the limit is 1,000; send it in parts"),
        (update(NOTE, {"text": "x" * 1_001}, 2), TextTooLarge, "1,001 characters .* send it in parts"),
        (update(NOTE, {"titel": "x"}, 2), InvalidInput, "unknown field 'titel'; did you mean 'title'"),
        (update(NOTE, {"source": "x"}, 2), InvalidInput, "forget this document and remember it from its new source"),
        (update(FORGOTTEN, {"text": "x"}, 2), Conflict, "is forgotten; restore it first"),
        (update(FORGOTTEN, {"status": "completed"}, 2), Conflict, "is forgotten; restore it first"),
        (update(THOUGHT, {"visibility": "chat"}), InvalidInput, "of a thought is always 'internal'"),
        (update(TASK, {"caused_by": TASK}), Conflict, "cannot be its cause; leave caused_by out"),
        (lambda memory: memory.records.revert(NOTE, 0), InvalidInput, "has no version 0; its newest is 2"),
        (lambda memory: memory.records.revert(NOTE, 3), InvalidInput, "has no version 3; its newest is 2"),
        (lambda memory: memory.records.diff(NOTE, 1, 9), InvalidInput, "has no version 9; its newest is 2"),
        (lambda memory: memory.records.as_of(NOTE, START_MS - 1), RecordNotFound, "did not exist on 2026"),
        (lambda memory: memory.purge([TASK, "task_9"]), RecordNotFound, "no record 'task_9'; use an id that"),
        (remember("thought", {"visibility": "chat"}), InvalidInput, "always 'internal'; leave it out, or remember a"),
        (remember("thought", {"notForChat": False}), InvalidInput, "always 'internal'"),
        (remember("task", {}, session_id="closed"), SessionFinalized, "takes no more records; go on under a new"),
        (remember("document", {"source": "a"}, session_id="closed"), SessionFinalized, "go on under a new session_id"),
        (remember("task", {}, session_id="trip", agent_id="other"), InvalidInput, "belongs to agent 'default', not"),
        (remember("task", {}, session_id="a\x00"), InvalidInput, "session_id contains control characters"),
        (remember("task", {}, agent_id="a\x00"), InvalidInput, "agent_id contains control characters"),
        (remember("task", {}, agent_id="x" * 100_000), InvalidInput, "agent_id has 100000 characters"),
        (remember("task", {"text": None}), InvalidInput, "text is missing; it is required"),
        (remember("task", {"text": ""}), InvalidInput, "text is empty; send the text to remember"),
        (remember("note", {"text": " \n\t"}), InvalidInput, "text is blank; send the text to remember"),
        (remember("task", {"text": 5}), InvalidInput, "text must be a string, not 5"),
        (remember("task", {"text": "x" * 1_001}), TextTooLarge, "1,001 characters .* send it in parts"),
        (remember("task", {"text": "Burn the letter."}), Conflict, "was forgotten or erased, .* if the user says it"),
        (remember("task", {"statuss": "pending"}), InvalidInput, "unknown field 'statuss'; did you mean 'status'"),
        (remember("task", {"usage_count": 9}), InvalidInput, "usage_count cannot be set: the memory counts how often"),
        (remember("task", {"caused_by": "task_9"}), RecordNotFound, "no record .task_9. for caused_by"),
        (remember("document", {"text": "x" * 10_001, "source": "a"}), TextTooLarge, "limit is 10,000"),
        (remember("document", {"text": "é" * 5_001, "source": "a"}), TextTooLarge, "limit is 10,000"),
        (remember("document", {"text": "", "source": "a"}), InvalidInput, "text is empty; send the text"),
        (remember("document", {"text": "\n" * 9_999, "source": "a"}), InvalidInput, "text is blank; send the text"),
        (remember("document", {"source": "a", "totalChunks": 3, "chunkIndex": 1}), InvalidInput, "the whole document"),
        (remember("document", {}), InvalidInput, "source is missing; it is required"),
        (remember("message", {"role": "user"}), InvalidInput, "use thought, document or task"),
        (remember("goal", {}), InvalidInput, "type='goal' is unknown; use note, task, document or thought"),
    ],
)  # fmt: skip
async def test_what_is_refused_says_what_to_do_and_writes_nothing(
    memory: Memory, database: Path, call: Call, error: type[KalitoError], words: str
) -> None:
    before = stored(database)
    with pytest.raises(error, match=words) as refused:
        await call(memory)
    assert type(refused.value) is error
    assert len(str(refused.value)) < 400
    assert stored(database) == before


@pytest.mark.parametrize(
    "call",
    [
        update(NOTE, {}, 2),
        update(NOTE, {"text": "The keys are in the red box.", "tags": None, "importance": "medium"}, 2),
        lambda memory: memory.forget(FORGOTTEN),
        lambda memory: memory.restore(NOTE),
        lambda memory: memory.records.revert(NOTE, 2),
        lambda memory: memory.records.revert(FORGOTTEN, 2),
    ],
)
async def test_a_call_that_changes_nothing_makes_no_version(memory: Memory, database: Path, call: Call) -> None:
    before = stored(database)
    await call(memory)
    assert stored(database) == before


async def test_purging_nothing_erases_nothing(memory: Memory, database: Path) -> None:
    before = stored(database)
    report = await memory.purge([])
    assert (report.erased, report.rewritten) == ((), ())
    assert {**stored(database), INDEX: None} == {**before, INDEX: None}


async def test_an_id_that_is_named_twice_is_purged_once(memory: Memory, database: Path) -> None:
    report = await memory.purge([TASK, FORGOTTEN, TASK])
    assert report.erased == (TASK, FORGOTTEN)
    assert (await memory.purge([NOTE, TASK])).erased == (TASK, NOTE)


async def test_a_forgotten_record_can_be_reverted_and_purged(memory: Memory) -> None:
    assert not (await memory.records.revert(FORGOTTEN, 1)).is_deleted
    await memory.forget(FORGOTTEN)
    assert (await memory.purge([FORGOTTEN])).erased == (FORGOTTEN,)


async def test_a_task_is_another_one_if_it_is_due_at_another_time(memory: Memory) -> None:
    due = [{"text": "Pay the rent.", "due_date": day} for day in ("2026-04-01", "2026-05-01")]
    [april], [may] = [await memory.remember("task", one) for one in due]
    assert april.id != may.id
    for again in (due[1], {"text": "Pay the rent."}):
        [known] = await memory.remember("task", again)
        assert (known.id, known.is_known) == (may.id, True), again
    [undated] = await memory.remember("task", {"text": "Buy oats."})
    [dated] = await memory.remember("task", {"text": "Buy oats.", "due_date": "2026-04-01"})
    assert dated.id != undated.id, "its date would be lost"


async def test_a_version_comes_back_without_the_cause_that_was_erased_meanwhile(memory: Memory) -> None:
    [task] = await memory.remember("task", {"text": "Open the box.", "caused_by": NOTE})
    await memory.update_memory(task.id, {"caused_by": None, "text": "Leave it."}, expected_revision=1)
    await memory.purge([NOTE])
    reverted = await memory.records.revert(task.id, 1)
    assert (reverted.text, reverted.content.get("caused_by")) == ("Open the box.", None)


async def test_a_document_that_grew_out_of_one_part_is_forgotten_and_restored_whole(memory: Memory) -> None:
    [first] = await memory.remember("document", {"text": "# Chapter 0", "source": "book"})
    grown = await memory.remember("document", {"text": CHAPTERS, "source": "book"})
    assert grown[0].id == first.id
    assert [one.id for one in await memory.forget(first.id)] == [one.id for one in grown]
    assert [one.is_deleted for one in await memory.restore(first.id)] == [False] * len(grown)
    assert (await memory.purge([first.id])).erased == tuple(one.id for one in grown)


async def test_restoring_a_document_leaves_out_parts_it_no_longer_has(memory: Memory) -> None:
    made = await memory.remember("document", {"text": CHAPTERS, "source": "book"})
    document = made[0].content["document_id"]
    await memory.remember("document", {"text": "# Chapter 0", "source": "book"})
    await memory.forget(document)
    assert [one.id for one in await memory.restore(document)] == [made[0].id]
    assert (await memory.records.get(document)).text == "# Chapter 0"
    assert [one.is_deleted for one in await memory.records.get_all(document)] == [False] + [True] * (len(made) - 1)


async def test_a_document_of_several_parts_is_changed_by_one_of_them(memory: Memory, database: Path) -> None:
    made = await memory.remember("document", {"text": CHAPTERS, "source": "book"})
    before = stored(database)
    with pytest.raises(InvalidInput, match=f"is a document of {len(made)} parts; name one of them: {made[0].id}"):
        await memory.update_memory(made[0].content["document_id"], {"text": "x"}, expected_revision=1)
    assert stored(database) == before


async def test_what_another_owner_has_is_as_if_it_did_not_exist(memory: Memory, database: Path) -> None:
    store, editor, eraser, historian = (
        memory.place.store,
        memory._services.editor,
        memory._services.eraser,
        memory._services.historian,
    )
    draft = drafts.record(RecordType.THOUGHT, "Mallory's own.", record_id="thought_own")
    await store.write(lambda transaction: transaction.records.add_records(MALLORY, [draft], now_ms=START_MS))
    before = stored(database)
    mine: list[Callable[[], Awaitable[object]]] = [
        lambda: historian.record(MALLORY, NOTE),
        lambda: historian.records(MALLORY, "msg_1"),
        lambda: historian.history(MALLORY, "1"),
        lambda: historian.record(MALLORY, ERASED),
        lambda: editor.update(MALLORY, NOTE, {"text": "x"}, expected_revision=2, editor=ANN),
        lambda: editor.forget(MALLORY, NOTE, editor=ANN),
        lambda: editor.restore(MALLORY, FORGOTTEN, editor=ANN),
        lambda: editor.revert(MALLORY, NOTE, 1, editor=ANN),
        lambda: eraser.purge(MALLORY, ["thought_own", NOTE]),
        lambda: editor.update(MALLORY, "thought_own", {"caused_by": NOTE}, expected_revision=1, editor=ANN),
        lambda: memory.records.get("thought_own"),
    ]
    for call in mine:
        with pytest.raises(RecordNotFound, match="no record"):
            await call()
    assert stored(database) == before
    assert await historian.tasks(Scope(owner="nobody")) == []


async def test_the_same_source_is_another_document_for_another_owner(memory: Memory) -> None:
    fields = {"text": "# Chapter 0", "source": "book"}
    [mine] = await memory.remember("document", fields)
    [other] = await memory._services.editor.remember(
        MALLORY, RecordType.DOCUMENT, {**fields, "text": "x"}, editor=ANN, origin=Origin.DOCUMENT
    )
    assert other.id != mine.id
    assert await memory.records.get(mine.id) == mine


@pytest.mark.parametrize("character", ["x", "é"])
@pytest.mark.parametrize("kind", ["document", "task", "update"])
async def test_a_text_of_200_megabytes_is_refused_without_a_copy_of_it(
    memory: Memory, database: Path, character: str, kind: str
) -> None:
    before = stored(database)
    text = character * (200_000_000 // len(character.encode()))
    tracemalloc.start()
    try:
        with pytest.raises(TextTooLarge, match="send it in parts"):
            if kind == "update":
                await memory.update_memory(NOTE, {"text": text}, expected_revision=2)
            else:
                await memory.remember(kind, {"text": text, "source": "a"} if kind == "document" else {"text": text})
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
    assert stored(database) == before


async def test_a_document_is_kept_with_all_its_blank_lines(memory: Memory) -> None:
    text = "# Chapter 0\n" + "\n" * 9_000 + "The end.\n"
    made = await memory.remember("document", {"text": text, "source": "book"})
    assert "".join(one.text for one in made) == text


async def test_what_the_editor_takes_is_written_with_who_and_when(memory: Memory, clock: ScriptedClock) -> None:
    clock.advance(60)
    changed = await memory.update_memory(
        TASK, {"status": "completed", "tags": ["hut"]}, expected_revision=1, editor=ANN
    )
    assert changed.content["completed_at"] == "2026-03-04T05:07:07.089Z"
    assert changed.visibility is Visibility.CHAT
    edit = (await memory.records.history(TASK))[-1]
    assert (edit["editor_id"], edit["timestamp"]) == ("ann", "2026-03-04T05:07:07.089Z")


async def test_a_refusal_in_one_process_is_no_write_for_another(memory: Memory, store: SqliteStore) -> None:
    before = await store.revision(LOCAL_OWNER)
    with pytest.raises(RevisionConflict):
        await memory.update_memory(NOTE, {"text": "x"}, expected_revision=1)
    assert await store.revision(LOCAL_OWNER) == before
