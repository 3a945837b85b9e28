"""Writes `catalogue.json` from what the server really answers: `python -m kalito_mcp.server.bake`, or `make catalogue`.

The server is driven over streams in memory, once in each protocol era. No memory is opened.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio
from mcp.shared._context_streams import create_context_streams
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

from kalito_mcp.server.app.offering import APP
from kalito_mcp.server.build import build_server

if TYPE_CHECKING:
    from kalito_mcp.memory import Memory

CATALOGUE: Final = Path(__file__).with_name("catalogue.json")
LISTS: Final = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
_LIBRARIES: Final = ("mcp", "mcp_types", "pydantic", "pydantic_core")
_META: Final = "io.modelcontextprotocol/"


@asynccontextmanager
async def _closed_memory() -> "AsyncIterator[Memory]":
    """The opener of a memory that nobody may use."""
    raise RuntimeError("a catalogue is made without a memory")
    yield


async def answers_to(requests: list[dict[str, Any]], **switches: bool) -> list[bytes]:
    """What a new server writes to each of these requests, which are sent one after the other."""
    server = build_server(_closed_memory, default_session=None, public_url="", **switches)
    core = server._lowlevel_server  # the SDK has no public way to use another transport
    core.lifespan = _no_lifespan
    send, incoming = create_context_streams[SessionMessage | Exception](0)
    outgoing, receive = create_context_streams[SessionMessage](0)
    found = []
    async with anyio.create_task_group() as tasks, receive:
        tasks.start_soon(core.run, incoming, outgoing, core.create_initialization_options())
        async with send:
            for request in requests:
                await send.send(SessionMessage(jsonrpc_message_adapter.validate_python(request, by_name=False)))
                answer = (await receive.receive()).message
                found.append(answer.model_dump_json(by_alias=True, exclude_unset=True).encode())
    return found


@asynccontextmanager
async def _no_lifespan(_server: Any) -> AsyncIterator[None]:
    yield


def legacy_requests(protocol: str = LATEST_HANDSHAKE_VERSION) -> list[dict[str, Any]]:
    """The requests of the 2025 protocol that the catalogue answers, in their order."""
    client = {"protocolVersion": protocol, "capabilities": {}, "clientInfo": {"name": "bake", "version": "1"}}
    return [_request("initialize", client), *(_request(method, None) for method in ("ping", *LISTS))]


def modern_requests() -> list[dict[str, Any]]:
    """The requests of the 2026 protocol that the catalogue answers."""
    meta = {f"{_META}protocolVersion": LATEST_MODERN_VERSION, f"{_META}clientCapabilities": {}}
    return [_request(method, {"_meta": meta}) for method in ("server/discover", *LISTS)]


def _request(method: str, params: dict[str, Any] | None) -> dict[str, Any]:
    request = {"jsonrpc": "2.0", "id": 1, "method": method}
    return request if params is None else {**request, "params": params}


async def baked() -> str:
    """The text of the catalogue."""
    legacy, modern = legacy_requests(), modern_requests()
    handshake, *others = await _results(legacy)
    [with_hooks, *_] = await _results(legacy[:1], has_hooks=True)
    content = {
        "made with": {name: version(name) for name in _LIBRARIES},
        "instructions with hooks": with_hooks["instructions"],
        "app": APP,
        "legacy": {
            "versions": list(HANDSHAKE_PROTOCOL_VERSIONS),
            "initialize": handshake,
            "answers": _by_method(legacy[1:], others),
            "memory tool": await _last_tools(legacy, 1, has_memory_tool=True),
            "hook tool": await _last_tools(legacy, 1, has_hooks=True),
            "chatgpt tools": await _last_tools(legacy, 2, has_chatgpt=True),
        },
        "modern": {
            "version": LATEST_MODERN_VERSION,
            "answers": _by_method(modern, await _results(modern)),
            "memory tool": await _last_tools(modern, 1, has_memory_tool=True),
            "hook tool": await _last_tools(modern, 1, has_hooks=True),
            "chatgpt tools": await _last_tools(modern, 2, has_chatgpt=True),
        },
    }
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


async def _results(requests: list[dict[str, Any]], **switches: bool) -> list[Any]:
    return [json.loads(line)["result"] for line in await answers_to(requests, **switches)]


async def _last_tools(requests: list[dict[str, Any]], count: int, **switches: bool) -> Any:
    """The last tools of a server with this many optional ones, as listed in this era: the order of keys differs."""
    lines = await answers_to(requests, **switches)
    results = [json.loads(line)["result"] for line in lines]
    return next(result["tools"] for result in results if "tools" in result)[-count:]


def _by_method(requests: list[dict[str, Any]], results: list[Any]) -> dict[str, Any]:
    return {request["method"]: result for request, result in zip(requests, results, strict=True)}


if __name__ == "__main__":
    CATALOGUE.write_text(anyio.run(baked), encoding="utf-8")
