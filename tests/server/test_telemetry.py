"""Spans for OpenTelemetry: they reach a collector, and have nothing of what callers sent. What is sent is tested with
the extra `telemetry`."""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

from kalito_mcp.domain.access import Permission
from kalito_mcp.errors import ConfigurationError
from kalito_mcp.server import telemetry
from kalito_mcp.server.telemetry import start_telemetry
from tests.web.talking import Caller, talking, token

WORD: Final = "quetzalcoatlus"
COLLECTOR: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"
needs_extra = pytest.mark.skipif(find_spec("opentelemetry.sdk") is None, reason="needs kalito-mcp[telemetry]")


@contextmanager
def collector() -> Iterator[tuple[str, list[bytes]]]:
    """The address of a collector, and what it was sent."""
    received: list[bytes] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(self.path.encode() + self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{listening.server_address[1]}", received
    listening.shutdown()
    thread.join()
    listening.server_close()


@needs_extra
def test_spans_reach_the_collector_without_a_word_of_what_was_sent(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    admin = token(database, Permission.ADMIN)
    path = os.pathsep.join(filter(None, sys.path))
    with (
        collector() as (address, received),
        talking(database, PYTHONPATH=path, OTEL_BSP_SCHEDULE_DELAY="10", **{COLLECTOR: address}) as (serving, http),
    ):
        caller = Caller.connect(http, serving.url, admin)
        caller.call("record_messages", {"session_id": WORD, "messages": [{"role": "user", "text": WORD}]})
        caller.call("search_memory", {"query": WORD})
        caller.call("forget", {"record_ids": [WORD]})
        caller.call(WORD, {WORD: WORD})
        caller.send({"jsonrpc": "2.0", "id": WORD, "method": WORD, "params": {"name": WORD}})
        caller.send({"jsonrpc": "2.0", "id": WORD, "method": "prompts/get", "params": {"name": WORD}})
        caller.send({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": f"memory://{WORD}"}})
        while not all(
            any(name in one for one in received) for name in (b"search_memory", b"forget", b"resources/read")
        ):
            threading.Event().wait(0.01)
    sent = b"".join(received)
    assert received[0].startswith(b"/v1/traces")
    assert b"tools/call search_memory" in sent
    assert b"kalito-mcp" in sent
    assert WORD.encode() not in sent.lower()
    assert str(tmp_path).encode() not in sent
    assert admin.encode() not in sent


def test_without_a_collector_nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "find_spec", lambda _: pytest.fail("nothing is looked for"))
    assert start_telemetry({}, ()) is False
    assert start_telemetry({COLLECTOR: ""}, ()) is False
    assert start_telemetry({COLLECTOR: "http://127.0.0.1:4318", "OTEL_SDK_DISABLED": "TRUE"}, ()) is False
    assert start_telemetry({COLLECTOR: "http://127.0.0.1:4318", "OTEL_TRACES_EXPORTER": "none"}, ()) is False


def test_a_collector_without_the_extra_is_said_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "find_spec", lambda _: None)
    with pytest.raises(ConfigurationError, match=r"kalito-mcp\[telemetry\]"):
        start_telemetry({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318/v1/traces"}, ())
