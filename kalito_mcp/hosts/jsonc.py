"""JSON with comments and trailing commas, edited in place. Pure.

A parse keeps where each value stands in the text, so an edit changes the characters of one member and nothing else:
comments, order, indentation and line ends of the rest stay as they are. `remove` undoes `put`.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any, Final

from kalito_mcp.hosts.documents import Key, NotEditable, NotReadable, Place

_TRIVIA: Final = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_REST_OF_LINE: Final = re.compile(r"(?:[ \t]+|/\*[^\r\n]*?\*/)*(?://[^\r\n]*)?")
_STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR: Final = re.compile(r"true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_SPACE: Final = " \t\r\n"
_DEFAULT_UNIT: Final = "  "


@dataclass(slots=True)
class _Item:
    """A member of an object, or an element of an array, whose `key` is its number."""

    key: Key
    start: int
    value: "_Node"
    comma: int | None = None
    """Where its comma is. The last item has one only if commas may trail."""


@dataclass(slots=True)
class _Node:
    """A value at text[start:end]. Objects and arrays have items."""

    start: int
    end: int
    plain: Any
    items: list[_Item] = field(default_factory=list)


def parse(text: str) -> Any:
    """The value that the text states. A text without any value is an empty object.

    Raises:
        NotReadable: the text is not JSON with comments; says the line and the column.
    """
    if _is_blank(text):
        return {}
    try:
        return json.loads(text, parse_constant=_refuse)  # most files, and in a fortieth of the time
    except (ValueError, RecursionError):
        return _tree(text).plain


def _refuse(constant: str) -> None:
    raise ValueError(constant)


_PLAIN: Final = json.JSONDecoder(parse_constant=_refuse)


def put(text: str, path: Place, value: Any) -> str:
    """The text with `value` at `path`. Missing objects on the way are made; an array grows by its next number.

    Raises:
        NotReadable: the text is not JSON. NotEditable: something on the path is neither object nor array, or is there
            twice.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    if _is_blank(text):
        return _written(_wrapped(path, value), "", _DEFAULT_UNIT, newline) + newline
    root = _tree(text, path)
    unit = _unit(text, root)
    node, rest = root, path
    while rest and (item := _item(node, rest[0], path)) is not None:
        node, rest = item.value, rest[1:]
    if not rest:
        indent = _line_indent(text, node.start)
        return text[: node.start] + _written(value, indent, unit, newline) + text[node.end :]
    if not isinstance(node.plain, dict | list):
        raise NotEditable(f"{_name(path[: len(path) - len(rest)])} is {json.dumps(node.plain)[:40]}, not an object")
    if isinstance(rest[0], int) is not isinstance(node.plain, list):
        kind = "an array" if isinstance(node.plain, list) else "an object"
        raise NotEditable(f"{_name(path[: len(path) - len(rest)])} is {kind}, which it should not be")
    return _inserted(text, node, rest[0], _wrapped(rest[1:], value), unit, newline)


def remove(text: str, path: Place) -> str:
    """The text without the member at `path`, and without the line that it stood on. The text itself if it has no such
    member.

    Raises:
        NotReadable: the text is not JSON. NotEditable: something on the path is there twice.
    """
    if _is_blank(text):
        return text
    parent = _tree(text, path)
    for key in path[:-1]:
        if (found := _item(parent, key, path)) is None:
            return text
        parent = found.value
    if (item := _item(parent, path[-1], path)) is None:
        return text
    at = parent.items.index(item)
    is_last = at == len(parent.items) - 1
    end = item.value.end if item.comma is None else item.comma + 1
    start = item.start
    while text[start - 1] in _SPACE:
        start -= 1
    if at == 0 and is_last:
        inside = text[parent.start + 1 : start] + text[end : parent.end - 1]
        return text[: parent.start + 1] + (inside if inside.strip(_SPACE) else "") + text[parent.end - 1 :]
    if at > 0 and is_last and item.comma is None:
        comma = parent.items[at - 1].comma or 0  # it has one: an item follows it
        return text[:comma] + text[comma + 1 : _safe(text, start, item.start, end)] + text[end:]
    return text[: _safe(text, start, item.start, end)] + text[end:]


def _safe(text: str, start: int, key_start: int, end: int) -> int:
    """Where a removal may begin: not before the line end that closes a comment, if what follows is on this line."""
    return (
        start if text[end : end + 1] in ("", "\r", "\n") or "//" not in text[:start].rpartition("\n")[2] else key_start
    )


