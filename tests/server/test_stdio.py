"""The stdio transport: input that no well-behaved client sends, and how the process ends."""

import json
import os
import select
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from kalito_mcp.server.first_answers import Begun
from kalito_mcp.server.stdio import _opened_pipes
from tests.campaign import first_of
from tests.server.wire import COVERED, PATIENCE_S, Wire, call, clean_environment, line, request, served
from tests.wordings import approve

INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "wire", "version": "1"},
}
NINES = b"9" * 5000
DEEP = b"[" * 100_000 + b"]" * 100_000

# A line, the id of its answer, and its code.
WRONG_LINES = {
    "cut short": (b'{"jsonrpc":"2.0","id":7,"method":"tools/li', 7, -32700),
    "malformed": (b'{"jsonrpc":"2.0","id":7,"method":}', 7, -32700),
    "malformed, id last": (b'{"method":tools,"jsonrpc":"2.0","id":"a-1"}', "a-1", -32700),
    "malformed, no id": (b'{"method":', None, -32700),
    "two on a line": (b'{"jsonrpc":"2.0","id":7,"method":"a"}{"jsonrpc":"2.0","id":8}', 7, -32700),
    "an id with zeros in front": (b'{"jsonrpc":"2.0","id":007,"method":"x"}', None, -32700),
    "no JSON": (b"hello", None, -32700),
    "NUL": (b'{"jsonrpc":"2.0","id":7,"method":"x"\0}', 7, -32700),
    "not UTF-8": (b'{"jsonrpc":"2.0","id":7,"method":"caf\xe9"}', 7, -32700),
    "UTF-16": ('{"jsonrpc":"2.0","id":7,"method":"x"}'.encode("utf-16-be"), None, -32700),
    "deep": (b'{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":' + DEEP + b"}}", 7, -32700),
    "deep and open": (b"[" * 100_000, None, -32700),
    "nested": (
        b'{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":' + b"[" * 300 + b"]" * 300 + b"}}",
        7,
        -32600,
    ),
    "a batch of something else": (b"[5]", None, -32600),
    "an empty batch": (b"[]", None, -32600),
    "a number": (b"5", None, -32600),
    "id null": (b'{"jsonrpc":"2.0","id":null,"method":"tools/list"}', None, -32600),
    "id a float": (b'{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}', 1.5, -32600),
    "id true": (b'{"jsonrpc":"2.0","id":true,"method":"tools/list"}', None, -32600),
    "id an object": (
        b'{"jsonrpc":"2.0","id":{},"method":"tools/list"}',
        None,
        -32600,
    ),
    "id infinite": (b'{"jsonrpc":"2.0","id":1e999,"method":"tools/list"}', None, -32600),
    "id of 5,000 digits": (b'{"jsonrpc":"2.0","id":' + NINES + b',"method":"tools/list"}', None, -32600),
    "5,000 digits": (
        b'{"jsonrpc":"2.0","id":7,"method":"x","params":{"k":' + NINES + b"}}",
        7,
        -32600,
    ),
    "no version": (b'{"id":7,"method":"tools/list"}', 7, -32600),
    "version 1": (b'{"jsonrpc":"1.0","id":7,"method":"tools/list"}', 7, -32600),
    "no method": (b'{"jsonrpc":"2.0","id":7}', 7, -32600),
    "method a number": (b'{"jsonrpc":"2.0","id":7,"method":5}', 7, -32600),
    "params a list": (b'{"jsonrpc":"2.0","id":7,"method":"x","params":[]}', 7, -32600),
    "half a character as id": (b'{"jsonrpc":"2.0","id":"\\ud800","method":"x"}', "\ud800", -32600),
}
# Lines that are messages all the same, or none at all: their answer's id, or nothing.
STRANGE_LINES = {
    "CRLF": (request(7, "tools/list").rstrip() + b"\r", 7),
    "a BOM": (b"\xef\xbb\xbf" + request(7, "tools/list").rstrip(), 7),
    "the same key twice": (request(6, "tools/list").rstrip().replace(b'"id": 6', b'"id": 6, "id": 7'), 7),
    "an id of 30 digits": (request(int("9" * 30), "tools/list").rstrip(), int("9" * 30)),
    "an empty id": (request("", "tools/list").rstrip(), ""),
    "NaN": (call(7, "create_pin", session_id="s", content="x", importance_score=float("nan")).rstrip(), 7),
    "an unknown method": (request(7, "tools/burn").rstrip(), 7),
    "no parameters": (b'{"jsonrpc":"2.0","id":7,"method":"tools/call"}', 7),
    "half a character": (b'{"jsonrpc":"2.0","id":7,"method":"x","params":{"text":"a\\ud800b"}}', 7),
    "half a character in bytes": (b'{"jsonrpc":"2.0","id":7,"method":"x","params":{"text":"a\xed\xa0\x80b"}}', 7),
    "half a character as key": (b'{"jsonrpc":"2.0","id":7,"method":"x","params":{"\\udfff":1}}', 7),
    "an empty line": (b"", None),
    "white space": (b" \t\r", None),
    "an answer that nobody waits for": (b'{"jsonrpc":"2.0","id":99,"result":{}}', None),
    "an unknown notification": (b'{"jsonrpc":"2.0","method":"notifications/nothing"}', None),
    "a cancellation of nothing": (
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}',
        None,
    ),
    "a wrong cancellation": (b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}', None),
}


