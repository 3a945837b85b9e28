"""Interprets the reply to a request: the home's answer, a refusal by the home, or no answer of the home at all.

Anything may answer at the home's address: another program on its port, a proxy, a login page. A reply counts as the
home's only if it is JSON-RPC 2.0 under the id of the request, and a result only if it names a kalito server. Everything
else means that the home is away, so waiting calls go on waiting.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kalito_mcp.http_client import body_of, chunks, retry_after_s

if TYPE_CHECKING:
    import httpx2

_SERVER_NAME: Final = "kalito-mcp"
_SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
_MOST_BYTES: Final = 64 * 1024 * 1024
_OK: Final = 200
_LATER: Final = frozenset({408, 425, 429, 502, 503, 504})
"""Statuses of a home, or of a proxy before it, that cannot answer now."""
_UNDONE: Final = frozenset({425, 429, 503})
"""Those which mean that nothing was done."""
_OF_REQUEST: Final = frozenset({400, 404, 415, 422})
"""Statuses that the home gives to an error of JSON-RPC."""
_TOO_LARGE: Final = 413
_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403
_MISDIRECTED: Final = 421
_LONGEST_DESCRIPTION: Final = 300
_INVALID_REQUEST: Final = -32600
_INVALID_PARAMS: Final = -32602
_UNREADABLE: Final = -32700
_INTERNAL: Final = -32603

Progress = Callable[[float, float | None, str | None], Awaitable[None]]


class HomeAway(Exception):
    """The home cannot be reached, or cannot answer now. `reason` says why in words that may be shown."""

    def __init__(self, reason: str, *, retry_after_s: float = 0.0, may_be_done: bool = True) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_after_s = retry_after_s
        self.may_be_done = may_be_done
        """Whether the home may have done the request all the same."""


class HomeRefuses(HomeAway):
    """The server is not our home, or refuses us access. The request is not at fault; a person has to act."""


class HomeForbids(HomeRefuses):
    """The token may be used, but not for this request."""


class HomeFailed(HomeAway):
    """The home failed at this request, and may fail again."""


class HomePaused(HomeAway):
    """The home remembers nothing for a while, as its owner wants."""


@dataclass
class RequestRefused(Exception):
    """The home refuses this request: the error of JSON-RPC that it answered."""

    code: int
    message: str
    data: Any = None


class ConnectionEnded(Exception):
    """The connection ended without an answer."""


def not_kalito(detail: str = "") -> HomeRefuses:
    """The error if something else answers at the home's address."""
    return HomeRefuses(f"what answers there is not a kalito server{detail}")


async def read_reply(response: "httpx2.Response", number: int, on_progress: Progress | None) -> dict[str, Any]:
    """The result in the reply to request `number`.

    Raises:
        HomeAway: the reply is not the home's, or the home cannot answer now. RequestRefused, HomeFailed: the reply is
            an error in the form of the home's. ConnectionEnded: there is no reply. BodyTooLong: it is too long.
    """
    if response.status_code == _OK and _is_stream(response):
        message = await _streamed(response, on_progress)
    else:
        message = _message_in(await body_of(response, _MOST_BYTES), response.status_code, response.headers)
    is_error = "error" in message
    # An error about a body that cannot be read has no id.
    is_ours = message.get("id", 0) == number or (is_error and message.get("id", 0) is None)
    if message.get("jsonrpc") != "2.0" or not is_ours or is_error == ("result" in message):
        raise not_kalito()
    if is_error:
        raise _fault_in(message["error"])
    result = message["result"]
    if not isinstance(result, dict) or _server_name(result) != _SERVER_NAME:
        raise not_kalito()
    return result


def _server_name(result: Mapping[str, Any]) -> object:
    meta = result.get("_meta")
    info = meta.get(_SERVER_INFO) if isinstance(meta, dict) else None
    return info.get("name") if isinstance(info, dict) else None


