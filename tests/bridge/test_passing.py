"""What a bridge makes of a home's answers, in this process. The home is a gate that says what it is told to."""

import errno
import json
import os
import socket
import ssl
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.server.mcpserver.exceptions import ToolError

from kalito_mcp.bridge.answers import Answers
from kalito_mcp.bridge.connection import connection_to, read_token, write_connection
from kalito_mcp.bridge.delivery import Change, Delivery
from kalito_mcp.bridge.home import Caller, Home
from kalito_mcp.bridge.outbox import Entry, Outbox
from kalito_mcp.bridge.passing import Passing, ToolCall
from kalito_mcp.bridge.places import MachinePlaces
from kalito_mcp.bridge.replies import HomeAway, HomeFailed, HomeRefuses
from kalito_mcp.domain.scope import PERSONAL
from kalito_mcp.domain.validation import LimitsPolicy
from kalito_mcp.errors import StorageError
from kalito_mcp.projects import ProjectPolicy
from tests.bridge.machines import TOKEN, Gate, closed_port, gate, named, text_of, until
from tests.sign_in.published import certificate_for

pytestmark = pytest.mark.anyio
FOUND = ToolCall("search_memory", {"query": "kite"}, {})
FORGET = ToolCall("forget", {"record_ids": ["msg_1"]}, {})
GONE = (503, {}, b"gone")
WAITING = {"params": {"name": "remember", "arguments": {}}}


@pytest.fixture
def home() -> Iterator[Gate]:
    with gate() as opened:
        yield opened


@asynccontextmanager
async def passing(folder: Path, home: Gate, token: str = TOKEN) -> AsyncIterator[Passing]:
    """What a host's server does with its calls, on the machine of this folder."""
    way = Home(connection_to(home.url), partial(str, token))
    async with way.open():
        places = MachinePlaces(folder / "switch.json", ProjectPolicy(), PERSONAL)
        yield Passing(Delivery(way, Outbox(folder)), Answers(folder / "answers"), places, LimitsPolicy())


def answer(text: str, *, is_error: bool = False) -> tuple[int, dict[str, str], bytes]:
    """The home's answer to a call."""
    result = {"resultType": "complete", "content": [{"type": "text", "text": text}], "isError": is_error}
    return replied({"result": named(result)})


