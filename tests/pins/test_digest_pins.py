"""The pins of a digest that its author states."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kalito_mcp import CreatePinRequest, Digest, KeptDigest, Memory, Settings, open_memory
from kalito_mcp.domain.records import RecordType
from kalito_mcp.errors import SessionFinalized, SessionNotFound
from kalito_mcp.summaries.selection import HEADINGS
from tests.scripted import CountedIds, ScriptedClock
from tests.stored import said

pytestmark = pytest.mark.anyio
PORT, MOVED = "The staging database listens on 5432.", "The staging database listens on 5433."
OPEN = "Nobody has asked the admins for a backup."


@pytest.fixture
async def memory(database: Path, clock: ScriptedClock) -> AsyncIterator[Memory]:
    async with open_memory(database, Settings(), clock=clock, ids=CountedIds()) as opened:
        await opened.record_messages("ops", said("Let us look at the staging database."))
        yield opened


async def pinned(memory: Memory, session: str | None = "ops") -> dict[str, str | None]:
    """The pins of the session, and of what kind each is."""
    found = await memory.records.all(frozenset({RecordType.PIN}), session_id=session)
    return {one.text: one.content.get("kind") for one in found}


def test_its_headings_are_those_of_an_automatic_digest() -> None:
    one = ("One.",)
    text = Digest(one, one, one, one).text("They spoke.")
    assert text == "\n".join(["They spoke.", *(line for heading in HEADINGS for line in (heading, "One."))])
    assert Digest(open=()).text() is None
    assert Digest(learned=("Two\n lines.",)).text() == "Learned:\nTwo lines."


async def test_what_is_known_is_not_pinned_again_in_another_session(memory: Memory) -> None:
    await memory.record_messages("later", said("Where were we?"))
    first = await memory.keep_digest("ops", Digest(learned=(PORT,), open=(OPEN,)))
    again = await memory.keep_digest("later", Digest(decided=(PORT,), open=(OPEN,)))
    assert (len(first.pins), len(again.pins)) == (2, 1)
    assert await pinned(memory, "later") == {OPEN: "open"}
    assert [line.record.text for line in (await memory.records.profile()).lines] == [PORT]


async def test_what_somebody_pinned_or_reworded_stays(memory: Memory) -> None:
    asked = await memory.create_pin(CreatePinRequest("ops", "The backup is open.", scope="session"))
    kept = await memory.keep_digest("ops", Digest(learned=(PORT,), open=(OPEN,)))
    for record_id, text in zip(kept.pins, (MOVED, "Ask the admins."), strict=True):
        await memory.update_memory(record_id, {"text": text}, expected_revision=1)
    assert await memory.keep_digest("ops", Digest(learned=(PORT,), open=())) == KeptDigest()
    assert (await pinned(memory)).keys() == {asked.content, MOVED, "Ask the admins."}


async def test_a_sentence_that_was_of_another_kind_changes_it(memory: Memory) -> None:
    [first] = (await memory.keep_digest("ops", Digest(open=(OPEN,)))).pins
    kept = await memory.keep_digest("ops", Digest(learned=(OPEN,), open=()))
    assert kept.pins == (first,)
    assert await pinned(memory) == {OPEN: "fact"}
    kept = await memory.keep_digest("ops", Digest(open=(PORT,)))
    done = await memory.keep_digest("ops", Digest(done=(f"And {PORT}",), open=()))
    assert done.closed == kept.pins
    await memory.purge([done.pins[0]])
    for _ in range(2):  # and one in two lists has the kind of the later list
        await memory.keep_digest("ops", Digest(decided=(MOVED,), open=(MOVED,)))
        assert await pinned(memory) == {OPEN: "fact", MOVED: "open"}


async def test_a_closed_session_takes_none_and_an_unknown_one_is_not_made(memory: Memory) -> None:
    await memory.finalize_session("ops")
    with pytest.raises(SessionFinalized):
        await memory.keep_digest("ops", Digest(open=(OPEN,)))
    with pytest.raises(SessionNotFound):
        await memory.keep_digest("new", Digest(open=(OPEN,)))
    assert len(await memory.conversations.recent()) == 1
