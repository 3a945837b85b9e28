"""`Historian` on a real store: versions, days, differences, documents by their id, tasks."""

from collections.abc import AsyncIterator, Iterable

import pytest

from kalito_mcp.domain.memory_records import DELETED_AT, EditType, MemoryRecord
from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import Limits, Scope
from kalito_mcp.domain.tasks import TaskStatus
from kalito_mcp.errors import InvalidInput, RecordNotFound
from kalito_mcp.records.historian import Historian, current_parts
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.sqlite.database import SqliteStore
from tests import drafts
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio

ALL, LATER = Scope(), START_MS + 60_000


@pytest.fixture
async def historian(store: SqliteStore) -> AsyncIterator[Historian]:
    """Of a store with a task that was renamed, a minute later forgotten."""
    async with store.transaction() as transaction:
        draft = drafts.record(RecordType.TASK, "Book the hut.", record_id="task_1", status="pending")
        [task] = await transaction.records.add_records(ALL, [draft], now_ms=START_MS)
        task = await transaction.records.change(task, drafts.edit(task, {"text": "Book the cabin."}))
        forgotten = drafts.edit(task, {DELETED_AT: LATER}, edit_type=EditType.DELETE, edited_at=LATER)
        await transaction.records.change(task, forgotten)
    yield Historian(store)


async def add(store: SqliteStore, *texts: str, kind: RecordType = RecordType.TASK, **fields: object) -> list[str]:
    async with store.transaction() as transaction:
        made = [drafts.record(kind, text, **fields) for text in texts]  # type: ignore[arg-type]
        return [one.id for one in await transaction.records.add_records(ALL, made, now_ms=START_MS)]


async def test_a_beginning_of_the_last_part_of_an_id_is_enough_if_only_one_record_within_the_limits_has_it(
    historian: Historian, store: SqliteStore
) -> None:
    async with store.transaction() as transaction:
        for agent, tail in (("default", "ab12c0000"), ("default", "ab12d0000"), ("other", "ab12ce000")):
            draft = drafts.record(RecordType.TASK, f"Mend {tail}.", record_id=f"task_{START_MS}_{tail}")
            await transaction.records.add_records(Scope(agent=agent), [draft], now_ms=START_MS)
    limited = Scope(limits=Limits(agent="default"))
    for short in ("task_ab12c", "task_ab12c0000"):
        assert (await historian.record(limited, short)).text == "Mend ab12c0000."
    with pytest.raises(InvalidInput, match=r"ab12c0000 'Mend ab12c0000\.', task_\d+_ab12ce000 'Mend ab12ce000\.'"):
        await historian.record(ALL, "task_ab12c")
    for unknown in ("task_ab1", "task_b12c0000", "pin_ab12c", "task_ab12ce"):
        with pytest.raises(RecordNotFound):
            await historian.record(limited, unknown)


async def add_document(store: SqliteStore, name: str, total: int, *, of: int, first: str | None = None) -> None:
    """A document of `total` parts. Each part has the count `of`; the first may have an id of its own."""
    async with store.transaction() as transaction:
        parts = [
            drafts.record(
                RecordType.DOCUMENT,
                f"{name} {place}",
                record_id=first if first is not None and place == 0 else f"{name}.{place}",
                source=name,
                document_id=name,
                chunk_index=place,
                total_chunks=of,
            )
            for place in range(total)
        ]
        await transaction.records.add_records(ALL, parts, now_ms=START_MS)


def ids(records: Iterable[MemoryRecord]) -> list[str]:
    return [one.id for one in records]


async def test_a_version_is_the_record_as_it_was(historian: Historian) -> None:
    found = [await historian.version(ALL, "task_1", number) for number in (1, 2, 3)]
    assert [one.text for one in found] == ["Book the hut.", "Book the cabin.", "Book the cabin."]
    assert [one.is_deleted for one in found] == [False, False, True]
    assert [one.version_id for one in found] == ["task_1@1", "task_1@2", "task_1@3"]
    assert found[2] == await historian.record(ALL, "task_1")


async def test_a_version_that_there_is_not_names_those_that_there_are(historian: Historian) -> None:
    for number in (0, -1, 4, 10**30):
        for call in (historian.version(ALL, "task_1", number), historian.diff(ALL, "task_1", 1, number)):
            with pytest.raises(InvalidInput, match=f"task_1 has no version {number}; its newest is 3"):
                await call


