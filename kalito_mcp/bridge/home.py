"""Requests to the home server: JSON-RPC of the stateless 2026-07-28 protocol, one POST each, over kept connections.

The token goes to the home's origin alone: a redirect is never followed, and proxies of the environment are not used. A
request is sent a second time only if its connection ended without an answer, and only if it may be repeated. Nothing
here tells what a server answered to a wrong token: some echo it.
"""

import hashlib
import json
import secrets
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Final

import anyio

from kalito_mcp.bridge.connection import NO_CONNECTION, Connection
from kalito_mcp.bridge.replies import (
    ConnectionEnded,
    HomeAway,
    HomeFailed,
    HomeRefuses,
    Progress,
    RequestRefused,
    not_kalito,
    read_reply,
)
from kalito_mcp.errors import ConfigurationError, TextTooLarge
from kalito_mcp.http_client import BodyTooLong, CertificatesUnreadable, HttpClient
from kalito_mcp.server.app.lists import DECLARED
from kalito_mcp.version import __version__

PROTOCOL: Final = "2026-07-28"
_META: Final = "io.modelcontextprotocol/"
_HEADERS: Final = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "User-Agent": f"kalito-mcp/{__version__}",
}
_CONNECT_S: Final = 3.0
_SILENCE_S: Final = 45.0
"""How long an answer may be silent. A home that works on a long call sends a sign of life every 15 s."""
_REST_S: Final = 2.0
"""How long after a timeout the home counts as away without being asked."""
_KEPT_S: Final = 60.0
"""How long an idle connection is kept: the home closes it after 75."""
_LONGEST_S: Final = 600.0
"""How long a request may take, with all signs of life. Those that record wait for each other."""
MOST_BYTES: Final = 4_194_304
"""How long a request may be for a kalito server."""
TOO_LONG: Final = f"the body of the request is longer than {MOST_BYTES:,} bytes; send less at once"
_INVALID_PARAMS: Final = -32602
_WHO: Final = "server/discover"
"""The request that asks a server for its name."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller: the host's name and version, and what serving over stdio would take from the host's environment."""

    client: Mapping[str, Any] | None = None
    session: str | None = None
    project: str | None = None
    elicitation: Mapping[str, Any] | None = None
    """How the host can ask its user; None if it cannot."""
    shows_apps: bool = False
    """Whether the host shows MCP Apps."""

    def meta(self) -> dict[str, Any]:
        """The `_meta` of a request of this caller."""
        capabilities: dict[str, Any] = {} if self.elicitation is None else {"elicitation": dict(self.elicitation)}
        if self.shows_apps:
            capabilities["extensions"] = DECLARED
        said: dict[str, Any] = {
            f"{_META}protocolVersion": PROTOCOL,
            f"{_META}clientInfo": dict(self.client or {"name": "kalito-bridge", "version": __version__}),
            f"{_META}clientCapabilities": capabilities,
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
        self._client = HttpClient(connection.url, silence_s=_SILENCE_S, connect_s=_CONNECT_S, kept_s=_KEPT_S)
        self._number = secrets.randbelow(2**31)
        """The id of the last request. The first is random: what answers each request under the id 1 is not the home."""

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
            await self._client.aclose()

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
        """The result of one request. Cancelling it also cancels the home's work on it.

        Raises:
            HomeAway: there is no answer now. If `may_be_done`, the home may have done it all the same.
            RequestRefused: the answer is an error, or the request is too long.
        """
        self._number += 1
        progress = {} if on_progress is None else {"progressToken": self._number}
        content = self._body(method, params, caller, {**(meta or {}), **progress})
        if len(content) > MOST_BYTES:
            raise RequestRefused(_INVALID_PARAMS, TOO_LONG)
        headers = {"MCP-Protocol-Version": PROTOCOL, "Mcp-Method": method}
        name = params.get("uri" if method.startswith("resources/") else "name")
        if isinstance(name, str):
            headers["Mcp-Name"] = _header(name)
        try:
            return await self._sent(content, headers, self._number, on_progress, may_repeat=may_repeat)
        except (HomeFailed, RequestRefused):
            # A refusal ends a request for good. So the server that refuses has to be a kalito server.
            if method == _WHO:
                raise not_kalito() from None
            await self.request(_WHO, {}, Caller())
            raise

    def check_length(
        self, method: str, params: Mapping[str, Any], caller: Caller, meta: Mapping[str, Any] | None = None
    ) -> None:
        """Raise TextTooLarge, in the home's words, if it takes no request of this length."""
        if len(self._body(method, params, caller, meta or {})) > MOST_BYTES:
            raise TextTooLarge(TOO_LONG)

    def _body(self, method: str, params: Mapping[str, Any], caller: Caller, meta: Mapping[str, Any]) -> bytes:
        said = {**params, "_meta": {**caller.meta(), **meta}}
        body = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": said}
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")

    async def _sent(
        self,
        content: bytes,
        headers: Mapping[str, str],
        number: int,
        on_progress: Progress | None,
        *,
        may_repeat: bool,
    ) -> dict[str, Any]:
        for is_last in (False, True):
            try:
                return await self._answered(content, headers, number, on_progress)
            except ConnectionEnded as ended:
                if is_last or not may_repeat:
                    raise HomeAway("the connection broke before the answer came") from ended
        raise AssertionError

    async def _answered(
        self, content: bytes, headers: Mapping[str, str], number: int, on_progress: Progress | None
    ) -> dict[str, Any]:
        try:
            authorized = {**_HEADERS, **headers, "Authorization": f"Bearer {self._token()}"}
        except ConfigurationError as error:
            raise HomeRefuses(str(error), may_be_done=False) from error
        with _faults_in_words(), anyio.fail_after(_LONGEST_S):
            async with self._client.stream("POST", authorized, content) as response:
                return await read_reply(response, number, on_progress)


@contextmanager
def _faults_in_words() -> Iterator[None]:
    """Raise what a request fails with as HomeAway, or as ConnectionEnded."""
    import httpx2  # noqa: PLC0415 - a tenth of a second

    try:
        yield
    except CertificatesUnreadable as error:
        said = "the certificates that SSL_CERT_FILE or SSL_CERT_DIR names cannot be read; mend or unset them"
        raise HomeRefuses(said, may_be_done=False) from error
    except BodyTooLong as error:
        raise HomeRefuses("its answer is too long") from error
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
        raise ConnectionEnded from error
    except ssl.SSLError as error:  # after the handshake, the library passes it on as it is
        raise HomeRefuses(f"TLS failed: {error.reason or error}") from error
    except OSError as error:
        raise HomeAway(f"the connection failed: {error.strerror or error}") from error
    except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
        raise HomeAway(f"the request failed: {type(error).__name__}") from error


def _header(name: str) -> str:
    """A name in a form that a header may have (the protocol's own encoding unless it is plain ASCII)."""
    if name.isascii() and name.isprintable() and name == name.strip() and not name.startswith("=?"):
        return name
    import base64  # noqa: PLC0415 - rare

    return f"=?base64?{base64.b64encode(name.encode('utf-8', 'surrogatepass')).decode()}?="


def _unreachable(error: Exception) -> HomeAway:
    """Why there is no connection. A wrong certificate is not reported as an unreachable network."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return HomeRefuses(f"its certificate is not accepted: {cause.verify_message}", may_be_done=False)
        if isinstance(cause, ssl.SSLError):
            return HomeRefuses("it does not speak TLS there: check scheme and port", may_be_done=False)
        cause = cause.__cause__ or cause.__context__
    return HomeAway(NO_CONNECTION, may_be_done=False)
