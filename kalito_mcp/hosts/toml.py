"""TOML tables, edited in place. Pure.

A table with its subtables is one block of lines: from its header to its last line. It is replaced or removed as a
whole, and a new one goes to the end of the file. Everything else stays as it is written. A single value goes below the
header of its table. The caller compares the result with what it should state (`edits`), so a table that is written
in another form, such as `servers = { ours = {} }`, is refused and not doubled.
"""

import json
import re
import tomllib
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final

from kalito_mcp.hosts.documents import NotEditable, NotReadable, Place

_WHERE: Final = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_HEADER: Final = re.compile(r"[ \t]*\[\[?([^\]]*)\]\]?[ \t]*(?:#.*)?$")
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
# What may hold a line end, or a bracket that closes nothing: strings, and comments.
_OPAQUE: Final = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|\#[^\n]*', re.DOTALL
)


def parse(text: str) -> dict[str, Any]:
    """The parsed text.

    Raises:
        NotReadable: the text is not TOML; says the line and the column.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        why = str(error)
        found = _WHERE.search(why)
        line, column = (int(found[1]), int(found[2])) if found and found[1] else (text.count("\n") + 1, 1)
        raise NotReadable(_WHERE.sub("", why), line, column) from None


def put(text: str, path: Place, value: Any) -> str:
    """The text with the table or the value at `path`.

    Raises:
        NotReadable: the text is not TOML. NotEditable: the path goes into a list.
    """
    parse(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    if not isinstance(value, Mapping):
        return _with_value(text, path, value, newline)
    block = [_header(path), *(f"{_key(name)} = {_written(one)}" for name, one in value.items())]
    lines = _lines(text)
    spans = _blocks(text, lines, path)
    if spans:
        first, last = spans[0]
        ends = "" if last == len(lines) and not lines[last - 1].endswith("\n") else newline
        lines[first:last] = [newline.join(block) + ends]
        return _without("".join(lines), path, skipped=1)
    gap = "" if not text else newline if text.endswith("\n") else newline * 2
    return f"{text}{gap}{newline.join(block)}{newline}"


def remove(text: str, path: Place) -> str:
    """The text without the table at `path`, its subtables, and the empty line before it. The text itself if none is.

    Raises:
        NotReadable: the text is not TOML.
    """
    parse(text)
    return _without(text, path, skipped=0)


def _without(text: str, path: Place, *, skipped: int) -> str:
    lines = _lines(text)
    for first, last in reversed(_blocks(text, lines, path)[skipped:]):
        start = first - 1 if first and not lines[first - 1].strip() else first
        del lines[start:last]
    return "".join(lines)


def _with_value(text: str, path: Place, value: Any, newline: str) -> str:
    *table, name = path
    line = f"{_key(name)} = {_written(value)}"
    lines = _lines(text)
    for number, header in _headers(text, lines):
        if header == tuple(table):
            if not lines[number].endswith("\n"):
                lines[number] += newline
            lines.insert(number + 1, line + newline)
            return "".join(lines)
    gap = "" if not text else newline if text.endswith("\n") else newline * 2
    return f"{text}{gap}{_header(tuple(table))}{newline}{line}{newline}"


def _blocks(text: str, lines: list[str], path: Place) -> list[tuple[int, int]]:
    """The lines of the table and of each subtable, as ranges. Comments after the last value are of what follows."""
    headers = [*_headers(text, lines), (len(lines), ())]
    blocks = []
    for (start, name), (following, _) in pairwise(headers):
        if name[: len(path)] != path:
            continue
        end = following
        while end - 1 > start and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
            end -= 1
        blocks.append((start, end))
    return blocks


def _headers(text: str, lines: list[str]) -> list[tuple[int, Place]]:
    """The number of each header's line, and the name of its table."""
    # A line that begins with a bracket is a header only outside of strings and lists.
    plain = _OPAQUE.sub(lambda found: re.sub(r"[^\n]", "x" if found[0][0] != "#" else " ", found[0]), text)
    headers, depth = [], 0
    for number, line in enumerate(_lines(plain)):
        if depth == 0 and _HEADER.match(line.rstrip("\r\n")) and line.lstrip().startswith("["):
            found = _HEADER.match(lines[number].rstrip("\r\n"))
            headers.append((number, _names(found[1] if found else "")))
            continue
        depth += sum({"[": 1, "{": 1, "]": -1, "}": -1}.get(sign, 0) for sign in line)
    return headers


def _lines(text: str) -> list[str]:
    """The lines with their ends. Unlike str.splitlines, only a line feed ends one, as in TOML."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _names(header: str) -> Place:
    """`a."b.c"` as its names: read as TOML."""
    try:
        document: Any = tomllib.loads(f"[{header}]")
    except tomllib.TOMLDecodeError:
        return ()
    names: list[str] = []
    while isinstance(document, dict) and document:
        ((name, document),) = document.items()
        names.append(name)
    return tuple(names)


def _header(path: Place) -> str:
    return f"[{'.'.join(_key(name) for name in path)}]"


def _key(name: str | int) -> str:
    if isinstance(name, int):
        raise NotEditable("a place in a list cannot be written")
    return name if _BARE.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _written(value: Any) -> str:
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_key(name)} = {_written(one)}" for name, one in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    if isinstance(value, str | bool | int | float):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    raise NotEditable(f"{value!r} is a value that cannot be written again")
