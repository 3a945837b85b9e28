"""The private parts of libraries that the package uses, each with what breaks without it."""

import inspect

import aiosqlite
import pytest
from mcp.server import MCPServer
from mcp.server.session import ServerSession
from mcp.shared import _context_streams


def test_the_sdk_still_has_the_private_parts_that_the_server_uses() -> None:
    # server/stdio.py and server/subscriptions.py: a transport and two methods of our own.
    assert hasattr(MCPServer("probe")._lowlevel_server, "create_initialization_options")
    # server/subscriptions.py: the connection behind the session of a request.
    assert "_connection" in inspect.getsource(ServerSession)
    # server/stdio.py: streams as the SDK's transports use them.
    assert callable(_context_streams.create_context_streams)


@pytest.mark.anyio
async def test_the_driver_still_has_the_private_parts_that_the_store_uses() -> None:
    async with aiosqlite.connect(":memory:") as connection:
        # storage/sqlite/side_files.py leaves a connection open, and database.py waits for its thread.
        assert connection._connection is not None
        assert connection._thread.is_alive()
