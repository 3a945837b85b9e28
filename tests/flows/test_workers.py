"""Servers of one database behind a plain balancer serve the 2026 protocol, which keeps no state in a process."""

import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.types import CallToolResult, ElicitResult

from kalito_mcp.domain.access import Permission
from kalito_mcp.wiring import open_memory
from tests.flows.harness import said, text_of
from tests.flows.test_transports import converses
from tests.round_robin import round_robin
from tests.server.web import Web, web
from tests.server.wire import MODERN, PATIENCE_S

pytestmark = pytest.mark.anyio


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[list[Web]]:
    with ExitStack() as stack:
        yield [stack.enter_context(web("http", tmp_path / "memory.db")) for _ in range(2)]


@pytest.fixture
async def balanced(workers: list[Web]) -> AsyncIterator[str]:
    async with round_robin([one.url for one in workers]) as url:
        yield url


async def test_a_conversation_over_two_workers(balanced: str) -> None:
    async with Client(balanced, mode="2026-07-28") as client:
        await converses(client, "talk")


async def test_a_worker_accepts_what_another_one_asked_the_user(balanced: str) -> None:
    async def agrees(_context: Any, _params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"erase": True})

    async with Client(balanced, mode="2026-07-28", elicitation_callback=agrees) as client:
        for _ in range(3):  # whichever worker the first round goes to
            recorded = await client.call_tool("record_messages", {"session_id": "s", "messages": said("A secret.")})
            assert isinstance(recorded, CallToolResult)
            [record_id] = (recorded.structured_content or {})["message_ids"]
            erased = await client.call_tool("forget", {"record_ids": [record_id], "purge": True})
            assert isinstance(erased, CallToolResult)
            assert (erased.structured_content or {}).get("erased") == [record_id], text_of(erased)


def call(tool: str, **arguments: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """A tool call of the 2026 protocol, as a body and headers."""
    params = {"name": tool, "arguments": arguments, "_meta": MODERN}
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": tool,
    }
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}, headers


async def test_the_answer_to_a_question_is_only_accepted_from_whom_it_was_put_to(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    async with open_memory(database) as memory:
        tokens = [(await memory.access.create_token(Permission.ADMIN, name=name)).text for name in ("ann", "ben")]
    with web("http", database, login=True) as served:
        async with httpx2.AsyncClient(timeout=PATIENCE_S) as host:

            async def ask(token: str, tool: str, rounds: dict[str, Any], **arguments: Any) -> dict[str, Any]:
                body, headers = call(tool, **arguments)
                body["params"] |= rounds
                can_ask = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
                body["params"]["_meta"] = MODERN | can_ask
                answer = await host.post(served.url, json=body, headers=headers | {"Authorization": f"Bearer {token}"})
                found: dict[str, Any] = answer.json()
                return found

            await ask(tokens[0], "record_messages", {}, session_id="s", messages=said("A secret."))
            purge = {"record_ids": ["msg_1"], "purge": True}
            asked = (await ask(tokens[0], "forget", {}, **purge))["result"]
            assert asked["resultType"] == "input_required"
            [question] = asked["inputRequests"]
            answer = {question: {"action": "accept", "content": {"erase": True}}}
            rounds = {"inputResponses": answer, "requestState": asked["requestState"]}
            refused = await ask(tokens[1], "forget", rounds, **purge)
            assert refused["error"]["message"] == "Invalid or expired requestState"
            erased = await ask(tokens[0], "forget", rounds, **purge)
            assert erased["result"]["structuredContent"]["erased"] == ["msg_1"]


async def test_nothing_acknowledged_is_lost_if_a_worker_is_killed(
    workers: list[Web], balanced: str, tmp_path: Path
) -> None:
    acknowledged: dict[str, str] = {}
    enough = anyio.Event()

    async def record(client_number: int) -> None:
        async with httpx2.AsyncClient(timeout=PATIENCE_S) as host:
            for number in range(30):
                key = f"{client_number}/{number}"
                message = {"role": "user", "text": f"Message {key}.", "client_key": key}
                body, headers = call("record_messages", session_id=f"s{client_number}", messages=[message])
                while key not in acknowledged:  # a host sends again what was not answered
                    try:
                        answer = (await host.post(balanced, json=body, headers=headers)).json()
                    except httpx2.TransportError:
                        continue
                    [acknowledged[key]] = answer["result"]["structuredContent"]["message_ids"]
                if len(acknowledged) >= 20:
                    enough.set()

    async with anyio.create_task_group() as tasks:
        for client_number in range(4):
            tasks.start_soon(record, client_number)
        await enough.wait()
        workers[0].process.send_signal(signal.SIGKILL)
    assert workers[0].process.wait(PATIENCE_S) == -signal.SIGKILL
    async with open_memory(tmp_path / "memory.db") as memory:
        for key, message_id in acknowledged.items():
            assert (await memory.records.get(message_id)).text == f"Message {key}."
        assert [len((await memory.conversations.transcript(f"s{number}")).messages) for number in range(4)] == [30] * 4


async def test_a_host_of_one_worker_hears_of_what_another_one_wrote(workers: list[Web]) -> None:
    async with Client(workers[0].url, mode="2026-07-28") as listening, Client(workers[1].url) as writing:
        uri = "memory://sessions/s/stats"
        async with listening.listen(resource_subscriptions=[uri], resources_list_changed=True) as events:
            await writing.call_tool("record_messages", {"session_id": "s", "messages": said("x")})
            with anyio.fail_after(PATIENCE_S):
                heard = [await anext(aiter(events)) for _ in range(2)]
    assert {getattr(one, "uri", "list") for one in heard} == {uri, "list"}
