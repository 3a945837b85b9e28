"""Tokens: made, used, expired and revoked, in a real database."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from kalito_mcp.access import tokens
from kalito_mcp.access.tokens import PREFIX
from kalito_mcp.config.settings import Settings
from kalito_mcp.domain.access import Permission, Principal, TokenKind
from kalito_mcp.domain.scope import Limits
from kalito_mcp.errors import InvalidInput, NotFound
from kalito_mcp.memory import Memory
from kalito_mcp.ports.storage_policy import StoragePolicy
from kalito_mcp.ports.store import WriteTransaction
from kalito_mcp.wiring import open_memory
from tests.empty_database import lay_empty_database
from tests.scripted import START_MS, ScriptedClock

pytestmark = pytest.mark.anyio
HOUR_MS = 3_600_000


@pytest.fixture
def clock() -> ScriptedClock:
    return ScriptedClock()


@pytest.fixture
async def memory(tmp_path: Path, clock: ScriptedClock) -> AsyncIterator[Memory]:
    async with open_memory(lay_empty_database(tmp_path / "memory.db"), clock=clock) as opened:
        yield opened


async def test_a_token_calls_on_behalf_of_its_owner_within_its_limits(memory: Memory) -> None:
    limits = Limits("coder", "shop")
    made = await memory.access.create_token(Permission.WRITE, owner="ann", name="laptop", limits=limits)
    assert await memory.access.principal_of(made.text) == Principal(made.token.id, "ann", Permission.WRITE, limits)
    assert await memory.access.principal_of(f"{made.text}x") is None
    assert await memory.access.principal_of("") is None


async def test_a_limit_to_a_project_names_it_as_its_owner_does(memory: Memory, tmp_path: Path) -> None:
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    (tmp_path / "shop" / "src").mkdir()
    ann = memory.of_owner("ann")
    await (await ann.in_project(str(tmp_path / "shop"))).remember("note", {"text": "The till sticks."})
    for named in ("shop", str(tmp_path / "shop"), str(tmp_path / "shop" / "src")):
        made = await memory.access.create_token(Permission.READ, owner="ann", limits=Limits(project=named))
        assert made.token.limits == Limits(project=str(tmp_path / "shop"))
    made = await memory.access.create_token(Permission.READ, owner="ben", limits=Limits(project="shop"))
    assert made.token.limits == Limits(project="shop"), "Ben has no such project yet"


async def test_the_text_of_a_token_is_nowhere_on_disk(memory: Memory, tmp_path: Path) -> None:
    made = await memory.access.create_token(Permission.ADMIN, name="laptop")
    assert made.text.startswith(PREFIX)
    assert made.text.startswith(made.token.prefix)
    assert len(made.token.prefix) < len(made.text) / 3
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or made.text.encode() not in file.read_bytes()


async def test_an_expired_token_is_unknown_from_that_moment_on(memory: Memory, clock: ScriptedClock) -> None:
    made = await memory.access.create_token(Permission.READ, lifetime_ms=HOUR_MS)
    clock.wall_ms = START_MS + HOUR_MS - 1
    assert await memory.access.principal_of(made.text) is not None
    clock.wall_ms = START_MS + HOUR_MS
    assert await memory.access.principal_of(made.text) is None
    with pytest.raises(NotFound, match="token list"):
        await memory.access.revoke_token(made.token.id)


async def test_a_revoked_token_is_unknown_at_once_and_still_listed(memory: Memory) -> None:
    kept, lost = await memory.access.create_token(Permission.READ), await memory.access.create_token(Permission.READ)
    assert await memory.access.revoke_token(lost.token.id) == [lost.token.id]
    assert await memory.access.principal_of(lost.text) is None
    assert await memory.access.principal_of(kept.text) is not None
    assert [(one.id, one.revoked_at) for one in await memory.access.tokens()] == [
        (lost.token.id, START_MS),
        (kept.token.id, None),
    ]


async def test_a_token_that_was_made_by_hand_is_listed_however_often_hosts_renew_theirs(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "_MOST_LISTED", 3)
    made = await memory.access.create_token(Permission.READ)

    async def add(transaction: WriteTransaction) -> None:
        for number in range(5):
            renewed = tokens.new_token("local", Permission.READ, now_ms=START_MS, kind=TokenKind.ACCESS)
            await transaction.access.add_token(renewed.token, b"%d" % number)

    await memory.place.store.write(add)
    listed = await memory.access.tokens()
    assert (listed[0].id, len(listed)) == (made.token.id, 3)


async def test_another_owners_token_is_not_revoked(memory: Memory) -> None:
    made = await memory.access.create_token(Permission.READ, owner="ann")
    with pytest.raises(NotFound):
        await memory.access.revoke_token(made.token.id, "ben")
    assert await memory.access.tokens("ben") == []
    assert await memory.access.principal_of(made.text) is not None


async def test_the_last_use_is_noted_once_a_minute(memory: Memory, clock: ScriptedClock) -> None:
    made = await memory.access.create_token(Permission.READ)
    uses = []
    for _ in range(3):
        await memory.access.principal_of(made.text)
        uses += [one.last_used_at for one in await memory.access.tokens()]
        clock.advance(40)
    assert uses == [START_MS, START_MS, START_MS + 80_000]


async def test_who_may_read_is_let_in_while_nobody_can_write(tmp_path: Path) -> None:
    database = lay_empty_database(tmp_path / "memory.db")
    async with open_memory(database, Settings(storage=StoragePolicy(busy_timeout_s=0.05))) as memory:
        made = await memory.access.create_token(Permission.READ)
        with closing(sqlite3.connect(database, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert await memory.access.principal_of(made.text) == made.token.principal
            other.execute("ROLLBACK")
        assert [one.last_used_at for one in await memory.access.tokens()] == [None], "its use is noted the next time"


async def test_a_principal_may_call_until_its_token_ends(memory: Memory) -> None:
    lasting, hour, lost = [
        (await memory.access.create_token(Permission.READ, owner="ann", lifetime_ms=lifetime)).token
        for lifetime in (None, HOUR_MS, None)
    ]
    await memory.access.revoke_token(lost.id)
    found = await memory.access.ends_of([lasting.id, hour.id, lost.id, "https://id.example.org#ann"])
    assert found == {hour.id: START_MS + HOUR_MS, lost.id: 0}


@pytest.mark.parametrize(
    ("owner", "limits", "lifetime_ms"),
    [
        ("", Limits(), None),
        (" ", Limits(), None),
        ("a\x00b", Limits(), None),
        ("ann", Limits(agent=""), None),
        ("ann", Limits(project="x" * 201), None),
        ("ann", Limits(), 0),
        ("ann", Limits(), -1),
    ],
)
async def test_what_could_never_be_used_is_refused(
    memory: Memory, owner: str, limits: Limits, lifetime_ms: int | None
) -> None:
    with pytest.raises(InvalidInput):
        await memory.access.create_token(Permission.READ, owner=owner, limits=limits, lifetime_ms=lifetime_ms)
    assert await memory.access.tokens() == []


def test_each_permission_includes_those_before_it() -> None:
    may = {one: [other for other in Permission if Principal("x", permission=one).may(other)] for one in Permission}
    assert may == {
        Permission.READ: [Permission.READ],
        Permission.WRITE: [Permission.READ, Permission.WRITE],
        Permission.ADMIN: [Permission.READ, Permission.WRITE, Permission.ADMIN],
    }
