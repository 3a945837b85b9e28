"""Guessing a passphrase takes longer each time, for all processes of a database, and says nothing of owners."""

from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from kalito_mcp.access.policy import HttpPolicy
from kalito_mcp.access.sign_in import SignIn
from kalito_mcp.errors import InvalidInput, TooManyAttempts
from kalito_mcp.safety.addresses import own_network
from kalito_mcp.storage.sqlite.database import SqliteStore
from tests.scripted import ScriptedClock
from tests.sign_in.harness import PASSPHRASE, handle_of, home, registered

pytestmark = pytest.mark.anyio


async def test_login_brute_force_waits_longer_each_time(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at)
        page = await hand.browser.open(hand.link())
        for _ in range(3):
            assert (await hand.browser.answer(page, passphrase="a wrong passphrase")).status_code == 403
        waits = []
        for _ in range(9):
            blocked = await hand.browser.answer(page, passphrase=PASSPHRASE)
            assert blocked.status_code == 429, "not even the right one, so that nothing is learnt"
            waits.append(int(blocked.headers["retry-after"]))
            assert f"Too many attempts; wait {waits[-1]} second" in blocked.text
            at.clock.advance(waits[-1])
            # The page is renewed, because ten minutes go by.
            page = await hand.browser.open(hand.link())
            assert (await hand.browser.answer(page, passphrase="a wrong passphrase")).status_code == 403
        assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256]
        at.clock.advance(900)
        page = await hand.browser.open(hand.link())
        assert (await hand.browser.answer(page)).status_code == 303


async def test_an_owner_waits_a_minute_at_most_for_what_others_try(store: SqliteStore) -> None:
    clock = ScriptedClock()
    passphrases = SignIn.over(store, clock).passphrases
    await passphrases.set("local", PASSPHRASE)
    tried = 0
    for number in range(40):
        try:
            assert not await passphrases.check("local", "a wrong passphrase", address=f"192.0.2.{number}")
            tried += 1
        except TooManyAttempts as error:
            assert error.retry_after_s <= 60
            clock.advance(error.retry_after_s)
    assert tried < 25
    clock.advance(60)
    assert await passphrases.check("local", PASSPHRASE, address="198.51.100.7")
    assert await passphrases.check("local", PASSPHRASE, address="198.51.100.8"), "and what was mistyped is forgotten"


async def test_many_guesses_at_once_are_counted_before_they_are_checked(store: SqliteStore) -> None:
    sign_ins = [SignIn.over(store, ScriptedClock()) for _ in range(2)]  # as two processes
    await sign_ins[0].passphrases.set("local", PASSPHRASE)
    results: list[bool | None] = []

    async def guess(number: int) -> None:
        try:
            results.append(
                await sign_ins[number % 2].passphrases.check("local", "a wrong passphrase", address="192.0.2.1")
            )
        except TooManyAttempts:
            results.append(None)

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(guess, number)
    assert results.count(False) == 3


async def test_a_right_one_does_not_free_an_address_that_tries_other_owners(store: SqliteStore) -> None:
    passphrases = SignIn.over(store, ScriptedClock()).passphrases
    await passphrases.set("mallory", PASSPHRASE)
    for owner in ("anna", "berta", "clara"):
        assert not await passphrases.check(owner, "a wrong passphrase", address="192.0.2.1")
        if owner != "clara":
            assert await passphrases.check("mallory", PASSPHRASE, address="192.0.2.1")
    with pytest.raises(TooManyAttempts):
        await passphrases.check("dora", "a wrong passphrase", address="192.0.2.1")


async def test_who_mistyped_and_then_signed_in_does_not_wait_again(store: SqliteStore) -> None:
    clock = ScriptedClock()
    passphrases = SignIn.over(store, clock).passphrases
    for owner in ("anna", "berta"):
        await passphrases.set(owner, PASSPHRASE)
    for _ in range(5):
        assert not await passphrases.check("anna", "a wrong passphrase", address="127.0.0.1")
        clock.advance(60)
    assert not await passphrases.check("clara", "a wrong passphrase", address="127.0.0.1")
    clock.advance(60)
    for owner in ("anna", "anna", "berta", "anna"):
        assert await passphrases.check(owner, PASSPHRASE, address="127.0.0.1")
    assert not await passphrases.check("berta", "a wrong passphrase", address="127.0.0.1")
    assert await passphrases.check("berta", PASSPHRASE, address="127.0.0.1")


