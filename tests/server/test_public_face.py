"""What hosts, models and programs see of kalito equals a stored snapshot. No part of it changes by accident."""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import anyio
import pytest
from mcp import Client
from mcp.types import Tool

import kalito_mcp
from kalito_mcp.domain.digest import LISTS
from kalito_mcp.inference.tokens import token_counter
from kalito_mcp.server.build import build_server
from kalito_mcp.wiring import open_memory

SNAPSHOT: Final = Path(__file__).with_name("public_face.json")
RENEW: Final = "RENEW_PUBLIC_FACE"
MOST_LISTING_TOKENS: Final = 6_500
MOST_PROSE_BYTES: Final = 2_048
"""What Claude Code shows of a tool's description and of a server's instructions."""
BOUNDED_IN_THE_CALL: Final = frozenset({"record_messages.messages", *(f"summarize_session.{name}" for name in LISTS)})
"""How much these may hold is in `limits` or `Digest.check` alone: a bound in the schema would be a second one."""
NOT_UNDERSTOOD: Final = frozenset({"$ref", "$defs", "pattern", "maxLength", "title"})
"""Valid JSON Schema that hosts do not resolve, that servers of local models refuse, or that says nothing."""
HINTS: Final = ("read_only_hint", "destructive_hint", "idempotent_hint", "open_world_hint")


