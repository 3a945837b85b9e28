"""`ports.imports`: how far files were imported, and the stored messages that an import compares."""

from dataclasses import replace

import pytest

from kalito_mcp.domain.imports import FileRead, SourceRead, StoredTurn
from kalito_mcp.domain.records import Role
from kalito_mcp.domain.scope import Scope
from kalito_mcp.ports.store import Store
from kalito_mcp.records.sessions import ensure_session
from tests import drafts
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio
OWNER = Scope()
READ = FileRead("claude-code", "/t/a.jsonl", size=10, modified_ns=7, read_to=9, fingerprint="f")
LATER = FileRead("claude-code", "/t/a.jsonl", size=20, modified_ns=8, read_to=20, fingerprint="g")
OTHER = FileRead("codex", "/t/a.jsonl", size=1, modified_ns=1, read_to=1, fingerprint="h")


async def test_a_file_is_kept_as_it_was_read_last_for_its_owner_and_source(store: Store) -> None:
    async with store.transaction() as transaction:
        for file in (READ, LATER, OTHER):
            await transaction.imports.keep(OWNER, file, now_ms=START_MS)
        assert await transaction.imports.files(OWNER, "claude-code") == [LATER]
    async with store.view() as view:
        assert await view.imports.files(OWNER, "codex") == [OTHER]
        assert await view.imports.files(Scope("somebody else"), "codex") == []


async def test_the_sources_of_an_owner_are_counted_the_latest_first(store: Store) -> None:
    async with store.transaction() as transaction:
        for at, file in enumerate((OTHER, READ, replace(LATER, place="/t/b.jsonl"))):
            await transaction.imports.keep(OWNER, file, now_ms=START_MS + at)
        await transaction.imports.keep(Scope("somebody else"), OTHER, now_ms=START_MS + 9)
    async with store.view() as view:
        assert await view.imports.sources(OWNER) == [
            SourceRead("claude-code", files=2, read_bytes=29, read_at=START_MS + 2),
            SourceRead("codex", files=1, read_bytes=1, read_at=START_MS),
        ]
        assert await view.imports.sources(Scope("nobody")) == []


async def test_the_messages_of_a_session_are_read_in_order_and_in_pieces(store: Store) -> None:
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, Scope(session="trip"), now_ms=START_MS)
        other = await ensure_session(transaction.sessions, Scope(session="other"), now_ms=START_MS)
        batch = [
            drafts.message(text, client_key=key) for text, key in (("one", "a:1"), ("two", None), ("three", "a:3"))
        ]
        await transaction.conversations.append_messages(session, batch, now_ms=START_MS)
        await transaction.conversations.append_messages(other, [drafts.message("elsewhere")], now_ms=START_MS)
    async with store.view() as view:
        first = await view.imports.turns(session, after_seq=0, limit=2)
        assert [(turn.seq, turn.client_key, turn.text) for turn in first] == [(1, "a:1", "one"), (2, None, "two")]
        [third] = await view.imports.turns(session, after_seq=2, limit=2)
    said_at = batch[2].created_at
    assert third == StoredTurn(3, "a:3", Role.USER, "three", third.number, said_at, recorded_at=START_MS, client=None)
    assert third.number > first[1].number


async def test_an_erased_message_keeps_its_place_without_a_text(store: Store) -> None:
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, Scope(session="trip"), now_ms=START_MS)
        batch = [drafts.message(text) for text in ("one", "two", "three")]
        appended = await transaction.conversations.append_messages(session, batch, now_ms=START_MS)
        erased = await transaction.records.record(OWNER, f"msg_{appended[0].id}")
        assert erased is not None
        await transaction.records.purge(erased, now_ms=START_MS)
    async with store.view() as view:
        turns = await view.imports.turns(session, after_seq=0, limit=2)
    assert [(turn.seq, turn.text) for turn in turns] == [(1, ""), (2, "two")]


async def test_sessions_are_found_by_a_client_key_and_by_the_moment_at_which_a_side_spoke(store: Store) -> None:
    async with store.transaction() as transaction:
        for owner, name, key, at in (("ann", "a", "x:1", 100), ("ann", "b", "x:1", 300), ("bob", "c", "x:1", 100)):
            scope = Scope(owner, session=name)
            session = await ensure_session(transaction.sessions, scope, now_ms=START_MS)
            batch = [drafts.message(name, client_key=key, created_at=START_MS + at)]
            await transaction.conversations.append_messages(session, batch, now_ms=START_MS)
    ann = Scope("ann")
    async with store.view() as view:
        assert list(await view.imports.holding(ann, "x:1")) == ["a", "b"]
        assert list(await view.imports.holding(ann, "x:2")) == []
        about = {"since": START_MS + 90, "until": START_MS + 110}
        assert list(await view.imports.at_moment(ann, batch[0].role, **about)) == ["a"]
        other = next(role for role in Role if role is not batch[0].role)
        assert list(await view.imports.at_moment(ann, other, **about)) == []
