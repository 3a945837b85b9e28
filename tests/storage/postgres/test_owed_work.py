"""Owed work of several processes on one database: each piece is done once, whoever ends meanwhile."""

import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import anyio
import pytest
from numpy import float32
from numpy.typing import NDArray

from kalito_mcp import NewMessage, Role, Settings
from kalito_mcp.domain.records import MessageWithImportance
from kalito_mcp.memory import Memory
from kalito_mcp.pins import collector
from kalito_mcp.pins.automatic import found_pins
from kalito_mcp.pins.found import FoundPin
from kalito_mcp.ports.embedder import VectorPolicy
from kalito_mcp.runtime.database_address import address_of
from kalito_mcp.storage.postgres.database import PostgresStore
from kalito_mcp.summaries.summarizer import Summarizer
from kalito_mcp.upkeep.vector_worker import VectorWorker
from kalito_mcp.wiring import memory_over
from tests.postgres import SUPERUSER, connected, new_database, shared_server
from tests.scripted_embedder import ScriptedEmbedder
from tests.storage.postgres.owed_work import TRIP, append, let_leases_end, until_nothing_is_owed

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[3]
FACT = "Please remember: I'm allergic to penicillin."


@asynccontextmanager
async def stores(database: str, count: int, lease_s: float = 60.0) -> AsyncIterator[list[PostgresStore]]:
    url = shared_server().url(database)
    opened = [await PostgresStore.open(url, lease_s=lease_s) for _ in range(count)]
    yield opened
    for store in opened:
        await store.close()


@asynccontextmanager
async def memories(opened: Sequence[PostgresStore], folder: Path) -> AsyncIterator[list[Memory]]:
    """A memory with its workers over each store."""
    if not opened:
        yield []
        return
    settings = Settings(database=address_of(folder / f"of-{len(opened)}.db"))
    async with memory_over(opened[0], settings) as memory, memories(opened[1:], folder) as others:
        yield [memory, *others]


def said(text: str) -> NewMessage:
    return NewMessage(Role.USER, text)


def counting(searched: Counter[str]) -> Callable[..., list[FoundPin]]:
    """What finds the pins of a message, and counts its words."""

    def found(message: MessageWithImportance, *given: Any, **named: Any) -> list[FoundPin]:
        searched[message.text] += 1
        return found_pins(message, *given, **named)

    return found


async def counted(database: str, what: str) -> int:
    async with connected(database, SUPERUSER) as admin:
        return int(await admin.fetchval(f"SELECT count(*) FROM {what}"))


async def test_owed_work_belongs_to_who_wrote_until_nothing_is_owed_or_the_lease_ends() -> None:
    name = await new_database()
    async with stores(name, 2) as (one, other):
        await append(one, "Hello.")
        await append(other, "Hello again.")
        assert one.maintenance.held({"ann", "bob"}) == {"ann"}
        assert other.maintenance.held({"ann"}) == set()
        assert await other.maintenance.claim_owed() == {}
        assert await one.maintenance.claim_owed() == {"ann": 2}
        await one.maintenance.settle_owed({"ann": 2})
        await append(other, "And again.")
        assert other.maintenance.held({"ann"}) == {"ann"}
        assert await one.maintenance.claim_owed() == {}
        await let_leases_end(name)
        assert await one.maintenance.claim_owed() == {"ann": 3}
        assert one.maintenance.held({"ann"}) == {"ann"}
        await append(other, "And then.")
        assert other.maintenance.held({"ann"}) == set()


async def test_a_process_stops_to_hold_owed_work_when_its_lease_has_run_out() -> None:
    async with stores(await new_database(), 1, lease_s=0.2) as (one,):
        await append(one, "Hello.")
        assert one.maintenance.held({"ann"}) == {"ann"}
        await anyio.sleep(0.25)
        assert one.maintenance.held({"ann"}) == set()


async def test_a_write_while_somebody_looks_is_looked_for_again() -> None:
    async with stores(await new_database(), 2) as (one, other):
        await append(one, "Hello.")
        looked_at = await one.maintenance.claim_owed()
        await append(other, "Hello again.")
        await one.maintenance.settle_owed(looked_at)
        assert other.maintenance.held({"ann"}) == set()
        assert await one.maintenance.claim_owed() == {"ann": 2}


async def test_settling_waits_for_no_writer_and_forgets_nothing_of_it() -> None:
    async with stores(await new_database(), 2) as (one, other):
        await append(one, "Hello.")
        looked_at = await one.maintenance.claim_owed()
        async with other.transaction() as writing:
            await writing.sessions.get(TRIP)
            with anyio.fail_after(20):
                await one.maintenance.settle_owed(looked_at)
        assert await one.maintenance.claim_owed() == {"ann": 2}


async def test_what_a_closed_store_held_is_free_at_once() -> None:
    name = await new_database()
    async with stores(name, 1) as (other,):
        async with stores(name, 1) as (one,):
            await append(one, "Hello.")
            assert await other.maintenance.claim_owed() == {}
        assert await other.maintenance.claim_owed() == {"ann": 1}


