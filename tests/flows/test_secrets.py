"""A secret in any text of any tool, in the names of fields and in ids, reaches no file and no file's name."""

import copy
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from kalito_mcp.domain.memory_records import Editor, EditorType
from kalito_mcp.records.fields import FIELDS
from kalito_mcp.wiring import open_memory
from tests.flows.harness import Harness, said, served

pytestmark = pytest.mark.anyio

TOKEN: Final = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
ANSWER: Final = {"role": "assistant", "text": "Yours is in the shed."}
CALLS: Final[dict[str, dict[str, Any]]] = {
    "record_messages": {"session_id": "s", "messages": [{"role": "user", "text": "Where is my key?"}, ANSWER]},
    "create_pin": {"session_id": "s", "content": "The key is in the shed."},
    "summarize_session": {"session_id": "s", "summary": "About keys."},
    "record_feedback": {"target_id": "msg_1", "label": "up", "session_id": "s"},
    "finalize_session": {"session_id": "s"},
    "remember": {"type": "document", "text": "Keys.", "fields": {"source": "keys.md"}},
    "update_memory": {"record_id": "msg_1", "changes": {"text": "Where is it?"}, "expected_revision": 1},
    "build_context": {"session_id": "s", "query": "key"},
    "search_memory": {"query": "key"},
    "forget": {"record_ids": ["msg_1"]},
    "restore": {"record_id": "msg_1"},
    "memory_history": {"record_id": "msg_1"},
    "list_tasks": {},
}
"""One right call of each tool."""
OPEN_FIELDS: Final = sorted({name for fields in FIELDS.values() for name in fields.model_fields} | {TOKEN, "custom"})
LEAVES: Final[tuple[Any, ...]] = (TOKEN, [TOKEN], [{TOKEN: "x", "deep": [{"a": {TOKEN: TOKEN}}]}], {TOKEN: TOKEN})


def places(
    schema: dict[str, Any], path: tuple[Any, ...] = (), known: dict[str, Any] | None = None
) -> Iterator[tuple[Any, ...]]:
    """Where a tool takes a text, and every field of what it takes as an object without a schema."""
    known = known or schema.get("$defs", {})
    for one in [schema, *schema.get("anyOf", ())]:
        kind = known[one["$ref"].split("/")[-1]] if "$ref" in one else one
        if kind.get("type") == "array":
            yield from places(kind.get("items", {}), (*path, 0), known)
        elif "properties" in kind:
            for name, field in kind["properties"].items():
                yield from places(field, (*path, name), known)
        elif kind.get("type") == "object":
            yield from ((*path, name) for name in OPEN_FIELDS)
        elif kind.get("type") == "string" and "enum" not in kind:
            yield path


def with_value(arguments: Any, path: tuple[Any, ...], value: Any) -> Any:
    changed = copy.deepcopy(arguments)
    inner = changed
    for place, following in pairwise(path):
        if isinstance(inner, dict):
            inner = inner.setdefault(place, [{}] if isinstance(following, int) else {})
        else:
            inner = inner[place]
    if isinstance(inner, list):
        inner[path[-1] :] = [value]
    else:
        inner[path[-1]] = value
    return changed


async def calls(h: Harness) -> Iterator[tuple[str, dict[str, Any]]]:
    tools = {tool.name: tool.input_schema for tool in (await h.client.list_tools()).tools}
    assert tools.keys() == CALLS.keys()
    found = [(name, path) for name, schema in tools.items() for path in places(schema)]
    assert len(found) > 100
    return ((name, with_value(CALLS[name], path, leaf)) for name, path in found for leaf in LEAVES)


async def test_a_secret_in_any_argument_of_any_tool_reaches_no_file(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    taken = 0
    async with served(folder / "memory.db", "legacy") as h:
        await h.facts("record_messages", **CALLS["record_messages"])
        for name, arguments in await calls(h):
            fresh = await h.facts("record_messages", session_id=f"s{taken}", messages=[ANSWER])
            own = {"session_id": f"s{taken}", "record_id": fresh["message_ids"][0]}
            is_usual = name in ("finalize_session", "update_memory")
            sent = {key: own.get(key, one) if is_usual and one != TOKEN else one for key, one in arguments.items()}
            taken += not (await h.call(name, **sent)).is_error
        await h.settled()
    assert taken > 30
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert [path.name for path in files if TOKEN.encode().lower() in path.read_bytes().lower()] == []
    assert [path.name for path in files if TOKEN.lower() in path.name.lower()] == []


async def test_a_secret_in_the_name_of_who_writes_reaches_no_file(tmp_path: Path) -> None:
    editor = Editor(EditorType.AGENT, TOKEN)
    async with open_memory(tmp_path / "memory.db") as memory:
        [note] = await memory.remember("note", {"text": "The key is in the shed."}, editor=editor)
        await memory.update_memory(note.id, {"text": "It is lost."}, expected_revision=1, editor=editor)
        await memory.forget(note.id, editor=editor)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()] == []


async def test_others_are_answered_while_a_long_batch_is_read(tmp_path: Path, era: str) -> None:
    answered: list[str] = []
    long = {"role": "user", "text": "key = 1\n" * 25_000}

    async def call(h: Harness, tool: str, **arguments: Any) -> None:
        await h.text(tool, **arguments)
        answered.append(tool)

    async with served(tmp_path / "memory.db", era) as h, anyio.create_task_group() as tasks:
        await h.text("record_messages", session_id="s", messages=said("Hello."))
        tasks.start_soon(lambda: call(h, "record_messages", session_id="s", messages=[long] * 2))
        tasks.start_soon(lambda: call(h, "list_tasks"))
    assert answered == ["list_tasks", "record_messages"]
