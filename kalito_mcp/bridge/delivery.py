"""Sends to the home what changes the memory, in order: what waits first. What the home cannot take now waits.

Nothing is told as kept before it is on disk here or there. All of it may be sent twice, because the home recognises it
by its keys.
"""

import itertools
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import anyio
import anyio.to_thread

from kalito_mcp.bridge.home import Caller, Home, HomeAway, HomeFailed, HomePaused, Progress, RequestRefused
from kalito_mcp.bridge.outbox import Entry, Outbox

_log: Final = logging.getLogger("kalito.bridge")
ALREADY: Final = "already_taken_in"
"""The code of a refusal that says that the home has it."""
_FAILED: Final = "internal"
_TRY_AGAIN: Final = frozenset(
    """storage storage_full storage_busy storage_read_only storage_damaged storage_replaced configuration
    schema_too_new""".split()
)
"""Codes of what is wrong with the home, not with what it was sent."""
_PAUSED: Final = "conflict: the memory is paused"
_MOST_TRIES: Final = 20
"""An entry that the home fails at so often is put aside, so that it does not hold up the others for ever."""
_LOOK_EVERY_S: Final = 1.0
_POLL_S: Final = 0.05
_AT_ONCE: Final = 100
_MOST_WAITING_S: Final = 5.0
"""So long a call waits for what came before it. Then it waits in the outbox itself."""
_MOST_CATCHING_UP_S: Final = 1.0
_MOST_BETWEEN_S: Final = 15.0


