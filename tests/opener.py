"""What opens the memory of a server that several tests use, one after the other. Without pytest: `make e2e-hosts` has
none.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from kalito_mcp.memory import Memory


class Opener:
    """Opens the memory that a reused server serves now."""

    opens: Callable[[], AbstractAsyncContextManager[Memory]]

    def __call__(self) -> AbstractAsyncContextManager[Memory]:
        return self.opens()