def _fault_in(error: Any) -> Exception:
    """The exception for a JSON-RPC error. Codes about the protocol say nothing about the request."""
    fields = error if isinstance(error, dict) else {}
    code, message = fields.get("code"), fields.get("message")
    if not isinstance(code, int) or not isinstance(message, str):
        return not_kalito()
    if code == _INTERNAL:
        return HomeFailed(f"it fails: {message}")
    if code not in (_UNREADABLE, _INVALID_REQUEST, _INVALID_PARAMS):
        return HomeRefuses(f"what answers there does not understand this machine (error {code})")
    return RequestRefused(code, message, fields.get("data"))


def _is_stream(response: "httpx2.Response") -> bool:
    return str(response.headers.get("content-type", "")).startswith("text/event-stream")


async def _lines(response: "httpx2.Response") -> AsyncIterator[str]:
    """The lines of a body that has ended each of them."""
    rest = bytearray()
    async for chunk in chunks(response, _MOST_BYTES):
        *lines, last = chunk.split(b"\n")
        for line in lines:
            rest += line
            yield rest.decode("utf-8", "replace").removesuffix("\r")
            rest.clear()
        rest += last


async def _streamed(response: "httpx2.Response", on_progress: Progress | None) -> dict[str, Any]:
    """The answer at the end of a stream of events. Earlier events are progress."""
    data: list[str] = []
    async for line in _lines(response):
        if line.startswith("data:"):
            data.append(line[5:].lstrip(" "))
        elif not line and data:
            message = _object("\n".join(data))
            data = []
            if "result" in message or "error" in message:
                return message
            if on_progress is not None and message.get("method") == "notifications/progress":
                await _report(message.get("params"), on_progress)
    raise ConnectionEnded


async def _report(params: Any, on_progress: Progress) -> None:
    if isinstance(params, dict) and isinstance(params.get("progress"), int | float):
        total, message = params.get("total"), params.get("message")
        await on_progress(
            params["progress"],
            total if isinstance(total, int | float) else None,
            message if isinstance(message, str) else None,
        )


def _message_in(body: bytes, status: int, headers: Mapping[str, str]) -> dict[str, Any]:
    """The message in a body. A status that says more than the body is raised."""
    if status in _LATER:
        raise HomeAway(f"it answers {status}", retry_after_s=retry_after_s(headers), may_be_done=status not in _UNDONE)
    if status == _UNAUTHORIZED:
        said = "it rejected the token (401): make a new one there, and run `kalito-mcp connect` again"
        raise HomeRefuses(said, may_be_done=False)
    if status == _FORBIDDEN:
        description = _description(body, "insufficient_scope")
        if description is None:
            raise HomeRefuses(
                "it does not let this machine in (403): use another token, or change what a proxy there lets through",
                may_be_done=False,
            )
        raise HomeForbids(description, may_be_done=False)
    if status == _MISDIRECTED:
        said = "it does not know itself by this name (421): add the name to the setting http.hosts there"
        raise HomeRefuses(said, may_be_done=False)
    if 300 <= status < 400:  # noqa: PLR2004 - redirects
        said = f"it redirects ({status}), which is not followed: connect to the address that it leads to"
        raise HomeRefuses(said, may_be_done=False)
    if status == _TOO_LARGE:
        description = _description(body, "request_too_large")
        if description is not None:
            raise RequestRefused(_INVALID_PARAMS, description)
        said = (
            "a proxy before it refuses a call as too large (413): let the proxy take 5 MB (nginx: client_max_body_size)"
        )
        raise HomeRefuses(said, may_be_done=False)
    if status >= 500:  # noqa: PLR2004 - failures of a server
        raise HomeAway(f"it answers {status}")
    if status == _OK or status in _OF_REQUEST:
        try:
            return _object(body.decode())
        except (UnicodeDecodeError, HomeRefuses):
            pass
    raise not_kalito("" if status == _OK else f" ({status})")


def _description(body: bytes, error: str) -> str | None:
    """A kalito server's description of this error; None if the body is not from one."""
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        return None
    said = fields.get("error_description") if isinstance(fields, dict) and fields.get("error") == error else None
    return said if isinstance(said, str) and said.isprintable() and len(said) <= _LONGEST_DESCRIPTION else None


def _object(text: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise not_kalito()
    return content
