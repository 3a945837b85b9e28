"""After `purge` and `sweep`, the bytes of no file in the database's folder contain what was erased."""

import random
import re
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

import anyio
import pytest

from kalito_mcp.domain.findings import Verdict
from kalito_mcp.domain.memory_records import DELETED_AT, MemoryRecord
from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import Scope
from kalito_mcp.errors import StorageFull, StorageReadOnly
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.sqlite import sweeping, text_index, unused_bytes
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.storage.sqlite.inspection import inspect
from kalito_mcp.storage.sqlite.text_index import TextIndexStatements
from kalito_mcp.storage.sqlite.unused_bytes import UnusedBytes
from tests import drafts
from tests.index_reads import keys_with
from tests.scripted import START_MS
from tests.server import prepared
from tests.server.wire import clean_environment
from tests.storage.conftest import ROOT, Disk

pytestmark = pytest.mark.anyio
TRIP: Final = Scope(session="trip")
CANARY: Final = "Zanzibarquux"


def files_with(folder: Path, word: str) -> list[str]:
    """The files that hold the word, in any case and in UTF-8 or UTF-16."""
    patterns = [re.escape(word.encode(encoding)) for encoding in ("utf-8", "utf-16-le", "utf-16-be")]
    pattern = re.compile(b"|".join(patterns), re.IGNORECASE)
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and pattern.search(path.read_bytes()))


async def append(store: SqliteStore, text: str, **fields: object) -> MemoryRecord:
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
        draft = drafts.message(text, **fields)  # type: ignore[arg-type]
        [appended] = await transaction.conversations.append_messages(session, [draft], now_ms=START_MS)
        found = await transaction.records.record(TRIP, f"msg_{appended.id}")
    assert found is not None
    return found


async def change(store: SqliteStore, record: MemoryRecord, **changes: object) -> MemoryRecord:
    async with store.transaction() as transaction:
        return await transaction.records.change(record, drafts.edit(record, changes))


async def purge(store: SqliteStore, *records: MemoryRecord) -> None:
    async with store.transaction() as transaction:
        for record in records:
            await transaction.records.purge(record, now_ms=START_MS)


async def swept_whole(store: SqliteStore) -> Mapping[str, str]:
    return await store.maintenance.finish_erasures(await store.maintenance.owed_erasures())


async def remember_everywhere(store: SqliteStore, mark: str) -> list[MemoryRecord]:
    """The mark in every field that takes words, in every type, in present and earlier versions."""
    details = {
        "message_type": f"{mark}type",
        "attachments": [{"name": f"{mark}.png"}],
        "tags": [f"{mark}tag"],
    }
    fields = {"name": f"{mark}name", "client_key": f"{mark}key", "model_id": f"{mark}model", "client": f"{mark}client"}
    message = await append(store, f"{mark} first", details=details, **fields)
    message = await change(store, message, text=f"{mark} second", tags=[f"{mark}2"], name=f"{mark}other")
    made = [await change(store, message, text="harmless", name=None, tags=None, attachments=None)]
    own = [
        drafts.record(kind, f"{mark} {kind}", title=f"{mark} title", source=f"{mark}.md", chunk_index=0,
                      document_id=f"{mark}doc", tags=[mark], note={"deep": [mark]}, client_key=f"{mark}k",
                      client=f"{mark}c", record_id=f"{kind}_{len(mark)}_{mark[-1]}")
        for kind in (RecordType.THOUGHT, RecordType.DOCUMENT, RecordType.TASK)
    ]  # fmt: skip
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
        pin = drafts.pin(f"{mark} pin", record_id=f"pin_{mark[-1]}", client_key=f"{mark}k", client=f"{mark}c")
        await transaction.conversations.add_pins(session, [pin])
        end = session.message_count
        summary = drafts.summary(session.summarized_seq + 1, end, text=f"{mark} summary", model_id=f"{mark}model")
        await transaction.conversations.add_summaries(session, [summary])
        made += await transaction.records.add_records(TRIP, own, now_ms=START_MS)
        for record_id in (pin.id, summary.id):
            found = await transaction.records.record(TRIP, record_id)
            assert found is not None
            made.append(await transaction.records.change(found, drafts.edit(found, {"text": f"{mark} again"})))
    return made


async def test_what_was_erased_is_in_no_file_whatever_field_it_was_in(database: Path) -> None:
    store, idle = await SqliteStore.open(database), await SqliteStore.open(database)
    for number in range(40):
        await append(store, f"ordinary message {number}")
    made = await remember_everywhere(store, CANARY)
    for number in range(40):
        await append(store, f"ordinary reply {number}")
    async with idle.view() as view:
        assert await view.records.record(TRIP, made[0].id) is not None
    made[1] = await change(store, made[1], **{DELETED_AT: START_MS})
    assert files_with(database.parent, CANARY)
    await purge(store, *made)
    swept = await swept_whole(store)
    assert dict(swept) == {}
    assert files_with(database.parent, CANARY) == []
    async with idle.view() as view:
        assert await keys_with(view, Scope(), CANARY.lower()) == []
        assert await view.records.record(TRIP, made[0].id) is None
    await store.close()
    await idle.close()
    assert files_with(database.parent, CANARY) == []
    reopened = await SqliteStore.open(database)
    await append(reopened, "one more")
    assert files_with(database.parent, CANARY) == []
    await reopened.close()
    assert {finding.verdict for finding in inspect(database, is_deep=True)} == {Verdict.OK}


