"""The answers that never vary, and which requests they answer. Uses the standard library alone.

`catalogue.json` holds what the server answers to the handshake, `ping` and the lists, in both protocol eras. `make
catalogue` writes it, and a test compares it byte for byte with the server. A request is answered from it only if the
server would give that very answer: what is unusual in any way is left to the server. The versions of the libraries that
shaped the answers are in it too. If other versions are installed, except patch releases, nothing is answered from it.
"""

import json
import os
import re
import sys
from collections.abc import Sequence
from typing import Any, Final, Literal

HIDDEN_ID: Final = f"opening-{os.urandom(12).hex()}"
"""The id under which the server gets the opening request, which is answered already. No host can know it."""
# Importing pathlib takes as long as all that is done here.
_FILE: Final = os.path.join(os.path.dirname(__file__), "catalogue.json")  # noqa: PTH118, PTH120
_META: Final = "io.modelcontextprotocol/"
_CLIENT: Final = f"{_META}clientCapabilities"
_LONGEST_LINE: Final = 16_384
_DEEPEST: Final = 60
_SHORT_INTEGER: Final = 18
_PLAIN_ID: Final = re.compile(r"[\w.:/-]{1,100}", re.ASCII)
_KEYS: Final = frozenset(("jsonrpc", "id", "method", "params"))
_CAPABILITIES: Final = ("experimental", "sampling", "elicitation", "extensions", "tasks")
_NAMES: Final = ("title", "description", "websiteUrl")


class Catalogue:
    """One connection's answers. The first request decides the protocol era, as it does for the server."""

    def __init__(self, answers: dict[str, Any], *, switched_on: Sequence[str] = (), has_hooks: bool = False) -> None:
        """`switched_on` names the groups of tools that are not always listed."""
        self._legacy: dict[str, Any] = answers["legacy"]
        self._modern: dict[str, Any] = answers["modern"]
        if has_hooks:
            for opening in (self._legacy["initialize"], self._modern["answers"]["server/discover"]):
                opening["instructions"] = answers["instructions with hooks"]
        for era in (self._legacy, self._modern):
            for group in switched_on:
                era["answers"]["tools/list"]["tools"] += era[group]
        self._app: dict[str, Any] = answers["app"]
        self._era: dict[str, Any] | None = None
        self._shows_apps = False
        self.opening = b""
        """The line that puts the server into the state of this connection. Empty before the first answer."""

    def answer(self, line: bytes) -> bytes | None:
        """The line that the server would answer, without its newline. None if that is not certain."""
        request = _request(line)
        if request is None:
            return None
        method, params = request["method"], request.get("params", {})
        result = self._opened(method, params) if self._era is None else self._listed(method, params)
        if result is None:
            return None
        return json.dumps(
            {"jsonrpc": "2.0", "id": request["id"], "result": result}, ensure_ascii=False, separators=(",", ":")
        ).encode()

    def _opened(self, method: str, params: dict[str, Any]) -> Any:
        """The answer to the first request. Sets the era, unless there is no answer."""
        if method == "initialize":
            version = params.get("protocolVersion")
            if version not in self._legacy["versions"] or not _is_introduced(params):
                return None
            self._era, self._shows_apps = self._legacy, _shows_apps(params["capabilities"])
            self.opening = _opening("initialize", params)
            return self._legacy["initialize"] | {"protocolVersion": version}
        if not self._is_modern(params) or (result := self._answer(self._modern, method, params)) is None:
            return None
        self._era = self._modern
        meta = {f"{_META}protocolVersion": self._modern["version"], _CLIENT: {}}
        self.opening = _opening("server/discover", {"_meta": meta})
        return result

    def _listed(self, method: str, params: dict[str, Any]) -> Any:
        """The answer to a later request."""
        assert self._era is not None  # noqa: S101 - the caller looked
        is_plain = self._is_modern(params) if self._era is self._modern else _is_legacy(params)
        return self._answer(self._era, method, params) if is_plain else None

    def _answer(self, era: dict[str, Any], method: str, params: dict[str, Any]) -> Any:
        """The answer of this era. In the 2026 protocol, each request says whether the host shows MCP Apps."""
        found = era["answers"].get(method)
        shows_apps = self._shows_apps if era is self._legacy else _shows_apps(params["_meta"][_CLIENT])
        if found is None or not shows_apps:
            return found
        from kalito_mcp.server.app.lists import with_app  # noqa: PLC0415 - most hosts show none

        return with_app(method, found, self._app)

    def _is_modern(self, params: dict[str, Any]) -> bool:
        """Whether these are the parameters of a list in the 2026 protocol, without a cursor."""
        meta = params.get("_meta")
        if len(params) != 1 or not isinstance(meta, dict) or not _is_token(meta):
            return False
        known = {f"{_META}{name}" for name in ("protocolVersion", "clientCapabilities", "clientInfo")}
        return (
            meta.get(f"{_META}protocolVersion") == self._modern["version"]
            and _are_capabilities(meta.get(_CLIENT))
            and (f"{_META}clientInfo" not in meta or _is_named(meta[f"{_META}clientInfo"]))
            and all(key in known or not key.startswith(_META) for key in meta)
        )


