"""Refused requests in the audit log."""

from pathlib import Path

import anyio
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Message

from kalito_mcp.domain.access import Permission, Principal
from kalito_mcp.domain.audit import Outcome
from kalito_mcp.memory import Memory
from kalito_mcp.runtime.acting import acting
from kalito_mcp.web.guard import PRINCIPAL_KEY
from kalito_mcp.web.refusal_log import RefusalLog
from kalito_mcp.wiring import open_memory
from tests.empty_database import lay_empty_database

pytestmark = pytest.mark.anyio


async def refuse(log: RefusalLog, status: int, principal: Principal | None) -> None:
    async def send(_: Message) -> None:
        return

    async def receive() -> Message:
        raise AssertionError("nothing is read")

    scope = {"type": "http", "method": "GET", "path": "/", "headers": [], PRINCIPAL_KEY: principal}
    await log.around(PlainTextResponse("x", status))(scope, receive, send)


async def test_many_refusals_are_one_entry_each_principal_and_kind(tmp_path: Path) -> None:
    async with open_memory(lay_empty_database(tmp_path / "memory.db")) as memory:

        async def opened() -> Memory:
            return memory

        log = RefusalLog(opened)
        ann = Principal("tok_ann", "ann", Permission.READ)
        async with log.writing():
            for _ in range(500):
                await refuse(log, 401, None)
                await refuse(log, 403, ann)
                await refuse(log, 200, ann)
            for number in range(2_000):
                await refuse(log, 403, Principal(f"tok_{number}"))
            await anyio.lowlevel.checkpoint()
        entries = [one.said for one in await memory.access.audit(limit=5_000, all_owners=True)]
        assert {one.outcome for one in entries} == {Outcome.REFUSED}
        by_who = {(one.principal, one.action): one.count for one in entries}
        assert by_who["nobody", "no valid token"] == 500
        assert by_who["tok_ann", "not allowed"] == 500
        assert sum(by_who.values()) == 3_000
        assert len(entries) <= 1_001
        assert acting() is None
        await log.write()
        assert len(await memory.access.audit(limit=5_000, all_owners=True)) == len(entries)
