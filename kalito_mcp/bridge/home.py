"""Requests to the home server: JSON-RPC of the stateless 2026-07-28 protocol, one POST each, over kept connections.

The token goes to the home's origin alone: a redirect is never followed, and proxies of the environment are not used. A
request is sent a second time only if its connection ended without an answer, and only if it may be repeated. Nothing
here tells what a server answered to a wrong token: some echo it.
"""

import hashlib
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import anyio

from kalito_mcp.bridge.connection import NO_CONNECTION, Connection
from kalito_mcp.errors import ConfigurationError
from kalito_mcp.version import __version__

if TYPE_CHECKING:
    import httpx2

PROTOCOL: Final = "2026-07-28"
_META: Final = "io.modelcontextprotocol/"
_CONNECT_S: Final = 3.0
_SILENCE_S: Final = 45.0
"""How long an answer may be silent. A home that works on a long call sends a sign of life every 15 s."""
_REST_S: Final = 2.0
"""So long after it kept somebody waiting, the home counts as away without being asked."""
_KEPT_S: Final = 60.0
"""How long an idle connection is kept: the home closes it after 75."""
_MOST_BYTES: Final = 64 * 1024 * 1024
_LONGEST_S: Final = 600.0
"""How long a request may take, with all signs of life. Those that record wait for each other."""
_OK: Final = 200
_LATER: Final = frozenset({408, 425, 429, 502, 503, 504})
"""Statuses of a home, or of a proxy before it, that cannot answer now."""
_UNDONE: Final = frozenset({425, 429, 503})
"""Those of them that say that nothing was done."""
_OF_REQUEST: Final = frozenset({400, 404, 413, 415, 422})
"""Statuses that say something of this request, if the body is an error of JSON-RPC; 413 always does."""
_TOO_LARGE: Final = 413
_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403
_MISDIRECTED: Final = 421
_LONGEST_DESCRIPTION: Final = 300
_INVALID: Final = -32602
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
    """What answers is not our home, or does not let us in. The request is not at fault; a person has to act."""


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


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: the host's name and version, and what serving over stdio would take from the host's environment."""

    client: Mapping[str, Any] | None = None
    session: str | None = None
    project: str | None = None
    elicitation: Mapping[str, Any] | None = None
    """How the host can ask its user; None if it cannot."""

    def meta(self) -> dict[str, Any]:
        """What a request says of its caller."""
        said: dict[str, Any] = {
            f"{_META}protocolVersion": PROTOCOL,
            f"{_META}clientInfo": dict(self.client or {"name": "kalito-bridge", "version": __version__}),
            f"{_META}clientCapabilities": {} if self.elicitation is None else {"elicitation": dict(self.elicitation)},
        }
        if self.session:
            said["kalito/session"] = self.session
        if self.project:
            said["kalito/project"] = self.project
        return said


class Home:
    """The home server, for one process. Not shared between event loops."""

    def __init__(self, connection: Connection, token: Callable[[], str]) -> None:
        self.connection = connection
        self._token = token
        self._client: httpx2.AsyncClient | None = None
        self._number = 0

    def identity(self) -> str | None:
        """A hash of the home's address and the token, for what only they may be shown; None without a token."""
        try:
            token = self._token()
        except ConfigurationError:
            return None
        return hashlib.blake2b(f"{self.connection.url}\n{token}".encode(), digest_size=16).hexdigest()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Keep connections during the block."""
        try:
            yield
        finally:
            if self._client is not None:
                with anyio.CancelScope(shield=True):
                    await self._client.aclose()
                self._client = None

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        caller: Caller,
        *,
        meta: Mapping[str, Any] | None = None,
        on_progress: Progress | None = None,
        may_repeat: bool = True,
    ) -> dict[str, Any]:
        """The result of one request. If it is cancelled, so is the home's work on it.

        Raises:
            HomeAway: there is no answer now. If `may_be_done`, the home may have done it all the same.
            RequestRefused: the answer is an error.
        """
        self._number += 1
        said = {**caller.meta(), **(meta or {})}
        if on_progress is not None:
            said["progressToken"] = self._number
        body = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": {**params, "_meta": said}}
        headers = {"MCP-Protocol-Version": PROTOCOL, "Mcp-Method": method}
        name = params.get("uri" if method.startswith("resources/") else "name")
        if isinstance(name, str):
            headers["Mcp-Name"] = _header(name)
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
        for is_last in (False, True):
            try:
                return await self._answered(content, headers, on_progress)
            except _Closed as closed:
                if is_last or not may_repeat:
                    raise HomeAway("the connection broke before the answer came") from closed
        raise AssertionError

    async def _answered(
        self, content: bytes, headers: Mapping[str, str], on_progress: Progress | None
    ) -> dict[str, Any]:
        try:
            authorized = {**headers, "Authorization": f"Bearer {self._token()}"}
        except ConfigurationError as error:
            raise HomeRefuses(str(error), may_be_done=False) from error
        client = self._open_client()
        with _faults_in_words(), anyio.fail_after(_LONGEST_S):
            async with client.stream("POST", self.connection.url, content=content, headers=authorized) as response:
                if response.status_code == _OK and _is_stream(response):
                    answer = await _streamed(response, on_progress)
                else:
                    answer = _parsed(await _body(response), response.status_code, response.headers)
        if "error" in answer:
            refused = _refusal(answer["error"])
            raise HomeFailed(f"it fails: {refused.message}") if refused.code == _INTERNAL else refused
        result = answer.get("result")
        if not isinstance(result, dict):
            raise HomeRefuses("what answers there is not a kalito server")
        return result

    def _open_client(self) -> "httpx2.AsyncClient":
        if self._client is None:
            import httpx2  # noqa: PLC0415 - as above

            self._client = httpx2.AsyncClient(
                headers={
                    "Content-Type": "application/json",
                    "Accept": "application/json, text/event-stream",
                    "User-Agent": f"kalito-mcp/{__version__}",
                },
                timeout=httpx2.Timeout(_SILENCE_S, connect=_CONNECT_S, pool=_CONNECT_S),
                limits=httpx2.Limits(max_connections=64, max_keepalive_connections=8, keepalive_expiry=_KEPT_S),
                follow_redirects=False,
                trust_env=False,
                verify=_certificates() if self.connection.url.startswith("https:") else False,
            )
        return self._client


@contextmanager
def _faults_in_words() -> Iterator[None]:
    """Raise what a request fails with as HomeAway, or as _Closed."""
    import httpx2  # noqa: PLC0415 - a tenth of a second

    try:
        yield
    except TimeoutError as error:
        raise HomeAway(f"it has worked on this for {_LONGEST_S:g} s, which is too long") from error
    except httpx2.ConnectTimeout as error:
        raise HomeAway(f"{NO_CONNECTION} within {_CONNECT_S:g} s", retry_after_s=_REST_S, may_be_done=False) from error
    except httpx2.ConnectError as error:
        raise _unreachable(error) from error
    except httpx2.PoolTimeout as error:
        raise HomeAway("too many calls wait for it", may_be_done=False) from error
    except httpx2.TimeoutException as error:
        raise HomeAway(f"it has not answered for {_SILENCE_S:g} s", retry_after_s=_REST_S) from error
    except (httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError, httpx2.CloseError) as error:
        raise _Closed from error
    except ssl.SSLError as error:  # after the handshake, the library passes it on as it is
        raise HomeRefuses(f"TLS failed: {error.reason or error}") from error
    except OSError as error:
        raise HomeAway(f"the connection failed: {error.strerror or error}") from error
    except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
        raise HomeAway(f"the request failed: {type(error).__name__}") from error


def _certificates() -> ssl.SSLContext:
    import httpx2  # noqa: PLC0415 - as above

    try:
        return httpx2.create_ssl_context()
    except OSError as error:
        said = "the certificates that SSL_CERT_FILE or SSL_CERT_DIR names cannot be read; mend or unset them"
        raise HomeRefuses(said, may_be_done=False) from error


class _Closed(Exception):
    """The connection ended without an answer."""


def _header(name: str) -> str:
    """A name as a header may have it (the protocol's own encoding for what is not plain ASCII)."""
    if name.isascii() and name.isprintable() and name == name.strip() and not name.startswith("=?"):
        return name
    import base64  # noqa: PLC0415 - rare

    return f"=?base64?{base64.b64encode(name.encode('utf-8', 'surrogatepass')).decode()}?="


def _is_stream(response: "httpx2.Response") -> bool:
    return str(response.headers.get("content-type", "")).startswith("text/event-stream")


async def _body(response: "httpx2.Response") -> bytes:
    return b"".join([chunk async for chunk in _chunks(response)])


async def _chunks(response: "httpx2.Response") -> AsyncIterator[bytes]:
    """The body as it comes in."""
    length = 0
    async for chunk in response.aiter_bytes():
        length += len(chunk)
        if length > _MOST_BYTES:
            raise HomeRefuses("its answer is too long")
        yield chunk


async def _lines(response: "httpx2.Response") -> AsyncIterator[str]:
    """The lines of a body that has ended each of them."""
    rest = bytearray()
    async for chunk in _chunks(response):
        *lines, last = chunk.split(b"\n")
        for line in lines:
            rest += line
            yield rest.decode("utf-8", "replace").removesuffix("\r")
            rest.clear()
        rest += last


async def _streamed(response: "httpx2.Response", on_progress: Progress | None) -> dict[str, Any]:
    """The answer at the end of a stream of events. What comes before it is progress."""
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
    raise _Closed


async def _report(params: Any, on_progress: Progress) -> None:
    if isinstance(params, dict) and isinstance(params.get("progress"), int | float):
        total, message = params.get("total"), params.get("message")
        await on_progress(
            params["progress"],
            total if isinstance(total, int | float) else None,
            message if isinstance(message, str) else None,
        )


def _parsed(body: bytes, status: int, headers: Mapping[str, str]) -> dict[str, Any]:
    """The answer in a body. A status that says more than the body is raised."""
    if status in _LATER:
        retry_after_s = _seconds(headers.get("retry-after"))
        raise HomeAway(f"it answers {status}", retry_after_s=retry_after_s, may_be_done=status not in _UNDONE)
    if status == _UNAUTHORIZED:
        said = "it rejected the token (401): make a new one there, and run `kalito-mcp connect` again"
        raise HomeRefuses(said, may_be_done=False)
    if status == _FORBIDDEN:
        raise HomeForbids(
            _description(body) or "the token does not allow this (403); use another token", may_be_done=False
        )
    if status == _MISDIRECTED:
        said = "it does not know itself by this name (421): add the name to the setting http.hosts there"
        raise HomeRefuses(said, may_be_done=False)
    if 300 <= status < 400:  # noqa: PLR2004 - redirects
        said = f"it redirects ({status}), which is not followed: connect to the address that it leads to"
        raise HomeRefuses(said, may_be_done=False)
    if status == _TOO_LARGE:
        raise RequestRefused(_INVALID, "the call is too large for the home (413); send less at once")
    try:
        message = _object(body.decode())
    except (UnicodeDecodeError, HomeRefuses):
        message = {}
    if status == _OK or (status in _OF_REQUEST and isinstance(message.get("error"), dict)):
        if "result" in message or "error" in message:
            return message
        raise HomeRefuses("what answers there is not a kalito server")
    if status >= 500:  # noqa: PLR2004 - failures of a server
        raise HomeAway(f"it answers {status}")
    raise HomeRefuses(f"what answers there is not a kalito server ({status})")


def _description(body: bytes) -> str | None:
    """What a kalito server says of a token that is not enough."""
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        return None
    said = told.get("error_description") if isinstance(told, dict) else None
    return said if isinstance(said, str) and said.isprintable() and len(said) <= _LONGEST_DESCRIPTION else None


def _object(text: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise HomeRefuses("what answers there is not a kalito server")
    return content


def _refusal(error: Any) -> RequestRefused:
    told = error if isinstance(error, dict) else {}
    code, message = told.get("code"), told.get("message")
    return RequestRefused(code if isinstance(code, int) else _INVALID, str(message), told.get("data"))


def _unreachable(error: Exception) -> HomeAway:
    """Why there is no connection. A certificate that is not right is not a network that is away."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return HomeRefuses(f"its certificate is not accepted: {cause.verify_message}", may_be_done=False)
        if isinstance(cause, ssl.SSLError):
            return HomeRefuses("it does not speak TLS there: check scheme and port", may_be_done=False)
        cause = cause.__cause__ or cause.__context__
    return HomeAway(NO_CONNECTION, may_be_done=False)


def _seconds(text: str | None) -> float:
    """The seconds of a Retry-After; 0 if it is a date or missing."""
    return float(text) if text and text.isdecimal() and len(text) < 6 else 0.0  # noqa: PLR2004 - a day has five digits
