"""`kalito-mcp serve` before it serves: addresses, ports, and what it says when it cannot. Real processes."""

import socket
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from tests.cli.conftest import Invoke
from tests.server import prepared
from tests.server.web import web
from tests.server.wire import COVERED, PATIENCE_S, call, clean_environment, request, served


def serve(*options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A server that does not come to serving: stdin is empty."""
    return prepared.run(
        [sys.executable, "-m", "kalito_mcp", "serve", *options],
        env=clean_environment(**environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


@pytest.mark.parametrize(
    ("transport", "host"),
    [("http", "0.0.0.0"), ("sse", "::"), ("http", "example.com"), ("http", ""), ("sse", "127.0.0.1.example.com")],  # noqa: S104
)
def test_without_login_every_address_but_loopback_is_refused_in_words(
    invoke: Invoke, tmp_path: Path, transport: str, host: str
) -> None:
    database = tmp_path / "memory.db"
    options = ["--transport", transport, "--without-login", "--host", host, "--port", "0", "--database", str(database)]
    outcome = invoke("serve", *options)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err == (
        f"kalito-mcp: --host {host} would let other machines read and write this memory without a token; leave out "
        "--without-login, or use one of 127.0.0.1, localhost, ::1\n"
    )
    assert not database.exists()


@pytest.mark.parametrize("host", ["localhost", "::1"])
def test_a_loopback_address_is_served_under_its_name(tmp_path: Path, host: str) -> None:
    if host == "::1" and not can_listen(host):
        pytest.skip("this machine has no IPv6")
    with web("http", tmp_path / "memory.db", "--host", host) as serving:
        assert serving.url.startswith("http://[::1]:" if host == "::1" else "http://localhost:")
        assert httpx2.get(serving.url).status_code == 400


def can_listen(host: str) -> bool:
    try:
        with socket.create_server((host, 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


def test_a_port_that_is_taken_is_said_so_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        outcome = serve("--transport", "sse", "--port", port, KALITO_DATABASE=str(tmp_path / "memory.db"), **COVERED)
    assert (outcome.returncode, outcome.stdout) == (1, "")
    assert outcome.stderr == (
        f"kalito-mcp: cannot listen on 127.0.0.1, port {port}: Address already in use; use another --port\n"
    )


@pytest.mark.parametrize(("transport", "kind"), [("stdio", "below a file"), ("http", "a folder")])
def test_a_database_that_cannot_be_opened_is_said_so_in_one_line(tmp_path: Path, transport: str, kind: str) -> None:
    path = tmp_path / "memory.db"
    if kind == "a folder":
        path.mkdir()
    else:
        path.touch()
    database = path / "memory.db" if kind == "below a file" else path
    outcome = serve("--transport", transport, "--port", "0", KALITO_DATABASE=str(database), **COVERED)
    assert (outcome.returncode, outcome.stdout) == (1, "")
    assert outcome.stderr.startswith("kalito-mcp: ")
    assert str(database) in outcome.stderr
    assert outcome.stderr.count("\n") == 1


def test_an_empty_stdin_ends_it_quietly_and_leaves_an_empty_database(tmp_path: Path) -> None:
    database = tmp_path / "new folder" / "memory.db"
    outcome = serve(KALITO_DATABASE=str(database))
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, "", "")
    assert database.stat().st_mode & 0o777 == 0o600
    assert database.parent.stat().st_mode & 0o777 == 0o700


def test_stdout_that_is_a_file_is_served_too(tmp_path: Path) -> None:
    with (tmp_path / "answers").open("wb") as answers:
        prepared.run(
            [sys.executable, "-m", "kalito_mcp", "serve"],
            env=clean_environment(KALITO_DATABASE=str(tmp_path / "memory.db")),
            input=request(1, "prompts/list"),
            stdout=answers,
            timeout=PATIENCE_S,
            check=True,
        )
    assert b'"resume_session"' in (tmp_path / "answers").read_bytes()


def test_the_log_contains_no_words_of_the_conversation(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    with served(database, KALITO_LOG="debug") as wire:
        wire.send(
            call(1, "record_messages", session_id="s", messages=[{"role": "user", "text": "canary-in-the-text"}]),
            call(2, "create_pin", session_id="s", content="canary-in-the-pin"),
            call(3, "search_memory", query="canary-in-the-query"),
            call(4, "summarize_session", session_id="s", summary="canary-in-the-summary"),
        )
        wire.close_stdin()
        assert len(wire.rest()) == 4
    assert "canary" not in database.with_suffix(".stderr").read_text()


def test_on_an_address_for_other_machines_it_says_that_nothing_is_encrypted(tmp_path: Path) -> None:
    logs = []
    for host in ("127.0.0.1", "127.0.0.2"):
        with web("http", tmp_path / "memory.db", "--host", host, login=True) as serving:
            httpx2.get(serving.url)  # answered once all is said
        logs.append(b"".join(serving.log))
    assert [b"not encrypted" in log for log in logs] == [False, True]
