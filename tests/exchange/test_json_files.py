"""Lists and lines of JSON are read piece by piece, as if they had been read at once."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.exchange import json_files
from kalito_mcp.exchange.conversation import Reading, moment
from kalito_mcp.exchange.json_files import json_lines, json_list, parsed

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(values=st.lists(VALUES, max_size=5), chunk=st.integers(1, 9), indent=st.sampled_from([None, 2]))
def test_a_list_is_the_same_in_pieces_of_any_size(
    monkeypatch: pytest.MonkeyPatch, values: list[Any], chunk: int, indent: int | None
) -> None:
    monkeypatch.setattr(json_files, "_CHUNK", chunk)
    reading = Reading(Path("x"))
    raw = json.dumps(values, ensure_ascii=False, indent=indent).encode("utf-8", "replace")
    assert list(json_list(io.BytesIO(raw), reading)) == json.loads(raw)
    assert not reading.skipped


def test_a_line_that_is_too_long_is_skipped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(json_files, "LONGEST", 100)
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 1}\n' + json.dumps({"b": "x" * 1_000}) + '\n{"c": 3}\n')
    reading = Reading(path)
    assert [line.value for line in json_lines(reading)] == [{"a": 1}, {"c": 3}]
    assert reading.skipped == {"line that is too long": 1}
    assert reading.read_to == path.stat().st_size


@pytest.mark.parametrize(
    ("raw", "whole", "skipped"),
    [
        (b'{"a": 1}{"b": 2}\n', [{"a": 1}, {"b": 2}], {}),
        (b'{"a": 1} {"torn": \n{"b": 2}\n', [{"a": 1}, {"b": 2}], {"line that is not JSON": 1}),
        (
            b'{"torn": {"x": [{"y": 1}, "{{"a": {"b": 2}}{"c": 3}\n',
            [{"a": {"b": 2}}, {"c": 3}],
            {"line that is not JSON": 1},
        ),
        (b'{"torn": "\xc3{"a": "\xc3\xbc"}\n', [{"a": "\xfc"}], {"line that is not JSON": 1}),
        (b'\xef\xbb\xbf\0\0{"a": 1}\0\0{"b": "\xc3"}\0\n\0', [{"a": 1}, {"b": "\ufffd"}], {}),
        (b'no JSON\n7 {"a": 1}\n', [{"a": 1}], {"line that is not JSON": 1, "line of an unknown kind": 1}),
        (b"[" * 9_999 + b"\n" + b'{"a":' * 9_999 + b'\n{"b": 2}\n', [{"b": 2}], {"line that is not JSON": 2}),
    ],
)
def test_every_whole_object_of_a_damaged_line_is_read(
    tmp_path: Path, raw: bytes, whole: list[Any], skipped: dict[str, int]
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(raw)
    reading = Reading(path)
    found = list(json_lines(reading))
    assert [line.value for line in found] == whole
    assert (reading.skipped, reading.read_to) == (skipped, len(raw))
    # The bytes of each are where it says.
    assert [parsed(raw[line.begin : line.end]) for line in found] == whole


@pytest.mark.parametrize(
    ("last", "whole", "skipped"),
    [
        ('{"b": 2}{"later": {"c": 3}', [{"b": 2}], {"torn last line": 1}),
        # Nothing that follows makes the first one whole.
        ('{"torn": "x{"b": "behind a torn one"}', [{"b": "behind a torn one"}], {"line that is not JSON": 1}),
        ('{"torn": "x{"later": "growing", "with": {"c": 3}', [], {"torn last line": 1}),
        ('{"a": {"c": 3}, "torn": "x, and nothing', [], {"torn last line": 1}),
    ],
)
def test_what_is_whole_in_a_torn_last_line_is_read_and_its_growing_end_is_read_again(
    tmp_path: Path, last: str, whole: list[Any], skipped: dict[str, int]
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"a": 1}}\n{last}')
    reading = Reading(path)
    assert [line.value for line in json_lines(reading)] == [{"a": 1}, *whole]
    assert reading.skipped == skipped
    assert path.read_text()[reading.read_to :] == (last if "torn last line" in skipped else "")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-03-01T10:00:00Z", 1_772_359_200_000),
        ("2026-03-01T12:00:00+02:00", 1_772_359_200_000),
        ("2026-03-01T10:00:00", 1_772_359_200_000),
        (1_772_359_200, 1_772_359_200_000),
        (1_772_359_200.5, 1_772_359_200_500),
        (1_772_359_200_000, 1_772_359_200_000),
        ("1772359200", 1_772_359_200_000),
        *((value, None) for value in (None, "", "soon", True, 0, float("nan"), float("inf"), 10**30, [], {}, "1e999")),
    ],
)
def test_moments_of_every_form_are_milliseconds(value: Any, expected: int | None) -> None:
    assert moment(value) == expected
