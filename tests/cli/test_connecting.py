"""`kalito-mcp connect`, `disconnect` and `home`, on a home folder with Claude Code."""

import json
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest

from kalito_mcp.bridge.answers import Answers
from kalito_mcp.bridge.connection import read_connection, read_token
from kalito_mcp.bridge.outbox import Outbox
from kalito_mcp.runtime.database_address import LocalFiles
from tests.bridge.machines import TOKEN, Gate, closed_port, gate, home_behind, named
from tests.cli.conftest import Invoke, Outcome, Terminal

UNSET = dict.fromkeys(["CODEX_HOME", "COPILOT_HOME", "GEMINI_CLI_HOME", "CLINE_DIR", "XDG_CONFIG_HOME"], "")
SERVERS = '{\n  "theme": "dark"\n}\n'


class Machine:
    """A home folder with Claude Code, and an installation of kalito whose programs start."""

    def __init__(self, folder: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = folder / "ann"
        self.servers = self.path / ".claude.json"
        self.database = self.path / "data" / "kalito" / "memory.db"
        self._invoke, self._patch = invoke, monkeypatch
        (self.path / ".claude").mkdir(parents=True)
        self.servers.write_text(SERVERS)
        programs = folder / "programs"
        programs.mkdir()
        for name in ("kalito-mcp", "kalito-hook"):
            (programs / name).write_text("#!/bin/sh\necho 1\n")
            (programs / name).chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(programs / "python"))

    def run(self, *arguments: str, typed: str = "", **environment: str) -> Outcome:
        self._patch.setattr("sys.stdin", StringIO(typed))
        places = {"HOME": str(self.path), "XDG_DATA_HOME": str(self.path / "data"), "PATH": "/usr/bin:/bin"}
        return self._invoke(*arguments, **{**UNSET, **places, **environment})

    def files(self) -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in self.path.rglob("*") if path.is_file()}


@pytest.fixture
def between(tmp_path: Path) -> Iterator[Gate]:
    """The gate of a home that is there."""
    with gate() as opened, home_behind(opened, tmp_path / "home"):
        yield opened


@pytest.fixture
def machine(tmp_path: Path, between: Gate, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> Machine:
    del between  # started first: with the Python of this test, not with that of the machine
    return Machine(tmp_path, invoke, monkeypatch)


def origin_of(between: Gate) -> str:
    return between.url.removesuffix("/mcp")


def test_connecting_asks_the_home_and_then_writes_the_entries_and_the_token(machine: Machine, between: Gate) -> None:
    outcome = machine.run("connect", between.url, "--yes", typed=f"{TOKEN}\n")
    assert outcome.code == 0, outcome.err
    lines = outcome.out.splitlines()
    assert lines[0] == f"{between.url} answers"
    assert f"this machine is connected to {between.url}; restart the assistants" in lines
    entry = json.loads(machine.servers.read_text())["mcpServers"]["kalito"]
    assert entry["args"] == ["serve"]
    assert read_token(LocalFiles(machine.database).home, {}, origin_of(between)) == TOKEN
    token_file = str(LocalFiles(machine.database).home / "token")
    assert [name for name, data in machine.files().items() if TOKEN.encode() in data] == [token_file]
    assert TOKEN not in outcome.out + outcome.err
    status = machine.run("status")
    assert status.out.splitlines()[0] == f"the memory of this machine is at {between.url}; it answers"


def test_the_token_may_come_from_the_environment(machine: Machine, between: Gate) -> None:
    assert machine.run("connect", between.url, "--yes", KALITO_HOME_TOKEN=TOKEN).code == 0
    Answers(LocalFiles(machine.database).answers).keep({}, {}, last_erasure="")
    assert machine.run("connect", between.url, "--yes").code == 0, "the token of before is kept"
    assert read_token(LocalFiles(machine.database).home, {}, origin_of(between)) == TOKEN
    assert Answers(LocalFiles(machine.database).answers).count() == 1


def test_answers_to_one_token_are_deleted_when_another_one_comes(machine: Machine, between: Gate) -> None:
    machine.run("connect", between.url, "--yes", KALITO_HOME_TOKEN=TOKEN)
    answers = Answers(LocalFiles(machine.database).answers)
    answers.keep({}, {}, last_erasure="")
    between.token = TOKEN[::-1]
    assert machine.run("connect", between.url, "--yes", KALITO_HOME_TOKEN=TOKEN[::-1]).code == 0
    assert answers.count() == 0


def test_nothing_is_written_without_a_yes(machine: Machine, between: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    before = machine.files()
    refused = machine.run("connect", between.url, KALITO_HOME_TOKEN=TOKEN)
    assert "there is no terminal to ask on; add --yes" in refused.err
    dry = machine.run("connect", between.url, "--dry-run", KALITO_HOME_TOKEN=TOKEN)
    assert dry.out.splitlines()[-1] == "nothing was written (--dry-run)"
    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    assert machine.files() == before


def test_what_is_wrong_with_the_home_is_said_in_words(machine: Machine, between: Gate) -> None:
    before = machine.files()

    def fault(url: str = between.url, token: str = TOKEN) -> str:
        outcome = machine.run("connect", url, "--yes", KALITO_HOME_TOKEN=token)
        assert outcome.code == 1
        assert token not in outcome.out + outcome.err
        return outcome.err

    assert "no connection; is `kalito-mcp serve" in fault(f"http://127.0.0.1:{closed_port()}")
    assert "it rejected the token (401)" in fault(token=TOKEN[::-1])
    assert "use https" in fault("http://kalito.example.org")
    other = json.dumps({"jsonrpc": "2.0", "id": 1, "result": named({}, "other")}).encode()
    for status, headers, body, said in (
        (404, {}, b"<html>not here", "what answers there is not a kalito server (404)"),
        (200, {"Content-Type": "text/html"}, b"<html>hello", "what answers there is not a kalito server"),
        (200, {}, other, "what answers there is not a kalito server"),
        (302, {"Location": "https://example.org"}, b"", "it redirects (302), which is not followed"),
        (403, {}, b"", "it does not let this machine in (403)"),
        (421, {}, b"", "add the name to the setting http.hosts there"),
        (503, {}, b"", "it answers 503"),
    ):
        between.answers["*"] = (status, headers, body)
        assert said in fault()
    unknown = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "unknown tool 'hook_event'"}}
    between.answers = {"tools/call": (400, {}, json.dumps(unknown).encode())}
    assert "the kalito there is too old to be a home" in fault()
    assert machine.files() == before


