"""How many calls of a host run at once over stdio."""

import anyio
import anyio.lowlevel
import pytest
from mcp.types import JSONRPCRequest

from kalito_mcp.server import calls as module
from kalito_mcp.server.calls import Calls

pytestmark = pytest.mark.anyio


def _request(number: int | str, method: str = "tools/call") -> JSONRPCRequest:
    return JSONRPCRequest(jsonrpc="2.0", id=number, method=method)


async def _full(waiting: int = 0) -> Calls:
    """64 calls that run, and some that wait: from `waiting 0` on."""
    calls = Calls()
    assert all(calls.begin(_request(number)) for number in range(64))
    for number in range(waiting):
        await calls.keep(_request(f"waiting {number}"), b"line %d" % number)
    return calls


async def test_the_call_after_the_sixty_fourth_waits_until_one_is_answered() -> None:
    calls = await _full()
    assert not calls.begin(_request(64))
    calls.end(5)
    assert calls.begin(_request(64))
    assert not calls.begin(_request(65))


async def test_calls_that_share_an_id_each_count() -> None:
    calls = Calls()
    assert all(calls.begin(_request("same")) for _ in range(64))
    assert not calls.begin(_request("same"))


async def test_pings_run_before_calls_that_wait_but_not_without_end() -> None:
    calls = await _full(waiting=1)
    assert all(calls.begin(_request(f"ping {number}", "ping")) for number in range(64))
    assert not calls.begin(_request("another", "ping"))


async def test_a_subscription_never_waits_and_takes_no_place() -> None:
    calls = await _full()
    assert calls.begin(_request("listen", "subscriptions/listen"))
    calls.end(0)
    assert calls.begin(_request(64))


async def test_calls_that_wait_start_in_order_and_before_new_ones() -> None:
    calls = await _full(waiting=2)
    calls.end(0)
    assert not calls.begin(_request("new"))
    assert await calls.next_line() == b"line 0"
    calls.end(1)
    assert await calls.next_line() == b"line 1"


async def test_a_cancelled_call_leaves_its_place_however_its_id_is_written() -> None:
    calls = await _full(waiting=2)
    assert calls.cancel("waiting 0")
    assert not calls.cancel("7")  # it runs: the SDK, too, must hear of it
    assert await calls.next_line() == b"line 1"
    assert calls.waiting_ids() == []


async def test_a_cancellation_of_nothing_frees_no_place() -> None:
    calls = await _full()
    assert not calls.cancel("unknown")
    assert not calls.begin(_request(64))


async def test_no_more_lines_are_kept_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_WAITING_BYTES", 10)
    calls = await _full(waiting=1)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(calls.keep, _request("long"), b"a line that is too long")
        await anyio.lowlevel.checkpoint()
        assert calls.waiting_ids() == ["waiting 0"]
        calls.end(0)
        assert await calls.next_line() == b"line 0"
    assert calls.waiting_ids() == ["long"]  # alone, a line of any length may wait


async def test_everything_is_answered_when_nothing_runs_or_waits() -> None:
    calls = await _full(waiting=1)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(calls.wait_until_answered, 3_600)
        for number in range(64):
            calls.end(number)
        assert await calls.next_line() == b"line 0"
        calls.end("waiting 0")


async def test_the_grace_begins_again_with_each_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[float] = []
    real = anyio.move_on_after

    def counted(delay: float) -> anyio.CancelScope:
        begun.append(delay)
        return real(delay)

    monkeypatch.setattr(anyio, "move_on_after", counted)
    calls = await _full()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(calls.wait_until_answered, 3_600)
        for number in range(64):
            await anyio.wait_all_tasks_blocked()
            calls.end(number)
    assert begun == [3_600] * 64


async def test_calls_that_are_not_answered_are_waited_for_no_longer_than_the_grace() -> None:
    calls = await _full()
    await calls.wait_until_answered(0)
    assert not calls.begin(_request(64))
