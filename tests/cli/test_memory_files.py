"""The commands for records take the path of a file of the memory tool."""

from pathlib import Path

import anyio
import pytest

from kalito_mcp import MemoryTool, open_memory
from tests.cli.conftest import Invoke
from tests.empty_database import lay_empty_database

PATH = "/memories/trip.md"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A database with a file that was changed and deleted, in a project."""
    path = tmp_path / "memory.db"

    async def write() -> None:
        async with open_memory(lay_empty_database(path)) as memory:
            tool = MemoryTool(await memory.in_project("shop"))
            await tool.create(PATH, "We fly to Oslo on May 3.\n")
            await tool.str_replace(PATH, "Oslo", "Bergen")
            await tool.delete(PATH)

    anyio.run(write)
    return path


def test_a_file_is_looked_up_brought_back_and_erased_by_its_path(invoke: Invoke, database: Path) -> None:
    def done(*arguments: str) -> str:
        outcome = invoke(*arguments, KALITO_DATABASE=str(database))
        assert (outcome.code, outcome.err) == (0, "")
        return outcome.out

    assert "Bergen" in done("history", PATH)
    assert done("restore", PATH).startswith("restored document_")
    assert "+We fly to Oslo on May 3." in done("revert", PATH, "1")
    assert "We fly to Oslo on May 3." in done("show", PATH)
    assert done("purge", PATH, "--yes").startswith("erased document_")
    assert invoke("show", PATH, KALITO_DATABASE=str(database)).code == 1
