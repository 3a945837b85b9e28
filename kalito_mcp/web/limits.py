"""Rate limits: calls and writes per minute for each token, refused requests for each address.

Counted in this process, because a count that every process shares would cost a write a call. With several processes
each one gives the whole allowance. What is kept is bounded, however many addresses call.
"""

import ipaddress
import math
import re
import time
from collections.abc import Callable
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import Scope

from kalito_mcp.access.policy import HttpPolicy
from kalito_mcp.domain.access import Principal
from kalito_mcp.safety.addresses import own_network

_MOST_KEYS: Final = 10_000
_NOBODY: Final = "unknown"
_WITH_PORT: Final = re.compile(r"^(?:\[([0-9A-Fa-f:.]+)\]|([0-9.]+))(?::[0-9]+)?$")
"""Of X-Forwarded-For: an address as some proxies write it, with the port that the request came from."""


class Buckets:
    """A bucket of calls for each key. It holds a minute's calls at most, and fills up evenly.

    Beyond `most` keys, the one that called longest ago is forgotten, as if it had not called.
    """

    def __init__(self, per_minute: int, *, most: int = _MOST_KEYS, now_s: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._most = most
        self._now_s = now_s
        self._left: dict[str, tuple[float, float]] = {}

    def __len__(self) -> int:
        return len(self._left)

    def take(self, key: str) -> float:
        """Take one call. 0 if there was one, else how many seconds it takes until there is."""
        now_s = self._now_s()
        left, at_s = self._left.pop(key, (float(self._per_minute), now_s))
        left = min(float(self._per_minute), left + (now_s - at_s) * self._per_minute / 60)
        wait_s = 0.0 if left >= 1 else (1 - left) * 60 / self._per_minute
        # The newest is always the last, so the first one called longest ago.
        self._left[key] = (left if wait_s else left - 1, now_s)
        if len(self._left) > self._most:
            del self._left[next(iter(self._left))]
        return wait_s


class RateLimits:
    """The limits of one server. Each method takes one call, and returns how many seconds it has to wait, or 0."""

    def __init__(self, policy: HttpPolicy, *, now_s: Callable[[], float] = time.monotonic) -> None:
        self._calls = Buckets(policy.calls_per_minute, now_s=now_s)
        self._writes = Buckets(policy.writes_per_minute, now_s=now_s)
        self._open = Buckets(policy.calls_per_minute, now_s=now_s)
        self._refused = Buckets(policy.refusals_per_minute, now_s=now_s)
        self._proxies = [ipaddress.ip_network(proxy) for proxy in policy.proxies]

    def call(self, principal: Principal) -> float:
        """A request with a token."""
        return self._calls.take(principal.id)

    def write(self, principal: Principal) -> float:
        """One that may change something."""
        return self._writes.take(principal.id)

    def open_call(self, scope: Scope) -> float:
        """A request that needs no token."""
        return self._open.take(self.network(scope))

    def refused(self, scope: Scope) -> float:
        """A request without a valid token."""
        return self._refused.take(self.network(scope))

    def network(self, scope: Scope) -> str:
        """Where a request comes from: the network of the nearest address that is no proxy of ours, or `unknown`. What
        else X-Forwarded-For says, anybody can write."""
        client = scope.get("client")
        nearest = str(client[0]) if client else ""
        if not self._is_proxy(nearest):
            return own_network(nearest) or _NOBODY
        named = ",".join(Headers(scope=scope).getlist("x-forwarded-for")).split(",")
        for hop in reversed([_WITH_PORT.sub(r"\1\2", one.strip()) for one in named]):
            if not self._is_proxy(hop):
                return own_network(hop) or _NOBODY
        return own_network(nearest) or _NOBODY

    def _is_proxy(self, address: str) -> bool:
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(found in network for network in self._proxies)


def too_many(wait_s: float) -> JSONResponse:
    """The refusal of a call that comes too early."""
    seconds = max(1, math.ceil(wait_s))
    said = f"too many requests; wait {seconds} s, or raise the limit under [http] in the settings"
    content = {"error": "too_many_requests", "error_description": said}
    return JSONResponse(content, 429, {"retry-after": str(seconds), "cache-control": "no-store"})
