"""`ports.graphs`: how often a message got each label of feedback."""

from dataclasses import replace

import pytest

from kalito_mcp.domain.graph import FeedbackLabel
from kalito_mcp.domain.scope import Scope
from kalito_mcp.ports.store import Store
from kalito_mcp.records.sessions import ensure_session
from tests import drafts
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio


async def test_labels_are_counted_and_taken_back_one_by_one(store: Store) -> None:
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, Scope(session="s"), now_ms=START_MS)
        [said] = await transaction.conversations.append_messages(session, [drafts.message("Bread?")], now_ms=START_MS)
        number = said.id
        for label in ("down", "up", "down"):
            await transaction.graphs.add_feedback(Scope(), number, FeedbackLabel(label), at_ms=START_MS)
    counts: list[dict[str, int]] = []
    for expected in (True, True, False):
        async with store.transaction() as transaction:
            assert await transaction.graphs.withdraw_feedback(Scope(), number, FeedbackLabel.DOWN) is expected
            found = await transaction.graphs.feedback(Scope(), [f"msg_{number}"])
            counts.append({str(label): count for label, count in found[f"msg_{number}"].items()})
    assert counts == [{"down": 1, "up": 1}, {"up": 1}, {"up": 1}]
    async with store.transaction() as transaction:
        assert not await transaction.graphs.withdraw_feedback(Scope(), number, FeedbackLabel.RETRY)
        assert not await transaction.graphs.withdraw_feedback(Scope(), number + 1, FeedbackLabel.UP)


async def test_another_owner_neither_reads_nor_changes_the_feedback_on_a_message(store: Store) -> None:
    eve = Scope("eve")
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, Scope(session="s"), now_ms=START_MS)
        await ensure_session(transaction.sessions, replace(eve, session="s"), now_ms=START_MS)
        [said] = await transaction.conversations.append_messages(session, [drafts.message("Bread?")], now_ms=START_MS)
        await transaction.graphs.add_feedback(eve, said.id, FeedbackLabel.DOWN, at_ms=START_MS)
        await transaction.graphs.add_feedback(Scope(), said.id, FeedbackLabel.UP, at_ms=START_MS)
        await transaction.graphs.add_feedback(eve, said.id, FeedbackLabel.UP, at_ms=START_MS)
        assert not await transaction.graphs.withdraw_feedback(eve, said.id, FeedbackLabel.UP)
    message_id = f"msg_{said.id}"
    async with store.view() as view:
        assert await view.graphs.feedback(eve, [message_id]) == {}
        assert await view.graphs.feedback(Scope(), [message_id]) == {message_id: {FeedbackLabel.UP: 1}}