class Connected:
    """A wire whose server answers `probe`, so that all that came before is known to have been read."""

    def __init__(self, wire: Wire, era: str) -> None:
        self.wire = wire
        self._era = era
        self._probes = 0
        if era == "legacy":
            wire.send(line({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE}))
            assert wire.answer(0)["result"]["protocolVersion"] == "2025-11-25"
            wire.send(line({"jsonrpc": "2.0", "method": "notifications/initialized"}))

    def answers_to(self, sent: bytes) -> list[dict[str, Any]]:
        """What came back between this line and the probe behind it."""
        self._probes += 1
        number = f"probe {self._probes}"
        before = len(self.wire.lines)
        ping = line({"jsonrpc": "2.0", "id": number, "method": "ping"})
        self.wire.send(sent + b"\n", ping if self._era == "legacy" else request(number, "prompts/list"))
        assert "result" in self.wire.answer(number)
        return self.wire.parsed()[before:-1]


@pytest.fixture(scope="module", params=["legacy", "2026-07-28"])
def connected(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connected]:
    with served(tmp_path_factory.mktemp("wire") / "memory.db") as wire:
        yield Connected(wire, request.param)


def test_a_line_that_is_no_message_is_answered_with_its_id(connected: Connected) -> None:
    said = {}
    for name, (sent, number, code) in WRONG_LINES.items():
        [answer] = connected.answers_to(sent)
        assert (answer["id"], answer["error"]["code"]) == (number, code), name
        said[name] = answer["error"]["message"]
    approve("lines over stdio", said)


def test_a_strange_line_is_answered_once_or_needs_no_answer(connected: Connected) -> None:
    for name, (sent, number) in STRANGE_LINES.items():
        if number is not None:
            connected.wire.send(sent + b"\n")
            assert connected.wire.answer(number)["id"] == number, name
        assert connected.answers_to(sent if number is None else b"") == [], name


def test_each_message_of_a_batch_is_answered_on_its_own_line(tmp_path: Path) -> None:
    both = [json.loads(request(number, "prompts/list")) for number in (1, 2)]
    notified = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    with served(tmp_path / "memory.db") as wire:
        wire.send(
            line([both[0], notified, {"jsonrpc": "2.0", "id": 1.5, "method": "ping"}, both[1]]),
            request(3, "prompts/list"),
        )
        wire.close_stdin()
        found = wire.rest()
    assert {answer["id"]: "result" in answer for answer in found} == {1: True, 2: True, 3: True, 1.5: False}
    assert len(found) == 4


def test_messages_are_found_however_they_are_cut(tmp_path: Path) -> None:
    messages = [request(number, "prompts/list") for number in range(1, 6)]
    with served(tmp_path / "memory.db", **COVERED) as wire:
        wire.send(messages[0], messages[1])
        assert {wire.answer(1)["id"], wire.answer(2)["id"]} == {1, 2}
        for byte in messages[2] + messages[3]:
            wire.send(bytes([byte]))
        wire.answer(3)
        wire.answer(4)
        wire.send(messages[4].rstrip(b"\n"))
        wire.close_stdin()
        assert [answer["id"] for answer in wire.rest()] == [5]
        assert wire.exit_code() == 0