def test_uninstalling_takes_the_entries_the_token_and_the_answers_out_again(machine: Machine, between: Gate) -> None:
    before = machine.files()
    machine.run("connect", between.url, "--yes", KALITO_HOME_TOKEN=TOKEN)
    outcome = machine.run("uninstall", "--yes")
    assert outcome.code == 0
    assert f"  {LocalFiles(machine.database).home} (deleted): where the home is, the token" in outcome.out
    assert machine.files() == before
    assert read_connection(LocalFiles(machine.database).home) is None


def test_uninstalling_one_of_two_assistants_leaves_the_connection(machine: Machine, between: Gate) -> None:
    (machine.path / ".cursor").mkdir()
    machine.run("connect", between.url, "--yes", KALITO_HOME_TOKEN=TOKEN)
    machine.run("uninstall", "cursor", "--yes")
    assert read_connection(LocalFiles(machine.database).home) is not None


def test_disconnecting_keeps_the_entries_and_what_waits(machine: Machine, between: Gate) -> None:
    machine.run("connect", between.url, "--yes", KALITO_HOME_TOKEN=TOKEN)
    outbox = Outbox(LocalFiles(machine.database).home)
    outbox.put({"params": {"name": "remember", "arguments": {"text": "words"}}})
    outcome = machine.run("disconnect", "--yes")
    assert "1 call waits for the home and stays in" in outcome.out
    assert read_connection(LocalFiles(machine.database).home) is None
    assert "kalito" in json.loads(machine.servers.read_text())["mcpServers"]
    assert outbox.count() == 1
    status = machine.run("status")
    assert status.code == 1
    assert "`kalito-mcp connect URL` delivers what waits" in status.out
    assert machine.run("disconnect", "--yes").code == 0


def test_home_shows_what_waits_and_what_was_refused_but_no_words(machine: Machine, between: Gate) -> None:
    assert "is on this machine" in machine.run("home").out
    machine.run("connect", between.url, "--yes", KALITO_HOME_TOKEN=TOKEN)
    outbox = Outbox(LocalFiles(machine.database).home)
    arguments = {"session_id": "s", "text": "private words"}
    outbox.put({"params": {"name": "remember", "arguments": arguments}})
    outbox.put_aside(next(outbox.waiting()), "conflict: no")
    report = {"host": "codex", "event": "Stop"}
    outbox.put({"params": {"name": "hook_event", "arguments": {}}, "meta": {"kalito/report": report}})
    shown = machine.run("home")
    assert shown.code == 1
    assert "the home refused 1 call that waited for it" in shown.out
    assert f"  refused: {outbox.refused()[0].id}  remember, session s: conflict: no" in shown.out.splitlines()
    assert "Stop of codex" in shown.out
    assert "private words" not in shown.out
    assert "no refused call 'x'" in machine.run("home", "--discard", "x").err
    assert "waits again" in machine.run("home", "--retry", "all").out
    assert outbox.count() == 2
    assert "0 answers deleted" in machine.run("home", "--erase-answers").out


def test_a_command_here_says_that_the_memory_is_elsewhere(machine: Machine, between: Gate) -> None:
    machine.run("connect", between.url, "--yes", KALITO_HOME_TOKEN=TOKEN)
    refused = machine.run("search", "puppy")
    assert "the memory of this machine is at http://127.0.0.1" in refused.err
    assert "run this command there" in refused.err
    doctor = machine.run("doctor")
    assert f"home: the memory of this machine is at {between.url}; it answers" in doctor.out
    assert doctor.code == 0, doctor.out
