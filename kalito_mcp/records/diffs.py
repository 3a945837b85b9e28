"""The differences between two versions of a record, as one line or in full. Pure.

A version is a record's `content`. The version before the creation is an empty mapping. The one-line form compares texts
by words, the full form by lines. Time and length are bounded for any texts.
"""

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kalito_mcp.domain.memory_records import DELETED_AT, changed_fields
from kalito_mcp.domain.time import to_iso

MAX_SUMMARY: Final = 300
"""The most characters of a diff summary."""

_MAX_EXCERPT: Final = 80
_MAX_VALUE: Final = 60
_MAX_COMPARED_LINES: Final = 500
"""Above this many differing lines no lines are matched: difflib's time grows with the product of their numbers."""

_LINES_AROUND: Final = 2
_TEXT: Final = "@@ text @@"
_SPACES: Final = re.compile(r"\s+")


def diff_summary(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """How the fields changed, in one line of at most 300 characters. `nothing` without a change."""
    if not before:
        return "created"
    parts = [_change(name, before.get(name), after.get(name)) for name in _changed(before, after)]
    return _shortened("; ".join(parts), MAX_SUMMARY) or "nothing"


def diff(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The removed lines, which begin with `-`, and the added lines, which begin with `+`. Empty if nothing changed.

    A field's line has its name. The lines of a text follow `@@ text @@`, with two unchanged lines around each change.
    """
    lines: list[str] = []
    for name in _changed(before, after):
        old, new = before.get(name), after.get(name)
        if name == "text":
            lines += _text_lines(str(old or ""), str(new or ""))
            continue
        lines += [
            f"{sign}{name}: {_written(name, value)}" for sign, value in (("-", old), ("+", new)) if value is not None
        ]
    return lines


def _changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The fields that differ, the text first."""
    return sorted(changed_fields(before, after), key=lambda name: (name != "text", name))


def _change(name: str, old: Any, new: Any) -> str:
    if name == "text":
        return _text_change(str(old or ""), str(new or ""))
    if name == DELETED_AT:
        return "restored" if new is None else "forgotten"
    if isinstance(old or new, list) and all(isinstance(one, str) for one in [*(old or []), *(new or [])]):
        removed = [f"-{_value(one)}" for one in old or [] if one not in (new or [])]
        added = [f"+{_value(one)}" for one in new or [] if one not in (old or [])]
        return f"{name}: {' '.join(removed + added) or 'reordered'}"
    return f"{name}: {_value(_written(name, old))} -> {_value(_written(name, new))}"


def _text_change(old: str, new: str) -> str:
    """The words from the first to the last that differ. If these are long, the characters from first to last."""
    was, now = _plain(old).split(), _plain(new).split()
    start, end = _common_ends(was, now)
    left, right = " ".join(was[start : len(was) - end]), " ".join(now[start : len(now) - end])
    if max(len(left), len(right)) > _MAX_EXCERPT:
        first, last = _common_ends(left, right)
        left, right = left[first : len(left) - last], right[first : len(right) - last]
        start, end = start + first, end + last
    before, behind = "…" if start else "", "…" if end else ""
    left, right = (f'"{before}{_shortened(one, _MAX_EXCERPT)}{behind}"' if one else "" for one in (left, right))
    if not left or not right:
        return f"text: added {right}" if right else f"text: removed {left}" if left else "text: only white space"
    return f"text: {left} -> {right}"


def _text_lines(old: str, new: str) -> list[str]:
    was, now = old.split("\n"), new.split("\n")
    start, end = _common_ends(was, now)
    if max(len(was), len(now)) - start - end > _MAX_COMPARED_LINES:
        removed, added = was[start : len(was) - end], now[start : len(now) - end]
        return [_TEXT, *(f"-{line}" for line in removed), *(f"+{line}" for line in added)]
    start, end = max(0, start - _LINES_AROUND), max(0, end - _LINES_AROUND)
    lines = difflib.unified_diff(was[start : len(was) - end], now[start : len(now) - end], n=_LINES_AROUND, lineterm="")
    # The first two lines name files. Line numbers would count from the compared part, so they are dropped too.
    return [_TEXT if line.startswith("@@") else line for line in list(lines)[2:]]


def _common_ends(one: Sequence[str], other: Sequence[str]) -> tuple[int, int]:
    """The number of equal items at the start of both, and of equal items among the rest at the end."""
    start = _common_start(one, other)
    return start, _common_start(one[start:][::-1], other[start:][::-1])


def _common_start(one: Sequence[str], other: Sequence[str]) -> int:
    """The number of equal items at the start of both."""
    for place, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return place
    return min(len(one), len(other))


def _written(name: str, value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, int) and not isinstance(value, bool) and name.endswith("_at"):
        return to_iso(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _value(text: str) -> str:
    return _shortened(_plain(text), _MAX_VALUE)


def _plain(text: str) -> str:
    """The text on one line, without unprintable characters."""
    return _SPACES.sub(" ", "".join(one if one.isprintable() else " " for one in text)).strip()


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
