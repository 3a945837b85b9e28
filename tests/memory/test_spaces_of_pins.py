"""Copies of pins that were found in a message: they follow when the message is corrected, as the pins do."""

import pytest

from kalito_mcp import CreatePinRequest, Memory, NewMessage
from kalito_mcp.domain.memory_records import MemoryRecord
from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.records import Role as Sender
from kalito_mcp.domain.spaces import Role
from kalito_mcp.memory.sharing import Sharing
from tests.memory.test_spaces import found_by, memory

__all__ = ["memory"]
pytestmark = pytest.mark.anyio
RULE = "We decided to deploy to production on Tuesdays."
NEW_RULE = "We decided to deploy to production on Fridays."
OTHER_RULE = "We decided to call the staging server heron."


async def said(memory: Memory, text: str = RULE) -> tuple[str, str]:
    """The id of a message of ann, and of the copy of the pin that was found in it."""
    ann = memory.of_owner("ann")
    [message] = (await ann.record_messages("s", [NewMessage(Sender.USER, text)])).message_ids
    await memory.settled()
    [pin] = await pins(memory)
    return message, (await ann.spaces.share(pin.id))[0].id


async def pins(memory: Memory) -> list[MemoryRecord]:
    return [*await memory.of_owner("ann").records.all(frozenset({RecordType.PIN}))]


async def correct(memory: Memory, message: str, text: str) -> None:
    ann = memory.of_owner("ann")
    before = await ann.records.get(message)
    await ann.update_memory(message, {"text": text}, expected_revision=before.revision)


async def test_the_copy_says_what_the_pin_of_the_corrected_message_says(memory: Memory) -> None:
    message, copy = await said(memory)
    await correct(memory, message, NEW_RULE)
    assert [one.text for one in await pins(memory)] == [NEW_RULE]
    assert await found_by(memory, "ben") == [(NEW_RULE, "team")]
    history = await memory.of_owner("ben").records.history(copy)
    assert [one["edit_type"] for one in history] == ["create", "update"]
    await correct(memory, message, "We decided to deploy to production on Mondays.")
    assert await found_by(memory, "ben") == [("We decided to deploy to production on Mondays.", "team")]
    await memory.of_owner("ann").records.revert(message, 1)
    assert await found_by(memory, "ben") == [(RULE, "team")]
    assert copy in (await memory.of_owner("ann").purge([message])).erased
    assert await found_by(memory, "ben") == []


async def test_the_copy_is_forgotten_with_its_pin_if_no_other_pin_comes_instead(memory: Memory) -> None:
    message, copy = await said(memory)
    await correct(memory, message, "Hm, let me think about deploying.")
    assert await pins(memory) == []
    assert await found_by(memory, "ben") == []
    assert (await memory.of_owner("ben").records.get(copy)).is_deleted


async def test_a_copy_whose_pin_is_still_found_stays(memory: Memory) -> None:
    message, copy = await said(memory)
    await correct(memory, message, f"{RULE} {OTHER_RULE}")
    assert RULE in [one.text for one in await pins(memory)]
    assert (await memory.of_owner("ben").records.get(copy)).revision == 1


async def test_a_copy_that_somebody_changed_stays(memory: Memory) -> None:
    message, copy = await said(memory)
    cora = memory.of_owner("cora")
    await cora.update_memory(copy, {"text": "We deploy to production at night."}, expected_revision=1)
    await correct(memory, message, NEW_RULE)
    assert await found_by(memory, "ben") == [("We deploy to production at night.", "team")]


async def test_forgetting_the_message_leaves_the_copy_of_its_pin(memory: Memory) -> None:
    message, _ = await said(memory)
    await memory.of_owner("ann").forget(message)
    assert await pins(memory) == []
    assert await found_by(memory, "ben") == [(RULE, "team")]


async def test_the_copy_follows_only_where_its_author_may_write(memory: Memory) -> None:
    message, _ = await said(memory)
    await memory.spaces.set_member("team", "ann", Role.READER)
    await correct(memory, message, NEW_RULE)
    assert await found_by(memory, "ben") == [(RULE, "team")]


async def test_a_pin_that_was_made_on_request_follows_no_message_and_neither_does_its_copy(memory: Memory) -> None:
    ann = memory.of_owner("ann")
    [message] = (await ann.record_messages("s", [NewMessage(Sender.USER, "Deploying is hard.")])).message_ids
    pin = await ann.create_pin(CreatePinRequest("s", RULE, source_message_id=message))
    await ann.spaces.share(pin.id)
    await correct(memory, message, "Deploying is easy.")
    assert (await ann.records.get(pin.id)).text == RULE
    assert await found_by(memory, "ben") == [(RULE, "team")]


async def test_a_correction_that_stops_before_the_source_is_noted_leaves_a_copy_that_says_it(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    message, copy = await said(memory)

    async def stopped(*_: object) -> None:
        raise ConnectionError

    with monkeypatch.context() as cut:
        cut.setattr(Sharing, "_note_source", stopped)
        with pytest.raises(ConnectionError):
            await correct(memory, message, NEW_RULE)
    assert (await memory.of_owner("ann").records.get(copy)).text == NEW_RULE
    assert copy in (await memory.of_owner("ann").purge([message])).erased
