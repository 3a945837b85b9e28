"""`ports.sign_in`: what is stored of a sign-in, how long it is kept, and what many may do to it at once."""

from collections.abc import Sequence
from dataclasses import replace

import anyio
import pytest

from kalito_mcp.domain.access import Permission, TokenKind
from kalito_mcp.domain.sign_in import Attempts, Client, Code, Grant, Passphrase, SignInRequest
from kalito_mcp.domain.zone import DAY_MS
from kalito_mcp.ports.store import Store, WriteTransaction
from tests import sign_ins
from tests.contract.conftest import Backend
from tests.scripted import START_MS
from tests.sign_ins import HOUR_MS, MINUTE_MS, client, consent, grant, request, token

pytestmark = pytest.mark.anyio
_ROUNDS = (b"1", b"2", b"3", b"4", b"5")
"""In the first one, connections are still being opened."""


async def put_clients(store: Store, *clients: Client) -> None:
    async with store.transaction() as transaction:
        for one in clients:
            await transaction.sign_in.put_client(one)


async def client_ids(store: Store, *asked: str) -> list[str]:
    async with store.view() as view:
        return [one for one in asked if await view.sign_in.client(one) is not None]


async def grants(store: Store, owner: str | None = None, *, now_ms: int = START_MS, limit: int = 9) -> Sequence[Grant]:
    return await store.read(lambda view: view.sign_in.grants(owner, now_ms=now_ms, limit=limit))


async def requests(store: Store, *handles: bytes) -> list[bytes]:
    async with store.view() as view:
        return [one for one in handles if await view.sign_in.request(one) is not None]


async def forget(store: Store, now_ms: int) -> None:
    await store.write(lambda transaction: transaction.sign_in.drop_expired(now_ms))


async def test_a_client_comes_back_with_every_field_and_as_it_was_last_described(store: Store) -> None:
    uris = ("https://notes.example.org/back?to=\u00e5", "notes:/back")
    made = Client("https://notes.example.org/c.json", "N\u00f6tes", uris, START_MS, START_MS + 1, is_document=True)
    await put_clients(store, made)
    assert await store.read(lambda view: view.sign_in.client(made.id)) == made
    assert await store.read(lambda view: view.sign_in.client("cli_unknown")) is None
    renamed = Client(made.id, "Other", uris[:1], START_MS + 9, START_MS + 9)
    await put_clients(store, renamed)
    kept = replace(renamed, created_at=START_MS, is_document=True)
    assert await store.read(lambda view: view.sign_in.client(made.id)) == kept


async def test_clients_that_nobody_uses_are_forgotten_when_they_are_old_or_too_many(store: Store) -> None:
    names = ["granted", "asking", "old", "third", "second", "first"]
    await put_clients(store, *(client(one, created_at=START_MS + place) for place, one in enumerate(names)))
    await consent(store, grant("grant_1", client_id="granted"))
    async with store.transaction() as transaction:
        await transaction.sign_in.add_request(b"handle", request("asking"))
        await transaction.sign_in.drop_clients(unused_since=START_MS + 3, most_unused=9)
    assert await client_ids(store, *names) == ["granted", "asking", "third", "second", "first"]
    await store.write(lambda transaction: transaction.sign_in.drop_clients(unused_since=0, most_unused=2))
    assert await client_ids(store, *names) == ["granted", "asking", "second", "first"]


