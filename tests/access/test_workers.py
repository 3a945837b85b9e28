"""Signing in with several workers over one PostgreSQL, each with its own store: what many do at once counts once, and
all of it is in one log."""

from collections.abc import AsyncIterator

import anyio
import pytest

from kalito_mcp.access.consents import Consents, Issued
from kalito_mcp.access.sign_in import SignIn
from kalito_mcp.access.tokens import Tokens
from kalito_mcp.domain.access import Permission
from kalito_mcp.errors import TooManyAttempts
from kalito_mcp.storage.postgres.database import PostgresStore
from kalito_mcp.upkeep.store_layers import Auditing
from tests.postgres import empty_database, shared_server
from tests.scripted import ScriptedClock
from tests.sign_ins import BACK, SERVER

pytestmark = pytest.mark.anyio


@pytest.fixture
async def stores() -> AsyncIterator[list[Auditing]]:
    async with empty_database() as name:
        opened = [await PostgresStore.open(shared_server().url(name)) for _ in range(3)]
        yield [Auditing(one, ScriptedClock().now_ms) for one in opened]
        for one in opened:
            await one.close()


@pytest.fixture
def workers(stores: list[Auditing]) -> list[SignIn]:
    return [SignIn.over(one, ScriptedClock()) for one in stores]


async def asked(worker: SignIn) -> tuple[str, str, str]:
    """The client, and the handle and cookie of its request."""
    client = await worker.clients.register("Notes", [BACK], address="192.0.2.1")
    handle = await worker.consents.begin(
        client,
        redirect_uri=BACK,
        is_redirect_explicit=True,
        challenge="x" * 43,
        permission=Permission.WRITE,
        resource=SERVER,
        state=None,
        address="192.0.2.1",
    )
    _, cookie = await worker.consents.bind(handle, None)
    return client.id, handle, cookie


async def issued(worker: SignIn) -> tuple[str, Issued]:
    client, handle, cookie = await asked(worker)
    answer = await worker.consents.allow(handle, cookie, owner="ann", permission=Permission.WRITE)
    found = await worker.consents.redeem(client, answer.code or "")
    assert found is not None
    return client, found


async def test_a_button_that_is_clicked_at_two_workers_gives_one_consent(
    workers: list[SignIn], stores: list[Auditing]
) -> None:
    _, handle, cookie = await asked(workers[0])
    codes = []

    async def allow(consents: Consents) -> None:
        codes.append((await consents.allow(handle, cookie, owner="ann", permission=Permission.WRITE)).code)

    async with anyio.create_task_group() as tasks:
        for worker in workers * 3:
            tasks.start_soon(allow, worker.consents)
    assert len(set(codes)) == 1
    assert len(await workers[0].consents.all("ann")) == 1
    [entry] = await stores[0].read(lambda view: view.audit.entries(None, limit=9))
    assert (entry.said.owner, entry.said.action, entry.said.changes[0].what) == ("ann", "allow_client", "added")


async def test_of_two_workers_that_redeem_a_code_none_leaves_a_token_that_counts(workers: list[SignIn]) -> None:
    """The second use says that somebody else has the code, so the consent is revoked."""
    client, handle, cookie = await asked(workers[0])
    answer = await workers[0].consents.allow(handle, cookie, owner="ann", permission=Permission.WRITE)
    found = []

    async def redeem(consents: Consents) -> None:
        found.append(await consents.redeem(client, answer.code or ""))

    async with anyio.create_task_group() as tasks:
        for worker in workers * 2:
            tasks.start_soon(redeem, worker.consents)
    assert sum(one is not None for one in found) == 1
    assert [one.is_usable for one in await workers[1].consents.all("ann")] == [False]


async def test_workers_that_renew_at_once_give_the_same_next_refresh_token(
    workers: list[SignIn], stores: list[Auditing]
) -> None:
    client, first = await issued(workers[0])
    found: list[Issued | None] = []

    async def renew(consents: Consents) -> None:
        found.append(await consents.renew(client, first.refresh.text, Permission.WRITE))

    async with anyio.create_task_group() as tasks:
        for worker in workers * 3:
            tasks.start_soon(renew, worker.consents)
    assert len({one.refresh.text for one in found if one is not None}) == 1
    assert len({one.access.text for one in found if one is not None}) == 9
    async with stores[1].view() as view:
        entries = await view.audit.entries("ann", limit=99)
        fault, _ = await view.audit.check(None)
    assert [one.said.action for one in entries] == ["renew_token"] * 9 + ["redeem_code", "allow_client"]
    assert fault is None


async def test_guesses_at_many_workers_are_all_counted(workers: list[SignIn]) -> None:
    results = []

    async def guess(worker: SignIn) -> None:
        try:
            results.append(await worker.passphrases.check("ann", "wrong words", address="192.0.2.1"))
        except TooManyAttempts:
            results.append(None)

    async with anyio.create_task_group() as tasks:
        for worker in workers * 3:
            tasks.start_soon(guess, worker)
    assert results.count(False) == 3
    assert results.count(None) == 6


async def test_a_link_lets_one_browser_in_at_whichever_worker(workers: list[SignIn]) -> None:
    link, cookies = await workers[0].pages.link(), []

    async def enter(worker: SignIn) -> None:
        cookies.append(await worker.pages.enter(link))

    async with anyio.create_task_group() as tasks:
        for worker in workers * 3:
            tasks.start_soon(enter, worker)
    [cookie] = [one for one in cookies if one is not None]
    assert await workers[2].pages.principal_of(cookie.text) == cookie.token.principal


async def test_a_token_that_one_worker_revokes_is_refused_by_the_others(
    stores: list[Auditing], workers: list[SignIn]
) -> None:
    tokens = [Tokens(one, ScriptedClock()) for one in stores]
    made = await tokens[0].create("ann", Permission.READ, name="laptop")
    cookie = await workers[1].pages.enter_with(made.text, [SERVER])
    assert cookie is not None
    assert await tokens[1].use(made.text) is not None
    assert set(await tokens[2].revoke(made.token.id)) == {made.token.id, cookie.token.id}
    assert await tokens[1].use(made.text) is None
    assert await workers[0].pages.principal_of(cookie.text) is None
