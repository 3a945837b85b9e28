"""A host on a machine whose memory is on another one: real processes, and a gate between them."""

import itertools
import json
import random
import signal
import socketserver
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest
from mcp import Client, StdioServerParameters
from mcp.types import ElicitResult

from kalito_mcp.bridge.answers import Answers
from kalito_mcp.bridge.connection import connection_to
from kalito_mcp.bridge.home import Caller, Home
from kalito_mcp.capture.spool import Spool
from kalito_mcp.runtime.database_address import LocalFiles
from kalito_mcp.switch import FOR_EVER, Switch, write_switch
from tests.bridge.machines import (
    TOKEN,
    bridge,
    closed_port,
    connected,
    delivered,
    gate,
    home_behind,
    hook,
    made_at,
    outbox_of,
    said,
    text_of,
    texts_at,
    turn,
    turns,
    until,
)
from tests.campaign import first_of
from tests.server.web import web
from tests.server.wire import PATIENCE_S, call, clean_environment, line, request, served


def test_a_call_gets_the_homes_answer(tmp_path: Path) -> None:
    laptop, home = tmp_path / "laptop", tmp_path / "home"
    with gate() as between, home_behind(between, home), bridge(laptop, between.url, is_covered=True) as wire:
        recorded = said(wire, 1, "record_messages", session_id="s", messages=turn(1))
        assert recorded["structuredContent"]["message_ids"] == ["msg_1", "msg_2"]
        assert recorded["structuredContent"]["total_messages"] == 2
        found = said(wire, 2, "search_memory", query="question")
        assert found["structuredContent"]["hits"][0]["text"] == "question 1"
        wrong = said(wire, 3, "update_memory", record_id="msg_1", changes={"text": "x"}, expected_revision=7)
        assert wrong["isError"]
        assert text_of(wrong).startswith("revision_conflict: ")
        wire.send(request(4, "resources/read", uri="memory://sessions"))
        assert json.loads(wire.answer(4)["result"]["contents"][0]["text"])["sessions"][0]["session_id"] == "s"
        wire.send(request(5, "resources/read", uri="memory://sessions/none/stats"))
        assert wire.answer(5)["error"]["data"] == {"uri": "memory://sessions/none/stats"}
        wire.send(request(6, "prompts/get", name="resume_session", arguments={"session_id": "s"}))
        assert "question 1" in wire.answer(6)["result"]["messages"][0]["content"]["text"]
        reference = {"type": "ref/resource", "uri": "memory://sessions/{session_id}/stats"}
        argument = {"name": "session_id", "value": ""}
        wire.send(request(7, "completion/complete", ref=reference, argument=argument))
        assert wire.answer(7)["result"]["completion"]["values"] == ["s"]
    assert texts_at(home) == turns(range(1, 2))
    assert not (laptop / "memory.db").exists()


