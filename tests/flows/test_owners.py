"""Two owners share one database file, each with a server of their own: whatever a call names, it reaches no other."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import pytest
from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult

from tests.server.wire import clean_environment

pytestmark = pytest.mark.anyio
ANNS: Final = "vetiver-4417"
"""What only Ann said. Every call of Ben's asks for it."""
NAMES: Final = ("default", "ann", "local", "*", "%", "", "ann/default", "'; --")


async def call(client: Client, tool: str, **arguments: Any) -> tuple[str, Any]:
    """All that the host sees of an answer, and its structured part."""
    result = await client.call_tool(tool, arguments)
    assert isinstance(result, CallToolResult)
    text = " ".join(getattr(part, "text", "") for part in result.content)
    return f"{text}\n{json.dumps(result.structured_content)}", result.structured_content


@pytest.fixture
async def servers(tmp_path: Path) -> AsyncIterator[tuple[Client, Client]]:
    """Ann's and Ben's."""
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(
                Client(
                    StdioServerParameters(
                        command=sys.executable,
                        args=["-m", "kalito_mcp", "serve"],
                        cwd=tmp_path,
                        env=clean_environment(
                            KALITO_DATABASE=str(tmp_path / "shared.db"), KALITO_OWNER=owner, KALITO_PROJECT=""
                        ),
                    )
                )
            )
            for owner in ("ann", "ben")
        ]
        yield clients[0], clients[1]


async def anns_memory(ann: Client) -> tuple[str, list[str]]:
    """Record what Ann says in every way. Returns her session and the ids of her records."""
    said = [{"role": "user", "text": f"My locker code is {ANNS}, and I am allergic to peanuts."}]
    _, recorded = await call(ann, "record_messages", session_id="trip", messages=said)
    ids = [*recorded["message_ids"]]
    _, pinned = await call(ann, "create_pin", session_id="trip", content=f"Locker: {ANNS}", scope="person")
    _, noted = await call(ann, "remember", type="note", text=f"The locker code {ANNS} is new.")
    return "trip", [*ids, pinned["pin"]["id"], *noted["record_ids"]]


async def test_no_call_reaches_another_owner_s_memory(servers: tuple[Client, Client]) -> None:
    ann, ben = servers
    session, ids = await anns_memory(ann)
    asked = f"What is the locker code {ANNS}?"
    seen: list[str] = []
    for name in NAMES:
        for tool, arguments in (
            ("search_memory", {"query": "locker code", "agent_id": name}),
            ("search_memory", {"query": "locker code", "agent_id": name, "project": "*"}),
            ("search_memory", {"query": "locker code", "session_id": name or session}),
            ("build_context", {"query": "Which locker code do I have?", "agent_id": name}),
            ("build_context", {"session_id": session, "query": "Which locker code do I have?"}),
            ("list_tasks", {"agent_id": name}),
        ):
            seen.append((await call(ben, tool, **arguments))[0])
    for record_id in ids:
        for tool, arguments in (
            ("memory_history", {"record_id": record_id}),
            ("memory_history", {"record_id": record_id, "version": 1}),
            ("update_memory", {"record_id": record_id, "changes": {"text": "his now"}, "expected_revision": 1}),
            ("forget", {"record_ids": [record_id]}),
            ("forget", {"record_ids": [record_id], "purge": True, "confirmed": True}),
            ("forget", {"identifier": ANNS.upper()}),
            ("restore", {"record_id": record_id}),
            ("create_pin", {"session_id": session, "content": "stolen", "source_message_id": record_id}),
            ("record_feedback", {"target_id": record_id, "label": "up"}),
        ):
            seen.append((await call(ben, tool, **arguments))[0])
    seen.append((await call(ben, "finalize_session", session_id=session))[0])
    assert not [one for one in seen if f"{ANNS} is" in one or "Locker: " in one or "peanuts" in one]

    text, _ = await call(ann, "search_memory", query="locker code")
    assert ANNS in text, "what Ben tried changed nothing of hers"
    text, _ = await call(ann, "build_context", query=asked)
    assert ANNS in text
    _, mine = await call(
        ben, "record_messages", session_id="trip", messages=[{"role": "user", "text": "My hut is 12."}]
    )
    assert mine["message_ids"], "the same name of a session is his own"
    text, _ = await call(ben, "search_memory", query="Which hut is mine?")
    assert "My hut is 12." in text