async def test_what_a_killed_process_owed_is_done_once_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched = Counter[str]()
    monkeypatch.setattr(collector, "found_pins", counting(searched))
    name = await new_database()
    async with stores(name, 3, lease_s=2) as opened, memories(opened, tmp_path) as [memory, *_]:
        command = [
            sys.executable,
            "-m",
            "tests.storage.postgres.owe_until_killed",
            shared_server().url(name),
            "2",
            "40",
        ]
        killed = await anyio.run_process(command, check=False, cwd=ROOT)
        assert killed.returncode == -9, killed.stderr.decode()[-500:]
        assert await counted(name, "owners WHERE owes") == 1
        await until_nothing_is_owed(name)
        stats = await memory.of_owner("ann").conversations.stats("trip")
        assert stats.summarized_messages >= 30
        assert searched.total() == 40


async def test_messages_of_one_owner_through_several_workers_are_searched_once_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched = Counter[str]()
    monkeypatch.setattr(collector, "found_pins", counting(searched))
    name = await new_database()
    async with stores(name, 2) as opened, memories(opened, tmp_path) as of_workers:
        for number in range(20):
            memory = of_workers[number % 2].of_owner("ann")
            await memory.record_messages("trip", [said(f"Turn {number}: the budget for May is {number} euro.")])
        await until_nothing_is_owed(name)
    assert len(searched) == 20
    assert set(searched.values()) == {1}


async def test_a_worker_that_goes_on_after_its_lease_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = await new_database()
    begun, may_go_on = anyio.Event(), anyio.Event()
    summarize = Summarizer.summarize

    async def late(self: Summarizer, *arguments, **named):  # type: ignore[no-untyped-def]
        if not begun.is_set():
            begun.set()
            await may_go_on.wait()
        return await summarize(self, *arguments, **named)

    monkeypatch.setattr(Summarizer, "summarize", late)
    async with stores(name, 2) as opened, memories(opened[:1], tmp_path / "late") as [slow]:
        await slow.of_owner("ann").record_messages("trip", [said(FACT), *map(said, "abcdefghijklmnop")])
        await begun.wait()
        await let_leases_end(name)
        async with memories(opened[1:], tmp_path / "quick") as [_]:
            await until_nothing_is_owed(name)
        before = [await counted(name, f"records WHERE type = '{kind}'") for kind in ("summary", "pin")]
        may_go_on.set()
        await slow.settled()
        assert [await counted(name, f"records WHERE type = '{kind}'") for kind in ("summary", "pin")] == before
        assert before == [1, 1]


class SlowEmbedder(ScriptedEmbedder):
    """Lets other tasks run while it embeds, and counts what is embedded at the same time."""

    running: ClassVar[Counter[str]] = Counter()
    asked_of_all: ClassVar[Counter[str]] = Counter()

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> NDArray[float32]:
        self.running.update(texts)
        assert set((self.running & Counter(texts)).values()) <= {1}
        self.asked_of_all.update(texts)
        await anyio.sleep(0.005)
        self.running.subtract(texts)
        return await super().embed(texts, is_query=is_query)


async def test_two_workers_never_embed_the_same_record() -> None:
    name = await new_database()
    embedders = [SlowEmbedder(), SlowEmbedder()]
    async with stores(name, 2) as opened, anyio.create_task_group() as tasks:
        workers = [
            VectorWorker(store, embedder, VectorPolicy(batch=4))
            for store, embedder in zip(opened, embedders, strict=True)
        ]
        for owner in "abcdefgh":
            await append(opened[0], *(f"{owner} said {number}" for number in range(10)), owner=owner)
        for worker in workers:
            tasks.start_soon(worker.run)
        for number in range(10, 15):
            for owner in "abcdefgh":
                await append(opened[number % 2], f"{owner} said {number}", owner=owner)
                for worker in workers:
                    worker.nudge()
        for worker in workers:
            await worker.settled()
        tasks.cancel_scope.cancel()
    of_records = {text: count for text, count in SlowEmbedder.asked_of_all.items() if " said " in text}
    assert of_records == {f"{owner} said {number}": 1 for owner in "abcdefgh" for number in range(15)}
    assert all(" said " in "".join(one.asked) for one in embedders)
    assert await counted(name, "record_vectors") == 120
    assert await counted(name, "vector_debtors") == 0


async def test_vectors_that_come_after_the_lease_are_stored_once() -> None:
    name = await new_database()
    begun, may_go_on = anyio.Event(), anyio.Event()

    class LateEmbedder(ScriptedEmbedder):
        async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> NDArray[float32]:
            if "said" in texts[0]:
                begun.set()
                await may_go_on.wait()
            return await super().embed(texts, is_query=is_query)

    late, quick = LateEmbedder(), ScriptedEmbedder()
    async with stores(name, 2) as opened, anyio.create_task_group() as tasks:
        await append(opened[0], "said once")
        tasks.start_soon(VectorWorker(opened[0], late, VectorPolicy()).pay)
        await begun.wait()
        other = VectorWorker(opened[1], quick, VectorPolicy())
        await other.pay()
        assert quick.asked == []
        await let_leases_end(name)
        await other.pay()
        assert quick.asked == ["said once"]
        may_go_on.set()
    assert await counted(name, "record_vectors") == 1
    assert await counted(name, "vector_debts") == 0


async def test_chores_that_find_nothing_write_nothing() -> None:
    async with stores(await new_database(), 1) as (store,):
        await append(store, "Hello.")
        revision = await store.revision("ann")
        await store.maintenance.settle_owed(await store.maintenance.claim_owed())
        await store.maintenance.tidy()
        assert await store.revision("ann") == revision
        assert await store.maintenance.claim_owed() == {}