@pytest.fixture(scope="module")
def face(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The lists as they go over the wire, and the names that the package exports."""

    async def listed() -> dict[str, Any]:
        database = tmp_path_factory.mktemp("face") / "memory.db"
        server = build_server(lambda: open_memory(database))
        with_all = build_server(lambda: open_memory(database), has_memory_tool=True, has_chatgpt=True)
        with_hooks = build_server(lambda: open_memory(database), has_hooks=True)
        async with Client(with_hooks, mode="legacy") as client:
            instructions = {"with hooks": client.instructions}
        async with Client(with_all, mode="legacy") as client:
            switched_on = (await client.list_tools()).tools[-3:]
        async with Client(server, mode="legacy") as client:
            lists: dict[str, Sequence[Any]] = {
                "tools": (await client.list_tools()).tools,
                "tools where they are switched on": switched_on,
                "resources": (await client.list_resources()).resources,
                "resource templates": (await client.list_resource_templates()).resource_templates,
                "prompts": (await client.list_prompts()).prompts,
            }
            written = {
                name: {one.name: one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in entries}
                for name, entries in lists.items()
            }
            return written | {
                "instructions": instructions | {"instructions": client.instructions},
                "exports": {name: "exported" for name in sorted(kalito_mcp.__all__) if getattr(kalito_mcp, name)},
            }

    return anyio.run(listed)


@pytest.fixture(scope="module")
def tools(face: dict[str, Any]) -> list[Tool]:
    return [Tool.model_validate(tool) for tool in face["tools"].values()]


def test_the_public_face_is_as_it_was_agreed_on(face: dict[str, Any]) -> None:
    if os.environ.get(RENEW):
        SNAPSHOT.write_text(json.dumps(face, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")
    agreed = json.loads(SNAPSHOT.read_text(encoding="utf-8"))
    changed = [
        f"{part} {name!r}"
        for part in sorted(agreed.keys() | face.keys())
        for name in sorted(agreed.get(part, {}).keys() | face.get(part, {}).keys())
        if agreed.get(part, {}).get(name) != face.get(part, {}).get(name)
    ]
    assert not changed, (
        f"changed: {', '.join(changed)}. Where that is on purpose, say so in the changelog and renew the snapshot: "
        f"{RENEW}=1 python -m pytest tests/server/{Path(__file__).name}"
    )


def test_listing_all_tools_costs_at_most_6500_tokens(face: dict[str, Any]) -> None:
    listing = json.dumps(list(face["tools"].values()), ensure_ascii=False, separators=(",", ":"))
    assert token_counter("calibrated").count(listing) <= MOST_LISTING_TOKENS


def test_instructions_and_descriptions_fit_what_a_host_shows(face: dict[str, Any], tools: list[Tool]) -> None:
    for instructions in face["instructions"].values():
        assert 0 < len(instructions.encode()) < MOST_PROSE_BYTES
    for tool in tools:
        assert tool.description
        assert len(tool.description.encode()) < MOST_PROSE_BYTES, tool.name


def test_the_instructions_name_every_tool(face: dict[str, Any], tools: list[Tool]) -> None:
    for tool in tools:
        for instructions in face["instructions"].values():
            assert tool.name in instructions


def test_where_hooks_record_nothing_asks_the_model_to_record_or_to_build_a_context_at_each_turn(
    face: dict[str, Any],
) -> None:
    without, with_hooks = face["instructions"]["instructions"], face["instructions"]["with hooks"]
    for asked in ("call record_messages", "call build_context", "each turn", "start of a turn"):
        assert asked in without
        assert asked not in with_hooks
    assert "record_messages is not needed" in with_hooks


def test_every_tool_has_a_title_and_says_what_it_does_to_the_memory(tools: list[Tool]) -> None:
    for tool in tools:
        assert tool.title, tool.name
        assert tool.annotations is not None
        assert tool.annotations.title == tool.title
        assert all(getattr(tool.annotations, hint) is not None for hint in HINTS), tool.name
    assert {tool.name for tool in tools if tool.annotations and tool.annotations.read_only_hint} == {
        "build_context",
        "search_memory",
        "memory_history",
        "list_tasks",
    }
    assert {tool.name for tool in tools if tool.annotations and tool.annotations.destructive_hint} == {
        "update_memory",
        "forget",
    }


def test_every_parameter_is_described_and_bounded(tools: list[Tool]) -> None:
    for tool in tools:
        schema = tool.input_schema
        assert schema["additionalProperties"] is False, tool.name
        for name, parameter in schema["properties"].items():
            assert_described_and_bounded(f"{tool.name}.{name}", parameter)


def test_other_wordings_stand_right_after_the_query_and_are_asked_for(tools: list[Tool]) -> None:
    schemas = {
        tool.name: tool.input_schema["properties"] for tool in tools if "also" in tool.input_schema["properties"]
    }
    assert schemas.keys() == {"build_context", "search_memory"}
    for properties in schemas.values():
        names = list(properties)
        assert names.index("also") == names.index("query") + 1
        assert properties["also"]["description"].startswith("Always send it")


def assert_described_and_bounded(name: str, schema: dict[str, Any]) -> None:
    assert schema.get("description"), name
    for one in schema.get("anyOf", [schema]):
        match one.get("type"):
            case "string":
                pass  # bounded in the call: servers of local models do not take a bound in a schema
            case "integer":
                assert "minimum" in one and "maximum" in one, name
            case "array":
                assert "maxItems" in one or name in BOUNDED_IN_THE_CALL, name
                item = one["items"]
                assert item["type"] in ("string", "object"), name
                for key, part in item.get("properties", {}).items():
                    assert item["additionalProperties"] is False, name
                    assert_described_and_bounded(f"{name}[].{key}", part)
            case "number" | "boolean" | "null":
                pass
            case "object":
                # Fields by their names: the schema of the record's type checks them.
                assert one["additionalProperties"] is True, name
            case other:
                raise AssertionError(f"{name} is of type {other}")


def keywords(schema: Any) -> Iterator[str]:
    """The keywords of a schema and of all its parts."""
    if isinstance(schema, list):
        for one in schema:
            yield from keywords(one)
    elif isinstance(schema, dict):
        for key, value in schema.items():
            yield key
            yield from keywords(list(value.values()) if key == "properties" else value)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_no_input_schema_has_what_a_host_or_a_local_model_does_not_understand(mode: str, tmp_path: Path) -> None:
    async def found() -> dict[str, set[str]]:
        server = build_server(
            lambda: open_memory(tmp_path / "memory.db"), has_memory_tool=True, has_hooks=True, has_chatgpt=True
        )
        async with Client(server, mode=mode) as client:
            return {tool.name: set(keywords(tool.input_schema)) for tool in (await client.list_tools()).tools}

    listed = anyio.run(found)
    assert {"record_messages", "memory", "hook_event", "fetch"} <= listed.keys()
    assert {name: used & NOT_UNDERSTOOD for name, used in listed.items() if used & NOT_UNDERSTOOD} == {}


def test_every_answer_but_the_context_has_a_schema(tools: list[Tool]) -> None:
    assert {tool.name for tool in tools if tool.output_schema is None} == {"build_context"}
