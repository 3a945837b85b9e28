"""No read of one owner, agent or session returns anything of another, whatever their names."""

import random
from itertools import product

import pytest

from kalito_mcp.domain.records import message_record_id
from kalito_mcp.domain.scope import Scope
from kalito_mcp.ports.store import Store
from kalito_mcp.records.sessions import ensure_session
from tests import drafts
from tests.index_reads import shown
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio
HOSTILE = [
    "a",
    "A",
    "a'",
    'a"',
    "a%",
    "a_",
    "a&b",
    "a=b",
    "a:b",
    "a' OR '1'='1",
    '1:"',
    "a\\",
    "a\u0301",
    "á",
    "a b",
    "*",
    "a;--",
    "null",
    "[1,2]",
    "𝒶",
]


async def remember(store: Store, scope: Scope, text: str) -> int:
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, scope, now_ms=START_MS)
        await transaction.conversations.add_pins(session, [drafts.pin(text, record_id=f"pin {scope}", client_key="k")])
        batch = [drafts.message(text, client_key="k")]
        [appended] = await transaction.conversations.append_messages(session, batch, now_ms=START_MS)
        return appended.id


async def visible(store: Store, scope: Scope) -> set[str]:
    """Every text that any read under the scope returns, including reads of the whole number range."""
    texts: set[str] = set()
    async with store.view() as view:
        everything = range(0, 1_000)
        # The candidates of an index are those of the agent; the columns say which are of the session.
        of_agent = Scope(scope.owner, scope.agent)
        found = await view.search.in_index(of_agent, lambda index: index.candidates(index.places_of_keys(everything)))
        texts |= {c.text for c in (found or {}).values() if scope.session in (None, c.session_id)}
        texts |= {c.text for c in await shown(view, scope)} | {c.text for c in await shown(view, scope, "secret")}
        session = await view.sessions.get(scope) if scope.session is not None else None
        if session is not None:
            texts |= {m.text for m in await view.conversations.messages(session, first_seq=0, last_seq=1_000)}
            texts |= {m.text for m in await view.conversations.messages_by_number(session, everything)}
            parts = await view.conversations.view(session, tail=99, pins=99)
            texts |= {m.text for m in parts.tail} | {p.content for p in parts.pins}
            pin = await view.conversations.pin_by_client_key(session, "k")
            assert pin is not None
            texts.add(pin.content)
    return texts


@pytest.mark.parametrize("of", ["owner", "agent", "session"])
async def test_hostile_names_never_reach_each_others_records(store: Store, of: str) -> None:
    scopes = [
        Scope(
            owner=name if of == "owner" else "local",
            agent=name if of == "agent" else "default",
            session={"owner": "s", "agent": f"of {number}", "session": name}[of],
        )
        for number, name in enumerate(HOSTILE)
    ]
    for number, scope in enumerate(scopes):
        await remember(store, scope, f"secret {number}")
    for number, scope in enumerate(scopes):
        assert await visible(store, scope) == {f"secret {number}"}, scope
        if of != "session":
            assert await visible(store, Scope(scope.owner, scope.agent)) == {f"secret {number}"}, scope


async def test_no_read_under_a_scope_gives_back_another_owners_message(store: Store) -> None:
    chance = random.Random(11)
    scopes = [Scope(o, a, s) for o, a, s in product(["ann", "ann'", "%"], ["x", "x&y"], ["one", "two=2"])]
    owned: dict[int, Scope] = {}
    agents: dict[tuple[str, str | None], str | None] = {}
    for _ in range(60):
        scope = chance.choice(scopes)
        if agents.setdefault((scope.owner, scope.session), scope.agent) != scope.agent:
            continue
        async with store.transaction() as transaction:
            session = await ensure_session(transaction.sessions, scope, now_ms=START_MS)
            batch = [drafts.message("secret")]
            [appended] = await transaction.conversations.append_messages(session, batch, now_ms=START_MS)
        owned[appended.id] = scope
    async with store.view() as view:
        for scope, (number, owner) in product(scopes, owned.items()):
            message = await view.conversations.message(scope, number)
            assert (message is not None) == ((scope.owner, scope.session) == (owner.owner, owner.session))
        for scope in scopes:
            found = await shown(view, scope)
            assert {c.record_id for c in found} == {
                message_record_id(number) for number, of in owned.items() if of == scope
            }
