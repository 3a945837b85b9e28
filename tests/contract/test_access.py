"""`ports.access`: tokens as they were stored, their lists and ends, and what is revoked with what."""

from dataclasses import replace

import anyio
import pytest

from kalito_mcp.domain.access import Permission, Token, TokenKind
from kalito_mcp.domain.scope import NO_LIMITS, Limits
from kalito_mcp.ports.store import Store
from tests import sign_ins
from tests.contract.conftest import Backend
from tests.scripted import START_MS
from tests.sign_ins import HOUR_MS, token

pytestmark = pytest.mark.anyio
LATER = START_MS + HOUR_MS


async def add(store: Store, *tokens: Token) -> None:
    """Store tokens, each with a text of its id."""
    async with store.transaction() as transaction:
        for one in tokens:
            await transaction.access.add_token(one, one.id.encode())


async def stored(store: Store, token_id: str) -> Token | None:
    return await store.read(lambda view: view.access.token(token_id.encode()), is_short=True)


async def ids(store: Store, owner: str | None = None, *, limit: int = 100) -> list[str]:
    return [one.id for one in await store.read(lambda view: view.access.tokens(owner, limit=limit))]


@pytest.mark.parametrize(
    "made",
    [
        Token("tok_1", "kal_abc", "", "ann", Permission.READ, NO_LIMITS, START_MS),
        Token(
            "tok_2",
            "kal_abc",
            "a caf\u00e9's",
            "\u00e5nn \U0001f41d",
            Permission.ADMIN,
            Limits("coder", "/home/ann/shop"),
            START_MS,
            kind=TokenKind.REFRESH,
            expires_at=LATER,
            client="https://app.example.org/client.json",
            grant="grant_1",
            resource="https://memory.example.org/mcp",
        ),
    ],
)
async def test_a_token_comes_back_with_every_field(store: Store, made: Token) -> None:
    await add(store, made)
    assert await stored(store, made.id) == made
    assert await stored(store, "tok_unknown") is None
    async with store.transaction() as transaction:
        await transaction.access.used_token(made.id, now_ms=START_MS + 1)
        assert await transaction.access.retire_token(made.id, now_ms=START_MS + 2)
        assert not await transaction.access.retire_token(made.id, now_ms=START_MS + 3)
        assert not await transaction.access.retire_token("tok_unknown", now_ms=START_MS + 3)
        found = await transaction.access.token(made.id.encode())
        assert await transaction.access.token(b"unknown") is None
    assert found == await stored(store, made.id)
    assert found == replace(made, last_used_at=START_MS + 1, revoked_at=START_MS + 2)


async def test_static_tokens_are_listed_first_and_the_newest_of_each_kind(store: Store) -> None:
    await add(
        store,
        token("tok_1"),
        token("tok_2", kind=TokenKind.ACCESS),
        token("tok_3", owner="ben"),
        token("tok_4", kind=TokenKind.REFRESH),
        token("tok_5"),
    )
    assert await ids(store) == ["tok_5", "tok_3", "tok_1", "tok_4", "tok_2"]
    assert await ids(store, limit=4) == ["tok_5", "tok_3", "tok_1", "tok_4"]
    assert await ids(store, "ann") == ["tok_5", "tok_1", "tok_4", "tok_2"]
    assert await ids(store, "nobody") == []


async def test_a_principal_ends_with_its_token_or_the_last_one_of_its_consent(store: Store) -> None:
    await add(
        store,
        token("tok_lasting"),
        token("tok_hour", expires_at=LATER),
        token("tok_lost", expires_at=LATER, revoked_at=None),
        token("tok_a", grant="grant_two", expires_at=LATER),
        token("tok_b", grant="grant_two", expires_at=LATER + 1),
        token("tok_c", grant="grant_partly", expires_at=LATER + 1),
        token("tok_d", grant="grant_partly", expires_at=LATER),
        token("tok_e", grant="grant_lasting", expires_at=LATER),
        token("tok_f", grant="grant_lasting"),
    )
    async with store.transaction() as transaction:
        for lost in ("tok_lost", "tok_c"):
            await transaction.access.retire_token(lost, now_ms=START_MS)
    asked = ["tok_lasting", "tok_hour", "tok_lost", "tok_a", "grant_two", "grant_partly", "grant_lasting", "unknown"]
    assert await store.read(lambda view: view.access.ends(asked)) == {
        "tok_hour": LATER,
        "tok_lost": 0,
        "grant_two": LATER + 1,
        "grant_partly": LATER,
    }
    assert await store.read(lambda view: view.access.ends([])) == {}


