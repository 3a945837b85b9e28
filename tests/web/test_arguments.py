"""What callers send is brought into the form that a schema asks for, as far as its meaning is clear."""

from typing import Any, Final

import pytest

from kalito_mcp.errors import InvalidInput
from kalito_mcp.memory.verbs.json_schemas import REMOVES_BY_NULL, inlined
from kalito_mcp.web.arguments import mended_body, tidied, unknown_arguments

SCHEMA: Final[dict[str, Any]] = {
    "properties": {
        "query": {"type": "string"},
        "k": {"type": "integer", "default": 10},
        "since": {"type": "string"},
        "names": {"type": "array", "items": {"type": "string"}},
        "is_done": {"type": "boolean"},
        "fields": {"type": "object", "additionalProperties": True},
        "tags": {"type": "array", "items": {"type": "string"}},
        "level": {"anyOf": [{"type": "string", "enum": ["low", "in_progress"]}, {"type": "number"}]},
        "changes": {
            "type": "object",
            "properties": {"tags": {"type": "array", "items": {"type": "string"}}},
            REMOVES_BY_NULL: True,
        },
        "new_text": {"type": "string", "minLength": 0},
        "messages": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "text": {"type": "string"},
                    "role": {"type": "string", "enum": ["user", "assistant", "system"]},
                    "created_at": {"type": "string"},
                    "details": {"type": "object"},
                },
                "required": ["text"],
            },
        },
    },
    "required": ["query"],
}


def test_what_is_meant_is_taken() -> None:
    for sent, kept in (
        ({"since": "", "k": None, "names": [], "is_done": ""}, {}),
        ({"query": ""}, {"query": ""}),
        ({"is_done": False, "k": 0}, {"is_done": False, "k": 0}),
        ({"new_text": ""}, {"new_text": ""}),
        ({"names": ["", "Ada", None]}, {"names": ["Ada"]}),
        ({"names": [""]}, {}),
        ({"names": '["Ada", "Ben"]'}, {"names": ["Ada", "Ben"]}),
        ({"names": "Ada"}, {"names": ["Ada"]}),
        ({"names": '["Ada"'}, {"names": '["Ada"'}),
        ({"query": '["Ada"]'}, {"query": '["Ada"]'}),
        ({"fields": '{"tags": ["a"]}'}, {"fields": {"tags": ["a"]}}),
        ({"fields": {"due_date": None}}, {"fields": {"due_date": None}}),
        ({"fields": "not JSON"}, {"fields": "not JSON"}),
        ({"messages": ['{"text": "a"}', {"text": "b"}]}, {"messages": [{"text": "a"}, {"text": "b"}]}),
        ({"messages": '[{"text": "a", "created_at": ""}]'}, {"messages": [{"text": "a"}]}),
        (
            {"messages": [{"text": "a", "createdAt": "2026-01-01"}]},
            {"messages": [{"text": "a", "created_at": "2026-01-01"}]},
        ),
        ({"messages": [{"text": "", "details": ""}]}, {"messages": [{"text": ""}]}),
        ({"query": None}, {}),
        ({"tags": "birds, north"}, {"tags": ["birds", "north"]}),
        ({"tags": '["oslo, norway"]'}, {"tags": ["oslo, norway"]}),
        ({"level": "In-Progress"}, {"level": "in_progress"}),
        ({"level": "middle"}, {"level": "middle"}),
        ({"changes": {"tags": None}}, {"changes": {"tags": None}}),
        ({"changes": {"tags": "a,b"}}, {"changes": {"tags": ["a", "b"]}}),
        ({"messages": "hello"}, {"messages": [{"text": "hello"}]}),
        ({"messages": {"content": "a"}}, {"messages": [{"text": "a"}]}),
        (
            {"messages": [{"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]},
            {"messages": [{"text": "a\nb"}]},
        ),
        ({"messages": [{"text": [{"type": "image"}]}]}, {"messages": [{"text": [{"type": "image"}]}]}),
        *(
            ({"messages": [{"text": "a", "role": sent}]}, {"messages": [{"text": "a", "role": kept}]})
            for sent, kept in (("Human", "user"), ("AI", "assistant"), ("tool", "system"), ("USER", "user"))
        ),
        ({"limit": 3}, {"k": 3}),
        ({"topK": 3}, {"k": 3}),
        ({"limit": 3, "k": 4}, {"limit": 3, "k": 4}),
        ({"isDone": True}, {"is_done": True}),
        ({"query": "pier \ud83d"}, {"query": "pier \ufffd"}),
        ({"unknown": ""}, {"unknown": ""}),
    ):
        assert tidied(sent, SCHEMA) == kept


def test_what_is_nested_too_deeply_is_refused() -> None:
    deep: Any = 1
    for _ in range(500):
        deep = [deep]
    with pytest.raises(InvalidInput, match="levels deep"):
        tidied({"fields": {"tags": deep}}, SCHEMA)


def test_an_unknown_argument_is_told_where_it_belongs() -> None:
    for name, said in (
        ("due_date", "; put it into fields"),
        ("assignedTo", "; put it into fields"),
        ("metadata", "; put what is in it into fields"),
        ("querry", "; did you mean 'query'?"),
    ):
        assert unknown_arguments({name: "x"}, SCHEMA) == f"unknown argument {name!r}{said}"


def test_a_schema_is_written_out_without_references() -> None:
    item = {"type": "object", "properties": {"pattern": {"type": "string"}}}
    schema = {"properties": {"all": {"items": {"$ref": "#/$defs/Item"}}}, "$defs": {"Item": item}}
    assert inlined(schema) == {"properties": {"all": {"items": item}}}


def test_a_body_with_nothing_to_mend_stays_as_it_is() -> None:
    for raw in (
        b'{"text": "\\ud83e\\udd94"}',
        b"{not json \\ud83d",
        b"",
        '{"text": "\U0001f994"}'.encode(),
        b'{"id": "\\ud83d"}',
    ):
        assert mended_body(raw) is raw
