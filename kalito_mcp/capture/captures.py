"""Reports of hooks over HTTP, kept apart by caller: two owners may have conversations with the same name."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from kalito_mcp.capture.capturer import Capture
from kalito_mcp.domain.access import Principal
from kalito_mcp.domain.scope import Limits
from kalito_mcp.runtime.acting import acting

if TYPE_CHECKING:
    from kalito_mcp.memory import Memory

_MOST_KEPT: Final = 256
"""Callers. Of others, the files say what their assistants see."""


class Captures:
    """The capture of this machine's own hooks, `host`, and one for each owner and limits of those that call over HTTP.

    `memory` gives the memory of whom the calling task works for.
    """

    def __init__(self, host: Capture, memory: "Callable[[], Awaitable[Memory]]") -> None:
        self.host = host
        self._memory = memory
        self._of_callers: OrderedDict[tuple[str, Limits], Capture] = OrderedDict()

    def current(self) -> Capture:
        """The capture of whom the calling task works for."""
        called = acting()
        return self.of(None if called is None else called.principal)

    def of(self, principal: Principal | None) -> Capture:
        """The capture of a caller; without a caller, the one of this machine's hooks."""
        if principal is None:
            return self.host
        key = principal.owner, principal.limits
        found = self._of_callers.get(key)
        if found is None:
            found = self._of_callers[key] = Capture(self._memory)
            if self.host.folder is not None:
                digest = blake2b(repr(key).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
                found.share_in(self.host.folder.with_name(f"{self.host.folder.name}-{digest}"))
        self._of_callers.move_to_end(key)
        while len(self._of_callers) > _MOST_KEPT:
            self._of_callers.popitem(last=False)
        return found