def _inserted(text: str, node: _Node, key: Key, value: Any, unit: str, newline: str) -> str:
    """The text with one more item at the end of an object or array."""
    label = "" if isinstance(node.plain, list) else json.dumps(key, ensure_ascii=False) + ": "
    if node.items and "\n" not in text[node.start : node.items[-1].start]:
        last = node.items[-1]
        compact = label + json.dumps(value, ensure_ascii=False)
        if last.comma is not None:
            return f"{text[: last.comma + 1]} {compact},{text[last.comma + 1 :]}"
        return f"{text[: last.value.end]}, {compact}{text[last.value.end :]}"
    outer = _line_indent(text, node.start)
    indent = _line_indent(text, node.items[-1].start) if node.items else outer + unit
    line = newline + indent + label + _written(value, indent, unit, newline)
    if not node.items:
        at = node.start + 1
        tail = "" if "\n" in text[at : node.end - 1] else newline + outer
        return text[:at] + line + tail + text[at:]
    last = node.items[-1]
    after = last.value.end if last.comma is None else last.comma + 1
    end = _end_of(_REST_OF_LINE, text, after)
    at = end if text[end : end + 1] in ("\r", "\n") else after
    if last.comma is None:
        return text[:after] + "," + text[after:at] + line + text[at:]
    return text[:at] + line + "," + text[at:]


def _item(node: _Node, key: Key, path: Place) -> _Item | None:
    found = [item for item in node.items if item.key == key]
    if len(found) > 1:
        raise NotEditable(f"{json.dumps(key)} is there twice (on the way to {_name(path)}); keep one of them")
    return found[0] if found else None


def _wrapped(path: Place, value: Any) -> Any:
    for key in reversed(path):
        value = [value] if isinstance(key, int) else {key: value}
    return value


def _written(value: Any, indent: str, unit: str, newline: str) -> str:
    return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", newline + indent)


def _unit(text: str, root: _Node) -> str:
    """The indentation of one level."""
    for item in root.items:
        if "\n" in text[root.start : item.start]:
            return _line_indent(text, item.start) or _DEFAULT_UNIT
    return _DEFAULT_UNIT


def _line_indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _end_of(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Where the match that begins at `at` ends."""
    found = pattern.match(text, at)
    return found.end() if found else at


def _name(path: Place) -> str:
    return ".".join(map(str, path)) or "the whole file"


def _is_blank(text: str) -> bool:
    return not text.strip(_SPACE)


def _tree(text: str, path: Place | None = None) -> _Node:
    """The value that the text states. With a path, items are kept only on the way there."""
    reader = _Reader(text)
    try:
        node = reader.value(reader.skip(0), path)
    except RecursionError:
        raise NotReadable("nested too deeply", 1, 1) from None
    if (end := reader.skip(node.end)) != len(text):
        raise reader.fault(end, "something follows the value")
    return node


def _below(path: Place | None, key: Key) -> Place | None:
    """The rest of a path at an item; nothing if the path leads elsewhere."""
    return None if path is None else path[1:] if path[:1] == (key,) else ()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text

    def skip(self, at: int) -> int:
        """The place after space and comments."""
        end = _end_of(_TRIVIA, self._text, at)
        if self._text.startswith("/*", end):
            raise self.fault(end, "a comment has no end")
        return end

    def value(self, at: int, path: Place | None) -> _Node:
        """The value that begins here. What is not on the path is read as plain JSON, in a fraction of the time."""
        text = self._text
        sign = text[at : at + 1]
        if path == () and sign in ("{", "["):
            try:
                plain, end = _PLAIN.raw_decode(text, at)
            except (ValueError, RecursionError):
                pass  # it may have comments
            else:
                return _Node(at, end, plain)
        if sign == "{":
            return self._items(at, "}", {}, path)
        if sign == "[":
            return self._items(at, "]", [], path)
        if found := (_STRING if sign == '"' else _SCALAR).match(text, at):
            try:
                return _Node(at, found.end(), json.loads(found.group()))
            except ValueError:
                raise self.fault(at, "a string has an unknown escape") from None
        raise self.fault(at, "the file ends too early" if at >= len(text) else "no value begins here")

    def _items(self, start: int, close: str, plain: Any, path: Place | None) -> _Node:
        text, node = self._text, _Node(start, start, plain)
        at = self.skip(start + 1)
        while text[at : at + 1] != close:
            if node.items and node.items[-1].comma is None:
                raise self.fault(at, f"a comma or {close} is missing")
            if close == "}":
                item = self._member(at, path)
            else:
                number = len(node.items)
                item = _Item(number, at, self.value(at, _below(path, number)))
            node.items.append(item)
            if close == "}":
                plain[item.key] = item.value.plain
            else:
                plain.append(item.value.plain)
            at = self.skip(item.value.end)
            if text[at : at + 1] == ",":
                item.comma = at
                at = self.skip(at + 1)
        node.end = at + 1
        return node

    def _member(self, at: int, path: Place | None) -> _Item:
        found = _STRING.match(self._text, at)
        if found is None:
            raise self.fault(at, "the file ends too early" if at >= len(self._text) else "expected a quoted name")
        colon = self.skip(found.end())
        if self._text[colon : colon + 1] != ":":
            raise self.fault(colon, "a colon is missing")
        try:
            key = json.loads(found.group())
        except ValueError:
            raise self.fault(at, "a name has an unknown escape") from None
        return _Item(key, at, self.value(self.skip(colon + 1), _below(path, key)))

    def fault(self, at: int, why: str) -> NotReadable:
        line = self._text.count("\n", 0, at) + 1
        return NotReadable(why, line, at - self._text.rfind("\n", 0, at))
