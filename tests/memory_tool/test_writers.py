"""Eight programs write the same files at once. Nothing that was acknowledged is lost."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import pytest

from kalito_mcp import KalitoError, Memory, MemoryTool, open_memory
from tests.empty_database import lay_empty_database

pytestmark = pytest.mark.anyio
WRITERS = 8
EACH = 5
PATH = "/memories/log.md"


@pytest.fixture
async def memories(tmp_path: Path) -> AsyncIterator[list[Memory]]:
    """Eight memories on one file, each with a store of its own."""
    database = lay_empty_database(tmp_path / "memory.db")
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(open_memory(database)) for _ in range(WRITERS)]


async def test_all_lines_of_all_writers_are_in_the_file_and_in_its_history(memories: list[Memory]) -> None:
    await MemoryTool(memories[0]).create(PATH, "count 0\n")
    counted: list[int] = []

    async def write(number: int) -> None:
        tool = MemoryTool(memories[number])
        for turn in range(EACH):
            await tool.insert(PATH, 1, f"writer {number} turn {turn}")
            while True:
                seen = int((await tool.view(PATH, [1, 1])).rpartition(" ")[2])
                try:
                    await tool.str_replace(PATH, f"count {seen}\n", f"count {seen + 1}\n")
                except KalitoError as error:
                    assert "No replacement was performed" in str(error)
                else:
                    counted.append(seen)
                    break

    async with anyio.create_task_group() as tasks:
        for number in range(WRITERS):
            tasks.start_soon(write, number)
    _, file = await memories[0].files.look(PATH)
    assert file is not None
    first, *lines = file.text.splitlines()
    assert first == f"count {WRITERS * EACH}"
    assert sorted(lines) == sorted(f"writer {number} turn {turn}" for number in range(WRITERS) for turn in range(EACH))
    assert sorted(counted) == list(range(WRITERS * EACH))
    assert len(await memories[1].records.history(file.id)) == 1 + 2 * WRITERS * EACH


async def test_of_all_who_create_or_move_to_one_path_one_succeeds(memories: list[Memory]) -> None:
    done: list[str] = []

    async def write(number: int) -> None:
        tool = MemoryTool(memories[number])
        await tool.create(f"/memories/{number}.md", f"text {number}")
        try:
            if number % 2:
                await tool.create(PATH, f"text {number}")
            else:
                await tool.rename(f"/memories/{number}.md", PATH)
        except KalitoError as error:
            assert "already exists" in str(error)
        else:
            done.append(f"text {number}")

    async with anyio.create_task_group() as tasks:
        for number in range(WRITERS):
            tasks.start_soon(write, number)
    [written] = done
    assert written in await MemoryTool(memories[0]).view(PATH)
    tree, _ = await memories[0].files.look(PATH)
    assert len(tree.sizes) == WRITERS + int(written[-1]) % 2
