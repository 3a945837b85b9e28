"""Arguments drawn from each tool's schema and then broken never cause an internal failure."""

import copy
import math
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import anyio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp import MCPError
from mcp.types import INVALID_PARAMS

from kalito_mcp.server.build import build_server
from kalito_mcp.wiring import open_memory
from tests.flows.harness import Harness, said, served, text_of


def _schemas() -> dict[str, dict[str, Any]]:
    server = build_server(lambda: open_memory("never opened"))
    tools = anyio.run(server.list_tools)
    return {tool.name: tool.input_schema for tool in tools}


SCHEMAS: Final = _schemas()
TEXTS: Final = (
    "a", "b", "msg_1", "2", "7d", "2026-03-04", "2026-03-04T05:06:07+01:00", "9999-12-31", "k", "the", "\0", "🧵"
)  # fmt: skip
_EXTREMES: Final[st.SearchStrategy[Any]] = st.sampled_from(
    [
        None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63), 10**30, 10**500, 0.5, -0.0, 1e308, math.inf, -math.inf,
        math.nan, "", " ", "\0", "\ud800", "x" * 300, "x" * 70_000, "1", "1e9", "nan", "null", "msg_0", "99999w",
        "msg_999999999999999999", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59.999999Z",
        [], [None], [[]] * 3, {}, {"a": 1},
    ]
)  # fmt: skip

# Copies: what is drawn is spoilt in its place.
EXTREMES: Final = _EXTREMES.map(copy.deepcopy)
FIELDS: Final = (
    "text", "tags", "importance_score", "critical", "caused_by", "status", "priority", "due_date", "source", "title",
    "message_type", "related_to", "visibility", "attachments", "name", "role", "pinType", "deleted_at", "id",
)  # fmt: skip


def drawn_from(schema: dict[str, Any], definitions: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that the schema admits; of what it bounds by a number, small ones."""
    if "$ref" in schema:
        return drawn_from(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in schema:
        return st.one_of([drawn_from(one, definitions) for one in schema["anyOf"]])
    if "enum" in schema or "const" in schema:
        return st.sampled_from(schema.get("enum") or [schema["const"]])
    return _BY_TYPE[schema["type"]](schema, definitions)


def _text(schema: dict[str, Any], _: dict[str, Any]) -> st.SearchStrategy[str]:
    least, most = schema.get("minLength", 0), schema.get("maxLength", 10**9)
    return st.text(min_size=least, max_size=min(most, 40)) | st.sampled_from([one for one in TEXTS if len(one) <= most])


def _list(schema: dict[str, Any], definitions: dict[str, Any]) -> st.SearchStrategy[list[Any]]:
    least, most = schema.get("minItems", 0), min(3, schema.get("maxItems", 3))
    return st.lists(drawn_from(schema["items"], definitions), min_size=least, max_size=most)


def _object(schema: dict[str, Any], definitions: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    if "properties" not in schema:
        return st.dictionaries(
            st.sampled_from(FIELDS) | st.text(max_size=10), EXTREMES | st.text(max_size=10), max_size=4
        )
    fields = {name: drawn_from(one, definitions) for name, one in schema["properties"].items()}
    required = {name: fields.pop(name) for name in schema.get("required", [])}
    return st.fixed_dictionaries(required, optional=fields)


_BY_TYPE: Final[dict[str, Callable[[dict[str, Any], dict[str, Any]], st.SearchStrategy[Any]]]] = {
    "null": lambda _schema, _definitions: st.none(),
    "boolean": lambda _schema, _definitions: st.booleans(),
    "integer": lambda schema, _: st.integers(schema.get("minimum", -(10**6)), schema.get("maximum", 10**6)),
    "number": lambda schema, _: st.floats(schema.get("minimum"), schema.get("maximum"), allow_nan=False),
    "string": _text,
    "array": _list,
    "object": _object,
}


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) in the value."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in list(entries):
        yield value, key
        yield from places(one)


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A tool and its arguments, some of them spoilt."""
    tool = draw(st.sampled_from(sorted(SCHEMAS)))
    arguments: dict[str, Any] = draw(drawn_from(SCHEMAS[tool], SCHEMAS[tool].get("$defs", {})))
    if draw(st.integers(0, 2)):
        # Most calls shall meet each other: in sessions that exist.
        arguments["session_id"] = draw(st.sampled_from(["a", "b", "kept"]))
    spots = list(places(arguments))
    for _ in range(draw(st.integers(0, 2))):
        if spots:
            container, key = draw(st.sampled_from(spots))
            container[key] = draw(EXTREMES)
    if draw(st.integers(0, 9)) == 0:
        arguments[draw(st.text(max_size=5))] = draw(EXTREMES)
    return tool, arguments


async def answered(h: Harness, tool: str, arguments: dict[str, Any]) -> str:
    """What the caller gets to read."""
    try:
        return text_of(await h.call(tool, **arguments))
    except MCPError as error:
        assert error.error.code == INVALID_PARAMS
        return error.error.message


async def survives(database: Path, era: str, sequence: list[tuple[str, dict[str, Any]]]) -> None:
    async with served(database, era) as h:
        await h.facts("record_messages", session_id="kept", messages=said("The spare key hangs in the shed."))
        for tool, arguments in sequence:
            answer = await answered(h, tool, arguments)
            assert not answer.startswith("internal"), (tool, arguments)
            assert "pydantic" not in answer
        hits = (await h.facts("search_memory", query="spare key shed", session_id="kept", types=["message"]))["hits"]
        assert "The spare key hangs in the shed." in {hit["text"] for hit in hits}


@settings(suppress_health_check=list(HealthCheck))
@given(sequence=st.lists(calls(), min_size=10, max_size=30))
def test_no_call_ends_in_an_internal_failure(era: str, sequence: list[tuple[str, dict[str, Any]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(survives, Path(folder) / "memory.db", era, sequence)