@pytest.mark.parametrize(
    "made",
    [
        request(),
        SignInRequest(
            "cli_2",
            "N\u00f6tes",
            "notes:/back",
            is_redirect_explicit=True,
            challenge="c" * 43,
            permission=Permission.ADMIN,
            resource=sign_ins.SERVER,
            state="a&b=\u00e5",
            expires_at=START_MS + 1,
        ),
    ],
)
async def test_a_request_comes_back_with_every_field_and_is_bound_to_one_browser(
    store: Store, made: SignInRequest
) -> None:
    async with store.transaction() as transaction:
        await transaction.sign_in.add_request(b"handle", made)
    assert await store.read(lambda view: view.sign_in.request(b"handle")) == made
    async with store.transaction() as transaction:
        for browser in (b"first", b"second"):
            await transaction.sign_in.bind_request(b"handle", browser)
            await transaction.sign_in.bind_request(b"unknown", browser)
        assert await transaction.sign_in.request(b"handle") == replace(made, browser_hash=b"first")
        assert await transaction.sign_in.request(b"unknown") is None
    assert await store.read(lambda view: view.sign_in.request(b"handle")) == replace(made, browser_hash=b"first")
    async with store.transaction() as transaction:
        for _ in range(2):
            await transaction.sign_in.drop_request(b"handle")
        assert await transaction.sign_in.count_requests() == 0
    assert await requests(store, b"handle") == []


async def test_the_oldest_request_that_no_browser_shows_goes_first(store: Store) -> None:
    handles = [b"shown", b"new", b"newer", b"shown later"]
    async with store.transaction() as transaction:
        for place, one in enumerate(handles):
            await transaction.sign_in.add_request(one, request(expires_at=START_MS + place))
            if one.startswith(b"shown"):
                await transaction.sign_in.bind_request(one, b"browser")
        assert await transaction.sign_in.count_requests() == 4
    for left in (handles[:1] + handles[2:], handles[:1] + handles[3:], handles[3:], [], []):
        await store.write(lambda transaction: transaction.sign_in.drop_oldest_request())
        assert await requests(store, *handles) == left


async def test_a_consent_and_its_code_come_back_with_every_field(store: Store) -> None:
    made = Grant("grant_1", "\u00e5nn", "cli_1", "N\u00f6tes", Permission.ADMIN, sign_ins.SERVER, START_MS)
    plain = grant("grant_2")
    of_made = Code(made, "notes:/back", False, "c" * 43, START_MS + 1)
    async with store.transaction() as transaction:
        await transaction.sign_in.add_grant(made, of_made, b"one")
        await transaction.sign_in.add_grant(plain, sign_ins.code(plain), b"two")
        assert await transaction.sign_in.grant("grant_1") == made
        assert await transaction.sign_in.grant("unknown") is None
        assert await transaction.sign_in.code(b"one") == of_made
    async with store.view() as view:
        assert await view.sign_in.grant("grant_1") == made
        assert await view.sign_in.grant("unknown") is None
        assert await view.sign_in.code(b"one") == of_made
        assert await view.sign_in.code(b"two") == sign_ins.code(plain)
        assert await view.sign_in.code(b"unknown") is None


async def test_a_code_is_taken_once(store: Store) -> None:
    await consent(store, grant("grant_1"))
    async with store.transaction() as transaction:
        taken = [
            await transaction.sign_in.take_code(code_hash, now_ms=START_MS + place)
            for place, code_hash in enumerate((b"grant_1", b"grant_1", b"unknown"))
        ]
    assert taken == [True, False, False]
    found = await store.read(lambda view: view.sign_in.code(b"grant_1"))
    assert found is not None
    assert found.used_at == START_MS


async def test_consents_are_listed_newest_first_and_say_whether_they_can_be_used(store: Store) -> None:
    for one, owner in (("grant_1", "ann"), ("grant_2", "ben"), ("grant_3", "ann"), ("grant_4", "ann")):
        await consent(store, grant(one, owner=owner))
    async with store.transaction() as transaction:
        for one in ("grant_2", "grant_3"):
            await transaction.sign_in.take_code(one.encode(), now_ms=START_MS)
        renewing = token("tok_1", owner="ben", grant="grant_2", kind=TokenKind.REFRESH, expires_at=START_MS + HOUR_MS)
        await transaction.access.add_token(renewing, b"text")
        await transaction.access.revoke_tokens("grant_4", owner=None, now_ms=START_MS)
    all_found = await grants(store)
    assert [(one.id, one.is_usable) for one in all_found] == [
        ("grant_4", False),
        ("grant_3", False),
        ("grant_2", True),
        ("grant_1", True),
    ]
    assert [one.id for one in await grants(store, limit=2)] == ["grant_4", "grant_3"]
    assert [one.id for one in await grants(store, "ann")] == ["grant_4", "grant_3", "grant_1"]
    assert await grants(store, "nobody") == []
    for now_ms, usable in ((START_MS + MINUTE_MS, ["grant_2"]), (START_MS + HOUR_MS, [])):
        assert [one.id for one in await grants(store, now_ms=now_ms) if one.is_usable] == usable


