"""The plugin for OpenCode, run by Node.js with a hook that answers as ours does."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kalito_mcp.hosts import opencode
from kalito_mcp.hosts.facts import Launcher, OwnFile

NODE = shutil.which("node")
PLAY = """
import { readFileSync } from "node:fs"
import { Kalito } from "./kalito.mjs"
const { messages, played } = JSON.parse(readFileSync(0, "utf8"))
const client = { session: { messages: async () => ({ data: messages }) } }
const hooks = await Kalito({ client, directory: "/home/ann/shop" })
for (const [name, ...given] of played) await hooks[name](...given)
console.log(JSON.stringify(played))
"""
HOOK = """#!{python}
import json, sys
said = json.load(sys.stdin)
with open({log!r}, "a") as log:
    print(json.dumps([sys.argv[1:], said]), file=log)
if sys.argv[2] == "chat.message":
    print(json.dumps({{"hookSpecificOutput": {{"additionalContext": "remembered of " + said["prompt"]}}}}))
"""
pytestmark = pytest.mark.skipif(
    NODE is None or sys.platform == "win32", reason="needs Node.js, and a script as program"
)


def run(folder: Path, played: list[Any], messages: list[Any]) -> tuple[list[Any], list[Any]]:
    """What is played afterwards, and what the hook was told."""
    hook, log = folder / "hook", folder / "log"
    hook.write_text(HOOK.format(python=sys.executable, log=str(log)))
    hook.chmod(0o755)
    file = opencode.HOST.hooks
    assert isinstance(file, OwnFile)
    (folder / "kalito.mjs").write_text(file.content(Launcher("kalito-mcp", str(hook))))
    (folder / "play.mjs").write_text(PLAY)
    done = subprocess.run(
        [str(NODE), "play.mjs"],
        input=json.dumps({"messages": messages, "played": played}),
        capture_output=True,
        text=True,
        cwd=folder,
        check=True,
    )
    told = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    return json.loads(done.stdout), told


def prompt(session: str, text: str) -> list[Any]:
    part = {"type": "text", "id": "prt_1", "sessionID": session, "messageID": "msg_1", "text": text}
    return ["chat.message", {"sessionID": session}, {"message": {"id": "msg_1"}, "parts": [part]}]


def test_what_is_remembered_becomes_a_part_of_the_prompt(tmp_path: Path) -> None:
    [[_, _, output]], told = run(tmp_path, [prompt("s1", "Hi")], [])
    first, added = output["parts"]
    assert added == {**first, "id": "prt_1k", "text": "remembered of Hi", "synthetic": True}
    said = {"session_id": "s1", "cwd": "/home/ann/shop", "prompt": "Hi", "message_id": "msg_1"}
    assert told == [[["opencode", "chat.message"], said]]


def test_the_reply_is_told_without_what_was_added(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "Hello."}, {"type": "text", "text": "added", "synthetic": True}]
    messages = [{"info": {"id": "m2", "role": "assistant"}, "parts": parts}]
    idle = ["event", {"event": {"type": "session.idle", "properties": {"sessionID": "s1"}}}]
    _, [[words, said]] = run(tmp_path, [idle], messages)
    assert (words, said["text"], said["message_id"]) == (["opencode", "session.idle"], "Hello.", "m2")


def test_nothing_is_told_of_subagents(tmp_path: Path) -> None:
    info = {"id": "s2", "parentID": "s1"}
    created = ["event", {"event": {"type": "session.created", "properties": {"info": info}}}]
    idle = ["event", {"event": {"type": "session.idle", "properties": {"sessionID": "s2"}}}]
    played, told = run(tmp_path, [created, prompt("s2", "Look for bees."), idle], [])
    assert (len(played[1][2]["parts"]), told) == (1, [])
