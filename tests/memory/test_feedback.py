"""Feedback on a question or an answer is given and taken back."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kalito_mcp import Memory, NewMessage, Role, open_memory
from kalito_mcp.domain.scope import Limits
from kalito_mcp.errors import InvalidInput, RecordNotFound
from tests.scripted import CountedIds, ScriptedClock

pytestmark = pytest.mark.anyio
QUESTION, ANSWER = "When is the Orion release?", "On June 1."


@pytest.fixture
async def memory(database: Path, clock: ScriptedClock) -> AsyncIterator[Memory]:
    async with open_memory(database, clock=clock, ids=CountedIds()) as opened:
        await opened.record_messages("s", [NewMessage(Role.USER, QUESTION), NewMessage(Role.ASSISTANT, ANSWER)])
        yield opened


async def liking(memory: Memory) -> list[tuple[float, int, int]]:
    found = await memory.past_answers(QUESTION)
    return [(past.answers[0].feedback, past.up, past.down) for past in found]


@pytest.mark.parametrize("is_finalized", [False, True])
async def test_feedback_is_taken_back_wherever_it_was_counted(memory: Memory, is_finalized: bool) -> None:
    await memory.record_feedback("msg_2", "up")
    if is_finalized:
        await memory.finalize_session("s")
    before = await memory.orchestrator().graph_overview(), await memory.conversations.graph_overview(session_id="s")
    await memory.record_feedback("msg_2", "down")
    await memory.record_feedback("msg_2", "down", "It was July.")
    assert await liking(memory) == [(-1, 1, 2)]
    for left in ([(0, 1, 1)], [(1, 1, 0)]):
        await memory.conversations.withdraw_feedback("msg_2", "down")
        assert await liking(memory) == left
    after = await memory.orchestrator().graph_overview(), await memory.conversations.graph_overview(session_id="s")
    assert after == before
    with pytest.raises(RecordNotFound, match="no feedback 'down'"):
        await memory.conversations.withdraw_feedback("msg_2", "down")


async def test_what_has_no_feedback_has_none_to_take_back(memory: Memory) -> None:
    with pytest.raises(RecordNotFound):
        await memory.conversations.withdraw_feedback("msg_9", "up")
    with pytest.raises(InvalidInput, match="fine"):
        await memory.conversations.withdraw_feedback("msg_1", "fine")
    await memory.record_feedback("msg_1", "up")
    limited = memory.of_owner(memory.place.owner, Limits(project="elsewhere", agent="other"))
    with pytest.raises(RecordNotFound):
        await limited.conversations.withdraw_feedback("msg_1", "up")
    assert await liking(memory) == [(0, 1, 0)]
