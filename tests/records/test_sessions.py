"""Whose a session is: that of the agent, and of the project, that it was begun in."""

import pytest

from kalito_mcp.domain.scope import PERSONAL, Limits, Scope
from kalito_mcp.domain.sessions import Session
from kalito_mcp.errors import AccessDenied, InvalidInput
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.sqlite.database import SqliteStore
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio


async def opened(store: SqliteStore, scope: Scope, *, now_ms: int = START_MS) -> Session:
    async with store.transaction() as transaction:
        return await ensure_session(transaction.sessions, scope, now_ms=now_ms)


async def test_a_known_session_is_returned_as_it_is(store: SqliteStore) -> None:
    first = await opened(store, Scope(session="trip"))
    assert (first.agent, first.project) == ("default", None)
    assert await opened(store, Scope(session="trip"), now_ms=START_MS + 1) == first


async def test_a_session_keeps_the_agent_it_was_opened_under_and_refuses_another(store: SqliteStore) -> None:
    await opened(store, Scope(agent="coach", session="trip"))
    assert (await opened(store, Scope(session="trip"))).agent == "coach"
    assert (await opened(store, Scope(agent="coach", session="trip"))).agent == "coach"
    with pytest.raises(InvalidInput, match="coach"):
        await opened(store, Scope(agent="default", session="trip"))


async def test_a_session_keeps_its_project_and_refuses_another(store: SqliteStore) -> None:
    for session, project in (("a", "one"), ("mine", None)):
        await opened(store, Scope(session=session, project=project))
    assert (await opened(store, Scope(session="a"))).project == "one"
    with pytest.raises(InvalidInput, match="belongs to project 'one'; send project='one', or use another session_id"):
        await opened(store, Scope(session="a", project="two"))
    with pytest.raises(InvalidInput, match="belongs to project 'one'"):
        await opened(store, Scope(session="a", project=PERSONAL))
    with pytest.raises(InvalidInput, match="is of no project; send project='personal'"):
        await opened(store, Scope(session="mine", project="one"))


async def test_a_new_session_is_the_limits_and_one_beyond_them_is_refused_in_neutral_words(store: SqliteStore) -> None:
    limits = Limits("coder", "shop")
    for agent, project in (("coder", "garden"), ("cook", "shop"), ("cook", None)):
        await opened(store, Scope(agent=agent, session=f"{agent} {project}", project=project))
    session = await opened(store, Scope(session="new", project="shop", limits=limits))
    assert (session.agent, session.project) == ("coder", "shop")
    for taken in ("coder garden", "cook shop", "cook None"):
        with pytest.raises(AccessDenied, match=f"session_id '{taken}' cannot be used here"):
            await opened(store, Scope(session=taken, project="shop", limits=limits))
    for beyond in (Scope(agent="cook", project="shop"), Scope(project="garden")):
        with pytest.raises(AccessDenied, match=r"only the (agent 'coder'|project 'shop')"):
            await opened(store, Scope(agent=beyond.agent, session="newer", project=beyond.project, limits=limits))