@pytest.mark.campaign
def test_a_line_of_five_megabytes_is_a_message_like_any(tmp_path: Path) -> None:
    with served(tmp_path / "memory.db") as wire:
        messages = [{"role": "user", "text": "é" * 125_000}] * 20
        sent = call(1, "record_messages", session_id="s", messages=messages)
        assert len(sent) > 5_000_000
        wire.send(sent)
        assert wire.answer(1)["result"]["structuredContent"]["recorded"] == 20


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_line_of_seventy_megabytes_is_refused_and_not_kept(tmp_path: Path) -> None:
    with served(tmp_path / "memory.db") as wire:
        wire.send(call(1, "build_context", session_id="nobody"))
        wire.answer(1)
        before = memory_of(wire)
        wire.send(b'{"jsonrpc":"2.0","id":2,"method":"')
        for _ in range(70):
            wire.send(b"x" * 1_048_576)
        wire.send(b'"}\n', request(3, "prompts/list"))
        wire.answer(3)
        [refused] = [one for one in wire.parsed() if "error" in one]
        assert refused["id"] is None
        assert "longer than 67,108,864 bytes" in refused["error"]["message"]
        assert memory_of(wire) < before + 32 * 1_048_576


def memory_of(wire: Wire) -> int:
    """Bytes that the process has in memory now."""
    pages = int(Path(f"/proc/{wire.process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_nothing_but_messages_reaches_the_host(tmp_path: Path) -> None:
    noise = """
import atexit, os, subprocess, sys, threading
import kalito_mcp.server.tools.search as search
found = search.plural
def noisy(*arguments):
    print("from print")
    os.write(1, b"from a descriptor\\n")
    sys.__stdout__.write("from stdout\\n"); sys.__stdout__.flush()
    subprocess.run([sys.executable, "-c", "print('from a child')"])
    return found(*arguments)
search.plural = noisy
atexit.register(print, "from the end")
"""
    database = tmp_path / "memory.db"
    with served(database, code=noise) as wire:
        wire.send(call(1, "search_memory", query="x"))
        assert wire.answer(1)["result"]["structuredContent"]["hits"] == []
        wire.close_stdin()
        wire.rest()
        assert wire.exit_code() == 0
        assert all(one["jsonrpc"] == "2.0" for one in wire.parsed())
    errors = database.with_suffix(".stderr").read_text()
    for words in ("from print", "from a descriptor", "from stdout", "from a child", "from the end"):
        assert words in errors


def test_a_child_of_the_process_does_not_read_what_the_host_sends(tmp_path: Path) -> None:
    reader = """
import subprocess, sys
import kalito_mcp.server.tools.search as search
found = search.plural
def reading(*arguments):
    subprocess.run([sys.executable, "-c", "import sys; sys.stdin.read()"], timeout=20)
    return found(*arguments)
search.plural = reading
"""
    with served(tmp_path / "memory.db", code=reader) as wire:
        wire.send(call(1, "search_memory", query="x"), call(2, "build_context", session_id="nobody"))
        wire.close_stdin()
        assert {one["id"] for one in wire.rest()} == {1, 2}


def test_what_was_asked_before_the_host_closed_stdin_is_still_done(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    with served(database, **COVERED) as wire:
        wire.send(
            *(
                call(n, "record_messages", session_id="s", messages=[{"role": "user", "text": f"line {n}"}])
                for n in range(1, 51)
            )
        )
        wire.close_stdin()
        answers = wire.rest()
        assert sorted(one["id"] for one in answers) == list(range(1, 51))
        assert all(not one["result"]["isError"] for one in answers)
        assert wire.exit_code() == 0
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT count(*) FROM records WHERE type = 'message'").fetchone() == (50,)


def test_answers_that_fill_the_pipe_come_out_whole_when_the_host_reads_late(tmp_path: Path) -> None:
    messages = [
        {"role": "user", "text": f"word {other} " * 10_000} for other in ("one", "two", "three", "four", "five")
    ]
    with served(tmp_path / "memory.db") as wire:
        wire.send(call(1, "record_messages", session_id="s", messages=messages))
        wire.answer(1)
        wire.send(call(2, "search_memory", query="word"))
        wire.close_stdin()
        [answer] = wire.rest()
        assert len(answer["result"]["structuredContent"]["hits"]) == 5
        assert wire.exit_code() == 0


def test_what_was_begun_before_the_server_is_sent_whole_though_nothing_follows() -> None:
    wire_in, host_in = os.pipe()
    host_out, wire_out = os.pipe()
    os.close(host_in)
    os.set_blocking(wire_out, False)
    begun = Begun(wire_in, wire_out)
    begun.unsent = b"x" * 8_000_000 + b"\n"
    heard: list[bytes] = []

    def read() -> None:
        with open(host_out, "rb") as pipe:  # noqa: PTH123 - a descriptor
            heard.append(pipe.read())

    reading = threading.Thread(target=read)

    async def open_and_close() -> None:
        async with _opened_pipes(begun):
            reading.start()

    anyio.run(open_and_close)
    reading.join()
    assert heard == [begun.unsent]


def test_a_call_that_runs_on_does_not_keep_the_process_when_stdin_is_closed(tmp_path: Path) -> None:
    endless = """
import anyio
from kalito_mcp.memory import Memory
async def endless(self, *arguments, **more):
    await anyio.sleep(3600)
Memory.search_memory = endless
"""
    with served(tmp_path / "memory.db", code=endless, **COVERED) as wire:
        wire.send(call(1, "search_memory", query="x"), call(2, "build_context", session_id="nobody"))
        wire.answer(2)
        wire.close_stdin()
        assert [one["id"] for one in wire.rest()] == [1]
        assert wire.exit_code() == 0


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
def test_calls_wait_for_each_other_but_cancellations_and_pings_do_not(tmp_path: Path, era: str) -> None:
    endless = """
import anyio, sys
from kalito_mcp.memory import Memory
running = set()
async def endless(self, *arguments, **more):
    running.add(me := object())
    print(len(running), file=sys.stderr, flush=True)
    try:
        await anyio.sleep(3600)
    finally:
        running.remove(me)
Memory.search_memory = endless
"""
    database = tmp_path / "memory.db"
    with served(database, code=endless, **COVERED) as wire:
        connected = Connected(wire, era)
        search = {"name": "search_memory", "arguments": {"query": "x"}}
        for number in range(1, 71):
            asked = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": search}
            wire.send(line(asked) if era == "legacy" else call(number, "search_memory", query="x"))
        for cancelled in (70, 1, "2"):  # one that waits, and two that run
            asked = {"method": "notifications/cancelled", "params": {"requestId": cancelled}}
            wire.send(line({"jsonrpc": "2.0", **asked}))
        wire.send(line({"jsonrpc": "2.0", "id": "ping", "method": "ping"}))
        assert wire.answer("ping")["id"] == "ping"  # an error in the later era, which has no ping
        connected.wire.close_stdin()
        assert sorted(one["id"] for one in wire.rest()) == list(range(3, 70))
        assert wire.exit_code() == 0
    assert max(map(int, database.with_suffix(".stderr").read_text().split())) == 64


@pytest.mark.campaign
@pytest.mark.parametrize("era", first_of(["2026-07-28", "legacy"]))
def test_a_host_that_reads_only_after_five_hundred_calls_gets_every_answer_once(tmp_path: Path, era: str) -> None:
    with served(tmp_path / "memory.db", **COVERED) as wire:
        Connected(wire, era)
        messages = [{"role": "user", "text": "word " * 4_000}]
        for number in range(500):
            read = ("build_context", {"session_id": "s", "max_tokens": 8_000})
            name, arguments = read if number else ("record_messages", {"session_id": "s", "messages": messages})
            params = {"name": name, "arguments": arguments}
            asked = {"jsonrpc": "2.0", "id": number + 1, "method": "tools/call", "params": params}
            wire.send(line(asked) if era == "legacy" else call(number + 1, name, **arguments))
        wire.answer(500)
        wire.close_stdin()
        wire.rest()
        answered = [one["id"] for one in wire.parsed() if one.get("id") != 0 and "id" in one]
        assert sorted(answered) == list(range(1, 501))


def test_a_thread_that_does_not_end_does_not_keep_the_process(tmp_path: Path) -> None:
    stuck = "import threading, time\nthreading.Thread(target=time.sleep, args=(3600,)).start()"
    with served(tmp_path / "memory.db", code=stuck, **COVERED) as wire:
        wire.send(call(1, "build_context", session_id="nobody"))
        wire.answer(1)
        wire.close_stdin()
        assert wire.exit_code() == 1


def test_the_process_ends_when_the_host_closes_stdout(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    with served(database, **COVERED) as wire:
        wire.send(request(1, "prompts/list"))
        wire.answer(1)
        assert wire.process.stdout is not None
        wire.process.stdout.close()
        wire.send(request(2, "prompts/list"))
        assert wire.exit_code() == 0
    assert database.with_suffix(".stderr").read_text() == ""


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_process(tmp_path: Path, sent: signal.Signals) -> None:
    database = tmp_path / "memory.db"
    with served(database) as wire:
        wire.send(call(1, "record_messages", session_id="s", messages=[{"role": "user", "text": "kept"}]))
        wire.answer(1)
        wire.process.send_signal(sent)
        assert wire.exit_code() == (-signal.SIGTERM if sent == signal.SIGTERM else 130)
    assert database.with_suffix(".stderr").read_text().strip() == ""
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT text FROM records WHERE type = 'message'").fetchall() == [("kept",)]


@pytest.mark.skipif(sys.platform != "linux", reason="waits for a process that is no child")
def test_no_process_is_left_when_the_host_is_killed(tmp_path: Path) -> None:
    host = """
import subprocess, sys, time
server = subprocess.Popen([sys.executable, "-m", "kalito_mcp", "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
server.stdin.write(sys.stdin.buffer.readline()); server.stdin.flush()
server.stdout.readline()
print(server.pid, flush=True)
time.sleep(3600)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", host],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=clean_environment(KALITO_DATABASE=str(tmp_path / "memory.db")),
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process.stdin, process.stdout:
        process.stdin.write(request(1, "prompts/list"))
        process.stdin.flush()
        server = os.pidfd_open(int(process.stdout.readline()))
        process.kill()
        process.wait()
        try:
            assert ends(server)
        finally:
            os.close(server)


def ends(descriptor: int) -> bool:
    """Whether the process behind a pidfd ends while we wait."""
    readable, _, _ = select.select([descriptor], [], [], PATIENCE_S)
    return bool(readable)


def test_a_database_that_cannot_be_opened_is_reported_per_call_and_once_on_stderr(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    database.mkdir()
    why = f"{database} is a folder; name a file in it, such as {database}/memory.db"
    with served(database, **COVERED) as wire:
        wire.send(request(1, "tools/list"), call(2, "search_memory", query="Oslo"))
        assert len(wire.answer(1)["result"]["tools"]) == 13
        assert wire.answer(2)["result"]["content"][0]["text"] == f"storage_damaged: {why}"
        wire.close_stdin()
        assert wire.exit_code() == 1
    assert database.with_suffix(".stderr").read_text() == f"kalito-mcp: {why}\n"


NUMPY_AT_THE_END = """
import atexit, sys
atexit.register(lambda: print("numpy was imported:", "numpy" in sys.modules, file=sys.stderr))
"""


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("environment", "messages", "is_imported"),
    first_of(
        [
            ({}, (request(1, "tools/list"), call(2, "build_context", session_id="nobody")), False),
            ({}, (call(1, "search_memory", query="x"), request(2, "tools/list")), True),
            (
                {"KALITO_MEMORY_GRAPH": "false"},
                (
                    # The first turn of a conversation reads how the others ended, from the index.
                    call(1, "record_messages", session_id="s", messages=[{"role": "user", "text": "kept"}] * 3),
                    call(2, "build_context", session_id="s"),
                ),
                False,
            ),
        ],
        2,
    ),
    ids=["listed", "searched", "switched off"],
)
def test_numpy_is_imported_for_the_first_search_or_graph_and_not_before(
    tmp_path: Path, environment: dict[str, str], messages: tuple[bytes, ...], is_imported: bool
) -> None:
    database = tmp_path / "memory.db"
    with served(database, code=NUMPY_AT_THE_END, is_fresh=True, **environment) as wire:
        wire.send(*messages)
        wire.close_stdin()
        assert len(wire.rest()) == len(messages)
        assert wire.exit_code() == 0
    assert f"numpy was imported: {is_imported}" in database.with_suffix(".stderr").read_text()
