"""`kalito-hook` adds where it runs, for hosts that do not say where they work."""

import json
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from kalito_mcp.cli.hook import run
from kalito_mcp.runtime.database_address import LocalFiles
from kalito_mcp.switch import Switch, write_switch


def spooled(database: Path) -> list[dict[str, object]]:
    """The payloads that wait for a server."""
    files = LocalFiles(database).spool.glob("*.json")
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
    write_switch(LocalFiles(database).switch, Switch(None, (str(tmp_path),)))
    given = b'{"trajectory_id": "s1", "tool_info": {"user_prompt": "Hi"}}'
    run(["windsurf", "pre_user_prompt"], given, {"KALITO_DATABASE": str(database)}, started=time.monotonic())
    assert spooled(database) == []


@pytest.mark.parametrize("begin", ["", "file://", "file://localhost"])
def test_cursor_is_not_heard_in_an_excluded_folder_however_it_is_spelled(tmp_path: Path, begin: str) -> None:
    database = tmp_path / "memory.db"
    write_switch(LocalFiles(database).switch, Switch(None, (str(tmp_path),)))
    given = json.dumps(
        {"conversation_id": "c1", "workspace_roots": [f"{begin}{tmp_path}/shop"], "prompt": "Hi"}
    ).encode()
    run(["cursor", "beforeSubmitPrompt"], given, {"KALITO_DATABASE": str(database)}, started=time.monotonic())
    assert spooled(database) == []


@pytest.mark.parametrize("is_closed", [True, False])
def test_a_program_on_the_port_of_a_dead_server_is_told_nothing(tmp_path: Path, is_closed: bool) -> None:
    database = tmp_path / "memory.db"
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        port = stranger.getsockname()[1]
        place = LocalFiles(database).hooks / "server-1.json"
        place.parent.mkdir()
        place.write_text(json.dumps({"port": port, "greeting": "g", "token": "t"}))

        def listen() -> None:
            with stranger.accept()[0] as connection:
                connection.sendall(b"who is there?\n")
                heard.append(connection.recv(100))

        thread = threading.Thread(target=listen)
        if is_closed:
            stranger.close()
        else:
            thread.start()
        given = b'{"session_id": "s1", "prompt": "Hi"}'
        run(["codex", "UserPromptSubmit"], given, {"KALITO_DATABASE": str(database)}, started=time.monotonic())
        if not is_closed:
            thread.join()
    assert heard in ([], [b""])
    assert not place.exists()
    assert [one["prompt"] for one in spooled(database)] == ["Hi"]


@pytest.mark.parametrize(("wait_s", "is_answered"), [(30.0, True), (0.0, False), (None, False)])
def test_a_hook_waits_as_long_as_the_server_says(tmp_path: Path, wait_s: float | None, *, is_answered: bool) -> None:
    database = tmp_path / "memory.db"
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = LocalFiles(database).hooks / "server-1.json"
        place.parent.mkdir()
        told = {"port": server.getsockname()[1], "greeting": "g", "token": "t"}
        place.write_text(json.dumps(told if wait_s is None else told | {"wait_s": wait_s}))

        def answer() -> None:
            with suppress(OSError), server.accept()[0] as connection:  # a hook that waits no longer hangs up
                connection.sendall(b"g\n")
                connection.recv(10_000)
                connection.sendall(b'{"answer": "said"}\n')

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        given = b'{"session_id": "s1", "prompt": "Hi"}'
        # Its own time was over before it began.
        began_s = time.monotonic() - 10
        said = run(["codex", "UserPromptSubmit"], given, {"KALITO_DATABASE": str(database)}, started=began_s)
    assert said == ("said" if is_answered else "")
    assert [one["prompt"] for one in spooled(database)] == ([] if is_answered else ["Hi"])
