"""The table of verbs, and the faces that serve it."""

from typing import get_type_hints

import pytest

from kalito_mcp.memory.verbs.schemas import pruned
from kalito_mcp.memory.verbs.table import VERBS
from kalito_mcp.server.tools.table import TOOLS
from kalito_mcp.server.tools.tool import ToolRow
from kalito_mcp.web.rest.table import TABLE

BY_NAME = {verb.name: verb for verb in VERBS}


def test_names_are_unique() -> None:
    assert len(BY_NAME) == len(VERBS)


@pytest.mark.parametrize("row", TOOLS, ids=lambda row: row.name)
def test_a_tool_takes_what_its_verb_takes(row: ToolRow) -> None:
    verb, taken = BY_NAME[row.name], get_type_hints(row.function)["sent"]
    # forget has a line for each of its ways: by ids, and by a subject with a preview.
    assert issubclass(taken, verb.sent) or (row.name == "forget" and "record_ids" in taken.model_fields)


def test_an_endpoint_of_a_verb_needs_what_the_verb_needs() -> None:
    found = {one.name: verb for one in TABLE for verb in VERBS if issubclass(one.body, verb.sent)}
    assert len(found) > 10
    for one in TABLE:
        if one.name in found:
            wanted = {verb.permission for verb in VERBS if issubclass(one.body, verb.sent)}
            assert one.permission in wanted, one.name


def test_a_short_schema_keeps_what_a_caller_must_know() -> None:
    schema = {
        "title": "Sent",
        "properties": {
            "title": {
                "anyOf": [{"type": "string", "minLength": 1}, {"type": "null"}],
                "default": None,
                "title": "Title",
            },
            "text": {"type": "string", "minLength": 0},
            "fields": {"type": "object", "additionalProperties": True, "properties": {"tags": {"type": "array"}}},
        },
    }
    assert pruned(schema, is_short=True) == {
        "properties": {
            "title": {"type": "string"},
            "text": {"type": "string", "minLength": 0},
            "fields": {"type": "object", "additionalProperties": True},
        },
    }
    assert pruned(schema)["properties"]["fields"]["properties"] == {"tags": {"type": "array"}}
