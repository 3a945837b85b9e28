"""How files and directories are shown: in the columns of Anthropic's memory tool, which its models know. Pure."""

from collections.abc import Sequence
from typing import Final

from kalito_mcp.domain.files import FileTree

MAX_LINES: Final = 999_999
_NUMBER_WIDTH: Final = 6
_LEVELS: Final = 2
_CONTEXT_LINES: Final = 2
_UNITS: Final = "BKMG"
_STEP: Final = 1_024


def numbered(lines: Sequence[str], *, first: int) -> str:
    """The lines with their numbers, from `first`, in a column of six."""
    return "\n".join(f"{number:>{_NUMBER_WIDTH}}\t{line}" for number, line in enumerate(lines, first))


def snippet(text: str, offset: int) -> str:
    """The line at this offset with two lines before and after it, numbered."""
    lines, line = text.split("\n"), text.count("\n", 0, offset)
    start = max(0, line - _CONTEXT_LINES)
    return numbered(lines[start : line + _CONTEXT_LINES + 1], first=start + 1)


def lines_of(text: str) -> list[str]:
    """The lines, without the empty one after a last line feed."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def listing(tree: FileTree, path: str) -> str:
    """What is in the directory, two levels deep, without hidden names: a line each, of size, tab and path. The size of
    a directory is that of all its files."""
    sizes = {path: 0}
    for file, size in sorted(tree.sizes.items(), key=lambda one: one[0].split("/")):
        if not file.startswith(f"{path}/"):
            continue
        sizes[path] += size
        names = file.removeprefix(f"{path}/").split("/")
        for depth in range(1, min(len(names), _LEVELS) + 1):
            if any(name.startswith(".") for name in names[:depth]):
                break
            shown = "/".join((path, *names[:depth])) + ("/" if depth < len(names) else "")
            sizes[shown] = sizes.get(shown, 0) + size
    return "\n".join(f"{_size(size)}\t{shown}" for shown, size in sizes.items())


def _size(size: int) -> str:
    """`0B`, `512B`, `1.5K`, `2M`."""
    unit = min((max(size, 1).bit_length() - 1) // 10, len(_UNITS) - 1)
    number = size / _STEP**unit
    return f"{number:.0f}{_UNITS[unit]}" if number == int(number) else f"{number:.1f}{_UNITS[unit]}"
