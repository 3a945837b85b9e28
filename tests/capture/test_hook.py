"""`kalito-hook` adds where it runs, for hosts that do not say where they work."""

import json
import time
from pathlib import Path

import pytest

from kalito_mcp.cli.hook import run
from kalito_mcp.switch import Switch, hooks_folder, write_switch


def spooled(database: Path) -> list[dict[str, object]]:
    """The payloads that wait for a server."""
    files = (hooks_folder(database) / "spool").glob("*.json")
    return [json.loads(file.read_text(encoding="utf-8"))["payload"] for file in files]


@pytest.mark.parametrize("host", ["windsurf", "copilot"])
def test_only_windsurf_works_where_its_hook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    monkeypatch.chdir(tmp_path)
    environment = {"KALITO_DATABASE": str(tmp_path / "memory.db")}
    run([host, "pre_user_prompt"], b'{"trajectory_id": "s1"}', environment, started=time.monotonic())
    [payload] = spooled(tmp_path / "memory.db")
    assert payload.get("cwd") == (str(tmp_path) if host == "windsurf" else None)


def test_windsurf_is_not_heard_in_an_excluded_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    database = tmp_path / "memory.db"
    write_switch(database, Switch(None, (str(tmp_path),)))
    given = b'{"trajectory_id": "s1", "tool_info": {"user_prompt": "Hi"}}'
    run(["windsurf", "pre_user_prompt"], given, {"KALITO_DATABASE": str(database)}, started=time.monotonic())
    assert spooled(database) == []
