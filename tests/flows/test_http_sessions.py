"""Sessions of the 2025 protocol over HTTP: a broken stream is resumed, and only by the principal of its session."""

import json
import tracemalloc
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import httpx2
import pytest
from mcp.server.streamable_http import GET_STREAM_KEY as NOTICES
from mcp.types import JSONRPCNotification, JSONRPCResponse

from kalito_mcp.domain.access import Permission
from kalito_mcp.server import mcp_sessions
from kalito_mcp.server.event_history import MOST_BYTES, MOST_EVENTS, EventHistories, SessionHistory
from kalito_mcp.wiring import open_memory
from tests.flows.harness import said
from tests.server.web import web
from tests.server.wire import PATIENCE_S
from tests.sign_in.harness import home

pytestmark = pytest.mark.anyio
JSON_AND_EVENTS: Final = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
CLIENT: Final = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "raw", "version": "1"},
}


class Host:
    """A host that sees the events of its streams."""

    def __init__(self, http: httpx2.AsyncClient, url: str, token: str) -> None:
        self.http, self.url = http, url
        self.headers = {**JSON_AND_EVENTS, "Authorization": f"Bearer {token}"}

    async def begin(self) -> str:
        """Begin a session. Returns its id."""
        async with self.posted("initialize", CLIENT) as answer:
            self.headers["Mcp-Session-Id"] = answer.headers["mcp-session-id"]
            await answer.aread()
        done = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await self.http.post(self.url, json=done, headers=self.headers)
        return self.headers["Mcp-Session-Id"]

    @asynccontextmanager
    async def posted(self, method: str, params: Mapping[str, Any], number: int = 1) -> AsyncIterator[httpx2.Response]:
        body = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        async with self.http.stream("POST", self.url, json=body, headers=self.headers) as answer:
            yield answer

    @asynccontextmanager
    async def resumed(self, event_id: str) -> AsyncIterator[httpx2.Response]:
        headers = {**self.headers, "Last-Event-ID": event_id}
        async with self.http.stream("GET", self.url, headers=headers) as answer:
            yield answer


async def events(answer: httpx2.Response) -> AsyncIterator[dict[str, str]]:
    """The server-sent events of an answer."""
    event: dict[str, str] = {}
    async for line in answer.aiter_lines():
        name, _, value = line.partition(": ")
        if line:
            event[name] = value
        elif event:
            yield event
            event = {}


@asynccontextmanager
async def hosts(tmp_path: Path, *owners: str) -> AsyncIterator[list[Host]]:
    """A server, and one host for each of the owners, with a token of its own."""
    database = tmp_path / "memory.db"
    async with open_memory(database) as memory:
        made = [await memory.access.create_token(Permission.WRITE, owner=owner, name=owner) for owner in owners]
    with web("http", database, login=True) as served:
        async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
            yield [Host(http, served.url, one.text) for one in made]


async def cut(host: Host, **call: Any) -> str:
    """Send a call and break its stream after the first event. Returns the id of that event."""
    async with host.posted("tools/call", call, number=7) as answer:
        return (await anext(events(answer)))["id"]


async def test_the_answer_to_a_call_whose_stream_broke_is_sent_again(tmp_path: Path) -> None:
    async with hosts(tmp_path, "ann") as [ann]:
        await ann.begin()
        last = await cut(ann, name="record_messages", arguments={"session_id": "s", "messages": said("A kite.")})
        async with ann.resumed(last) as answer:
            [found] = [json.loads(one["data"]) async for one in events(answer)]
        assert found["id"] == 7
        assert found["result"]["structuredContent"]["recorded"] == 1
        # Once more: it is still kept.
        async with ann.resumed(last) as answer:
            assert [json.loads(one["data"]) async for one in events(answer)] == [found]