async def test_all_consents_of_an_owner_are_revoked_with_their_tokens_and_cookies(store: Store) -> None:
    for one, owner in (("grant_1", "ann"), ("grant_2", "ann"), ("grant_3", "ben"), ("grant_4", "ann")):
        await consent(store, grant(one, owner=owner))
    ends = START_MS + HOUR_MS
    async with store.transaction() as transaction:
        for one in (
            token("tok_made"),
            token("tok_access", kind=TokenKind.ACCESS, grant="grant_1", expires_at=ends),
            token("tok_refresh", kind=TokenKind.REFRESH, grant="grant_1", expires_at=ends),
            token("tok_cookie", kind=TokenKind.ACCESS, grant="tok_made", expires_at=ends),
            token("tok_ben", owner="ben", kind=TokenKind.ACCESS, grant="grant_3", expires_at=ends),
        ):
            await transaction.access.add_token(one, one.id.encode())
        await transaction.sign_in.take_code(b"grant_2", now_ms=START_MS)
        await transaction.access.revoke_tokens("grant_4", owner=None, now_ms=START_MS)
        revoked = await transaction.sign_in.revoke_grants("ann", now_ms=START_MS + 1)
        assert await transaction.sign_in.revoke_grants("ann", now_ms=START_MS + 2) == []
    assert list(revoked) == ["grant_1"]
    assert [(one.id, one.revoked_at) for one in await grants(store)] == [
        ("grant_4", START_MS),
        ("grant_3", None),
        ("grant_2", START_MS + 1),
        ("grant_1", START_MS + 1),
    ]
    left = await store.read(lambda view: view.access.tokens(None, limit=9))
    assert {one.id for one in left if one.revoked_at is None} == {"tok_made", "tok_ben"}


async def test_what_has_expired_is_forgotten_and_tokens_and_consents_a_day_later(store: Store) -> None:
    day_later = START_MS + DAY_MS
    await consent(store, grant("grant_kept"))
    await consent(store, grant("grant_empty", owner="ben"))
    await consent(store, grant("grant_new", created_at=START_MS + 1), expires_at=START_MS)
    async with store.transaction() as transaction:
        for one in (
            token("tok_made", expires_at=START_MS),
            token("tok_over", kind=TokenKind.ACCESS, grant="grant_empty", owner="ben", expires_at=START_MS),
            token("tok_over_too", kind=TokenKind.REFRESH, grant="grant_kept", expires_at=START_MS),
            token("tok_just_over", kind=TokenKind.ACCESS, grant="grant_kept", expires_at=START_MS + 1),
        ):
            await transaction.access.add_token(one, one.id.encode())
        for handle, expires_at in ((b"over", day_later + 1), (b"waiting", day_later + 2)):
            await transaction.sign_in.add_request(handle, request(expires_at=expires_at))
        for subject, last_at in (("long ago", START_MS), ("a day ago", START_MS + 1)):
            await transaction.sign_in.put_attempts(subject, Attempts(3, 0, last_at))

    async def left() -> tuple[set[str], set[str], list[bytes], list[bytes], list[str]]:
        async with store.view() as view:
            return (
                {one.id for one in await view.access.tokens(None, limit=9)},
                {one.id for one in await view.sign_in.grants(None, now_ms=START_MS, limit=9)},
                [one for one in (b"grant_kept", b"grant_empty", b"grant_new") if await view.sign_in.code(one)],
                [one for one in (b"over", b"waiting") if await view.sign_in.request(one)],
                [one for one in ("long ago", "a day ago") if await view.sign_in.attempts(one)],
            )

    everything = await left()
    await forget(store, START_MS)
    assert await left() == everything
    await forget(store, day_later + 1)
    assert await left() == (
        {"tok_made", "tok_just_over"},
        {"grant_kept", "grant_new"},
        [b"grant_kept"],
        [b"waiting"],
        ["a day ago"],
    )
    await forget(store, day_later + 2)
    assert await left() == ({"tok_made"}, set(), [], [], [])


