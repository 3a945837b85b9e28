"""The one HTTP client: requests to servers that are not trusted.

Redirects are not followed, proxies and credentials of the environment are not used, and certificates are checked. If
the caller judges addresses, a host is resolved once for each request and the connection goes to an address that was
judged, so that its name cannot lead elsewhere in between. Bodies are read up to a length. The caller limits the time of
a whole request. httpx2 is imported for the first one.
"""

import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from ssl import SSLContext
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

if TYPE_CHECKING:
    import httpx2

_MOST_ADDRESSES: Final = 4  # tried for each request; `localhost` has two
_MOST_CONNECTIONS: Final = 64
_MOST_KEPT: Final = 8
_LONGEST_RETRY_AFTER: Final = 9  # digits

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
Flaw = Callable[[str], str | None]
"""Why a numeric address must not be connected to; None if it may."""


class HostUnknown(OSError):
    """A host has no address."""


class CertificatesUnreadable(OSError):
    """The certificates of authorities cannot be read, as when SSL_CERT_FILE names no file."""


class AddressRefused(Exception):
    """A host has an address that must not be connected to. Nothing was sent."""

    def __init__(self, address: str, flaw: str) -> None:
        super().__init__(address, flaw)
        self.address, self.flaw = address, flaw


class BodyTooLong(Exception):
    """A body is longer than the caller allows."""


async def resolve_host(host: str, port: int) -> Sequence[str]:
    """The numeric addresses of a host, in the system's order of preference. Raises OSError if it has no address."""
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(socket_address[0]) for *_, socket_address in found))


class HttpClient:
    """Requests to one URL, over connections that are kept until `aclose`. Not shared between event loops.

    `silence_s` is how long a server may send nothing, `kept_s` how long an idle connection is kept. Without `flaw`,
    every address may be connected to, and httpx2 resolves hosts itself.
    """

    def __init__(
        self,
        url: str,
        *,
        silence_s: float,
        connect_s: float,
        kept_s: float = 5.0,
        flaw: Flaw | None = None,
        resolve: Resolve = resolve_host,
    ) -> None:
        self._url = url
        self._silence_s, self._connect_s, self._kept_s = silence_s, connect_s, kept_s
        self._flaw, self._resolve = flaw, resolve
        self._client: httpx2.AsyncClient | None = None
        self._lock = anyio.Lock()

    @asynccontextmanager
    async def stream(
        self, method: str, headers: Mapping[str, str], content: bytes | None = None
    ) -> AsyncIterator["httpx2.Response"]:
        """The head of a response, whose body can be read during the block.

        Raises:
            AddressRefused, HostUnknown, CertificatesUnreadable: nothing was sent.
            httpx2.HTTPError, httpx2.InvalidURL, OSError: the request failed.
        """
        response = await self._sent(await self.open(), method, headers, content)
        try:
            yield response
        finally:
            await response.aclose()

    async def aclose(self) -> None:
        """Close the connections, even if the caller is cancelled. Another request opens new ones."""
        with anyio.CancelScope(shield=True):
            async with self._lock:
                client, self._client = self._client, None
                if client is not None:
                    await client.aclose()

    async def open(self) -> "httpx2.AsyncClient":
        """Make what keeps the connections, unless it is there. Raises CertificatesUnreadable."""
        async with self._lock:
            if self._client is None:
                # In a thread, because the import and the certificates take a fifth of a second of CPU.
                self._client = await anyio.to_thread.run_sync(self._new_client)
            return self._client

    def _new_client(self) -> "httpx2.AsyncClient":
        import httpx2  # noqa: PLC0415 - a tenth of a second

        verify: SSLContext | bool = False
        if self._url.startswith("https:"):
            try:
                verify = httpx2.create_ssl_context()
            except OSError as error:
                raise CertificatesUnreadable(str(error)) from error
        return httpx2.AsyncClient(
            verify=verify,
            trust_env=False,
            follow_redirects=False,
            timeout=httpx2.Timeout(self._silence_s, connect=self._connect_s, pool=self._connect_s),
            limits=httpx2.Limits(
                max_connections=_MOST_CONNECTIONS,
                max_keepalive_connections=_MOST_KEPT,
                keepalive_expiry=self._kept_s,
            ),
        )

    async def _sent(
        self, client: "httpx2.AsyncClient", method: str, headers: Mapping[str, str], content: bytes | None
    ) -> "httpx2.Response":
        """The head of the response, from the first of the host's addresses that accepts a connection."""
        import httpx2  # noqa: PLC0415 - imported by now, in a thread

        if self._flaw is None:
            request = client.build_request(method, self._url, content=content, headers=headers)
            return await client.send(request, stream=True)
        parts, named = urlsplit(self._url), httpx2.URL(self._url)
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
        failure: httpx2.TransportError | None = None
        for address in await self._addresses(host, port, self._flaw):
            request = client.build_request(
                method,
                named.copy_with(host=address),
                content=content,
                headers={**headers, "Host": named.netloc.decode("ascii")},
                extensions={"sni_hostname": host},
            )
            try:
                return await client.send(request, stream=True)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as refusal:
                failure = refusal
        raise failure or HostUnknown(host)

    async def _addresses(self, host: str, port: int, flaw_of: Flaw) -> Sequence[str]:
        """The first addresses of a host. One that is refused is enough to refuse the host."""
        try:
            addresses = await self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise HostUnknown(host) from error
        for address in addresses:
            flaw = flaw_of(address)
            if flaw is not None:
                raise AddressRefused(address, flaw)
        return addresses[:_MOST_ADDRESSES]


async def chunks(response: "httpx2.Response", most_bytes: int) -> AsyncIterator[bytes]:
    """The body as it arrives. Raises BodyTooLong when more than `most_bytes` have arrived."""
    length = 0
    async for chunk in response.aiter_bytes():
        length += len(chunk)
        if length > most_bytes:
            raise BodyTooLong
        yield chunk


async def body_of(response: "httpx2.Response", most_bytes: int) -> bytes:
    """The whole body. Raises BodyTooLong if it is longer than `most_bytes`."""
    return b"".join([chunk async for chunk in chunks(response, most_bytes)])


def retry_after_s(headers: Mapping[str, str]) -> float:
    """The seconds of a Retry-After; 0 if it is missing, a date, or not a number of at most nine digits."""
    text = headers.get("retry-after", "")
    return float(text) if text.isascii() and text.isdigit() and len(text) <= _LONGEST_RETRY_AFTER else 0.0
