"""Reads a JSON document from a URL that a client names. Sends no credential, and checks every address of the host."""

import json
from typing import Any, Final

import anyio

from kalito_mcp.http_client import (
    AddressRefused,
    BodyTooLong,
    Flaw,
    HostUnknown,
    HttpClient,
    Resolve,
    body_of,
    resolve_host,
)

_OK: Final = 200
_HEADERS: Final = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "kalito-mcp"}


class NotFetched(Exception):
    """The document was not read. The message says why, without a word of the server's."""


async def fetch_json(
    url: str, *, flaw: Flaw, most_bytes: int, timeout_s: float, resolve: Resolve = resolve_host
) -> Any:
    """The JSON document at a URL. No address of its host may have a `flaw`.

    Raises:
        NotFetched: it is not there in time, too large or not JSON, or its host has an address with a flaw.
    """
    import httpx2  # noqa: PLC0415 - slow, and rarely needed

    client = HttpClient(url, silence_s=timeout_s, connect_s=timeout_s, flaw=flaw, resolve=resolve)
    try:
        with anyio.fail_after(timeout_s):
            try:
                async with client.stream("GET", _HEADERS) as response:
                    if response.status_code != _OK:
                        raise NotFetched(f"the server answered {response.status_code}")
                    return json.loads(await body_of(response, most_bytes))
            finally:
                await client.aclose()
    except TimeoutError:
        raise NotFetched(f"it did not arrive within {timeout_s:g} s") from None
    except AddressRefused:
        raise NotFetched("its host has an address that may not be asked") from None
    except HostUnknown:
        raise NotFetched("there is no such host") from None
    except BodyTooLong:
        raise NotFetched(f"it is longer than {most_bytes:,} bytes") from None
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as failure:
        raise NotFetched(f"the connection failed ({type(failure).__name__})") from None
    except (ValueError, RecursionError):
        raise NotFetched("it is not JSON") from None