async def test_a_passphrase_replaces_the_one_before(store: Store) -> None:
    assert not await store.read(lambda view: view.sign_in.has_passphrases())
    for made in (Passphrase(b"salt" * 4, bytes(32), 1 << 15, 8, 3), Passphrase(b"\x00\xff", b"\xff" * 32, 2, 1, 1)):
        async with store.transaction() as transaction:
            await transaction.sign_in.put_passphrase("\u00e5nn", made, now_ms=START_MS)
            assert await transaction.sign_in.passphrase("\u00e5nn") == made
        assert await store.read(lambda view: view.sign_in.passphrase("\u00e5nn")) == made
    assert await store.read(lambda view: view.sign_in.passphrase("ben")) is None
    assert await store.read(lambda view: view.sign_in.has_passphrases())


async def test_attempts_are_kept_until_they_are_forgotten(store: Store) -> None:
    for made in (Attempts(1, START_MS, START_MS), Attempts(1 << 40, START_MS, START_MS + 1)):
        async with store.transaction() as transaction:
            await transaction.sign_in.put_attempts("subject", made)
            assert await transaction.sign_in.attempts("subject") == made
        assert await store.read(lambda view: view.sign_in.attempts("subject")) == made
    async with store.transaction() as transaction:
        for _ in range(2):
            await transaction.sign_in.drop_attempts("subject")
        assert await transaction.sign_in.attempts("subject") is None
    assert await store.read(lambda view: view.sign_in.attempts("subject")) is None


async def test_an_owner_s_revision_changes_with_their_consents_and_passphrase(store: Store) -> None:
    async def allow(transaction: WriteTransaction) -> None:
        await transaction.sign_in.add_grant(grant("grant_1"), sign_ins.code(grant("grant_1")), b"code")

    async def take(transaction: WriteTransaction) -> None:
        await transaction.sign_in.take_code(b"code", now_ms=START_MS)

    async def revoke(transaction: WriteTransaction) -> None:
        await transaction.sign_in.revoke_grants("ann", now_ms=START_MS)

    async def drop(transaction: WriteTransaction) -> None:
        await transaction.sign_in.drop_expired(START_MS + 2 * DAY_MS)

    revisions = [await store.revision("ann")]
    for work in (allow, take, revoke, drop):
        await store.write(work)
        revisions.append(await store.revision("ann"))
    assert len(set(revisions)) == 5


async def test_attempts_of_many_at_once_are_all_counted(backend: Backend) -> None:
    stores = [await backend.open(), await backend.open()]

    async def count(transaction: WriteTransaction) -> None:
        for subject in ("one", "*"):
            found = await transaction.sign_in.attempts(subject)
            before = 0 if found is None else found.count
            await transaction.sign_in.put_attempts(subject, Attempts(before + 1, START_MS, START_MS))

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(stores[number % 2].write, count)
    for subject in ("one", "*"):
        found = await stores[0].read(lambda view, subject=subject: view.sign_in.attempts(subject))
        assert found is not None
        assert found.count == 20