class Delivery:
    """The way to the home for one process."""

    def __init__(self, home: Home, outbox: Outbox, is_paused: Callable[[], bool] = lambda: False) -> None:
        self.home = home
        self.outbox = outbox
        self._is_paused = is_paused
        self.away: HomeAway | None = None
        """Why the home could not be reached when it was last asked; None if it answered."""
        self._ask_again_at = 0.0
        self._turn = anyio.Lock()
        self._tries: dict[str, int] = {}

    async def ask(
        self,
        method: str,
        params: Mapping[str, Any],
        caller: Caller,
        *,
        on_progress: Progress | None = None,
        may_repeat: bool = True,
        meta: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """As `Home.request`. For as long as the home said, or after it kept a call waiting, it is not asked."""
        if self.away is not None and time.monotonic() < self._ask_again_at:
            raise type(self.away)(self.away.reason, is_sent=False)
        try:
            result = await self.home.request(
                method, params, caller, on_progress=on_progress, may_repeat=may_repeat, meta=meta
            )
        except HomeAway as away:
            self.away = away
            self._ask_again_at = time.monotonic() + min(away.retry_after_s, _MOST_BETWEEN_S)
            raise
        except RequestRefused:
            self.away = None
            raise
        self.away = None
        return result

    @asynccontextmanager
    async def in_order(self, *, within_s: float = _MOST_WAITING_S) -> AsyncIterator[None]:
        """During the block, nothing of this process is sent in between, and nothing waits that came before.

        Raises:
            HomeAway: something waits, and cannot be delivered now, or not in time.
        """
        has_turn = False
        try:
            with anyio.move_on_after(within_s) as limit:
                await self._turn.acquire()
                has_turn = True
                try:
                    if await anyio.to_thread.run_sync(self.outbox.count):
                        await self._deliver(waits=True)
                except OSError as error:
                    raise HomeAway(f"what waits for it cannot be read: {error.strerror}", is_sent=False) from error
            if limit.cancelled_caught:
                raise HomeAway("what waits for it is being delivered", is_sent=False)
            yield
        finally:
            if has_turn:
                self._turn.release()

    async def catch_up(self) -> None:
        """Deliver what waits, if that takes but a moment: what was recorded last is asked for first."""
        if self._is_paused():
            return
        with suppress(HomeAway):
            async with self.in_order(within_s=_MOST_CATCHING_UP_S):
                pass

    async def wait_for_home(self, method: str, params: Mapping[str, Any], caller: Caller, **more: Any) -> str:
        """Put a request into the outbox. Returns its id. Raises StorageError."""
        content = {
            "at_ms": time.time_ns() // 1_000_000,
            "method": method,
            "params": params,
            "client": caller.client,
            "session": caller.session,
            "project": caller.project,
            **more,
        }
        # Once begun it goes on: whoever is told nothing sends it again, under the same key.
        with anyio.CancelScope(shield=True):
            entry_id = await anyio.to_thread.run_sync(self.outbox.put, content)
        return entry_id

    async def run(self) -> None:
        """Deliver what waits, for as long as this process runs."""
        pause_s = _LOOK_EVERY_S
        await anyio.to_thread.run_sync(self.outbox.sweep)
        while True:
            await anyio.sleep(pause_s)
            try:
                # What was said before a pause waits for its end.
                if self._is_paused() or not await anyio.to_thread.run_sync(self.outbox.count):
                    pause_s = _LOOK_EVERY_S
                    continue
                self._ask_again_at = 0.0
                async with self._turn:
                    await self._deliver(waits=False)
                pause_s = _LOOK_EVERY_S
            except HomeAway as away:
                pause_s = min(max(2 * pause_s, away.retry_after_s), max(_MOST_BETWEEN_S, away.retry_after_s))
                _log.debug("the home is away: %s", away.reason)
            except OSError as error:
                _log.warning("what waits for the home cannot be read: %s", error.strerror)

    async def _deliver(self, *, waits: bool) -> None:
        """Send all that waits, oldest first. Returns when nothing waits. If another process is delivering, wait for it
        or return.

        Raises:
            HomeAway: the home cannot take the next one now.
        """
        while True:
            with self.outbox.delivering() as is_ours:
                while is_ours and (entries := await anyio.to_thread.run_sync(self._next)):
                    for entry in entries:
                        await self._deliver_one(entry)
            if is_ours or not waits:
                return
            await anyio.sleep(_POLL_S)

    def _next(self) -> list[Entry]:
        return list(itertools.islice(self.outbox.waiting(), _AT_ONCE))

    async def _deliver_one(self, entry: Entry) -> None:
        try:
            reason = flaw_of(await self._sent(entry.content))
        except HomeFailed as failed:
            self._count_failure(entry, failed)
            return
        except RequestRefused as refused:
            reason = refused.message
        except (KeyError, TypeError, ValueError):  # JSON, but not what was put there
            reason = "its file is damaged"
        with anyio.CancelScope(shield=True):
            if reason is None:
                await anyio.to_thread.run_sync(self.outbox.remove, entry)
            else:
                _log.warning("the home has refused what waited for it; it is put aside: %s", reason.partition(":")[0])
                await anyio.to_thread.run_sync(self.outbox.put_aside, entry, reason)

    async def _sent(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        caller = Caller(given.get("client"), given.get("session"), given.get("project"))
        meta = {**given.get("meta", {}), "kalito/late": True}
        return await self.ask(given["method"], dict(given["params"]), caller, meta=meta)

    def _count_failure(self, entry: Entry, failed: HomeFailed) -> None:
        """Let an entry that the home failed at wait; put it aside after many times. Raises HomeFailed."""
        tries = self._tries[entry.id] = self._tries.get(entry.id, 0) + 1
        if tries < _MOST_TRIES:
            raise failed
        self.outbox.put_aside(entry, failed.reason)


def flaw_of(result: Mapping[str, Any]) -> str | None:
    """Why the result of a call is a refusal for good; None if the call was taken in.

    Raises:
        HomeAway: the home could not do it now.
    """
    if not result.get("isError"):
        return None
    content = result.get("content")
    first = content[0] if isinstance(content, list) and content else None
    text = str(first.get("text", "")) if isinstance(first, dict) else ""
    code = text.partition(":")[0]
    if code == ALREADY:
        return None
    if code == _FAILED:
        raise HomeFailed(f"it fails: {text}")
    if code in _TRY_AGAIN:
        raise HomeAway(f"it answers: {text}")
    if text.startswith(_PAUSED):
        raise HomePaused(text)
    return text or "refused without a reason"