async def test_a_program_that_forgets_its_sessions_leaves_the_others_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(mcp_sessions, "MOST_OF_ONE", 3)
    async with home(tmp_path) as at, httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        tokens = [await at.memory.access.create_token(Permission.WRITE, owner="ann") for _ in range(2)]
        forgetful, other = [Host(http, at.url, one.text) for one in tokens]
        for _ in range(3):
            await forgetful.begin()
            last = dict(forgetful.headers)
            del forgetful.headers["Mcp-Session-Id"]
        for _ in range(3):
            async with forgetful.posted("initialize", CLIENT) as answer:
                assert answer.status_code == 503
        assert [one.getMessage() for one in caplog.records if "efus" in one.getMessage()] == [
            "new sessions are refused: too many of one token are open; said once a minute"
        ]
        await other.begin()
        assert (await http.delete(at.url, headers=last)).status_code == 200
        await forgetful.begin()


async def test_a_session_is_nobody_else_s(tmp_path: Path) -> None:
    async with hosts(tmp_path, "ann", "ann", "ben") as [ann, other_token_of_ann, ben]:
        session = await ann.begin()
        last = await cut(ann, name="record_messages", arguments={"session_id": "s", "messages": said("A kite.")})
        for other in (other_token_of_ann, ben):
            await other.begin()
            async with other.resumed(last) as answer:
                assert [one async for one in events(answer)] == []  # their own session has no such event
            other.headers["Mcp-Session-Id"] = session
            async with other.resumed(last) as answer:
                assert answer.status_code == 404
            async with other.posted("ping", {}) as answer:
                assert answer.status_code == 404
            assert (await other.http.delete(other.url, headers=other.headers)).status_code == 404
        async with ann.posted("ping", {}) as answer:
            assert answer.status_code == 200


async def test_a_client_gets_what_it_accepts(tmp_path: Path) -> None:
    events_of = "text/event-stream"
    answered = {
        "application/json;q=0.9, text/event-stream": events_of,
        "*/*": events_of,
        "": events_of,
        "application/json": "application/json",
        "application/*": "application/json",
    }
    async with hosts(tmp_path, "ann") as [ann]:
        for accept, kind in answered.items():
            ann.headers["Accept"] = accept
            ann.headers.pop("Mcp-Session-Id", None)
            await ann.begin()
            async with ann.posted("tools/list", {}) as answer:
                assert (answer.status_code, answer.headers["content-type"]) == (200, kind), accept


async def test_a_client_that_begins_with_a_lost_session_gets_a_new_one(tmp_path: Path) -> None:
    async with hosts(tmp_path, "ann", "ben") as [ann, ben]:
        session = await ann.begin()
        for lost in (session, "nonsense"):
            ben.headers["Mcp-Session-Id"] = lost
            assert await ben.begin() != lost
        assert await ann.begin() == session


@pytest.mark.parametrize(("transport", "status"), [("http", 400), ("sse", 200)])
async def test_a_slash_at_the_end_of_a_path_is_ignored(tmp_path: Path, transport: str, status: int) -> None:
    with web(transport, tmp_path / "memory.db") as served:
        async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
            for end in ("", "/"):
                async with http.stream("GET", served.url + end, headers=JSON_AND_EVENTS) as answer:
                    assert answer.status_code == status


def message(text: str) -> JSONRPCNotification:
    return JSONRPCNotification(jsonrpc="2.0", method="notifications/message", params={"data": text})


async def replayed(history: SessionHistory, after: str) -> list[str] | None:
    """The texts that follow an event; None if the history does not know it."""
    found: list[str] = []

    async def send(event: Any) -> None:
        found.append(event.message.params["data"])

    return found if await history.replay_events_after(after, send) is not None else None


async def test_an_answer_that_comes_later_is_sent_then_and_ends_the_stream() -> None:
    history = EventHistories().new()
    begun = await history.store_event("1", None)
    sent: list[Any] = []
    has_begun = anyio.Event()

    async def send(event: Any) -> None:
        sent.append(event.message)
        has_begun.set()

    async with anyio.create_task_group() as tasks:
        await history.store_event("1", message("half"))
        tasks.start_soon(history.replay_events_after, begun, send)
        await has_begun.wait()
        answer = JSONRPCResponse(jsonrpc="2.0", id=1, result={})
        await history.store_event("1", answer)
    assert sent == [message("half"), answer]