def load(*, has_memory_tool: bool = False, has_hooks: bool = False, has_chatgpt: bool = False) -> Catalogue | None:
    """The catalogue of this release, of a server with these tools too (see `build_server`). None if it was made with
    another `major.minor` of a library, or is missing."""
    try:
        with open(_FILE, "rb") as file:  # noqa: PTH123 - as below
            content = json.loads(file.read())
    except OSError:
        return None
    if not all(_is_installed(name, version) for name, version in content["made with"].items()):
        return None
    groups = {"memory tool": has_memory_tool, "hook tool": has_hooks, "chatgpt tools": has_chatgpt}
    switched_on = [group for group, is_on in groups.items() if is_on]
    return Catalogue(content, switched_on=switched_on, has_hooks=has_hooks)


def kind_of(line: bytes) -> Literal["request", "notification"] | None:
    """The kind of this message if it cannot change later answers, whatever the server does with it."""
    message = _parsed(line)
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or message.get("method") == "initialize":
        return None
    if not isinstance(message.get("method"), str):
        return None
    return "request" if "id" in message else "notification"


def _is_installed(name: str, version: str) -> bool:
    """Whether the package that an import finds is of this version, or of one of its patch releases. Reads names of
    folders only."""
    begun = f"{name}-{version.rpartition('.')[0]}."
    for folder in sys.path:
        if os.path.isdir(os.path.join(folder, name)):  # noqa: PTH112, PTH118 - as above
            return any(one.startswith(begun) and one.endswith(".dist-info") for one in os.listdir(folder))  # noqa: PTH208
    return False


def _request(line: bytes) -> dict[str, Any] | None:
    """The request, if it has nothing that parsers could read in two ways."""
    message = _parsed(line)
    if not isinstance(message, dict) or not message.keys() <= _KEYS or message.get("jsonrpc") != "2.0":
        return None
    number = message.get("id")
    has_plain_id = type(number) is int or (isinstance(number, str) and _PLAIN_ID.fullmatch(number) is not None)
    if not has_plain_id:
        return None
    if not isinstance(message.get("method"), str) or not isinstance(message.get("params", {}), dict):
        return None
    return message


def _parsed(line: bytes) -> Any:
    """The content of a short, flat line without fractions, long numbers or halves of a surrogate pair; or None."""
    if len(line) > _LONGEST_LINE or line.count(b"{") + line.count(b"[") > _DEEPEST or b"\\ud" in line.lower():
        return None
    try:
        return json.loads(
            line.decode(), parse_float=_refused, parse_constant=_refused, parse_int=_integer, object_pairs_hook=_object
        )
    except ValueError:
        return None


def _refused(_token: str) -> None:
    raise ValueError


def _integer(digits: str) -> int:
    if len(digits) > _SHORT_INTEGER:
        raise ValueError
    return int(digits)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError
    return found


def _opening(method: str, params: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": HIDDEN_ID, "method": method, "params": params}).encode() + b"\n"


def _is_legacy(params: dict[str, Any]) -> bool:
    """Whether these are the parameters of a list in the 2025 protocol, without a cursor."""
    meta = params.get("_meta", {})
    return (
        params.keys() <= {"_meta"}
        and isinstance(meta, dict)
        and _is_token(meta)
        and not any(key.startswith(_META) for key in meta)
    )


def _is_introduced(params: dict[str, Any]) -> bool:
    """Whether `initialize` has exactly the parameters that it needs."""
    return (
        params.keys() == {"protocolVersion", "capabilities", "clientInfo"}
        and _are_capabilities(params["capabilities"])
        and _is_named(params["clientInfo"])
    )


def _is_token(meta: dict[str, Any]) -> bool:
    """Whether the progress token, if there is one, is an integer or a string."""
    return "progressToken" not in meta or type(meta["progressToken"]) in (int, str)


def _is_named(client: Any) -> bool:
    """Whether this introduces a client. One with icons is left to the server."""
    return (
        isinstance(client, dict)
        and isinstance(client.get("name"), str)
        and isinstance(client.get("version"), str)
        and all(isinstance(client.get(name, ""), str) for name in _NAMES)
        and "icons" not in client
    )


def _are_capabilities(found: Any) -> bool:
    """Whether these are a client's capabilities in a form that is certainly right."""
    if not isinstance(found, dict):
        return False
    roots = found.get("roots", {})
    if not isinstance(roots, dict) or type(roots.get("listChanged", True)) is not bool:
        return False
    return all(
        isinstance(found.get(name, {}), dict) and all(isinstance(one, dict) for one in found.get(name, {}).values())
        for name in _CAPABILITIES
    ) and not found.get("tasks", {}).get("requests")


def _shows_apps(capabilities: dict[str, Any]) -> bool:
    """Whether a host with these capabilities shows MCP Apps."""
    types = capabilities.get("extensions", {}).get(f"{_META}ui", {}).get("mimeTypes")
    return isinstance(types, list) and "text/html;profile=mcp-app" in types
