"""Something else answers at the home's address. Nothing that waits for the home is lost by that."""

import json
from pathlib import Path
from typing import Any

import pytest

from kalito_mcp.bridge.outbox import Outbox
from tests.bridge.machines import Gate, named
from tests.bridge.test_passing import FOUND, WAITING, answer, home, passing, recorded, replied, told

__all__ = ["home"]  # the fixture
pytestmark = pytest.mark.anyio

Reply = tuple[int, dict[str, str], bytes]
SAID = {"content": [{"type": "text", "text": "done"}]}
_JSON = {"Content-Type": "application/json"}
_EVENTS = {"Content-Type": "text/event-stream"}


def said(body: Any, status: int = 200) -> Reply:
    return status, _JSON, json.dumps(body).encode()


STRANGERS: dict[str, Reply] = {
    "a reply to another request": said({"jsonrpc": "2.0", "id": 999_999, "result": named(SAID)}),
    "the id as a text": said({"jsonrpc": "2.0", "id": "1", "result": named(SAID)}),
    "no id": said({"jsonrpc": "2.0", "result": named(SAID)}),
    "an older JSON-RPC": replied({"jsonrpc": "1.0", "result": named(SAID)}),
    "no JSON-RPC": said({"result": {"ok": True}}),
    "an empty result": replied({"result": {}}),
    "another server's tool": replied({"result": SAID}),
    "a tool of a server with another name": replied({"result": named(SAID, "anki")}),
    "a refusal of a server with another name": replied({"result": named(SAID | {"isError": True}, "anki")}),
    "a login": said({"error": "login required"}),
    "both, as AnkiConnect": said({"result": None, "error": "unsupported action"}),
    "both, under our id": replied({"result": named(SAID), "error": {"code": -32602, "message": "no"}}),
    "an error without a code": replied({"error": {"message": "no"}}),
    "an error of another request": said({"jsonrpc": "2.0", "id": 7, "error": {"code": -32602, "message": "no"}}, 400),
    "an error of no request": said({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Parse"}}, 400),
    "a server of other methods": replied({"error": {"code": -32601, "message": "Method not found"}}),
    "a server of other methods, with a status": replied({"error": {"code": -32601, "message": "not found"}}, 404),
    "a server of another protocol": replied({"error": {"code": -32022, "message": "unsupported version"}}, 400),
    "a gateway's 404": said({"error": {"code": 404, "message": "Not Found"}}, 404),
    "a gateway's 400": said({"error": {"message": "bad configuration"}}, 400),
    "a gateway's 422": said({"detail": "no"}, 422),
    "a proxy that takes less": (413, {"Content-Type": "text/html"}, b"<html>413 Request Entity Too Large"),
    "a page": (200, {"Content-Type": "text/html"}, b"<html>hello"),
    "a page that is missing": (404, {"Content-Type": "text/html"}, b"<html>"),
    "a page that may not be seen": (403, {"Content-Type": "text/html"}, b"<html>"),
    "a list": said([{"jsonrpc": "2.0", "id": 1, "result": SAID}]),
    "nothing": (204, {}, b""),
    "accepted": (202, {}, b""),
    "events of another request": (200, _EVENTS, b'data: {"jsonrpc": "2.0", "id": 7, "result": {}}\n\n'),
}


NO_RESULT_OF_A_CALL = replied({"result": named({"ok": True})})


@pytest.mark.parametrize("reply", [*STRANGERS.values(), NO_RESULT_OF_A_CALL], ids=[*STRANGERS, "no result of a call"])
async def test_what_waits_and_what_is_new_waits_for_the_home_when_something_else_answers(
    tmp_path: Path, home: Gate, reply: Reply
) -> None:
    outbox = Outbox(tmp_path)
    outbox.put(WAITING)
    home.answers["*"] = reply
    async with passing(tmp_path, home) as one:
        assert (await told(one, recorded("new"))).startswith("Kept in this machine's outbox")
    assert (outbox.count(), outbox.refused()) == (2, [])
    home.answers["*"] = answer("recorded")
    async with passing(tmp_path, home) as one:
        assert await told(one, FOUND) == "recorded"
    assert (outbox.count(), outbox.refused()) == (0, [])


async def test_a_question_gets_the_home_s_last_answer_when_something_else_answers(tmp_path: Path, home: Gate) -> None:
    async with passing(tmp_path, home) as one:
        home.answers["*"] = answer("a kite")
        await told(one, FOUND)
        for reply in STRANGERS.values():
            home.answers["*"] = reply
            assert "a kite" in await told(one, FOUND)


async def test_a_call_that_the_home_finds_too_large_is_put_aside(tmp_path: Path, home: Gate) -> None:
    outbox = Outbox(tmp_path)
    outbox.put(WAITING)
    body = {"error": "request_too_large", "error_description": "the body of the request is longer than 4,194,304 bytes"}
    home.answers = {"remember": said(body, 413), "*": answer("a kite")}
    async with passing(tmp_path, home) as one:
        assert await told(one, FOUND) == "a kite"
    [entry] = outbox.refused()
    assert entry.reason == "the body of the request is longer than 4,194,304 bytes"


async def test_a_call_that_the_home_cannot_read_is_put_aside(tmp_path: Path, home: Gate) -> None:
    outbox = Outbox(tmp_path)
    outbox.put(WAITING)
    home.answers = {"remember": STRANGERS["an error of no request"], "*": answer("a kite")}
    async with passing(tmp_path, home) as one:
        assert await told(one, FOUND) == "a kite"
    assert [entry.reason for entry in outbox.refused()] == ["Parse"]
