"""What there is only one of is pinned once: the newest."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kalito_mcp import Memory, Settings, open_memory
from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import Scope
from tests.scripted import CountedIds, ScriptedClock
from tests.stored import said

pytestmark = pytest.mark.anyio


@pytest.fixture
async def memory(database: Path, clock: ScriptedClock) -> AsyncIterator[Memory]:
    async with open_memory(database, Settings(), clock=clock, ids=CountedIds()) as opened:
        yield opened


async def pins(memory: Memory) -> list[str]:
    """Those that are not forgotten, the oldest first."""
    async with memory._store.read() as view:
        found = await view.records.list_records(Scope(session="trip"), frozenset({RecordType.PIN}), limit=100)
    return [pin.text for pin in found][::-1]


async def record(memory: Memory, *texts: str) -> None:
    for text in texts:
        await memory.record_messages("trip", said(text))
        await memory.settled()


OLD, NEW = "My address is 3 Oak Road.", "My new address is 12 Elm Street."


async def test_the_new_address_replaces_the_older_pin(memory: Memory) -> None:
    await record(memory, OLD, "My sister Ann is a nurse.", NEW)
    assert await pins(memory) == ["My sister Ann is a nurse.", NEW]


async def test_in_one_call_too(memory: Memory) -> None:
    await memory.record_messages("trip", said(OLD, "Noted.", NEW))
    await memory.settled()
    assert await pins(memory) == [NEW]


async def test_the_newest_version_of_a_function_is_the_only_one(memory: Memory) -> None:
    code = "This works:\n```python\ndef parse(text):\n    return {0}\n```"
    await record(memory, code.format(1), code.format(2))
    assert await pins(memory) == ["python: def parse(text):\n    return 2"]


async def test_a_pin_in_somebody_s_own_words_stays(memory: Memory) -> None:
    await record(memory, OLD)
    async with memory._store.read() as view:
        [pin] = await view.records.list_records(Scope(session="trip"), frozenset({RecordType.PIN}), limit=9)
    await memory.update_memory(pin.id, {"text": "The old flat, until May: 3 Oak Road."}, expected_revision=1)
    await record(memory, NEW)
    assert await pins(memory) == ["The old flat, until May: 3 Oak Road.", NEW]


async def test_a_replaced_pin_can_be_restored(memory: Memory) -> None:
    await record(memory, OLD)
    async with memory._store.read() as view:
        [pin] = await view.records.list_records(Scope(session="trip"), frozenset({RecordType.PIN}), limit=9)
    await record(memory, NEW)
    await memory.restore(pin.id)
    assert sorted(await pins(memory)) == sorted([OLD, NEW])
