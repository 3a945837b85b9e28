"""The table of verbs, and the faces that serve it."""

from typing import Any, get_type_hints

import pytest

from kalito_mcp.memory.verbs.schemas import pruned
from kalito_mcp.memory.verbs.table import VERBS
from kalito_mcp.memory.verbs.verb import Verb
from kalito_mcp.server.tools.table import PERMISSIONS, TOOLS
from kalito_mcp.web.rest.table import TABLE

BY_NAME = {verb.name: verb for verb in VERBS}


def test_names_are_unique() -> None:
    assert len(BY_NAME) == len(VERBS)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_a_verb_takes_the_model_that_it_names(verb: Verb[Any, Any]) -> None:
    assert get_type_hints(verb.run)["sent"] is verb.sent


@pytest.mark.parametrize("row", TOOLS, ids=lambda row: row.name)
def test_a_tool_takes_what_its_verb_takes(row: Any) -> None:
    verb = BY_NAME[row.name]
    assert PERMISSIONS[row.name] is verb.permission
    taken = row.made().parameters["properties"].keys()
    # forget has a line for each of its ways: by ids, and by a subject with a preview.
    assert taken >= verb.sent.model_fields.keys()


@pytest.mark.parametrize(
    "endpoint", [one for one in TABLE if one.body in {verb.sent for verb in VERBS}], ids=lambda one: one.name
)
def test_an_endpoint_needs_what_its_verb_needs(endpoint: Any) -> None:
    assert endpoint.permission in {verb.permission for verb in VERBS if verb.sent is endpoint.body}


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
