"""What `bench.fuzz` sends: broken bytes, odd messages, and arguments drawn from the schemas of tools. Pure.

The same generator of random numbers gives the same.
"""

import copy
import json
import random
from collections.abc import Iterator, Mapping
from typing import Any, Final

from bench.report import ROOT

MODERN: Final = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "fuzz", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
METHODS: Final = (
    "tools/call",
    "tools/list",
    "resources/read",
    "prompts/get",
    "ping",
    "server/discover",
    "no/such",
    "",
)
_ODD: Final[tuple[Any, ...]] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63), 10**30, 0.5, -0.0, 1e308, "", " ", "\0", "x" * 300, "1", "nan",
    "msg_0", "msg_1", "msg_999999999999999999", "9999-12-31T23:59:59.999999Z", "../../etc/passwd", "' OR 1=1 --",
    "%00", "{}", [], [None], [[]] * 3, {}, {"a": 1}, {"$ref": "file:///etc/passwd"}, "\ud800", "\u202e", "e\u0301" * 9,
)  # fmt: skip
_TEXTS: Final = (
    "We fly to Oslo in May.", "Remember: my cat is called Mina.", "a", "key=key=", "NEAR(", '"', "*", "a-b", "col:x",
    "What is my cat called?", "\u65e5\u672c\u8a9e", "\U0001f9f5", "x" * 2_000, "2026-03-04", "7d",
)  # fmt: skip
_MEETING: Final[Mapping[str, tuple[Any, ...]]] = {
    "session_id": ("a", "b", "kept"),
    "agent_id": ("default",),
    "project": ("*", "personal"),
    "record_id": ("msg_1", "msg_2", "msg_40"),
    "target_id": ("msg_1", "msg_2"),
    "expected_revision": (1, 2, 3),
    "max_tokens": (500, 4_000),
    "cursor": (None,),
    "purge": (False, False, False, True),
}
HEADS: Final = (
    b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x",
    b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
    b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n",
    b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n",
    b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1e3\r\n\r\n",
    b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
    b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
    b"POST /mcp HTTP/1.1\r\nHost : 127.0.0.1\r\n\r\n",
    b"POST /mcp HTTP/1.1\r\n\r\n",
    b"POST /mcp HTTP/9.9\r\nHost: 127.0.0.1\r\n\r\n",
    b"GET http://evil.example/mcp HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    b"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n",
    b"GET /" + b"a" * 40_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"b" * 40_000 + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"X: y\r\n" * 9_000 + b"\r\n",
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: a\0b\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n X: folded\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"\0" * 64,
    b"\r\n" * 30_000,
    b"{}\n",
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
)


def damaged(rng: random.Random, whole: bytes) -> bytes:
    """The bytes with some changed, taken out, put in twice or cut off."""
    spoilt = bytearray(whole)
    for _ in range(rng.choice((1, 1, 2, 4))):
        place = rng.randrange(len(spoilt) + 1)
        match rng.randrange(6):
            case 0:
                spoilt[place : place + 1] = bytes([rng.randrange(256)])
            case 1:
                del spoilt[place : place + rng.randrange(1, 9)]
            case 2:
                spoilt[place:place] = spoilt[place : place + rng.randrange(1, 40)]
            case 3:
                del spoilt[place:]
            case 4:
                spoilt[place:place] = rng.choice(
                    (b"\0", b"\xff\xfe", b"\xed\xa0\x80", b'"', b"{", b"[" * 200, b"}", b",")
                )
            case _:
                spoilt[place:place] = rng.choice(
                    (b"1" * 5_000, b"NaN", b"1e999", b"\xef\xbb\xbf", b"\\ud800", b"\\u0000")
                )
    return bytes(spoilt).replace(b"\n", b" ").replace(b"\r", b" ")


def message(rng: random.Random, number: int, schemas: Mapping[str, Any]) -> dict[str, Any]:
    """A request of the 2026 protocol; odd in places."""
    method = rng.choice(METHODS)
    params: Any = {"_meta": MODERN}
    if method == "tools/call":
        tool, arguments = call(rng, schemas)
        params |= {"name": tool, "arguments": arguments}
    elif method in ("resources/read", "prompts/get"):
        params |= {"uri": "memory://sessions", "name": "recall"}
    made: dict[str, Any] = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    if rng.random() < 0.3:
        made[rng.choice(("jsonrpc", "method", "params", "extra"))] = copy.deepcopy(rng.choice(_ODD))
    return made


def drawn(  # noqa: PLR0911 - one a type
    rng: random.Random, schema: Mapping[str, Any], shared: Mapping[str, Any]
) -> Any:
    """A value that the schema admits, of small size."""
    if "$ref" in schema:
        return drawn(rng, shared[schema["$ref"].rpartition("/")[2]], shared)
    if "anyOf" in schema:
        return drawn(rng, rng.choice(schema["anyOf"]), shared)
    if "enum" in schema or "const" in schema:
        return rng.choice(schema.get("enum") or [schema["const"]])
    match schema.get("type"):
        case "boolean":
            return rng.random() < 0.5
        case "integer":
            return rng.randint(schema.get("minimum", -100), schema.get("maximum", 10_000))
        case "number":
            return rng.uniform(schema.get("minimum", -1.0), schema.get("maximum", 1.0))
        case "string":
            return rng.choice(_TEXTS)[: schema.get("maxLength", 10_000)]
        case "array":
            most = min(3, schema.get("maxItems", 3))
            return [drawn(rng, schema["items"], shared) for _ in range(rng.randint(schema.get("minItems", 0), most))]
        case "object":
            needed = schema.get("required", ())
            return {
                name: drawn(rng, one, shared)
                for name, one in schema.get("properties", {}).items()
                if name in needed or rng.random() < 0.25
            }
    return None


def call(rng: random.Random, schemas: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """A tool and its arguments, some of them spoilt."""
    tool = rng.choice(sorted(schemas))
    arguments = drawn(rng, schemas[tool], schemas[tool].get("$defs", {}))
    for name in arguments.keys() & _MEETING.keys():
        if rng.random() < 0.9:
            arguments[name] = rng.choice(_MEETING[name])
    for _ in range(rng.choice((0, 0, 0, 1, 2))):
        spoil(rng, arguments)
    return tool, arguments


def spoil(rng: random.Random, arguments: Any) -> None:
    """Put something odd somewhere."""
    while isinstance(arguments, dict | list) and arguments:
        key = rng.choice(list(arguments) if isinstance(arguments, dict) else range(len(arguments)))
        if not isinstance(arguments[key], dict | list) or not arguments[key] or rng.random() < 0.3:
            arguments[key] = copy.deepcopy(rng.choice(_ODD))
            return
        arguments = arguments[key]


def tool_schemas() -> dict[str, Any]:
    """The schemas of all tools, by name."""
    listed = json.loads((ROOT / "tests" / "server" / "public_face.json").read_text(encoding="utf-8"))
    return {one["name"]: one["inputSchema"] for one in _tools_in(listed)}


def _tools_in(listed: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(listed, dict) and "inputSchema" in listed and "name" in listed:
        yield listed
    elif isinstance(listed, dict | list):
        for one in listed.values() if isinstance(listed, dict) else listed:
            yield from _tools_in(one)
