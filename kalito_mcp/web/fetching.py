"""Reads a JSON document that somebody else names. The name is resolved once, and the connection goes to an address that
was checked. Redirects are not followed, proxies of the environment are not used, and no credential is sent.
"""

import json
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

if TYPE_CHECKING:
    import httpx2

_OK: Final = 200
_MOST_ADDRESSES: Final = 3

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


class NotFetched(Exception):
    """The document was not read. The message says why, without a word of the server's."""


async def resolve_host(host: str, port: int) -> Sequence[str]:
    """The numeric addresses of a host. Raises OSError if there is none."""
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(socket_address[0]) for *_, socket_address in found))


async def fetch_json(
    url: str,
    *,
    admits: Callable[[str], bool],
    most_bytes: int,
    timeout_s: float,
    resolve: Resolve = resolve_host,
) -> Any:
    """The JSON document at a URL. Every address of its host must be one that `admits` accepts.

    Raises:
        NotFetched: it is not there in time, too large or not JSON, or its host has an address that is not admitted.
    """
    import httpx2  # noqa: PLC0415 - slow, and rarely needed

    try:
        with anyio.fail_after(timeout_s):
            body = await _body(url, admits, most_bytes, timeout_s, resolve)
    except TimeoutError:
        raise NotFetched(f"it did not arrive within {timeout_s:g} s") from None
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as failure:
        raise NotFetched(f"the connection failed ({type(failure).__name__})") from None
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise NotFetched("it is not JSON") from None


async def _body(url: str, admits: Callable[[str], bool], most_bytes: int, timeout_s: float, resolve: Resolve) -> bytes:
    import httpx2  # noqa: PLC0415 - as above

    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    try:
        addresses = await resolve(host, port)
    except (OSError, UnicodeError):
        raise NotFetched("there is no such host") from None
    if not addresses or not all(admits(address) for address in addresses):
        raise NotFetched("its host has an address that may not be asked")
    failure: httpx2.TransportError | None = None
    # In a thread, because the certificates take a fifth of a second of CPU.
    context = await anyio.to_thread.run_sync(httpx2.create_ssl_context)
    async with httpx2.AsyncClient(verify=context, trust_env=False, follow_redirects=False, timeout=timeout_s) as client:
        for address in addresses[:_MOST_ADDRESSES]:
            asked = httpx2.URL(url)
            request = client.build_request(
                "GET",
                asked.copy_with(host=address),
                headers={
                    "Host": asked.netloc.decode("ascii"),
                    "Accept": "application/json",
                    "Accept-Encoding": "identity",
                    "User-Agent": "kalito-mcp",
                },
                extensions={"sni_hostname": host},
            )
            try:
                response = await client.send(request, stream=True)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as refusal:
                failure = refusal
                continue
            try:
                return await _read(response, most_bytes)
            finally:
                await response.aclose()
    raise failure or NotFetched("its host has no address")


async def _read(response: "httpx2.Response", most_bytes: int) -> bytes:
    if response.status_code != _OK:
        raise NotFetched(f"the server answered {response.status_code}")
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > most_bytes:
            raise NotFetched(f"it is longer than {most_bytes:,} bytes")
    return bytes(body)
