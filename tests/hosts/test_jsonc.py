"""Editing JSON with comments in place: everything that is not edited stays as it was written."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.hosts import jsonc
from kalito_mcp.hosts.documents import NotEditable, NotReadable

ENTRY = {"command": "/bin/kalito-mcp", "args": ["serve"]}
PLACE = ("mcpServers", "kalito")
NAMES = st.sampled_from(["a", "b", "mcpServers", "kalito", 'q"uote', "ü"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


def test_a_value_is_put_in_as_the_file_is_written() -> None:
    for before, after in (
        ("{}", '{\n  "a": {\n    "b": 1\n  }\n}'),
        ("", '{\n  "a": {\n    "b": 1\n  }\n}\n'),
        ('{"x": 1}', '{"x": 1, "a": {"b": 1}}'),
        ('{\n  "x": 1\n}', '{\n  "x": 1,\n  "a": {\n    "b": 1\n  }\n}'),
        ('{\n  "x": 1,\n}\n', '{\n  "x": 1,\n  "a": {\n    "b": 1\n  },\n}\n'),
        ('{\n\t"x": 1 // why\n}', '{\n\t"x": 1, // why\n\t"a": {\n\t\t"b": 1\n\t}\n}'),
        (
            '{\n    "x": 1 /* one */\n    // last\n}',
            '{\n    "x": 1, /* one */\n    "a": {\n        "b": 1\n    }\n    // last\n}',
        ),
        ('{\r\n  "x": 1\r\n}\r\n', '{\r\n  "x": 1,\r\n  "a": {\r\n    "b": 1\r\n  }\r\n}\r\n'),
        ('{\n  "a": {\n    "c": 2\n  }\n}', '{\n  "a": {\n    "c": 2,\n    "b": 1\n  }\n}'),
        ('{\n  "a": {"b": 7}, // old\n  "x": 1\n}', '{\n  "a": {"b": 1}, // old\n  "x": 1\n}'),
    ):
        assert jsonc.put(before, ("a", "b"), 1) == after


def test_a_value_is_taken_out_with_its_line() -> None:
    for before, after in (
        ('{\n  "a": 1,\n  "b": 2\n}', '{\n  "b": 2\n}'),
        ('{\n  "b": 2, // two\n  "a": 1\n}', '{\n  "b": 2 // two\n}'),
        ('{\n  "b": 2, // two\n  "a": 1, "c": 3\n}', '{\n  "b": 2, // two\n   "c": 3\n}'),
        ('{\n  "b": 2,\n  "a": 1,\n}', '{\n  "b": 2,\n}'),
        ('{"b": 2, "a": 1}', '{"b": 2}'),
        ('{\n  // mine\n  "a": 1\n}', "{\n  // mine\n}"),
        ('{"a": 1}', "{}"),
        ("", ""),
    ):
        assert jsonc.remove(before, ("a",)) == after


@given(
    document=st.dictionaries(NAMES, VALUES, max_size=4).filter(lambda one: isinstance(one.get("mcpServers", {}), dict)),
    indent=st.sampled_from([None, 1, 2, 4, "\t"]),
    end=st.sampled_from(["", "\n", "\r\n", "\n\n"]),
)
def test_what_is_put_in_is_read_and_taking_it_out_gives_the_text_of_before(
    document: dict[str, Any], indent: int | str | None, end: str
) -> None:
    document.get("mcpServers", {}).pop("kalito", None)
    before = json.dumps(document, indent=indent) + end
    after = jsonc.put(before, PLACE, ENTRY)
    had_servers = "mcpServers" in document

    assert jsonc.parse(after) == document | {"mcpServers": document.get("mcpServers", {}) | {"kalito": ENTRY}}
    assert jsonc.remove(after, PLACE if had_servers else PLACE[:1]) == before


@given(st.text(alphabet='{}[],:"/*\\ \n1truefalsn-.eE', max_size=30))
def test_any_text_is_read_or_refused_with_its_line(text: str) -> None:
    try:
        value = jsonc.parse(text)
    except NotReadable as refusal:
        assert str(refusal).startswith("line ")
    else:
        if isinstance(value, dict):
            assert jsonc.parse(jsonc.put(text, ("new",), 1)) == value | {"new": 1}


@given(VALUES, st.sampled_from(["", " // the end", "/* the end */\n"]))
def test_json_with_a_comment_is_read_as_the_library_reads_it_without(value: Any, comment: str) -> None:
    assert jsonc.parse(json.dumps(value, indent=2) + comment) == value


def test_a_broken_text_is_refused_with_the_place_of_the_error() -> None:
    for text, place in (
        ('{\n  "a": 1\n  "b": 2\n}', "line 3, column 3"),
        ('{\n  "a": \n}', "line 3, column 1"),
        ('{"a": 1', "line 1, column 8"),
        ("{\n/* open", "line 2, column 1"),
        ('{"a": "b\n"}', "line 1, column 7"),
        ("{'a': 1}", "line 1, column 2"),
        ('{\n  "a": NaN}', "line 2, column 8"),
        ("[" * 100_000, "line 1, column 1"),
    ):
        with pytest.raises(NotReadable, match=f"^{place}: "):
            jsonc.parse(text)


def test_what_has_something_else_in_its_place_is_not_edited() -> None:
    for text, place in (
        ('{"a": 1, "a": 2}', ("a", "b")),
        ('{"a": 5}', ("a", "b")),
        ('{"a": []}', ("a", "b")),
        ('{"a": {}}', ("a", 0)),
    ):
        with pytest.raises(NotEditable):
            jsonc.put(text, place, 1)


def test_what_is_not_on_the_way_stays_with_comments_or_without() -> None:
    for other in ('{"a": [1, {"b": 2}]}', '{"a": [1, /* why */ {"b": 2},]} // end', '"{"', "[]"):
        text = f'{{"before": {other}\n, "servers": {{"x": {{}}}}, "after": {other}\n}}'
        changed = jsonc.put(text, ("servers", "kalito"), {"command": "k"})
        assert jsonc.parse(changed)["servers"] == {"x": {}, "kalito": {"command": "k"}}
        assert changed.startswith(f'{{"before": {other}\n, ')
        assert changed.endswith(f'"after": {other}\n}}')
        assert jsonc.remove(changed, ("servers", "kalito")) == text
