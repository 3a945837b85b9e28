"""The answers before the server is loaded, over real pipes: none is lost, reordered, doubled or different."""

import json
import random
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from tests.server import prepared
from tests.server.wire import COVERED, PATIENCE_S, Wire, call, clean_environment, line, request, served

ERAS = ["legacy", "modern"]
NO_SDK = "import sys; sys.modules['mcp'] = sys.modules['pydantic'] = None"
"""Code after which neither can be imported."""
NO_CATALOGUE = "import kalito_mcp.server.first_answers as first; first.load = lambda **_: None"
"""Code after which the server itself gives the first answers."""
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "wire", "version": "1"}},
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")


def asked(era: str, number: int | str, method: str, **params: Any) -> bytes:
    """A request of that era."""
    if era == "modern":
        return request(number, method, **params)
    return line({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def opening(era: str) -> list[bytes]:
    """What a host sends before anything else. Its answer has the id 0."""
    return [line(INITIALIZE), line(INITIALIZED)] if era == "legacy" else [request(0, "server/discover")]


def stored(era: str, number: int, text: str) -> bytes:
    """A call that records a message."""
    arguments = {"session_id": "s", "messages": [{"role": "user", "text": text}]}
    return asked(era, number, "tools/call", name="record_messages", arguments=arguments)


def conversation(era: str) -> list[bytes]:
    """Lines of every kind. The answers to requests have the ids 0 to 19, and one is null."""
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}}
    return [
        *opening(era),
        b"\r\n",
        asked(era, 1, "tools/list"),
        asked(era, 2, "prompts/list"),
        line(cancelled),
        stored(era, 3, "one"),
        asked(era, 4, "resources/list"),
        asked(era, 5, "tools/list", cursor="x"),
        asked(era, 6, "tools/list").replace(b"\n", b"\r\n"),
        stored(era, 7, "two " * 30_000),
        asked(era, 8, "resources/templates/list"),
        b'{"jsonrpc":"2.0","id":9,"method":}\n',
        asked(era, 10, "tools/list"),
        b'[{"jsonrpc":"2.0","id":"in a batch","method":"tools/list"}]\n',
        line(INITIALIZE | {"id": 11}),
        asked("modern" if era == "legacy" else "legacy", 12, "tools/list"),
        asked(era, 13, "tools/burn"),
        asked(era, 14, "prompts/list"),
        *(stored(era, 15 + place, f"text {place}") for place in range(4)),
        asked(era, 19, "tools/list").rstrip(b"\n"),
    ]


def said(wire: Wire) -> list[Any]:
    """All answers up to the end, in the order of their ids; what a call says of its time and its ids is left out."""
    answers = wire.rest()
    for answer in answers:
        if "content" in answer.get("result", {}):
            answer["result"] = sorted(answer["result"])
    return sorted(answers, key=lambda answer: str(answer["id"]).rjust(9))


@pytest.mark.parametrize("era", ERAS)
def test_the_handshake_and_the_lists_are_answered_before_the_sdk_is_imported(tmp_path: Path, era: str) -> None:
    database = tmp_path / "memory.db"
    with served(database, code=NO_SDK, is_fresh=True) as wire:
        wire.send(*opening(era), *(asked(era, 1 + place, method) for place, method in enumerate(LISTS)))
        wire.close_stdin()
        answers = wire.rest()
        assert [answer["id"] for answer in answers] == [0, 1, 2, 3, 4]
        assert all("result" in answer for answer in answers)
        assert wire.exit_code() == 0
    assert not database.exists()


@pytest.mark.parametrize("era", ERAS)
def test_the_same_conversation_gets_the_same_answers_with_and_without_the_catalogue(tmp_path: Path, era: str) -> None:
    heard = []
    for name, code in (("with", ""), ("without", NO_CATALOGUE)):
        with served(tmp_path / f"{name}.db", code=code, **({} if code else COVERED)) as wire:
            wire.send(*conversation(era))
            wire.close_stdin()
            heard.append(said(wire))
            assert wire.exit_code() == 0
    assert heard[0] == heard[1]
    assert sorted(str(answer["id"]) for answer in heard[0]) == sorted(["in a batch", *map(str, range(20))])


