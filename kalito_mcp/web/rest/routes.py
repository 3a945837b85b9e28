"""Finds the line of the table that a request means. Pure.

Paths are compared part by part as they were sent, and decoded afterwards: an id may have a slash in it, or anything.
"""

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote, unquote_to_bytes

from kalito_mcp.domain.wording import shown
from kalito_mcp.errors import InvalidInput
from kalito_mcp.web.rest.endpoint import AnyEndpoint
from kalito_mcp.web.rest.problems import Problem

_PREFIX: Final = "/api"


class Routes:
    """The paths of a table."""

    def __init__(self, table: Sequence[AnyEndpoint]) -> None:
        # Parts that are names win over parameters.
        self._endpoints = sorted(table, key=lambda one: one.path.count("{"))
        self._parts = {one.path: one.path.split("/")[1:] for one in table}

    def find(self, scope: Any) -> tuple[AnyEndpoint, dict[str, str]]:
        """The endpoint of an HTTP request's scope, and the parameters of its path.

        Raises:
            Problem: there is no such path, or it has no such method. InvalidInput: the path is not valid UTF-8.
        """
        raw = scope.get("raw_path")
        path = raw.decode("latin-1") if raw else quote(scope["path"])
        sent = path.removeprefix(_PREFIX).split("/")[1:]
        found = [one for one in self._endpoints if _fits(self._parts[one.path], sent)]
        if not found:
            raise Problem(404, "unknown_path", f"there is no {shown(path)}; /api/openapi.json lists what there is")
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        endpoint = next((one for one in found if one.method == method), None)
        if endpoint is None:
            allowed = ", ".join(sorted({one.method for one in found}))
            said = f"send {allowed.replace(', ', ' or ')} to it"
            raise Problem(405, "unknown_method", said, {"allow": allowed})
        names = self._parts[endpoint.path]
        return endpoint, {
            name[1:-1]: _decoded(part) for name, part in zip(names, sent, strict=True) if name.startswith("{")
        }


def _fits(names: Sequence[str], sent: Sequence[str]) -> bool:
    return len(names) == len(sent) and all(
        bool(part) if name.startswith("{") else name == part for name, part in zip(names, sent, strict=True)
    )


def _decoded(part: str) -> str:
    try:
        return unquote_to_bytes(part).decode()
    except UnicodeDecodeError:
        raise InvalidInput("the path is not valid UTF-8; encode it with percent signs") from None