async def test_a_moment_has_the_last_version_until_then(historian: Historian) -> None:
    for moment, revision in ((0, 1), (1, 2), (59_999, 2), (60_000, 3), (10**9, 3)):
        assert (await historian.as_of(ALL, "task_1", START_MS + moment)).revision == revision
    words = (
        r"task_1 did not exist on 2026-03-04T05:06:07.088Z: it was recorded on 2026-03-04T05:06:07.089Z; ask for that"
    )
    with pytest.raises(RecordNotFound, match=words):
        await historian.as_of(ALL, "task_1", START_MS - 1)


async def test_two_versions_differ_in_their_fields_whichever_is_first(historian: Historian) -> None:
    there, back = await historian.diff(ALL, "task_1", 1, 2), await historian.diff(ALL, "task_1", 2, 1)
    assert there != back
    assert "cabin" in "".join(there)
    assert "hut" in "".join(back)
    assert await historian.diff(ALL, "task_1", 2, 2) == []


async def test_the_history_tells_each_edit_and_marks_the_current_one(historian: Historian) -> None:
    history = await historian.history(ALL, "task_1")
    assert [one["id"] for one in history] == ["task_1@1", "task_1@2", "task_1@3"]
    assert [one["edit_type"] for one in history] == ["create", "update", "delete"]
    assert [one["current"] for one in history] == [False, False, True]


async def test_a_message_is_found_by_its_bare_number(historian: Historian, store: SqliteStore) -> None:
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, Scope(session="trip"), now_ms=START_MS)
        [appended] = await transaction.conversations.append_messages(
            session, [drafts.message("Hello.")], now_ms=START_MS
        )
    assert await historian.record(ALL, str(appended.id)) == await historian.record(ALL, f"msg_{appended.id}")


async def test_an_unknown_id_is_shown_shortened(historian: Historian) -> None:
    with pytest.raises(RecordNotFound, match=r"no record 'x{80}'; use an id that a search returned"):
        await historian.record(ALL, "x" * 100_000)


async def test_a_document_of_several_parts_names_them(historian: Historian, store: SqliteStore) -> None:
    await add_document(store, "book", 3, of=3)
    assert ids(await historian.records(ALL, "book")) == ["book.0", "book.1", "book.2"]
    assert (await historian.record(ALL, "book.1")).text == "book 1"
    with pytest.raises(InvalidInput, match=r"book is a document of 3 parts; name one of them: book.0, book.1, book.2$"):
        await historian.record(ALL, "book")
    await add_document(store, "tome", 50, of=50)
    with pytest.raises(InvalidInput, match=r"of 50 parts; .* tome.19$"):
        await historian.record(ALL, "tome")


async def test_a_document_that_has_one_part_left_is_that_part(historian: Historian, store: SqliteStore) -> None:
    await add_document(store, "book", 3, of=1)
    assert (await historian.record(ALL, "book")).id == "book.0"
    parts = await historian.records(ALL, "book")
    assert len(parts) == 3
    assert ids(current_parts(parts)) == ["book.0"]


async def test_the_id_of_a_document_is_all_of_it_also_where_its_first_part_has_it(
    historian: Historian, store: SqliteStore
) -> None:
    await add_document(store, "book", 2, of=2, first="book")
    assert ids(await historian.records(ALL, "book")) == ["book", "book.1"]
    assert (await historian.record(ALL, "book")).text == "book 0"
    assert ids(await historian.records(ALL, "book.1")) == ["book.1"]


async def test_tasks_that_are_due_come_first_then_the_newest(historian: Historian, store: SqliteStore) -> None:
    await add(store, "old", status="pending", created_at=START_MS + 1)
    await add(store, "new", status="pending", created_at=START_MS + 2)
    await add(store, "day", status="pending", due_date="2026-05-01")
    await add(store, "hour", status="in_progress", due_date="2026-05-01T10:00:00.000Z")
    await add(store, "soon", status="failed", due_date="2026-04-30")
    found = [one.text for one in await historian.tasks(ALL)]
    assert found == ["soon", "day", "hour", "new", "old"]


async def test_tasks_are_done_or_not(historian: Historian, store: SqliteStore) -> None:
    for status in TaskStatus:
        await add(store, f"a {status} one", status=str(status))
    for is_done, wanted in ((True, {"completed", "failed"}), (False, {"pending", "in_progress"})):
        assert {str(one.content["status"]) for one in await historian.tasks(ALL, is_done=is_done)} == wanted


async def test_all_tasks_are_listed_however_many_pages_they_take(historian: Historian, store: SqliteStore) -> None:
    made = await add(store, *(f"task {place}" for place in range(401)), status="pending")
    assert sorted(ids(await historian.tasks(ALL))) == sorted(made)
    assert await historian.tasks(Scope(agent="other")) == []