async def test_of_many_who_allow_a_request_at_once_one_makes_its_code(backend: Backend) -> None:
    stores = [await backend.open(), await backend.open()]

    async def allow(store: Store, handle: bytes, number: int) -> None:
        async def work(transaction: WriteTransaction) -> bool:
            assert await transaction.sign_in.request(handle) is not None
            if await transaction.sign_in.code(handle) is not None:
                return False
            consented = grant(f"grant_{handle!r}_{number}")
            await transaction.sign_in.add_grant(consented, sign_ins.code(consented), handle)
            return True

        made.append(await store.write(work))

    for handle in _ROUNDS:
        made: list[bool] = []
        await stores[0].write(lambda transaction, handle=handle: transaction.sign_in.add_request(handle, request()))
        async with anyio.create_task_group() as tasks:
            for number in range(8):
                tasks.start_soon(allow, stores[number % 2], handle, number)
        assert sorted(made) == [False] * 7 + [True]
    assert len(await grants(stores[0])) == len(_ROUNDS)


async def test_a_consent_that_is_revoked_meanwhile_gives_no_tokens(backend: Backend) -> None:
    """Whatever order they come in, no token of a revoked consent is left that counts."""
    stores = [await backend.open(), await backend.open()]

    async def issue(transaction: WriteTransaction, consented: str, name: str) -> None:
        found = await transaction.sign_in.grant(consented)
        if found is not None and found.revoked_at is None:
            made = token(name, grant=consented, kind=TokenKind.ACCESS, expires_at=START_MS + HOUR_MS)
            await transaction.access.add_token(made, name.encode())

    async def give(store: Store, consented: str, name: str) -> None:
        await store.write(lambda transaction: issue(transaction, consented, name))

    async def revoke(store: Store, consented: str) -> None:
        await store.write(lambda transaction: transaction.access.revoke_tokens(consented, owner=None, now_ms=START_MS))

    for consented in map(str, _ROUNDS):
        await consent(stores[0], grant(consented))
        async with anyio.create_task_group() as tasks:
            for number in range(4):
                tasks.start_soon(give, stores[0], consented, f"tok_{consented}_{number}")
            tasks.start_soon(revoke, stores[1], consented)
            tasks.start_soon(give, stores[0], consented, f"tok_{consented}_last")
    left = await stores[0].read(lambda view: view.access.tokens(None, limit=99))
    assert [one.id for one in left if one.revoked_at is None] == []


async def test_many_forget_at_once_while_others_change_what_is_forgotten(backend: Backend) -> None:
    stores = [await backend.open(), await backend.open()]
    owners = [f"owner_{number}" for number in range(4)]
    now_ms = START_MS + 2 * DAY_MS

    async def renew(store: Store, owner: str, name: str) -> None:
        async def work(transaction: WriteTransaction) -> None:
            await transaction.access.revoke_tokens(f"old_{name}", owner=owner, now_ms=now_ms)
            await transaction.sign_in.drop_expired(now_ms)
            await transaction.access.add_token(token(f"new_{name}", owner=owner), f"new_{name}".encode())

        await store.write(work)

    async def link(store: Store, owner: str, name: str) -> None:
        async def work(transaction: WriteTransaction) -> None:
            await transaction.sign_in.drop_expired(now_ms)
            await transaction.access.add_token(token(f"link_{name}", owner=owner), f"link_{name}".encode())

        await store.write(work)

    for number in map(str, _ROUNDS):
        for owner in owners:
            name = f"{owner}_{number}"
            await consent(stores[0], grant(f"grant_{name}", owner=owner))
            old = token(
                f"old_{name}", owner=owner, grant=f"grant_{name}", kind=TokenKind.ACCESS, expires_at=START_MS + HOUR_MS
            )
            await stores[0].write(lambda transaction, old=old: transaction.access.add_token(old, old.id.encode()))
        async with anyio.create_task_group() as tasks:
            for owner in owners:
                tasks.start_soon(renew, stores[0], owner, f"{owner}_{number}")
                tasks.start_soon(link, stores[1], owner, f"{owner}_{number}")
    await forget(stores[0], now_ms)
    assert await grants(stores[0]) == []
    left = await stores[0].read(lambda view: view.access.tokens(None, limit=99))
    assert len(left) == 2 * len(owners) * len(_ROUNDS)
    assert {one.kind for one in left} == {TokenKind.STATIC}
