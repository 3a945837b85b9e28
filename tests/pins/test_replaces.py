"""A pin says what no longer holds because of it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kalito_mcp import CreatePinRequest, Memory, Settings, open_memory
from kalito_mcp.errors import InvalidInput, RecordNotFound
from tests.scripted import CountedIds, ScriptedClock
from tests.stored import said

pytestmark = pytest.mark.anyio
OLD, NEW = "The staging database listens on 5432.", "The staging database listens on 5433."


@pytest.fixture
async def memory(database: Path, clock: ScriptedClock) -> AsyncIterator[Memory]:
    async with open_memory(database, Settings(), clock=clock, ids=CountedIds()) as opened:
        yield opened


async def _known(memory: Memory) -> list[str]:
    return [line.record.text for line in (await memory.records.profile()).lines]


@pytest.mark.parametrize(("session", "by_id"), [("ops", True), (None, False)])
async def test_what_it_replaces_is_known_no_more_and_says_so_where_it_is_found(
    memory: Memory, session: str | None, by_id: bool
) -> None:
    old = await memory.create_pin(CreatePinRequest(session_id="ops", content=OLD, scope="person"))
    named = old.id if by_id else "staging  DATABASE listens on 5432"
    new = await memory.create_pin(CreatePinRequest(session_id=session, content=NEW, scope="person", replaces=(named,)))
    assert await _known(memory) == [NEW]
    [hit] = [one for one in (await memory.search_memory("staging database 5432")).hits if one.record_id == old.id]
    assert hit.superseded_by == new.id


async def test_it_may_replace_what_was_said(memory: Memory) -> None:
    await memory.record_messages("ops", said(OLD))
    await memory.create_pin(CreatePinRequest(session_id="ops", content=NEW, replaces=("msg_1", "msg_1")))
    hit = next(one for one in (await memory.search_memory("staging database 5432")).hits if one.record_id == "msg_1")
    assert hit.superseded_by is not None


async def test_words_that_nobody_said_and_ids_of_nothing_are_refused_and_nothing_is_pinned(memory: Memory) -> None:
    await memory.record_messages("ops", said(OLD))
    with pytest.raises(InvalidInput, match="nothing here says 'the moon'"):
        await memory.create_pin(CreatePinRequest(session_id="ops", content=NEW, replaces=("the moon",)))
    with pytest.raises(RecordNotFound, match="msg_99"):
        await memory.create_pin(CreatePinRequest(session_id="ops", content=NEW, replaces=("msg_99",)))
    assert (await memory.conversations.stats("ops")).total_pins == 0
