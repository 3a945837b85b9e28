"""A database with something in it, to be copied and then mistreated."""

from pathlib import Path

import anyio
import pytest

from kalito_mcp.domain.scope import Scope
from kalito_mcp.storage.sqlite.database import SqliteStore
from tests import drafts
from tests.scripted import START_MS

MESSAGES = 120
TEXT = "The ferry to Moss leaves at {n} past seven, and Ann has the tickets for the crossing number {n}."


async def _fill(path: Path) -> None:
    store = await SqliteStore.open(path)
    async with store.write() as transaction:
        for name in ("trip", "home"):
            session = await transaction.sessions.ensure(Scope(session=name), now_ms=START_MS)
            batch = [drafts.message(TEXT.format(n=n), client_key=f"k{n}") for n in range(MESSAGES)]
            await transaction.records.append_messages(session, batch, now_ms=START_MS)
            pins = [drafts.pin(f"{name} pin {n}", importance=n / 20, client_key=f"p{n}") for n in range(20)]
            await transaction.records.add_pins(session, pins)
            for start in range(1, MESSAGES, 15):
                text = f"The messages from {start} on were about the ferry."
                draft = drafts.summary(start, start + 14, text=text, record_id=f"summary_{name}_{start}")
                await transaction.records.add_summary(session, draft)
    await store.close()


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a closed database: two sessions of messages, pins and summaries."""
    path = tmp_path_factory.mktemp("sample") / "memory.db"
    anyio.run(_fill, path)
    assert not path.with_name("memory.db-wal").exists()
    return path.read_bytes()


@pytest.fixture
def copy(sample: bytes, database: Path) -> Path:
    """A copy of the sample, this test's own."""
    database.write_bytes(sample)
    return database