async def test_only_what_followed_on_the_same_stream_is_sent_again() -> None:
    history = EventHistories().new()
    begun = await history.store_event(NOTICES, None)
    for stream, text in ((NOTICES, "a"), ("2", "other"), (NOTICES, "b")):
        await history.store_event(stream, message(text))
    assert await replayed(history, begun) == ["a", "b"]
    assert await replayed(history, "unknown") is None


async def test_a_history_knows_no_event_of_another_one() -> None:
    histories = EventHistories()
    ann, ben = histories.new(), histories.new()
    begun = await ann.store_event(NOTICES, None)
    await ben.store_event(NOTICES, None)
    await ben.store_event(NOTICES, message("secret"))
    assert await replayed(ben, begun) is None


async def test_a_session_keeps_so_many_events_and_bytes() -> None:
    history = EventHistories().new()
    first = await history.store_event(NOTICES, None)
    second = await history.store_event(NOTICES, None)
    for number in range(MOST_EVENTS - 1):
        await history.store_event(NOTICES, message(str(number)))
    assert await replayed(history, first) is None
    assert len(await replayed(history, second) or []) == MOST_EVENTS - 1
    await history.store_event(NOTICES, message("x" * MOST_BYTES))
    assert await replayed(history, second) is None
    last = await history.store_event(NOTICES, message("short"))
    assert history.size < 1_000
    assert await replayed(history, last) == []


async def test_an_answer_that_is_too_long_to_keep_is_sent_to_who_waits_for_it() -> None:
    history = EventHistories().new()
    begun = await history.store_event("1", None)
    sent: list[Any] = []

    async def send(event: Any) -> None:
        sent.append(event.message)

    answer = JSONRPCResponse(jsonrpc="2.0", id=1, result={"text": "x" * MOST_BYTES})
    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(history.replay_events_after, begun, send)
            await anyio.wait_all_tasks_blocked()
            await history.store_event("1", answer)
    assert sent == [answer]


async def test_a_history_takes_no_more_memory_than_it_counts() -> None:
    history = EventHistories().new()
    hits = [{"id": f"msg_{number}", "score": number / 7, "tags": ["a", "b"]} for number in range(20)]
    answers = [json.dumps({"jsonrpc": "2.0", "id": number, "result": {"hits": hits}}) for number in range(100)]
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for raw in answers:
            await history.store_event("1", JSONRPCResponse.model_validate_json(raw))
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert history.size / 2 < taken < 1.1 * history.size


async def test_making_room_looks_at_each_session_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, oldest = 0, SessionHistory.oldest

    def counted(history: SessionHistory) -> int:
        nonlocal looks
        looks += 1
        return oldest(history)

    monkeypatch.setattr(SessionHistory, "oldest", counted)
    histories = EventHistories(most_bytes=600_000)
    sessions = [histories.new() for _ in range(500)]
    for _ in range(5):
        for one in sessions:
            await one.store_event(NOTICES, None)
    assert sum(one.size for one in sessions) <= 600_000
    assert looks < 20 * 2_500


async def test_all_sessions_together_keep_so_many_bytes_the_newest() -> None:
    histories = EventHistories(most_bytes=100_000)
    old, new = histories.new(), histories.new()
    begun = await old.store_event(NOTICES, None)
    for number in range(50):
        await (old if number < 25 else new).store_event(NOTICES, message("x" * 5_000))
    assert old.size + new.size <= 100_000
    assert old.size == 0
    assert new.size > 80_000
    assert await replayed(old, begun) is None
    # The bytes of a session that has ended are free again.
    del new
    for _ in range(15):
        await old.store_event(NOTICES, message("x" * 5_000))
    assert old.size > 70_000
