"""Model servers over HTTP: what chat and embeddings have in common.

The server is not trusted. One deadline covers the whole answer with all its retries, however slowly bytes arrive. The
size of the body is limited, and redirects are refused. The name is resolved once and the connection goes to the address
that was checked, never to a link-local one, where clouds serve their credentials. Proxies of the environment are not
used: the text goes to the named server or nowhere. The API key is read from the environment for each request and never
kept. No message here repeats a server's words, because some echo the key.
"""

import ipaddress
import json
import os
import random
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

from kalito_mcp.errors import ModelError, ModelReplyInvalid, ModelUnavailable
from kalito_mcp.inference.breaker import BreakerState, CircuitBreaker

if TYPE_CHECKING:
    import httpx2

_TRANSIENT: Final = frozenset({429, 500, 502, 503, 504})
_MOST_ADDRESSES: Final = 4  # tried per attempt; `localhost` has two
_METADATA: Final = frozenset(
    ipaddress.ip_address(address) for address in ("100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254")
)
_INNER: Final = tuple(ipaddress.ip_network(network) for network in ("64:ff9b::/96", "::/96"))
"""IPv6 addresses whose last 32 bits are the IPv4 address that is really meant."""
_PRIVATE: Final = tuple(
    ipaddress.ip_network(network)
    for network in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7", "fec0::/10")
)

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class CallLimits:
    """How long and how often one request to a server is tried.

    `total_timeout_s` covers everything, retries included. The wait before retry n is `backoff_s` * 2^n, shortened
    at random by up to a half. A server's Retry-After is respected up to `max_retry_after_s`; after a longer one there
    is no retry.
    """

    connect_timeout_s: float = 2.0
    total_timeout_s: float = 30.0
    max_reply_bytes: int = 1 << 20
    max_retries: int = 2
    backoff_s: float = 0.25
    max_retry_after_s: float = 5.0


class _Transient(ModelUnavailable):
    """A failure that may pass."""

    def __init__(self, message: str, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


async def resolve_host(host: str, port: int) -> Sequence[str]:
    """The numeric addresses of a host, in the system's order of preference. Raises OSError if there is none."""
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(socket_address[0]) for *_, socket_address in found))


def address_flaw(address: str, *, allows_loopback: bool) -> str | None:
    """Why no text may be sent to a numeric address; None if it may. Without `allows_loopback` it may be neither this
    machine's nor one of a private network.

    IPv4 addresses inside IPv6 ones (mapped, compatible, 6to4, Teredo, NAT64) are judged as IPv4 addresses.
    """
    ip = ipaddress.ip_address(address)
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if any(ip in network for network in _INNER) and int(ip) > 1:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)
        ip = inner or ip
    if ip.is_link_local or ip in _METADATA:
        return "is a link-local or metadata address"
    if ip.is_unspecified or ip.is_multicast:
        return "is not the address of one machine"
    if ip.is_loopback and not allows_loopback:
        return "leads back to this machine"
    if not allows_loopback and any(ip in network for network in _PRIVATE):
        return "is one of a private network"
    return None


