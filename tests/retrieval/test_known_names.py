"""A mistyped agent or session is refused with the right name; a new one is no mistake."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kalito_mcp.config.settings import Settings
from kalito_mcp.domain.records import CreatePinRequest, NewMessage, Role
from kalito_mcp.domain.search import SearchRequest
from kalito_mcp.errors import InvalidInput, SessionNotFound
from kalito_mcp.memory import Memory
from kalito_mcp.retrieval.known_names import nearest
from kalito_mcp.wiring import open_memory

pytestmark = pytest.mark.anyio
OSLO = SearchRequest("Oslo")
UUID = "6513270e-269e-4d37-b2a7-4de452e6b438"
TWIN = "6513270e-1111-4d37-b2a7-4de452e6b438"


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with open_memory(tmp_path / "memory.db", Settings()) as opened:
        said = [NewMessage(role=Role.USER, text="We fly to Oslo on May 3.")]
        await opened.record_messages("holidays", said, agent_id="work")
        yield opened


async def test_a_session_is_found_by_the_beginning_of_its_uuid_and_a_hit_has_its_title(memory: Memory) -> None:
    await memory.record_messages(UUID, [NewMessage(Role.USER, "/model opus"), NewMessage(Role.USER, "Is Oslo cold?")])
    [hit] = (await memory.search_memory(OSLO, session_id="6513270e")).hits
    assert (hit.session_id, hit.session_title) == (UUID, "Is Oslo cold?")
    assert (await memory.conversations.transcript("6513270e")).session.id == UUID
    [named] = (await memory.search_memory("Oslo", session_id="holidays", agent_id="work")).hits  # a text is a request
    assert (named.session_id, named.session_title) == ("holidays", None)
    # What is written goes on in a session of its own: an id that somebody chose is never completed.
    await memory.record_messages("6513270e", [NewMessage(Role.USER, "Something else.")])
    assert (await memory.conversations.transcript("6513270e")).session.id == "6513270e"


async def test_the_beginning_of_several_uuids_is_refused_with_both(memory: Memory) -> None:
    for one in (UUID, TWIN, f"{UUID}~2"):
        await memory.record_messages(one, [NewMessage(Role.USER, "Is Oslo cold?")])
    with pytest.raises(InvalidInput, match=f"{TWIN}, {UUID}; send a whole one"):
        await memory.search_memory(OSLO, session_id="6513270e")
    assert (await memory.conversations.transcript("6513270e-269e")).session.id == UUID


def test_a_name_is_mistyped_if_a_similar_one_with_the_same_digits_is_known() -> None:
    for name, expected in (
        ("holidyas", "holidays"),
        ("Holiday", "holidays"),
        ("holidays", None),
        ("hollydais", None),
        ("wrok", "work"),
        ("wok", None),
        ("trip-2026-05-04", None),
        ("tripp-2026-05-03", "trip-2026-05-03"),
        ("9f86d081", None),
    ):
        assert nearest(name, ["work", "holidays", "trip-2026-05-03", "9f86d082"]) == expected


async def test_a_mistyped_agent_is_refused(memory: Memory) -> None:
    for call in (
        memory.search_memory(OSLO, agent_id="wrok"),
        memory.build_context(query="Oslo", agent_id="wrok"),
        memory.search_memory(OSLO, agent_id="wrok", session_id="holidays"),
    ):
        with pytest.raises(InvalidInput, match="no agent 'wrok'; did you mean 'work'"):
            await call


async def test_a_mistyped_session_is_refused(memory: Memory) -> None:
    for call in (
        memory.search_memory(OSLO, session_id="holidyas"),
        memory.build_context("holidyas"),
        memory.build_context("holidyas", query="Oslo"),
        memory.create_pin(CreatePinRequest("holidyas", "x")),
    ):
        with pytest.raises(SessionNotFound, match="no session 'holidyas'; did you mean 'holidays'"):
            await call
    assert [one.id for one in await memory.conversations.recent()] == ["holidays"]


async def test_a_new_agent_or_session_is_none(memory: Memory) -> None:
    assert not (await memory.search_memory(OSLO, agent_id="home")).hits
    assert not (await memory.search_memory(OSLO, session_id="a new one")).hits
    assert (await memory.build_context("a new one", query="Oslo", agent_id="work")).relevant_messages
    assert (await memory.create_pin(CreatePinRequest("a new one", "x"))).session_id == "a new one"
