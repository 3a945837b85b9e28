"""Calls that take long, over HTTP and SSE: their progress, their cancellation, and the end of the server meanwhile."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.types import CallToolResult
from starlette.applications import Starlette
from starlette.testclient import TestClient

from kalito_mcp.access.policy import HttpPolicy
from kalito_mcp.domain.records import NewMessage, Role
from kalito_mcp.domain.scope import LOCAL_OWNER
from kalito_mcp.exchange.archive import archive_pieces
from kalito_mcp.memory import Memory
from kalito_mcp.server.build import build_server
from kalito_mcp.server.web_app import http_app
from kalito_mcp.web.health import health_routes
from kalito_mcp.wiring import open_memory
from tests.flows.harness import said, text_of
from tests.flows.test_transports import TRANSPORTS, client
from tests.inference.model_server import ScriptedServer
from tests.server.web import Web, web
from tests.server.wire import PATIENCE_S

pytestmark = pytest.mark.anyio


class SlowModel:
    """A model that answers when it is told to, and notices when its client has had enough."""

    def __init__(self) -> None:
        self.is_asked = anyio.Event()
        self.is_left = anyio.Event()
        self.may_answer = anyio.Event()

    async def __call__(self, writer: asyncio.StreamWriter) -> None:
        self.is_asked.set()
        answer = {"model": "m", "message": {"role": "assistant", "content": "The kite is in the attic."}, "done": True}
        try:
            writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
            while not self.may_answer.is_set():
                writer.write(b" ")  # JSON may begin with spaces
                await writer.drain()
                with anyio.move_on_after(0.01):
                    await self.may_answer.wait()
            writer.write(json.dumps(answer).encode())
            await writer.drain()
        except ConnectionError:
            self.is_left.set()
            raise


@asynccontextmanager
async def serving(transport: str, tmp_path: Path) -> AsyncIterator[tuple[Web, SlowModel]]:
    """A server whose summaries are written by a slow model."""
    model = SlowModel()
    async with ScriptedServer(model) as models:
        config = tmp_path / "kalito.toml"
        config.write_text(
            f'[models]\nembedder = "none"\nsummaries = "m"\n'
            f'[[servers]]\nname = "slow"\nkind = "ollama"\nurl = "{models.url}"\nmodels = ["*"]\nmax_retries = 0\n'
        )
        with web(transport, tmp_path / "memory.db", KALITO_CONFIG=str(config)) as one:
            yield one, model


async def record(connected: Client) -> None:
    result = await connected.call_tool("record_messages", {"session_id": "s", "messages": said("A kite in the attic.")})
    assert isinstance(result, CallToolResult)
    assert not result.is_error, text_of(result)


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_long_call_reports_its_progress(tmp_path: Path, transport: str, era: str) -> None:
    told: list[tuple[float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    with web(transport, tmp_path / "memory.db") as one:
        async with client(one.url, era) as connected:
            await record(connected)
            await connected.call_tool("finalize_session", {"session_id": "s"}, progress_callback=hear)
    assert told == [
        (0, 4, "summaries"),
        (1, 4, "sleep"),
        (2, 4, "promotion"),
        (3, 4, "checkpoint"),
        (4, 4, "finalized"),
    ]


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_call_that_its_host_cancels_stops(tmp_path: Path, transport: str, era: str) -> None:
    async with serving(transport, tmp_path) as (one, model), client(one.url, era) as connected:
        await record(connected)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(connected.call_tool, "summarize_session", {"session_id": "s"})
            with anyio.fail_after(PATIENCE_S):
                await model.is_asked.wait()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(PATIENCE_S):
            await model.is_left.wait()
        await record(connected)
    async with open_memory(tmp_path / "memory.db") as memory:
        assert (await memory.conversations.stats("s")).total_summaries == 0


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_at_its_end_a_server_finishes_what_runs(tmp_path: Path, transport: str, era: str) -> None:
    answers: list[Any] = []
    async with serving(transport, tmp_path) as (one, model), client(one.url, era) as connected:
        await record(connected)
        await connected.list_tools()  # else the client asks for it, to check the answer, when nobody listens any more

        async def summarize() -> None:
            answers.append(await connected.call_tool("summarize_session", {"session_id": "s"}))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(summarize)
            with anyio.fail_after(PATIENCE_S):
                await model.is_asked.wait()
                one.process.send_signal(signal.SIGTERM)
                await refuses_connections(one.url)
            model.may_answer.set()
        [answer] = answers
        assert "Made 1 summary" in text_of(answer)
        assert await anyio.to_thread.run_sync(one.process.wait, PATIENCE_S) == 0
    assert b"Traceback" not in b"".join(one.log)
    async with open_memory(tmp_path / "memory.db") as memory:
        assert (await memory.conversations.stats("s")).total_summaries == 1


async def test_the_end_waits_for_requests_of_rest_too(database: Path) -> None:
    may_open = anyio.Event()

    @asynccontextmanager
    async def opened_later() -> AsyncIterator[Memory]:
        await may_open.wait()
        async with open_memory(database) as memory:
            yield memory

    server = build_server(opened_later)
    app = http_app(server, "http", HttpPolicy(), 80, owner=LOCAL_OWNER, exporter=archive_pieces)
    answers: list[int] = []
    async with server.opened.open(), httpx2.AsyncClient(transport=httpx2.ASGITransport(app)) as http:

        async def ask() -> None:
            answers.append((await http.get("http://127.0.0.1/api/sessions")).status_code)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            with anyio.move_on_after(0.05) as limit:
                await server.draining.calls_ended()
            assert limit.cancelled_caught
            may_open.set()
        assert answers == [200]
        await server.draining.calls_ended()


async def refuses_connections(url: str) -> None:
    """Wait until nobody listens any more."""
    address = urlsplit(url)
    assert address.hostname is not None
    assert address.port is not None
    with suppress(OSError):
        while True:
            async with await anyio.connect_tcp(address.hostname, address.port):
                await anyio.sleep(0.02)  # between two tries; the end of the loop is the refusal


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_at_its_end_a_server_ends_subscriptions_as_the_protocol_says(tmp_path: Path, transport: str) -> None:
    with web(transport, tmp_path / "memory.db") as one:
        async with client(one.url, "2026-07-28") as connected:
            async with connected.listen(resource_subscriptions=["memory://sessions"]) as events:
                one.process.send_signal(signal.SIGTERM)
                with anyio.fail_after(PATIENCE_S):
                    assert [event async for event in events] == []  # raises if the stream was lost
            assert await anyio.to_thread.run_sync(one.process.wait, PATIENCE_S) == 0


async def test_a_server_that_ends_is_not_ready(database: Path) -> None:
    is_ending = False
    async with open_memory(database) as memory:
        await memory.record_messages("s", [NewMessage(Role.USER, "x")])

        async def opened() -> Any:
            return memory

        app = TestClient(Starlette(routes=health_routes(opened, lambda: is_ending)))
        assert (await anyio.to_thread.run_sync(app.get, "/health/live")).status_code == 200
        is_ending = True
        ready = await anyio.to_thread.run_sync(app.get, "/health/ready")
        assert (ready.status_code, ready.json()) == (503, {"status": "ending"})