@pytest.mark.parametrize(("era", "seed"), [(era, seed) for seed, era in enumerate(ERAS)])
def test_however_the_bytes_are_cut_each_request_is_answered_once(tmp_path: Path, era: str, seed: int) -> None:
    chance = random.Random(seed)
    whole = b"".join(conversation(era))
    cuts = sorted({*chance.sample(range(1, len(whole)), 40), *chance.sample(range(1, 2_000), 20)})
    with served(tmp_path / "memory.db") as wire:
        pieces = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
        for place, piece in enumerate(pieces):
            wire.send(piece)
            if place == 10 + 20 * seed:
                wire.answer(0)  # the rest is sent after the server has read this
        wire.close_stdin()
        wire.rest()
        numbers = [str(answer["id"]) for answer in wire.parsed()]
        assert sorted(numbers) == sorted(["in a batch", *map(str, range(20))])
        assert wire.exit_code() == 0


@pytest.mark.parametrize("era", ERAS)
def test_whenever_the_host_closes_stdin_what_it_asked_before_is_answered_once(tmp_path: Path, era: str) -> None:
    lines = conversation(era)
    for count in range(3 + 6 * ERAS.index(era), len(lines), 12):
        with served(tmp_path / f"{count}.db") as wire:
            wire.send(*lines[:count])
            wire.close_stdin()
            numbers = [str(answer["id"]) for answer in wire.rest()]
            assert sorted(numbers) == sorted(answered(lines[:count]))
            assert wire.exit_code() == 0


def answered(lines: list[bytes]) -> list[str]:
    """The ids that are to be answered."""
    found = []
    for one in lines:
        if b'"id":9,"method":}' in one:
            found.append("9")
        elif one.startswith(b"["):
            found.append("in a batch")
        elif one.strip() and "id" in json.loads(one):
            found.append(str(json.loads(one)["id"]))
    return found


@pytest.mark.parametrize("era", ERAS)
def test_the_server_goes_on_where_the_catalogue_ended(tmp_path: Path, era: str) -> None:
    with served(tmp_path / "memory.db", **COVERED) as wire:
        wire.send(*opening(era), asked(era, 1, "tools/list"))
        wire.answer(1)
        first = wire.lines[-1]
        wire.send(asked(era, 2, "tools/burn"))  # nobody but the server answers this
        assert wire.answer(2)["error"]["code"] == -32601
        wire.send(asked(era, 1, "tools/list"), stored(era, 3, "kept"))
        wire.answer(1)
        assert wire.lines[-1] == first
        assert wire.answer(3)["result"]["isError"] is False
        other = "modern" if era == "legacy" else "legacy"
        wire.send(line(INITIALIZE | {"id": 4}) if era == "modern" else asked(other, 4, "tools/list"))
        assert wire.answer(4)["error"]["code"] == (-32022 if era == "modern" else -32600)
        wire.close_stdin()
        assert wire.rest() == []
        assert wire.exit_code() == 0