async def test_texts_of_every_length_leave_nothing_behind_also_where_they_span_pages(database: Path) -> None:
    store = await SqliteStore.open(database)
    chance = random.Random(5)
    lengths = [10, 100, 500, 1_000, 3_900, 4_050, 4_096, 4_200, 8_192, 20_000, 65_536, 200_000]
    made: list[MemoryRecord] = []
    for length in (*lengths, *(chance.randrange(10, 30_000) for _ in range(20))):
        filler = " ".join(f"{CANARY}{chance.randrange(99)}" for _ in range(length // len(CANARY) + 1))
        record = await append(store, filler[: max(length, len(CANARY))])
        made.append(await change(store, record, text=filler[::-1]) if chance.random() < 0.3 else record)
        await append(store, f"kept {length}")
    chance.shuffle(made)
    for record in made:
        await purge(store, record)
    await swept_whole(store)
    for word in (CANARY, CANARY[::-1], CANARY[:8]):
        assert files_with(database.parent, word) == []
    assert len(files_with(database.parent, "kept 200000")) == 1
    await store.close()
    assert {finding.verdict for finding in inspect(database, is_deep=True)} == {Verdict.OK}


async def test_without_a_sweep_the_words_may_still_be_there_and_a_later_one_finds_them(database: Path) -> None:
    store = await SqliteStore.open(database)
    await purge(store, await append(store, CANARY * 500))
    await store.close()
    assert files_with(database.parent, CANARY)
    reopened = await SqliteStore.open(database)
    await reopened.maintenance.finish_erasures()
    assert files_with(database.parent, CANARY) == []
    await reopened.close()


async def test_a_reader_of_an_older_state_is_named_and_the_next_sweep_finishes(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "_WAIT_FOR_READERS_S", 0.02)
    store = await SqliteStore.open(database)
    record = await append(store, CANARY)
    with closing(sqlite3.connect(database)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM records").fetchone()
        await purge(store, record)
        swept = await swept_whole(store)
        assert set(swept) == {"memory.db", "memory.db-wal"}
        assert all("purge again" in reason for reason in swept.values())
        reader.rollback()
    assert (await store.maintenance.owed_erasures()).last == 1
    assert dict(await swept_whole(store)) == {}
    assert (await store.maintenance.owed_erasures()).last == 0
    assert files_with(database.parent, CANARY) == []
    await store.close()


async def test_a_sweep_waits_for_the_views_of_its_own_process(database: Path) -> None:
    store = await SqliteStore.open(database)
    record = await append(store, CANARY)
    is_reading, is_erased = anyio.Event(), anyio.Event()

    async def read() -> None:
        async with store.view() as view:
            await view.records.record(TRIP, record.id)
            is_reading.set()
            await is_erased.wait()
            assert await view.records.record(TRIP, record.id) == record

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        await is_reading.wait()
        await purge(store, record)
        is_erased.set()
        assert dict(await store.maintenance.finish_erasures()) == {}
    assert files_with(database.parent, CANARY) == []
    await store.close()


async def test_others_write_between_the_slices_of_a_sweep(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_index, "_MERGED_PAGES", 1)
    monkeypatch.setattr(sweeping, "_PAUSE_S", 0.1)  # a write fits into it on a busy machine too
    store, other = await SqliteStore.open(database), await SqliteStore.open(database)
    chance = random.Random(3)
    for _ in range(30):
        await append(store, " ".join(f"word{chance.randrange(10**9)}" for _ in range(200)))
    record = await append(store, CANARY)
    events: list[str] = []
    is_slicing = anyio.Event()
    merge = TextIndexStatements._merge

    async def noted(index: TextIndexStatements, pages: int) -> bool:
        events.append("slice")
        is_slicing.set()
        return await merge(index, pages)

    monkeypatch.setattr(TextIndexStatements, "_merge", noted)
    await purge(store, record)
    async with anyio.create_task_group() as tasks:

        async def write() -> None:
            await is_slicing.wait()
            for _ in range(5):
                await append(other, "meanwhile")
                events.append("write")

        tasks.start_soon(write)
        assert await swept_whole(store) == {}
    slices = [place for place, event in enumerate(events) if event == "slice"]
    assert "write" in events[slices[0] : slices[-1]]
    await store.close()
    await other.close()
    assert files_with(database.parent, CANARY) == []
    assert {finding.verdict for finding in inspect(database, is_deep=True)} == {Verdict.OK}


async def test_a_hold_zeroes_no_more_pages_than_it_may_and_the_sweep_goes_on_until_none_are_left(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "_PAGES_A_HOLD", 1)
    holds: list[bool] = []
    zero = UnusedBytes.zero

    def noted(unused: UnusedBytes, most: int) -> bool:
        assert most == 1
        holds.append(zero(unused, most))
        return holds[-1]

    monkeypatch.setattr(UnusedBytes, "zero", noted)
    store = await SqliteStore.open(database)
    made = await remember_everywhere(store, CANARY)
    await purge(store, *made)
    assert await swept_whole(store) == {}
    assert holds[-1]
    assert len(holds) > 2
    await store.close()
    assert files_with(database.parent, CANARY) == []


async def test_where_bytes_cannot_be_zeroed_the_file_is_rewritten(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unused_bytes, "_DESCRIPTORS", database.with_name("missing"))
    store = await SqliteStore.open(database)
    made = await remember_everywhere(store, CANARY)
    await append(store, "x" * 400_000)
    await purge(store, *made)
    assert await swept_whole(store) == {}
    async with store.view() as view:
        assert (await store.maintenance.owed_erasures()).last == 0
        assert await view.connection.execute_fetchall("PRAGMA freelist_count") == [(0,)]
    await store.close()
    assert files_with(database.parent, CANARY) == []


async def test_a_database_can_be_swept_as_often_as_one_likes(database: Path) -> None:
    # A merge of everything adds a level to the text index, which has 64 at most.
    store = await SqliteStore.open(database)
    for number in range(70):
        kept, erased = await append(store, f"kept {number}"), await append(store, f"{CANARY}{number}")
        await purge(store, erased)
        assert await swept_whole(store) == {}
    assert files_with(database.parent, CANARY) == []
    async with store.view() as view:
        assert await keys_with(view, TRIP, "69") == [kept.key]
    await store.close()
    assert {finding.verdict for finding in inspect(database, is_deep=True)} == {Verdict.OK}


async def test_backups_from_before_the_erasure_are_listed(database: Path) -> None:
    store = await SqliteStore.open(database)
    database.with_name("memory.db.before-3.backup").write_bytes(b"old")
    assert list(await store.maintenance.finish_erasures()) == ["memory.db.before-3.backup"]
    await store.close()


async def test_a_sweep_keeps_the_secret_the_schema_and_the_numbers_that_were_used(copy: Path) -> None:
    store = await SqliteStore.open(copy)
    secret = await store.secret()
    last = await append(store, "last")
    await purge(store, last)
    await swept_whole(store)
    assert await store.secret() == secret
    assert (await append(store, "next")).key > last.key
    await store.close()
    assert {finding.verdict for finding in inspect(copy, is_deep=True)} == {Verdict.OK}


async def test_a_database_that_is_open_for_reading_only_cannot_be_swept(copy: Path) -> None:
    store = await SqliteStore.open(copy, may_write=False)
    with pytest.raises(StorageReadOnly):
        await store.maintenance.finish_erasures()
    await store.close()


async def test_a_sweep_without_room_is_refused_and_the_database_goes_on(disk: Disk) -> None:
    store = await SqliteStore.open(disk.database)
    record = await append(store, CANARY)
    await append(store, "x" * 800_000)
    ballast = disk.folder / "ballast"
    ballast.write_bytes(bytes(1_500_000))
    await purge(store, record)
    with pytest.raises(StorageFull, match="purge again"):
        await store.maintenance.finish_erasures()
    ballast.unlink()
    assert dict(await store.maintenance.finish_erasures()) == {}
    assert files_with(disk.folder, CANARY) == []
    await store.close()


async def test_another_process_that_has_the_database_open_and_idle_is_no_obstacle(database: Path) -> None:
    store = await SqliteStore.open(database)
    record = await append(store, CANARY)
    program = f"""
import anyio, pathlib, sys
from kalito_mcp.domain.scope import Scope
from kalito_mcp.storage.sqlite.database import SqliteStore

async def main():
    store = await SqliteStore.open(pathlib.Path({str(database)!r}))
    async with store.view() as view:
        await view.records.record(Scope(), {record.id!r})
    print("idle", flush=True)
    await anyio.to_thread.run_sync(sys.stdin.readline)
    async with store.view() as view:
        print(await view.records.record(Scope(), {record.id!r}), flush=True)
    await store.close()

anyio.run(main)
"""
    with prepared.start(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=clean_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "idle\n"
        await purge(store, record)
        assert dict(await store.maintenance.finish_erasures()) == {}
        assert files_with(database.parent, CANARY) == []
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "None\n"
    await store.close()
    assert files_with(database.parent, CANARY) == []


async def test_a_record_whose_text_decayed_is_erased_like_any_other(database: Path, store: SqliteStore) -> None:
    kept = await append(store, "The ferry leaves at noon.")
    decayed = await append(store, f"Meet me in {CANARY}.")
    with closing(sqlite3.connect(database)) as other, other:
        other.execute("UPDATE records SET text = 'Meet me in Byzantiumquux, by noon.' WHERE key = ?", [decayed.key])
    await purge(store, decayed)
    assert await swept_whole(store) == {}
    assert files_with(database.parent, CANARY) == []
    assert {finding.check for finding in inspect(database, is_deep=True) if finding.verdict is not Verdict.OK} == set()
    async with store.view() as view:
        assert await keys_with(view, TRIP, "noon") == [kept.key]
