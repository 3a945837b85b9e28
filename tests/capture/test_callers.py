"""What a bridge on another machine passes on of hooks is taken for whom it calls, and for nobody else."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Final

import anyio
import pytest
from mcp import Client

from kalito_mcp.capture import capturer
from kalito_mcp.capture.capturer import Capture
from kalito_mcp.domain.access import Permission, Principal
from kalito_mcp.domain.scope import Limits
from kalito_mcp.memory import Memory
from kalito_mcp.runtime.acting import acting_as
from kalito_mcp.server.build import KalitoServer, build_server
from kalito_mcp.wiring import open_memory
from tests.empty_database import lay_empty_database

pytestmark = pytest.mark.anyio
ANN: Final = Principal("tok_ann", "ann", Permission.WRITE)
BEN: Final = Principal("tok_ben", "ben", Permission.WRITE)
SHOP: Final = Principal("tok_shop", "ann", Permission.WRITE, Limits(project="shop"))


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[KalitoServer]:
    """A home: its memory is open, and its own hooks are heard."""
    made = build_server(lambda: open_memory(lay_empty_database(tmp_path / "memory.db")))
    async with made.opened.open():
        yield made


async def report(server: KalitoServer, principal: Principal, event: str, **payload: Any) -> None:
    """What the bridge of a principal sends for a hook. All of them call their conversation `chat`."""
    told = {"host": "claude-code", "event": event, "payload": {"session_id": "chat", **payload}}
    with acting_as(principal, "hook_event"):
        async with Client(server, mode="2026-07-28") as client:
            result = await client.call_tool("hook_event", {}, meta={"kalito/report": told})
    assert not result.is_error, result


async def said(memory: Memory) -> list[str]:
    """The texts of the conversation in a memory."""
    session = await memory.conversations.get("chat")
    if session is None:
        return []
    narrowed = await memory.in_project_of("chat")
    _, messages = await narrowed.conversations.messages("chat", last_seq=session.message_count)
    return [one.text for one in messages]


async def test_what_an_assistant_did_for_one_caller_is_in_no_others_memory(server: KalitoServer) -> None:
    memory = await server.opened.memory()
    failed = {"tool_name": "Bash", "tool_input": {"command": "open quince.vault"}, "error": "wrong key"}
    await report(server, ANN, "UserPromptSubmit", prompt="Open it.", prompt_id="p1", cwd="/srv/garden")
    await report(server, ANN, "PostToolUseFailure", cwd="/srv/garden", **failed)
    for principal in (BEN, SHOP):
        await report(server, principal, "Stop", last_assistant_message=f"Hello {principal.id}.", prompt_id="p1")
    await report(server, ANN, "Stop", last_assistant_message="It is shut.", prompt_id="p1", cwd="/srv/garden")
    assert await said(memory.of_owner("ben")) == ["Hello tok_ben."]
    assert await said(memory.of_owner("ann", SHOP.limits)) == ["Hello tok_shop."]
    work = "`open quince.vault` failed: wrong key"
    assert await said(memory.of_owner("ann")) == ["Open it.", work, "It is shut."]
    assert await said(memory) == []


async def test_what_is_not_recorded_in_time_does_not_wait_in_the_spool_of_the_home(
    server: KalitoServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is in the spool, the home records as its own."""
    kept: list[Mapping[str, Any]] = []
    monkeypatch.setattr(capturer, "_RECORDING_S", 0.0)
    monkeypatch.setattr(Capture, "_wait_s", lambda *_: 0.0)
    async with anyio.create_task_group() as tasks:
        server.capture.keep = kept.append
        server.capture.go_on_in(tasks)
        await report(server, BEN, "UserPromptSubmit", prompt="The key is below the pot.", prompt_id="p1")
    assert kept == []
    assert await said((await server.opened.memory()).of_owner("ben")) == ["The key is below the pot."]
