"""How the lists differ for a host that shows MCP Apps. Pure, and uses the standard library alone."""

from collections.abc import Mapping
from typing import Any, Final

EXTENSION: Final = "io.modelcontextprotocol/ui"
DECLARED: Final = {EXTENSION: {"mimeTypes": ["text/html;profile=mcp-app"]}}
"""The extensions of a host that shows MCP Apps and nothing else."""


def with_app(method: str, result: dict[str, Any], app: Mapping[str, Any]) -> dict[str, Any]:
    """The result of a method, with what it says of the App.

    `app` has what is added to the `_meta` of each of its `tools`, by name, and the page as a listed `resource`. A list
    with the App may not be given to other hosts by a cache. Methods that do not name the App keep their result.
    """
    if method == "server/discover":
        capabilities = result["capabilities"]
        extensions = {**capabilities.get("extensions", {}), EXTENSION: {}}
        return {**result, "capabilities": {**capabilities, "extensions": extensions}}
    if method == "tools/list":
        result = {**result, "tools": [_named(tool, app["tools"]) for tool in result["tools"]]}
    elif method == "resources/list":
        result = {**result, "resources": [*result["resources"], app["resource"]]}
    else:
        return result
    return {**result, "cacheScope": "private"} if "cacheScope" in result else result


def _named(tool: dict[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    found = more.get(tool["name"])
    return tool if found is None else {**tool, "_meta": {**tool.get("_meta", {}), **found}}
