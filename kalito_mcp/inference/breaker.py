"""Circuit breaker: a model server that keeps failing gets no calls for a while. Pure; time comes from a Clock.

    CLOSED --5 failures in a row--> OPEN --60 s--> HALF_OPEN --one trial call--> CLOSED or OPEN

It never calls a server and never waits.
Source: Nygard, Release It! (2007), the Circuit Breaker pattern.
"""

from dataclasses import dataclass
from enum import StrEnum

from kalito_mcp.ports.clock import Clock


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """When to stop calling, and for how long."""

    failures_to_open: int = 5
    open_s: float = 60.0


class BreakerState(StrEnum):
    """CLOSED allows every call, OPEN none, HALF_OPEN one at a time."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class CircuitBreaker:
    """The state of one server.

    Each call gets a permit from `admit()` first and passes it to `settle()` at its end. A permit from before the last
    change of state is ignored: a slow call of that time says nothing about the server now.
    """

    def __init__(self, clock: Clock, policy: BreakerPolicy | None = None) -> None:
        self._clock = clock
        self.policy = policy or BreakerPolicy()
        self._era = 0
        self._failures = 0
        self._opened_at_s: float | None = None
        self._is_probing = False

    @property
    def state(self) -> BreakerState:
        """The current state; OPEN becomes HALF_OPEN by the clock alone."""
        if self._opened_at_s is None:
            return BreakerState.CLOSED
        has_rested = self._clock.steady_s() - self._opened_at_s >= self.policy.open_s
        return BreakerState.HALF_OPEN if has_rested else BreakerState.OPEN

    def admit(self) -> int | None:
        """Return a permit for one call, or None if the call must not be made.

        In HALF_OPEN the first caller gets one and the others None until it is settled.
        """
        state = self.state
        if state is BreakerState.CLOSED:
            return self._era
        if state is BreakerState.OPEN or self._is_probing:
            return None
        self._is_probing = True
        self._era += 1
        return self._era

    def settle(self, permit: int, is_healthy: bool | None) -> None:
        """Note how an admitted call ended.

        `is_healthy` is None if the end says nothing about the server: the call was cancelled, or the request itself was
        refused. After a trial call that ends so, the next caller may try.
        """
        if permit != self._era:
            return
        if self._opened_at_s is None:
            self._count(is_healthy)
            return
        self._is_probing = False
        if is_healthy is True:
            self._opened_at_s = None
            self._failures = 0
        elif is_healthy is False:
            self._open()

    def _count(self, is_healthy: bool | None) -> None:
        if is_healthy is True:
            self._failures = 0
        elif is_healthy is False:
            self._failures += 1
            if self._failures >= self.policy.failures_to_open:
                self._open()

    def _open(self) -> None:
        self._opened_at_s = self._clock.steady_s()
        self._era += 1
