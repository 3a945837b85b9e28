"""Records on PostgreSQL, beyond the port: characters that it cannot store, equal ids of two owners, and round trips."""

from typing import Final

import asyncpg
import pytest

from kalito_mcp.domain.memory_records import MemoryRecord
from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import Scope
from kalito_mcp.storage.postgres.database import PostgresStore
from tests import drafts
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio
ANN, BOB = Scope(owner="ann"), Scope(owner="bob")
ODD: Final = "a\0b\u2028c\uf8f0\uf8f0\0 \\u0000 \\\0 é"
SELECT_INDEXED: Final = "SELECT record_key, cardinality(terms) FROM fresh_terms ORDER BY record_key"
SELECT_SHAPES: Final = "SELECT record_key, word_count FROM record_shapes ORDER BY record_key"


async def noted(store: PostgresStore, whose: Scope, text: str, **fields: object) -> MemoryRecord:
    """A note with the same id for every owner."""
    note = {"source": "dir/note", "document_id": "note", "chunk_index": 0} | fields
    draft = drafts.record(RecordType.DOCUMENT, text, record_id="note", client_key="k", **note)
    async with store.transaction() as transaction:
        [record] = await transaction.records.add_records(whose, [draft], now_ms=START_MS)
        return record


async def test_words_that_postgresql_cannot_store_come_back_from_every_read(store: PostgresStore) -> None:
    note = await noted(store, ANN, ODD, tags=[ODD], title=ODD)
    async with store.view() as view:
        assert await view.records.sources(ANN, "dir/") == [("dir/note", len(ODD.encode()))]
        same = await view.records.same_words(ANN, RecordType.DOCUMENT, ODD)
        assert same == note
        assert not await view.records.damaged(ANN, [note.id])
    async with store.transaction() as transaction:
        changed = await transaction.records.change(note, drafts.edit(note, {"text": "plain"}))
        await transaction.records.change(changed, drafts.edit(changed, {"text": "plainer"}))
    async with store.view() as view:
        [scanned] = await view.records.scan(ANN, after=None, limit=9, has_forgotten=True)
        assert scanned.earlier_texts == f"{ODD}\nplain"
        assert not await view.records.damaged(ANN, [note.id])


async def test_the_same_ids_of_two_owners_are_two_records(store: PostgresStore) -> None:
    of_ann, of_bob = await noted(store, ANN, "Ann's"), await noted(store, BOB, "Bob's")
    async with store.transaction() as transaction:
        await transaction.records.count_uses("ann", {"note": 3}, used_at=START_MS)
        await transaction.records.change(of_ann, drafts.edit(of_ann, {"text": "Ann's own"}))
        await transaction.records.forget_values(ANN, {"value"}, now_ms=START_MS)
    async with store.view() as view:
        assert await view.records.record(BOB, "note") == of_bob
        assert await view.records.edits(of_bob) == []
        assert not await view.records.has_forgotten_values("bob")
    async with store.transaction() as transaction:
        await transaction.records.purge(of_ann, now_ms=START_MS, texts=["Ann's"])
    async with store.view() as view:
        assert await view.records.record(ANN, "note") is None
        assert await view.records.record(BOB, "note") == of_bob
        for scope, is_erased in ((ANN, True), (BOB, False)):
            assert (await view.records.tombstone(scope, "note") is not None) == is_erased
            assert bool(await view.records.erased_texts(scope, RecordType.DOCUMENT, ["Ann's"])) == is_erased
            keyed = await view.records.of_client_keys(scope, RecordType.DOCUMENT, ["k"])
            assert keyed == ([] if is_erased else [of_bob])


async def test_a_row_that_decayed_leaves_no_terms_behind(store: PostgresStore, all_rows: asyncpg.Connection) -> None:
    note = await noted(store, ANN, "one two three")
    await all_rows.execute("SET kalito.revision = 1; UPDATE records SET text = 'four'")
    async with store.transaction() as transaction:
        await transaction.records.purge(note, now_ms=START_MS)
    assert await all_rows.fetch(SELECT_INDEXED) == await all_rows.fetch(SELECT_SHAPES) == []


async def test_reads_are_one_round_trip_and_a_new_record_eight_at_most(store: PostgresStore) -> None:
    note = await noted(store, ANN, "known words", scope="person")
    sent: list[str] = []
    async with store.transaction() as transaction:
        transaction.transaction.connection.add_query_logger(lambda one: sent.append(one.query))
        draft = drafts.record(RecordType.TASK, "new")
        await transaction.records.add_records(ANN, [draft], now_ms=START_MS)
        assert len(sent) <= 8, sent
        reads = transaction.records
        for read in (
            reads.record(ANN, note.id),
            reads.list_records(ANN, frozenset(), limit=9),
            reads.document(ANN, "dir/note"),
            reads.known(ANN, limit=9),
            reads.left_open(ANN, limit=9),
            reads.statements(ANN, lasting=9, of_sessions=9, forgotten=9),
            reads.recent_words(ANN, most_chars=9),
            reads.superseded(ANN, ["note"]),
            reads.edits(note),
        ):
            sent.clear()
            await read
            assert len(sent) == 1, sent
