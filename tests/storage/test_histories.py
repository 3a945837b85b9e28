"""Random edits by two processes: every version can be read afterwards, and nothing is lost."""

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.findings import Verdict
from kalito_mcp.domain.memory_records import DELETED_AT, EditType, MemoryRecord, versions
from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import Scope
from kalito_mcp.editing.writing import change_record
from kalito_mcp.errors import Conflict, RecordNotFound, RevisionConflict
from kalito_mcp.ports.records import AlreadyStored
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.storage.sqlite.inspection import inspect
from tests import drafts
from tests.campaign import first_of
from tests.scripted import START_MS

TRIP = Scope(session="trip")
TEXTS = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=40)
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "text": TEXTS,
        "name": st.none() | TEXTS,
        "importance_score": st.floats(0, 1),
        "tags": st.none() | st.lists(TEXTS, min_size=1, max_size=3),
        "critical": st.none() | st.just(value=True),
        "visibility": st.none() | st.just("internal"),
        "model_id": st.none() | TEXTS,
        "attachments": st.none() | st.lists(st.dictionaries(TEXTS, st.integers() | TEXTS), min_size=1, max_size=2),
        DELETED_AT: st.none() | st.just(START_MS),
    },
)


async def _replayed(path: Path, changes: list[Mapping[str, Any]]) -> None:
    store = await SqliteStore.open(path)
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
        [appended] = await transaction.conversations.append_messages(
            session, [drafts.message("first")], now_ms=START_MS
        )
        record = await transaction.records.record(TRIP, f"msg_{appended.id}")
        assert record is not None
        contents = [record.content]
        for change in changes:
            record = await transaction.records.change(record, drafts.edit(record, change))
            contents.append(record.content)
            assert record.content == {k: v for k, v in {**contents[-2], **change}.items() if v is not None}
        told = versions(record, await transaction.records.edits(record))
    assert [content for _, content in told] == contents
    await store.close()
    assert {finding.verdict for finding in inspect(path, is_deep=True)} == {Verdict.OK}


@given(st.lists(CHANGES, max_size=6))
def test_every_version_is_shown_as_it_was_whatever_was_changed(
    tmp_path_factory: pytest.TempPathFactory, changes: list[Mapping[str, Any]]
) -> None:
    anyio.run(_replayed, tmp_path_factory.mktemp("history") / "memory.db", changes)


class Editing:
    """Two stores that change what they read last, which may be long ago."""

    def __init__(self, stores: list[SqliteStore], chance: random.Random) -> None:
        self.stores = stores
        self.chance = chance
        self.seen: list[dict[str, MemoryRecord]] = [{}, {}]
        self.written: dict[str, list[Mapping[str, Any]]] = {}
        self.erased: set[str] = set()
        self.conflicts = 0

    async def add(self) -> None:
        text = f"word{self.chance.randrange(1_000)} and more"
        kind = self.chance.choice([RecordType.TASK, RecordType.THOUGHT, RecordType.DOCUMENT])
        draft = drafts.record(kind, text, record_id=f"r{len(self.written)}", source=f"s{len(self.written)}")
        try:
            async with self.chance.choice(self.stores).transaction() as transaction:
                await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
                [added] = await transaction.records.add_records(TRIP, [draft], now_ms=START_MS)
        except AlreadyStored:
            return
        self.written[added.id] = [added.content]

    async def look(self) -> None:
        side = self.chance.randrange(2)
        async with self.stores[side].view() as view:
            for record_id in self.chance.sample(sorted(self.written), min(3, len(self.written))):
                found = await view.records.record(TRIP, record_id)
                assert (found is None) == (record_id in self.erased)
                if found is not None:
                    self.seen[side][record_id] = found

    async def change(self) -> None:
        side = self.chance.randrange(2)
        if not self.seen[side]:
            return
        record = self.chance.choice([self.seen[side][key] for key in sorted(self.seen[side])])
        cause = self.chance.choice(sorted(self.written))
        changes = self.chance.choice(
            [
                {"text": f"word{self.chance.randrange(1_000)}"},
                {DELETED_AT: START_MS},
                {DELETED_AT: None},
                {"caused_by": cause},
            ]
        )
        draft = drafts.edit(record, changes, edit_type=EditType.UPDATE)
        if draft.content.get("caused_by") in self.erased:
            return
        try:
            async with self.stores[side].transaction() as transaction:
                changed = await change_record(transaction.records, "local", record, draft)
        except RevisionConflict as conflict:
            self.conflicts += 1
            assert conflict.current == len(self.written[record.id]) != record.revision
        except (Conflict, RecordNotFound):
            return
        else:
            self.seen[side][record.id] = changed
            self.written[record.id].append(changed.content)

    async def erase(self) -> None:
        alive = sorted(set(self.written) - self.erased)
        if len(alive) < 5:
            return
        async with self.stores[0].transaction() as transaction:
            record = await transaction.records.record(TRIP, self.chance.choice(alive))
            assert record is not None
            for effect in record.led_to:
                # It loses its cause without an edit. Its earlier versions are shown without it.
                self.written[effect][-1] = {k: v for k, v in self.written[effect][-1].items() if k != "caused_by"}
            await transaction.records.purge(record, now_ms=START_MS)
        self.erased.add(record.id)


@pytest.mark.anyio
@pytest.mark.parametrize("seed", first_of(range(4)))
async def test_random_edits_of_two_processes_lose_nothing(database: Path, seed: int) -> None:
    editing = Editing([await SqliteStore.open(database), await SqliteStore.open(database)], random.Random(seed))
    await editing.add()
    steps = [editing.add, editing.look, editing.look, editing.change, editing.change, editing.change, editing.erase]
    for _ in range(200):
        await editing.chance.choices(steps, weights=[3, 5, 5, 9, 9, 9, 1])[0]()
    assert editing.conflicts > 5
    async with editing.stores[0].view() as view:
        for record_id, contents in editing.written.items():
            record = await view.records.record(TRIP, record_id)
            if record is None:
                assert record_id in editing.erased
                continue
            assert record.content == contents[-1]
            assert record.revision == len(contents)
            told = versions(record, await view.records.edits(record))
            without_cause = [{k: v for k, v in c.items() if k != "caused_by"} for _, c in told]
            assert without_cause == [{k: v for k, v in c.items() if k != "caused_by"} for c in contents]
    chores = editing.stores[0].maintenance
    await chores.finish_erasures(await chores.owed_erasures())
    for store in editing.stores:
        await store.close()
    assert {finding.verdict for finding in inspect(database, is_deep=True)} == {Verdict.OK}