async def test_who_signs_in_twice_at_once_is_forgiven_no_guess_at_others(store: SqliteStore) -> None:
    passphrases = SignIn.over(store, ScriptedClock()).passphrases
    await passphrases.set("mallory", PASSPHRASE)

    async def sign_in() -> None:
        with suppress(TooManyAttempts):
            await passphrases.check("mallory", PASSPHRASE, address="192.0.2.1")

    tried = 0
    for number in range(6):
        with suppress(TooManyAttempts):
            assert not await passphrases.check(f"owner {number}", "a wrong passphrase", address="192.0.2.1")
            tried += 1
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(sign_in)
            tasks.start_soon(sign_in)
    assert tried == 3


async def test_behind_a_proxy_who_guesses_waits_and_not_everybody(tmp_path: Path) -> None:
    async with home(tmp_path, policy=HttpPolicy(proxies=("127.0.0.1",))) as at:
        hand = await registered(at)
        page = await hand.browser.open(hand.link())

        async def guess(address: str, owner: str) -> int:
            form = {"request": handle_of(page), "answer": "allow", "owner": owner, "passphrase": "a wrong passphrase"}
            headers = {"x-forwarded-for": address}
            return (await hand.browser.send("POST", f"{at.base}/sign-in", data=form, headers=headers)).status_code

        assert [await guess("192.0.2.1", f"owner {number}") for number in range(4)] == [403, 403, 403, 429]
        assert await guess("192.0.2.2, 192.0.2.1", "another") == 429, "what the caller wrote itself does not help"
        assert await guess("192.0.2.3", "one more") == 403


async def test_unknown_owners_look_like_wrong_passphrases(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at)
        page = await hand.browser.open(hand.link())
        texts = set()
        for owner in ("local", "nobody"):
            answer = await hand.browser.answer(page, owner=owner, passphrase="a wrong passphrase")
            assert answer.status_code == 403
            texts.add(answer.text.replace(f'value="{owner}"', ""))
        assert len(texts) == 1


async def test_unknown_owners_cost_as_much_work(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    passphrases = SignIn.over(store, ScriptedClock()).passphrases
    await passphrases.set("local", PASSPHRASE)
    computed: list[tuple[int, int, int]] = []
    real = passphrases._hash

    async def counted(passphrase: str, how: object) -> bytes:
        computed.append((how.n, how.r, how.p))  # type: ignore[attr-defined]
        return await real(passphrase, how)  # type: ignore[arg-type]

    monkeypatch.setattr(passphrases, "_hash", counted)
    for owner in ("local", "nobody"):
        assert not await passphrases.check(owner, "a wrong passphrase", address="192.0.2.1")
    assert computed[0] == computed[1]


async def test_a_passphrase_is_the_same_from_every_keyboard(store: SqliteStore) -> None:
    passphrases = SignIn.over(store, ScriptedClock()).passphrases
    await passphrases.set("local", "fünf grüne drachen")
    assert await passphrases.check("local", "fu\u0308nf gru\u0308ne drachen", address="")


async def test_a_passphrase_that_is_too_short_or_too_long_is_not_stored(store: SqliteStore) -> None:
    passphrases = SignIn.over(store, ScriptedClock()).passphrases
    for passphrase in ("", "eleven char", "\u0308" * 600, "x" * 1_025):
        with pytest.raises(InvalidInput, match=r"too (short|long)"):
            await passphrases.set("local", passphrase)
    assert not await passphrases.has_any()


async def test_without_a_passphrase_the_page_says_which_command_sets_one(tmp_path: Path) -> None:
    async with home(tmp_path, passphrase=None) as at:
        hand = await registered(at)
        page = await hand.browser.open(hand.link())
        assert "kalito-mcp passphrase" in page.text
        assert 'name="passphrase"' not in page.text
        assert (await hand.browser.answer(page)).status_code == 403
        await at.memory.access.sign_in.passphrases.set("local", PASSPHRASE)
        assert 'name="passphrase"' in (await hand.browser.send("GET", page.url)).text
        assert (await hand.browser.answer(page)).status_code == 303


def test_addresses_of_one_network_count_together() -> None:
    for one, other, is_same in (
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("a name", "another", True),
    ):
        assert (own_network(one) == own_network(other)) is is_same, (one, other)


async def test_addresses_are_not_stored(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        hand = await registered(at)
        page = await hand.browser.open(hand.link())
        await hand.browser.answer(page, passphrase="a wrong passphrase", owner="somebody unusual")
        stored = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
        assert b"somebody unusual" not in stored
