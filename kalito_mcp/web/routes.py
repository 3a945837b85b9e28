"""Finds the line of the table that a request means. Pure.

Paths are compared part by part as they were sent, and decoded afterwards: an id may have a slash in it, or anything.
"""

from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeVar
from urllib.parse import quote, unquote_to_bytes

from kalito_mcp.domain.wording import shown
from kalito_mcp.errors import InvalidInput
from kalito_mcp.web.problems import Problem


class Located(Protocol):
    """A line of a table: a method, and a path in which `{names}` are parameters."""

    @property
    def method(self) -> str: ...
    @property
    def path(self) -> str: ...


Line = TypeVar("Line", bound=Located)


class Routes(Generic[Line]):
    """The paths of a table, below a prefix. `listed_at` says in an error where a caller finds them."""

    def __init__(self, table: Sequence[Line], prefix: str, listed_at: str) -> None:
        self._prefix = prefix
        self._listed_at = listed_at
        # Parts that are names win over parameters.
        self._lines = sorted(table, key=lambda one: one.path.count("{"))
        self._parts = {one.path: one.path.split("/")[1:] for one in table}

    def has(self, scope: Any) -> bool:
        """Whether the path of an HTTP request's scope is in the table."""
        return bool(self._lines_at(sent_path(scope)))

    def find(self, scope: Any) -> tuple[Line, dict[str, str]]:
        """The line of an HTTP request's scope, and the parameters of its path.

        Raises:
            Problem: there is no such path, or it has no such method. InvalidInput: the path is not valid UTF-8.
        """
        path = sent_path(scope)
        found = self._lines_at(path)
        if not found:
            raise Problem(404, "unknown_path", f"there is no {shown(path)}; {self._listed_at} lists what there is")
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        line = next((one for one in found if one.method == method), None)
        if line is None:
            allowed = ", ".join(sorted({one.method for one in found}))
            said = f"send {allowed.replace(', ', ' or ')} to it"
            raise Problem(405, "unknown_method", said, {"allow": allowed})
        parts = zip(self._parts[line.path], self._split(path), strict=True)
        return line, {name[1:-1]: _decoded(part) for name, part in parts if name.startswith("{")}

    def _lines_at(self, path: str) -> list[Line]:
        if not path.startswith("/"):  # what reads it decoded would see another path
            return []
        sent = self._split(path)
        return [one for one in self._lines if _fits(self._parts[one.path], sent)]

    def _split(self, path: str) -> list[str]:
        return path.removeprefix(self._prefix).split("/")[1:]


def sent_path(scope: Any) -> str:
    """The path of an HTTP request's scope as it was sent, with its percent signs."""
    raw = scope.get("raw_path")
    return raw.decode("latin-1") if raw else quote(scope["path"])


def _fits(names: Sequence[str], sent: Sequence[str]) -> bool:
    return len(names) == len(sent) and all(
        bool(part) if name.startswith("{") else name == part for name, part in zip(names, sent, strict=True)
    )


def _decoded(part: str) -> str:
    try:
        return unquote_to_bytes(part).decode()
    except UnicodeDecodeError:
        raise InvalidInput("the path is not valid UTF-8; encode it with percent signs") from None