class HttpModel:
    """One path of one server, with JSON in and out. Not shared between event loops.

    `is_local` comes from the configuration. `allows_loopback` is False for a remote server, so that its name cannot be
    turned against this machine and its network.
    """

    _PATH: ClassVar[str]

    def __init__(
        self,
        *,
        name: str,
        url: str,
        is_local: bool,
        allows_loopback: bool,
        breaker: CircuitBreaker,
        api_key_env: str | None = None,
        limits: CallLimits | None = None,
        resolve: Resolve = resolve_host,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        parts = urlsplit(url)
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        bracketed = f"[{self._host}]" if ":" in self._host else self._host
        self._url = f"{parts.scheme}://{bracketed}:{self._port}{parts.path.rstrip('/')}{self._PATH}"
        self._where = f"model server {name!r} at {parts.scheme}://{bracketed}:{self._port}"
        self._is_local = is_local
        self._allows_loopback = allows_loopback
        self._breaker = breaker
        self._api_key_env = api_key_env
        self._limits = limits or CallLimits()
        self._resolve, self._sleep, self._jitter = resolve, sleep, jitter
        self._client: httpx2.AsyncClient | None = None
        self._client_lock = anyio.Lock()
        self._is_closed = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._where}>"

    @property
    def is_local(self) -> bool:
        """Whether the text stays on this machine or in this network."""
        return self._is_local

    async def _ask(self, payload: Mapping[str, Any], model: str, read: Callable[[Any], Answer]) -> Answer:
        """Send a request and return the result of `read` on the decoded answer.

        At most 1 + `max_retries` calls reach the server, and all end within `total_timeout_s`. If `read` raises
        ModelReplyInvalid, that counts against the server and the request is not repeated.

        Raises:
            ModelUnavailable: not reachable, too slow, refused, or the circuit breaker is open.
            ModelReplyInvalid: the answer is too large, not JSON, or refused by `read`.
        """
        body = json.dumps(payload).encode("ascii")
        deadline = anyio.current_time() + self._limits.total_timeout_s
        for retries in range(self._limits.max_retries + 1):
            try:
                return await self._attempt(body, model, read, deadline)
            except _Transient as failure:
                wait_s = self._wait_s(retries, failure.retry_after_s)
                may_retry = retries < self._limits.max_retries and self._breaker.state is BreakerState.CLOSED
                if not may_retry or wait_s is None or anyio.current_time() + wait_s >= deadline:
                    raise ModelUnavailable(str(failure)) from None
            await self._sleep(wait_s)
        raise self._unavailable("was not asked", "set max_retries to 0 or more")

    async def aclose(self) -> None:
        """Close the connections. Calls after this one raise ModelUnavailable."""
        self._is_closed = True
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _attempt(self, body: bytes, model: str, read: Callable[[Any], Answer], deadline: float) -> Answer:
        """One call, under the breaker and the deadline."""
        headers = self._headers()
        permit = self._breaker.admit()
        if permit is None:
            raise self._unavailable(
                "was not asked because it failed too often",
                f"check it; it is tried again {self._breaker.policy.open_s:g} s after its last failure",
            )
        is_healthy: bool | None = None
        try:
            with anyio.CancelScope(deadline=deadline):
                answer = read(await self._exchange(body, model, headers))
                is_healthy = True
                return answer
            is_healthy = False
            raise self._unavailable(
                f"did not finish its answer within {self._limits.total_timeout_s:g} s",
                "check that it is not overloaded, or raise its total_timeout_s",
            )
        except (_Transient, ModelReplyInvalid):
            is_healthy = False
            raise
        finally:
            self._breaker.settle(permit, is_healthy)

    async def _exchange(self, body: bytes, model: str, headers: Mapping[str, str]) -> Any:
        client = await self._open_client()
        import httpx2  # noqa: PLC0415

        try:
            response = await self._send(client, body, headers)
            try:
                self._refuse_status(response, model)
                return self._decoded(await self._body_of(response))
            finally:
                await response.aclose()
        except (httpx2.TransportError, OSError) as failure:
            raise _Transient(
                f"{self._where}: the connection failed ({type(failure).__name__}); check that the server runs "
                "and that its url is right"
            ) from None
        except (httpx2.HTTPError, httpx2.InvalidURL):
            raise self._invalid("its answer could not be decoded") from None

    async def _open_client(self) -> "httpx2.AsyncClient":
        async with self._client_lock:
            if self._is_closed:
                raise self._unavailable("is closed", "open the memory again")
            if self._client is None:
                # In a thread, because the import and the certificates take a fifth of a second of CPU.
                try:
                    self._client = await anyio.to_thread.run_sync(self._new_client)
                except OSError:
                    raise self._unavailable(
                        "was not asked because the certificates could not be loaded", "check SSL_CERT_FILE"
                    ) from None
            return self._client

    def _new_client(self) -> "httpx2.AsyncClient":
        import httpx2  # noqa: PLC0415

        return httpx2.AsyncClient(
            verify=httpx2.create_ssl_context(),
            trust_env=False,
            follow_redirects=False,
            timeout=httpx2.Timeout(self._limits.total_timeout_s, connect=self._limits.connect_timeout_s),
        )

    async def _send(self, client: "httpx2.AsyncClient", body: bytes, headers: Mapping[str, str]) -> "httpx2.Response":
        """The head of the response, from the first of the host's addresses that accepts a connection."""
        import httpx2  # noqa: PLC0415

        failure: httpx2.TransportError | None = None
        for address in await self._addresses():
            url = httpx2.URL(self._url)
            request = client.build_request(
                "POST",
                url.copy_with(host=address),
                content=body,
                headers={**headers, "Host": url.netloc.decode("ascii")},
                extensions={"sni_hostname": self._host},
            )
            try:
                return await client.send(request, stream=True)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as refusal:
                failure = refusal
        raise failure or httpx2.ConnectError("the host has no address")

    async def _addresses(self) -> Sequence[str]:
        try:
            addresses = await self._resolve(self._host, self._port)
        except (OSError, UnicodeError):
            raise _Transient(f"{self._where}: no such host; check its url and the network") from None
        for address in addresses:
            flaw = address_flaw(address, allows_loopback=self._allows_loopback)
            if flaw is not None:
                raise self._unavailable(
                    f"was not asked because its host's address {address} {flaw}",
                    "set its url to the server's own address (is_local = true if that is this machine or its network)",
                )
        return addresses[:_MOST_ADDRESSES]

    def _headers(self) -> Mapping[str, str]:
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": "kalito-mcp",
        }
        if self._api_key_env is not None:
            key = os.environ.get(self._api_key_env, "").strip()
            if not (key and key.isascii() and key.isprintable()):
                raise self._unavailable(
                    "was not asked because there is no usable API key",
                    f"set the environment variable {self._api_key_env}",
                )
            headers["Authorization"] = f"Bearer {key}"
        return headers

    def _refuse_status(self, response: "httpx2.Response", model: str) -> None:
        status = response.status_code
        if status in _TRANSIENT:
            raise _Transient(
                f"{self._where}: it answered {status}; try again later",
                _seconds(response.headers.get("retry-after", "")),
            )
        if response.is_redirect:
            raise self._unavailable(
                f"answered {status}, a redirect, and those are not followed", "set its url to the final address"
            )
        if status in (401, 403):
            key = self._api_key_env or "api_key_env, which is not set"
            raise self._unavailable(f"answered {status}", f"check the API key in {key}")
        if status == 404:  # noqa: PLR2004
            raise self._unavailable("answered 404", f"check its url, and that it has the model {model!r}")
        if response.is_error:
            raise self._unavailable(f"answered {status}", f"check that it offers the model {model!r}")
        if not response.is_success:
            raise self._invalid(f"it answered {status}")

    async def _body_of(self, response: "httpx2.Response") -> bytes:
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > self._limits.max_reply_bytes:
                raise self._invalid(f"its answer is over {self._limits.max_reply_bytes} bytes", "raise max_reply_bytes")
        return bytes(body)

    def _decoded(self, body: bytes) -> Any:
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            raise self._invalid("its answer is not JSON") from None

    def _wait_s(self, retries: int, retry_after_s: float) -> float | None:
        if retry_after_s > self._limits.max_retry_after_s:
            return None
        backoff_s = self._limits.backoff_s * 2.0**retries * (1.0 - self._jitter() / 2.0)
        return max(backoff_s, retry_after_s)

    def _unavailable(self, what: str, remedy: str) -> ModelError:
        return ModelUnavailable(f"{self._where} {what}; {remedy}")

    def _invalid(self, what: str, remedy: str = "check its kind, its url and its model") -> ModelError:
        return ModelReplyInvalid(f"{self._where}: {what}; {remedy}")


def _seconds(retry_after: str) -> float:
    """The header's seconds. A date, or anything else, counts as 0: the backoff decides."""
    is_number = retry_after.isascii() and retry_after.isdigit() and len(retry_after) < 10  # noqa: PLR2004
    return float(retry_after) if is_number else 0.0
