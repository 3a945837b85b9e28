"""A client of the SDK that sends a token, over streamable HTTP or the older SSE."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client


@asynccontextmanager
async def connected(url: str, token: str, *, mode: str, **options: Any) -> AsyncIterator[Client]:
    """A connected client."""
    headers = {"Authorization": f"Bearer {token}"}
    if url.endswith("/sse"):
        async with Client(sse_client(url, headers=headers), mode=mode, **options) as client:
            yield client
        return
    async with (
        httpx2.AsyncClient(headers=headers, timeout=httpx2.Timeout(30, read=300)) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode, **options) as client,
    ):
        yield client
