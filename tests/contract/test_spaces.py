"""`ports.spaces`: spaces, members and copies as they were stored, and the revisions of those whom they concern."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any

import anyio
import pytest

from kalito_mcp.contexts.cache import CachePolicy, RevisionCache
from kalito_mcp.domain.audit import Change
from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.spaces import Membership, Role, SharedCopy, Space
from kalito_mcp.ports.spaces import SpaceReader, SpaceWriter
from kalito_mcp.ports.store import Store, WriteTransaction
from tests import drafts
from tests.contract.conftest import Backend
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio
BEES = Space("bees", None, START_MS)
SHOP = Space("shop \U0001f41d", "/home/ann/shop", START_MS + 1)
Work = Callable[[SpaceWriter], Coroutine[Any, Any, Any]]


def member(user: str, space: Space = BEES, role: Role = Role.WRITER) -> Membership:
    return Membership(space, user, role, START_MS)


def copy(record_id: str, source_id: str, user: str = "ann", space: Space = BEES) -> SharedCopy:
    return SharedCopy(space.name, record_id, user, source_id, START_MS)


async def write(store: Store, work: Work) -> Any:
    return await store.write(lambda transaction: work(transaction.spaces))


async def lay(store: Store) -> None:
    """Two spaces: ann and ben in one, ann in the other."""

    async def work(spaces: SpaceWriter) -> None:
        for one in (SHOP, BEES):
            assert await spaces.add_space(one)
        for membership in (member("ben"), member("ann", role=Role.CURATOR), member("ann", SHOP, Role.READER)):
            assert await spaces.set_member(membership)

    await write(store, work)


async def note(transaction: WriteTransaction, owner: str, number: int = 1) -> None:
    draft = drafts.record(RecordType.THOUGHT, "Bees.", record_id=f"thought {number} of {owner}")
    await transaction.records.add_records(Scope(owner), [draft], now_ms=START_MS)


async def test_spaces_and_members_come_back_as_they_were_stored_and_by_name(store: Store) -> None:
    await lay(store)
    async with store.view() as view:
        assert [*await view.spaces.spaces()] == [BEES, SHOP]
        assert await view.spaces.space(SHOP.name) == SHOP
        assert await view.spaces.space("no such") is None
        assert [*await view.spaces.members("bees")] == [member("ann", role=Role.CURATOR), member("ben")]
        assert [*await view.spaces.memberships("ann")] == [
            member("ann", role=Role.CURATOR),
            member("ann", SHOP, Role.READER),
        ]
        assert [*await view.spaces.members("no such")] == [*await view.spaces.memberships("nobody")] == []


async def test_a_write_sees_what_it_changed(store: Store) -> None:
    await lay(store)
    async with store.transaction() as transaction:
        spaces = transaction.spaces
        assert [one.user for one in await spaces.members("bees")] == ["ann", "ben"]
        await spaces.remove_member("bees", "ben")
        await spaces.add_copy(copy("copy_1", "pin_1"))
        assert [one.user for one in await spaces.members("bees")] == ["ann"]
        assert [*await spaces.memberships("ben")] == []
        assert [*await spaces.copies("ann", ["pin_1"])] == [copy("copy_1", "pin_1")]
        assert [*await spaces.shared("bees", ["copy_1"])] == ["copy_1"]


async def test_a_name_is_taken_once(store: Store) -> None:
    await lay(store)
    assert not await write(store, lambda spaces: spaces.add_space(replace(BEES, project="other")))
    assert await store.read(lambda view: view.spaces.space("bees")) == BEES


async def test_a_member_gets_another_role_and_stays_since_when_they_came(store: Store) -> None:
    await lay(store)
    later = replace(member("ben", role=Role.CURATOR), since=START_MS + 5)
    assert await write(store, lambda spaces: spaces.set_member(later))
    assert await store.read(lambda view: view.spaces.memberships("ben")) == [replace(later, since=START_MS)]


async def test_nobody_comes_into_a_space_that_is_not_there(store: Store) -> None:
    assert not await write(store, lambda spaces: spaces.set_member(member("ann")))
    await lay(store)
    await write(store, lambda spaces: spaces.remove_space("bees"))
    assert not await write(store, lambda spaces: spaces.set_member(member("ann")))
    assert await store.read(lambda view: view.spaces.memberships("ann")) == [member("ann", SHOP, Role.READER)]


async def test_a_member_leaves_once(store: Store) -> None:
    await lay(store)
    assert await write(store, lambda spaces: spaces.remove_member("bees", "ann"))
    assert not await write(store, lambda spaces: spaces.remove_member("bees", "ann"))
    assert not await write(store, lambda spaces: spaces.remove_member("no such", "ann"))
    assert not await write(store, lambda spaces: spaces.remove_member("bees", "nobody"))
    assert "nobody" not in await store.read(lambda view: view.people.names())
    assert [one.user for one in await store.read(lambda view: view.spaces.members("bees"))] == ["ben"]
    assert [one.space for one in await store.read(lambda view: view.spaces.memberships("ann"))] == [SHOP]


async def lay_copies(store: Store) -> None:
    await lay(store)

    async def work(spaces: SpaceWriter) -> None:
        for one in (
            copy("copy_2", "pin_1", space=SHOP),
            copy("copy_3", "pin_2"),
            copy("copy_1", "pin_1"),
            copy("copy_4", "pin_1", "ben"),
        ):
            await spaces.add_copy(one)

    await write(store, work)


async def test_copies_are_found_by_their_source_and_sources_by_their_copy(store: Store) -> None:
    await lay_copies(store)
    async with store.view() as view:
        of_ann = [copy("copy_1", "pin_1"), copy("copy_3", "pin_2"), copy("copy_2", "pin_1", space=SHOP)]
        assert [*await view.spaces.copies("ann")] == of_ann
        assert [*await view.spaces.copies("ann", ["pin_1", "pin_9"])] == [of_ann[0], of_ann[2]]
        assert [*await view.spaces.copies("ann", [])] == [*await view.spaces.copies("nobody")] == []
        assert await view.spaces.shared("bees", ["copy_4", "copy_2", "copy_1"]) == {
            "copy_1": of_ann[0],
            "copy_4": copy("copy_4", "pin_1", "ben"),
        }
        assert await view.spaces.shared("bees", []) == {}


async def test_the_first_note_on_a_copy_stays_and_so_do_the_copies_of_who_leaves(store: Store) -> None:
    await lay_copies(store)
    await write(store, lambda spaces: spaces.add_copy(copy("copy_4", "pin_7", "ann")))
    await write(store, lambda spaces: spaces.remove_member("bees", "ben"))
    assert await store.read(lambda view: view.spaces.copies("ben")) == [copy("copy_4", "pin_1", "ben")]


async def test_copies_are_forgotten_by_their_space_and_id(store: Store) -> None:
    await lay_copies(store)
    await write(store, lambda spaces: spaces.remove_copies("bees", ["copy_1", "copy_2", "copy_4"]))
    assert [one.record_id for one in await store.read(lambda view: view.spaces.copies("ann"))] == ["copy_3", "copy_2"]
    assert await store.read(lambda view: view.spaces.copies("ben")) == []


async def test_a_space_goes_with_its_members_and_copies_and_no_others(store: Store) -> None:
    await lay_copies(store)
    await write(store, lambda spaces: spaces.remove_space("bees"))
    await write(store, lambda spaces: spaces.remove_space("no such"))
    async with store.view() as view:
        assert [*await view.spaces.spaces()] == [SHOP]
        assert [one.space for one in await view.spaces.memberships("ann")] == [SHOP]
        assert [one.record_id for one in await view.spaces.copies("ann")] == ["copy_2"]
        assert [*await view.spaces.members("bees")] == [*await view.spaces.memberships("ben")] == []
    assert await write(store, lambda spaces: spaces.add_space(BEES))
    assert await store.read(lambda view: view.spaces.members("bees")) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda one: one.spaces.set_member(member("ben", SHOP)),
        lambda one: one.spaces.set_member(member("ben", role=Role.READER)),
        lambda one: one.spaces.remove_member("bees", "ben"),
        lambda one: one.spaces.remove_space("bees"),
        lambda one: one.spaces.add_copy(copy("copy_9", "pin_9")),
        lambda one: one.spaces.remove_copies("bees", ["copy_1"]),
        lambda one: note(one, BEES.owner),
        lambda one: note(one, "ben"),
    ],
)
async def test_a_member_s_revision_changes_with_their_spaces_and_memberships(
    backend: Backend, change: Callable[[WriteTransaction], Coroutine[Any, Any, Any]]
) -> None:
    one, other = await backend.open(), await backend.open()
    await lay_copies(one)
    before = await one.revision("ben")
    await other.write(change)
    assert await one.revision("ben") != before


async def test_no_two_states_of_a_member_have_the_same_revision(store: Store) -> None:
    """In particular not when one space is written as often as another one was before the member left it."""
    await lay(store)

    async def make(transaction: WriteTransaction, number: int) -> None:
        assert await transaction.spaces.add_space(replace(SHOP, created_at=number))
        await transaction.spaces.set_member(member("ben", SHOP))

    changes: Mapping[str, Callable[[WriteTransaction, int], Coroutine[Any, Any, Any]]] = {
        "in": lambda one, _: one.spaces.set_member(member("ben", SHOP)),
        "out": lambda one, _: one.spaces.remove_member(SHOP.name, "ben"),
        "shop": lambda one, number: note(one, SHOP.owner, number),
        "bees": lambda one, number: note(one, BEES.owner, number),
        "own": lambda one, number: note(one, "ben", number),
        "gone": lambda one, _: one.spaces.remove_space(SHOP.name),
        "made": make,
    }
    seen = [await store.revision("ben")]
    catching_up = ["bees"] * 12
    order = ["in", "shop", "own", "out", *catching_up, "in", "shop", "gone", *catching_up, "made", "bees", "own"]
    for number, name in enumerate(order):
        await store.write(lambda transaction, change=changes[name], number=number: change(transaction, number))
        seen.append(await store.revision("ben"))
    assert len(set(seen)) == len(seen)


async def test_a_cache_of_a_member_is_not_served_after_another_one_wrote_into_the_space(store: Store) -> None:
    await lay(store)
    cache: RevisionCache[str, str] = RevisionCache(CachePolicy())
    for owner in ("ann", "ben"):
        cache.put(owner, "as it was", revision=await store.revision(owner), now_s=0)
    await store.write(lambda transaction: note(transaction, SHOP.owner))
    assert cache.get("ann", revision=await store.revision("ann"), now_s=0) is None
    cache.put("ann", "as it is", revision=await store.revision("ann"), now_s=0)
    assert cache.get("ann", revision=await store.revision("ann"), now_s=0) == "as it is"


async def test_the_log_names_spaces_and_members_and_no_copies(store: Store) -> None:
    async def noticed(transaction: WriteTransaction, work: Work) -> list[Change]:
        return [*(await transaction.audit.changes_of(lambda: work(transaction.spaces)))[1]]

    async def made(spaces: SpaceWriter) -> None:
        await spaces.add_space(BEES)
        await spaces.add_space(BEES)
        await spaces.set_member(member("ann"))
        await spaces.set_member(member("ben"))
        await spaces.add_copy(copy("copy_1", "pin_1"))

    async def changed(spaces: SpaceWriter) -> None:
        await spaces.set_member(member("ann"))
        await spaces.set_member(member("ben", role=Role.READER))

    async def work(transaction: WriteTransaction) -> list[list[Change]]:
        return [
            await noticed(transaction, made),
            await noticed(transaction, changed),
            await noticed(transaction, lambda spaces: spaces.remove_member("bees", "ben")),
            await noticed(transaction, lambda spaces: spaces.remove_space("bees")),
        ]

    assert [[(one.what, one.count, {*one.ids}) for one in changes] for changes in await store.write(work)] == [
        [("added", 3, {"space:bees", "bees/ann", "bees/ben"})],
        [("changed", 1, {"bees/ben"})],
        [("erased", 1, {"bees/ben"})],
        [("erased", 2, {"bees/ann", "space:bees"})],
    ]


@pytest.mark.parametrize(
    ("read", "change"),
    [
        (lambda spaces: spaces.memberships("ben"), lambda spaces: spaces.remove_member("bees", "ben")),
        (lambda spaces: spaces.memberships("ben"), lambda spaces: spaces.set_member(member("ben", role=Role.READER))),
        (lambda spaces: spaces.memberships("ben"), lambda spaces: spaces.remove_space("bees")),
        (lambda spaces: spaces.members("bees"), lambda spaces: spaces.set_member(member("cleo"))),
        (lambda spaces: spaces.members("bees"), lambda spaces: spaces.remove_member("bees", "ben")),
        (lambda spaces: spaces.copies("ben"), lambda spaces: spaces.add_copy(copy("copy_9", "pin_9", "ben", SHOP))),
        (lambda spaces: spaces.shared("bees", ["copy_1"]), lambda spaces: spaces.remove_copies("bees", ["copy_1"])),
    ],
)
async def test_what_a_write_read_stays_until_it_ends(
    backend: Backend, read: Callable[[SpaceReader], Coroutine[Any, Any, Any]], change: Work
) -> None:
    one, other = await backend.open(), await backend.open()
    await lay_copies(one)
    is_changed = anyio.Event()

    async def change_it() -> None:
        await write(other, change)
        is_changed.set()

    async with anyio.create_task_group() as tasks, one.transaction() as transaction:
        before = await read(transaction.spaces)
        tasks.start_soon(change_it)
        for _ in range(20):
            await one.revision("ben")
        assert await read(transaction.spaces) == before
        assert not is_changed.is_set()
    assert await one.read(lambda view: read(view.spaces)) != before


async def test_whoever_was_in_a_space_when_it_goes_has_another_revision_and_nobody_waits_for_ever(
    backend: Backend,
) -> None:
    """Shares, comings and goings of many people at once, while the spaces are removed and made again."""
    stores = [await backend.open(), await backend.open()]
    await lay(stores[0])
    users = [f"user {number}" for number in range(6)]

    async def share(store: Store, user: str, space: Space) -> None:
        async def work(transaction: WriteTransaction) -> None:
            if space.name not in [one.space.name for one in await transaction.spaces.memberships(user)]:
                return
            await transaction.spaces.add_copy(copy(f"copy of {user}", "pin_1", user, space))

        await store.write(work)

    async def come_and_go(store: Store, number: int) -> None:
        for turn in range(6):
            user, space = users[(number + turn) % len(users)], (BEES, SHOP)[(number + turn) % 2]
            membership = member(user, space)
            await write(store, lambda spaces, one=membership: spaces.set_member(one))
            await share(store, user, space)
            await write(store, lambda spaces, one=membership: spaces.remove_member(one.space.name, one.user))

    async def again(store: Store) -> None:
        for space in (BEES, SHOP) * 3:
            before = {user: await store.revision(user) for user in ("ann", "ben", *users)}

            async def work(spaces: SpaceWriter, space: Space = space) -> list[str]:
                members = [one.user for one in await spaces.members(space.name)]
                await spaces.shared(space.name, ["copy"])
                await spaces.remove_space(space.name)
                return members

            for user in await write(store, work):
                assert await store.revision(user) != before[user]
            await write(store, lambda spaces, one=space: spaces.add_space(one))

    async with anyio.create_task_group() as tasks:
        for number in range(6):
            tasks.start_soon(come_and_go, stores[number % 2], number)
        tasks.start_soon(again, stores[0])
    async with stores[0].view() as view:
        assert [*await view.spaces.spaces()] == [BEES, SHOP]
        for space in ("bees", SHOP.name):
            assert {one.user for one in await view.spaces.members(space)} <= {*users}
