"""The same conversation over every transport, with both protocol eras: real processes, real sockets."""

import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.types import CallToolResult, TextResourceContents

from tests.flows.harness import assert_states, said, stats_uri, text_of
from tests.server.web import Web, web
from tests.server.wire import COVERED, MODERN, PATIENCE_S, call, clean_environment, served

pytestmark = pytest.mark.anyio

TRANSPORTS = ("http", "sse")


@pytest.fixture(scope="module", params=TRANSPORTS)
def serving(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    database = tmp_path_factory.mktemp("web") / "memory.db"
    with web(request.param, database, KALITO_SESSION="not for guests", CLAUDE_CODE_SESSION_ID="nor this") as one:
        yield one


def client(url: str, era: str) -> Client:
    return Client(sse_client(url) if url.endswith("/sse") else url, mode=era)


def stdio(database: Path, **environment: str) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "kalito_mcp", "serve"],
        env=clean_environment(KALITO_DATABASE=str(database), **environment),
    )


async def converses(connected: Client, session_id: str) -> None:
    """Record, read back, search, summarise and close, over this connection."""

    async def call(tool: str, **arguments: object) -> CallToolResult:
        result = await connected.call_tool(tool, arguments)
        assert isinstance(result, CallToolResult)
        assert not result.is_error, text_of(result)
        if result.structured_content is not None:
            assert_states(text_of(result), result.structured_content)
        return result

    assert [tool.name for tool in (await connected.list_tools()).tools] == [
        "record_messages", "build_context", "search_memory", "create_pin", "summarize_session", "record_feedback",
        "finalize_session", "remember", "update_memory", "forget", "restore", "memory_history", "list_tasks",
    ]  # fmt: skip
    for text in ("The kite is in the 🏠 cellar.", "Understood."):
        await call("record_messages", session_id=session_id, messages=said(text))
    assert "cellar" in text_of(await call("build_context", session_id=session_id, query="kite"))
    await call("create_pin", session_id=session_id, content="The kite is in the cellar.")
    found = await call("search_memory", query="kite", session_id=session_id, types=["message"])
    assert found.structured_content is not None
    assert [hit["text"] for hit in found.structured_content["hits"]] == ["The kite is in the 🏠 cellar."]
    await call("summarize_session", session_id=session_id, summary="A kite was put away.")
    await call("record_feedback", target_id=found.structured_content["hits"][0]["record_id"], label="up")
    await call("finalize_session", session_id=session_id)
    [content] = (await connected.read_resource(stats_uri(session_id))).contents
    assert isinstance(content, TextResourceContents)
    assert json.loads(content.text)["state"] == "FINALIZED"
    assert "put away" in str(await connected.get_prompt("resume_session", {"session_id": session_id}))
    refused = await connected.call_tool("build_context", {"session_id": "nobody"})
    assert isinstance(refused, CallToolResult)
    assert refused.is_error


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28", "auto"])
async def test_a_conversation_over_http_and_sse(serving: Web, mode: str) -> None:
    async with client(serving.url, mode) as connected:
        assert connected.protocol_version == ("2025-11-25" if mode == "legacy" else "2026-07-28")
        await converses(connected, f"talk {mode}")


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_conversation_over_stdio(tmp_path: Path, mode: str) -> None:
    async with Client(stdio(tmp_path / "memory.db", **COVERED), mode=mode) as connected:
        assert connected.protocol_version == ("2025-11-25" if mode == "legacy" else "2026-07-28")
        assert connected.instructions is not None
        await converses(connected, "talk")


@pytest.mark.parametrize(
    ("environment", "session_id"),
    [
        ({"KALITO_SESSION": "mine", "CLAUDE_CODE_SESSION_ID": "hosts"}, "mine"),
        ({"KALITO_SESSION": "", "CLAUDE_CODE_SESSION_ID": "hosts"}, "hosts"),
    ],
)
def test_on_stdio_the_environment_names_the_session(
    tmp_path: Path, environment: dict[str, str], session_id: str
) -> None:
    with served(tmp_path / "memory.db", **environment) as wire:
        wire.send(call(1, "record_messages", messages=said("x")))
        assert wire.answer(1)["result"]["structuredContent"]["session_id"] == session_id


async def test_over_http_and_sse_the_environment_names_no_session(serving: Web, era: str) -> None:
    async with client(serving.url, era) as connected:
        result = await connected.call_tool("record_messages", {"messages": said("x")})
        assert isinstance(result, CallToolResult)
        assert (result.structured_content or {})["session_id"].startswith("session_")
        refused = await connected.call_tool("create_pin", {"content": "x", "scope": "session"})
        assert isinstance(refused, CallToolResult)
        assert "session_id is missing" in text_of(refused)


async def test_several_clients_share_one_memory(serving: Web) -> None:
    async def record(number: int) -> None:
        async with client(serving.url, "legacy" if number % 2 else "2026-07-28") as connected:
            result = await connected.call_tool(
                "record_messages", {"session_id": "shared", "messages": said(f"from {number}")}
            )
            assert isinstance(result, CallToolResult)
            assert not result.is_error

    async with anyio.create_task_group() as tasks:
        for number in range(6):
            tasks.start_soon(record, number)
    async with client(serving.url, "auto") as connected:
        [content] = (await connected.read_resource(stats_uri("shared"))).contents
        assert isinstance(content, TextResourceContents)
        assert json.loads(content.text)["total_messages"] == 6


def paths(url: str) -> list[tuple[str, str]]:
    """What a web page would try."""
    if url.endswith("/sse"):
        return [("GET", url), ("POST", url.removesuffix("sse") + "messages/?session_id=" + "0" * 32)]
    return [("GET", url), ("POST", url), ("DELETE", url)]


@pytest.mark.parametrize(
    ("header", "value", "status"),
    [
        ("Host", "evil.example", 421),
        ("Host", "evil.example:80", 421),
        ("Host", "127.0.0.1.evil.example", 421),
        ("Host", "169.254.169.254", 421),
        ("Origin", "https://evil.example", 403),
        ("Origin", "null", 403),
        ("Origin", "http://localhost.evil.example", 403),
    ],
)
async def test_a_foreign_host_or_origin_is_turned_away(serving: Web, header: str, value: str, status: int) -> None:
    async with httpx2.AsyncClient() as browser:
        for method, url in paths(serving.url):
            headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
            body = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}' if method == "POST" else None
            async with browser.stream(method, url, headers=headers | {header: value}, content=body) as answer:
                assert answer.status_code == status, (method, url)


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_sigterm_ends_the_process_under_a_connected_client(tmp_path: Path, transport: str) -> None:
    """An event stream, or a subscription, would never end by itself."""
    with web(transport, tmp_path / "memory.db") as serving:
        async with httpx2.AsyncClient(timeout=PATIENCE_S) as host:
            headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
            held = host.build_request("GET", serving.url, headers=headers)
            if transport == "http":
                listen = {"notifications": {"resourceSubscriptions": ["memory://sessions"]}, "_meta": MODERN}
                body = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": listen}
                headers |= {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen"}
                held = host.build_request("POST", serving.url, headers=headers, json=body)
            answer = await host.send(held, stream=True)
            assert answer.status_code == 200
            serving.process.send_signal(signal.SIGTERM)
            assert await anyio.to_thread.run_sync(serving.process.wait, PATIENCE_S) == 0
            await answer.aclose()
    assert (tmp_path / "memory.stdout").read_bytes() == b""
