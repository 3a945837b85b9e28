"""The SDK's own OAuth client finds the sign-in, registers, is let in, calls, renews, and is revoked."""

from pathlib import Path

import pytest
from mcp.client.auth import OAuthFlowError, OAuthRegistrationError

from tests.sign_in.harness import Program, home

pytestmark = pytest.mark.anyio


async def test_a_client_registers_is_let_in_calls_renews_and_is_revoked(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        program = Program(at.url)
        async with program.connected() as client:
            result = await client.call_tool(
                "record_messages", {"session_id": "s", "messages": [{"role": "user", "text": "We fly to Oslo."}]}
            )
            assert not result.is_error
        assert program.info is not None
        assert program.info.client_secret is None
        first = program.tokens
        assert first is not None
        assert first.scope == "read write"
        assert first.expires_in == 3_600

        at.clock.advance(3_601)
        program.tokens = first
        async with program.connected() as client:  # the access token is too old: the SDK signs in again or renews
            assert not (await client.call_tool("list_tasks", {})).is_error
        [grant, *_] = await at.memory.sign_in.consents.all()
        assert (grant.client_name, grant.owner, grant.is_usable) == ("Kite", "local", True)
