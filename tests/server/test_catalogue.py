"""The baked answers equal the server's, byte for byte, and are given to no request that the server reads otherwise."""

import itertools
import json
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from kalito_mcp.server.bake import CATALOGUE, LISTS, answers_to, baked, legacy_requests, modern_requests
from kalito_mcp.server.catalogue import Catalogue, kind_of, load
from kalito_mcp.server.first_answers import CHATGPT_VARIABLE, MEMORY_TOOL_VARIABLE, switches
from tests.server.wire import MODERN

META = "io.modelcontextprotocol/"
INITIALIZE = legacy_requests()[0]


def catalogue() -> Catalogue:
    found = load()
    assert found is not None, "the catalogue was made with other versions; run `make catalogue`"
    return found


def declaring(request: dict[str, Any]) -> dict[str, Any]:
    """The request of a host that shows MCP Apps."""
    params = request.get("params", {})
    if "capabilities" in params:
        return request | {"params": params | {"capabilities": INTRODUCTIONS["VS Code"]}}
    if "_meta" in params:
        return request | {
            "params": {"_meta": params["_meta"] | {f"{META}clientCapabilities": INTRODUCTIONS["VS Code"]}}
        }
    return request


def lined(message: Any) -> bytes:
    return json.dumps(message).encode()


def test_the_catalogue_is_what_the_server_answers_today() -> None:
    assert CATALOGUE.read_text(encoding="utf-8") == anyio.run(baked), "run `make catalogue`"


@pytest.mark.parametrize("shows_apps", [False, True], ids=["plain", "with apps"])
@pytest.mark.parametrize(
    "requests",
    [modern_requests(), *(legacy_requests(version) for version in HANDSHAKE_PROTOCOL_VERSIONS)],
    ids=["2026-07-28", *HANDSHAKE_PROTOCOL_VERSIONS],
)
def test_each_answer_equals_the_server_s_byte_for_byte(requests: list[dict[str, Any]], *, shows_apps: bool) -> None:
    ours = catalogue()
    requests = [declaring(request) for request in requests] if shows_apps else requests
    numbers = itertools.cycle((0, 1, -7, "a-1", "x:y/z_.", 10**17))
    requests = [request | {"id": next(numbers)} for request in requests]
    assert [ours.answer(lined(request)) for request in requests] == anyio.run(answers_to, requests)


# What hosts that people use really send.
INTRODUCTIONS: dict[str, dict[str, Any]] = {
    "bare": {},
    "roots": {"roots": {}},
    "Claude Code": {"roots": {"listChanged": True}, "elicitation": {"form": {}, "url": {}}},
    "VS Code": {
        "roots": {"listChanged": True},
        "sampling": {},
        "elicitation": {"form": {}, "url": {}},
        "extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}},
    },
    "unknown": {"somethingNew": [1, "x", None]},
    "experimental": {"experimental": {"a": {"b": [1, {"c": "d"}]}}},
}
CLIENTS: dict[str, dict[str, Any]] = {
    "short": {"name": "a", "version": "1"},
    "long": {"name": "a", "title": "A", "version": "2", "description": "café", "websiteUrl": "https://example.com"},
}


def test_the_handshakes_of_known_hosts_are_answered_as_by_the_server() -> None:
    for capabilities, client in zip(INTRODUCTIONS, [*CLIENTS] * 3, strict=True):
        said = {"capabilities": INTRODUCTIONS[capabilities], "clientInfo": CLIENTS[client]}
        handshake = INITIALIZE | {"params": {"protocolVersion": "2025-11-25", **said}}
        listed = {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "prompts/list",
            "params": {"_meta": {"progressToken": 5, "x/y": 1}},
        }
        ours = catalogue()
        assert [ours.answer(lined(handshake)), ours.answer(lined(listed))] == anyio.run(answers_to, [handshake, listed])
        meta = {
            f"{META}protocolVersion": "2026-07-28",
            f"{META}clientCapabilities": INTRODUCTIONS[capabilities],
            f"{META}clientInfo": CLIENTS[client],
            "traceparent": "00-1",
        }
        modern = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}}
        assert [catalogue().answer(lined(modern))] == anyio.run(answers_to, [modern])


WRONG: list[Any] = [None, 0, 1.5, True, "x", [], {}, [1], {"x": 1}, {"a": {"b": 1}}, {"listChanged": 1}, "2025-11-25"]


