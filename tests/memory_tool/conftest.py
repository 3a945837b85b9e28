"""A memory tool over a memory on disk."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kalito_mcp import Memory, MemoryTool, open_memory
from tests.empty_database import lay_empty_database


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with open_memory(lay_empty_database(tmp_path / "memory.db")) as opened:
        yield opened


@pytest.fixture
def tool(memory: Memory) -> MemoryTool:
    return MemoryTool(memory)
