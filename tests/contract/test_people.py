"""`ports.people`: whose memories there are, and that one is erased in slices, with all of it and nothing else."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kalito_mcp import Memory
from kalito_mcp.config.settings import Settings
from kalito_mcp.domain.access import Permission
from kalito_mcp.domain.audit import NewEntry
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.spaces import Role
from kalito_mcp.ports.store import Store, WriteTransaction
from kalito_mcp.runtime.database_address import address_of
from kalito_mcp.wiring import memory_over
from tests.people import fill, rows_of
from tests.scripted import START_MS, CountedIds, ScriptedClock

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def memory_of(store: Store, folder: Path) -> AsyncIterator[Memory]:
    settings = Settings(database=address_of(folder / "files" / "memory.db"))
    async with memory_over(store, settings, clock=ScriptedClock(), ids=CountedIds()) as memory:
        yield memory


async def erase(store: Store, owner: str, most: int) -> list[dict[str, int]]:
    slices: list[dict[str, int]] = []
    while erased := await store.write(lambda transaction: transaction.people.erase(owner, most=most)):
        slices.append(dict(erased))
    return slices


async def owners(store: Store) -> dict[str, tuple[int, int, int | None]]:
    found = await store.read(lambda view: view.people.owners())
    return {one.owner: (one.sessions, one.records, one.written_at) for one in found}


@pytest.mark.parametrize("most", [3, 10_000])
async def test_all_of_an_owner_goes_and_nothing_of_another(store: Store, tmp_path: Path, most: int) -> None:
    async with memory_of(store, tmp_path) as memory:
        for name, word in (("anna", "zanzibarquokka"), ("ben", "timbuktunumbat")):
            await fill(memory, name, word)
    before = await owners(store)
    assert before.keys() == {"anna", "ben"}
    assert before["anna"] == before["ben"]
    sessions, records, written_at = before["anna"]
    assert (sessions, records > 10, written_at) == (2, True, START_MS)
    kept = await rows_of(store, "ben")
    slices = await erase(store, "anna", most)
    assert len(slices) > 10 if most == 3 else len(slices) == 1
    assert slices[0]["access_tokens"] == 2
    erased = Counter[str]()
    for one in slices:
        erased.update(one)
    assert erased["records"] > records, "what was forgotten or erased has rows, too"
    assert (erased["sessions"], erased["agents"], erased["projects"]) == (2, 2, 1)
    assert erased.keys() >= {"memory_edits", "feedback", "tombstones", "forgotten_values", "graphs", "imports", "given"}
    assert await rows_of(store, "ben") == kept
    assert (await owners(store)) == {"ben": before["ben"]}
    assert (await store.maintenance.owed_erasures()).is_owed
    assert await rows_of(store, "anna") == []
    async with store.view() as view:
        assert not await view.access.tokens("anna", limit=9)
        assert len(await view.access.tokens("ben", limit=9)) == 2
        assert not await view.sign_in.grants("anna", now_ms=START_MS, limit=9)
        assert await view.sign_in.passphrase("anna") is None
        assert await view.sign_in.passphrase("ben") is not None
        assert not await view.given.entries(Scope("anna"), limit=9)


async def test_conversations_are_closed_before_they_are_erased(store: Store, tmp_path: Path) -> None:
    async with memory_of(store, tmp_path) as memory:
        await fill(memory, "anna", "zanzibarquokka")
    await store.write(lambda transaction: transaction.people.erase("anna", most=1))
    listed = await store.read(lambda view: view.sessions.list_recent(Scope("anna"), limit=9))
    assert {str(one.state) for one in listed} == {"FINALIZED"}


async def test_somebody_of_the_same_name_begins_with_nothing(store: Store, tmp_path: Path) -> None:
    async with memory_of(store, tmp_path) as memory:
        await fill(memory, "anna", "zanzibarquokka")
        await memory.of_owner("anna").search_memory("zanzibarquokka")
        await erase(store, "anna", 100)
        again = memory.of_owner("anna")
        assert (await again.search_memory("zanzibarquokka")).hits == ()
        [note] = await again.remember("note", {"text": "A zanzibarquokka is a boat, they say."})
        assert [one.record_id for one in (await again.search_memory("zanzibarquokka")).hits] == [note.id]
        for name in ("ben", "carl"):
            [other] = await memory.of_owner(name).remember("note", {"text": f"{name} knows no zanzibarquokka."})
            assert [one.record_id for one in (await memory.of_owner(name).search_memory("zanzibarquokka")).hits] == [
                other.id
            ]


async def test_the_audit_log_stays_whole(store: Store) -> None:
    for owner in ("anna", "ben"):
        entry = NewEntry(START_MS, "tok_1", owner, "forget")
        await store.write(lambda transaction, said=entry: transaction.audit.add(said))
    await erase(store, "anna", 10)
    fault, head = await store.read(lambda view: view.audit.check(None))
    assert (fault, head.count) == (None, 2)


async def test_names_are_of_who_has_anything_or_is_in_a_space(store: Store, tmp_path: Path) -> None:
    async with memory_of(store, tmp_path) as memory:
        await memory.access.create_token(Permission.READ, owner="carl")
        await memory.of_owner("ben").remember("note", {"text": "Quokkas are small."})
        await memory.spaces.create("team")
        await memory.spaces.set_member("team", "Anna", Role.READER)
    names = await store.read(lambda view: view.people.names())
    assert [one for one in names if one != "space:team"] == ["Anna", "ben", "carl"]
    assert [*names] == [*await owners(store)]


async def test_nobody_is_made_by_erasing_them(store: Store) -> None:
    assert await erase(store, "nobody", 10) == []
    assert await owners(store) == {}


async def test_a_project_without_anything_is_dropped_and_no_other(store: Store, tmp_path: Path) -> None:
    async with memory_of(store, tmp_path) as memory:
        kept = {}
        for project in ("empty", "used", "forgotten"):
            of_project = await memory.of_owner("anna").in_project(project)
            [note] = await of_project.remember("note", {"text": f"A note of {project}."})
            kept[project] = note.id
        await memory.of_owner("ben").remember("note", {"text": "Of Ben."})
        await memory.of_owner("anna").purge([kept["empty"]])
        await memory.of_owner("anna").forget(kept["forgotten"])
        await store.write(lambda transaction: transaction.people.drop_empty_projects("anna"))
        assert {row.fields["id"] for row in await rows_of(store, "anna") if row.kind == "projects"} == {
            "used",
            "forgotten",
        }
        await memory.of_owner("anna").restore(kept["forgotten"])


async def test_a_write_asks_whether_somebody_has_anything_without_making_them_an_owner(
    store: Store, tmp_path: Path
) -> None:
    async def has(owner: str) -> bool:
        return await store.write(lambda transaction: transaction.people.has(owner))

    assert not await has("anna")
    assert await owners(store) == {}
    async with memory_of(store, tmp_path) as memory:
        await fill(memory, "anna", "zanzibarquokka")
        assert await has("anna")
        assert not await has("ben")
        assert (await owners(store)).keys() == {"anna"}
        await fill(memory, "ben", "timbuktunumbat")
    await erase(store, "anna", 10_000)

    async def writes_on(transaction: WriteTransaction) -> str:
        assert await transaction.people.has("ben")
        assert not await transaction.people.has("anna")
        [agent, *_] = await transaction.sessions.agents(Scope("ben"), limit=1)
        return agent

    assert await store.write(writes_on)
    assert (await owners(store)).keys() == {"ben"}
