"""Rebuilds the facts from the records, in pieces that each store how far they came."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol

import anyio

from kalito_mcp.storage.sqlite.facts import FactStatements

FACTS_STEP: Final = 11
"""The migration from which on there are facts."""

_PAUSE_S: Final = 0.002
"""Between two pieces, for other processes that wait to write."""


class _Writing(Protocol):
    @property
    def facts(self) -> FactStatements: ...


async def rebuild_facts(write: Callable[[], AbstractAsyncContextManager[_Writing]], *, is_forced: bool = False) -> None:
    """Rebuild the facts if other rules made them, or if it is forced. A process that is killed has lost one piece.

    Raises:
        StorageBusy: another process held the lock too long.
    """
    async with write() as transaction:
        is_left = await transaction.facts.restart(is_forced=is_forced)
    while is_left:
        async with write() as transaction:
            is_left = await transaction.facts.go_on()
        await anyio.sleep(_PAUSE_S)
