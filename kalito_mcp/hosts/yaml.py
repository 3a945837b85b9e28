"""YAML as programs write it: one entry of a mapping of mappings, edited in place. Pure.

This reads what Goose's configuration needs: block mappings, indented by spaces, whose values are plain, quoted or JSON.
Other entries may have anything that is indented below them. What is written in another way is refused.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from kalito_mcp.hosts.documents import NotEditable, NotReadable, Place

_LINE: Final = re.compile(
    r"""(?P<indent>[ ]*)"""
    r"""(?P<key>"(?:[^"\\]|\\.)*"|'[^']*'|[^\s#:"'\[\]{},&*!|>%@`?-][^#:]*):(?:[ ]+(?P<value>.*?))?[ ]*$"""
)
_QUOTED: Final = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')[ ]*(?:#.*)?$""")
_WORDS: Final = {"true": True, "false": False, "null": None, "~": None, "": None}
_UNIT: Final = "  "


class _Unread(str):
    """A value that is written in a way that is not read here: its text."""

    __slots__ = ()


def parse(text: str) -> dict[str, Any]:
    """The mappings of the text, two levels deep. What is in an entry is read as far as `put` writes it.

    Raises:
        NotReadable: a line at the top is no `name: value`, something is indented by a tab, or a name is there twice.
    """
    document: dict[str, Any] = {}
    for name, first, last in _members(_lines(text), 0, None, ""):
        document[name] = _value(_lines(text), first, last, depth=3)
    return document


def put(text: str, path: Place, value: Any) -> str:
    """The text with the mapping `value` at `path`, which has two names.

    Raises:
        NotReadable: as in `parse`. NotEditable: the mapping is written on one line.
    """
    parse(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    outer, name = map(str, path)
    lines = _lines(text)
    found = {key: (first, last) for key, first, last in _members(lines, 0, None, "")}
    if outer not in found:
        gap = "" if not text or text.endswith("\n") else newline
        return f"{text}{gap}{outer}:{newline}{newline.join(_entry(_UNIT, name, value))}{newline}"
    first, last = found[outer]
    if _scalar(lines[first]) is not None:
        raise NotEditable(f"{outer} is written on one line; write its entries below it, or remove it if it is empty")
    members = _members(lines, first + 1, last, None)
    indent = _indent(lines[members[0][1]]) if members else _UNIT
    block = newline.join(_entry(indent, name, value)) + newline
    for key, start, end in members:
        if key == name:
            lines[start:end] = [block]
            return "".join(lines)
    if lines[last - 1].strip() and not lines[last - 1].endswith("\n"):
        lines[last - 1] += newline
    lines.insert(last, block)
    return "".join(lines)


def remove(text: str, path: Place) -> str:
    """The text without the entry at `path`, which has one name or two. The text itself if it has no such entry.

    Raises:
        NotReadable: as in `parse`.
    """
    parse(text)
    lines = _lines(text)
    first, last = 0, None
    for name in path[:-1]:
        found = [(start, end) for key, start, end in _members(lines, first, last, None if first else "") if key == name]
        if not found:
            return text
        first, last = found[0][0] + 1, found[0][1]
    for key, start, end in _members(lines, first, last, None if first else ""):
        if key == path[-1]:
            del lines[start:end]
            return "".join(lines)
    return text


def _members(lines: list[str], start: int, stop: int | None, indent: str | None) -> list[tuple[str, int, int]]:
    """The members of a block mapping: name, first line and the line after its last. Empty lines are of what follows.

    `indent` is None if the first line says it.
    """
    end = len(lines) if stop is None else stop
    found: list[tuple[str, int, int]] = []
    for number in range(start, end):
        line = lines[number].rstrip("\r\n")
        if _is_idle(line) or (indent == "" and line.rstrip() == "---" and not found):
            continue
        own = _indent(line)
        if "\t" in own:
            raise NotReadable("a tab indents", number + 1, 1)
        indent = own if indent is None else indent
        if len(own) > len(indent) or (found and line.startswith(indent + "- ")):
            if not found:
                raise NotReadable("unexpected indentation", number + 1, len(own) + 1)
            found[-1] = (*found[-1][:2], number + 1)
            continue
        name = _name(line, number)
        if name in (one for one, _, _ in found):
            raise NotReadable(f"{name} is there twice", number + 1, len(own) + 1)
        found.append((name, number, number + 1))
    return found


def _name(line: str, number: int) -> str:
    found = _LINE.match(line)
    if found is None:
        raise NotReadable("no name with a colon", number + 1, len(_indent(line)) + 1)
    key = found["key"]
    try:
        return str(json.loads(key)) if key.startswith('"') else key.strip("'").strip()
    except ValueError:
        raise NotReadable("a name has an unknown escape", number + 1, len(_indent(line)) + 1) from None


def _value(lines: list[str], first: int, last: int, *, depth: int) -> Any:
    """A member's value. A block that is not a mapping of what we write is a text: the lines themselves."""
    scalar = _scalar(lines[first])
    inner = lines[first + 1 : last]
    if not any(not _is_idle(line) for line in inner):
        return _read(scalar or "")
    if scalar is not None or not depth:
        return _Unread("".join(inner))
    content = [line.strip() for line in inner if not _is_idle(line)]
    if all(line.startswith("- ") for line in content):
        return [_read(line[2:]) for line in content]
    try:
        members = _members(lines, first + 1, last, None)
    except NotReadable:
        return _Unread("".join(inner))
    return {name: _value(lines, start, end, depth=depth - 1) for name, start, end in members}


def _scalar(line: str) -> str | None:
    """The value after the colon, without a comment; None if it is empty."""
    found = _LINE.match(line.rstrip("\r\n"))
    value = found["value"] if found else None
    if value is None or value.startswith("#"):
        return None
    if value[:1] in ("{", "["):
        return value
    quoted = _QUOTED.match(value)
    return quoted[1] if quoted else value.partition(" #")[0].rstrip()


def _read(text: str) -> Any:
    text = text.strip()
    if text in _WORDS:
        return _WORDS[text]
    try:
        return json.loads(text)
    except ValueError:
        pass
    if text.startswith("'") and text.endswith("'"):
        return text[1:-1].replace("''", "'")
    if text.startswith("[") and text.endswith("]"):
        return [_read(one) for one in text[1:-1].split(",")]
    return _Unread(text) if text[0] in "{[&*!|>\"'" else text


def _entry(indent: str, name: str, value: Mapping[str, Any]) -> list[str]:
    for key, one in value.items():
        if isinstance(one, _Unread):
            raise NotEditable(f"{name}.{key} is written in a form that is not kept; write it plainly")
    inner = [f"{indent}{_UNIT}{key}: {json.dumps(one, ensure_ascii=False)}" for key, one in value.items()]
    return [f"{indent}{name}:", *inner]


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def _is_idle(line: str) -> bool:
    return not line.strip() or line.lstrip(" ").startswith("#")