def places(content: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    inner = content.items() if isinstance(content, dict) else ()
    return [path, *(one for key, value in inner for one in places(value, (*path, key)))]


def replaced(content: Any, path: tuple[str, ...], value: Any) -> Any:
    return value if not path else {**content, path[0]: replaced(content[path[0]], path[1:], value)}


FULL = {"roots": {"listChanged": True}, "sampling": {"tools": {}}, "elicitation": {"url": {}}, "tasks": {"list": {}}}
FULL |= {"experimental": {"a": {}}, "extensions": {"x": {}, f"{META}ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}
LEGACY_PARAMS = {"protocolVersion": "2025-11-25", "capabilities": FULL, "clientInfo": CLIENTS["long"]}
MODERN_PARAMS = {"_meta": MODERN | {f"{META}clientCapabilities": FULL, "progressToken": 1}}


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("method", "params"), [("initialize", LEGACY_PARAMS), ("tools/list", MODERN_PARAMS)], ids=["legacy", "modern"]
)
def test_a_request_with_anything_wrong_in_it_is_left_to_the_server_or_answered_as_by_it(
    method: str, params: dict[str, Any]
) -> None:
    """Each value in the request in turn is replaced by each wrong one."""

    async def compare() -> int:
        answered = 0
        for path in places(params):
            for value in WRONG:
                changed = replaced(params, path, value)
                request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": changed}
                ours = catalogue().answer(lined(request))
                if ours is not None and isinstance(changed, dict):
                    [theirs] = await answers_to([request])
                    assert ours == theirs, changed
                    answered += 1
                else:
                    assert ours is None
        return answered

    assert anyio.run(compare) > 0


def of_era(era: str) -> tuple[Catalogue, Callable[..., bytes]]:
    """A catalogue after the first answer, and what writes the next request."""
    ours = catalogue()
    first = INITIALIZE if era == "legacy" else modern_requests()[0]
    assert ours.answer(lined(first)) is not None
    meta = {} if era == "legacy" else {"_meta": MODERN}

    def written(method: str, number: Any = 7, **params: Any) -> bytes:
        return lined({"jsonrpc": "2.0", "id": number, "method": method, "params": {**meta, **params}})

    return ours, written


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_what_is_not_certain_is_left_to_the_server(era: str) -> None:
    ours, written = of_era(era)
    assert ours.answer(written("tools/list")) is not None
    lists = written("tools/list")
    refused = [
        written("tools/list", cursor="x"),
        written("tools/list", number=None),
        written("tools/list", number=1.5),
        written("tools/list", number=True),
        written("tools/list", number=10**18),
        written("tools/list", number="é"),
        written("tools/list", number='a"b'),
        written("tools/list", number=""),
        written("tools/call", name="list_tasks", arguments={}),
        written("initialize", **INITIALIZE["params"]),
        written("tools/burn"),
        written("tools/list", _meta={"progressToken": 1.5}),
        lists.replace(b'"2.0"', b'"1.0"'),
        lists.replace(b'"id"', b'"extra": 1, "id"'),
        lists.replace(b'"id": 7', b'"id": 6, "id": 7'),
        lists.replace(b"tools/list", b"tools/list\\ud800"),
        b"[" + lists + b"]",
        lists[:-1],
        lists + b"\0",
        b"\xef\xbb\xbf" + lists,
        written("tools/list", _meta={"a": "x" * 20_000}),
        written("tools/list", _meta={"a": [[[[[[[[[[[[]]]]]]]]]]]]})
        .replace(b"[[", b"[" * 50)
        .replace(b"]]", b"]" * 50),
        b"",
        b"5",
        lined({"jsonrpc": "2.0", "method": "tools/list"}),
        modern_line() if era == "legacy" else lined(legacy_requests()[2]),
    ]
    assert [ours.answer(line) for line in refused] == [None] * len(refused)


def modern_line() -> bytes:
    return lined(modern_requests()[1])


def test_nothing_but_an_opening_request_is_answered_before_one() -> None:
    for method in ("ping", *LISTS):
        assert catalogue().answer(lined({"jsonrpc": "2.0", "id": 1, "method": method})) is None, method


def test_only_what_the_server_takes_for_a_message_is_kept_while_answers_go_on() -> None:
    assert kind_of(lined({"jsonrpc": "2.0", "method": "notifications/initialized"})) == "notification"
    assert kind_of(lined({"jsonrpc": "2.0", "id": 1, "method": "tools/call"})) == "request"
    for line in (b"[]", b"{", b"5", lined(INITIALIZE), lined({"jsonrpc": "2.0", "id": 1, "result": {}}), b'{"id":1.5}'):
        assert kind_of(line) is None


@pytest.mark.parametrize(("patch", "is_used"), [("{0}.{1}.999", True), ("{0}.1{1}.0", False), ("{0}.{1}b1", False)])
def test_with_another_minor_release_of_a_library_nothing_is_answered_from_the_catalogue(
    patch: str, is_used: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert load() is not None
    installed = patch.format(*version("pydantic").split("."))
    (tmp_path / "pydantic").mkdir()
    (tmp_path / f"pydantic-{installed}.dist-info").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert (load() is not None) is is_used


@pytest.mark.parametrize("requests", [modern_requests(), legacy_requests()], ids=["2026-07-28", "2025-11-25"])
@pytest.mark.parametrize(
    "switched_on", [("has_memory_tool",), ("has_hooks",), ("has_memory_tool", "has_hooks", "has_chatgpt")]
)
def test_with_more_tools_each_answer_equals_the_server_s_too(
    requests: list[dict[str, Any]], switched_on: Sequence[str]
) -> None:
    switches = dict.fromkeys(switched_on, True)
    ours = load(**switches)
    assert ours is not None
    assert [ours.answer(lined(request)) for request in requests] == anyio.run(partial(answers_to, **switches), requests)


@pytest.mark.parametrize(
    ("value", "is_on"),
    [(None, False), ("", False), ("0", False), ("False", False), (" off ", False), ("no", False), ("1", True)],
)
def test_the_memory_tool_is_off_unless_the_variable_says_otherwise(value: str | None, *, is_on: bool) -> None:
    environment = {} if value is None else {MEMORY_TOOL_VARIABLE: value}
    assert switches(environment) == {"has_memory_tool": is_on, "has_hooks": False, "has_chatgpt": False}
    assert switches({CHATGPT_VARIABLE: value or ""})["has_chatgpt"] is is_on


def test_the_tool_of_hooks_is_listed_only_for_hosts_with_hooks_and_hidden_from_their_model() -> None:
    def tools(*, has_hooks: bool) -> dict[str, Any]:
        ours = load(has_hooks=has_hooks)
        assert ours is not None
        answers = [ours.answer(lined(request)) for request in legacy_requests()]
        return {one["name"]: one for one in json.loads(answers[2] or b"")["result"]["tools"]}

    assert "hook_event" not in tools(has_hooks=False)
    assert tools(has_hooks=True)["hook_event"]["_meta"] == {"ui": {"visibility": ["app"]}}
