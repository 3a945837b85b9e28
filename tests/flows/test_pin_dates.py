"""A pin says when its words were said, not when it was pinned."""

from pathlib import Path

import pytest

from kalito_mcp.config.settings import Settings
from kalito_mcp.domain.records import CreatePinRequest, NewMessage, RecordType, Role
from kalito_mcp.domain.search import SearchFilters, SearchRequest
from kalito_mcp.domain.time import from_iso, to_iso
from kalito_mcp.wiring import open_memory

pytestmark = pytest.mark.anyio
PINS = SearchFilters(types=frozenset({RecordType.PIN}))


async def test_a_pin_says_from_when_it_is(tmp_path: Path) -> None:
    async with open_memory(tmp_path / "memory.db", Settings()) as memory:
        text = "I passed the adoption interviews last Friday, and I never leave Porto now."
        said = NewMessage(role=Role.USER, text=text, created_at=from_iso("2023-10-22T10:00:00Z"))
        recorded = await memory.record_messages("s", [said])
        await memory.settled()
        await memory.create_pin(CreatePinRequest("s", "Porto", source_message_id=recorded.message_ids[0]))
        context = await memory.build_context("s")
        found = (await memory.search_memory(SearchRequest("Porto", filters=PINS))).hits
    days = context.text.partition("PINS (important facts)\n")[2].partition("\n---")[0].splitlines()
    assert len(days) >= 2
    assert all(line.startswith("- 2023-10-22") for line in days)
    assert {to_iso(hit.created_at)[:10] for hit in found} == {"2023-10-22"}