async def test_the_secret_for_states_is_of_the_database(backend: Backend) -> None:
    one, other = await backend.open(), await backend.open()
    secret = await one.read(lambda view: view.access.state_secret())
    assert len(secret) == 32
    assert secret not in (bytes(32), await one.secret())
    assert await other.read(lambda view: view.access.state_secret()) == secret
    async with one.transaction() as transaction:
        assert await transaction.access.state_secret() == secret


@pytest.mark.parametrize(("named", "owner"), [("grant_1", None), ("tok_access", "ann"), ("tok_used_up", None)])
async def test_a_token_takes_its_consent_along(store: Store, named: str, owner: str | None) -> None:
    grant = sign_ins.grant("grant_1")
    await sign_ins.consent(store, grant)
    await add(
        store,
        token("tok_access", grant="grant_1", kind=TokenKind.ACCESS, expires_at=LATER),
        token("tok_refresh", grant="grant_1", kind=TokenKind.REFRESH, expires_at=LATER + 1),
        token("tok_used_up", grant="grant_1", kind=TokenKind.REFRESH, expires_at=LATER),
        token("tok_expired", grant="grant_1", kind=TokenKind.ACCESS, expires_at=START_MS),
        token("tok_other"),
    )
    async with store.transaction() as transaction:
        await transaction.access.retire_token("tok_used_up", now_ms=START_MS - 1)
        assert await transaction.access.revoke_tokens(named, owner="ben", now_ms=START_MS) == []
        revoked = await transaction.access.revoke_tokens(named, owner=owner, now_ms=START_MS)
        assert await transaction.access.revoke_tokens(named, owner=owner, now_ms=START_MS + 1) == []
    assert sorted(revoked) == ["grant_1", "tok_access", "tok_refresh"]
    found = {one.id: one.revoked_at for one in await store.read(lambda view: view.access.tokens(None, limit=9))}
    assert found == {
        "tok_access": START_MS,
        "tok_refresh": START_MS,
        "tok_used_up": START_MS - 1,
        "tok_expired": START_MS,
        "tok_other": None,
    }
    now = await store.read(lambda view: view.sign_in.grant("grant_1"))
    assert now == replace(grant, revoked_at=START_MS, is_usable=False)


async def test_a_cookie_goes_with_the_token_that_it_came_of(store: Store) -> None:
    await add(store, token("tok_1"), token("tok_cookie", grant="tok_1", expires_at=LATER), token("tok_2"))
    async with store.transaction() as transaction:
        revoked = await transaction.access.revoke_tokens("tok_1", owner=None, now_ms=START_MS)
        assert await transaction.access.revoke_tokens("unknown", owner=None, now_ms=START_MS) == []
    assert sorted(revoked) == ["tok_1", "tok_cookie"]


async def test_a_use_is_of_the_token_and_of_its_consent(store: Store) -> None:
    await sign_ins.consent(store, sign_ins.grant("grant_1"))
    await sign_ins.consent(store, sign_ins.grant("grant_2"))
    await add(store, token("tok_1", grant="grant_1"), token("tok_2", grant="grant_1"))
    async with store.transaction() as transaction:
        await transaction.access.used_token("tok_1", now_ms=LATER)
        await transaction.access.used_token("tok_unknown", now_ms=LATER)
    assert [one.last_used_at for one in await store.read(lambda view: view.access.tokens(None, limit=9))] == [
        None,
        LATER,
    ]
    grants = await store.read(lambda view: view.sign_in.grants(None, now_ms=START_MS, limit=9))
    assert [(one.id, one.last_used_at) for one in grants] == [("grant_2", None), ("grant_1", LATER)]


async def test_of_many_who_retire_a_token_at_once_one_does(backend: Backend) -> None:
    stores, retired = [await backend.open(), await backend.open()], []
    await add(stores[0], token("tok_1"))

    async def retire(store: Store) -> None:
        retired.append(await store.write(lambda transaction: transaction.access.retire_token("tok_1", now_ms=START_MS)))

    async with anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(retire, stores[number % 2])
    assert sorted(retired) == [False] * 7 + [True]
