"""What can be tested of Windows elsewhere: see tests/windows_like.py for what that is."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.campaign import first_of
from tests.server import prepared
from tests.server.wire import clean_environment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the locks that stand in for those of Windows")
ROOT: Final = Path(__file__).parents[2]
START: Final = [sys.executable, "-m", "tests.windows_like"]
ALL_SCRIPTS: Final = "Ann mag 花生, борщ und ✓"


def environment(database: Path, **variables: str) -> dict[str, str]:
    return clean_environment(KALITO_DATABASE=str(database), PYTHONPATH=str(ROOT), **variables)


def run(database: Path, *arguments: str, given: str = "", **variables: str) -> bytes:
    """What the command writes to stdout."""
    done = subprocess.run(
        [*START, *arguments],
        input=given.encode(),
        env=environment(database, **variables),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.mark.campaign
def test_every_module_is_imported_without_what_only_posix_has(database: Path) -> None:
    assert run(database, "--import").decode().split() == []


@pytest.mark.anyio
async def test_a_host_is_served_over_stdio_and_two_processes_share_the_database(database: Path) -> None:
    server = StdioServerParameters(command=START[0], args=[*START[1:], "serve"], env=environment(database))
    async with stdio_client(server) as streams, ClientSession(*streams) as host:
        await host.initialize()
        assert len((await host.list_tools()).tools) == 13
        message = {"role": "user", "text": "The parrot is called Rocinante."}
        recorded = await host.call_tool("record_messages", {"session_id": "pets", "messages": [message]})
        assert not recorded.is_error
        run(database, "remember", "The parrot eats figs.")
        found = await host.call_tool("search_memory", {"query": "parrot"})
    assert found.structured_content is not None
    assert len(found.structured_content["hits"]) == 2
    assert b"figs" in run(database, "search", "parrot")


@pytest.mark.anyio
async def test_the_hook_reaches_the_server_and_answers_in_utf_8(database: Path) -> None:
    run(database, "remember", f"{ALL_SCRIPTS}: the peanuts are in the pantry.")
    server = StdioServerParameters(
        command=START[0], args=[*START[1:], "serve"], env=environment(database, KALITO_HOOKS="codex")
    )
    prompt = {"session_id": "s", "cwd": str(database.parent), "prompt": "Where are the peanuts, in the pantry?"}
    async with stdio_client(server) as streams, ClientSession(*streams) as host:
        await host.initialize()
        await host.call_tool("search_memory", {"query": "peanuts"})
        answer = b""
        while not answer:  # until the server listens; the pytest timeout ends it
            answer = run(
                database, "--hook", "codex", "UserPromptSubmit", given=json.dumps(prompt), PYTHONIOENCODING="cp1252"
            )
            prompt["session_id"] += "s"
    assert ALL_SCRIPTS in json.loads(answer)["hookSpecificOutput"]["additionalContext"]


@pytest.mark.parametrize("encoding", first_of(["cp1252", "cp932", "cp437", "utf-8"]))
def test_what_a_pipe_cannot_take_is_shown_by_its_number(database: Path, encoding: str) -> None:
    command = [sys.executable, "-m", "kalito_mcp"]
    given = environment(database, PYTHONIOENCODING=encoding)
    prepared.run([*command, "remember", ALL_SCRIPTS], env=given, check=True)
    shown = subprocess.run([*command, "search", "Ann"], env=given, check=True, capture_output=True).stdout
    assert ALL_SCRIPTS.encode(encoding, "backslashreplace") in shown


@pytest.mark.campaign
def test_ctrl_c_ends_a_command_without_a_traceback(database: Path) -> None:
    with subprocess.Popen(
        [*START, "serve", "--transport", "http", "--port", "0", "--without-login"],
        env=environment(database),
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stderr is not None
        assert "serving at" in server.stderr.readline()
        server.send_signal(signal.SIGINT)
        assert "Traceback" not in server.stderr.read()
        assert server.wait(30) in (0, 130)


def test_files_of_the_user_are_where_windows_has_them(tmp_path: Path) -> None:
    code = (
        "from tests import windows_like; windows_like.become_like_windows(); from kalito_mcp.config import sources; "
        "print(sources.default_database(), sources.default_config())"
    )
    local = tmp_path / "Local"
    given = os.environ | {"LOCALAPPDATA": str(local), "PYTHONPATH": str(ROOT)}
    printed = subprocess.run([sys.executable, "-c", code], env=given, capture_output=True, text=True, check=True).stdout
    assert printed.split() == [str(local / "kalito" / "memory.db"), str(local / "kalito" / "config.toml")]
