"""Several processes on one database, calls that are cancelled, and a server that goes and comes back."""

import random
import signal
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from kalito_mcp.config.settings import Settings
from kalito_mcp.domain.records import NewMessage, Role
from kalito_mcp.domain.scope import Scope
from kalito_mcp.errors import StorageUnreachable
from kalito_mcp.ports.store import Store, WriteTransaction
from kalito_mcp.runtime.database_address import address_of
from kalito_mcp.storage.postgres import transactions
from kalito_mcp.storage.postgres.database import PostgresStore
from kalito_mcp.storage.postgres.notices import commit_with_notice
from kalito_mcp.wiring import open_memory
from tests import drafts
from tests.pgbouncer import shared_pooler
from tests.postgres import OWNER, lay_template, new_database, new_server, shared_server
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio


async def append(store: Store, owner: str, text: str) -> None:
    scope = Scope(owner, "default", "talk")

    async def write(transaction: WriteTransaction) -> None:
        session = await transaction.sessions.get(scope)
        session = session or await transaction.sessions.create(scope, now_ms=START_MS)
        await transaction.conversations.append_messages(session, [drafts.message(text)], now_ms=START_MS)

    await store.write(write)


async def said(store: Store, owner: str) -> list[tuple[int, str]]:
    async with store.view() as view:
        session = await view.sessions.get(Scope(owner, "default", "talk"))
        if session is None:
            return []
        messages = await view.conversations.messages(session, first_seq=1, last_seq=10_000)
        assert session.message_count == len(messages)
        return [(one.seq, one.text) for one in messages]


@pytest.mark.parametrize("is_pooled", [False, True])
async def test_workers_lose_nothing_and_do_nothing_twice_while_calls_are_cancelled(is_pooled: bool) -> None:
    server, name = shared_server(), await new_database()
    url = (shared_pooler() if is_pooled else server).url(name)
    stores = [await PostgresStore.open(url, direct_url=server.url(name, OWNER)) for _ in range(3)]
    owners = [f"owner {number}" for number in range(5)]
    acknowledged: Counter[tuple[str, str]] = Counter()
    tried: set[tuple[str, str]] = set()

    async def client(number: int) -> None:
        rng = random.Random(number)
        for step in range(12):
            owner, text = rng.choice(owners), f"{number} said {step}"
            tried.add((owner, text))
            with anyio.move_on_after(rng.choice([0.001, 0.01, 60])):
                await append(rng.choice(stores), owner, text)
                acknowledged[owner, text] += 1

    async with anyio.create_task_group() as tasks:
        for number in range(16):
            tasks.start_soon(client, number)
    for owner in owners:
        found = await said(stores[0], owner)
        assert [seq for seq, _ in found] == list(range(1, len(found) + 1))
        texts = Counter(text for _, text in found)
        assert not texts or set(texts.values()) == {1}
        assert {text for one, text in acknowledged if one == owner} <= set(texts)
        assert set(texts) <= {text for one, text in tried if one == owner}
    for store in stores:
        await store.close()


async def test_a_server_that_comes_back_is_used_again_and_has_what_was_acknowledged(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    shared_server()  # skips where there is no PostgreSQL
    server = new_server(fsync="on", synchronous_commit="on", full_page_writes="on")
    lay_template(server)
    name = await new_database(server)
    store = await PostgresStore.open(server.url(name), direct_url=server.url(name, OWNER))
    await append(store, "ann", "before")
    address = replace(address_of(server.url(name)), prefix=tmp_path / "memory")
    async with open_memory(None, replace(Settings(), database=address)) as memory:
        server.kill()
        for _ in range(2):
            with pytest.raises(StorageUnreachable, match="cannot be reached"):
                await append(store, "ann", "meanwhile")
            with pytest.raises(StorageUnreachable, match="cannot be reached"):
                await said(store, "ann")
        memory._services.owed.nudge()
        while "could not look whether files are to be cleaned" not in caplog.text:  # noqa: ASYNC110 - the log knows
            await anyio.sleep(0.01)
        assert "may still contain erased text" not in caplog.text
    server.start()
    for _ in range(20):
        with suppress(StorageUnreachable):  # connections from before are found out one by one
            await append(store, "ann", "after")
            break
    assert await said(store, "ann") == [(1, "before"), (2, "after")]
    await store.close()
    server.kill()


async def test_a_commit_that_a_frozen_server_does_not_confirm_can_be_sent_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server = shared_server()
    address = replace(address_of(server.url(await new_database())), prefix=tmp_path / "memory")
    message = NewMessage(Role.USER, "The bees swarm in May.", client_key="bees 1")

    def freeze(owner_keys: Iterable[int]) -> str:
        if owner_keys:
            server.signal_all(signal.SIGSTOP)
        return commit_with_notice(owner_keys)

    async with open_memory(None, replace(Settings(), database=address)) as memory:
        with monkeypatch.context() as patched:
            patched.setattr(transactions, "_COMMIT_S", 1.0)
            patched.setattr(transactions, "commit_with_notice", freeze)
            try:
                with pytest.raises(StorageUnreachable, match="may be stored, or not"):
                    await memory.record_messages("talk", [message])
            finally:
                server.signal_all(signal.SIGCONT)
        await memory.record_messages("talk", [message])
        assert [one.text for one in (await memory.conversations.transcript("talk")).messages] == [message.text]