def test_a_host_of_the_older_protocol_is_answered_too(tmp_path: Path) -> None:
    with (
        gate() as between,
        home_behind(between, tmp_path / "home"),
        bridge(tmp_path / "laptop", between.url, is_covered=True) as wire,
    ):
        introduced = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "older", "version": "1"},
        }
        wire.send(line({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": introduced}))
        assert wire.answer(1)["result"]["serverInfo"]["name"] == "kalito-mcp"
        wire.send(line({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        given = {"name": "finalize_session", "arguments": {"session_id": "s"}, "_meta": {"progressToken": "p"}}
        recording = {"name": "record_messages", "arguments": {"session_id": "s", "messages": turn(1)}}
        wire.send(line({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": recording}))
        assert wire.answer(2)["result"]["structuredContent"]["recorded"] == 2
        wire.send(line({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": given}))
        assert wire.answer(3)["result"]["structuredContent"]["state"] == "FINALIZED"
        stages = [one["params"] for one in wire.parsed() if one.get("method") == "notifications/progress"]
        assert [one["progressToken"] for one in stages] == ["p"] * len(stages)
        assert len(stages) > 1


@pytest.mark.campaign
def test_a_hundred_turns_while_the_home_is_gone_are_taken_in_once_and_in_order(tmp_path: Path) -> None:
    laptop, home = tmp_path / "laptop", tmp_path / "home"
    with gate() as between, bridge(laptop, between.url) as wire:
        with home_behind(between, home):
            said(wire, 1, "record_messages", session_id="s", messages=turn(1))
        for number in range(2, 102):
            waits = said(wire, number, "record_messages", session_id="s", messages=turn(number))
            assert not waits["isError"]
            assert text_of(waits).startswith("Kept in this machine's outbox for session s, because the home")
            assert waits["structuredContent"]["outbox"] == text_of(waits)
        assert outbox_of(laptop).count() == 100
        with home_behind(between, home):
            delivered(laptop)
            said(wire, 200, "record_messages", session_id="s", messages=turn(102))
    assert texts_at(home) == turns(range(1, 103))


def test_a_hundred_turns_at_once_are_taken_in_in_order_though_many_fail_on_the_way(tmp_path: Path) -> None:
    laptop, home = tmp_path / "laptop", tmp_path / "home"
    chance = random.Random(11)
    with gate() as between, bridge(laptop, between.url) as wire, home_behind(between, home):
        said(wire, 1, "record_messages", session_id="s", messages=turn(1))
        between.next = [(503, {}, b"busy") if chance.random() < 0.3 else None for _ in range(200)]
        between.loses = ["record_messages"] * 5
        wire.send(*(call(n, "record_messages", session_id="s", messages=turn(n)) for n in range(2, 102)))
        for number in range(2, 102):
            if all(one.get("id") != number for one in wire.parsed()):
                wire.answer(number)
        between.next.clear()
        delivered(laptop)
    assert not any(one["result"]["isError"] for one in wire.parsed())
    assert texts_at(home) == turns(range(1, 102))


@pytest.mark.parametrize("is_ended", [False, True])
def test_what_is_not_taken_in_when_the_host_leaves_waits(tmp_path: Path, *, is_ended: bool) -> None:
    laptop, home = tmp_path / "laptop", tmp_path / "home"
    with gate() as between:
        between.holds["record_messages"] = threading.Event()
        with home_behind(between, home):
            with bridge(laptop, between.url) as wire:
                wire.send(*(call(n, "record_messages", session_id="s", messages=turn(n)) for n in range(1, 4)))
                until(lambda: "record_messages" in [name for name, _ in between.seen], "the first is sent")
                wire.close_stdin()
                if is_ended:  # SDKs do so with a server that is still there after two seconds
                    time.sleep(1)
                    wire.process.send_signal(signal.SIGTERM)
                wire.exit_code()
            assert outbox_of(laptop).count() == 3
            between.holds["record_messages"].set()
            with bridge(laptop, between.url):
                delivered(laptop)
    assert texts_at(home) == turns(range(1, 4))


def test_what_waits_survives_the_death_of_the_bridge_and_of_the_home(tmp_path: Path) -> None:
    laptop, home = tmp_path / "laptop", tmp_path / "home"
    number = 0
    with gate() as between:
        for _ in range(3):
            with bridge(laptop, between.url) as wire:
                for _ in range(6):
                    number += 1
                    said(wire, number, "record_messages", session_id="s", messages=turn(number))
                with home_behind(between, home) as process:
                    # Some are delivered, then both are killed in the middle of the rest.
                    until(lambda: outbox_of(laptop).count() < 4, "some turns are delivered")
                    process.send_signal(signal.SIGKILL)
                    wire.process.send_signal(signal.SIGKILL)
                    process.wait()
                    wire.process.wait()
        with home_behind(between, home), bridge(laptop, between.url):
            delivered(laptop)
    assert texts_at(home) == turns(range(1, number + 1))


def test_an_answer_that_was_lost_stores_nothing_twice(tmp_path: Path) -> None:
    laptop, home = tmp_path / "laptop", tmp_path / "home"
    with gate() as between, home_behind(between, home), bridge(laptop, between.url, is_covered=True) as wire:
        said(wire, 1, "record_messages", session_id="s", messages=turn(1))
        wire.send(request(0, "tools/list"))
        schemas = {tool["name"]: tool.get("outputSchema", {}) for tool in wire.answer(0)["result"]["tools"]}
        tools = {
            "record_messages": {"messages": turn(2)},
            "create_pin": {"session_id": "s", "content": "Ines is allergic to nuts."},
            "remember": {"type": "task", "text": "Buy a leash."},
            "record_feedback": {"target_id": "msg_2", "label": "up", "note": "good"},
            "summarize_session": {"session_id": "s", "done": ["We spoke of numbers."]},
        }
        for number, (tool, arguments) in enumerate(tools.items(), start=2):
            # The first answer, and that to the repetition on a new connection.
            between.loses += [tool, tool]
            result = said(wire, number, tool, **arguments)
            assert text_of(result).startswith("Kept in this machine's outbox"), result
            delivered(laptop)
            assert outbox_of(laptop).refused() == []
            assert not between.loses
            jsonschema.validate(result["structuredContent"], schemas[tool])
    assert texts_at(home) == turns(range(1, 3))
    assert texts_at(home, "pin").count("Ines is allergic to nuts.") == 1
    assert texts_at(home, "task") == ["Buy a leash."]
    assert texts_at(home, "summary") == ["Done:\nWe spoke of numbers."]


@pytest.mark.campaign
def test_two_bridges_share_one_outbox_and_lose_nothing(tmp_path: Path) -> None:
    laptop, home = tmp_path / "laptop", tmp_path / "home"
    with gate() as between, bridge(laptop, between.url) as one, bridge(laptop, between.url) as other:
        for number in range(1, 21):
            wire = one if number % 2 else other
            said(wire, number, "record_messages", session_id="s", messages=turn(number))
        with home_behind(between, home):
            delivered(laptop)
            one.send(*(call(n, "record_messages", session_id="one", messages=turn(n)) for n in range(100, 110)))
            other.send(*(call(n, "record_messages", session_id="other", messages=turn(n)) for n in range(200, 210)))
            for number in range(100, 110):
                one.answer(number)
                other.answer(number + 100)
            delivered(laptop)
    stored = texts_at(home)
    ones, others = turns(range(100, 110)), turns(range(200, 210))
    assert stored[:40] == turns(range(1, 21))
    assert stored[40:] in (ones + others, others + ones)  # whichever session was first


def test_the_homes_last_answer_says_how_old_it_is(tmp_path: Path) -> None:
    laptop, home = tmp_path / "laptop", tmp_path / "home"
    with gate() as between, bridge(laptop, between.url, is_covered=True) as wire:
        with home_behind(between, home):
            said(wire, 1, "record_messages", session_id="s", messages=turn(1))
            fresh = said(wire, 2, "search_memory", query="question")
            said(wire, 3, "build_context", session_id="s", query="question")
        old = said(wire, 4, "search_memory", query="question")
        first, _, rest = text_of(old).partition("\n")
        assert first.startswith("[the home of this memory, http://127.0.0.1:")
        assert "cannot be used now (it answers 503): this is its last answer to this, " in first
        assert rest == text_of(fresh)
        content = old["structuredContent"]
        assert content.pop("old_answer") == first
        assert content == fresh["structuredContent"]
        said(wire, 5, "record_messages", session_id="s", messages=turn(2))
        other = said(wire, 6, "build_context", session_id="s", query="something else")
        assert "this is the last context of this conversation, for another query" in text_of(other)
        assert "what 1 call from this machine recorded is not in it yet" in text_of(other)
        assert "question 1" in text_of(other)
        none = said(wire, 7, "build_context", session_id="unknown", query="question")
        assert none["isError"]
        assert text_of(none).startswith("home_away: ")
        kept = laptop / "memory.db.home" / "answers"
        assert {file.stat().st_mode & 0o777 for file in kept.iterdir()} == {0o600}
        # The token is read for each request. What the home told another one, it may not tell this one.
        connected(laptop, between.url, TOKEN.swapcase())
        for number, (tool, asked) in enumerate((("search_memory", {}), ("build_context", {"session_id": "s"})), 8):
            told = said(wire, number, tool, query="question", **asked)
            assert text_of(told).startswith("home_away: "), told


def test_an_erasure_is_never_pretended_and_deletes_the_kept_answers(tmp_path: Path) -> None:
    laptop, home = tmp_path / "laptop", tmp_path / "home"
    answers = Answers(laptop / "memory.db.home" / "answers")
    with gate() as between, bridge(laptop, between.url, is_covered=True) as wire:
        with home_behind(between, home):
            said(wire, 1, "record_messages", session_id="s", messages=turn(1))
            said(wire, 2, "search_memory", query="question")
        refused = said(wire, 3, "forget", record_ids=["msg_1"])
        assert refused["isError"]
        assert "forget needs it, so nothing was changed" in text_of(refused)
        assert answers.count()
        with home_behind(between, home):
            until(lambda: not said(wire, 4, "forget", record_ids=["msg_1"])["isError"], "the home is back")
        assert not answers.count()
    assert texts_at(home) == ["answer 1"]


def test_what_the_home_refuses_for_good_is_put_aside_and_holds_nothing_up(tmp_path: Path) -> None:
    laptop, home = tmp_path / "laptop", tmp_path / "home"
    with gate() as between, bridge(laptop, between.url, is_covered=True) as wire:
        said(wire, 1, "record_feedback", target_id="msg_99", label="up")
        said(wire, 2, "record_messages", session_id="s", messages=turn(1))
        with home_behind(between, home):
            delivered(laptop)
        [refused] = outbox_of(laptop).refused()
        assert refused.reason is not None
        assert refused.reason.startswith("record_not_found: ")
    assert texts_at(home) == turns(range(1, 2))


def test_a_wrong_argument_is_refused_at_once_while_the_home_is_away(tmp_path: Path) -> None:
    with gate() as between, bridge(tmp_path / "laptop", between.url) as wire:
        wrong = said(wire, 1, "record_messages", messages=[{"role": "robot", "text": "x"}])
        assert wrong["isError"]
        assert text_of(wrong).startswith("invalid_input: messages[0].role must be 'user'")
        assert outbox_of(tmp_path / "laptop").count() == 0


def test_secrets_do_not_wait(tmp_path: Path) -> None:
    laptop = tmp_path / "laptop"
    secret = "ghp_" + "k3Jd9QmZ7xVb2LsR8tWc5NyH1pFa6GeU0oTi"
    with gate() as between, bridge(laptop, between.url) as wire:
        message = {"role": "user", "text": f"the token is {secret}", "client_key": "k"}
        waits = said(wire, 1, "record_messages", session_id="s", messages=[message])
        assert "Removed and not stored: github_token" in text_of(waits)
        [file] = (laptop / "memory.db.home" / "outbox").iterdir()
        assert file.stat().st_mode & 0o777 == 0o600
        assert secret not in file.read_text()
        assert '"client_key": "k"' in file.read_text()


def test_nothing_waits_while_this_machine_is_paused(tmp_path: Path) -> None:
    laptop = tmp_path / "laptop"
    with gate() as between, bridge(laptop, between.url, is_covered=True) as wire:
        write_switch(LocalFiles(laptop / "memory.db").switch, Switch(FOR_EVER))
        refused = said(wire, 1, "record_messages", session_id="s", messages=turn(1))
        assert text_of(refused).startswith("conflict: the memory is paused")
        hook(laptop, "claude-code", "UserPromptSubmit", {"session_id": "c", "prompt": "hello", "cwd": "/"})
        assert outbox_of(laptop).count() == 0


def test_what_was_said_before_a_pause_waits_for_its_end(tmp_path: Path) -> None:
    laptop, home = tmp_path / "laptop", tmp_path / "home"
    with gate() as between, bridge(laptop, between.url) as wire:
        said(wire, 1, "record_messages", session_id="s", messages=turn(1))
        write_switch(LocalFiles(laptop / "memory.db").switch, Switch(FOR_EVER))
        with home_behind(between, home):
            assert not said(wire, 2, "search_memory", query="question")["isError"]
            assert outbox_of(laptop).count() == 1
            write_switch(LocalFiles(laptop / "memory.db").switch, Switch())
            delivered(laptop)
    assert texts_at(home) == turns(range(1, 2))


def test_a_wrong_token_is_no_reason_to_lose_anything(tmp_path: Path) -> None:
    laptop, home = tmp_path / "laptop", tmp_path / "home"
    with gate() as between, home_behind(between, home), bridge(laptop, between.url, is_covered=True) as wire:
        between.token = TOKEN[::-1]
        waits = said(wire, 1, "record_messages", session_id="s", messages=turn(1))
        assert "it rejected the token (401)" in text_of(waits)
        assert "Kept in this machine's outbox" in text_of(waits)
        assert TOKEN not in text_of(waits)
        between.token = TOKEN
        delivered(laptop)
    assert texts_at(home) == turns(range(1, 2))


def test_a_redirect_to_another_origin_gets_nothing(tmp_path: Path) -> None:
    with gate() as between, gate() as stranger, bridge(tmp_path / "laptop", between.url) as wire:
        for status in (301, 302, 307, 308):
            between.answers["*"] = (status, {"Location": stranger.url}, b"")
            waits = said(wire, status, "record_messages", session_id="s", messages=turn(status))
            assert "Kept in this machine's outbox" in text_of(waits)
        assert stranger.seen == []


def test_a_home_that_does_not_listen_costs_no_time(tmp_path: Path) -> None:
    with bridge(tmp_path / "laptop", f"http://127.0.0.1:{closed_port()}/mcp") as wire:
        assert "(no connection)" in text_of(said(wire, 1, "record_messages", session_id="s", messages=turn(1)))


def test_a_call_that_the_host_cancels_is_cancelled_at_the_home(tmp_path: Path) -> None:
    asked, left = threading.Event(), threading.Event()

    class Silent(socketserver.BaseRequestHandler):
        """A home that never answers."""

        def handle(self) -> None:
            received = b""
            while part := self.request.recv(65_536):
                received += part
                if b"search_memory" in received:
                    asked.set()
            if b"search_memory" in received:
                left.set()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Silent) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        with bridge(tmp_path / "laptop", f"http://127.0.0.1:{server.server_address[1]}/mcp", is_covered=True) as wire:
            wire.send(call(1, "search_memory", query="x"))
            assert asked.wait(PATIENCE_S)
            wire.send(line({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}))
            assert left.wait(PATIENCE_S)
        server.shutdown()


def test_a_host_without_a_home_file_uses_the_memory_here(tmp_path: Path) -> None:
    with served(tmp_path / "memory.db") as wire:
        said(wire, 1, "record_messages", session_id="s", messages=turn(1))
    assert texts_at(tmp_path) == turns(range(1, 2))


def test_a_damaged_home_file_is_told_and_the_memory_here_stays_untouched(tmp_path: Path) -> None:
    database = connected(tmp_path, "http://127.0.0.1:1")
    (tmp_path / "memory.db.home" / "connection.json").write_text("{")
    with served(database) as wire:
        refused = said(wire, 1, "record_messages", session_id="s", messages=turn(1))
        assert "it is unknown where the memory is: run `kalito-mcp connect` again" in text_of(refused)
    assert not database.exists()


@pytest.mark.parametrize("is_home_there", [True, False])
def test_a_hook_reports_to_the_home(tmp_path: Path, *, is_home_there: bool) -> None:
    laptop, home = tmp_path / "laptop", tmp_path / "home"
    with gate() as between, bridge(laptop, between.url, is_covered=True) as wire:
        with home_behind(between, home):
            said(wire, 1, "create_pin", session_id="s", content="Ines is allergic to nuts.", scope="person")
            until(lambda: bool(list((laptop / "memory.db.hooks").glob("server-*.json"))), "the bridge listens")
            if is_home_there:
                said_back = hook(
                    laptop, "claude-code", "UserPromptSubmit", {"session_id": "c", "prompt": "Dinner for Ines?"}
                )
                until(lambda: "Dinner for Ines?" in texts_at(home), "the prompt is recorded")
                assert "nuts" in said_back or not said_back  # a busy machine may be too late for the prompt
        if not is_home_there:
            hook(laptop, "claude-code", "UserPromptSubmit", {"session_id": "c", "prompt": "Dinner for Ines?"})
            hook(laptop, "claude-code", "Stop", {"session_id": "c", "last_assistant_message": "Without nuts."})
            until(lambda: outbox_of(laptop).count() == 2, "both wait")
            with home_behind(between, home):
                delivered(laptop)
            assert texts_at(home)[-2:] == ["Dinner for Ines?", "Without nuts."]


def test_one_repository_on_two_machines_is_one_project(tmp_path: Path) -> None:
    laptop, desktop, home = tmp_path / "laptop", tmp_path / "desktop", tmp_path / "home"
    config = '[remote "origin"]\n\turl = git@github.com:ann/app.git\n'
    for folder in (tmp_path / "Users" / "app", tmp_path / "src" / "other-name"):
        (folder / ".git").mkdir(parents=True)
        (folder / ".git" / "config").write_text(config)
    places = {"KALITO_PROJECT": str(tmp_path / "Users" / "app"), "KALITO_SESSION": "of-laptop"}
    others = {"KALITO_PROJECT": str(tmp_path / "src" / "other-name"), "KALITO_SESSION": "of-desktop"}
    with gate() as between, home_behind(between, home):
        with bridge(laptop, between.url, **places) as wire:
            recorded = said(wire, 1, "record_messages", messages=turn(1))["structuredContent"]
            assert (recorded["session_id"], recorded["project"]) == ("of-laptop", "github.com/ann/app")
            assert "question 1" in text_of(said(wire, 2, "build_context"))
        with bridge(desktop, between.url, **others) as wire:
            [hit] = said(wire, 1, "search_memory", query="question")["structuredContent"]["hits"]
            assert hit["session_id"] == "of-laptop"
            elsewhere = said(wire, 2, "search_memory", query="question", project=str(tmp_path / "Users"))
            assert elsewhere["structuredContent"]["hits"] == []


def test_a_host_without_a_session_is_told_the_one_that_waits(tmp_path: Path) -> None:
    laptop, home = tmp_path / "laptop", tmp_path / "home"
    with gate() as between, bridge(laptop, between.url, is_covered=True) as wire:
        session = said(wire, 1, "record_messages", messages=turn(1))["structuredContent"]["session_id"]
        assert session.startswith("session_")
        assert "session_id is missing" in text_of(said(wire, 2, "create_pin", content="Likes tea."))
        with home_behind(between, home):
            delivered(laptop)
            again = said(wire, 3, "record_messages", session_id=session, messages=turn(2))
    assert again["structuredContent"]["total_messages"] == 4


def test_what_waited_keeps_the_moment_that_it_was_said(tmp_path: Path) -> None:
    laptop, home = tmp_path / "laptop", tmp_path / "home"
    dated = {"role": "user", "text": "dated", "created_at": "2026-03-01T10:00:00Z"}
    with gate() as between, bridge(laptop, between.url) as wire:
        before = datetime.now(UTC)
        said(wire, 1, "record_messages", session_id="s", messages=[dated, *turn(1)])
        after = datetime.now(UTC)
        with home_behind(between, home):
            delivered(laptop)
            found = said(wire, 2, "search_memory", query="question")["structuredContent"]["hits"]
            moment = datetime.fromisoformat(found[0]["created_at"])
            assert before.replace(microsecond=0) <= moment <= after
            [old] = said(wire, 3, "search_memory", query="dated")["structuredContent"]["hits"]
            assert old["created_at"].startswith("2026-03-01T10:00:00")


def test_a_subscriber_is_notified_of_what_its_host_records(tmp_path: Path) -> None:
    with (
        gate() as between,
        home_behind(between, tmp_path / "home"),
        bridge(tmp_path / "laptop", between.url, is_covered=True) as wire,
    ):
        listen = {"notifications": {"resourceSubscriptions": ["memory://sessions"]}}
        wire.send(request("listen", "subscriptions/listen", **listen), call(1, "list_tasks"))
        wire.answer(1)
        said(wire, 2, "record_messages", session_id="s", messages=turn(1))
        numbers = itertools.count(3)

        def is_notified() -> bool:
            said(wire, next(numbers), "list_tasks")
            updated = [one for one in wire.parsed() if one.get("method") == "notifications/resources/updated"]
            return [one["params"]["uri"] for one in updated] == ["memory://sessions"]

        until(is_notified, "the notification")


def test_a_hook_reads_the_reply_on_the_machine_that_has_it(tmp_path: Path) -> None:
    laptop, home = tmp_path / "laptop", tmp_path / "home"
    transcript = tmp_path / "events.jsonl"
    events = [
        {"type": "user.message", "data": {"content": "Hello?"}},
        {"type": "assistant.message", "data": {"content": "Hello from the transcript."}},
        {"type": "hook.start", "data": {"hookType": "agentStop", "input": {"timestamp": 5}}},
    ]
    transcript.write_text("".join(json.dumps(one) + "\n" for one in events))
    stopped = {"sessionId": "c", "timestamp": 5, "transcriptPath": str(transcript), "cwd": str(tmp_path)}
    with gate() as between, home_behind(between, home), bridge(laptop, between.url, is_covered=True):
        until(lambda: bool(list((laptop / "memory.db.hooks").glob("server-*.json"))), "the bridge listens")
        hook(laptop, "copilot", "agentStop", stopped)
        until(lambda: texts_at(home) == ["Hello from the transcript."], "the reply is recorded")
        sent = [headers for name, headers in between.seen if name == "hook_event"]
        assert sent


def test_a_home_reads_no_file_that_a_report_names(tmp_path: Path) -> None:
    home = tmp_path / "home"
    transcript = tmp_path / "events.jsonl"
    told = {"type": "assistant.message", "data": {"content": "a file of the home"}}
    stopped = {"type": "hook.start", "data": {"hookType": "agentStop", "input": {"timestamp": 5}}}
    transcript.write_text(json.dumps(told) + "\n" + json.dumps(stopped) + "\n")
    payload = {"sessionId": "c", "timestamp": 5, "transcriptPath": str(transcript)}
    report = {"host": "copilot", "event": "agentStop", "payload": payload, "id": "r"}
    with gate() as between, home_behind(between, home):

        async def send() -> dict[str, Any]:
            asked = Home(connection_to(between.url), lambda: TOKEN)
            async with asked.open():
                params = {"name": "hook_event", "arguments": {}}
                meta = {"kalito/report": report, "kalito/late": True}
                await asked.request("tools/call", {"name": "list_tasks", "arguments": {}}, Caller())
                return await asked.request("tools/call", params, Caller(), meta=meta)

        assert text_of(anyio.run(send)) == ""
    assert texts_at(home) == []


def test_a_hook_in_an_excluded_folder_is_not_passed_on(tmp_path: Path) -> None:
    laptop, home = tmp_path / "laptop", tmp_path / "home"
    diary = tmp_path / "diary"
    diary.mkdir()
    with gate() as between, home_behind(between, home), bridge(laptop, between.url, KALITO_PROJECT=str(diary)) as wire:
        write_switch(LocalFiles(laptop / "memory.db").switch, Switch(excluded=(str(diary),)))
        assert "it is excluded" in text_of(said(wire, 1, "record_messages", session_id="s", messages=turn(1)))
        until(lambda: bool(list((laptop / "memory.db.hooks").glob("server-*.json"))), "the bridge listens")
        hook(laptop, "claude-code", "UserPromptSubmit", {"session_id": "c", "prompt": "dear diary", "cwd": str(diary)})
        hook(laptop, "claude-code", "UserPromptSubmit", {"session_id": "d", "prompt": "hello", "cwd": str(tmp_path)})
        until(lambda: texts_at(home) == ["hello"], "the other prompt is recorded")
        delivered(laptop)  # what took too long comes once more, and is not stored twice
    assert texts_at(home) == ["hello"]


def test_hooks_of_a_connected_machine_are_not_taken_by_a_server_of_its_own_memory(tmp_path: Path) -> None:
    database = connected(tmp_path / "laptop", f"http://127.0.0.1:{closed_port()}")
    with web("http", database):
        hook(tmp_path / "laptop", "claude-code", "UserPromptSubmit", {"session_id": "c", "prompt": "for the home"})
        assert Spool(LocalFiles(database).spool).count() == 1


def test_a_pause_of_the_home_holds_for_this_machine_and_what_waits_is_kept(tmp_path: Path) -> None:
    laptop, home = tmp_path / "laptop", tmp_path / "home"
    with gate() as between, bridge(laptop, between.url) as wire:
        said(wire, 1, "record_messages", session_id="s", messages=turn(1))
        home.mkdir()
        write_switch(LocalFiles(home / "memory.db").switch, Switch(FOR_EVER))
        with home_behind(between, home):
            refused = said(wire, 2, "record_messages", session_id="s", messages=turn(2))
            assert text_of(refused).startswith("conflict: the memory is paused")
            assert outbox_of(laptop).count() == 1
            write_switch(LocalFiles(home / "memory.db").switch, Switch())
            delivered(laptop)
    assert texts_at(home) == turns(range(1, 2))


def test_a_home_with_a_login_takes_a_token_of_its_own_and_no_other(tmp_path: Path) -> None:
    laptop, home = tmp_path / "laptop", tmp_path / "home"
    home.mkdir()
    with web("http", home / "memory.db", login=True) as running:
        token, reading = (made_at(home, permission) for permission in ("write", "read"))
        with served(connected(laptop, running.url, token)) as wire:
            assert not said(wire, 1, "record_messages", session_id="s", messages=turn(1))["isError"]
            erased = said(wire, 2, "forget", record_ids=["msg_1"], purge=True)
            assert text_of(erased).startswith("forbidden: this needs the permission admin")
            # The token is read for each request.
            connected(laptop, running.url, reading)
            assert not said(wire, 3, "search_memory", query="question")["isError"]
            waits = text_of(said(wire, 4, "record_messages", session_id="s", messages=turn(2)))
            assert "this needs the permission write, and the token has only read" in waits
            connected(laptop, running.url, TOKEN)
            assert "it rejected the token (401)" in text_of(said(wire, 5, "search_memory", query="other"))
            connected(laptop, running.url, token)
            delivered(laptop)
    assert texts_at(home) == turns(range(1, 3))


@pytest.mark.anyio
@pytest.mark.parametrize("era", first_of(["2026-07-28", "legacy"]))
@pytest.mark.parametrize("agrees", [True, False])
async def test_the_user_is_asked_on_this_machine_before_the_home_erases(
    tmp_path: Path, era: Any, *, agrees: bool
) -> None:
    laptop, home = tmp_path / "laptop", tmp_path / "home"
    asked: list[str] = []

    async def person(_context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={"erase": agrees})

    with gate() as between, home_behind(between, home):
        database = connected(laptop, between.url)
        environment = clean_environment(KALITO_DATABASE=str(database))
        server = StdioServerParameters(command=sys.executable, args=["-m", "kalito_mcp", "serve"], env=environment)
        async with Client(server, mode=era, elicitation_callback=person) as client:
            await client.call_tool("record_messages", {"session_id": "s", "messages": turn(1)})
            # The model's word is not enough where the user can be asked.
            arguments = {"record_ids": ["msg_1"], "purge": True, "confirmed": True}
            await client.call_tool("forget", arguments)
            listed = await client.list_resources(cursor="sessions")
            assert [str(one.uri) for one in listed.resources] == ["memory://sessions/s/stats"]
    assert len(asked) == 1
    assert "question 1" in asked[0]
    assert texts_at(home) == (["answer 1"] if agrees else turns(range(1, 2)))