def test_a_quiet_host_finds_the_server_loaded_behind_the_lists(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    with served(database, **COVERED) as wire:
        wire.send(*opening("modern"), request(1, "tools/list"))
        wire.answer(1)
        wire.send(b"")
        while not database.exists():
            assert wire.process.poll() is None
        wire.send(request(2, "tools/list"))
        wire.answer(2)
        wire.close_stdin()
        assert wire.rest() == []
        assert wire.exit_code() == 0


def test_a_host_that_listens_for_changes_gets_the_lists_all_the_same(tmp_path: Path) -> None:
    listen = {"notifications": {"toolsListChanged": True}}
    with served(tmp_path / "memory.db", code=NO_SDK, is_fresh=True) as wire:
        wire.send(request(0, "server/discover"), request("listen", "subscriptions/listen", **listen))
        wire.send(request(1, "server/discover"), request(2, "tools/list"))
        assert [wire.answer(number)["id"] for number in (0, 1, 2)] == [0, 1, 2]
    with served(tmp_path / "memory.db") as wire:
        wire.send(request(0, "server/discover"), request("listen", "subscriptions/listen", **listen))
        wire.send(request(2, "tools/list"), call(3, "list_tasks"))
        wire.answer(3)
        acknowledged = [one for one in wire.parsed() if one.get("method") == "notifications/subscriptions/acknowledged"]
        assert len(acknowledged) == 1


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_client_of_the_sdk_gets_every_list_before_the_sdk_is_imported_by_the_server(mode: Any) -> None:
    code = f"{NO_SDK}; sys.argv = ['kalito-mcp', 'serve']; from kalito_mcp.cli.main import main; main()"
    server = StdioServerParameters(command=sys.executable, args=["-c", code], env=clean_environment())
    async with Client(server, mode=mode) as client:
        assert len((await client.list_tools()).tools) == 13
        assert len((await client.list_prompts()).prompts) == 1
        assert (await client.list_resources()).resources
        assert (await client.list_resource_templates()).resource_templates


def test_a_host_that_writes_everything_before_it_reads_gets_every_answer_once(tmp_path: Path) -> None:
    with served(tmp_path / "memory.db") as wire:
        wire.send(request(0, "server/discover"), *(request(number, "tools/list") for number in range(1, 600)))
        wire.send(call(600, "list_tasks"))
        wire.close_stdin()
        assert sorted(answer["id"] for answer in wire.rest()) == list(range(601))
        assert wire.exit_code() == 0


def test_a_host_may_connect_sockets_instead_of_pipes(tmp_path: Path) -> None:
    era = "modern"
    asking, stdin = socket.socketpair()
    hearing, stdout = socket.socketpair()
    environment = clean_environment(KALITO_DATABASE=str(tmp_path / "memory.db"))
    command = [sys.executable, "-m", "kalito_mcp", "serve"]
    with asking, hearing:
        with stdin, stdout:
            process = prepared.start(command, stdin=stdin, stdout=stdout, stderr=subprocess.DEVNULL, env=environment)
        hearing.settimeout(PATIENCE_S)
        with process:
            asking.sendall(b"".join((*opening(era), asked(era, 1, "tools/list"), stored(era, 2, "kept"))))
            asking.close()
            heard = b"".join(iter(lambda: hearing.recv(65_536), b""))
        assert [json.loads(one)["id"] for one in heard.splitlines()] == [0, 1, 2]
        assert process.returncode == 0


def test_a_host_that_closes_stdout_at_once_ends_the_process_quietly(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    with served(database, **COVERED) as wire:
        assert wire.process.stdout is not None
        wire.process.stdout.close()
        wire.send(*opening("legacy"))
        assert wire.exit_code() == 0
    assert database.with_suffix(".stderr").read_text() == ""


def test_ctrl_c_ends_the_process_quietly_before_the_server_is_loaded(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    code = f"{NO_SDK}; import kalito_mcp.server.first_answers as f; f._QUIET_MS = 99_000"
    with served(database, code=code, is_fresh=True) as wire:
        wire.send(request(1, "server/discover"))
        wire.answer(1)
        wire.process.send_signal(signal.SIGINT)
        assert wire.exit_code() == 130
    assert database.with_suffix(".stderr").read_text() == ""


def begun(*options: str, sent: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:
    """A server that was asked a question, and its end."""
    return prepared.run(
        [sys.executable, "-m", "kalito_mcp", "serve", *options],
        input=request(1, "server/discover") + sent,
        env=clean_environment(**environment),
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )


@pytest.mark.parametrize("options", [["--transport", "https"], ["stray"], ["--help"]])
def test_a_command_line_that_is_wrong_is_refused_before_anything_is_answered(options: list[str]) -> None:
    outcome = begun(*options)
    assert b"jsonrpc" not in outcome.stdout
    assert outcome.returncode == (0 if options == ["--help"] else 2)


def test_the_options_of_the_host_reach_the_server(tmp_path: Path) -> None:
    database = tmp_path / "named.db"
    outcome = begun("--transport", "stdio", "--database", str(database), sent=stored("modern", 2, "kept"))
    assert [json.loads(one)["id"] for one in outcome.stdout.splitlines()] == [1, 2]
    assert database.exists()
    assert outcome.returncode == 0


def test_what_a_level_of_logging_must_be_is_said_before_anything_is_answered() -> None:
    outcome = begun(KALITO_LOG="LOUD")
    assert (outcome.returncode, outcome.stdout) == (1, b"")
    assert b"KALITO_LOG='LOUD' is not a level" in outcome.stderr
