"""`MemoryTool`: the commands of Anthropic's memory tool (`memory_20250818`) on the files of a memory.

Results and refusals are worded as those of the file system tool in Anthropic's Python SDK, because models know them.
The differences: a file is never blank, and what was removed from a text, such as a key, is said in a further line.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from kalito_mcp.domain.files import ROOT, FileTree
from kalito_mcp.domain.memory_records import PROGRAM, Editor, MemoryRecord
from kalito_mcp.domain.wording import did_you_mean, shown
from kalito_mcp.errors import Conflict, InvalidInput, NotFound
from kalito_mcp.memory import Memory
from kalito_mcp.memory_tool.layout import MAX_LINES, lines_of, listing, numbered, snippet
from kalito_mcp.memory_tool.paths import checked_path

_ARGUMENTS: Final[Mapping[str, Mapping[str, type]]] = {
    "view": {"path": str},
    "create": {"path": str, "file_text": str},
    "str_replace": {"path": str, "old_str": str},
    "insert": {"path": str, "insert_line": int, "insert_text": str},
    "delete": {"path": str},
    "rename": {"old_path": str, "new_path": str},
}
"""The arguments that each command needs."""
_MAY: Final[Mapping[str, tuple[str, ...]]] = {"view": ("view_range",), "str_replace": ("new_str",)}
_ENDS: Final = 2


class MemoryTool:
    """`/memories` of a memory: the files of its project, or the personal ones.

        tool = MemoryTool(await memory.in_project("shop"))
        print(await tool.call({"command": "view", "path": "/memories"}))

    Each command returns the text that the model gets. Refusals are `InvalidInput`, `NotFound` or `Conflict`;
    their words are for the model, too. `editor` is whom the history names.
    """

    def __init__(self, memory: Memory, *, editor: Editor = PROGRAM) -> None:
        self._memory = memory
        self._editor = editor

    async def call(self, input: Mapping[str, Any]) -> str:  # noqa: A002 - the SDK's name of it
        """Run the command that a model sent, with its arguments. Those that are None count as absent, and
        those of other commands are ignored.

        Raises:
            InvalidInput: the command is unknown, or an argument is missing or of the wrong type.
        """
        command = input.get("command")
        if not isinstance(command, str) or command not in _ARGUMENTS:
            hint = did_you_mean(str(command), list(_ARGUMENTS))
            raise InvalidInput(f"unknown command {shown(command)}{hint or '; use ' + ', '.join(_ARGUMENTS)}")
        given = {name: value for name, value in input.items() if value is not None}
        for name, kind in _ARGUMENTS[command].items():
            if name not in given:
                raise InvalidInput(f"{command} needs {name}; send it")
            if not isinstance(given[name], kind) or isinstance(given[name], bool):
                raise InvalidInput(
                    f"{name} must be {'a whole number' if kind is int else 'a string'}, not {shown(given[name])}"
                )
        run: Callable[..., Awaitable[str]] = getattr(self, command)
        names = (*_ARGUMENTS[command], *_MAY.get(command, ()))
        return await run(**{name: given[name] for name in names if name in given})

    async def view(self, path: str, view_range: Sequence[int] | None = None) -> str:
        """A directory, two levels deep, or a file with numbered lines: from the first to the last of `view_range`,
        where -1 is the end."""
        normal = checked_path(path)
        tree, file = await self._memory.files.look(normal)
        if file is None:
            if not tree.is_directory(normal):
                raise _missing(path)
            head = f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:"
            return f"{head}\n{listing(tree, normal)}"
        lines = file.text.split("\n")
        if len(lines) > MAX_LINES:
            raise InvalidInput(f"File {path} exceeds maximum line limit of {MAX_LINES:,} lines.")
        first, last = _ends(view_range, len(lines))
        return f"Here's the content of {path} with line numbers:\n" + numbered(lines[first - 1 : last], first=first)

    async def create(self, path: str, file_text: str) -> str:
        """Create a file. One that exists is not overwritten."""
        normal = checked_path(path)

        def write(tree: FileTree, _before: str | None) -> str:
            if tree.is_file(normal) or tree.is_directory(normal):
                raise Conflict(f"File {path} already exists")
            _check_parents(tree, normal)
            return file_text

        return await self._write(normal, write, f"File created successfully at: {path}")

    async def str_replace(self, path: str, old_str: str, new_str: str = "") -> str:
        """Replace the only occurrence of `old_str` in a file."""
        normal = checked_path(path)
        if not old_str:
            raise InvalidInput("No replacement was performed, old_str is empty; send the text to replace")

        def write(tree: FileTree, before: str | None) -> str:
            text = _text_of(tree, normal, path, before)
            first = text.find(old_str)
            if first < 0:
                raise NotFound(f"No replacement was performed, old_str `{old_str}` did not appear verbatim in {path}.")
            if text.find(old_str, first + 1) >= 0:
                raise Conflict(
                    f"No replacement was performed. Multiple occurrences of old_str `{old_str}` in lines: "
                    f"{', '.join(map(str, _lines_with(text, old_str)))}. Please ensure it is unique"
                )
            places.append(first)
            return text[:first] + new_str + text[first + len(old_str) :]

        places: list[int] = []
        written = await self._memory.files.write(normal, write, editor=self._editor)
        head = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
        return f"{head}\n{snippet(written.text, places[-1])}" + _removed(written)

    async def insert(self, path: str, insert_line: int, insert_text: str) -> str:
        """Insert lines after line `insert_line`; 0 is the beginning."""
        normal = checked_path(path)

        def write(tree: FileTree, before: str | None) -> str:
            lines = lines_of(_text_of(tree, normal, path, before))
            if not 0 <= insert_line <= len(lines):
                raise InvalidInput(
                    f"Invalid `insert_line` parameter: {insert_line}. It should be within the range [0, {len(lines)}]."
                )
            lines.insert(insert_line, insert_text.rstrip("\n"))
            text = "\n".join(lines)
            return text if text.endswith("\n") else f"{text}\n"

        return await self._write(normal, write, f"The file {path} has been edited.")

    async def delete(self, path: str) -> str:
        """Delete a file or a directory. What was deleted can be restored."""
        normal = checked_path(path)
        if normal == ROOT:
            raise InvalidInput(f"Cannot delete the {ROOT} directory itself")

        def select(tree: FileTree) -> list[str]:
            found = tree.within(normal)
            if not found:
                raise NotFound(f"The path {path} does not exist")
            return found

        await self._memory.files.delete(select, editor=self._editor)
        return f"Successfully deleted {path}"

    async def rename(self, old_path: str, new_path: str) -> str:
        """Rename or move a file or a directory to a path that is free."""
        old, new = checked_path(old_path), checked_path(new_path)
        if old == ROOT:
            raise InvalidInput(f"Cannot rename the {ROOT} directory itself")

        def select(tree: FileTree) -> dict[str, str]:
            if tree.is_file(new) or tree.is_directory(new):
                raise Conflict(f"The destination {new_path} already exists")
            found = tree.within(old)
            if not found:
                raise NotFound(f"The path {old_path} does not exist")
            if new.startswith(f"{old}/"):
                raise InvalidInput(f"Cannot move {old_path} into itself")
            _check_parents(tree, new)
            return {one: checked_path(new + one.removeprefix(old)) for one in found}

        await self._memory.files.rename(select, editor=self._editor)
        return f"Successfully renamed {old_path} to {new_path}"

    async def _write(self, path: str, write: Callable[[FileTree, str | None], str], done: str) -> str:
        return done + _removed(await self._memory.files.write(path, write, editor=self._editor))


def _ends(view_range: Sequence[int] | None, count: int) -> tuple[int, int]:
    """The first and the last line to show. As in the SDK, a range without two ends is all of the file."""
    if not view_range or len(view_range) != _ENDS:
        return 1, count
    if not all(isinstance(one, int) for one in view_range):
        raise InvalidInput("view_range must be two whole numbers: the first and the last line, or -1 for the end")
    first, last = view_range
    return max(1, first), count if last == -1 else max(0, last)


def _text_of(tree: FileTree, normal: str, path: str, before: str | None) -> str:
    if before is not None:
        return before
    if tree.is_directory(normal):
        raise InvalidInput(f"The path {path} is not a file.")
    raise _missing(path)


def _missing(path: str) -> NotFound:
    return NotFound(f"The path {path} does not exist. Please provide a valid path.")


def _check_parents(tree: FileTree, path: str) -> None:
    """Refuse a path below a file."""
    parent = path
    while parent := parent.rpartition("/")[0]:
        if tree.is_file(parent):
            raise Conflict(f"The path {parent} is a file, so nothing can be below it; use another path")


def _lines_with(text: str, part: str) -> list[int]:
    """The number of the line at which each occurrence begins, overlapping ones included."""
    found: list[int] = []
    line, last, offset = 1, 0, text.find(part)
    while offset >= 0:
        line += text.count("\n", last, offset)
        found.append(line)
        last, offset = offset, text.find(part, offset + 1)
    return found


def _removed(record: MemoryRecord) -> str:
    return f"\nRemoved and not stored: {', '.join(record.redacted)}" if record.redacted else ""
