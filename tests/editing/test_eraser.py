"""A sweep that a purge still owes is tried again, soon and then less often."""

import math
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from kalito_mcp import open_memory
from kalito_mcp.storage.sqlite import sweeping
from kalito_mcp.upkeep.owed_worker import OwedWorker
from tests.empty_database import lay_empty_database
from tests.scripted import CountedIds, ScriptedClock
from tests.stored import said

pytestmark = pytest.mark.anyio
CANARY = "Zanzibarquokka"


async def test_an_owed_sweep_is_tried_again_after_twice_as_long_each_time(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never() -> float:
        return math.inf

    monkeypatch.setattr(sweeping, "_WAIT_FOR_READERS_S", 0.02)
    # The background would try it too.
    monkeypatch.setattr(OwedWorker, "_finish_erasures", lambda _: never())
    clock = ScriptedClock()
    async with open_memory(lay_empty_database(database), clock=clock, ids=CountedIds()) as memory:
        await memory.record_messages("talk", said(CANARY, "Hello."))
        await memory.settled()
        with closing(sqlite3.connect(database)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM records").fetchone()
            assert (await memory.purge(["msg_1"])).remaining
            finish = memory._services.eraser.finish
            for pause_s in (2.0, 4.0, 8.0):
                clock.advance(pause_s)
                assert [await finish(), await finish()] == [pause_s, pause_s]
            clock.advance(1_000_000)
            pauses_s = [await finish() for _ in range(8) if clock.advance(300) is None]
            assert (pauses_s[0], pauses_s[-1]) == (16.0, 300.0)
        clock.advance(300)
        assert await finish() == math.inf
        assert not [
            one for one in database.parent.glob("memory.db*") if one.is_file() and CANARY.encode() in one.read_bytes()
        ]
