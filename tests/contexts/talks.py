"""Conversations for the tests of whole contexts: an opened memory whose days a test chooses."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from kalito_mcp import Memory, NewMessage, Role, open_memory
from tests.empty_database import lay_empty_database
from tests.scripted import START_MS, CountedIds, ScriptedClock

DAY_S: Final = 86_400


@asynccontextmanager
async def opened(database: Path, clock: ScriptedClock | None = None) -> AsyncIterator[Memory]:
    async with open_memory(lay_empty_database(database), clock=clock or ScriptedClock(), ids=CountedIds()) as memory:
        yield memory


async def talk(memory: Memory, session: str, *texts: str, days_ago: float = 0) -> list[str]:
    """The user and the assistant say these in turn, the last of them so many days before the scripted clock's start.
    Returns their ids."""
    last = START_MS - round(days_ago * DAY_S * 1000)
    said = [
        NewMessage((Role.USER, Role.ASSISTANT)[place % 2], text, created_at=last - 60_000 * (len(texts) - place))
        for place, text in enumerate(texts)
    ]
    recorded = await memory.record_messages(session, said)
    await memory.settled()
    return recorded.message_ids