def replied(message: dict[str, Any], status: int = 200) -> tuple[int, dict[str, str], bytes]:
    """A reply of JSON-RPC to the request."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, **message}).encode()
    return status, {"Content-Type": "application/json"}, body


async def told(one: Passing, call: ToolCall) -> str:
    """The text of what a host is answered."""
    try:
        result: dict[str, Any] = await one.call(call, Caller(), None)
    except ToolError as error:
        return str(error)
    return text_of(result)


def recorded(text: str) -> ToolCall:
    """A call that records one message."""
    return ToolCall("record_messages", {"session_id": "s", "messages": [{"role": "user", "text": text}]}, {})


def texts_given(home: Gate) -> list[str]:
    return [message["text"] for arguments in home.given for message in arguments.get("messages", [])]


async def test_a_call_that_fails_is_not_overtaken_by_those_behind_it(tmp_path: Path, home: Gate) -> None:
    home.answers["*"] = answer("recorded")
    home.next = [GONE, None, GONE, None]
    home.holds["record_messages"] = threading.Event()
    async with passing(tmp_path, home) as one:
        async with anyio.create_task_group() as tasks:
            for number in range(5):
                tasks.start_soon(told, one, recorded(str(number)))
            await anyio.to_thread.run_sync(until, lambda: bool(home.seen), "the home is asked")
            home.holds["record_messages"].set()
        await told(one, FOUND)  # delivers what waits
    assert texts_given(home) == list("01234")


async def test_what_waits_for_a_slow_home_keeps_its_place_and_its_moment(tmp_path: Path, home: Gate) -> None:
    home.answers["*"] = answer("recorded")
    home.next = [GONE]
    home.holds["record_messages"] = threading.Event()
    async with passing(tmp_path, home) as one:
        async with anyio.create_task_group() as tasks:
            before = datetime.now(UTC)
            tasks.start_soon(told, one, recorded("first"))
            await anyio.to_thread.run_sync(until, lambda: bool(home.seen), "the home is asked")
            after = datetime.now(UTC)
            tasks.start_soon(told, one, recorded("second"))
            await anyio.sleep(0.1)
            home.holds["record_messages"].set()
        await told(one, FOUND)
    assert texts_given(home) == ["first", "second"]
    moment = datetime.fromisoformat(home.given[0]["messages"][0]["created_at"])
    assert before - timedelta(milliseconds=1) <= moment <= after


async def test_a_kept_answer_is_shown_to_no_other_token(tmp_path: Path, home: Gate) -> None:
    async with passing(tmp_path, home) as ann, passing(tmp_path, home, TOKEN[::-1]) as ben:
        home.answers["*"] = answer("Ann's kite")
        assert await told(ann, FOUND) == "Ann's kite"
        home.answers["*"] = GONE
        assert "Ann's kite" in await told(ann, FOUND)
        assert "no answer to this was kept" in await told(ben, FOUND)
        assert "no answer to this was kept" in await told(ben, ToolCall("build_context", {"session_id": "s"}, {}))


async def test_an_erasure_whose_answer_is_lost_deletes_the_kept_answers(tmp_path: Path, home: Gate) -> None:
    async with passing(tmp_path, home) as one:
        home.answers["*"] = answer("a kite")
        await told(one, FOUND)
        home.answers["forget"] = GONE
        assert "so nothing was changed" in await told(one, FORGET)
        home.answers["*"] = GONE
        assert "a kite" in await told(one, FOUND)
        home.answers["forget"] = (502, {}, b"gone")
        assert "it is not known whether it was done" in await told(one, FORGET)
        assert "no answer to this was kept" in await told(one, FOUND)


async def test_what_was_asked_for_before_an_erasure_is_not_kept_after_it(tmp_path: Path, home: Gate) -> None:
    async with passing(tmp_path, home) as one, anyio.create_task_group() as tasks:
        home.answers["*"] = answer("a kite")
        home.holds["search_memory"] = threading.Event()
        tasks.start_soon(told, one, FOUND)
        await anyio.to_thread.run_sync(until, lambda: bool(home.seen), "the home is asked")
        assert await told(one, FORGET) == "a kite"
        home.holds["search_memory"].set()
    assert Answers(tmp_path / "answers").count() == 0


async def test_the_last_context_is_shown_for_another_query_but_for_no_other_limits(tmp_path: Path, home: Gate) -> None:
    def context(query: str, **limits: Any) -> ToolCall:
        return ToolCall("build_context", {"session_id": "s", "query": query, **limits}, {})

    async with passing(tmp_path, home) as one:
        home.answers["*"] = answer("a kite of app")
        await told(one, context("kite", include=["untrusted"], project="app", agent_id="a", max_tokens=900))
        home.answers["*"] = GONE
        assert "a kite of app" in await told(
            one, context("wind", include=["untrusted"], project="app", agent_id="a", max_tokens=900)
        )
        for other in (
            {"include": [], "project": "app", "agent_id": "a", "max_tokens": 900},
            {"include": ["untrusted"], "project": "site", "agent_id": "a", "max_tokens": 900},
            {"include": ["untrusted"], "project": "app", "agent_id": "b", "max_tokens": 900},
            {"include": ["untrusted"], "project": "app", "agent_id": "a", "max_tokens": 100},
        ):
            assert "no answer to this was kept" in await told(one, context("wind", **other))


async def test_looking_into_a_file_of_the_memory_tool_is_no_erasure(tmp_path: Path, home: Gate) -> None:
    view = ToolCall("memory", {"command": "view", "path": "/memories/notes.md"}, {})
    delete = ToolCall("memory", {"command": "delete", "path": "/memories/notes.md"}, {})
    async with passing(tmp_path, home) as one:
        home.answers["*"] = answer("a kite")
        await told(one, FOUND)
        await told(one, view)
        home.answers["*"] = GONE
        assert "a kite" in await told(one, FOUND)
        assert "a kite" in await told(one, view)
        home.answers["*"] = answer("deleted")
        await told(one, delete)
        home.answers["*"] = GONE
        assert "no answer to this was kept" in await told(one, FOUND)


@pytest.mark.parametrize("is_endless", [True, False])
async def test_an_answer_as_events_may_not_be_endless(
    tmp_path: Path, home: Gate, monkeypatch: pytest.MonkeyPatch, *, is_endless: bool
) -> None:
    monkeypatch.setattr("kalito_mcp.bridge.replies._MOST_BYTES", 10_000)
    result = json.dumps(named({"content": [], "note": "\u20ac"}), ensure_ascii=False)
    line = f'data: {{"jsonrpc": "2.0", "id": 1, "result": {result}}}\r\n\r\n'.encode()
    events = b": still here\r\n\r\n" * (1_000 if is_endless else 10) + line
    home.answers["*"] = (200, {"Content-Type": "text/event-stream"}, events)
    async with passing(tmp_path, home) as one:
        if is_endless:
            assert "its answer is too long" in await told(one, FORGET)
        else:
            assert (await one.call(FOUND, Caller(), None))["note"] == "\u20ac"


async def test_an_incomplete_answer_says_so_behind_the_code_of_an_error_and_is_kept(tmp_path: Path, home: Gate) -> None:
    Outbox(tmp_path).put(WAITING)
    home.answers = {"remember": GONE, "search_memory": answer("a kite"), "*": answer("not_found: no", is_error=True)}
    note = "[what 1 call from this machine recorded is not in it yet]"
    async with passing(tmp_path, home) as one:
        assert await told(one, FOUND) == f"{note}\na kite"
        result = await one.call(ToolCall("build_context", {"session_id": "s"}, {}), Caller(), None)
        assert [block["text"] for block in result["content"]] == ["not_found: no", note]
        home.answers["*"] = home.answers["search_memory"] = GONE
        assert "a kite" in await told(one, FOUND)


async def test_a_kept_resource_says_how_old_it_is_where_the_host_reads_it(tmp_path: Path, home: Gate) -> None:
    async with passing(tmp_path, home) as one:
        result = {
            "contents": [{"uri": "memory://profile", "mimeType": "application/json", "text": '{"person": "Ann"}'}]
        }
        home.answers["*"] = replied({"result": named(result)})
        asked = {"uri": "memory://profile"}
        assert await one.read("resources/read", asked, Caller()) == named(result)
        home.answers["*"] = GONE
        [content] = (await one.read("resources/read", asked, Caller()))["contents"]
    found = json.loads(content["text"])
    assert "this is its last answer to this" in found.pop("old_answer")
    assert found == {"person": "Ann"}


async def test_what_the_home_had_already_taken_in_is_no_error(tmp_path: Path, home: Gate) -> None:
    said = "already_taken_in: this call was done when it was sent before; nothing was written now"
    home.answers["*"] = answer(said, is_error=True)
    async with passing(tmp_path, home) as one:
        call = ToolCall("remember", {"type": "note", "text": "a kite"}, {"id": "string"})
        result = await one.call(call, Caller(), None)
    assert not result["isError"]
    assert text_of(result).startswith("The home has taken this in")
    assert result["structuredContent"]["id"] == ""


@pytest.mark.parametrize("status", [401, 307, 421])
async def test_a_home_that_does_not_let_us_in_has_done_nothing(tmp_path: Path, home: Gate, status: int) -> None:
    async with passing(tmp_path, home) as one:
        home.answers["*"] = (status, {}, b"no")
        assert "so nothing was changed" in await told(one, FORGET)


async def test_reading_goes_on_where_what_is_refused_cannot_be_put_aside(tmp_path: Path, home: Gate) -> None:
    (tmp_path / "refused").write_text("a file in its place")
    Outbox(tmp_path).put({"params": {"name": "remember", "arguments": {}}})
    home.answers = {"remember": answer("invalid_input: no", is_error=True), "*": answer("a kite")}
    async with passing(tmp_path, home) as one:
        said = await told(one, FOUND)
        assert said == "[what 1 call from this machine recorded is not in it yet]\na kite"
        assert "what waits for it cannot be read" in await told(one, FORGET)
    assert Outbox(tmp_path).count() == 1


async def test_a_server_that_was_started_before_sends_its_home_no_token_of_another(tmp_path: Path, home: Gate) -> None:
    folder, before = tmp_path / "home", connection_to(home.url)
    write_connection(folder, before, TOKEN)
    way = Home(before, partial(read_token, folder, {}, before.origin))
    home.answers["*"] = answer("a kite")
    async with way.open():
        await way.request("tools/call", {"name": "search_memory"}, Caller())
        write_connection(folder, connection_to(f"http://127.0.0.1:{closed_port()}"), TOKEN[::-1])
        with pytest.raises(HomeRefuses, match="restart the assistants"):
            await way.request("tools/call", {"name": "search_memory"}, Caller())
    assert [headers["authorization"] for _, headers in home.seen] == [f"Bearer {TOKEN}"]


async def test_certificates_that_cannot_be_read_are_said_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/none/there.pem")
    with pytest.raises(HomeRefuses, match="SSL_CERT_FILE"):
        await Home(connection_to("https://127.0.0.1:1"), partial(str, TOKEN)).request("ping", {}, Caller())


async def test_what_is_json_but_no_request_is_put_aside_and_holds_nothing_up(tmp_path: Path, home: Gate) -> None:
    home.answers["*"] = answer("1 message recorded")
    outbox = Outbox(tmp_path)
    good = {"params": {"name": "record_messages", "arguments": {}}}
    spoilt = [
        {"params": 5},
        {**good, "meta": 5},
        {**good, "client": 5},
        {"n": 1},
    ]
    for content in (*spoilt, good):
        outbox.put(content)
    way = Home(connection_to(home.url), partial(str, TOKEN))
    async with way.open():
        await Delivery(way, outbox).deliver_all()
        assert [name for name, _ in home.seen] == ["record_messages"]
    assert outbox.count() == 0
    assert [(one.content, one.reason) for one in outbox.refused()] == [
        (content, "its file is damaged") for content in spoilt
    ]


async def test_a_call_that_the_home_fails_at_is_put_aside_after_minutes_not_after_many_tries(
    tmp_path: Path, home: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox = Outbox(tmp_path)
    outbox.put({"params": {"name": "remember", "arguments": {}}})
    outbox.put({"params": {"name": "record_messages", "arguments": {}}})
    home.answers = {"remember": answer("internal: it broke", is_error=True), "*": answer("recorded")}
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    way = Home(connection_to(home.url), partial(str, TOKEN))
    async with way.open():
        for _ in range(19):
            for _ in range(2):
                with pytest.raises(HomeFailed):
                    await Delivery(way, outbox).deliver_all()  # of another process each time
            now += 15
        assert outbox.count() == 2
        await Delivery(way, outbox).deliver_all()
    assert outbox.count() == 0
    [entry] = outbox.refused()
    assert entry.reason == "it fails: internal: it broke"
    outbox.send_again(entry)
    home.answers["remember"] = answer("remembered")
    async with way.open():
        await Delivery(way, outbox).deliver_all()
    assert outbox.count() == 0


async def test_an_erasure_that_was_never_sent_is_not_said_to_be_perhaps_done(tmp_path: Path, home: Gate) -> None:
    async with passing(tmp_path, home) as one:
        home.answers["*"] = answer("a kite")
        await told(one, FOUND)
        Outbox(tmp_path).put(WAITING)
        home.answers["*"] = (502, {}, b"gone")
        assert "so nothing was changed" in await told(one, FORGET)
        assert "forget" not in [name for name, _ in home.seen]
        assert "a kite" in await told(one, FOUND)


async def test_an_erasure_deletes_the_kept_answers_though_the_disk_is_full(
    tmp_path: Path, home: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    async with passing(tmp_path, home) as one:
        home.answers["*"] = answer("a kite")
        await told(one, FOUND)
        monkeypatch.setattr("kalito_mcp.bridge.answers.write_whole", full)
        with pytest.raises(StorageError, match="forget was sent to the home, but"):
            await told(one, FORGET)
        home.answers["*"] = GONE
        assert "no answer to this was kept" in await told(one, FOUND)


async def test_nothing_is_shown_after_a_kill_during_an_erasure(tmp_path: Path, home: Gate) -> None:
    script = (
        "import sys, anyio; from pathlib import Path; from tests.bridge.machines import Gate\n"
        "from tests.bridge.test_passing import passing, told, FORGET\n"
        "async def main():\n"
        "    async with passing(Path(sys.argv[1]), Gate(sys.argv[2])) as one: await told(one, FORGET)\n"
        "anyio.run(main)"
    )
    async with passing(tmp_path, home) as one:
        home.answers["*"] = answer("a kite")
        await told(one, FOUND)
        home.holds["forget"] = threading.Event()
        async with await anyio.open_process([sys.executable, "-c", script, str(tmp_path), home.url]) as child:
            await anyio.to_thread.run_sync(until, lambda: "forget" in [name for name, _ in home.seen], "it is sent")
            child.kill()
        home.holds["forget"].set()
        home.answers["*"] = GONE
        assert "no answer to this was kept" in await told(one, FOUND)
        [begun] = (file for file in (tmp_path / "answers").iterdir() if file.name.startswith("erasure-"))
        os.utime(begun, (1, 1))
        assert "no answer to this was kept" in await told(one, FOUND)
        assert not begun.exists()
        home.answers["*"] = answer("another kite")
        await told(one, FOUND)
        home.answers["*"] = GONE
        assert "another kite" in await told(one, FOUND)


async def test_a_hook_that_cannot_wait_does_not_overtake_the_call_before_it(tmp_path: Path, home: Gate) -> None:
    home.answers["*"] = answer("recorded")
    home.holds["record_messages"] = threading.Event()
    hook = Change({"name": "hook_event", "arguments": {"messages": [{"text": "second"}]}}, Caller())
    async with passing(tmp_path, home) as one, passing(tmp_path, home) as other, anyio.create_task_group() as tasks:
        tasks.start_soon(told, one, recorded("first"))
        await anyio.to_thread.run_sync(until, lambda: bool(home.seen), "the first is on its way")
        with pytest.raises(HomeAway, match=r"not answered within 0\.1 s"):
            await one._delivery.pass_on(hook, lambda: hook, within_s=0.1)
        assert Outbox(tmp_path).count() == 2
        home.next = [GONE]
        home.holds["record_messages"].set()
        await told(other, FOUND)  # another process delivers what waits
    async with passing(tmp_path, home) as one:
        await told(one, FOUND)
    assert list(dict.fromkeys(texts_given(home))) == ["first", "second"]


async def test_a_copy_of_what_was_on_its_way_is_dropped_when_the_home_has_it(tmp_path: Path, home: Gate) -> None:
    home.answers["*"] = answer("recorded")
    home.holds["record_messages"] = threading.Event()
    async with passing(tmp_path, home) as one, anyio.create_task_group() as tasks:
        tasks.start_soon(told, one, recorded("first"))
        await anyio.to_thread.run_sync(until, lambda: bool(home.seen), "it is on its way")
        await one._delivery.keep_all()
        assert Outbox(tmp_path).count() == 1
        home.holds["record_messages"].set()
    assert Outbox(tmp_path).count() == 0


async def test_a_call_behind_a_slow_one_is_answered_by_the_home_though_a_hook_could_not_wait(
    tmp_path: Path, home: Gate
) -> None:
    home.answers = {"remember": answer("remembered"), "*": answer("recorded")}
    home.holds["record_messages"] = threading.Event()
    hook = Change({"name": "hook_event", "arguments": {}}, Caller())
    said: list[str] = []

    async def remember() -> None:
        said.append(await told(one, ToolCall("remember", {"type": "note", "text": "a kite"}, {"id": "string"})))

    async with passing(tmp_path, home) as one:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(told, one, recorded("first"))
            await anyio.to_thread.run_sync(until, lambda: bool(home.seen), "the first is on its way")
            tasks.start_soon(remember)
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(HomeAway):
                await one._delivery.pass_on(hook, lambda: hook, within_s=0.1)
            assert Outbox(tmp_path).count() == 3
            tasks.start_soon(told, one, FOUND)  # a question does not deliver the copies either
            home.holds["record_messages"].set()
        await told(one, FOUND)
    assert said == ["remembered"]
    changes = [name for name, _ in home.seen if name != "search_memory"]
    assert changes == ["record_messages", "remember", "hook_event"]
    assert Outbox(tmp_path).count() == 0


async def test_what_the_host_cancels_after_it_was_kept_for_a_hook_is_not_sent(tmp_path: Path, home: Gate) -> None:
    home.answers["*"] = answer("recorded")
    home.holds["record_messages"] = threading.Event()
    hook = Change({"name": "hook_event", "arguments": {}}, Caller())
    async with passing(tmp_path, home) as one, anyio.create_task_group() as tasks:
        tasks.start_soon(told, one, recorded("first"))
        await anyio.to_thread.run_sync(until, lambda: bool(home.seen), "the first is on its way")
        async with anyio.create_task_group() as cancelled:
            cancelled.start_soon(told, one, recorded("second"))
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(HomeAway):
                await one._delivery.pass_on(hook, lambda: hook, within_s=0.1)
            cancelled.cancel_scope.cancel()
        assert Outbox(tmp_path).count() == 2  # the first, and the hook
        home.holds["record_messages"].set()


async def test_what_the_host_cancels_while_another_call_is_kept_is_not_kept(
    tmp_path: Path, home: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, is_putting, goes_on = Outbox.put, threading.Event(), threading.Event()

    def slow_put(self: Outbox, content: Mapping[str, Any], place: int | None = None) -> Entry:
        is_putting.set()
        assert goes_on.wait(10)
        return put(self, content, place)

    monkeypatch.setattr(Outbox, "put", slow_put)
    home.answers["*"] = answer("recorded")
    home.holds["record_messages"] = threading.Event()
    async with passing(tmp_path, home) as one, anyio.create_task_group() as tasks:
        tasks.start_soon(told, one, recorded("first"))
        await anyio.to_thread.run_sync(until, lambda: bool(home.seen), "the first is on its way")
        async with anyio.create_task_group() as cancelled:
            cancelled.start_soon(told, one, recorded("second"))
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(one._delivery.keep_all)
            await anyio.to_thread.run_sync(is_putting.wait)
            cancelled.cancel_scope.cancel()
        goes_on.set()
        await anyio.to_thread.run_sync(until, lambda: Outbox(tmp_path).count() == 1, "the first is kept")
        await anyio.sleep(0.1)
        assert [one.content["params"]["arguments"]["messages"][0]["text"] for one in Outbox(tmp_path).waiting()] == [
            "first"
        ]
        home.holds["record_messages"].set()


@pytest.mark.parametrize("spoilt", [{**WAITING, "failures": {}}, {**WAITING, "failures": 5}])
async def test_a_spoilt_count_of_failures_begins_anew(tmp_path: Path, home: Gate, spoilt: dict[str, Any]) -> None:
    home.answers["*"] = answer("internal: it broke", is_error=True)
    outbox = Outbox(tmp_path)
    outbox.put(spoilt)
    way = Home(connection_to(home.url), partial(str, TOKEN))
    async with way.open():
        with pytest.raises(HomeFailed):
            await Delivery(way, outbox).deliver_all()
    assert next(outbox.waiting()).content["failures"]["count"] == 1


async def test_a_home_that_wants_a_certificate_is_said_in_words_and_what_is_recorded_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = certificate_for("localhost", tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    asks = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    asks.load_cert_chain(certificate)
    asks.load_verify_locations(certificate)
    asks.verify_mode = ssl.CERT_REQUIRED
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def refuse() -> None:
            plain, _ = listening.accept()
            with asks.wrap_socket(plain, server_side=True, do_handshake_on_connect=False) as one:
                with suppress(OSError):
                    one.do_handshake()
                time.sleep(0.5)  # the client reads why, before the end

        threading.Thread(target=refuse, daemon=True).start()
        way = Home(connection_to(f"https://localhost:{listening.getsockname()[1]}"), partial(str, TOKEN))
        async with way.open():
            one = Passing(
                Delivery(way, Outbox(tmp_path)),
                Answers(tmp_path / "answers"),
                MachinePlaces(tmp_path / "switch.json", ProjectPolicy(), PERSONAL),
                LimitsPolicy(),
            )
            said = await told(one, recorded("first"))
    assert "Kept in this machine's outbox" in said
    assert "TLS" in said
    assert Outbox(tmp_path).count() == 1
