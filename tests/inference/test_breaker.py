import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.errors import ModelError, ModelUnavailable
from kalito_mcp.inference.breaker import BreakerPolicy, BreakerState, CircuitBreaker
from kalito_mcp.inference.chat import OllamaChat, OpenAIChat
from tests.inference import model_server as scripted
from tests.inference.model_server import ScriptedServer
from tests.inference.test_chat import IMPATIENT, QUICK, REQUEST, chat
from tests.scripted import ScriptedClock


def call(breaker: CircuitBreaker, is_healthy: bool | None) -> bool:
    """Whether the call was let through."""
    permit = breaker.admit()
    if permit is not None:
        breaker.settle(permit, is_healthy)
    return permit is not None


def opened(clock: ScriptedClock) -> CircuitBreaker:
    breaker = CircuitBreaker(clock)
    for _ in range(5):
        call(breaker, False)
    return breaker


def test_five_failures_in_a_row_open_it_and_four_do_not() -> None:
    """The breaker opens after 5."""
    breaker = CircuitBreaker(ScriptedClock())

    assert [call(breaker, False) for _ in range(5)] == [True] * 5

    assert breaker.state is BreakerState.OPEN
    assert not call(breaker, True)


def test_a_success_between_them_starts_the_count_again() -> None:
    breaker = CircuitBreaker(ScriptedClock())

    for is_healthy in (False, False, False, False, True, False, False, False, False):
        call(breaker, is_healthy)

    assert breaker.state is BreakerState.CLOSED


def test_a_call_that_says_nothing_counts_neither_way() -> None:
    breaker = CircuitBreaker(ScriptedClock())

    for is_healthy in (False, False, None, False, False, None, False):
        call(breaker, is_healthy)

    assert breaker.state is BreakerState.OPEN


def test_it_stays_open_until_its_rest_is_over_and_then_lets_one_call_through_at_a_time() -> None:
    clock = ScriptedClock()
    breaker = opened(clock)
    clock.steady += 59.99
    assert breaker.admit() is None
    clock.steady += 0.01
    assert breaker.state is BreakerState.HALF_OPEN
    assert breaker.admit() is not None
    assert breaker.admit() is None


def test_the_probe_decides_what_comes_next() -> None:
    for probe, expected in (
        (True, BreakerState.CLOSED),
        (False, BreakerState.OPEN),
        (None, BreakerState.HALF_OPEN),
    ):
        clock = ScriptedClock()
        breaker = opened(clock)
        clock.steady += 60
        assert call(breaker, probe)
        assert breaker.state is expected


def test_a_failed_probe_costs_a_whole_rest_again() -> None:
    clock = ScriptedClock()
    breaker = opened(clock)
    clock.steady += 60
    call(breaker, False)

    clock.steady += 59
    assert breaker.admit() is None
    clock.steady += 1
    assert breaker.admit() is not None


def test_a_cancelled_probe_gives_its_place_to_the_next_caller() -> None:
    clock = ScriptedClock()
    breaker = opened(clock)
    clock.steady += 60

    assert call(breaker, None)
    assert call(breaker, True)

    assert breaker.state is BreakerState.CLOSED


def test_a_call_from_before_the_opening_cannot_speak_for_the_probe() -> None:
    clock = ScriptedClock()
    breaker = CircuitBreaker(clock)
    late = breaker.admit()
    assert late is not None
    for _ in range(5):
        call(breaker, False)
    clock.steady += 60
    probe = breaker.admit()

    breaker.settle(late, True)

    assert breaker.state is BreakerState.HALF_OPEN
    assert probe is not None
    assert breaker.admit() is None


@given(st.lists(st.tuples(st.sampled_from([True, False, None]), st.floats(0, 40))))
def test_whatever_happens_it_opens_only_after_enough_failures(events: list[tuple[bool | None, float]]) -> None:
    clock = ScriptedClock()
    breaker = CircuitBreaker(clock, BreakerPolicy(failures_to_open=3, open_s=60))
    failures_since_success = 0
    for is_healthy, pause in events:
        clock.steady += pause
        was_let_through = call(breaker, is_healthy)
        assert was_let_through or failures_since_success >= 3
        if was_let_through and is_healthy is not None:
            failures_since_success = 0 if is_healthy else failures_since_success + 1


@pytest.mark.anyio
async def test_after_five_failures_no_more_calls_arrive_until_the_rest_is_over() -> None:
    """The breaker opens after 5."""
    clock = ScriptedClock()
    async with ScriptedServer(*[scripted.status(500)] * 5, scripted.ollama_says("A greeting.")) as server:
        model = chat(server.url, breaker=CircuitBreaker(clock))
        for _ in range(2):
            with pytest.raises(ModelUnavailable, match="answered 500"):
                await model.complete(REQUEST)
        assert len(server.calls) == 5
        with pytest.raises(ModelUnavailable, match=r"was not asked because it failed too often; .* 60 s"):
            await model.complete(REQUEST)

        clock.steady += 60
        assert await model.complete(REQUEST) == "A greeting."
        await model.aclose()

    assert len(server.calls) == 6


@pytest.mark.anyio
async def test_a_timeout_counts_against_the_server_and_a_cancelled_caller_does_not() -> None:
    for limits, patience_s, state in ((IMPATIENT, 10.0, BreakerState.OPEN), (QUICK, 0.1, BreakerState.CLOSED)):
        breaker = CircuitBreaker(ScriptedClock())
        async with ScriptedServer(scripted.never_answers) as server:
            model = chat(server.url, breaker=breaker, limits=limits)
            async with anyio.create_task_group() as callers:
                for _ in range(5):
                    callers.start_soon(_complete_or_give_up, model, patience_s)
            await model.aclose()
        assert breaker.state is state


async def _complete_or_give_up(model: OllamaChat | OpenAIChat, patience_s: float) -> None:
    with anyio.move_on_after(patience_s):
        with pytest.raises(ModelUnavailable):
            await model.complete(REQUEST)


@pytest.mark.anyio
async def test_a_refused_request_does_not_count_against_the_server_and_garbage_does() -> None:
    for reply, state in ((scripted.status(404), BreakerState.CLOSED), (scripted.body(b"?"), BreakerState.OPEN)):
        breaker = CircuitBreaker(ScriptedClock())
        async with ScriptedServer(reply) as server:
            model = chat(server.url, breaker=breaker)
            for _ in range(5):
                with pytest.raises(ModelError):
                    await model.complete(REQUEST)
            await model.aclose()
        assert breaker.state is state
