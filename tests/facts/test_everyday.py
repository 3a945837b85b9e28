"""Changes as people type them, and what must not be taken for one. The sentences are our own.

Each line of a table is an earlier message and a later one. `~` begins a change that is not read yet.
"""

from pathlib import Path
from typing import Final

import pytest

from kalito_mcp.domain.records import NewMessage, Role
from kalito_mcp.domain.scope import Scope
from kalito_mcp.memory import Memory
from kalito_mcp.wiring import open_memory

pytestmark = pytest.mark.anyio
HERE: Final = Path(__file__).parent
MISSED: Final = "~ "


def pairs(name: str) -> list[tuple[str, str]]:
    lines = (HERE / name).read_text(encoding="utf-8").splitlines()
    return [(old, new) for old, bar, new in (line.partition(" | ") for line in lines) if bar]


async def is_ended(memory: Memory, place: int, old: str, new: str) -> bool:
    """Whether the later message ends anything of the earlier one, in a project of their own."""
    project = await memory.in_project(f"project {place}")
    keys: list[int] = []
    for session, text in (("then", old), ("later", new)):
        [message] = (await project.record_messages(f"{session} {place}", [NewMessage(Role.USER, text)])).message_ids
        keys.append(int(message.removeprefix("msg_")))
    async with memory._store.read() as view:
        stated = (await view.facts.of_records(Scope(), keys[:1])).get(keys[0], ())
    return any(fact.superseded_by_key == keys[1] for fact in stated)


async def test_a_change_ends_what_was_said_before(tmp_path: Path) -> None:
    async with open_memory(tmp_path / "memory.db") as memory:
        for place, (old, new) in enumerate(pairs("everyday_changes.txt")):
            is_known = not old.startswith(MISSED)
            assert await is_ended(memory, place, old.removeprefix(MISSED), new) is is_known, (old, new)


async def test_what_is_no_change_ends_nothing(tmp_path: Path) -> None:
    async with open_memory(tmp_path / "memory.db") as memory:
        for place, (old, new) in enumerate(pairs("everyday_traps.txt")):
            assert not await is_ended(memory, place, old, new), (old, new)
