"""A server in a process of its own hears hooks on both ways, and answers them."""

import json
import sys
import time
from pathlib import Path
from typing import Any

from kalito_mcp.runtime.database_address import LocalFiles
from tests.server import prepared
from tests.server.wire import COVERED, PATIENCE_S, Wire, call, clean_environment, served

STAGING = "The staging database is at db.stage.example, port 6543."
ASKED = "Which port does the staging database have?"


def told(wire: Wire, number: int, event: str, **said: str) -> str:
    """What the tool answers to a hook."""
    wire.send(call(number, "hook_event", host="claude-code", event=event, cwd="/home/ann/shop", **said))
    result: dict[str, Any] = wire.answer(number)["result"]
    assert not result.get("isError"), result
    return str(result["content"][0]["text"])


def wait_for_listener(database: Path) -> None:
    """Wait until the server tells where it listens."""
    until = time.monotonic() + PATIENCE_S
    while not list(LocalFiles(database).hooks.glob("server-*.json")):
        assert time.monotonic() < until
        time.sleep(0.02)


def test_hooks_are_heard_by_the_tool_and_by_the_command(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    with served(database, KALITO_HOOKS="claude-code", **COVERED) as wire:
        assert told(wire, 1, "UserPromptSubmit", session_id="s1", prompt=STAGING, prompt_id="p1") == ""
        wait_for_listener(database)
        assert told(wire, 2, "Stop", session_id="s1", text="Noted.", prompt_id="p1") == ""
        # A machine that is too busy to answer in a third of a second answers nothing.
        assert any(
            "6543" in told(wire, number, "UserPromptSubmit", session_id=f"s{number}", prompt=ASKED, prompt_id="q1")
            for number in range(10, 20)
        )
        assert LocalFiles(database).trace("claude-code").exists()

        command = [sys.executable, "-c", "from kalito_mcp.cli.hook import main; main()", "codex", "UserPromptSubmit"]
        prompt = json.dumps({"session_id": "s3", "cwd": "/home/ann/shop", "prompt": ASKED}).encode()
        environment = clean_environment(KALITO_DATABASE=str(database))
        done = prepared.run(command, input=prompt, env=environment, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
        # The same, which is put into the spool.
        assert b"6543" in done.stdout or list(LocalFiles(database).spool.iterdir())
        wire.close_stdin()
        wire.rest()
        assert wire.exit_code() == 0
    assert not list(LocalFiles(database).hooks.glob("server-*.json"))


def test_a_pin_of_a_resumed_conversation_is_in_the_session_that_it_goes_on_in(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    hooks = {"KALITO_HOOKS": "claude-code", "CLAUDE_CODE_SESSION_ID": "trip"}
    with served(database, **hooks, **COVERED) as wire:
        told(wire, 1, "UserPromptSubmit", session_id="trip", prompt="We fly to Oslo.", prompt_id="p1")
        wire.send(call(2, "finalize_session", session_id="trip"))
        assert "FINALIZED" in str(wire.answer(2)["result"])
        told(wire, 3, "UserPromptSubmit", session_id="trip", prompt="I'd rather fly to Bergen.", prompt_id="p2")
        wire.send(call(4, "create_pin", content="The trip goes to Bergen."))
        pinned = wire.answer(4)["result"]["structuredContent"]["pin"]
        assert pinned["session_id"] == "trip~2"
        wire.close_stdin()
        assert wire.exit_code() == 0


def test_without_hooks_the_tool_is_unknown(tmp_path: Path) -> None:
    with served(tmp_path / "memory.db") as wire:
        wire.send(call(1, "hook_event", host="claude-code", event="Stop", session_id="s1", text="Hi"))
        assert "hook_event" in wire.answer(1)["error"]["message"]
