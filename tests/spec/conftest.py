"""Memories for the tests of the specification: real files, a scripted clock, counted ids."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kalito_mcp import Memory, Settings, open_memory
from kalito_mcp.domain.validation import LimitsPolicy
from kalito_mcp.pins.automatic import AutoPinPolicy
from kalito_mcp.ports.tokens import TokenPolicy
from kalito_mcp.records.importance import ImportancePolicy
from kalito_mcp.records.recorder import Recorder
from kalito_mcp.storage.sqlite.database import SqliteStore
from tests.empty_database import lay_empty_database
from tests.scripted import CharacterCounter, CountedIds, ScriptedClock


@pytest.fixture
async def memory(database: Path, clock: ScriptedClock, ids: CountedIds) -> AsyncIterator[Memory]:
    """A memory with default settings, except that only the test makes pins. Its first owed work is done."""
    settings = Settings(pins=AutoPinPolicy(enabled=False))
    async with open_memory(lay_empty_database(database), settings, clock=clock, ids=ids) as opened:
        await opened.settled()
        yield opened


@pytest.fixture
async def counting_chars(database: Path, clock: ScriptedClock, ids: CountedIds) -> AsyncIterator[Memory]:
    """Like `memory`, with the specification's estimate of tokens: ceil(characters x 0.75)."""
    settings = Settings(pins=AutoPinPolicy(enabled=False), tokens=TokenPolicy(counter="chars"))
    async with open_memory(lay_empty_database(database), settings, clock=clock, ids=ids) as opened:
        await opened.settled()
        yield opened


@pytest.fixture
async def elsewhere(store: SqliteStore, clock: ScriptedClock) -> Recorder:
    """Another process on the same database. It does no owed work."""
    return Recorder(store, CharacterCounter(), clock, LimitsPolicy(), ImportancePolicy())
